"""JSON and YAML that strangers wrote, read within bounds: depth, finite numbers, each name once, no aliases.

A parser that is given anything builds anything: a line of YAML with aliases is gigabytes once walked, a thousand
brackets end the interpreter's stack, ``1e999`` is infinite, and of a name given twice each reader keeps another.
"""

from __future__ import annotations

import json
import math
from typing import Any

import yaml

MAX_DEPTH = 32
MAX_YAML_CHARS = 64_000
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Refused(ValueError):
    """The text is well-formed and still not read. ``code``: too_deep, not_finite, repeated_key, aliases or too_long."""

    def __init__(self, code: str, message: str, name: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.name = name


def read_json(text: str | bytes, depth: int = MAX_DEPTH) -> Any:
    """The JSON value. Raises Refused beyond the bounds, ValueError where it is no JSON at all."""
    try:
        value = json.loads(text, parse_constant=_constant, parse_float=_finite, object_pairs_hook=_once)
    except RecursionError:
        raise _too_deep(depth) from None
    check_depth(value, depth)
    return value


def check_depth(value: Any, depth: int = MAX_DEPTH) -> None:
    """Raises Refused where lists and objects are nested deeper than ``depth``."""
    level = [value]
    for _ in range(depth):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    if any(isinstance(one, (dict, list)) for one in level):
        raise _too_deep(depth)


def read_yaml(text: str, depth: int = MAX_DEPTH) -> list[Any]:
    """The documents of a YAML text. Raises Refused beyond the bounds, yaml.YAMLError where it is no YAML at all.

    The events are looked at first, since they come one by one whatever they would grow into.
    """
    if len(text) > MAX_YAML_CHARS:
        raise Refused("too_long", f"The YAML has {len(text):,} characters; at most {MAX_YAML_CHARS:,} are read.")
    nested = 0
    anchors: set[str] = set()
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent):
            if event.anchor in anchors:
                name = event.anchor[:40]
                raise Refused("aliases", f"The YAML refers to an anchor (*{name}); write its value out.", name)
            continue  # of nothing: the loader says so
        if isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)) and event.anchor:
            anchors.add(event.anchor)
        if isinstance(event, yaml.CollectionStartEvent):
            nested += 1
            if nested > depth:
                raise _too_deep(depth)
        elif isinstance(event, yaml.CollectionEndEvent):
            nested -= 1
    return list(yaml.load_all(text, Loader=_LOADER))  # the C twin of safe_load_all


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _too_deep(depth: int) -> Refused:
    return Refused("too_deep", f"It is nested deeper than {depth} levels.")


def _constant(name: str) -> float:
    raise Refused("not_finite", f"{name} is not a number that can be computed with.", name)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Refused("not_finite", f"{text[:20]} is not a number that can be computed with.", text[:20])
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _value in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise Refused("repeated_key", f"{twice[:64]!r} is given twice.", twice[:64])
    return found
