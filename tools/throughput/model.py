"""Tokens per second of a training job: work over achieved rates, plus what communication and pipelines leave idle.

Seconds per token = (matmul + experts + head + attention FLOPs, each over its achieved rate, + elementwise, optimizer
and dequantisation bytes over achieved bandwidth) / software x (1 + bubble) x (1 + loss a doubling of nodes)
+ tensor- and expert-parallel traffic + data-parallel traffic beyond what compute hides + offload over the host link.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from knowledge.types import Gpu
from tools.throughput.efficiency import (
    Coefficients,
    SoftwareClass,
    coefficients,
    compute_bits,
    interval_factor,
    peak_flops,
)
from tools.throughput.terms import FabricLike, Terms, work
from tools.workload import Job


@dataclass(frozen=True, slots=True)
class Parts:
    """Seconds per token of a GPU's share, by cause; they sum to the whole."""

    matmul: float
    attention: float
    memory: float
    bubble: float
    stragglers: float
    communication: float
    offload: float

    @property
    def compute(self) -> float:
        """Busy time on the GPU: products, attention and memory-bound kernels."""
        return self.matmul + self.attention + self.memory

    @property
    def total(self) -> float:
        """The whole time of a token."""
        return self.compute + self.bubble + self.stragglers + self.communication + self.offload


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
    fabric: FabricLike | None = None,
    software: SoftwareClass = "user",
    power_watts: float | None = None,
) -> Throughput:
    """The modelled speed of ``job`` on ``job.n_gpus`` of ``gpu``; see the module's formula."""
    bits = compute_bits(job.precision, gpu, trained_base=job.method != "qlora")
    terms = work(job, gpu, fabric)
    parts = combine(terms, coefficients(gpu, bits, software, power_watts))
    seconds = parts.total
    peak = peak_flops(gpu, bits)
    per_gpu = 1.0 / seconds
    factor = interval_factor(gpu, software, job.arch.is_moe)
    return Throughput(
        step_seconds=seconds * job.tokens_per_step / job.n_gpus,
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


def compute_seconds(job: Job, gpu: Gpu, software: SoftwareClass = "user") -> float:
    """Busy seconds of one step on one GPU, before any communication: what traffic can hide under."""
    bits = compute_bits(job.precision, gpu, trained_base=job.method != "qlora")
    parts = combine(work(job, gpu), coefficients(gpu, bits, software))
    return parts.compute * job.tokens_per_step / job.n_gpus


def combine(terms: Terms, rate: Coefficients) -> Parts:
    """Seconds per token from work and rates; plain arithmetic, so arrays of rows go through it as well."""
    slow = 1.0 / rate.software
    matmul = slow * (
        terms.flops.dense / rate.matmul_flops
        + terms.flops.routed / rate.expert_flops
        + terms.flops.head / rate.half_flops
    )
    attention = slow * terms.flops.attention / rate.attention_flops
    memory = slow * (
        (terms.elementwise_bytes + terms.optimizer_bytes) / rate.memory_bytes_per_s
        + terms.dequant_bytes / rate.dequant_bytes_per_s
    )
    busy = matmul + attention + memory
    hidden_part = terms.shard_seconds / rate.shard_link - rate.overlap * busy
    exposed = 0.5 * (hidden_part + abs(hidden_part))  # max(0, ·), for arrays too
    communication = exposed + terms.tensor_seconds / rate.tensor_link + terms.expert_seconds / rate.expert_link
    return Parts(
        matmul=matmul,
        attention=attention,
        memory=memory,
        bubble=rate.bubble * terms.bubble * busy,
        stragglers=rate.doubling * _log2(terms.nodes) * busy,
        communication=communication,
        offload=terms.offload_seconds,
    )


def _log2(value: float) -> float:
    return math.log2(value)
