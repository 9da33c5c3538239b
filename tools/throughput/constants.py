"""Achieved fractions of nominal rates, calibrated once on published measurements; not edited by hand."""

from __future__ import annotations

# Fraction of the dense peak that large matrix products reach inside a training step, by chip family and precision.
MATMUL: dict[str, float] = {
    "ampere_dc/16": 0.68, "ampere_rtx/16": 0.65, "ada/16": 0.65, "hopper/16": 0.57, "hopper/8": 0.44,
    "blackwell_dc/16": 0.55, "blackwell_dc/8": 0.42, "blackwell_dc/4": 0.28, "blackwell_ultra/16": 0.55,
    "blackwell_ultra/8": 0.45, "blackwell_ultra/4": 0.28, "volta/16": 0.45, "turing/16": 0.45, "tpu/16": 0.6,
    "tpu/8": 0.45, "cdna/16": 0.42, "cdna/8": 0.35, "gaudi/16": 0.5, "other/16": 0.4, "other/8": 0.3, "other/4": 0.2,
    "other/32": 0.6,
}  # fmt: skip
# Fraction of the 16-bit peak that fused attention reaches.
ATTENTION: dict[str, float] = {
    "ampere_dc": 0.5, "ampere_rtx": 0.5, "ada": 0.5, "hopper": 0.4, "blackwell_dc": 0.45, "blackwell_ultra": 0.5,
    "volta": 0.25, "turing": 0.25, "tpu": 0.4, "cdna": 0.3, "gaudi": 0.3, "other": 0.3,
}  # fmt: skip
# Speed of routed experts' grouped products relative to dense ones.
EXPERT: dict[str, float] = {
    "hopper": 0.45, "blackwell_dc": 0.5, "blackwell_ultra": 0.5, "tpu": 0.6, "other": 0.45,
}  # fmt: skip
# Speed relative to a tuned vendor recipe, everything else equal.
SOFTWARE: dict[str, float] = {"tuned": 1.0, "benchmark": 0.95, "user": 0.85}
SCALARS: dict[str, float] = {
    "memory": 0.7,  # fraction of memory bandwidth that elementwise kernels reach
    "dequant": 0.5,  # fraction of memory bandwidth that 4-bit decoding reaches
    "tensor_link": 0.5,  # fraction of the link rate that tensor-parallel all-reduces reach
    "shard_link": 0.6,  # the same for data-parallel gathers
    "expert_link": 0.4,  # the same for expert all-to-all
    "overlap": 0.7,  # share of compute time under which data-parallel traffic hides
    "bubble": 0.5,  # share of the plain 1F1B bubble that remains with interleaving
    "doubling": 0.012,  # speed lost a doubling of nodes: stragglers, latency
    "power": 0.4,  # speed goes with (power limit / design power) to this
}
# 90 % interval: a factor either way, by software class, from held-out residuals.
INTERVAL: dict[str, float] = {"tuned": 1.35, "benchmark": 1.35, "user": 1.55, "moe": 1.8, "unknown_chip": 2.0}
