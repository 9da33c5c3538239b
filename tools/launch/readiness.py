"""The checklist before pressing start, each item with this job's number and how to close it.

Formulas: headroom = usable memory - peak (memory model); checkpoint = 2 B a weight and 12 B of optimizer state a
trained weight (adapters: theirs only); interval by Young and Daly from the mean time between failures (Llama 3 paper);
loader = tokens/s x 4 B (int32 ids); download = bf16 weights over 1 GB/s.
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.cost.failures import GPU_HOURS_BETWEEN_FAILURES, best_interval
from tools.launch.target import Target
from tools.memory import MemoryBill, estimate, verdict
from tools.network.alternatives import Options, kept_share, timed
from tools.network.step import StepTime
from tools.network.volumes import adapter_params
from tools.result import Fact

WRITE_BYTES_PER_S_A_NODE = 2e9  # network file systems and object stores as rented; local NVMe is faster
DOWNLOAD_BYTES_PER_S = 1e9  # hub or bucket to a node
TOKEN_BYTES = 4.0
SPOT_HOURS_BETWEEN = 5.0  # a spot machine's life where none is known: cloud advisors' "5-10 % an hour" classes


@dataclass(frozen=True, slots=True)
class Item:
    """One line of the list: done, open, or for the reader to confirm."""

    name: str
    state: str
    number: str  # id of the fact that carries it
    close: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """The items, the facts that they name, and how often to save."""

    items: tuple[Item, ...]
    facts: tuple[Fact, ...]
    bill: MemoryBill
    step: StepTime


def checkpoint_bytes(target: Target) -> float:
    """Bytes of one resumable checkpoint: 14 a trained parameter (bf16 weights, fp32 master, two fp32 moments)."""
    job = target.job
    trained = adapter_params(job) if job.is_adapter else float(job.arch.total_params)
    return 14.0 * trained


def save_interval(target: Target) -> tuple[float, float]:
    """Seconds between saves that waste least (Young 1974, Daly 2006, by ``best_interval``), at most 4 h, and seconds
    that one save stalls at 2 GB/s a node.
    """
    stall = checkpoint_bytes(target) / (WRITE_BYTES_PER_S_A_NODE * target.nodes) / 3600
    between = SPOT_HOURS_BETWEEN / target.nodes if target.spot else GPU_HOURS_BETWEEN_FAILURES / target.job.n_gpus
    hours = best_interval(max(stall, 1e-4), between)
    return min(hours, 4.0) * 3600, stall * 3600


def check(target: Target, tokens: float | None) -> Readiness:
    """Every item for this job with the facts that carry its numbers, in bytes, seconds and tokens/s. ``tokens`` of the
    whole run; None leaves out the size of the data and the run time. Formulas: the module's docstring.
    """
    job, gpu, fabric = target.job, target.gpu, target.fabric
    bill, options = estimate(job), Options(target.software)
    step = timed(job, gpu, fabric, options)
    speed = job.tokens_per_step / step.total
    headroom = gpu.usable_bytes - bill.peak_bytes
    interval, stall = save_interval(target)
    facts = [
        _fact("peak_per_gpu", bill.peak_bytes, "B", "memory needed per GPU", low=bill.low_bytes, high=bill.high_bytes),
        _fact("headroom", headroom, "B", f"left on {gpu.id}"),
        _fact("tokens_per_second", speed, "tokens/s", "modelled speed of the job"),
        _fact("step_time", step.total, "s", "modelled step"),
        _fact("global_batch", job.tokens_per_step, "tokens", "tokens a step, all GPUs", kind="exact"),
        _fact("checkpoint_bytes", checkpoint_bytes(target), "B", "one resumable checkpoint"),
        _fact("save_interval", interval, "s", "between saves"),
        _fact("save_stall", stall, "s", "stall of one save"),
        _fact("loader_rate", speed * TOKEN_BYTES, "B/s", "token ids that loaders must feed, all nodes together"),
        _fact("download", 2.0 * job.arch.total_params, "B", "weights fetched at the first start"),
        _fact("download_time", 2.0 * job.arch.total_params / DOWNLOAD_BYTES_PER_S, "s", "that fetch at 1 GB/s"),
        _fact("idle_minutes", 60.0 * target.idle_minutes, "s", "idle time before machines stop", kind="exact"),
    ]
    fit = verdict(bill, gpu)
    items = [
        Item("fits with headroom", {"fits": "done", "borderline": "open", "does_not_fit": "open"}[fit], "headroom",
             "" if fit == "fits" else "ask estimate_vram for the nearest setting that fits"),
    ]  # fmt: skip
    if target.nodes > 1:
        kept = kept_share(job, gpu, fabric, options, inside=False)
        facts.append(_fact("speed_kept", 100 * kept, "%", "of an unlimited network's speed"))
        items.append(
            Item("links suffice", "done" if kept >= 0.9 else "open", "speed_kept",
                 "run nccl-tests first" if kept >= 0.9 else "ask check_interconnect for the cheapest that keeps 90 %")
        )  # fmt: skip
    if tokens:
        facts += [
            _fact("data_bytes", tokens * TOKEN_BYTES, "B", "tokenised data", kind="exact"),
            _fact("run_time", tokens / speed, "s", "modelled run, without failures"),
        ]
    items += [
        Item("data staged beside the GPUs", "confirm", "data_bytes" if tokens else "loader_rate",
             "copy or stream it in the machines' region; tokenise once, before the GPUs are rented"),
        Item("checkpoint interval set", "done", "save_interval",
             "save_steps in the files is this interval; keep two, off the machine"),
        Item("resume tried", "confirm", "checkpoint_bytes", "kill a short run once and start it again"),
        Item("spot plan", "done" if target.spot else "confirm", "save_stall",
             "recovery restarts from the last save" if target.spot else "on demand: no interruptions planned"),
        Item("idle machines stop", "done" if target.launcher == "skypilot" else "confirm", "idle_minutes",
             "autostop is in the task" if target.launcher == "skypilot" else "set a stop or a job time limit"),
        Item("first start is not from a cold bucket", "confirm", "download_time",
             "fetch the weights into the image or a shared disk before the GPUs wait for them"),
    ]  # fmt: skip
    return Readiness(tuple(items), tuple(facts), bill, step)


def _fact(name: str, value: float, unit: str, label: str, **more: object) -> Fact:
    return Fact.model_validate({"id": name, "name": name, "value": value, "unit": unit, "label": label, **more})
