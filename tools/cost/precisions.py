"""Precisions that a card can train a job in, the safe one first."""

from __future__ import annotations

from knowledge.types import Gpu
from tools.throughput.efficiency import compute_bits
from tools.workload import Job, Precision

# Methods whose every linear layer is trained, so that products in 8 bits pay; adapters keep their base as it is stored.
FP8_METHODS = ("full", "pretrain", "continued_pretrain", "dpo", "orpo", "kto", "reward")
FP8_NOTE = (
    "FP8 rows need Transformer Engine or torchao in the stack, and a check that the loss follows a bf16 run's: "
    "only products of linear layers are in FP8, and quality is not modelled here."
)
_HALF: dict[Precision, Precision] = {"bf16": "fp16", "bf16_mixed": "fp16_mixed"}


def precisions_for(gpu: Gpu, job: Job, pinned: bool) -> tuple[Precision, ...]:
    """What to try on this card: the job's own, 16 bits the way the card has them, and FP8 beside where it can.

    ``pinned``: the precision was told and nothing else is tried; empty where the card cannot multiply in it.
    """
    native = bool(gpu.dense_flops.get("bf16"))
    if pinned:
        wanting = (job.precision in _HALF and not native) or (job.precision == "fp8" and not gpu.dense_flops.get("fp8"))
        return () if wanting else (job.precision,)
    first = job.precision if native else _HALF.get(job.precision, job.precision)
    return (first, "fp8") if has_fp8(gpu, job) else (first,)


def has_fp8(gpu: Gpu, job: Job) -> bool:
    """Whether both the card and the method gain from products in FP8."""
    return job.method in FP8_METHODS and not job.is_adapter and compute_bits("fp8", gpu) == 8


def lacking(job: Job) -> str:
    """Why a card that knows no variant of the job's precision is ruled out."""
    if job.precision == "fp8":
        return "no FP8 units"
    return "no bf16 units; fp16 it can"
