"""Which calibrated fractions apply to a chip, a precision and a class of software."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from knowledge.types import Gpu
from tools.throughput import constants
from tools.workload import Framework, Precision

SoftwareClass = Literal["tuned", "benchmark", "user"]

# Vendor recipes tuned by the people who make the hardware; published framework benchmarks; everyone else.
CLASS_OF_FRAMEWORK: dict[Framework, SoftwareClass] = {
    "megatron": "tuned", "nemo": "tuned", "maxtext": "tuned", "llm-foundry": "benchmark", "torchtitan": "benchmark",
    "fms": "benchmark", "nanogpt": "benchmark",
}  # fmt: skip

_BITS: dict[str, int] = {"fp32": 32, "fp8": 8, "fp4": 4, "mxfp4": 4}
_CHIP_BY_CAPABILITY = (
    ("sm_103", "blackwell_ultra"), ("sm_100", "blackwell_dc"), ("sm_12", "blackwell_rtx"), ("sm_90", "hopper"),
    ("sm_89", "ada"), ("sm_80", "ampere_dc"), ("sm_8", "ampere_rtx"), ("sm_75", "turing"), ("sm_7", "volta"),
    ("tpu", "tpu"), ("gfx9", "cdna"), ("gfx1", "rdna"), ("gaudi", "gaudi"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Everything that turns work into seconds on one chip; floats here, arrays when many rows are fitted at once."""

    matmul_flops: float
    half_flops: float
    attention_flops: float
    expert_flops: float
    memory_bytes_per_s: float
    dequant_bytes_per_s: float
    software: float
    tensor_link: float
    shard_link: float
    expert_link: float
    overlap: float
    bubble: float
    doubling: float


def chip(gpu: Gpu) -> str:
    """The chip family whose fractions apply."""
    return _family(gpu.compute_capability or "")


@lru_cache(maxsize=64)
def _family(capability: str) -> str:
    return next((family for start, family in _CHIP_BY_CAPABILITY if capability.startswith(start)), "other")


def compute_bits(precision: Precision, gpu: Gpu, trained_base: bool = True) -> int:
    """Width of the matrix products: 4- and 8-bit stored bases still multiply in 16 bits; a chip without the rate falls
    back to the next wider one that it has.
    """
    bits = _BITS.get(precision, 16) if trained_base else 16
    if bits == 4 and not gpu.dense_flops.get("fp4"):
        bits = 8
    if bits == 8 and not gpu.dense_flops.get("fp8"):
        bits = 16
    return bits


def peak_flops(gpu: Gpu, bits: int) -> float:
    """Dense peak at this width, fp32 accumulation."""
    rates = gpu.dense_flops
    wanted = {4: ("fp4",), 8: ("fp8",), 16: ("bf16", "fp16"), 32: ("tf32", "fp32")}[bits]
    for name in wanted:
        if rates.get(name):
            return float(rates[name] or 0.0)
    return float(rates.get("fp16") or rates.get("fp32") or 1e12)


def software_of(framework: Framework, given: SoftwareClass | None = None) -> SoftwareClass:
    """The class of software: as told, else what the framework's published figures are."""
    return given or CLASS_OF_FRAMEWORK.get(framework, "user")


def coefficients(gpu: Gpu, bits: int, software: SoftwareClass, power_watts: float | None = None) -> Coefficients:
    """The calibrated fractions applied to this chip's nominal rates."""
    family = chip(gpu)
    scalar = constants.SCALARS
    half = peak_flops(gpu, 16)
    fraction = _lookup(constants.MATMUL, f"{family}/{bits}", f"other/{bits}")
    half_fraction = _lookup(constants.MATMUL, f"{family}/16", "other/16")
    power = 1.0
    if power_watts and gpu.tdp_watts and power_watts < gpu.tdp_watts:
        power = (power_watts / gpu.tdp_watts) ** scalar["power"]
    matmul = peak_flops(gpu, bits) * fraction * power
    return Coefficients(
        matmul_flops=matmul,
        half_flops=half * half_fraction * power,
        attention_flops=half * _lookup(constants.ATTENTION, family, "other") * power,
        expert_flops=matmul * _lookup(constants.EXPERT, family, "other"),
        memory_bytes_per_s=(gpu.bandwidth_bytes_per_s or 100e9) * scalar["memory"],
        dequant_bytes_per_s=(gpu.bandwidth_bytes_per_s or 100e9) * scalar["dequant"],
        software=constants.SOFTWARE[software],
        tensor_link=scalar["tensor_link"],
        shard_link=scalar["shard_link"],
        expert_link=scalar["expert_link"],
        overlap=scalar["overlap"],
        bubble=scalar["bubble"],
        doubling=scalar["doubling"],
    )


def interval_factor(gpu: Gpu, software: SoftwareClass, is_moe: bool) -> float:
    """How far either way the measured speed may lie, 9 times in 10."""
    widest = constants.INTERVAL[software]
    if is_moe:
        widest = max(widest, constants.INTERVAL["moe"])
    if f"{chip(gpu)}/16" not in constants.MATMUL or chip(gpu) == "other":
        widest = max(widest, constants.INTERVAL["unknown_chip"])
    return widest


def _lookup(table: dict[str, float], key: str, fallback: str) -> float:
    found = table.get(key)
    return found if found is not None else table[fallback]
