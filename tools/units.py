"""Units: the closed list that facts use, reading what people write, printing what people read.

GB is 1e9 bytes and GiB 2**30, never mixed silently; Gb is bits. Inside the tools everything is in base units
(bytes, bytes/s, FLOP/s, seconds, USD); this file is the border.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Literal, get_args

from tools.errors import BadValue, nearest

Unit = Literal[
    "",
    "B",
    "B/s",
    "B/param",
    "B/token",
    "FLOP",
    "FLOP/s",
    "FLOP/token",
    "s",
    "h",
    "days",
    "tokens",
    "tokens/s",
    "samples",
    "params",
    "USD",
    "EUR",
    "GBP",
    "USD/h",
    "USD/GPU-h",
    "USD/TFLOP-h",
    "USD/GB-h",
    "USD/GB-month",
    "USD/GB",
    "USD/kWh",
    "USD/token",
    "%",
    "x",
    "GPUs",
    "nodes",
    "layers",
    "steps",
    "W",
    "kWh",
    "kg CO2e",
    "offers",
]
UNITS: tuple[str, ...] = get_args(Unit)

GB = 1e9
GIB = 2.0**30
SECONDS_PER_HOUR = 3600.0
HOURS_PER_MONTH = 730.0  # 8760 / 12, the month that cloud price lists use

_DECIMAL = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15, "e": 1e18}
_BINARY = {"ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "ti": 2.0**40, "pi": 2.0**50}
_COUNTS = {"": 1.0, "k": 1e3, "m": 1e6, "mn": 1e6, "b": 1e9, "bn": 1e9, "g": 1e9, "t": 1e12, "tn": 1e12}
Show = Callable[[float, str | None], str]

_NUMBER = re.compile(r"^\s*([+-]?(?:\d[\d_,]*)?\.?\d+(?:[eE][+-]?\d+)?|\d+)\s*(.*?)\s*$")


def parse_bytes(text: str | float, field: str = "size") -> float:
    """Bytes from "80GB", "80 GiB", "16gb"; a bare number is bytes. "8 Gb" and "8 Gbit" are bits, an eighth each. Raises
    BadValue, naming ``field``, for what is no finite number or no such unit.
    """
    number, unit = _split(text, field)
    match = re.fullmatch(r"([kKmMgGtTpP]i?)?(B|b|bytes?|bits?)?", unit)
    if not match:
        raise BadValue(
            "unknown_unit",
            f"{text!r} is not an amount of memory.",
            field=field,
            hint="Write it as 80GB (1e9 bytes) or 80GiB (2**30).",
            candidates=nearest(unit, ["GB", "GiB", "MB", "MiB", "TB", "TiB"]),
        )
    prefix, suffix = (match[1] or "").lower(), match[2] or "B"
    scale = _BINARY[prefix] if prefix in _BINARY else _DECIMAL[prefix]
    # People write 16gb for bytes; only a capital prefix before a small b (8 Gb), or the word, means bits.
    bits = suffix.startswith("bit") or (suffix == "b" and (match[1] or "")[:1].isupper())
    return number * scale / (8 if bits else 1)


def parse_rate(text: str | float, field: str = "bandwidth") -> float:
    """Bytes per second from "3.35 TB/s", "400Gb/s", "400 Gbit/s", "100GbE", "25 Gbps". Raises BadValue, naming
    ``field``, for what is no finite number or no such unit.
    """
    number, unit = _split(text, field)
    cleaned = unit.replace(" ", "")
    ethernet = re.fullmatch(r"([gG])[bB]?[eE]", cleaned)
    if ethernet:
        return number * 1e9 / 8
    per_second = re.fullmatch(r"([kKmMgGtT])(?:[bB]|bits?)ps", cleaned)
    if per_second and "B" not in cleaned:
        return number * _DECIMAL[per_second[1].lower()] / 8  # 25gbps, 25 Gbps: always bits
    cleaned = re.sub(r"(?:/s|ps|/sec)$", "", cleaned)
    return parse_bytes(f"{number} {cleaned}", field)


def parse_count(text: str | float, field: str = "count") -> float:
    """A count from "70B", "100 bn", "20T", "1.5k", "20 billion", "1e9"; a bare number is itself. Raises BadValue,
    naming ``field``, for what is no finite number or no such unit.
    """
    number, unit = _split(text, field)
    word = unit.lower().rstrip("s")
    words = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
    for suffix in ("token", "param", "parameter", "sample"):
        word = word.removesuffix(suffix).strip()
    if word in words:
        return number * words[word]
    if word not in _COUNTS:
        raise BadValue(
            "unknown_unit", f"{text!r} is not a count.", field=field, hint="Write it as 20B, 1.5T, 300M or 2e10."
        )
    return number * _COUNTS[word]


def parse_seconds(text: str | float, field: str = "time") -> float:
    """Seconds from "2h", "90 min", "3 days", "1 week"; a bare number is seconds, a month 730 h and a year 365 days.
    Raises BadValue, naming ``field``, for what is no finite number or no such unit.
    """
    number, unit = _split(text, field)
    word = unit.lower().rstrip("s") or "s"
    scale = {
        "": 1.0, "ms": 1e-3, "m": 60.0, "sec": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0,
        "hr": 3600.0, "hour": 3600.0, "d": 86400.0, "day": 86400.0, "w": 604800.0, "week": 604800.0,
        "month": HOURS_PER_MONTH * 3600, "y": 31536000.0, "year": 31536000.0, "s": 1.0,
    }  # fmt: skip
    if word not in scale:
        raise BadValue("unknown_unit", f"{text!r} is not a time.", field=field, hint="Write it as 90s, 12h or 3 days.")
    return number * scale[word]


def format_value(value: float | int | str | bool | None, unit: str, want: str | None = None) -> str:
    """What people read: "45.3 GB", "3,686 h", "$2.40/GPU-h". ``want`` forces a unit, e.g. GiB.

    Three significant digits, since no modelled figure here is good to more; exact counts keep all of theirs.
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    return _shown(float(value), unit, want)


@lru_cache(maxsize=4096)  # an answer shows the same figure in its words, its tables and its check
def _shown(value: float, unit: str, want: str | None) -> str:
    if not math.isfinite(value):
        return "unlimited" if value > 0 else "undefined"
    return (_FORMATTERS.get(unit) or _plain(unit))(value, want)


def format_range(low: float, high: float, unit: str, want: str | None = None) -> str:
    """Two values in ``unit``, as people read a range, with the unit said once: "41.2–49.8 GB". ``want`` forces a unit
    (GiB); bytes take the prefix of ``high``. One value where both print alike.
    """
    if unit in ("B", "B/s") and not want:
        want = _bytes_prefix(high) + ("B/s" if unit == "B/s" else "B")
    left, right = format_value(low, unit, want), format_value(high, unit, want)
    if left == right:
        return right
    left_unit, right_unit = left.partition(" ")[2], right.partition(" ")[2]
    if left_unit and left_unit == right_unit:
        return f"{left.partition(' ')[0]}–{right}"
    if left.endswith("%") and right.endswith("%"):
        return f"{left[:-1]}–{right}"
    return f"{left}–{right}"


def significant(value: float, digits: int = 3) -> str:
    """``value`` with this many significant digits, thousands separated, no exponent below 1e15."""
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if magnitude >= 15 or magnitude < -6:
        return f"{value:.{digits - 1}e}"
    decimals = max(0, digits - 1 - magnitude)
    rounded = round(value, digits - 1 - magnitude if magnitude < 3 else 0)
    text = f"{rounded:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _split(text: str | float, field: str) -> tuple[float, str]:
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        number, unit = float(text), ""
    else:
        match = _NUMBER.match(str(text)[:64])
        if not match:
            raise BadValue("not_a_number", f"{str(text)[:40]!r} does not start with a number.", field=field)
        number, unit = float(match[1].replace(",", "").replace("_", "")), match[2]
    if not math.isfinite(number):
        raise BadValue("not_finite", f"{field!r} must be a finite number, not {text!r}.", field=field)
    return number, unit


def _bytes_prefix(value: float) -> str:
    for prefix in ("T", "G", "M", "k"):
        if abs(value) >= 0.9995 * _DECIMAL[prefix.lower()]:
            return "G" if prefix == "T" and abs(value) < 2e12 else prefix  # 1,120 GB reads better than 1.12 TB
    return ""


def _bytes(value: float, want: str | None) -> str:
    if want and want.lower() != "b":
        scale = _BINARY.get(want[:-1].lower()) or _DECIMAL[want[:-1].lower()]
        return f"{significant(value / scale)} {want}"
    prefix = _bytes_prefix(value)
    return f"{significant(value / _DECIMAL[prefix.lower()])} {prefix}B"


def _byte_rate(value: float, want: str | None) -> str:
    if want and want.endswith("b/s"):
        return f"{significant(value * 8 / _DECIMAL[want[:-3].lower()])} {want}"
    return _bytes(value, want.removesuffix("/s") if want else None) + "/s"


def _scaled(unit: str, names: tuple[tuple[float, str], ...]) -> Show:
    def show(value: float, want: str | None) -> str:
        for scale, name in names:
            if abs(value) >= scale:
                return f"{significant(value / scale)}{name}{unit}"
        return f"{significant(value)}{unit if unit.startswith(' ') else ' ' + unit}".rstrip()

    return show


# Units that are counted, in the singular.
_ONE = {"GPUs": "GPU", "tokens": "token", "nodes": "node", "steps": "step", "offers": "offer", "sequences": "sequence"}


def _plain(unit: str) -> Show:
    one = _ONE.get(unit, unit)

    def show(value: float, want: str | None) -> str:
        return f"{significant(value)} {one if value == 1 else unit}".rstrip()

    return show


def _seconds(value: float, want: str | None) -> str:
    if want == "h":
        return f"{significant(value / 3600)} h"
    for scale, name in ((86400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms")):
        if abs(value) >= scale * (2 if name == "days" else 1):
            return f"{significant(value / scale)} {name}"
    return f"{significant(value * 1e6)} µs" if value else "0 s"


def _hours(value: float, want: str | None) -> str:
    if want == "days":
        return f"{significant(value / 24)} days"
    if want is None and 0 < value < 1:
        return f"{significant(value * 60)} min"
    return f"{significant(value)} h"


def _usd(suffix: str, coin: str = "$") -> Show:
    def show(value: float, want: str | None) -> str:
        sign, amount = ("-" if value < 0 else ""), abs(value)
        if amount >= 1e6:
            return f"{sign}{coin}{significant(amount / 1e6, 4)} M{suffix}"
        if amount >= 100:
            return f"{sign}{coin}{amount:,.0f}{suffix}"
        if amount >= 0.995 or amount == 0:
            return f"{sign}{coin}{amount:,.2f}{suffix}"
        text = significant(amount, 3)
        if amount >= 0.1:
            text = f"{amount:.2f}" if len(text) < 4 else text  # cents are written in full: $0.40
        return f"{sign}{coin}{text}{suffix}"

    return show


def _percent(value: float, want: str | None) -> str:
    return f"{significant(value, 3)} %"


def _whole(unit: str) -> Show:
    def show(value: float, want: str | None) -> str:
        text = f"{value:,.0f}" if value == round(value) else significant(value)
        return f"{text} {unit}".rstrip()

    return show


_BIG = ((1e12, " T"), (1e9, " B"), (1e6, " M"))
_FORMATTERS: dict[str, Show] = {
    "B": _bytes,
    "B/s": _byte_rate,
    "FLOP": _scaled("FLOP", ((1e18, " E"), (1e15, " P"), (1e12, " T"), (1e9, " G"))),
    "FLOP/s": _scaled("FLOP/s", ((1e18, " E"), (1e15, " P"), (1e12, " T"), (1e9, " G"))),
    "FLOP/token": _scaled("FLOP/token", ((1e15, " P"), (1e12, " T"), (1e9, " G"))),
    "s": _seconds,
    "h": _hours,
    "tokens": _scaled(" tokens", _BIG),
    "params": _scaled(" params", _BIG),
    "tokens/s": _whole("tokens/s"),
    "USD": _usd(""),
    "EUR": _usd("", "€"),
    "GBP": _usd("", "£"),
    "W": _scaled("W", ((1e6, " M"), (1e3, " k"))),
    "USD/h": _usd("/h"),
    "USD/GPU-h": _usd("/GPU-h"),
    "USD/TFLOP-h": _usd("/TFLOP-h"),
    "USD/GB-h": _usd("/GB-h"),
    "USD/GB-month": _usd("/GB-month"),
    "USD/GB": _usd("/GB"),
    "USD/kWh": _usd("/kWh"),
    "%": _percent,
    "GPUs": _whole("GPUs"),
    "nodes": _whole("nodes"),
    "layers": _whole("layers"),
    "steps": _whole("steps"),
    "offers": _whole("offers"),
    "": _whole(""),
}
