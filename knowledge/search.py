"""Find articles and checked claims for what somebody typed: ``search(query, limit)``.

Any string is a query and none is an error. Articles are ranked by the topic model (``topic_model.py``), which has
learnt from how people ask; one is returned only where enough of what was said is spoken of here, so that off-topic
questions find nothing. A checked claim is returned where the query restates it (``claim_match.py``).
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from knowledge.claim_match import restated
from knowledge.store import connection
from knowledge.topic_features import run_counts, term_counts, weighted
from knowledge.topic_model import softmax
from knowledge.types import Passage
from knowledge.vocabulary import meant, rarest, rarity, synonyms
from knowledge.words import WORD, stem, words

# An article fits where the topic model prefers it to "none" and its words are known; both weights were set on 40
# questions that no article answers and 120 oblique ones that one does. Below the floor (1 % of those asked obliquely,
# half of the unanswerable) nothing is returned; SURE is for those who quote: 90 % against 12 %.
_COVERAGE_WEIGHT, _COVERAGE_MIDDLE = 6.0, 0.4
_FLOOR = -2.0  # log odds
SURE = 0.75  # score of an article, 0 to 1, from which it is likely what was asked
_TELLING_SHARE = 0.6  # of the greatest rarity that a sentence's new words must weigh to be worth adding
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n")
_SHORTEST, _LONGEST = 25, 320  # characters of a sentence worth quoting alone
_RARE = 0.8  # of the greatest rarity: a word of at most two articles or so
_SIZE = re.compile(r"\d+(?:\.\d+)?(?:x|m|b|t|gb|gib|tb|mb|g|h|hours|days|min|ms|usd|eur)?")


def search(query: str, limit: int = 5) -> list[Passage]:
    """Passages best first: checked claims that the query restates, then articles; empty when nothing is close."""
    said = words(query)
    if not said or limit < 1:
        return []
    claims = [_claim_passage(row, score) for score, row in restated(query)[: max(1, limit // 2)]]
    return [*claims, *_articles(query, said, limit - len(claims))]


def telling_sentence(query: str, passage: Passage) -> str | None:
    """The sentence of an article's passage that speaks of words of the query which its summary does not; else None.

    Of prose and lists only: a row of a table or a line of code says nothing alone.
    """
    summary, _, block = passage.text.partition("\n\n")
    if passage.kind != "article" or not block or block.startswith(("|", "`")):
        return None
    told = _telling(words(query))
    asked = {stem(word) for word in [*told, *meant(query, told)]}
    missing = asked - {stem(word) for word in words(summary, limit=400)}
    rare = rarity("articles")
    best, best_score = None, _TELLING_SHARE * max(rare.values(), default=1.0)
    for sentence in _SENTENCE_END.split(re.sub(r"(?m)^(?:[-*]|\d+\.)\s+", "", block)):
        said = {stem(word) for word in words(sentence, limit=200)}
        score = sum(rare.get(stem, 0.0) for stem in missing & said)
        if score > best_score and _SHORTEST <= len(sentence) <= _LONGEST:
            best, best_score = " ".join(sentence.replace("**", "").split()), score
    return best


def closeness(query: str) -> float:
    """How much of what the query says one article speaks of, 0 to 1: its words there, each weighing by its rarity.

    Words that no article uses weigh most, so that "the capital of Peru" is far although "capital" is known here.
    """
    said = words(query)
    return _coverage(said, _ranked(query)[0]) if said else 0.0


def _coverage(said: list[str], ranked: list[tuple[sqlite3.Row, float]]) -> float:
    rare, top = rarity("articles"), rarest("articles")
    asked = {stem(word): rare.get(stem(word), 1.5 * top) for word in _telling(said)}
    for phrase, means in synonyms():
        if f" {phrase} " in f" {' '.join(said)} ":
            asked |= {stem(word): 0.0 for word in WORD.findall(phrase)}
            asked |= {stem(word): rare.get(stem(word), top) for word in WORD.findall(means)}
    total = sum(asked.values())
    if not total or (len(said) == 1 and rare.get(stem(said[0]), 0.0) < _RARE * top):
        return 0.0  # one common word ("old") says nothing of what is meant
    spoken = (asked.keys() & _article_stems(row["id"]) for row, _share in ranked[:5])
    return max((sum(asked[one] for one in shared) for shared in spoken), default=0.0) / total


def article(article_id: str) -> Passage | None:
    """The whole article of this id, summary and body, with a score of 1; None where there is none."""
    row = connection().execute("select * from articles where id = ?", (article_id,)).fetchone()
    return _article_passage(row, f"{row['summary']}\n\n{row['body']}", 1.0) if row else None


def claim(claim_id: str) -> Passage | None:
    """The checked claim of this id with its verdict and a score of 1; None where there is none."""
    row = connection().execute("select * from claims where id = ?", (claim_id,)).fetchone()
    return _claim_passage(row, 1.0) if row else None


def claim_proof(claim_id: str) -> dict[str, Any] | None:
    """The sum behind a claim's verdict: expr, inputs, result, unit, claimed; None where no arithmetic decides."""
    row = connection().execute("select proof from claims where id = ?", (claim_id,)).fetchone()
    return json.loads(row["proof"]) if row and row["proof"] else None


def _articles(query: str, said: list[str], limit: int) -> list[Passage]:
    ranked, none = _ranked(query)
    if not ranked:
        return []
    asked = [*_telling(said), *meant(query, said)]
    fit = _fit(ranked[0][1], none, _coverage(said, ranked))
    if fit < _FLOOR:
        return []
    top = 1.0 / (1.0 + math.exp(-fit)) / ranked[0][1]
    return [_article_passage(row, _best_text(row, asked), top * share) for row, share in ranked[:limit]]


def _fit(share: float, none: float, coverage: float) -> float:
    """Log odds that the best article answers: against the topic "none", moved by how many of the words are known."""
    return math.log((share + 1e-9) / (none + 1e-9)) + _COVERAGE_WEIGHT * (coverage - _COVERAGE_MIDDLE)


def _ranked(query: str) -> tuple[list[tuple[sqlite3.Row, float]], float]:
    """All articles with the share that the topic model gives each, best first, and the share of none of them."""
    counts, letters = term_counts(query, synonyms()), run_counts(query)
    place, rare, weights = _model()
    values = weighted(counts, rare) | weighted(letters, rare)
    if not values:
        return [], 1.0
    rows = weights[[place[feature] for feature in values]].astype(np.float32)
    shares = softmax(np.array(list(values.values()), dtype=np.float32) @ rows)
    places: npt.NDArray[np.intp] = np.argsort(-shares[:-1], kind="stable")
    articles = _rows()
    return [(articles[place], float(shares[place])) for place in places], float(shares[-1])


@lru_cache(maxsize=1)
def _model() -> tuple[dict[str, int], dict[str, float], npt.NDArray[np.float16]]:
    """The topic model: the row of each feature, its rarity, and the weights (features × (articles + 1))."""
    row = connection().execute("select features, rarity, weights from topic_model").fetchone()
    features = row["features"].split("\n")
    rare = np.frombuffer(row["rarity"], dtype=np.float32).tolist()
    weights = np.frombuffer(row["weights"], dtype=np.float16).reshape(len(features), -1)
    return {feature: number for number, feature in enumerate(features)}, dict(zip(features, rare, strict=True)), weights


@lru_cache(maxsize=1)
def _rows() -> tuple[sqlite3.Row, ...]:
    """The articles in the order of the topic model's columns."""
    return tuple(connection().execute("select * from articles order by rowid"))


@lru_cache(maxsize=256)
def _article_stems(article_id: str) -> frozenset[str]:
    row = connection().execute("select stems from articles where id = ?", (article_id,)).fetchone()
    return frozenset(row["stems"].split())


@lru_cache(maxsize=256)
def _blocks(article_id: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """The blocks of an article's body with their stems."""
    row = connection().execute("select blocks from articles where id = ?", (article_id,)).fetchone()
    return tuple((block, frozenset(stems.split())) for block, stems in json.loads(row["blocks"]))


def _best_text(row: sqlite3.Row, words: list[str]) -> str:
    """The summary and the one block of the body that speaks most of the query's words."""
    stems = {stem(word) for word in words}
    rare = rarity("articles")
    best, best_score = "", 0.0
    for block, said in _blocks(row["id"]):
        score = sum(rare.get(word, 0.0) for word in stems & said)
        if score > best_score:
            best, best_score = block, score
    return f"{row['summary']}\n\n{best}" if best else str(row["summary"])


def _article_passage(row: sqlite3.Row, text: str, score: float) -> Passage:
    sources = tuple(json.loads(row["sources"]))
    return Passage(row["id"], row["title"], text, "article", sources, row["as_of"], score)


def _claim_passage(row: sqlite3.Row, score: float) -> Passage:
    sources = tuple(json.loads(row["sources"]))
    return Passage(row["id"], row["claim"], row["sum"], "claim", sources, row["as_of"], score, row["verdict"])


def _telling(every: list[str]) -> list[str]:
    """The words without bare numbers and sizes ("48", "7b", "24gb"), which say how much but not of what."""
    telling = [word for word in every if not _SIZE.fullmatch(word)]
    return telling if len(telling) >= 2 else every
