"""Around the live tensors: allocator reserve, CUDA context, and how far predictions were from measurements.

The figures below are printed by ``python -m evals.calibrate_memory``; a test holds them to what it prints.
"""

from __future__ import annotations

# Live bytes outside the model of tensors: library workspaces (cuBLAS keeps 8-32 MiB a stream), rotary caches, buffers.
LIVE_FIXED_BYTES = 0.125e9
# Reserved above live bytes: block rounding and fragmentation of the caching allocator; and, when several GPUs talk,
# blocks that communication streams hold and compute streams cannot reuse.
RESERVED_SHARE = 0.08
RESERVED_FIXED_BYTES = 1.4e9
# Outside PyTorch's allocator: CUDA context and kernels, and NCCL's buffers when several GPUs talk.
CONTEXT_BYTES = 0.6e9
NCCL_BYTES = 0.7e9

# 90 % intervals as ratios to the prediction: of live bytes, and of what the card must hold.
LIVE_LOW, LIVE_HIGH = 0.95, 1.08
CARD_LOW, CARD_HIGH = 0.9, 1.2

# A row or question that leaves the architecture or the sequence length open deserves this much wider an interval.
LOOSE_FACTOR = 1.5
# Frameworks that sound measurements were at hand of; others are derived all the same, but nothing has held them to it.
MEASURED_FRAMEWORKS = frozenset({"hf", "trl", "fms", "litgpt", "torchtitan", "megatron", "deepspeed", "llm-foundry"})


def reserved_bytes(live_bytes: float, n_gpus: int) -> float:
    """Bytes that PyTorch's caching allocator holds for ``live_bytes`` of tensors on one GPU; share and fixed part are
    calibrated.
    """
    return live_bytes * (1 + RESERVED_SHARE) + (RESERVED_FIXED_BYTES if n_gpus > 1 else 0.0)


def context_bytes(n_gpus: int) -> float:
    """Bytes of one GPU outside PyTorch's allocator: CUDA context and kernels, and NCCL's buffers on several GPUs.
    Calibrated.
    """
    return CONTEXT_BYTES + (NCCL_BYTES if n_gpus > 1 else 0.0)


def loose_interval(value: float, low: float, high: float) -> tuple[float, float]:
    """``low`` and ``high`` with their ratios to ``value`` raised to ``LOOSE_FACTOR``: the interval of a job whose shape
    or sequence length was left open. All three in one unit and above 0.
    """
    return value / (value / low) ** LOOSE_FACTOR, value * (high / value) ** LOOSE_FACTOR
