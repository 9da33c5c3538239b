"""The words that people write units with, and what each may mean: scale to the base unit, and dimension.

Dimensions: bytes, bytes/s, time, gpu-time, money, money/h, money/gpu/h, money/gb/month, money/kwh, money/token,
tokens, tokens/s, params, samples, flop, flop/s, flop/token, percent, ratio, gpus, nodes, layers, steps, offers,
watts, kwh, kg, bytes/param, bytes/token, count (no unit said).
"""

from __future__ import annotations

SI = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18, "m": 1e-3, "µ": 1e-6, "u": 1e-6}
KIBI = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
BIG = {
    "k": 1e3, "K": 1e3, "thousand": 1e3, "m": 1e6, "M": 1e6, "mn": 1e6, "mio": 1e6, "million": 1e6, "millions": 1e6,
    "b": 1e9, "B": 1e9, "bn": 1e9, "billion": 1e9, "billions": 1e9, "t": 1e12, "T": 1e12, "tn": 1e12, "trillion": 1e12,
    "trillions": 1e12, "万": 1e4, "億": 1e8, "亿": 1e8, "千": 1e3, "百": 1e2, "lakh": 1e5, "crore": 1e7,
}  # fmt: skip

UNITS: dict[str, tuple[tuple[float, str], ...]] = {
    "%": ((1.0, "percent"),),
    "x": ((1.0, "ratio"),),
}


def _declare(names: str, *meanings: tuple[float, str]) -> None:
    for name in names.split("|"):
        UNITS[name] = meanings


_declare("percent|pct|per cent|percentage points|pp|per-cent|％", (1.0, "percent"))
_declare("times|-fold|fold", (1.0, "ratio"))
_declare("byte|bytes", (1.0, "bytes"))
_declare("B", (1.0, "bytes"))
_declare("bit|bits", (0.125, "bytes"))
for _prefix, _scale in {**{key: SI[key] for key in "kKMGTPE"}, **KIBI}.items():
    _declare(f"{_prefix}B|{_prefix}Byte|{_prefix}Bytes|{_prefix}Bs", (_scale, "bytes"))
    _declare(f"{_prefix}b|{_prefix}bit|{_prefix}bits", (_scale / 8, "bytes"))
    _declare(f"{_prefix}bps|{_prefix}bE", (_scale / 8, "bytes/s"))
    _declare(f"{_prefix}Bps", (_scale, "bytes/s"))
    for _name in ("FLOP", "FLOPs", "FLOPS", "flop", "flops", "OPS", "OP", "Flops", "Flop"):
        _declare(f"{_prefix}{_name}", (_scale, "flop"), (_scale, "flop/s"))
    _declare(f"{_prefix}W", (_scale, "watts"))
    _declare(f"{_prefix}Wh", (_scale / 1e3, "kwh"))
for _prefix in "kmgtp":  # as people type: gb and mb are bytes
    _declare(f"{_prefix}b", (SI[_prefix.upper() if _prefix != "k" else "k"], "bytes"))
    _declare(f"{_prefix}ib", (KIBI[_prefix.upper() + "i"], "bytes"))
_declare("gigabyte|gigabytes|gigs|gig", (1e9, "bytes"))
_declare("terabyte|terabytes", (1e12, "bytes"))
_declare("megabyte|megabytes", (1e6, "bytes"))
_declare("gibibyte|gibibytes", (2.0**30, "bytes"))
_declare("G", (1e9, "bytes"), (1e9, "count"))
_declare("GbE|GigE", (1e9 / 8, "bytes/s"))
_declare("FLOP|FLOPs|FLOPS|flop|flops", (1.0, "flop"), (1.0, "flop/s"))
_declare("exaFLOPs|exaflops|exaflop", (1e18, "flop"), (1e18, "flop/s"))
_declare("petaFLOPs|petaflops|petaflop", (1e15, "flop"), (1e15, "flop/s"))
_declare("teraFLOPs|teraflops|teraflop", (1e12, "flop"), (1e12, "flop/s"))
_declare("µs|us|microsecond|microseconds", (1e-6, "time"))
_declare("ms|millisecond|milliseconds", (1e-3, "time"))
_declare("s|sec|secs|second|seconds", (1.0, "time"))
_declare("min|mins|minute|minutes", (60.0, "time"))
_declare("h|hr|hrs|hour|hours", (3600.0, "time"))
_declare("d|day|days", (86400.0, "time"))
# Units as other languages write them, for answers in the language of the question.
_declare("Stunde|Stunden|heure|heures|hora|horas|小时|小時|時間", (3600.0, "time"))
_declare("Tag|Tage|Tagen|jour|jours|día|días|dia|dias|天|日", (86400.0, "time"))
_declare("Minute|Minuten|minutos|分钟|分鐘|分", (60.0, "time"))
_declare("Sekunden|secondes|segundos|秒", (1.0, "time"))
_declare("Go", (1e9, "bytes"))
_declare("To", (1e12, "bytes"))
_declare("Prozent|pour cent|por ciento", (1.0, "percent"))
_declare("week|weeks|wk|wks", (604800.0, "time"))
_declare("month|months|mo", (730 * 3600.0, "time"), (30 * 86400.0, "time"))
_declare("year|years|yr|yrs", (8760 * 3600.0, "time"))
_declare("GPU-h|GPU-hr|GPU-hrs|GPU-hour|GPU-hours|GPU·h|GPUh|GPU hours|GPU hour|GPU h", (3600.0, "gpu-time"))
_declare("gpu-h|gpu-hour|gpu-hours|gpu hours|gpu hour|card-hours", (3600.0, "gpu-time"))
_declare("GPU|GPUs|gpu|gpus|card|cards|accelerator|accelerators|device|devices|chip|chips", (1.0, "gpus"))
_declare("node|nodes|server|servers|machine|machines|host|hosts|box|boxes|instances|instance", (1.0, "nodes"))
_declare("layer|layers", (1.0, "layers"))
_declare("step|steps|iteration|iterations", (1.0, "steps"))
_declare("offer|offers|listing|listings", (1.0, "offers"))
_declare("token|tokens|tok|toks", (1.0, "tokens"))
_declare("param|params|parameter|parameters", (1.0, "params"))
_declare("sample|samples|example|examples|sequence|sequences|rows", (1.0, "samples"))
_declare("W|watt|watts", (1.0, "watts"))
_declare("Wh", (1e-3, "kwh"))
_declare("kilowatts|kilowatt", (1e3, "watts"))
_declare("kg CO2e|kg CO2|kg|kgCO2e", (1.0, "kg"))
_declare("t CO2e|tonnes", (1e3, "kg"))
_declare("USD|dollar|dollars|usd|bucks|US dollars", (1.0, "money"))
_declare("cents|cent|¢", (0.01, "money"))
for _code in ("EUR", "GBP", "JPY", "CNY", "INR", "CHF", "CAD", "AUD", "euros", "euro", "pounds", "yen"):
    _declare(_code, (1.0, f"money:{_code[:3].upper()}"))
CURRENCY = {"$": "money", "US$": "money", "USD": "money", "usd": "money"} | {
    sign: f"money:{code}" for sign, code in {"€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "EUR": "EUR"}.items()
}

DENOMINATORS: tuple[tuple[str, str], ...] = (
    (r"(?:1\s?[MmKk]\s|million\s|[MmKk]\s?|thousand\s|billion\s)?tok(?:en)?s?", "token"),
    (r"(?:gpu|card|chip|accelerator|device)[\s·-]?(?:hours?|hrs?|h)", "gpu/h"),
    (r"gpus?|cards?|devices?|accelerators?|chips?", "gpu"),
    (r"(?:gb|gib)[\s·-]?months?", "gb/month"),
    (r"(?:gb|gib)[\s·-]?(?:hours?|hrs?|h)", "gb/h"),
    (r"t(?:era)?flops?(?:/s)?[\s·-]?(?:hours?|hrs?|h)", "tflop/h"),
    (r"hours?|hrs?|h", "h"),
    (r"seconds?|secs?|s", "s"),
    (r"minutes?|mins?", "min"),
    (r"days?|d", "day"),
    (r"months?|mo", "month"),
    (r"years?|yrs?|yr|y", "year"),
    (r"kwh", "kwh"),
    (r"gb|gib", "gb"),
    (r"tb", "tb"),
    (r"param(?:eter)?s?", "param"),
    (r"nodes?|servers?|instances?|machines?", "node"),
)
# Rates that mean the plain quantity here: memory and speed are always a GPU's when the fact says so.
DROPPED = {"gpu", "node"}
