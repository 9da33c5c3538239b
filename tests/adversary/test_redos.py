"""No pattern of the product takes more than its share of time, whatever the text.

All compiled patterns are collected by importing every module and looking through what it holds; literals handed to
``re`` inside functions are read from the source; those of the planner's grammar files are compiled from them. Each is
run over texts of eight families. A pattern that is quadratic is at least ten times over the bound at the full length.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import pkgutil
import re
import signal
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

from advisor.llm.planner import grammar
from tools.errors import InputProblem
from tools.registry import all_tools

ROOT = Path(__file__).parents[2]
ROOMS = ("advisor", "integrations", "knowledge", "tools")
FAMILIES = {
    "letters": "a", "spaces": " ", "digits": "1", "labels": "a.", "dashes": "a-", "brackets": "[", "sizes": "70b ",
    "lines": "\n",
}  # fmt: skip
CAP = 6_000  # characters that the planner reads of a question's prose; other texts reach these patterns line by line
START, START_SECONDS = 1_500, 0.001  # what is quadratic takes three times as long for these at the least
MICROSECONDS_A_CHARACTER = 10.0  # the largest alternation of the grammar needs four
Named = tuple[str, re.Pattern[Any]]


def test_no_pattern_is_quadratic_in_what_the_product_reads_at_once() -> None:
    assert slow_ones(patterns(), CAP) == []


@pytest.mark.slow
def test_no_pattern_is_quadratic_in_50_000_characters() -> None:
    assert slow_ones(patterns(), 50_000) == []


def test_a_quadratic_pattern_would_be_found() -> None:
    texts = (r"\d+\.\d+", r"\s*\w:", r"(?:a+)+b", r"(?im)^\s*(?:system|user)\s*:", r"(?:[a-z]+\.)+[a-z]+/")
    bad = [("bad", re.compile(text)) for text in texts]
    for one in bad:
        assert slow_ones([one], 2 * CAP), one[1].pattern


def test_patterns_are_found_wherever_they_are_kept() -> None:
    found = dict(patterns())
    for place in (
        "advisor.links.LINKS",  # a module's
        "advisor.grounds._COUNTED",  # in a tuple
        "advisor.render._FORMS",  # in a dictionary
        "grammar intents.cues",
        "grammar patterns.patterns.gpu_hours 0",
        "grammar asked.asked.time_told 0",
    ):
        assert place in found, place
    assert any(place.startswith("tools/config/flatten.py:") for place in found)  # a literal inside a function
    assert len(found) > 400


@pytest.mark.parametrize("family", FAMILIES)
def test_no_tool_takes_long_over_a_text_argument(family: str) -> None:
    """Every text argument of every tool at the longest that a request can hold: refused or read in good time."""
    text = (FAMILIES[family] * 400_000)[:400_000]
    over = []
    for name, spec in all_tools().items():
        first = dict(spec.examples[0])
        for field, schema in spec.input_model.model_json_schema()["properties"].items():
            if "'string'" not in str(schema):
                continue
            begun = time.process_time()
            try:
                spec.call({**first, field: text})
                if "maxLength" not in str(schema):  # a pasted log may be long; a name, an amount or a date may not
                    over.append(f"{name}.{field}: took {len(text):,} characters")
            except InputProblem as problem:
                said = len(str(problem.as_dict()))
                if said > 4_000:
                    over.append(f"{name}.{field}: an error of {said} characters")
            seconds = time.process_time() - begun
            if seconds > 1.0:
                over.append(f"{name}.{field}: {seconds:.1f} s")
    assert over == []


def slow_ones(found: list[Named], length: int) -> list[str]:
    """The patterns that take longer than their share over a text of this length, with the family of the text."""
    bound = length * MICROSECONDS_A_CHARACTER * 1e-6
    texts = {family: (unit * length)[:length] for family, unit in FAMILIES.items()}
    slow = []
    for name, pattern in found:
        for family, text in texts.items():
            # A start tells most apart: a pattern that is quick here would need no more than its share of the whole.
            if _seconds(pattern, text[:START], bound) < START_SECONDS:
                continue
            # The least of three: a busy machine makes one run slow, a bad pattern makes all of them so.
            if all(_seconds(pattern, text, bound) > bound for _ in range(3)):
                slow.append(f"{name} on {family}: {pattern.pattern[:80]!r}")
    return slow


class _TooLong(Exception):
    pass


def _seconds(pattern: re.Pattern[Any], text: str, bound: float) -> float:
    """CPU seconds of one search through the whole text, given up soon after the bound."""

    def over(number: int, frame: FrameType | None) -> None:
        raise _TooLong

    subject: Any = text.encode() if isinstance(pattern.pattern, bytes) else text
    before = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, 1.2 * bound)  # of this process's own time
    begun = time.process_time()
    try:
        for _match in pattern.finditer(subject):
            pass
        return time.process_time() - begun
    except _TooLong:
        return float("inf")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@lru_cache(maxsize=1)
def patterns() -> list[Named]:
    """Every pattern of the product once, with where it is."""
    found: dict[tuple[Any, int], str] = {}
    for name, pattern in (*_of_modules(), *_of_sources(), *_of_grammar()):
        found.setdefault((pattern.pattern, pattern.flags), name)
    return [(name, re.compile(text, flags)) for (text, flags), name in found.items()]


def _of_modules() -> Iterator[Named]:
    for room in ROOMS:
        package = importlib.import_module(room)
        for info in pkgutil.walk_packages(package.__path__, f"{room}."):
            if not info.name.endswith("__main__"):
                module = importlib.import_module(info.name)
                for name, value in list(vars(module).items()):
                    for pattern in _inside(value, module, set()):
                        yield f"{module.__name__}.{name}", pattern


def _inside(value: Any, module: ModuleType, seen: set[int]) -> Iterator[re.Pattern[Any]]:
    if id(value) in seen:
        return
    seen.add(id(value))
    inner: list[Any] = []
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, (list, tuple, set, frozenset)):
        inner = list(value)
    elif isinstance(value, type):
        inner = list(vars(value).values()) if value.__module__ == module.__name__ else []
    elif dataclasses.is_dataclass(value):
        inner = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    for one in inner:
        yield from _inside(one, module, seen)


def _of_sources() -> Iterator[Named]:
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                pattern = _literal(node)
                if pattern is not None:
                    yield f"{file.relative_to(ROOT).as_posix()}:{node.lineno}", pattern  # type: ignore[attr-defined]


def _literal(node: ast.AST) -> re.Pattern[Any] | None:
    """The pattern of ``re.search("…", …)`` and the like."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
        return None
    owner, first = node.func.value, node.args[0]
    if not (isinstance(owner, ast.Name) and owner.id == "re" and isinstance(first, ast.Constant)):
        return None
    named = [part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute) and part.attr.isupper()]
    flags = re.RegexFlag(0)
    for name in named:
        flags |= getattr(re, name, re.RegexFlag(0))
    return re.compile(first.value, flags)


def _of_grammar() -> Iterator[Named]:
    folder = Path(grammar.__file__).parents[1] / "grammar"
    for file in sorted(folder.glob("*.yaml")):
        table = grammar.data(file.stem)
        for key, value in table.items():
            if file.stem in ("patterns", "asked"):
                if key not in ("macros", "asked_hints"):
                    for name, index in grammar.names(key):
                        yield f"grammar {file.stem}.{key}.{name} {index}", grammar.named(name, key, index)
            elif isinstance(value, list) and all(isinstance(item, str) for item in value):
                yield f"grammar {file.stem}.{key}", grammar.matcher(file.stem, key)
            elif isinstance(value, dict) and all(isinstance(item, list) for item in value.values()):
                yield f"grammar {file.stem}.{key}", grammar.choices(file.stem, key)[0]
