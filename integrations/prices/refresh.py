"""Refresh the cached prices: one at a time, all sources in parallel, one failing source never loses the others."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from advisor.settings import get_settings
from integrations.net import NotModified, Policy, Session, SourceError
from integrations.prices.cache import Cache, Fetch, cache_path
from integrations.prices.gate import judge
from integrations.prices.source import Parsed, PriceSource
from integrations.prices.sources import SOURCES
from knowledge import prices
from knowledge.errors import BadValue, UnknownName

LEASE_SECONDS = 600.0
WORKERS = 8
_LOG = logging.getLogger(__name__)
_RUNNING = threading.Lock()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one source went: ok, unchanged, kept_old, failed or no_key."""

    source: str
    status: str
    rows: int = 0
    code: str = ""
    message: str = ""
    dropped: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """A whole refresh."""

    outcomes: tuple[Outcome, ...]
    already_running: bool = False

    @property
    def good(self) -> int:
        """How many sources were read well: new prices, or none changed since the last time."""
        return sum(one.status in ("ok", "unchanged") for one in self.outcomes)

    @property
    def tried(self) -> int:
        """How many sources could be asked at all, that is, did not lack a key."""
        return sum(one.status != "no_key" for one in self.outcomes)


def choose(names: Sequence[str]) -> list[PriceSource]:
    """The sources of these names ("azure" or "live-azure"), or those that a plain refresh asks for []. Raises
    UnknownName for a name that is none.
    """
    if not names:
        return [one for one in SOURCES if one.by_default]
    known = {one.id: one for one in SOURCES}
    chosen = []
    for name in names:
        full = name if name.startswith("live-") else f"live-{name}"
        if full not in known:
            short = sorted(one.removeprefix("live-") for one in known)
            raise UnknownName("unknown_source", f"There is no price source called {name[:40]!r}.", field="source",
                              hint="`advisor prices sources` lists them.", candidates=short[:5])  # fmt: skip
        chosen.append(known[full])
    return chosen


def refresh(
    sources: Sequence[PriceSource] | None = None,
    *,
    cache: Cache | None = None,
    environment: Mapping[str, str] | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    progress: Callable[[Outcome], None] = lambda outcome: None,
) -> Report:
    """Ask the sources, judge what they say, and put it in force. Raises BadValue when the network is switched off."""
    values = os.environ if environment is None else environment
    if get_settings(values).offline:
        raise BadValue("offline", "ADVISOR_OFFLINE is set: prices stay as they are.", field="ADVISOR_OFFLINE",
                       hint="Unset it to refresh; the dated snapshot is used meanwhile.")  # fmt: skip
    kept = cache or Cache(cache_path())
    asked = list(sources) if sources is not None else choose(())
    if not _RUNNING.acquire(blocking=False):
        return Report((), already_running=True)
    try:
        with kept.lease("refresh", now(), LEASE_SECONDS) as mine:
            if not mine:
                return Report((), already_running=True)
            return _all(asked, kept, values, now, progress)
    finally:
        _RUNNING.release()


def _all(
    asked: Sequence[PriceSource],
    cache: Cache,
    environment: Mapping[str, str],
    now: Callable[[], datetime],
    progress: Callable[[Outcome], None],
) -> Report:
    day = now().date().isoformat()
    elsewhere = _elsewhere(environment)
    outcomes: dict[str, Outcome] = {}
    book = prices.snapshot()
    with ThreadPoolExecutor(max_workers=WORKERS, thread_name_prefix="prices") as pool:
        running = {pool.submit(_ask, one, cache, environment, elsewhere, day): one for one in asked}
        for done in as_completed(running):  # each session ends by its own deadline
            source = running[done]
            found = done.result()
            outcome = found if isinstance(found, Outcome) else _put(source, *found, cache, day, book)
            outcomes[source.id] = outcome
            cache.log(Fetch(source.id, now().isoformat(), outcome.status, outcome.code, outcome.message, outcome.rows,
                            dict(outcome.dropped)))  # fmt: skip
            progress(outcome)
    return Report(tuple(outcomes[one.id] for one in asked))


def _ask(
    source: PriceSource, cache: Cache, environment: Mapping[str, str], elsewhere: Mapping[str, str], day: str
) -> Outcome | tuple[Parsed | None, dict[str, str]]:
    """What the source says (None: nothing changed) with its ETags, or how it failed."""
    missing = [name for name in source.keys if not environment.get(name, "").strip()]
    if missing:
        return Outcome(source.id, "no_key", code="no_key", message=f"needs {', '.join(missing)}")
    policy = Policy(
        hosts=source.hosts,
        deadline_seconds=source.deadline_seconds,
        max_body_bytes=source.max_body_bytes,
        max_inflated_bytes=source.max_inflated_bytes,
        elsewhere=elsewhere,
    )
    etags = cache.etags(source.id) if cache.current(source.id) else {}
    try:
        with Session(policy, etags=etags) as session:
            try:
                pages = source.fetch(session, environment)
            except NotModified:
                return None, {}
            return source.parse(pages, day), session.etags_seen
    except SourceError as err:
        return Outcome(source.id, "failed", code=err.code, message=err.message)
    except Exception as err:  # a fault of ours in one adapter must not lose the other sources
        _LOG.exception("price source %s", source.id)
        return Outcome(source.id, "failed", code="internal", message=f"{type(err).__name__} while reading the reply")


def _put(
    source: PriceSource, found: Parsed | None, etags: dict[str, str], cache: Cache, day: str, book: Sequence[Any]
) -> Outcome:
    """Judge and store one source's rows; the caller is the only writer."""
    if found is None:
        return Outcome(source.id, "unchanged", rows=cache.seen_again(source.id, day))
    judged = judge(found.rows, cache.current(source.id), book)
    dropped = dict(found.dropped + judged.dropped)
    if judged.rows is None:
        message = judged.warnings[-1]
        return Outcome(source.id, "kept_old", code="gate", message=message, dropped=dropped, warnings=(message,))
    cache.put(source.id, judged.rows)
    cache.keep_etags(source.id, etags)
    return Outcome(source.id, "ok", rows=len(judged.rows), dropped=dropped, warnings=tuple(judged.warnings))


def _elsewhere(environment: Mapping[str, str]) -> dict[str, str]:
    """An operator's mirror or test server in a host's place: ADVISOR_PRICE_HOSTS='{"host": "https://mirror"}'."""
    text = environment.get("ADVISOR_PRICE_HOSTS", "").strip()
    try:
        given = json.loads(text) if text else {}
    except ValueError:
        given = None
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise BadValue("bad_setting", "ADVISOR_PRICE_HOSTS is not a JSON object of hosts to base URLs.",
                       field="ADVISOR_PRICE_HOSTS")  # fmt: skip
    return given
