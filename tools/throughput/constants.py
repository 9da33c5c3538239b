"""Achieved fractions of nominal rates, calibrated on published measurements; written by a script.

``python -m evals.calibrate_throughput --write`` fits them (evals/data/throughput_rows.csv) and writes this file.
"""

from __future__ import annotations

# Fraction of the dense peak (under the power limit) of large matrix products, by chip and bits.
MATMUL: dict[str, float] = {
    "ada/16": 0.802,
    "ampere_dc/16": 0.732,
    "ampere_rtx/16": 0.794,
    "blackwell_dc/16": 0.495,
    "blackwell_dc/4": 0.504,
    "blackwell_dc/8": 0.57,
    "blackwell_ultra/16": 0.524,
    "blackwell_ultra/4": 0.468,
    "blackwell_ultra/8": 0.619,
    "cdna/16": 0.42,
    "cdna/8": 0.376,
    "gaudi/16": 0.569,
    "hopper/16": 0.652,
    "hopper/8": 0.73,
    "other/16": 0.502,
    "other/32": 0.502,
    "other/4": 0.389,
    "other/8": 0.456,
    "tpu_v3/16": 0.538,
    "tpu_v4/16": 0.628,
    "tpu_v5e/16": 0.646,
    "tpu_v5p/16": 0.672,
    "tpu_v6e/16": 0.547,
    "tpu_v7x/16": 0.586,
    "tpu_v7x/8": 0.537,
    "volta/16": 0.643,
}

# Speed of a chip, precision and class of software beside what its parts say.
STACK: dict[str, float] = {
    "ada/16/benchmark": 1.0,
    "ada/16/user": 1.07,
    "ampere_dc/16/benchmark": 0.972,
    "ampere_dc/16/tuned": 0.984,
    "ampere_dc/16/user": 1.05,
    "ampere_rtx/16/benchmark": 1.08,
    "ampere_rtx/16/user": 0.966,
    "blackwell_dc/16/tuned": 1.01,
    "blackwell_dc/4/tuned": 0.961,
    "blackwell_dc/8/tuned": 1.06,
    "blackwell_ultra/16/tuned": 0.993,
    "blackwell_ultra/4/tuned": 1.02,
    "blackwell_ultra/8/tuned": 1.06,
    "cdna/8/tuned": 0.954,
    "gaudi/16/tuned": 0.99,
    "hopper/16/benchmark": 1.01,
    "hopper/16/tuned": 1.07,
    "hopper/16/user": 0.94,
    "hopper/8/benchmark": 0.941,
    "hopper/8/tuned": 1.06,
    "tpu_v3/16/benchmark": 0.981,
    "tpu_v4/16/tuned": 1.01,
    "tpu_v5e/16/tuned": 1.02,
    "tpu_v5p/16/tuned": 1.02,
    "tpu_v6e/16/tuned": 0.981,
    "tpu_v7x/16/tuned": 0.995,
    "tpu_v7x/8/tuned": 1.02,
    "volta/16/benchmark": 1.07,
}

# Fraction of the 16-bit peak that fused attention reaches.
ATTENTION: dict[str, float] = {
    "ada": 0.596,
    "ampere_dc": 0.594,
    "ampere_rtx": 0.439,
    "blackwell_dc": 0.402,
    "blackwell_ultra": 0.503,
    "cdna": 0.37,
    "gaudi": 0.394,
    "hopper": 0.28,
    "other": 0.407,
    "tpu_v3": 0.392,
    "tpu_v4": 0.402,
    "tpu_v5e": 0.407,
    "tpu_v5p": 0.413,
    "tpu_v6e": 0.389,
    "tpu_v7x": 0.409,
    "volta": 0.46,
}

# The same by generation of the fused kernels and class of software.
KERNELS: dict[str, float] = {
    "current/benchmark": 0.972,
    "current/tuned": 1.18,
    "current/user": 1.07,
    "first/benchmark": 0.706,
    "first/tuned": 0.695,
}

# Routed experts' products against dense ones of the same shape.
EXPERT: dict[str, float] = {
    "ada": 0.6,
    "ampere_dc": 0.6,
    "ampere_rtx": 0.6,
    "blackwell_dc": 0.715,
    "blackwell_ultra": 0.688,
    "cdna": 0.6,
    "gaudi": 0.6,
    "hopper": 0.511,
    "other": 0.6,
    "tpu_v3": 0.6,
    "tpu_v4": 0.6,
    "tpu_v5e": 0.6,
    "tpu_v5p": 0.649,
    "tpu_v6e": 0.679,
    "tpu_v7x": 0.545,
    "volta": 0.6,
}

# Sustained TFLOP/s a watt of the power limit, 16 bit.
POWER: dict[str, float] = {
    "ada": 0.788,
    "ampere_dc": 1.56,
    "ampere_rtx": 0.54,
    "blackwell_dc": 4.06,
    "hopper": 2.56,
    "volta": 0.817,
}

# Speed against a tuned vendor recipe, everything else equal.
SOFTWARE: dict[str, float] = {
    "benchmark": 1.02,
    "tuned": 1.0,
    "user": 0.877,
}

# Share of the communication left exposed by a plain schedule that this class of software really shows.
EXPOSED: dict[str, float] = {
    "contention/other": 1.08,
    "contention/tuned": 0.686,
    "context/other": 1.0,
    "context/tuned": 0.665,
    "data/other": 1.17,
    "data/other/pcie": 2.29,
    "data/tuned": 0.775,
    "expert/other": 1.0,
    "expert/tuned": 0.408,
    "fixed/other": 1.02,
    "fixed/tuned": 0.707,
    "pipeline/other": 1.03,
    "pipeline/tuned": 0.69,
    "tensor/other": 1.85,
    "tensor/tuned": 0.658,
    "waiting/other": 1.45,
    "waiting/tuned": 0.593,
}

# memory, dequant: fractions of memory bandwidth; narrow: attention with heads of 64 or less; hybrid:
# state-space mixers against products; bubble: of a plain 1F1B pipeline; host: of the host link; fill_*: how
# much of the ridge a product's short sides cost.
SCALARS: dict[str, float] = {
    "bubble": 0.455,
    "dequant": 0.4,
    "fill_expert_tokens": 0.68,
    "fill_expert_width": 0.713,
    "fill_tokens": 1.11,
    "fill_width": 0.597,
    "host": 0.774,
    "hybrid": 0.471,
    "memory": 0.813,
    "narrow": 0.815,
}

# 90 % interval, a factor either way, from rows predicted without their group.
INTERVAL: dict[str, float] = {
    "benchmark": 1.36,
    "benchmark/adapter": 1.36,
    "moe": 1.52,
    "pcie": 2.62,
    "tuned": 1.15,
    "tuned/adapter": 1.32,
    "unknown_chip": 2.0,
    "user": 1.36,
    "user/adapter": 1.4,
}
