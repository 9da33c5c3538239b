"""Whether the best passage of the knowledge base is on the point asked, and so worth a place beside figures."""

from __future__ import annotations

import re
from functools import lru_cache

from advisor.llm.planner import grammar
from advisor.llm.planner.slots import Slots
from knowledge.search import SURE, search

_WORD = re.compile(r"[a-z][a-z\-]{2,}")
_ENDINGS = ("ing", "ers", "ies", "ed", "es", "er", "s")


def on_point(query: str, turn: Slots) -> bool:
    """Whether the best passage's title speaks of what the question asks, or an explanation is asked for outright."""
    named = " ".join([*(m.text for m in turn.models), *(g.text for g in turn.gpus)]).lower()
    asked = _stems(query.lower()) - _stems(named)
    return bool(asked & _title_stems(query))


@lru_cache(maxsize=256)
def sure(query: str) -> bool:
    """Whether what is found is likely what was asked, so that it may stand beside a real answer."""
    found = search(query, 1)
    return bool(found) and (found[0].kind == "claim" or found[0].score >= SURE)


@lru_cache(maxsize=1)
def _common() -> frozenset[str]:
    return frozenset(grammar.data("passage")["common"])


@lru_cache(maxsize=256)
def _title_stems(query: str) -> frozenset[str]:
    found = search(query, 1)
    return _stems(found[0].title.lower()) if found else frozenset()


def _stems(text: str) -> frozenset[str]:
    common = _common()
    return frozenset(_stem(word) for word in _WORD.findall(text) if word not in common)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
