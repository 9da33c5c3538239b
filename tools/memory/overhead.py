"""Around the live tensors: allocator reserve, CUDA context, and how far predictions were from measurements.

The figures below are printed by ``python -m evals.calibrate_memory``; a test holds them to what it prints.
"""

from __future__ import annotations

# Live bytes outside the model of tensors: library workspaces (cuBLAS keeps 8-32 MiB a stream), rotary caches, buffers.
LIVE_FIXED_BYTES = 0.1e9
# Reserved above live bytes: block rounding and fragmentation of the caching allocator.
RESERVED_SHARE = 0.06
RESERVED_FIXED_BYTES = 0.25e9
# Outside PyTorch's allocator: CUDA context and kernels, and NCCL's buffers when several GPUs talk.
CONTEXT_BYTES = 0.6e9
NCCL_BYTES = 0.7e9

# 90 % intervals as ratios to the prediction: of live bytes, and of what the card must hold.
LIVE_LOW, LIVE_HIGH = 0.86, 1.16
CARD_LOW, CARD_HIGH = 0.85, 1.20
