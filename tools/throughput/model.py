"""Tokens per second of a training job: work over achieved rates, plus what communication and pipelines leave idle.

Seconds per token = (dense, expert, head and attention FLOPs, each over its achieved rate, + elementwise, optimizer
and dequantisation bytes over achieved bandwidth) / software x (1 + bubble) + communication that nothing hides
+ offload over the host link. A product of M rows and narrow side W runs at its rate x 1 / (1 + ridge·(a/M + b/W)):
the roofline's own shape, since moving its operands costs ridge·(1/M + 1/W) of multiplying them (Williams et al. 2009).
Communication is ``tools.network``'s, times the share that a class of software leaves exposed. This is the only place
where a step is timed: speed, cost, layouts and links all call ``modelled_step``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import mul

from knowledge.gpus import load_gpu
from knowledge.types import Gpu
from tools.network.fabric import Fabric, fabric_for
from tools.network.model import AS_USUAL, Ways, exposed_by_axis
from tools.throughput.efficiency import (
    AXES,
    Coefficients,
    Kernels,
    SoftwareClass,
    coefficients,
    compute_bits,
    interval_factor,
    peak_flops,
)
from tools.throughput.rollouts import Rollouts, generates, rollouts, uncertainty
from tools.throughput.terms import Terms, work
from tools.workload import Job

_NOTHING = (0.0,) * len(AXES)


@dataclass(frozen=True, slots=True)
class Parts:
    """Seconds per token of a GPU's share, by cause; they sum to the whole."""

    matmul: float
    attention: float
    memory: float
    bubble: float
    communication: float
    offload: float
    rollouts: float = 0.0  # writing completions, of PPO and GRPO

    @property
    def compute(self) -> float:
        """Seconds per token that the GPU is busy: products, attention and memory-bound kernels."""
        return self.matmul + self.attention + self.memory

    @property
    def total(self) -> float:
        """Seconds per token of a GPU's share, completions of PPO and GRPO included."""
        return self.training + self.rollouts

    @property
    def training(self) -> float:
        """Seconds per token of a GPU's share without the writing of completions: what MFU and HFU are over."""
        return self.compute + self.bubble + self.communication + self.offload


@dataclass(frozen=True, slots=True)
class Throughput:
    """A modelled training speed; ``mfu`` counts the model's own FLOPs, ``hfu`` recomputation as well, both over time
    spent training.
    """

    step_seconds: float
    tokens_per_second: float
    tokens_per_second_per_gpu: float
    mfu: float
    hfu: float
    low_factor: float  # tokens/s may be as low as this times the estimate, 9 times in 10
    high_factor: float
    parts: Parts
    model_flops_per_token: float
    peak_flops: float
    bits: int
    software: SoftwareClass
    rollouts: Rollouts | None = None  # of one step


@dataclass(frozen=True, slots=True)
class Modelled:
    """One step timed, in seconds per token of a GPU's share."""

    parts: Parts
    terms: Terms
    exposed: tuple[float, ...]  # of ``parts.communication``, by axis in the order of AXES


def modelled_step(
    job: Job,
    gpu: Gpu,
    fabric: Fabric | None = None,
    software: SoftwareClass = "user",
    power_watts: float | None = None,
    kernels: Kernels = "current",
    ways: Ways = AS_USUAL,
) -> Modelled:
    """Time one optimizer step of ``job``, seconds per token of a GPU's share; ``ways`` is how the stack communicates.
    Without a fabric, the card's usual one. Formula and papers: the module's docstring.
    """
    if fabric is None and job.n_gpus > 1:
        fabric = _usual_fabric(gpu.id, job.n_gpus)
    terms = work(job, gpu)
    rate = coefficients(gpu, job, _bits(job, gpu), software, _over_pcie(fabric), kernels, power_watts)
    if fabric is None or job.n_gpus == 1:
        return Modelled(combine(terms, rate, _NOTHING), terms, _NOTHING)
    tokens, alone_on_gpu = job.tokens_per_step / job.n_gpus, busy(terms, rate)
    alone = exposed_by_axis(job, fabric, alone_on_gpu.compute * tokens, ways)
    plain = [alone.get(axis, 0.0) / tokens for axis in AXES]
    shown = tuple(share * seconds for share, seconds in zip(rate.exposed, plain, strict=True))
    return Modelled(combine(terms, rate, plain, alone_on_gpu), terms, shown)


def estimate_throughput(
    job: Job,
    gpu: Gpu,
    fabric: Fabric | None = None,
    software: SoftwareClass = "user",
    power_watts: float | None = None,
    kernels: Kernels = "current",
) -> Throughput:
    """The modelled speed of ``job`` on ``job.n_gpus`` of ``gpu``, tokens/s and seconds a step, with a 90 % interval;
    see the module's formula. ``power_watts`` is a limit below the design power, None for none.
    """
    bits = _bits(job, gpu)
    step = modelled_step(job, gpu, fabric, software, power_watts, kernels)
    peak, flops, parts, written = peak_flops(gpu, bits), step.terms.flops, step.parts, None
    factor = interval_factor(gpu, job, software, fabric)
    share = job.tokens_per_step / job.n_gpus
    if generates(job):
        written = rollouts(job, gpu, fabric or (_usual_fabric(gpu.id, job.n_gpus) if job.n_gpus > 1 else None))
        parts = replace(parts, rollouts=written.seconds / share)
        factor = (parts.training * factor + parts.rollouts * uncertainty(job)) / parts.total
    per_gpu, training = 1.0 / parts.total, 1.0 / parts.training
    return Throughput(
        step_seconds=parts.total * share,
        tokens_per_second=per_gpu * job.n_gpus,
        tokens_per_second_per_gpu=per_gpu,
        mfu=flops.model * training / peak,
        hfu=flops.hardware * training / peak,
        low_factor=1.0 / factor,
        high_factor=factor,
        parts=parts,
        model_flops_per_token=flops.model,
        peak_flops=peak,
        bits=bits,
        software=software,
        rollouts=written,
    )


def tokens_per_second_at_most(job: Job, gpu: Gpu, software: SoftwareClass = "user") -> float:
    """Tokens/s of all GPUs with every byte of communication hidden: a bound that a search can prune by, at a tenth of
    the cost.
    """
    terms = work(job, gpu)
    parts = combine(terms, coefficients(gpu, job, _bits(job, gpu), software), _NOTHING)
    return job.n_gpus / parts.total


def compute_seconds(job: Job, gpu: Gpu, software: SoftwareClass = "user") -> float:
    """Busy seconds of one step on one GPU, before any communication: what traffic can hide under."""
    bits = _bits(job, gpu)
    parts = busy(work(job, gpu), coefficients(gpu, job, bits, software))
    return parts.compute * job.tokens_per_step / job.n_gpus


def busy(terms: Terms, rate: Coefficients) -> Parts:
    """Seconds per token that the GPU computes; plain arithmetic, so arrays of rows go through it as well."""
    slow = 1.0 / rate.software
    shape = rate.fill_tokens / terms.tokens + rate.fill_width / terms.width
    full, half = 1.0 + rate.ridge * shape, 1.0 + rate.half_ridge * shape
    routed_shape = rate.fill_expert_tokens / terms.expert_tokens + rate.fill_expert_width / terms.expert_width
    routed = 1.0 + rate.ridge * routed_shape
    dense = (1.0 - terms.hybrid) * full / rate.matmul_flops + terms.hybrid * half / (rate.half_flops * rate.hybrid)
    matmul = slow * (
        terms.flops.dense * dense
        + terms.flops.routed * routed / (rate.matmul_flops * rate.expert)
        + terms.flops.head * half / rate.half_flops
    )
    memory = slow * (
        (terms.elementwise_bytes + terms.optimizer_bytes) / rate.memory_bytes_per_s
        + terms.dequant_bytes / rate.dequant_bytes_per_s
    )
    return Parts(matmul, slow * terms.flops.attention / rate.attention_flops, memory, 0.0, 0.0, 0.0)


def combine(terms: Terms, rate: Coefficients, exposed: Sequence[float], parts: Parts | None = None) -> Parts:
    """Seconds per token by cause; arrays of rows go through it as well. ``exposed`` are seconds per token by axis in
    the order of AXES, before the software's share; ``parts``: ``busy``'s, if known.
    """
    parts = parts or busy(terms, rate)
    shown = sum(map(mul, rate.exposed, exposed))
    return Parts(
        matmul=parts.matmul,
        attention=parts.attention,
        memory=parts.memory,
        bubble=parts.compute * ((1.0 + terms.uneven) * (1.0 + rate.bubble * terms.bubble) - 1.0),
        communication=shown,
        offload=terms.offload_seconds / rate.host,
    )


def _bits(job: Job, gpu: Gpu) -> int:
    return compute_bits(job.precision, gpu, trained_base=job.method != "qlora")


def _over_pcie(fabric: Fabric | None) -> bool:
    return fabric is not None and fabric.intra_kind.startswith("pcie")


@lru_cache(maxsize=1024)
def _usual_fabric(gpu_id: str, n_gpus: int) -> Fabric:
    return fabric_for(load_gpu(gpu_id), n_gpus)[0]
