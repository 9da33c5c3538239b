"""Where facts come from, by id."""

from __future__ import annotations

import json
from functools import lru_cache

from knowledge.store import connection
from knowledge.types import Source


def source(source_id: str) -> Source:
    """The source with exactly this id; KeyError when there is none (a data test makes sure that there is)."""
    return all_sources()[source_id]


@lru_cache(maxsize=1)
def all_sources() -> dict[str, Source]:
    """Every source by its id, in file order; read once and cached."""
    rows = connection().execute("select record from sources order by rowid")
    found = (Source(**json.loads(row["record"])) for row in rows)
    return {one.id: one for one in found}
