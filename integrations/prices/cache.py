"""Fetched prices in one small SQLite file: the current rows, their history, and how each fetch went."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

from advisor.settings import data_folder
from knowledge.price_rules import Observation
from knowledge.types import Billing, Offer, ProviderClass

FIRST_ID = 1_000_000  # ids of cached offers start here, above those of the snapshot
_KEY = ("source", "provider", "instance_type", "gpu_id", "n_gpus", "region", "billing")
_REST = ("provider_class", "usd_per_hour", "usd_per_gpu_hour", "observed", "locator", "vcpus", "ram_gb", "warnings")
_SCHEMA = f"""
create table if not exists offers ({", ".join(_KEY + _REST)}, primary key ({", ".join(_KEY)}));
create table if not exists history ({", ".join(_KEY + _REST)}, primary key ({", ".join(_KEY)}, observed));
create table if not exists fetches (source, at, status, code, message, rows, dropped);
create table if not exists etags (source, url, etag, primary key (source, url));
create table if not exists leases (name primary key, until);
"""

Key = tuple[str, str, str, int, str, str]  # all of _KEY but the source


@dataclass(frozen=True, slots=True)
class Fetch:
    """How the last fetch of a source went."""

    source: str
    at: str  # ISO time, UTC
    status: str
    code: str
    message: str
    rows: int
    dropped: dict[str, int]


def cache_path() -> Path:
    """Where fetched prices are kept: ADVISOR_PRICE_CACHE, or beside the conversations."""
    given = os.environ.get("ADVISOR_PRICE_CACHE", "").strip()
    return Path(given).expanduser() if given else data_folder() / "prices.db"


class Cache:
    """The file; a connection a call, so that any thread may use it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self) -> bool:
        """Whether anything was ever fetched, that is, whether the file is there; reading makes none."""
        return self.path.exists()

    def current(self, source: str | None = None) -> dict[Key, Observation]:
        """The rows in force, by key without the source, of one source or of all; {} before a fetch. Makes the file if
        need be.
        """
        with self._open() as db:
            where, values = (" where source = ?", (source,)) if source else ("", ())
            return {key(row): row for row in map(_row, db.execute(f"select * from offers{where}", values))}

    def offers(self) -> list[Offer]:
        """Everything fetched, current and past, as offers of the price book, oldest first; [] before any, without
        making the file.
        """
        if not self.exists():
            return []
        with self._open() as db:
            rows = [_row(row) for row in db.execute("select * from history order by observed, rowid")]
        return [offer(row, FIRST_ID + number) for number, row in enumerate(rows)]

    def put(self, source: str, rows: Iterable[Observation]) -> None:
        """Put these rows in force for a source and remember them; what it no longer offers stays in the history."""
        with self._open() as db, db:
            db.execute("delete from offers where source = ?", (source,))
            values = [_values(row) for row in rows]
            marks = ", ".join("?" * len(_KEY + _REST))
            for table in ("offers", "history"):
                db.executemany(f"insert or replace into {table} values ({marks})", values)

    def seen_again(self, source: str, day: str) -> int:
        """The source says that nothing changed: its rows in force were seen on the ISO day ``day`` too. Returns how
        many.
        """
        rows = list(self.current(source).values())
        self.put(source, [replace(row, observed=day) for row in rows])
        return len(rows)

    def log(self, fetch: Fetch) -> None:
        """Write down how a fetch went; only the last hundred of a source are kept."""
        with self._open() as db, db:
            values = (
                fetch.source,
                fetch.at,
                fetch.status,
                fetch.code,
                fetch.message,
                fetch.rows,
                json.dumps(fetch.dropped),
            )
            db.execute("insert into fetches values (?, ?, ?, ?, ?, ?, ?)", values)
            db.execute(
                "delete from fetches where source = ? and rowid not in"
                " (select rowid from fetches where source = ? order by rowid desc limit 100)",
                (fetch.source, fetch.source),
            )

    def last_fetches(self) -> dict[str, Fetch]:
        """How the last fetch of each source went, by source; {} before any, without making the file."""
        if not self.exists():
            return {}
        with self._open() as db:
            rows = db.execute("select * from fetches where rowid in (select max(rowid) from fetches group by source)")
            return {row["source"]: Fetch(**{**dict(row), "dropped": json.loads(row["dropped"])}) for row in rows}

    def newest_good(self) -> datetime | None:
        """When a source was last read well (UTC; "unchanged" counts); None before any, without making the file."""
        if not self.exists():
            return None
        with self._open() as db:
            found = db.execute("select max(at) from fetches where status in ('ok', 'unchanged')").fetchone()[0]
        return datetime.fromisoformat(found) if found else None

    def etags(self, source: str) -> dict[str, str]:
        """ETags by URL as the source last sent them; {} before any. Makes the file if need be."""
        with self._open() as db:
            return {row["url"]: row["etag"] for row in db.execute("select * from etags where source = ?", (source,))}

    def keep_etags(self, source: str, etags: Mapping[str, str]) -> None:
        """Write ETags by URL down for the next fetch of this source; those of other URLs stay."""
        with self._open() as db, db:
            db.executemany("insert or replace into etags values (?, ?, ?)", [(source, *item) for item in etags.items()])

    @contextmanager
    def lease(self, name: str, now: datetime, seconds: float) -> Iterator[bool]:
        """True while this caller alone holds ``name``; a holder that died is forgotten after ``seconds``."""
        until = (now + timedelta(seconds=seconds)).isoformat()
        with self._open() as db:
            db.isolation_level = None
            db.execute("begin immediate")
            held = db.execute("select until from leases where name = ?", (name,)).fetchone()
            mine = held is None or held["until"] < now.isoformat()
            if mine:
                db.execute("insert or replace into leases values (?, ?)", (name, until))
            db.execute("commit")
        try:
            yield mine
        finally:
            if mine:
                with self._open() as db, db:
                    db.execute("delete from leases where name = ? and until = ?", (name, until))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self.path, timeout=5.0)) as db:
            db.row_factory = sqlite3.Row
            db.execute("pragma journal_mode = wal")
            db.executescript(_SCHEMA)
            yield db


def key(row: Observation) -> Key:
    """What makes two observations the same offer on different days."""
    return (row.provider, row.instance_type, row.gpu_id, int(row.n_gpus), row.region, row.billing)


def offer(row: Observation, number: int) -> Offer:
    """An observation, already cleaned, as a live offer of the price book, its id ``number``; prices in USD per hour, of
    the machine and of a GPU.
    """
    return Offer(
        id=number,
        provider=row.provider,
        instance_type=row.instance_type,
        gpu_id=row.gpu_id,
        n_gpus=int(row.n_gpus),
        region=row.region,
        billing=row.billing,
        usd_per_hour=row.usd_per_hour,
        usd_per_gpu_hour=row.usd_per_gpu_hour,
        observed=row.observed,
        source=row.source,
        locator=row.locator,
        vcpus=row.vcpus,
        ram_gb=row.ram_gb,
        warnings=row.warnings,
        provider_class=row.provider_class,
        live=True,
    )


def _values(row: Observation) -> tuple[object, ...]:
    rest = (
        row.provider_class,
        row.usd_per_hour,
        row.usd_per_gpu_hour,
        row.observed,
        row.locator,
        row.vcpus,
        row.ram_gb,
    )
    return (row.source, *key(row), *rest, "; ".join(row.warnings))


def _row(row: sqlite3.Row) -> Observation:
    return Observation(
        provider=row["provider"],
        instance_type=row["instance_type"],
        gpu=row["gpu_id"],
        n_gpus=float(row["n_gpus"]),
        gpu_memory_gb=None,
        region=row["region"],
        billing=cast(Billing, row["billing"]),
        usd_per_hour=row["usd_per_hour"],
        usd_per_gpu_hour=row["usd_per_gpu_hour"],
        observed=row["observed"],
        source=row["source"],
        locator=row["locator"],
        vcpus=row["vcpus"],
        ram_gb=row["ram_gb"],
        gpu_id=row["gpu_id"],
        provider_class=cast(ProviderClass, row["provider_class"]),
        warnings=tuple(part for part in row["warnings"].split("; ") if part),
    )
