"""Live prices: sources over HTTP, a cache with history, and the overlay on the price book.

Policy: a cache read within a day is fresh; an older one is served with its dates while a refresh runs behind; a price
over 30 days old is never called live (``tools.prices.freshness``). Nothing is fetched unless prices were asked for
once (``advisor prices refresh``), and never with ADVISOR_OFFLINE.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path


def attach(
    path: Path | None = None,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    background: bool = False,
) -> int:
    """Lay the cached offers over the price book and tell it the day; how many there are.

    With ``background``, a cache older than a day is refreshed behind the answer, where there is one.
    """
    from integrations.prices.cache import Cache
    from integrations.prices.refresh import FRESH, cache_path, refresh
    from knowledge import prices

    cache = Cache(path or cache_path())
    offers = cache.offers()
    prices.set_overlay(offers, today=now().date().isoformat())
    newest = cache.newest_good()
    if background and newest is not None and now() - newest > FRESH and not _offline():

        def behind() -> None:
            if refresh(cache=cache, now=now).good:
                prices.set_overlay(cache.offers(), today=now().date().isoformat())

        threading.Thread(target=behind, name="prices-refresh", daemon=True).start()
    return len(offers)


def _offline() -> bool:
    from advisor.settings import get_settings

    return get_settings().offline
