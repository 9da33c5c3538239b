"""Achieved fractions of nominal rates, calibrated on published measurements; written by a script.

``python -m evals.calibrate_throughput --write`` fits them (evals/data/throughput_rows.csv) and writes this file.
"""

from __future__ import annotations

# Fraction of the dense peak (under the power limit) of large matrix products, by chip and bits.
MATMUL: dict[str, float] = {
    "ada/16": 0.803,
    "ampere_dc/16": 0.743,
    "ampere_rtx/16": 0.796,
    "blackwell_dc/16": 0.618,
    "blackwell_dc/4": 0.497,
    "blackwell_dc/8": 0.61,
    "blackwell_ultra/16": 0.606,
    "blackwell_ultra/4": 0.466,
    "blackwell_ultra/8": 0.643,
    "cdna/16": 0.43,
    "cdna/8": 0.379,
    "gaudi/16": 0.571,
    "hopper/16": 0.665,
    "hopper/8": 0.63,
    "other/16": 0.502,
    "other/32": 0.502,
    "other/4": 0.385,
    "other/8": 0.488,
    "tpu_v3/16": 0.535,
    "tpu_v4/16": 0.628,
    "tpu_v5e/16": 0.645,
    "tpu_v5p/16": 0.672,
    "tpu_v6e/16": 0.547,
    "tpu_v7x/16": 0.587,
    "tpu_v7x/8": 0.539,
    "volta/16": 0.643,
}

# Speed of a chip, precision and class of software beside what its parts say.
STACK: dict[str, float] = {
    "ada/16/benchmark": 1.0,
    "ada/16/user": 1.07,
    "ampere_dc/16/benchmark": 0.958,
    "ampere_dc/16/tuned": 0.979,
    "ampere_dc/16/user": 1.05,
    "ampere_rtx/16/benchmark": 1.07,
    "ampere_rtx/16/user": 0.968,
    "blackwell_dc/16/tuned": 0.977,
    "blackwell_dc/4/tuned": 0.96,
    "blackwell_dc/8/tuned": 1.02,
    "blackwell_ultra/16/tuned": 0.977,
    "blackwell_ultra/4/tuned": 1.02,
    "blackwell_ultra/8/tuned": 1.05,
    "cdna/8/tuned": 0.955,
    "gaudi/16/tuned": 0.991,
    "hopper/16/benchmark": 0.995,
    "hopper/16/tuned": 1.05,
    "hopper/16/user": 0.936,
    "hopper/8/benchmark": 0.982,
    "hopper/8/tuned": 1.18,
    "tpu_v3/16/benchmark": 0.979,
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
    "ada": 0.597,
    "ampere_dc": 0.592,
    "ampere_rtx": 0.437,
    "blackwell_dc": 0.436,
    "blackwell_ultra": 0.499,
    "cdna": 0.368,
    "gaudi": 0.394,
    "hopper": 0.267,
    "other": 0.41,
    "tpu_v3": 0.39,
    "tpu_v4": 0.402,
    "tpu_v5e": 0.407,
    "tpu_v5p": 0.414,
    "tpu_v6e": 0.39,
    "tpu_v7x": 0.41,
    "volta": 0.459,
}

# The same by generation of the fused kernels and class of software.
KERNELS: dict[str, float] = {
    "current/benchmark": 0.987,
    "current/tuned": 1.12,
    "current/user": 1.07,
    "first/benchmark": 0.723,
    "first/tuned": 0.695,
}

# Routed experts' products against dense ones of the same shape.
EXPERT: dict[str, float] = {
    "ada": 0.6,
    "ampere_dc": 0.6,
    "ampere_rtx": 0.6,
    "blackwell_dc": 0.669,
    "blackwell_ultra": 0.665,
    "cdna": 0.6,
    "gaudi": 0.6,
    "hopper": 0.515,
    "other": 0.6,
    "tpu_v3": 0.6,
    "tpu_v4": 0.6,
    "tpu_v5e": 0.6,
    "tpu_v5p": 0.649,
    "tpu_v6e": 0.679,
    "tpu_v7x": 0.542,
    "volta": 0.6,
}

# Sustained TFLOP/s a watt of the power limit, 16 bit.
POWER: dict[str, float] = {
    "ada": 0.787,
    "ampere_dc": 1.54,
    "ampere_rtx": 0.54,
    "blackwell_dc": 3.83,
    "hopper": 2.67,
    "volta": 0.816,
}

# Speed against a tuned vendor recipe, everything else equal.
SOFTWARE: dict[str, float] = {
    "benchmark": 1.02,
    "tuned": 1.0,
    "user": 0.874,
}

# Share of the communication left exposed by a plain schedule that this class of software really shows.
EXPOSED: dict[str, float] = {
    "contention/other": 1.08,
    "contention/tuned": 0.687,
    "context/other": 1.0,
    "context/tuned": 0.665,
    "data/other": 1.17,
    "data/other/pcie": 2.29,
    "data/tuned": 0.811,
    "expert/other": 1.0,
    "expert/tuned": 0.412,
    "fixed/other": 1.02,
    "fixed/tuned": 0.709,
    "pipeline/other": 1.03,
    "pipeline/tuned": 0.69,
    "tensor/other": 1.86,
    "tensor/tuned": 0.663,
    "waiting/other": 1.45,
    "waiting/tuned": 0.591,
}

# memory, dequant: fractions of memory bandwidth; narrow: attention with heads of 64 or less; hybrid:
# state-space mixers against products; bubble: of a plain 1F1B pipeline; host: of the host link; fill_*: how
# much of the ridge a product's short sides cost.
SCALARS: dict[str, float] = {
    "bubble": 0.448,
    "dequant": 0.398,
    "fill_expert_tokens": 0.645,
    "fill_expert_width": 0.709,
    "fill_tokens": 1.09,
    "fill_width": 0.551,
    "host": 0.774,
    "hybrid": 0.416,
    "memory": 0.794,
    "narrow": 0.81,
}

# 90 % interval, a factor either way, from rows predicted without their group.
INTERVAL: dict[str, float] = {
    "benchmark": 1.38,
    "benchmark/adapter": 1.38,
    "moe": 1.52,
    "pcie": 2.62,
    "tuned": 1.15,
    "tuned/adapter": 1.32,
    "unknown_chip": 2.0,
    "user": 1.38,
    "user/adapter": 1.38,
}
