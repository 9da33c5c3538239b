"""What the knowledge base calls things: its synonyms, how rare its words are, and the repair of mistyped words."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

from rapidfuzz import fuzz, process

from knowledge.store import connection
from knowledge.words import WORD, folded, stem

_SHORTEST_REPAIRED = 5  # letters; a shorter unknown word is more often a name than a slip
_ALIKE = 80  # of 100, rapidfuzz ratio


def meant(query: str, words: list[str]) -> list[str]:
    """What the query's words and phrases are called in the articles, and mistyped words put right."""
    cleaned = f" {' '.join(WORD.findall(folded(query)))} "
    found: list[str] = []
    for said, means in synonyms():
        if f" {said} " in cleaned:
            found.extend(WORD.findall(means))
    vocabulary = rarity("articles")
    for word in words:
        if len(word) >= _SHORTEST_REPAIRED and word.isalpha() and stem(word) not in vocabulary:
            near = process.extractOne(word, _long_words(), scorer=fuzz.ratio, score_cutoff=_ALIKE)
            if near:
                found.append(near[0])
    return [word for word in dict.fromkeys(found) if word not in words]


def any_of(words: Iterable[str]) -> str:
    """An FTS5 expression that cannot be malformed: quoted words joined by OR."""
    return " OR ".join('"' + word.replace('"', "") + '"' for word in words)


@lru_cache(maxsize=1)
def synonyms() -> list[tuple[str, str]]:
    """Pairs (phrase as people say it, words single-spaced; what it means here) of ``data/synonyms.yaml``; cached, so do
    not change it.
    """
    rows = connection().execute("select said, meant from synonyms")
    return [(" ".join(WORD.findall(row["said"])), row["meant"]) for row in rows]


@lru_cache(maxsize=4)
def rarity(table: str) -> dict[str, float]:
    """Inverse document frequency, ln(1 + documents / documents with it), of every stem of the index of ``articles`` or
    ``claims``. Cached: do not change it.
    """
    total = connection().execute(f"select count(*) from {table}").fetchone()[0]
    rows = connection().execute(f"select term, doc from {table}_words")
    return {row["term"]: math.log(1 + total / row["doc"]) for row in rows}


@lru_cache(maxsize=4)
def rarest(table: str) -> float:
    """The rarity (inverse document frequency) of a word that occurs once in ``articles`` or ``claims``; 1 for an empty
    table.
    """
    return max(rarity(table).values(), default=1.0)


@lru_cache(maxsize=1)
def _long_words() -> list[str]:
    return [word for word in rarity("articles") if len(word) >= _SHORTEST_REPAIRED and word.isalpha()]
