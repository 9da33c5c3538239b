"""What one tool's result lets an answer state: numbers by dimension with their entities, words, and dates.

Read once from a result; the evidence of a turn is what its results' grounds come to together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from advisor.names import kind_of
from advisor.render import REFERENCE, shown
from advisor.shelf import Entry
from tools.units import format_value

_DIMENSIONS = {
    "B": "bytes", "B/s": "bytes/s", "B/param": "bytes/param", "B/token": "bytes/token", "FLOP": "flop",
    "FLOP/s": "flop/s", "FLOP/token": "flop/token", "s": "time", "h": "time", "days": "time", "tokens": "tokens",
    "tokens/s": "tokens/s", "samples": "samples", "params": "params", "USD": "money", "USD/h": "money/h",
    "USD/GPU-h": "money/gpu/h", "USD/GB-month": "money/gb/month",
    "USD/GB-h": "money/gb/h", "USD/GB": "money/gb", "USD/TFLOP-h": "money/tflop/h",
    "USD/kWh": "money/kwh", "USD/token": "money/token",
    "EUR": "money:EUR", "GBP": "money:GBP",
    "%": "percent", "x": "ratio", "GPUs": "gpus", "nodes": "nodes", "layers": "layers", "steps": "steps",
    "W": "watts", "kWh": "kwh", "kg CO2e": "kg", "offers": "offers", "": "count",
}  # fmt: skip
_SCALES = {"h": 3600.0, "days": 86400.0}
# What a count without a unit counts, by its name.
_COUNTED = (
    (re.compile(r"gpu|card|^(?:tp|pp|cp|ep|dp)$"), "gpus"), (re.compile(r"node|server|machine"), "nodes"),
    (re.compile(r"layer"), "layers"), (re.compile(r"param"), "params"), (re.compile(r"token|seq_len"), "tokens"),
    (re.compile(r"sample|batch|epoch"), "samples"), (re.compile(r"step"), "steps"), (re.compile(r"offer"), "offers"),
)  # fmt: skip
_COUNT_ARGUMENTS = re.compile(
    r"^(?:n_gpus|gpus_per_node|n_nodes|seq_len|micro_batch|grad_accum|lora_rank|tp|pp|cp|ep|dp|tokens|epochs|years|"
    r"max_gpus|samples|vocab\w*|num_\w+|n_\w+)$"
)


@dataclass(slots=True)
class Grounds:
    """Numbers by dimension (size, entities, words), words, and ISO dates. Shared once made: never changed after."""

    numbers: dict[str, list[Entry]] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    dates: set[str] = field(default_factory=set)
    cited: list[str] = field(default_factory=list)  # titles and addresses of the sources, without capitals

    def put(self, dimension: str, value: float, about: tuple[str, ...] = (), text: str = "") -> None:
        """Note a number in its dimension's base unit, without its sign, since texts drop them. NaN is left out."""
        if value == value:
            self.numbers.setdefault(dimension, []).append((abs(value), about, text))

    def date(self, date: str | None) -> None:
        """Note an ISO date, whole or a beginning of one; None and "" are left out."""
        if date:
            self.dates.add(date)


def grounds_of(arguments: Mapping[str, Any], result: Mapping[str, Any]) -> Grounds:
    """The grounds in a result as JSON data; ``arguments`` name the entities that its facts speak of."""
    found = Grounds()
    asked = _entities(arguments)
    for fact in result.get("facts", ()):
        about = tuple(fact.get("about") or ())
        kinds = {kind_of(name) for name in about}
        about += tuple(name for name in asked if kind_of(name) not in kinds)
        dimension, scale = _dimension(fact["unit"], fact["name"])
        for value in (fact["value"], fact.get("low"), fact.get("high")):
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                found.put(dimension, value * scale, about, fact["name"])
            elif isinstance(value, str):
                found.texts.append(value)
        found.date(fact.get("as_of"))
        found.texts += [fact.get("label") or "", fact.get("basis") or ""]
    for item in [*result.get("assumptions", ()), *result.get("steps", ())]:
        dimension, scale = _dimension(item["unit"], item.get("name") or item.get("symbol") or "")
        if isinstance(item["value"], (int, float)) and not isinstance(item["value"], bool):
            found.put(dimension, item["value"] * scale)
        else:
            found.texts.append(str(item["value"]))
        found.texts += [item.get("why", ""), item.get("expression", "")]
    for table in result.get("tables", ()):
        _table(found, table)
    for source in result.get("sources", ()):
        found.date(source["as_of"])
        found.texts += [source["title"], source.get("url") or "", source["id"]]
        found.cited += [source["title"].casefold(), (source.get("url") or "").casefold()]
    # A tool's own sentences as printed: what it says of an entity may be said again.
    sentences = [result.get("verdict", ""), *result.get("next_steps", ())]
    sentences += [warn["text"] for warn in result.get("warnings", ())]
    facts = {key: fact for fact in reversed(result.get("facts", ())) for key in (fact["name"], fact["id"])}
    found.texts += [_printed(text, facts) for text in sentences]
    extra = {key: value for key, value in result.items() if key not in _COMMON}
    found.texts += strings_of(extra)
    _arguments(found, arguments)
    return found


def _table(found: Grounds, table: Mapping[str, Any]) -> None:
    columns = table["columns"]
    for row in table["rows"]:
        about = tuple(cell for cell in row if isinstance(cell, str) and kind_of(cell))
        for column, cell in zip(columns, row, strict=False):
            if isinstance(cell, bool) or cell is None:
                continue
            if isinstance(cell, (int, float)):
                dimension, scale = _dimension(column["unit"], column["key"])
                found.put(dimension, cell * scale, about, column["key"])
            else:
                found.texts.append(str(cell))
    found.texts += [table["title"], *(column["label"] for column in columns)]


def _arguments(found: Grounds, arguments: Mapping[str, Any]) -> None:
    """Counts that the tool was called with may be stated; prices and rates only if the user said them."""
    for name, value in arguments.items():
        if isinstance(value, Mapping):
            _arguments(found, value)
        elif isinstance(value, int) and not isinstance(value, bool) and _COUNT_ARGUMENTS.match(name):
            found.put(_dimension("", name)[0], float(value))
        elif isinstance(value, str) and _COUNT_ARGUMENTS.match(name):
            found.texts.append(value)


_COMMON = {
    "facts", "assumptions", "steps", "sources", "warnings", "tables", "charts", "verdict", "next_steps", "suggestions",
}  # fmt: skip


def _printed(text: str, facts: Mapping[str, Mapping[str, Any]]) -> str:
    def show(match: re.Match[str]) -> str:
        fact = facts.get(match[1].strip())
        if not fact:
            return " "
        return shown(fact["value"], fact["unit"], fact.get("low"), fact.get("high"), (match[2] or "").strip())

    return REFERENCE.sub(show, text) if "[[" in text else text


@lru_cache(maxsize=4096)
def _dimension(unit: str, name: str) -> tuple[str, float]:
    if unit == "h" and "gpu_hour" in name.lower().replace("-", "_"):
        return "gpu-time", 3600.0
    dimension = _DIMENSIONS.get(unit, "count")
    if dimension == "count":
        lowered = name.lower()
        dimension = next((counted for pattern, counted in _COUNTED if pattern.search(lowered)), "count")
    return dimension, _SCALES.get(unit, 1.0)


def _entities(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    found: list[str] = []
    for value in arguments.values():
        if isinstance(value, Mapping):
            found += _entities(value)
        elif isinstance(value, str):
            if kind_of(value):
                found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [item for item in value if isinstance(item, str) and kind_of(item)]
    return tuple(found)


def strings_of(value: Any) -> list[str]:
    """Every string inside a JSON value, depth first, numbers as printed; neither keys nor booleans nor null."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for item in value.values() for text in strings_of(item)]
    if isinstance(value, (list, tuple)):
        return [text for item in value for text in strings_of(item)]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return [format_value(value, "")]
    return []
