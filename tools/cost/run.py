"""The time and bill of one run on one machine set-up: pure numbers, used by every tool about time and money."""

from __future__ import annotations

from dataclasses import dataclass

from knowledge.types import Gpu
from tools.cost.failures import RESTART_HOURS, Interruptions, interruptions, job_mean_between, spot_mean_between
from tools.throughput import Throughput
from tools.throughput.terms import adapter_params
from tools.workload import Job

START_UP_HOURS = 0.25  # booting, image, dataset copy, compilation: billed before the first step
IDLE_SHARE = 0.10  # clean runs bill 5-20 % more than their training time (goodput 0.8-0.95)
EVALUATION_SHARE = 0.02
FAILURES_PER_MILLION_GPU_HOURS = 20.0  # Llama 3: 419 in 54 days on 16,384 GPUs = 19.7
SPOT_MONTHLY_SHARE = 0.15  # AWS Spot Advisor bands for GPU machines run from below 5 to above 20 % a month
CHECKPOINT_BYTES_PER_S = 2e9  # one node to network storage, sustained
CHECKPOINTS_KEPT = 3
STORAGE_USD_PER_GB_MONTH = 0.05
DATASET_BYTES_PER_TOKEN = 2.0  # tokenised, 16-bit ids
# Bytes a parameter of a resumable checkpoint: bf16 weights, fp32 master, two fp32 moments; 8-bit states one byte each.
_RESUMABLE_BYTES = {
    "adamw": 14.0, "paged_adamw": 14.0, "adamw_8bit": 8.0, "paged_adamw_8bit": 8.0, "lion": 10.0, "muon": 10.0,
    "adafactor": 6.1, "sgd": 6.0, "sgd_momentum": 10.0, "galore": 7.0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything of a run's bill beside the price of a GPU-hour; zeros switch parts off."""

    idle_share: float = IDLE_SHARE
    evaluation_share: float = EVALUATION_SHARE
    failures_per_million: float = FAILURES_PER_MILLION_GPU_HOURS
    spot_monthly_share: float = 0.0
    interval_hours: float | None = None
    checkpoint_bytes_per_s: float = CHECKPOINT_BYTES_PER_S
    checkpoints_kept: int = CHECKPOINTS_KEPT
    storage_usd_per_gb_month: float = STORAGE_USD_PER_GB_MONTH
    dataset_bytes: float = 0.0
    egress_usd_per_gb: float = 0.0
    restart_hours: float = RESTART_HOURS
    start_up_hours: float = START_UP_HOURS


@dataclass(frozen=True, slots=True)
class RunTime:
    """Hours of a run: training alone, and what is billed."""

    training_hours: float
    broken: Interruptions
    wall_hours: float  # from start-up to the last step: failures, saves and evaluation included
    billed_hours: float  # with idle time too


@dataclass(frozen=True, slots=True)
class Bill:
    """USD of a run, by cause; they sum to ``total``."""

    training: float
    failures: float
    checkpoint_stalls: float
    evaluation: float
    start_up: float
    idle: float
    storage: float
    egress: float

    @property
    def total(self) -> float:
        """USD of the whole run: the sum of all eight parts."""
        return (
            self.training + self.failures + self.checkpoint_stalls + self.evaluation + self.start_up + self.idle
            + self.storage + self.egress
        )  # fmt: skip


def checkpoint_bytes(job: Job, with_optimizer: bool = True) -> float:
    """Bytes of one checkpoint: adapters alone under LoRA, else weights with or without the optimizer's states.
    Resumable ones hold bf16 weights, an fp32 master and the moments (14 bytes a parameter for AdamW).
    """
    per_param = _RESUMABLE_BYTES.get(job.optimizer, 14.0) if with_optimizer else 2.0
    return per_param * trainable_params(job)


def trainable_params(job: Job) -> float:
    """Parameters that are updated, a count: all of them, or the adapters'."""
    return adapter_params(job) if job.is_adapter else float(job.arch.total_params)


def run_time(job: Job, training_hours: float, n_machines: int, policy: Policy) -> RunTime:
    """Stretch training hours by saves, failures, reclaims, evaluation and idle time; all in hours. Failures and
    reclaims add up as rates (Daly 2006 by ``interruptions``); each machine writes its share of a save. Shares must be
    below 1.
    """
    between = job_mean_between(job.n_gpus, 1e6 / policy.failures_per_million if policy.failures_per_million else 0.0)
    reclaimed = spot_mean_between(policy.spot_monthly_share, n_machines)
    rate = (0.0 if between == float("inf") else 1 / between) + (0.0 if reclaimed == float("inf") else 1 / reclaimed)
    mean = 1 / rate if rate else float("inf")
    stall = checkpoint_bytes(job) / (policy.checkpoint_bytes_per_s * max(1, n_machines)) / 3600.0
    if policy.checkpoints_kept == 0 and not rate:
        stall = 0.0
    broken = interruptions(training_hours, mean, stall, policy.restart_hours, policy.interval_hours)
    wall = training_hours * broken.stretch
    finished = wall / (1 - policy.evaluation_share) + policy.start_up_hours
    return RunTime(training_hours, broken, finished, finished / (1 - policy.idle_share))


def bill(job: Job, time: RunTime, usd_per_gpu_hour: float, policy: Policy) -> Bill:
    """USD of each part of the run at ``usd_per_gpu_hour``, whose GPUs are all billed for every hour of ``time``.
    Storage is by the GB (1e9 bytes) and month of 730 h; egress is one copy of the final weights.
    """
    hourly = usd_per_gpu_hour * job.n_gpus
    stretched = time.training_hours * time.broken.stretch
    months = time.billed_hours / 730.0
    kept = policy.checkpoints_kept * checkpoint_bytes(job)
    return Bill(
        training=time.training_hours * hourly,
        failures=time.broken.lost_hours * hourly,
        checkpoint_stalls=time.broken.stall_hours * hourly,
        evaluation=(stretched / (1 - policy.evaluation_share) - stretched) * hourly,
        start_up=policy.start_up_hours * hourly,
        idle=(time.billed_hours - time.wall_hours) * hourly,
        storage=(kept + policy.dataset_bytes) / 1e9 * policy.storage_usd_per_gb_month * months,
        egress=checkpoint_bytes(job, with_optimizer=False) / 1e9 * policy.egress_usd_per_gb,
    )


def training_hours(tokens: float, speed: Throughput) -> float:
    """Hours of steady training: ``tokens`` over the modelled tokens/s of all GPUs, before failures, saves and idle
    time.
    """
    return tokens / speed.tokens_per_second / 3600.0


def hours_at_mfu(job: Job, gpu: Gpu, tokens: float, mfu: float, speed: Throughput) -> tuple[float, float, str]:
    """(hours, FLOPs a token, convention) for an MFU that somebody else measured.

    Their FLOPs are 6 a parameter and token (4 with adapters) almost always, so these are ours too; beyond 8k tokens
    of context attention is counted, since leaving it out would promise more than the chip can do.
    """
    per_param = 4.0 if job.is_adapter else 6.0
    flops = per_param * job.arch.active_params
    words = f"{per_param:g} FLOPs a parameter and token, as most published MFU figures count"
    if job.seq_len > 8192:
        flops = speed.model_flops_per_token
        words = "parameters and causal attention"
    seconds = tokens * flops / (job.n_gpus * speed.peak_flops * mfu)
    return seconds / 3600.0, flops, words
