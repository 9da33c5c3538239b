"""The price book: dated offers, cleaned, as typed rows and as columns for searches over all of them.

The snapshot ships with the knowledge base; a surface may lay cached live offers over it (``set_overlay``). The book
never reads a clock: what day it is, it is told, else it takes the day on which the snapshot was compiled.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from knowledge.price_rules import superseded
from knowledge.regions import is_anywhere, lies_in
from knowledge.store import connection
from knowledge.types import Billing, Offer

SNAPSHOT_DATE = "2026-11-30"  # the day on which the observations were compiled (sources.yaml)
FRESH_DAYS = 1  # served as they are
LIVE_DAYS = 30  # beyond this a price is never called live
# What an asker's word for billing takes in: machines that stay, whoever owns them, are "on demand".
KINDS: dict[str, tuple[Billing, ...]] = {
    "on_demand": ("on_demand", "secure", "community"),
    "firm": ("on_demand", "secure"),
    "spot": ("spot",),
    "community": ("community",),
    "secure": ("secure",),
    "reserved_1y": ("reserved_1y",),
    "reserved_3y": ("reserved_3y",),
}


@dataclass(frozen=True, slots=True)
class Columns:
    """Parallel arrays, one entry an offer; ``offers[i]`` is the row itself."""

    offers: tuple[Offer, ...]
    gpu_id: NDArray[np.str_]
    n_gpus: NDArray[np.float64]
    usd_per_gpu_hour: NDArray[np.float64]
    usd_per_hour: NDArray[np.float64]
    provider: NDArray[np.str_]
    provider_class: NDArray[np.str_]
    region: NDArray[np.str_]
    billing: NDArray[np.str_]
    observed: NDArray[np.str_]
    day: NDArray[np.datetime64]  # of ``observed``
    card: NDArray[np.intp]  # number of ``gpu_id`` among all of them in order
    source: NDArray[np.str_]
    instance_type: NDArray[np.str_]


class _Book:
    """Snapshot and overlay merged; rebuilt only when the overlay changes."""

    def __init__(self, live: Sequence[Offer] = ()) -> None:
        self.history: tuple[Offer, ...] = (*_snapshot(), *live)
        replaced = superseded(self.history)
        self.current = tuple(offer for offer, old in zip(self.history, replaced, strict=True) if not old)
        self.by_gpu: dict[str, list[Offer]] = defaultdict(list)
        for offer in self.current:
            self.by_gpu[offer.gpu_id].append(offer)
        self.columns: Columns | None = None


_LOCK = threading.Lock()
_STATE: dict[str, _Book] = {}
_CHANGES = [0]
_OVERLAY: dict[str, tuple[Callable[[], Iterable[Offer]], str | None]] = {}


def set_overlay(live: Iterable[Offer] | Callable[[], Iterable[Offer]] = (), today: str | None = None) -> None:
    """Lay live offers over the snapshot and say what day it is (ISO); with no arguments back to the bare snapshot.

    Nothing is read before a price is asked for; a function is called then.
    """
    rows = tuple(live) if not callable(live) else ()
    with _LOCK:
        _CHANGES[0] += 1
        _OVERLAY["overlay"] = (live if callable(live) else lambda: rows, today)
        _STATE.clear()


def version() -> int:
    """A number that changes with the overlay and the day: as long as it stays, so does every price and age."""
    return _CHANGES[0]


def today() -> str:
    """The ISO day that ages are counted from: as ``set_overlay`` was told, else the day of the snapshot.
    Never a clock.
    """
    return _OVERLAY.get("overlay", (tuple, None))[1] or SNAPSHOT_DATE


def age_days(offer: Offer) -> int:
    """Whole days from when the offer was seen until ``today()``; 0 for one seen later."""
    return max(0, (date.fromisoformat(today()) - date.fromisoformat(offer.observed)).days)


def offers(
    gpu_id: str | None = None,
    provider: str | None = None,
    region: str | None = None,
    billing: str | None = None,
    history: bool = False,
) -> list[Offer]:
    """Offers that match, the newest of each machine only unless ``history``; ``billing`` as in ``KINDS``.

    A region matches by area or by part of its name (``regions.lies_in``); offers without one always do.
    """
    book = _book()
    rows: Iterable[Offer]
    if history:
        rows = (row for row in book.history if gpu_id is None or row.gpu_id == gpu_id)
    else:
        rows = book.current if gpu_id is None else book.by_gpu.get(gpu_id, ())
    kinds = KINDS.get(billing, (billing,)) if billing else None
    return [
        row
        for row in rows
        if (provider is None or row.provider == provider)
        and (kinds is None or row.billing in kinds)
        and (not region or is_anywhere(row.region) or lies_in(row.region, region))
    ]


def snapshot() -> tuple[Offer, ...]:
    """The offers that ship with the package, current and past, without any overlay."""
    return _snapshot()


def columns() -> Columns:
    """Every current offer as parallel arrays of length n, USD per hour; built once for each overlay, so do not write
    into them.
    """
    book = _book()
    if book.columns is None:
        rows = book.current

        def text(name: str) -> NDArray[np.str_]:
            return np.array([getattr(row, name) for row in rows])

        def number(name: str) -> NDArray[np.float64]:
            return np.array([getattr(row, name) for row in rows], dtype=np.float64)

        gpu_ids, observed = text("gpu_id"), text("observed")
        book.columns = Columns(
            offers=rows,
            gpu_id=gpu_ids,
            n_gpus=number("n_gpus"),
            usd_per_gpu_hour=number("usd_per_gpu_hour"),
            usd_per_hour=number("usd_per_hour"),
            provider=text("provider"),
            provider_class=text("provider_class"),
            region=text("region"),
            billing=text("billing"),
            observed=observed,
            day=observed.astype("datetime64[D]"),
            card=np.unique(gpu_ids, return_inverse=True)[1],
            source=text("source"),
            instance_type=text("instance_type"),
        )
    return book.columns


def kept_out(gpu_name: str | None = None) -> list[tuple[str, str]]:
    """(what the observation said, why it was kept out) for a GPU name as observed, or all."""
    rows = connection().execute("select * from prices_rejected order by rowid")
    found = [(f"{r['provider']} {r['gpu']} {r['usd_per_gpu_hour']}", str(r["reason"]), str(r["gpu"])) for r in rows]
    return [(what, why) for what, why, gpu in found if gpu_name is None or gpu == gpu_name]


def _book() -> _Book:
    book = _STATE.get("book")
    if book is None:
        with _LOCK:
            live, _day = _OVERLAY.get("overlay", (tuple, None))
            book = _STATE["book"] = _STATE.get("book") or _Book(tuple(live()))
    return book


@lru_cache(maxsize=1)
def _snapshot() -> tuple[Offer, ...]:
    out = []
    for row in connection().execute("select rowid as number, * from prices order by rowid"):
        out.append(
            Offer(
                id=int(row["number"]),
                provider=row["provider"],
                instance_type=row["instance_type"],
                gpu_id=row["gpu_id"],
                n_gpus=int(row["n_gpus"]),
                region=row["region"],
                billing=row["billing"],
                usd_per_hour=float(row["usd_per_hour"]),
                usd_per_gpu_hour=float(row["usd_per_gpu_hour"]),
                observed=row["observed"],
                source=row["source"],
                locator=row["locator"],
                vcpus=float(row["vcpus"]) if row["vcpus"] else None,
                ram_gb=float(row["ram_gb"]) if row["ram_gb"] else None,
                warnings=tuple(part for part in row["warnings"].split("; ") if part),
                provider_class=row["provider_class"],
            )
        )
    return tuple(out)
