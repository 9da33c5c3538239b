"""Resolving what people call things: exact aliases first, then "did you mean", never a silent wrong match."""

from __future__ import annotations

from functools import lru_cache

from rapidfuzz import fuzz, process

from knowledge.errors import UnknownName
from knowledge.store import connection


def find_id(kind: str, asked: str) -> str | None:
    """The id whose alias is ``asked`` (case-folded), or None."""
    row = (
        connection()
        .execute("select id from names where kind = ? and name = ?", (kind, " ".join(asked.casefold().split())))
        .fetchone()
    )
    return str(row["id"]) if row else None


@lru_cache(maxsize=8)
def all_names(kind: str) -> dict[str, str]:
    """Every alias of a kind with the id it stands for."""
    rows = connection().execute("select name, id from names where kind = ?", (kind,))
    return {str(row["name"]): str(row["id"]) for row in rows}


def candidates(kind: str, asked: str, limit: int = 4) -> list[str]:
    """The ids whose names are most like ``asked``, best first."""
    names = all_names(kind)
    found = process.extract(asked.casefold()[:80], names.keys(), scorer=fuzz.WRatio, limit=limit * 6, score_cutoff=60)
    return list(dict.fromkeys(names[name] for name, _score, _index in found))[:limit]


def unknown(kind: str, asked: str, field: str, hint: str) -> UnknownName:
    """The error for a name that is not held."""
    word = kind.removesuffix("s")
    return UnknownName(
        f"unknown_{word}",
        f"I do not know a {word} called {asked[:60]!r}.",
        field=field,
        hint=hint,
        candidates=candidates(kind, asked),
    )
