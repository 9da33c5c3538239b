"""Find articles and checked claims for what somebody typed: ``search(query, limit)``.

Any string is a query and none is an error. The words of the query, and what the synonyms file says they mean, go into
one FTS5 query ranked by BM25 with the title and the synonyms weighing most; a word that the articles never use is
replaced by the nearest one they do (people mistype). A checked claim is returned where the query restates it: enough
of its words, weighted by rarity, and at least one of its numbers where both have some.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
import threading
import unicodedata
from functools import lru_cache
from typing import Any

from rapidfuzz import fuzz, process

from knowledge.store import connection
from knowledge.types import Passage

MAX_QUERY_CHARS = 2000  # a question is short; what follows is a pasted log
MAX_WORDS = 48
# Column weights of BM25: title, summary, synonyms, body. The synonyms are what people call the article's subject.
_WEIGHTS = (4.0, 3.0, 5.0, 1.0)
_CLAIM_FLOOR = 0.52  # share of rarity-weighted words that claim and query have in common (F1) to call it a restatement
_RARE = 0.8  # of the greatest rarity: a word of at most two articles or so
_TELLING_SHARE = 0.6  # of the greatest rarity that a sentence's new words must weigh to be worth adding
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n")
_SHORTEST, _LONGEST = 25, 320  # characters of a sentence worth quoting alone
_ARTICLE_FLOOR = 1.0  # BM25 below which only words that every article uses were shared
_TELLING_WEIGHT = 9.0  # rarity in common (three rare words) from which a claim may be found inside longer talk
_STOP = frozenset(
    """
    a about above after again all also am an and any are as at be because been being but by can cannot could did do
    does doing don done dont either else enough every few for from get gets got had has have he her here hers him
    his how i if im in into is isn isnt it its itself just ll let like lot made make makes many may me might more
    most much must my need needs no nor not now of off ok on one only or other our out over own please put re really
    right s same say says see shall she should so some still such t take tell than thanks that the their them then
    there these they thing this those though through to too under until up us use used using ve very want was way we
    well were what when where which while who why will with within without wont would yes yet you your
    """.split()  # noqa: SIM905  a list of 150 strings reads worse
)
_WORD = re.compile(r"[^\W_]+(?:\.\d+)?")
_UNIT_WORDS = frozenset(["gb", "gib", "tb", "b", "k", "m", "x", "h", "tflops", "hour", "hours", "usd", "w", "kw"])
_SIZE = re.compile(r"\d+(?:\.\d+)?(?:x|m|b|t|gb|gib|tb|mb|g|h|hours|days|min|ms|usd|eur)?")
Amount = tuple[float, str]
_UNIT_NAMES = {"hours": "h", "hour": "h", "bn": "b", "billion": "b", "million": "m", "times": "x"}
_LOCAL = threading.local()
_NUMBER = re.compile(
    r"(?<![\w.,])((?:\d+(?:,\d{3})+|\d+)?(?:\.\d+)?)(?=[\D]|$)(?:\s*[-–]\s*((?:\d+)(?:\.\d+)?))?"
    r"\s*(%|x\b|times|tb/s|gb/s|gb|tb|kw|w\b|tflops|hours?|h\b|min|b\b|bn|billion|k\b|m\b|million)?"
)


def search(query: str, limit: int = 5) -> list[Passage]:
    """Passages best first: checked claims that the query restates, then articles; empty when nothing is close."""
    words = _words(query)
    if not words or limit < 1:
        return []
    claims = _claims(query, words)[: max(1, limit // 2)]
    return [*claims, *_articles(query, words, limit - len(claims))]


def telling_sentence(query: str, passage: Passage) -> str | None:
    """The sentence of an article's passage that speaks of words of the query which its summary does not; else None.

    Of prose and lists only: a row of a table or a line of code says nothing alone.
    """
    summary, _, block = passage.text.partition("\n\n")
    if passage.kind != "article" or not block or block.startswith(("|", "`")):
        return None
    words = _telling(_words(query))
    asked = {_stem(word) for word in [*words, *_meant(query, words)]}
    missing = asked - {_stem(word) for word in _words(summary, limit=400)}
    rarity = _article_rarity()
    best, best_score = None, _TELLING_SHARE * max(rarity.values(), default=1.0)
    for sentence in _SENTENCE_END.split(re.sub(r"(?m)^(?:[-*]|\d+\.)\s+", "", block)):
        said = {_stem(word) for word in _words(sentence, limit=200)}
        score = sum(rarity.get(stem, 0.0) for stem in missing & said)
        if score > best_score and _SHORTEST <= len(sentence) <= _LONGEST:
            best, best_score = " ".join(sentence.replace("**", "").split()), score
    return best


def closeness(query: str) -> float:
    """How much of what the query says one article speaks of, 0 to 1: its words there, each weighing by its rarity.

    Words that no article uses weigh most, so that "the capital of Peru" is far although "capital" is known here.
    """
    words = _words(query)
    if not words:
        return 0.0
    rarity = _article_rarity()
    top = max(rarity.values(), default=1.0)
    asked = {_stem(word): rarity.get(_stem(word), 1.5 * top) for word in _telling(words)}
    for said, means in _synonyms():
        if f" {said} " in f" {' '.join(words)} ":
            asked |= {_stem(word): 0.0 for word in _WORD.findall(said)}
            asked |= {_stem(word): rarity.get(_stem(word), top) for word in _WORD.findall(means)}
    total = sum(asked.values())
    if not total or (len(words) == 1 and rarity.get(_stem(words[0]), 0.0) < _RARE * top):
        return 0.0  # one common word ("old") says nothing of what is meant
    best = max(
        (
            sum(asked[stem] for stem in asked.keys() & _article_stems(passage.id))
            for passage in _articles(query, words, 5)
        ),
        default=0.0,
    )
    return best / total


def article(article_id: str) -> Passage | None:
    """The whole article of this id."""
    row = connection().execute("select * from articles where id = ?", (article_id,)).fetchone()
    return _article_passage(row, f"{row['summary']}\n\n{row['body']}", 1.0) if row else None


def claim(claim_id: str) -> Passage | None:
    """The checked claim of this id."""
    row = connection().execute("select * from claims where id = ?", (claim_id,)).fetchone()
    return _claim_passage(row, 1.0) if row else None


def claim_proof(claim_id: str) -> dict[str, Any] | None:
    """The sum behind a claim's verdict: expr, inputs, result, unit, claimed; None where no arithmetic decides."""
    row = connection().execute("select proof from claims where id = ?", (claim_id,)).fetchone()
    return json.loads(row["proof"]) if row and row["proof"] else None


def _articles(query: str, words: list[str], limit: int) -> list[Passage]:
    asked = [*_telling(words), *_meant(query, words)]
    rows = connection().execute(
        f"""select articles.*, bm25(articles_fts, {", ".join(map(str, _WEIGHTS))}) as rank
            from articles_fts join articles on articles.rowid = articles_fts.rowid
            where articles_fts match ? order by rank limit ?""",
        (_match(asked), limit),
    )
    stems = {_stem(word) for word in asked}
    return [
        _article_passage(row, _best_text(row, asked), -float(row["rank"]))
        for row in rows
        if -row["rank"] > _ARTICLE_FLOOR or len(stems & _article_stems(row["id"])) >= 2
    ]


@lru_cache(maxsize=256)
def _article_stems(article_id: str) -> frozenset[str]:
    row = connection().execute("select * from articles where id = ?", (article_id,)).fetchone()
    text = " ".join((row["title"], row["summary"], row["synonyms"], row["body"]))
    return frozenset(_stem(word) for word in _words(text, limit=2000))


@lru_cache(maxsize=256)
def _blocks(article_id: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """The blocks of an article's body with their stems."""
    row = connection().execute("select body from articles where id = ?", (article_id,)).fetchone()
    blocks = [block.strip() for block in re.split(r"\n\s*\n", row["body"]) if block.strip()]
    return tuple((block, frozenset(_stem(word) for word in _words(block, limit=400))) for block in blocks)


def _claims(query: str, words: list[str]) -> list[Passage]:
    asked_words = [*_claim_words(query), *_meant(query, words)]
    rows = connection().execute(
        """select claims.*, bm25(claims_fts, 3.0, 2.0, 0.3) as rank
           from claims_fts join claims on claims.rowid = claims_fts.rowid
           where claims_fts match ? order by rank limit 20""",
        (_match([*words, *asked_words]),),
    )
    asked, numbers = {_stem(word) for word in asked_words}, _numbers(query)
    scored = []
    for row in rows:
        said, stated, figures = _statement(row["claim"], row["figures"])
        if len(asked & said) < 2 and not _agreed(numbers, figures):
            continue  # "what is QLoRA?" restates nothing that was claimed of it
        score = _restates(asked, said) + _same_numbers(numbers, stated, figures)
        if score >= _CLAIM_FLOOR:
            scored.append((score, row))
    scored.sort(key=lambda pair: -pair[0])
    return [_claim_passage(row, score) for score, row in scored]


@lru_cache(maxsize=512)
def _statement(claim_text: str, figures: str) -> tuple[frozenset[str], frozenset[Amount], frozenset[Amount]]:
    """The stems of a claim, all its amounts, and those that are its point."""
    stated = f"{claim_text} {figures}"
    return (
        frozenset(_stem(word) for word in _claim_words(stated)),
        frozenset(_numbers(stated)),
        frozenset(_numbers(figures)),
    )


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
        if (value, unit) in asked
        or (value > 10 and any(value == other and "" in (unit, theirs) for other, theirs in asked))
    }


def _claim_words(text: str) -> list[str]:
    """Content words with sizes taken apart ("80GB": 80 and gb) and numbers left out: they are compared as numbers."""
    parted = re.sub(r"(?<=\d)x?(?=[a-z])", " ", text[:MAX_QUERY_CHARS].casefold())
    return [word for word in _words(parted) if not word[0].isdigit() and word not in _UNIT_WORDS]


def _restates(asked: set[str], said: frozenset[str]) -> float:
    """How far one word set restates the other, 0 to 1, each word weighing as much as it is rare.

    F1 of the two, or a little less than the share of the claim that is covered: people wrap a claim in other talk.
    """
    rarity = _claim_rarity()
    top = max(rarity.values(), default=1.0)

    def weight(some: set[str] | frozenset[str]) -> float:
        return sum(rarity.get(word, top) for word in some)

    shared, mine, theirs = weight(asked & said), weight(asked), weight(said)
    if not shared:
        return 0.0
    return max(2 * shared / (mine + theirs), 0.75 * shared / theirs if shared > _TELLING_WEIGHT else 0.0)


def _best_text(row: sqlite3.Row, words: list[str]) -> str:
    """The summary and the one block of the body that speaks most of the query's words."""
    stems = {_stem(word) for word in words}
    rarity = _article_rarity()
    best, best_score = "", 0.0
    for block, said in _blocks(row["id"]):
        score = sum(rarity.get(word, 0.0) for word in stems & said)
        if score > best_score:
            best, best_score = block, score
    return f"{row['summary']}\n\n{best}" if best else str(row["summary"])


def _article_passage(row: sqlite3.Row, text: str, score: float) -> Passage:
    sources = tuple(json.loads(row["sources"]))
    return Passage(row["id"], row["title"], text, "article", sources, row["as_of"], score)


def _claim_passage(row: sqlite3.Row, score: float) -> Passage:
    sources = tuple(json.loads(row["sources"]))
    return Passage(row["id"], row["claim"], row["sum"], "claim", sources, row["as_of"], score, row["verdict"])


def _words(text: str, limit: int = MAX_WORDS) -> list[str]:
    """Content words, lower case, in order, each once."""
    cleaned = unicodedata.normalize("NFKC", text[:MAX_QUERY_CHARS]).casefold().replace("'", "")
    found = (word for word in _WORD.findall(cleaned) if word not in _STOP)
    return list(dict.fromkeys(found))[:limit]


def _meant(query: str, words: list[str]) -> list[str]:
    """What the query's words and phrases are called in the articles, and mistyped words put right."""
    cleaned = " " + " ".join(_WORD.findall(unicodedata.normalize("NFKC", query[:MAX_QUERY_CHARS]).casefold())) + " "
    meant: list[str] = []
    for said, means in _synonyms():
        if f" {said} " in cleaned:
            meant.extend(_WORD.findall(means))
    vocabulary = _article_rarity()
    for word in words:
        if len(word) >= 5 and word.isalpha() and _stem(word) not in vocabulary:
            near = process.extractOne(word, _long_words(), scorer=fuzz.ratio, score_cutoff=80)
            if near:
                meant.append(near[0])
    return [word for word in dict.fromkeys(meant) if word not in words]


def _telling(words: list[str]) -> list[str]:
    """The words without bare numbers and sizes ("48", "7b", "24gb"), which say how much but not of what."""
    telling = [word for word in words if not _SIZE.fullmatch(word)]
    return telling if len(telling) >= 2 else words


def _numbers(text: str) -> set[Amount]:
    """The amounts of a text with their unit, if any; numbers inside names (H100, FP8) do not count."""
    named = re.sub(r"\d+\s*gbe\b", " ", text[:MAX_QUERY_CHARS].casefold())
    spaced = re.sub(r"(?<=\d)[x×@](?=\w)|(?<=\d) [x×@] (?=\d)", " ", named)
    found: set[Amount] = set()
    for low, high, unit in _NUMBER.findall(spaced):
        name = _UNIT_NAMES.get(unit, unit)
        found |= {(float(value.replace(",", "")), name) for value in (low, high) if value}
    return found


def _match(words: list[str]) -> str:
    """An FTS5 expression that cannot be malformed: quoted words joined by OR."""
    return " OR ".join('"' + word.replace('"', "") + '"' for word in words)


@lru_cache(maxsize=1)
def _synonyms() -> list[tuple[str, str]]:
    rows = connection().execute("select said, meant from synonyms")
    return [(" ".join(_WORD.findall(row["said"])), row["meant"]) for row in rows]


@lru_cache(maxsize=1)
def _article_rarity() -> dict[str, float]:
    return _rarity("articles")


@lru_cache(maxsize=1)
def _claim_rarity() -> dict[str, float]:
    return _rarity("claims")


@lru_cache(maxsize=1)
def _long_words() -> list[str]:
    return [word for word in _article_rarity() if len(word) >= 5 and word.isalpha()]


def _rarity(table: str) -> dict[str, float]:
    """Inverse document frequency of every stem of the table's index."""
    total = connection().execute(f"select count(*) from {table}").fetchone()[0]
    rows = connection().execute(f"select term, doc from {table}_words")
    return {row["term"]: math.log(1 + total / row["doc"]) for row in rows}


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    """The stem as the index holds it: asked of FTS5 itself, so that there is one stemmer."""
    db: sqlite3.Connection | None = getattr(_LOCAL, "stemmer", None)
    if db is None:
        db = _LOCAL.stemmer = sqlite3.connect(":memory:", isolation_level=None)
        db.execute("create virtual table one using fts5(word, tokenize='porter unicode61')")
        db.execute("create virtual table terms using fts5vocab(one, row)")
    db.execute("delete from one")
    db.execute("insert into one values (?)", (word,))
    row = db.execute("select term from terms limit 1").fetchone()
    return str(row[0]) if row else word
