"""What a GPU must hold for a job, as the searches need it: peak bytes and whether they fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from knowledge.types import Gpu
from tools.workload import Job

Fit = Literal["fits", "borderline", "does_not_fit"]


@dataclass(frozen=True, slots=True)
class Footprint:
    """Per-GPU memory of a job."""

    peak_bytes: float
    low_bytes: float
    high_bytes: float
    state_bytes: float  # weights, gradients and optimizer states


@lru_cache(maxsize=4096)
def footprint(job: Job) -> Footprint:
    """Weights, gradients, states, activations and overhead on one GPU."""
    params = float(job.arch.total_params)
    split = job.tp * job.pp
    sharded = split * (job.dp if job.sharding in ("zero3", "fsdp", "hsdp") else 1)
    states_split = split * (job.dp if job.sharding in ("zero1", "zero2", "zero3", "fsdp", "hsdp") else 1)
    stored = 0.55 if job.method == "qlora" else 2.0
    trainable = params * 0.01 if job.is_adapter else params
    weights = params * stored / sharded
    states = trainable * 16.0 / states_split
    hidden, layers = job.arch.hidden_size or 4096, job.arch.n_layers or 32
    per_token = hidden * (2.0 if job.checkpointing == "full" else 34.0) * layers / split
    work_set = hidden * 60.0 + job.arch.vocab_size * 10.0
    activations = job.tokens_per_micro_batch / job.cp * (per_token + work_set / job.tp)
    total = (weights + states + activations) * 1.06 + 1.2e9
    return Footprint(total, total * 0.9, total * 1.12, weights + states)


def fit(found: Footprint, gpu: Gpu) -> Fit:
    """Whether the card holds it: the expected need and, to be sure, its upper bound."""
    if found.peak_bytes > gpu.usable_bytes:
        return "does_not_fit"
    return "fits" if found.high_bytes <= gpu.usable_bytes else "borderline"
