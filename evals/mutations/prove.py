"""Seeding a fault into the running program, and taking it out again without a trace."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import _lru_cache_wrapper
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from advisor.llm.door import PLANNER
from evals.canaries import run_canaries
from evals.casefile import load_suites
from evals.run import make_desk, run_case


@dataclass(frozen=True, slots=True)
class Mutation:
    """One fault: ``places`` ("module:attribute") are replaced by what ``change`` makes of them.

    ``cases`` are the ids of the cases that stand guard; none: the graders' canaries do.
    """

    name: str
    about: str
    places: tuple[str, ...]
    change: Callable[[Any], Any]
    cases: tuple[str, ...] = ()


@contextmanager
def seeded(mutation: Mutation) -> Iterator[None]:
    """The program with this fault; every memo is cleared before and after, so that nothing of it stays."""
    patches: list[Any] = []
    for place in mutation.places:
        module, _, name = place.partition(":")
        owner: Any = import_module(module)
        *path, last = name.split(".")
        for part in path:
            owner = getattr(owner, part)
        sound = getattr(owner, last)
        changed = mutation.change(sound)
        # A table is changed in place, since other modules hold the same object.
        patches.append(patch.dict(sound, changed) if isinstance(sound, dict) else patch.object(owner, last, changed))
    for one in patches:
        one.start()
    clear_caches()
    try:
        yield
    finally:
        for one in reversed(patches):
            one.stop()
        clear_caches()


def clear_caches() -> None:
    """Forget all memoised results of our own modules in this process; those of packages stay."""
    for thing in gc.get_objects():
        if type(thing) is _lru_cache_wrapper and str(thing.__module__).partition(".")[0] in _OURS:
            thing.cache_clear()


_OURS = frozenset(["knowledge", "tools", "advisor", "evals"])


def verdicts(mutation: Mutation) -> dict[str, bool]:
    """Whether each guard passes as things stand: case ids, or ``canaries``."""
    if not mutation.cases:
        return {"canaries": not run_canaries()}
    wanted = {case.id: (suite.suite, case) for suite in load_suites() for case in suite.cases}
    with TemporaryDirectory() as folder:
        desk = make_desk(Path(folder))
        found = {name: run_case(*wanted[name], PLANNER, desk) for name in mutation.cases}
    return {name: result.passed for name, result in found.items()}
