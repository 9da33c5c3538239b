"""One slip mended in the field's commonest words; the words are in ``spelling.yaml``."""

from __future__ import annotations

import re
from functools import lru_cache

from rapidfuzz import process
from rapidfuzz.distance import OSA

from advisor.llm.planner import grammar

_WORD = re.compile(r"(?<![\w.\-/])[a-z]{3,12}(?![a-z_/])", re.ASCII)


def fix_spelling(text: str) -> str:
    """``text`` with a letter dropped, doubled, changed or swapped put right."""
    return _WORD.sub(lambda match: _mended(match[0]), text)


@lru_cache(maxsize=4096)
def _mended(word: str) -> str:
    table = grammar.data("spelling")
    if word in table["targets"] or word in table["right"]:
        return word
    if word in table["spelled"]:
        return str(table["spelled"][word])
    hit = process.extractOne(word, table["targets"], scorer=OSA.distance, score_cutoff=1)
    if not hit:
        return word
    target = str(hit[0])
    swapped = sorted(word) == sorted(target)
    if len(target) <= 4:
        return target if swapped or word in table["short"] else word
    return target if swapped or word[0] == target[0] else word
