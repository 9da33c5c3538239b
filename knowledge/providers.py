"""Who rents GPUs out: class, and what a bill holds beside the GPU-hours."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rapidfuzz import fuzz, process

from knowledge.errors import UnknownName
from knowledge.store import connection
from knowledge.types import ProviderClass


@dataclass(frozen=True, slots=True)
class Figure:
    """A dated side cost or condition; grade A: the provider's own page, B: a dated copy, C: one secondary page."""

    value: float
    unit: str
    as_of: str
    source: str
    grade: str
    note: str | None


@dataclass(frozen=True, slots=True)
class Provider:
    """A cloud, by the id that offers carry."""

    id: str
    title: str
    provider_class: ProviderClass
    aliases: tuple[str, ...]
    egress: Figure | None  # USD per GB to the internet, first tier
    storage: Figure | None  # USD per GB-month, the usual disk
    spot_notice: Figure | None  # seconds before a spot machine is taken
    billing_step: str | None
    note: str | None
    as_of: str


@lru_cache(maxsize=1)
def all_providers() -> tuple[Provider, ...]:
    """Every provider held, in file order; read once and cached."""
    rows = connection().execute("select record from providers order by rowid")
    return tuple(_provider(json.loads(row["record"])) for row in rows)


def find_provider(name: str, field: str = "provider") -> Provider:
    """The provider that people call ``name`` ("amazon", "vast", "Lambda Labs"). Raises UnknownName."""
    asked = " ".join(name.casefold().split())
    names = _names()
    if asked in names:
        return names[asked]
    squashed = "".join(c for c in asked if c.isalnum())
    for known, provider in names.items():
        if squashed and squashed == "".join(c for c in known if c.isalnum()):
            return provider
    found = process.extract(asked[:60], names.keys(), scorer=fuzz.WRatio, limit=8, score_cutoff=60)
    raise UnknownName(
        "unknown_provider",
        f"I hold no prices of a provider called {name[:60]!r}.",
        field=field,
        hint="Leave the provider out to see all of them.",
        candidates=list(dict.fromkeys(names[known].id for known, _score, _index in found))[:4],
    )


@lru_cache(maxsize=1)
def _names() -> dict[str, Provider]:
    out: dict[str, Provider] = {}
    for provider in all_providers():
        for name in (provider.id, provider.title.casefold(), *provider.aliases):
            out.setdefault(name, provider)
    return out


def _provider(row: dict[str, Any]) -> Provider:
    def figure(name: str) -> Figure | None:
        return Figure(**row[name]) if row.get(name) else None

    return Provider(
        id=row["id"],
        title=row["title"],
        provider_class=row["class"],
        aliases=tuple(row["aliases"]),
        egress=figure("egress"),
        storage=figure("storage"),
        spot_notice=figure("spot_notice"),
        billing_step=row.get("billing_step"),
        note=row.get("note"),
        as_of=row["as_of"],
    )
