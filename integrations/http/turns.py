"""Turns beside the event loop: each in a thread, admitted or refused at once, stopped when nobody waits any more."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from advisor.answer import Answer
from advisor.events import Done, Event, Started
from advisor.llm.door import PLANNER
from advisor.llm.protocol import Model, ModelFailed
from advisor.turn import Desk, run
from integrations.http.follow import Followed
from integrations.http.metering import Meter, Watched
from integrations.http.metrics import Metrics
from integrations.http.problems import ServiceProblem
from integrations.http.settings import ServiceSettings
from integrations.http.tracing import TurnTrace

log = logging.getLogger("advisor.http")
# Planner turns are all computation, so more threads than this only make them wait for each other inside the
# interpreter; turns of a provider's model wait for the network and get a thread each.
PLANNER_THREADS = 2
MOST_KEPT = 128  # turns that may be taken up again after a cut; an answer has about 100 kB
Item = Event | BaseException | None  # None: no more


@dataclass(frozen=True)
class Ask:
    """A question to be answered for somebody."""

    question: str
    conversation_id: str | None
    model: str | None
    principal: str
    surface: str
    desk: Desk
    meter: Meter | None = None


class Turns:
    """Runs turns; counts them by caller; knows when the server drains."""

    def __init__(self, settings: ServiceSettings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._callers: Counter[str] = Counter()
        self._live: set[Followed] = set()
        self._kept: dict[tuple[str, str], Followed] = {}
        self._planner = ThreadPoolExecutor(PLANNER_THREADS, "planner-turn")
        self._provider = ThreadPoolExecutor(settings.turns, "turn")
        self.draining = False

    @property
    def running(self) -> int:
        """Turns that run or wait for a thread, of all callers, in this process."""
        return self._callers.total()

    async def answer(self, ask: Ask) -> Answer:
        """The whole answer. Raises InputProblem or ServiceProblem when the turn is not taken up."""
        answers = [event.answer async for event in self.events(ask, only_last=True) if isinstance(event, Done)]
        return answers[0]

    async def events(self, ask: Ask, only_last: bool = False) -> AsyncIterator[Event]:
        """The turn's events; closing this early stops the turn. Raises ShuttingDown when drained."""
        async with aclosing(self.begin(ask, only_last).follow()) as pairs:
            async for _number, event in pairs:
                yield event

    def begin(self, ask: Ask, only_last: bool = False, keep_seconds: float = 0.0) -> Followed:
        """Take a turn up, to be followed. Raises ServiceProblem when there is no place for it.

        Its place is free again as soon as it is answered, however slowly its readers read.
        """
        self._admit(ask.principal)
        followed = Followed(keep_seconds)
        loop = asyncio.get_running_loop()
        pool = self._planner if (ask.model or ask.desk.settings.model) == PLANNER else self._provider
        traced = TurnTrace(ask.surface, ask.model or ask.desk.settings.model)
        begun = time.perf_counter()

        def put(item: Item) -> None:
            if isinstance(item, Done):
                self._metrics.turn(ask.surface, item.answer, time.perf_counter() - begun)
            followed.put(item)

        def cancel() -> None:
            if work.cancel():
                traced.end()

        work = pool.submit(_work, ask, followed.stop, only_last, traced, put)
        work.add_done_callback(lambda _work: _soon(loop, self._ended, ask.principal, followed))
        followed.cancel = cancel
        self._live.add(followed)
        return followed

    def keep(self, principal: str, turn_id: str, followed: Followed, seconds: float) -> None:
        """Let the turn be found by its id for so long; the oldest make way where there are too many."""
        key = (principal, turn_id)
        while len(self._kept) >= MOST_KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._kept[key] = followed
        asyncio.get_running_loop().call_later(seconds, lambda: self._kept.pop(key, None))

    def kept(self, principal: str, turn_id: str) -> Followed | None:
        """A turn of this principal that is worked on here, or was until a moment ago."""
        return self._kept.get((principal, turn_id))

    def refuse_new(self) -> None:
        """From now on new turns are refused (ServiceProblem 503, with retry_after); running ones go on."""
        self.draining = True

    def end_all(self) -> None:
        """Stop what still runs; each reader gets ``ShuttingDown`` as a last word. Only from the event loop's thread."""
        for followed in tuple(self._live):
            followed.shut_down()

    def close(self) -> None:
        """Let idle threads go and drop what waits for one; threads in a turn end with it. Returns at once."""
        self._planner.shutdown(wait=False, cancel_futures=True)
        self._provider.shutdown(wait=False, cancel_futures=True)

    def _admit(self, principal: str) -> None:
        if self.draining:
            raise ServiceProblem(503, "shutting_down", "The server is stopping; ask again in a moment.", retry_after=5)
        if self._callers[principal] >= self._settings.turns_per_caller:
            raise ServiceProblem(
                429,
                "too_many_turns",
                f"{self._settings.turns_per_caller} of your questions are being worked on already.",
                hint="Wait for one of them to finish.",
                retry_after=1,
            )
        if self.running >= self._settings.turns + self._settings.waiting_turns:
            raise ServiceProblem(503, "busy", "Too many questions at once; ask again in a moment.", retry_after=2)
        self._callers[principal] += 1
        self._metrics.turns_running.inc()

    def _ended(self, principal: str, followed: Followed) -> None:
        self._live.discard(followed)
        self._metrics.turns_running.dec()
        self._callers[principal] -= 1
        if not self._callers[principal]:
            del self._callers[principal]


def _soon(loop: asyncio.AbstractEventLoop, work: Callable[..., None], *arguments: Any) -> None:
    try:
        loop.call_soon_threadsafe(work, *arguments)
    except RuntimeError:  # the loop is gone, and with it whoever waited
        log.debug("a turn outlived its server")


def _work(ask: Ask, stop: threading.Event, only_last: bool, traced: TurnTrace, put: Callable[[Item], None]) -> None:
    """The turn itself, in a thread of the pool."""
    desk = replace(ask.desk, open_model=lambda name: Watched(_opened(ask, name), stop, ask.meter, traced))
    held: list[Event] = []  # where a spent budget is a refusal, nothing is said before the first call is paid for
    try:
        events = run(ask.question, ask.conversation_id, ask.model, principal=ask.principal, desk=desk)
        try:
            for event in events:
                traced.see(event)
                if stop.is_set():
                    break
                if ask.meter and ask.meter.refusal:
                    raise ask.meter.refusal
                if not only_last or isinstance(event, Done):
                    held.append(event)
                if not (ask.meter and ask.meter.refuse and isinstance(event, Started)):
                    for one in held:
                        put(one)
                    held.clear()
        finally:
            close = getattr(events, "close", None)
            if close is not None:
                close()
    except BaseException as error:  # handed to whoever waits, who knows the request
        put(error)
    finally:
        traced.end()
    put(None)


def _opened(ask: Ask, name: str) -> Model:
    """The model, unless the turn is refused already, so that nobody works for an answer that is thrown away."""
    if ask.meter and ask.meter.refusal:
        raise ModelFailed("over_budget", "The day's budget for language models is spent.")
    return ask.desk.open_model(name)
