"""Which calibrated fractions apply to a chip, a precision and a class of software."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from knowledge.types import Gpu
from tools.frameworks import Framework
from tools.network.fabric import Fabric
from tools.throughput import constants
from tools.throughput.flops import sparse
from tools.workload import Job, Precision

SoftwareClass = Literal["tuned", "benchmark", "user"]
Kernels = Literal["current", "first"]  # fused attention as of 2024 and later, or its first generation of 2022-23

# Vendor recipes tuned by the people who make the hardware; published framework benchmarks; everyone else.
CLASS_OF_FRAMEWORK: dict[Framework, SoftwareClass] = {
    "megatron": "tuned", "nemo": "tuned", "maxtext": "tuned", "llm-foundry": "benchmark", "torchtitan": "benchmark",
    "fms": "benchmark", "nanogpt": "benchmark",
}  # fmt: skip
AXES = ("data", "tensor", "context", "expert", "pipeline", "contention", "fixed", "waiting")

_BITS: dict[str, int] = {"fp32": 32, "fp8": 8, "fp4": 4, "mxfp4": 4}
_CHIP_BY_CAPABILITY = (
    ("sm_103", "blackwell_ultra"), ("sm_100", "blackwell_dc"), ("sm_12", "blackwell_rtx"), ("sm_90", "hopper"),
    ("sm_89", "ada"), ("sm_80", "ampere_dc"), ("sm_8", "ampere_rtx"), ("sm_75", "turing"), ("sm_7", "volta"),
    ("gfx950", "cdna4"), ("gfx9", "cdna"), ("gfx1", "rdna"), ("gaudi", "gaudi"),
)  # fmt: skip
# A family without measurements of its own borrows the fractions of the one it is built most like.
NEAREST_CHIP = {
    "blackwell_rtx": "ada", "turing": "volta", "cdna4": "cdna", "rdna": "cdna", "tpu_v2": "tpu_v3",
}  # fmt: skip
NARROW_HEAD = 64  # attention heads of this width or less leave half of the tensor cores' tile empty


@dataclass(frozen=True, slots=True)
class Keys:
    """The entries of the tables that apply; None where none does and 1 stands in."""

    matmul: str
    half: str
    stack: str | None
    attention: str
    kernels: str
    narrow: str | None
    expert: str
    power: str | None
    software: str
    exposed: tuple[str, ...]  # one an axis of communication


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Everything that turns work into seconds on one chip; floats here, arrays when many rows are fitted at once."""

    matmul_flops: float
    half_flops: float
    attention_flops: float
    expert: float  # routed products' speed over dense ones'
    hybrid: float  # state-space mixers' speed over 16-bit products'
    memory_bytes_per_s: float
    dequant_bytes_per_s: float
    software: float
    ridge: float  # FLOPs a byte at which products stop being bound by memory
    half_ridge: float
    fill_tokens: float
    fill_width: float
    fill_expert_tokens: float
    fill_expert_width: float
    bubble: float
    host: float
    exposed: tuple[float, ...]


@lru_cache(maxsize=512)
def chip_of(capability: str) -> str:
    """The chip family of a compute capability or architecture string; each TPU generation is its own."""
    if capability.startswith("tpu"):
        return capability.replace("tpu", "tpu_")
    return next((family for start, family in _CHIP_BY_CAPABILITY if capability.startswith(start)), "other")


def chip(gpu: Gpu) -> str:
    """The chip family whose calibrated fractions apply, e.g. "hopper"; "other" where the card's is not one of them."""
    return chip_of(gpu.compute_capability or "")


def known_chip(gpu: Gpu, bits: int) -> bool:
    """Whether measurements of this chip family at this width were calibrated on."""
    return _measured(chip(gpu), bits)


@lru_cache(maxsize=256)
def _measured(family: str, bits: int) -> bool:
    return any(key.startswith(f"{family}/{bits}/") for key in constants.STACK)


def compute_bits(precision: Precision, gpu: Gpu, trained_base: bool = True) -> int:
    """Width of the matrix products, 4, 8, 16 or 32 bits: 4- and 8-bit stored bases still multiply in 16 bits; a chip
    without the rate falls back to the next wider one that it has.
    """
    bits = _BITS.get(precision, 16) if trained_base else 16
    if bits == 4 and not gpu.dense_flops.get("fp4"):
        bits = 8
    if bits == 8 and not gpu.dense_flops.get("fp8"):
        bits = 16
    return bits


def peak_flops(gpu: Gpu, bits: int) -> float:
    """Dense FLOP/s at this width (4, 8, 16 or 32 bits), fp32 accumulation: GeForce cards halve FP8 then as they halve
    16 bits (NVIDIA's Ada and Blackwell GeForce white papers), so no card passes twice its 16-bit rate. 1e12 where no
    rate is held; KeyError for another width.
    """
    rates = gpu.dense_flops
    if bits == 8 and rates.get("fp8") and rates.get("bf16"):
        return min(float(rates["fp8"] or 0.0), 2.0 * float(rates["bf16"] or 0.0))
    wanted = {4: ("fp4",), 8: ("fp8",), 16: ("bf16", "fp16"), 32: ("tf32", "fp32")}[bits]
    for name in wanted:
        if rates.get(name):
            return float(rates[name] or 0.0)
    return float(rates.get("fp16") or rates.get("fp32") or 1e12)


def software_of(framework: Framework | None, given: SoftwareClass | None = None) -> SoftwareClass:
    """The class of software: as told, else what the named framework's published figures are, else a user's stack.

    Pass the framework that was named, not a default: nobody runs a vendor's tuned recipe without knowing it.
    """
    return given or (CLASS_OF_FRAMEWORK.get(framework, "user") if framework else "user")


def keys(
    gpu: Gpu,
    job: Job,
    bits: int,
    software: SoftwareClass,
    pcie: bool,
    kernels: Kernels = "current",
    fitted: bool = True,
) -> Keys:
    """The tables' entries for this chip, precision and software; the nearest general one where there is no own.

    ``fitted`` false gives the entries that a calibration would make, whether or not the tables hold them.
    """
    return _keys(chip(gpu), bits, software, pcie, kernels, 0 < job.arch.head_dim <= NARROW_HEAD, fitted)


@lru_cache(maxsize=1024)
def _keys(family: str, bits: int, software: str, pcie: bool, kernels: str, narrow: bool, fitted: bool) -> Keys:
    if fitted and f"{family}/16" not in constants.MATMUL:
        family = NEAREST_CHIP.get(family, family)

    def own(table: Mapping[str, float], key: str, fallback: str) -> str:
        return key if key in table or not fitted else fallback

    stack = f"{family}/{bits}/{software}"
    if fitted and stack not in constants.STACK:  # what slows a stack at 16 bits slows it at fewer
        stack = f"{family}/16/{software}"
    side = "tuned" if software == "tuned" else "other"
    exposed = [f"{axis}/{side}" for axis in AXES]
    if pcie and side == "other":
        exposed[0] = "data/other/pcie"
    return Keys(
        matmul=own(constants.MATMUL, f"{family}/{bits}", f"other/{bits}"),
        half=own(constants.MATMUL, f"{family}/16", "other/16"),
        stack=stack if stack in constants.STACK or not fitted else None,
        attention=own(constants.ATTENTION, family, "other"),
        kernels=own(constants.KERNELS, f"{kernels}/{software}", f"current/{software}"),
        narrow="narrow" if narrow else None,
        expert=own(constants.EXPERT, family, "other"),
        power=family if family in constants.POWER or not fitted else None,
        software=software,
        exposed=tuple(exposed),
    )


def coefficients(
    gpu: Gpu,
    job: Job,
    bits: int,
    software: SoftwareClass,
    pcie: bool = False,
    kernels: Kernels = "current",
    power_watts: float | None = None,
) -> Coefficients:
    """The calibrated fractions applied to this chip's nominal rates: FLOP/s, bytes/s, shares. ``power_watts`` is a
    limit below the design power, None for none; 100 GB/s stand in for a bandwidth that is not held.
    """
    use = keys(gpu, job, bits, software, pcie, kernels)
    watts = min(power_watts or 1e9, gpu.tdp_watts or 1e9)
    bandwidth = gpu.bandwidth_bytes_per_s or 100e9
    return _coefficients(use, bits, peak_flops(gpu, bits), peak_flops(gpu, 16), bandwidth, watts)


@lru_cache(maxsize=1024)
def _coefficients(
    use: Keys, bits: int, nominal: float, nominal_half: float, bandwidth: float, watts: float
) -> Coefficients:
    scalar = constants.SCALARS
    peak, half = nominal, nominal_half
    if use.power:
        ceiling = constants.POWER[use.power] * 1e12 * watts
        peak, half = under_power(peak, ceiling * 16 / bits), under_power(half, ceiling)
    narrow = scalar["narrow"] if use.narrow else 1.0
    return Coefficients(
        matmul_flops=peak * constants.MATMUL[use.matmul],
        half_flops=half * constants.MATMUL[use.half],
        attention_flops=half * constants.ATTENTION[use.attention] * constants.KERNELS[use.kernels] * narrow,
        expert=constants.EXPERT[use.expert],
        hybrid=scalar["hybrid"],
        memory_bytes_per_s=bandwidth * scalar["memory"],
        dequant_bytes_per_s=bandwidth * scalar["dequant"],
        software=constants.SOFTWARE[use.software] * (constants.STACK[use.stack] if use.stack else 1.0),
        ridge=nominal / bandwidth,
        half_ridge=nominal_half / bandwidth,
        fill_tokens=scalar["fill_tokens"],
        fill_width=scalar["fill_width"],
        fill_expert_tokens=scalar["fill_expert_tokens"],
        fill_expert_width=scalar["fill_expert_width"],
        bubble=scalar["bubble"],
        host=scalar["host"],
        exposed=tuple(constants.EXPOSED[key] for key in use.exposed),
    )


def under_power(peak: float, ceiling: float) -> float:
    """The sustained FLOP/s of a chip that could multiply at ``peak`` but is held to ``ceiling`` by its power limit,
    peak / sqrt(1 + (peak / ceiling)**2): a quadratic mean of the two times, since clocks give way gradually (a
    modelling choice).
    """
    return peak / (1.0 + (peak / ceiling) ** 2) ** 0.5  # type: ignore[no-any-return]


def over_pcie(job: Job, fabric: Fabric | None) -> bool:
    """Whether weights are gathered over PCIe every pass: boards' lanes differ by 8 times, and nobody tells theirs."""
    return (
        job.n_gpus > 1
        and job.sharding in ("fsdp", "zero3", "hsdp")
        and fabric is not None
        and fabric.intra_kind.startswith("pcie")
    )


def interval_factor(gpu: Gpu, job: Job, software: SoftwareClass, fabric: Fabric | None = None) -> float:
    """The factor, at least 1, either way of the estimate within which the measured speed lies 9 times in 10; from
    held-out rows (``evals.calibrate_throughput``). The widest that applies counts.
    """
    widest = constants.INTERVAL[software]
    if job.is_adapter:
        widest = max(widest, constants.INTERVAL[f"{software}/adapter"])
    if sparse(job.arch):
        widest = max(widest, constants.INTERVAL["moe"])
    if over_pcie(job, fabric):
        widest = max(widest, constants.INTERVAL["pcie"])
    bits = compute_bits(job.precision, gpu, job.method != "qlora")
    return widest if known_chip(gpu, bits) else max(widest, constants.INTERVAL["unknown_chip"])
