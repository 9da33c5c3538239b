"""Achieved fractions of nominal rates, calibrated on published measurements; written by a script.

``python -m evals.calibrate_throughput --write`` fits them (evals/data/throughput_rows.csv) and writes this file.
"""

from __future__ import annotations

# Fraction of the dense peak (under the power limit) of large matrix products, by chip and bits.
MATMUL: dict[str, float] = {
    "ada/16": 0.801,
    "ampere_dc/16": 0.743,
    "ampere_rtx/16": 0.794,
    "blackwell_dc/16": 0.616,
    "blackwell_dc/4": 0.492,
    "blackwell_dc/8": 0.613,
    "blackwell_ultra/16": 0.604,
    "blackwell_ultra/4": 0.46,
    "blackwell_ultra/8": 0.64,
    "cdna/16": 0.43,
    "cdna/8": 0.39,
    "gaudi/16": 0.57,
    "hopper/16": 0.663,
    "hopper/8": 0.632,
    "other/16": 0.501,
    "other/32": 0.501,
    "other/4": 0.381,
    "other/8": 0.49,
    "tpu_v3/16": 0.533,
    "tpu_v4/16": 0.626,
    "tpu_v5e/16": 0.643,
    "tpu_v5p/16": 0.67,
    "tpu_v6e/16": 0.54,
    "tpu_v7x/16": 0.583,
    "tpu_v7x/8": 0.535,
    "volta/16": 0.653,
}

# Speed of a chip, precision and class of software beside what its parts say.
STACK: dict[str, float] = {
    "ada/16/benchmark": 1.0,
    "ada/16/user": 1.08,
    "ampere_dc/16/benchmark": 0.96,
    "ampere_dc/16/tuned": 0.976,
    "ampere_dc/16/user": 1.05,
    "ampere_rtx/16/benchmark": 1.07,
    "ampere_rtx/16/user": 0.968,
    "blackwell_dc/16/tuned": 0.977,
    "blackwell_dc/4/tuned": 0.958,
    "blackwell_dc/8/tuned": 1.03,
    "blackwell_ultra/16/tuned": 0.974,
    "blackwell_ultra/4/tuned": 1.02,
    "blackwell_ultra/8/tuned": 1.05,
    "cdna/8/tuned": 0.956,
    "gaudi/16/tuned": 0.99,
    "hopper/16/benchmark": 0.989,
    "hopper/16/tuned": 1.05,
    "hopper/16/user": 0.936,
    "hopper/8/benchmark": 0.985,
    "hopper/8/tuned": 1.15,
    "tpu_v3/16/benchmark": 0.979,
    "tpu_v4/16/tuned": 1.01,
    "tpu_v5e/16/tuned": 1.01,
    "tpu_v5p/16/tuned": 1.02,
    "tpu_v6e/16/tuned": 0.979,
    "tpu_v7x/16/tuned": 0.994,
    "tpu_v7x/8/tuned": 1.01,
    "volta/16/benchmark": 1.09,
}

# Fraction of the 16-bit peak that fused attention reaches.
ATTENTION: dict[str, float] = {
    "ada": 0.596,
    "ampere_dc": 0.588,
    "ampere_rtx": 0.436,
    "blackwell_dc": 0.427,
    "blackwell_ultra": 0.491,
    "cdna": 0.369,
    "gaudi": 0.394,
    "hopper": 0.27,
    "other": 0.408,
    "tpu_v3": 0.39,
    "tpu_v4": 0.401,
    "tpu_v5e": 0.407,
    "tpu_v5p": 0.414,
    "tpu_v6e": 0.391,
    "tpu_v7x": 0.408,
    "volta": 0.466,
}

# The same by generation of the fused kernels and class of software.
KERNELS: dict[str, float] = {
    "current/benchmark": 0.985,
    "current/tuned": 1.13,
    "current/user": 1.07,
    "first/benchmark": 0.719,
    "first/tuned": 0.695,
}

# Routed experts' products against dense ones of the same shape.
EXPERT: dict[str, float] = {
    "ada": 0.6,
    "ampere_dc": 0.6,
    "ampere_rtx": 0.6,
    "blackwell_dc": 0.666,
    "blackwell_ultra": 0.682,
    "cdna": 0.6,
    "gaudi": 0.6,
    "hopper": 0.518,
    "other": 0.6,
    "tpu_v3": 0.6,
    "tpu_v4": 0.6,
    "tpu_v5e": 0.6,
    "tpu_v5p": 0.649,
    "tpu_v6e": 0.68,
    "tpu_v7x": 0.539,
    "volta": 0.6,
}

# Sustained TFLOP/s a watt of the power limit, 16 bit.
POWER: dict[str, float] = {
    "ada": 0.784,
    "ampere_dc": 1.53,
    "ampere_rtx": 0.538,
    "blackwell_dc": 3.82,
    "hopper": 2.67,
    "volta": 0.819,
}

# Speed against a tuned vendor recipe, everything else equal.
SOFTWARE: dict[str, float] = {
    "benchmark": 1.02,
    "tuned": 1.0,
    "user": 0.874,
}

# Share of the communication left exposed by a plain schedule that this class of software really shows.
EXPOSED: dict[str, float] = {
    "contention/other": 1.09,
    "contention/tuned": 0.687,
    "context/other": 1.0,
    "context/tuned": 0.665,
    "data/other": 1.24,
    "data/other/pcie": 2.31,
    "data/tuned": 0.816,
    "expert/other": 1.0,
    "expert/tuned": 0.392,
    "fixed/other": 1.02,
    "fixed/tuned": 0.702,
    "pipeline/other": 0.99,
    "pipeline/tuned": 0.69,
    "tensor/other": 1.66,
    "tensor/tuned": 0.657,
    "waiting/other": 1.31,
    "waiting/tuned": 0.579,
}

# memory, dequant: fractions of memory bandwidth; narrow: attention with heads of 64 or less; hybrid:
# state-space mixers against products; bubble: of a plain 1F1B pipeline; host: of the host link; fill_*: how
# much of the ridge a product's short sides cost.
SCALARS: dict[str, float] = {
    "bubble": 0.434,
    "dequant": 0.393,
    "fill_expert_tokens": 0.592,
    "fill_expert_width": 0.698,
    "fill_tokens": 0.915,
    "fill_width": 0.587,
    "host": 0.775,
    "hybrid": 0.414,
    "memory": 0.807,
    "narrow": 0.812,
}

# 90 % interval, a factor either way, from rows predicted without their group.
INTERVAL: dict[str, float] = {
    "benchmark": 1.4,
    "benchmark/adapter": 1.4,
    "moe": 1.52,
    "pcie": 2.62,
    "tuned": 1.16,
    "tuned/adapter": 1.29,
    "unknown_chip": 2.0,
    "user": 1.4,
    "user/adapter": 1.38,
}
