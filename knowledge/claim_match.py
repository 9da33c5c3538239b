"""Find the checked claim that somebody restates: enough of its words, weighted by rarity, and its numbers.

A claim that is right is found only if it vouches for every card and amount that was said: "InfiniBand 400 is 400 GB/s"
does not restate "InfiniBand at 400 Gb/s is the standard", and must not be answered with "is right".
"""

from __future__ import annotations

import re
import sqlite3
from functools import lru_cache

from knowledge.amounts import Amount, amounts, contradicts
from knowledge.store import connection
from knowledge.vocabulary import any_of, meant, rarest, rarity
from knowledge.words import MAX_QUERY_CHARS, stem, words

_FLOOR = 0.52  # share of rarity-weighted words that claim and query have in common (F1) to call it a restatement
_TELLING_WEIGHT = 9.0  # rarity in common (three rare words) from which a claim may be found inside longer talk
_MANY = 3  # figures of a claim from which all must be repeated
_CARD = re.compile(r"(?!fp|bf|tf|ndr|hdr|hbm)[a-z]{1,3}\d{1,3}[a-z]{0,2}")  # h100, l40s, mi300x
_PORT = "gbe"
_UNIT_WORDS = frozenset(["gb", "gib", "tb", "b", "k", "m", "x", "h", "tflops", "hour", "hours", "usd", "w", "kw"])


def restated(query: str) -> list[tuple[float, sqlite3.Row]]:
    """Rows of the claims that the query restates, with how closely (from ``_FLOOR`` up), best first."""
    every = words(query)
    asked_words = [*_content(query), *meant(query, every)]
    rows = connection().execute(
        """select claims.*, bm25(claims_fts, 3.0, 2.0, 0.3) as rank
           from claims_fts join claims on claims.rowid = claims_fts.rowid
           where claims_fts match ? order by rank limit 20""",
        (any_of([*every, *asked_words]),),
    )
    asked, numbers = {stem(word) for word in asked_words}, amounts(query)
    cards = _cards(query)
    scored = []
    for row in rows:
        said, stated, figures = _statement(row["claim"], row["figures"])
        if row["verdict"] == "right" and not (cards <= _cards(row["claim"]) and _vouches(stated, figures, numbers)):
            continue
        if len(asked & said) < 2 and not _agreed(numbers, figures):
            continue  # "what is QLoRA?" restates nothing that was claimed of it
        score = _restates(asked, said) + _same_numbers(numbers, stated, figures)
        if score >= _FLOOR:
            scored.append((score, row))
    scored.sort(key=lambda pair: -pair[0])
    return scored


@lru_cache(maxsize=512)
def _statement(claim_text: str, figures: str) -> tuple[frozenset[str], frozenset[Amount], frozenset[Amount]]:
    """The stems of a claim, all its amounts, and those that are its point."""
    stated = f"{claim_text} {figures}"
    return (
        frozenset(stem(word) for word in _content(stated)),
        frozenset(amounts(f"{claim_text} . {figures}")),
        frozenset(amounts(figures)),
    )


@lru_cache(maxsize=512)
def _cards(text: str) -> frozenset[str]:
    """The cards named by a letter and a number; those with a number alone ("4090") count as amounts."""
    return frozenset(word.removesuffix("s") for word in words(text) if _CARD.fullmatch(word))  # "H100s", "L40S"


def _vouches(stated: frozenset[Amount], figures: frozenset[Amount], asked: set[Amount]) -> bool:
    """Whether a claim that is right says nothing against the amounts asked: all are its own, and none is swapped.

    Of three figures or more all must be there: "NVLink 5 gives 900 GB/s" has an amount of the claim, of another link.
    """
    missing = figures - _agreed(asked, figures)
    return not contradicts(asked, stated) and not (len(figures) >= _MANY and asked & figures and missing)


def _same_numbers(asked: set[Amount], stated: frozenset[Amount], figures: frozenset[Amount]) -> float:
    """What the numbers say about two statements being one; the claim's own figures decide, model sizes only help."""
    if not stated:
        return 0.0
    if figures and not _agreed(asked, figures):
        return -0.2 if asked else -0.12
    agreed = len(_agreed(asked, stated)) / len(stated)
    return 0.1 + 0.3 * agreed if agreed else -0.12


def _agreed(asked: set[Amount], stated: frozenset[Amount]) -> set[Amount]:
    """Amounts of the claim that were asked of: the same value in the same unit, or without one if it is telling."""
    return {
        (value, unit)
        for value, unit in stated
        if unit != _PORT  # "100GbE" names a link; that two speak of it is told by the words
        if (value, unit) in asked
        or (value > 10 and any(value == other and "" in (unit, theirs) for other, theirs in asked))
    }


def _content(text: str) -> list[str]:
    """Content words with sizes taken apart ("80GB": 80 and gb) and numbers left out: they are compared as numbers."""
    parted = re.sub(r"(?<=\d)x?(?=[a-z])", " ", text[:MAX_QUERY_CHARS].casefold())
    return [word for word in words(parted) if not word[0].isdigit() and word not in _UNIT_WORDS]


def _restates(asked: set[str], said: frozenset[str]) -> float:
    """How far one word set restates the other, 0 to 1, each word weighing as much as it is rare.

    F1 of the two, or a little less than the share of the claim that is covered: people wrap a claim in other talk.
    """
    rare = rarity("claims")
    top = rarest("claims")

    def weight(some: set[str] | frozenset[str]) -> float:
        return sum(rare.get(word, top) for word in some)

    shared, mine, theirs = weight(asked & said), weight(asked), weight(said)
    if not shared:
        return 0.0
    return max(2 * shared / (mine + theirs), 0.75 * shared / theirs if shared > _TELLING_WEIGHT else 0.0)
