"""Achieved fractions of nominal rates, calibrated on published measurements; written by a script.

``python -m evals.calibrate_throughput --write`` fits them (evals/data/throughput_rows.csv) and writes this file.
"""

from __future__ import annotations

# Fraction of the dense peak (under the power limit) of large matrix products, by chip and bits.
MATMUL: dict[str, float] = {
    "ada/16": 0.798,
    "ampere_dc/16": 0.73,
    "ampere_rtx/16": 0.793,
    "blackwell_dc/16": 0.49,
    "blackwell_dc/4": 0.477,
    "blackwell_dc/8": 0.55,
    "blackwell_ultra/16": 0.517,
    "blackwell_ultra/4": 0.44,
    "blackwell_ultra/8": 0.59,
    "cdna/16": 0.42,
    "cdna/8": 0.351,
    "gaudi/16": 0.568,
    "hopper/16": 0.642,
    "hopper/8": 0.684,
    "other/16": 0.499,
    "other/32": 0.499,
    "other/4": 0.367,
    "other/8": 0.44,
    "tpu_v3/16": 0.534,
    "tpu_v4/16": 0.624,
    "tpu_v5e/16": 0.642,
    "tpu_v5p/16": 0.668,
    "tpu_v6e/16": 0.537,
    "tpu_v7x/16": 0.582,
    "tpu_v7x/8": 0.516,
    "volta/16": 0.644,
}

# Speed of a chip, precision and class of software beside what its parts say.
STACK: dict[str, float] = {
    "ada/16/benchmark": 1.0,
    "ada/16/user": 1.07,
    "ampere_dc/16/benchmark": 0.97,
    "ampere_dc/16/tuned": 0.989,
    "ampere_dc/16/user": 1.05,
    "ampere_rtx/16/benchmark": 1.08,
    "ampere_rtx/16/user": 0.967,
    "blackwell_dc/16/tuned": 1.01,
    "blackwell_dc/4/tuned": 0.955,
    "blackwell_dc/8/tuned": 1.04,
    "blackwell_ultra/16/tuned": 0.995,
    "blackwell_ultra/4/tuned": 1.01,
    "blackwell_ultra/8/tuned": 1.04,
    "cdna/8/tuned": 0.951,
    "gaudi/16/tuned": 0.99,
    "hopper/16/benchmark": 1.02,
    "hopper/16/tuned": 1.07,
    "hopper/16/user": 0.941,
    "hopper/8/benchmark": 0.929,
    "hopper/8/tuned": 1.05,
    "tpu_v3/16/benchmark": 0.979,
    "tpu_v4/16/tuned": 1.01,
    "tpu_v5e/16/tuned": 1.01,
    "tpu_v5p/16/tuned": 1.02,
    "tpu_v6e/16/tuned": 0.978,
    "tpu_v7x/16/tuned": 0.994,
    "tpu_v7x/8/tuned": 1.01,
    "volta/16/benchmark": 1.08,
}

# Fraction of the 16-bit peak that fused attention reaches.
ATTENTION: dict[str, float] = {
    "ada": 0.598,
    "ampere_dc": 0.598,
    "ampere_rtx": 0.439,
    "blackwell_dc": 0.406,
    "blackwell_ultra": 0.479,
    "cdna": 0.369,
    "gaudi": 0.394,
    "hopper": 0.281,
    "other": 0.406,
    "tpu_v3": 0.391,
    "tpu_v4": 0.401,
    "tpu_v5e": 0.407,
    "tpu_v5p": 0.413,
    "tpu_v6e": 0.389,
    "tpu_v7x": 0.403,
    "volta": 0.462,
}

# The same by generation of the fused kernels and class of software.
KERNELS: dict[str, float] = {
    "current/benchmark": 0.969,
    "current/tuned": 1.19,
    "current/user": 1.07,
    "first/benchmark": 0.697,
    "first/tuned": 0.696,
}

# Routed experts' products against dense ones of the same shape.
EXPERT: dict[str, float] = {
    "ada": 0.6,
    "ampere_dc": 0.6,
    "ampere_rtx": 0.6,
    "blackwell_dc": 0.713,
    "blackwell_ultra": 0.704,
    "cdna": 0.6,
    "gaudi": 0.6,
    "hopper": 0.514,
    "other": 0.6,
    "tpu_v3": 0.6,
    "tpu_v4": 0.6,
    "tpu_v5e": 0.6,
    "tpu_v5p": 0.646,
    "tpu_v6e": 0.685,
    "tpu_v7x": 0.543,
    "volta": 0.6,
}

# Sustained TFLOP/s a watt of the power limit, 16 bit.
POWER: dict[str, float] = {
    "ada": 0.788,
    "ampere_dc": 1.56,
    "ampere_rtx": 0.537,
    "blackwell_dc": 4.02,
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
    "contention/other": 1.02,
    "contention/tuned": 0.696,
    "context/other": 1.04,
    "context/tuned": 0.531,
    "data/other": 1.18,
    "data/other/pcie": 2.38,
    "data/tuned": 0.731,
    "expert/other": 1.0,
    "expert/tuned": 0.411,
    "fixed/other": 0.982,
    "fixed/tuned": 0.707,
    "pipeline/other": 1.03,
    "pipeline/tuned": 0.687,
    "tensor/other": 1.63,
    "tensor/tuned": 0.582,
    "waiting/other": 1.4,
    "waiting/tuned": 0.505,
}

# memory, dequant: fractions of memory bandwidth; narrow: attention with heads of 64 or less; hybrid:
# state-space mixers against products; bubble: of a plain 1F1B pipeline; host: of the host link; fill_*: how
# much of the ridge a product's short sides cost.
SCALARS: dict[str, float] = {
    "bubble": 0.433,
    "dequant": 0.402,
    "fill_expert_tokens": 0.641,
    "fill_expert_width": 0.711,
    "fill_tokens": 0.998,
    "fill_width": 0.471,
    "host": 0.772,
    "hybrid": 0.448,
    "memory": 0.775,
    "narrow": 0.82,
}

# 90 % interval, a factor either way, from rows predicted without their group.
INTERVAL: dict[str, float] = {
    "benchmark": 1.38,
    "benchmark/adapter": 1.38,
    "moe": 1.52,
    "pcie": 2.58,
    "tuned": 1.18,
    "tuned/adapter": 1.38,
    "unknown_chip": 2.0,
    "user": 1.38,
    "user/adapter": 1.39,
}
