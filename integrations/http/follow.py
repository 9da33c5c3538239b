"""The events of a turn, kept while it runs and a moment longer, for whoever reads them: at once or after a cut."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable

from advisor.events import Done, Event


class ShuttingDown(Exception):
    """The server's time to drain is over while a turn still runs."""


class Followed:
    """One turn's events by number, from 1. All but ``put`` belongs to the event loop's thread.

    When the last reader leaves before the end, the turn is told to stop: at once, or after ``keep_seconds`` if nobody
    has come back by then.
    """

    def __init__(self, keep_seconds: float = 0.0) -> None:
        self.stop = threading.Event()
        self.events: list[Event] = []
        self.over = False
        self.cancel: Callable[[], None] = lambda: None  # for a turn that waits for a thread still
        self._keep_seconds = keep_seconds
        self._fault: BaseException | None = None
        self._readers = 0
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def put(self, item: Event | BaseException | None) -> None:
        """Take in an event, the fault that ended the turn, or (None) its end; from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._take, item)
        except RuntimeError:
            self.stop.set()  # the loop is gone, and with it whoever waited

    async def follow(self, after: int = 0) -> AsyncGenerator[tuple[int, Event], None]:
        """The events after this number, as they come. Raises what ended the turn."""
        self._readers += 1
        try:
            while True:
                while after < len(self.events):
                    after += 1
                    yield after, self.events[after - 1]
                if self._fault is not None:
                    raise self._fault
                if self.over:
                    return
                await self._news.wait()
        finally:
            self._readers -= 1
            if not self._readers and not self.over:
                self._left()

    def end(self) -> None:
        """Tell the turn to stop, and drop it where it waits for a thread still; one that runs ends when it next looks.
        Returns at once.
        """
        self.stop.set()
        self.cancel()

    def shut_down(self) -> None:
        """End every reader's stream with ``ShuttingDown``, as a server that stops does, and tell the turn to stop. Only
        from the event loop's thread.
        """
        self._take(ShuttingDown())
        self.end()

    @property
    def answered(self) -> bool:
        """Whether the answer is among the events, even if the turn's end has not been noted yet."""
        return bool(self.events) and isinstance(self.events[-1], Done)

    def _take(self, item: Event | BaseException | None) -> None:
        if self.over:
            return
        if item is None:
            self.over = True
        elif isinstance(item, BaseException):
            self._fault, self.over = item, True
        else:
            self.events.append(item)
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _left(self) -> None:
        if self._keep_seconds:
            self._loop.call_later(self._keep_seconds, lambda: None if self._readers or self.over else self.end())
        else:
            self.end()
