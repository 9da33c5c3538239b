"""Achieved fractions of nominal rates, calibrated on published measurements; written by a script.

``python -m evals.calibrate_throughput --write`` fits them (evals/data/throughput_rows.csv) and writes this file.
"""

from __future__ import annotations

# Fraction of the dense peak (under the power limit) of large matrix products, by chip and bits.
MATMUL: dict[str, float] = {
    "ada/16": 0.801,
    "ampere_dc/16": 0.744,
    "ampere_rtx/16": 0.793,
    "blackwell_dc/16": 0.617,
    "blackwell_dc/4": 0.497,
    "blackwell_dc/8": 0.61,
    "blackwell_ultra/16": 0.604,
    "blackwell_ultra/4": 0.466,
    "blackwell_ultra/8": 0.642,
    "cdna/16": 0.43,
    "cdna/8": 0.393,
    "gaudi/16": 0.571,
    "hopper/16": 0.663,
    "hopper/8": 0.633,
    "other/16": 0.502,
    "other/32": 0.502,
    "other/4": 0.385,
    "other/8": 0.488,
    "tpu_v3/16": 0.532,
    "tpu_v4/16": 0.628,
    "tpu_v5e/16": 0.645,
    "tpu_v5p/16": 0.672,
    "tpu_v6e/16": 0.547,
    "tpu_v7x/16": 0.586,
    "tpu_v7x/8": 0.539,
    "volta/16": 0.655,
}

# Speed of a chip, precision and class of software beside what its parts say.
STACK: dict[str, float] = {
    "ada/16/benchmark": 1.0,
    "ada/16/user": 1.08,
    "ampere_dc/16/benchmark": 0.958,
    "ampere_dc/16/tuned": 0.978,
    "ampere_dc/16/user": 1.05,
    "ampere_rtx/16/benchmark": 1.07,
    "ampere_rtx/16/user": 0.969,
    "blackwell_dc/16/tuned": 0.976,
    "blackwell_dc/4/tuned": 0.958,
    "blackwell_dc/8/tuned": 1.02,
    "blackwell_ultra/16/tuned": 0.975,
    "blackwell_ultra/4/tuned": 1.02,
    "blackwell_ultra/8/tuned": 1.05,
    "cdna/8/tuned": 0.956,
    "gaudi/16/tuned": 0.991,
    "hopper/16/benchmark": 0.99,
    "hopper/16/tuned": 1.05,
    "hopper/16/user": 0.936,
    "hopper/8/benchmark": 0.985,
    "hopper/8/tuned": 1.17,
    "tpu_v3/16/benchmark": 0.978,
    "tpu_v4/16/tuned": 1.01,
    "tpu_v5e/16/tuned": 1.02,
    "tpu_v5p/16/tuned": 1.02,
    "tpu_v6e/16/tuned": 0.981,
    "tpu_v7x/16/tuned": 0.995,
    "tpu_v7x/8/tuned": 1.02,
    "volta/16/benchmark": 1.09,
}

# Fraction of the 16-bit peak that fused attention reaches.
ATTENTION: dict[str, float] = {
    "ada": 0.596,
    "ampere_dc": 0.585,
    "ampere_rtx": 0.436,
    "blackwell_dc": 0.432,
    "blackwell_ultra": 0.495,
    "cdna": 0.37,
    "gaudi": 0.394,
    "hopper": 0.268,
    "other": 0.409,
    "tpu_v3": 0.389,
    "tpu_v4": 0.402,
    "tpu_v5e": 0.407,
    "tpu_v5p": 0.414,
    "tpu_v6e": 0.39,
    "tpu_v7x": 0.409,
    "volta": 0.467,
}

# The same by generation of the fused kernels and class of software.
KERNELS: dict[str, float] = {
    "current/benchmark": 0.988,
    "current/tuned": 1.12,
    "current/user": 1.07,
    "first/benchmark": 0.721,
    "first/tuned": 0.695,
}

# Routed experts' products against dense ones of the same shape.
EXPERT: dict[str, float] = {
    "ada": 0.6,
    "ampere_dc": 0.6,
    "ampere_rtx": 0.6,
    "blackwell_dc": 0.675,
    "blackwell_ultra": 0.681,
    "cdna": 0.6,
    "gaudi": 0.6,
    "hopper": 0.519,
    "other": 0.6,
    "tpu_v3": 0.6,
    "tpu_v4": 0.6,
    "tpu_v5e": 0.6,
    "tpu_v5p": 0.648,
    "tpu_v6e": 0.677,
    "tpu_v7x": 0.539,
    "volta": 0.6,
}

# Sustained TFLOP/s a watt of the power limit, 16 bit.
POWER: dict[str, float] = {
    "ada": 0.785,
    "ampere_dc": 1.54,
    "ampere_rtx": 0.539,
    "blackwell_dc": 3.82,
    "hopper": 2.67,
    "volta": 0.819,
}

# Speed against a tuned vendor recipe, everything else equal.
SOFTWARE: dict[str, float] = {
    "benchmark": 1.02,
    "tuned": 1.0,
    "user": 0.875,
}

# Share of the communication left exposed by a plain schedule that this class of software really shows.
EXPOSED: dict[str, float] = {
    "contention/other": 1.09,
    "contention/tuned": 0.686,
    "context/other": 1.0,
    "context/tuned": 0.665,
    "data/other": 1.24,
    "data/other/pcie": 2.3,
    "data/tuned": 0.818,
    "expert/other": 1.0,
    "expert/tuned": 0.393,
    "fixed/other": 1.02,
    "fixed/tuned": 0.711,
    "pipeline/other": 0.986,
    "pipeline/tuned": 0.688,
    "tensor/other": 1.66,
    "tensor/tuned": 0.654,
    "waiting/other": 1.31,
    "waiting/tuned": 0.575,
}

# memory, dequant: fractions of memory bandwidth; narrow: attention with heads of 64 or less; hybrid:
# state-space mixers against products; bubble: of a plain 1F1B pipeline; host: of the host link; fill_*: how
# much of the ridge a product's short sides cost.
SCALARS: dict[str, float] = {
    "bubble": 0.424,
    "dequant": 0.399,
    "fill_expert_tokens": 0.601,
    "fill_expert_width": 0.693,
    "fill_tokens": 1.09,
    "fill_width": 0.573,
    "host": 0.775,
    "hybrid": 0.415,
    "memory": 0.799,
    "narrow": 0.813,
}

# 90 % interval, a factor either way, from rows predicted without their group.
INTERVAL: dict[str, float] = {
    "benchmark": 1.4,
    "benchmark/adapter": 1.4,
    "moe": 1.53,
    "pcie": 2.62,
    "tuned": 1.16,
    "tuned/adapter": 1.32,
    "unknown_chip": 2.0,
    "user": 1.4,
    "user/adapter": 1.38,
}
