"""Words of a text: split, filtered, stemmed. One place, so that build and search agree on what a word is."""

from __future__ import annotations

import re
import sqlite3
import threading
import unicodedata
from functools import lru_cache

MAX_QUERY_CHARS = 2000  # a question is short; what follows is a pasted log
MAX_WORDS = 48
WORD = re.compile(r"[^\W_]+(?:\.\d+)?")
STOP = frozenset(
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
_LOCAL = threading.local()


def folded(text: str) -> str:
    """The text in one shape: compatibility forms resolved, lower case, cut to what a question may be long."""
    return unicodedata.normalize("NFKC", text[:MAX_QUERY_CHARS]).casefold()


def words(text: str, limit: int = MAX_WORDS) -> list[str]:
    """Content words, folded to lower case, in order, each once, at most ``limit``; of a long text only the beginning is
    read.
    """
    found = (word for word in WORD.findall(folded(text).replace("'", "")) if word not in STOP)
    return list(dict.fromkeys(found))[:limit]


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
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
