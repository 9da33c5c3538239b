"""Units of expected numbers: what a case file writes -> the unit that facts use, and the factor between them."""

from __future__ import annotations

from typing import get_args

from tools.errors import BadValue
from tools.units import GIB, Unit

_SCALED: dict[str, tuple[str, float]] = {
    "kB": ("B", 1e3), "MB": ("B", 1e6), "GB": ("B", 1e9), "TB": ("B", 1e12), "KiB": ("B", 2.0**10),
    "MiB": ("B", 2.0**20), "GiB": ("B", GIB), "MB/s": ("B/s", 1e6), "GB/s": ("B/s", 1e9), "TB/s": ("B/s", 1e12),
    "Gb/s": ("B/s", 1e9 / 8), "TFLOP": ("FLOP", 1e12), "TFLOPS": ("FLOP/s", 1e12), "ms": ("s", 1e-3),
    "min": ("s", 60.0), "kW": ("W", 1e3), "B params": ("params", 1e9), "M params": ("params", 1e6),
    "B tokens": ("tokens", 1e9),
}  # fmt: skip
# What the same dimension is called where texts are read.
_DIMENSIONS = {
    "B": "bytes", "B/s": "bytes/s", "FLOP": "flop", "FLOP/s": "flop/s", "s": "time", "h": "time", "days": "time",
    "tokens": "tokens", "tokens/s": "tokens/s", "params": "params", "USD": "money", "USD/h": "money/h",
    "USD/GPU-h": "money/gpu/h", "USD/GB-month": "money/gb/month", "USD/kWh": "money/kwh", "%": "percent", "x": "ratio",
    "GPUs": "gpus", "nodes": "nodes", "layers": "layers", "steps": "steps", "W": "watts", "kWh": "kwh",
    "kg CO2e": "kg", "offers": "offers", "B/param": "bytes/param", "B/token": "bytes/token", "": "count",
}  # fmt: skip
_SECONDS = {"h": 3600.0, "days": 86400.0, "s": 1.0}


def to_fact(value: float, unit: str) -> tuple[float, str]:
    """(value, unit) in the unit that facts use: 80 "GB" is (8e10, "B"). Raises BadValue for a unit that no fact has."""
    if unit in _SCALED:
        base, scale = _SCALED[unit]
        return value * scale, base
    if unit in get_args(Unit):
        return value, unit
    raise BadValue("unknown_unit", f"{unit!r} is no unit of facts.", field="unit", candidates=[*_SCALED][:8])


def same_unit(value: float, unit: str, wanted: str) -> float | None:
    """``value`` of ``unit`` in the fact unit ``wanted``; None when they measure different things. Time converts."""
    if unit == wanted:
        return value
    if unit in _SECONDS and wanted in _SECONDS:
        return value * _SECONDS[unit] / _SECONDS[wanted]
    return None


def to_reading(value: float, unit: str) -> tuple[float, str]:
    """(value, dimension) as the text extractor reports it, times in seconds. Raises BadValue for a unit that no fact
    has.
    """
    number, base = to_fact(value, unit)
    return number * _SECONDS.get(base, 1.0), _DIMENSIONS.get(base, "count")
