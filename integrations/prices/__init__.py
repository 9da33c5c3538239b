"""Live prices: sources over HTTP, a cache with history, and the overlay on the price book.

Policy: a cache read within a day is fresh; an older one is served with its dates while a refresh runs behind; a price
over 30 days old is never called live (``tools.prices.freshness``). Nothing is fetched unless prices were asked for
once (``advisor prices refresh``), and never with ADVISOR_OFFLINE.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from advisor.settings import get_settings
from integrations.prices.cache import Cache, cache_path
from knowledge import prices

FRESH = timedelta(hours=24)
HOUR_SECONDS = 3600.0


def _now() -> datetime:
    return datetime.now(UTC)


def attach(
    path: Path | None = None, *, now: Callable[[], datetime] = _now, background: bool = False
) -> threading.Thread | None:
    """Lay the cached offers over the price book and tell it the day; the cache is read when a price is asked for.

    With ``background``, a cache older than a day is refreshed behind the answer; returns the thread that does it.
    """
    cache = Cache(path or cache_path())
    prices.set_overlay(cache.offers, today=now().date().isoformat())
    if not background or get_settings().offline:
        return None
    newest = cache.newest_good()
    if newest is None or now() - newest <= FRESH:
        return None

    def behind() -> None:
        from integrations.prices.refresh import refresh  # the HTTP client is paid for only when something is fetched

        if refresh(cache=cache, now=now).good:
            prices.set_overlay(cache.offers, today=now().date().isoformat())

    thread = threading.Thread(target=behind, name="prices-refresh", daemon=True)
    thread.start()
    return thread


@contextmanager
def attached(path: Path | None = None) -> Iterator[None]:
    """``attach`` now and every hour while a surface stays up; the bare snapshot afterwards."""
    stop = threading.Event()

    def hourly() -> None:
        while not stop.wait(HOUR_SECONDS):
            attach(path, background=True)

    attach(path, background=True)
    threading.Thread(target=hourly, name="prices-hourly", daemon=True).start()
    try:
        yield
    finally:
        stop.set()
        prices.set_overlay()
