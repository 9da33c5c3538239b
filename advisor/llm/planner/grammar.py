"""The planner's grammar: data files under ``advisor/llm/grammar`` compiled once into regular expressions.

A fragment in the files is a regular expression over lower-cased text in which a space matches a space, "-", "_" or
nothing, so that "full fine tune", "full-finetune" and "full_fine_tune" are one entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import yaml

_FOLDER = Path(__file__).parent.parent / "grammar"
_GAP = r"[\s_\-]{0,3}"
_SPACE = re.compile(r" \??(?![^\[\]]{0,60}\])")  # a space outside a character class


@lru_cache(maxsize=16)
def data(name: str) -> dict[str, Any]:
    """One grammar file by its name without ending, parsed; read once a process. Raises OSError for no such file."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = (_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    return cast(dict[str, Any], yaml.load(text, Loader=loader))  # the C twin of safe_load


def pattern(fragments: Iterable[str]) -> str:
    """One alternation: Latin fragments stand between word boundaries, others (CJK, accents first) anywhere."""
    latin: list[str] = []
    free: list[str] = []
    for fragment in fragments:
        spaced = _SPACE.sub(_GAP.replace("\\", "\\\\"), fragment)
        (latin if re.match(r"[\\(\[]*[a-z0-9?:\\(\[]", spaced) and spaced[:1].isascii() else free).append(spaced)
    parts = []
    if latin:
        parts.append(rf"(?<![a-z0-9])(?:{'|'.join(latin)})(?![a-z0-9])")
    if free:
        parts.append("|".join(free))
    return "|".join(parts)


@lru_cache(maxsize=64)
def matcher(file: str, key: str) -> re.Pattern[str]:
    """The list ``key`` of a grammar file as one compiled alternation over lower-cased text."""
    return re.compile(pattern(data(file)[key]))


@lru_cache(maxsize=64)
def choices(file: str, key: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """A mapping ``value -> fragments`` compiled into one pattern of numbered groups, with the values in order."""
    table = data(file)[key]
    values = tuple(table)
    body = "|".join(f"(?P<v{index}>{pattern(table[value])})" for index, value in enumerate(values))
    return re.compile(body), values


def found(file: str, key: str, text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Each value of a mapping that ``text`` names, in reading order."""
    compiled, values = choices(file, key)
    for match in compiled.finditer(text):
        yield values[int(str(match.lastgroup)[1:])], match


def first(file: str, key: str, text: str) -> str | None:
    """The first value, in reading order, of a mapping that lower-cased ``text`` names; None for none."""
    return next((value for value, _match in found(file, key, text)), None)


def _section(name: str) -> dict[str, Any]:
    """A section of patterns: what is asked for stands in a file of its own."""
    return cast(dict[str, Any], data("asked" if name == "asked" else "patterns")[name])


@lru_cache(maxsize=256)
def named(name: str, section: str = "patterns", index: int = 0) -> re.Pattern[str]:
    """A pattern of ``patterns.yaml`` or ``asked.yaml``, its macros filled in, compiled with ASCII word borders."""
    found = _section(section)[name]
    return re.compile(_expand(found if isinstance(found, str) else found[index]), re.ASCII)


def seen(name: str, text: str, section: str = "asked") -> re.Match[str] | None:
    """The first match of a named pattern, looked for only where one of its ``asked_hints`` stands in the text."""
    hints = data("asked")["asked_hints"].get(name)
    if hints is not None and not any(hint in text for hint in hints):
        return None
    return named(name, section).search(text)


def names(section: str) -> list[tuple[str, int]]:
    """The names of a section of patterns with the index of each of their patterns, in order."""
    table = _section(section)
    return [(name, i) for name, found in table.items() for i in range(1 if isinstance(found, str) else len(found))]


def _expand(text: str) -> str:
    for _depth in range(3):  # macros hold macros
        text = re.sub(r"<([A-Z_]+)>", lambda match: _macros()[match[1]], text)
    return text


@lru_cache(maxsize=1)
def _macros() -> dict[str, str]:
    numbers = data("numbers")
    return {
        **data("patterns")["macros"],
        "WORDS": "|".join(word for word in numbers["words"] if len(word) > 2),
        "CJK": "".join(key for key in numbers["cjk"] if len(key) == 1),
        "DAYS": "|".join(sorted(numbers["weekdays"], key=len, reverse=True)),
        "MONTHS": "|".join(sorted(numbers["months"], key=len, reverse=True)),
        "DUE_WORDS": "|".join(form for forms in numbers["due_words"].values() for form in forms),
        "CLOCK": "|".join(numbers["hours_words"]),
        "COUNT": "|".join([r"\d{1,6}", *sorted([*numbers["words"], *numbers["cjk"]], key=len, reverse=True)]),
        "COUNTER": "|".join(numbers["counters"]),
        "FILLER": "|".join(numbers["fillers"]),
    }
