"""Tokens per second of a training job: work over achieved rates, plus what communication and pipelines leave idle.

Seconds per token = (dense, expert, head and attention FLOPs, each over its achieved rate, + elementwise, optimizer
and dequantisation bytes over achieved bandwidth) / software x (1 + bubble) + communication that nothing hides
+ offload over the host link. A product of M rows and narrow side W runs at its rate x 1 / (1 + ridge·(a/M + b/W)):
the roofline's own shape, since moving its operands costs ridge·(1/M + 1/W) of multiplying them (Williams et al. 2009).
Communication is ``tools.network``'s, times the share that a class of software leaves exposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from knowledge.gpus import load_gpu
from knowledge.types import Gpu
from tools.network.fabric import Fabric, fabric_for
from tools.network.model import exposed_by_axis
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

    @property
    def compute(self) -> float:
        """Busy time on the GPU: products, attention and memory-bound kernels."""
        return self.matmul + self.attention + self.memory

    @property
    def total(self) -> float:
        """The whole time of a token."""
        return self.compute + self.bubble + self.communication + self.offload


@dataclass(frozen=True, slots=True)
class Throughput:
    """A modelled training speed; ``mfu`` counts the model's own FLOPs, ``hfu`` recomputation as well."""

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


def estimate_throughput(
    job: Job,
    gpu: Gpu,
    fabric: Fabric | None = None,
    software: SoftwareClass = "user",
    power_watts: float | None = None,
    kernels: Kernels = "current",
) -> Throughput:
    """The modelled speed of ``job`` on ``job.n_gpus`` of ``gpu``; see the module's formula."""
    bits = _bits(job, gpu)
    if fabric is None and job.n_gpus > 1:
        fabric = _usual_fabric(gpu.id, job.n_gpus)
    terms = work(job, gpu)
    rate = coefficients(gpu, job, bits, software, _over_pcie(fabric), kernels, power_watts)
    exposed = exposed_seconds(job, gpu, fabric, busy(terms, rate).compute)
    parts = combine(terms, rate, exposed)
    peak = peak_flops(gpu, bits)
    per_gpu = 1.0 / parts.total
    factor = interval_factor(gpu, job, software, fabric)
    return Throughput(
        step_seconds=parts.total * job.tokens_per_step / job.n_gpus,
        tokens_per_second=per_gpu * job.n_gpus,
        tokens_per_second_per_gpu=per_gpu,
        mfu=terms.flops.model * per_gpu / peak,
        hfu=terms.flops.hardware * per_gpu / peak,
        low_factor=1.0 / factor,
        high_factor=factor,
        parts=parts,
        model_flops_per_token=terms.flops.model,
        peak_flops=peak,
        bits=bits,
        software=software,
    )


def tokens_per_second_at_most(job: Job, gpu: Gpu, software: SoftwareClass = "user") -> float:
    """The speed with every byte of communication hidden: a bound that a search can prune by, at a tenth of the cost."""
    terms = work(job, gpu)
    parts = combine(terms, coefficients(gpu, job, _bits(job, gpu), software), _NOTHING)
    return job.n_gpus / parts.total


def compute_seconds(job: Job, gpu: Gpu, software: SoftwareClass = "user") -> float:
    """Busy seconds of one step on one GPU, before any communication: what traffic can hide under."""
    bits = _bits(job, gpu)
    parts = busy(work(job, gpu), coefficients(gpu, job, bits, software))
    return parts.compute * job.tokens_per_step / job.n_gpus


def exposed_seconds(job: Job, gpu: Gpu, fabric: Fabric | None, compute: float) -> tuple[float, ...]:
    """Communication per token of a GPU's share that a plain stack leaves exposed, by axis in the order of AXES."""
    if job.n_gpus == 1 or fabric is None:
        return _NOTHING
    tokens = job.tokens_per_step / job.n_gpus
    shown = exposed_by_axis(job, fabric, compute * tokens)
    return tuple(shown.get(axis, 0.0) / tokens for axis in AXES)


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


def combine(terms: Terms, rate: Coefficients, exposed: Sequence[float]) -> Parts:
    """The whole time of a token, by cause; arrays of rows go through it as well."""
    parts = busy(terms, rate)
    shown = sum(share * seconds for share, seconds in zip(rate.exposed, exposed, strict=True))
    return Parts(
        matmul=parts.matmul,
        attention=parts.attention,
        memory=parts.memory,
        bubble=rate.bubble * terms.bubble * parts.compute,
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
