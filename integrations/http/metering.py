"""Between a turn and its model: the call is paid for before it is made, and left when nobody waits any more."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from advisor.llm.door import PLANNER
from advisor.llm.protocol import Finish, Model, ModelEvent, ModelFailed, ModelRequest, Usage

POLL_SECONDS = 0.1


class Meter(Protocol):
    """Pays for model calls out of a caller's budget."""

    def before(self, model: str, request: ModelRequest) -> None:
        """Reserve the most that the call can cost. Raises ModelFailed when that is more than is left."""
        ...

    def after(self, model: str, usage: Usage | None) -> None:
        """Settle what it did cost; None when the call ended without saying, which costs the whole reservation."""
        ...


class Watched:
    """A model whose call can be walked away from. The planner only computes for a moment and is passed through."""

    def __init__(self, model: Model, stop: threading.Event, meter: Meter | None) -> None:
        self.name = model.name
        self._model, self._stop, self._meter = model, stop, meter

    def reply(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """The model's step."""
        if self._stop.is_set():
            raise ModelFailed("timeout", "Nobody waits for the answer any more.")
        if self.name == PLANNER:
            yield from self._model.reply(request)
            return
        if self._meter is not None:
            self._meter.before(self.name, request)
        usage: Usage | None = None
        try:
            for event in self._until_stopped(request):
                if isinstance(event, Finish):
                    usage = event.usage
                yield event
        finally:
            if self._meter is not None:
                self._meter.after(self.name, usage)

    def _until_stopped(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """The events, pulled by a thread of their own so that this one can leave while the provider is silent."""
        found: queue.SimpleQueue[ModelEvent | BaseException | None] = queue.SimpleQueue()
        leave = threading.Event()

        def pull() -> None:
            events = self._model.reply(replace(request, stopped=leave.is_set))
            try:
                for event in events:
                    if leave.is_set():
                        break
                    found.put(event)
                found.put(None)
            except BaseException as error:  # raised again in the turn's thread
                found.put(error)
            finally:
                close = getattr(events, "close", None)
                if close is not None:
                    close()

        threading.Thread(target=pull, daemon=True, name="model-call").start()
        try:
            while True:
                if self._stop.is_set():
                    raise ModelFailed("timeout", "Nobody waits for the answer any more.")
                try:
                    event = found.get(timeout=POLL_SECONDS)
                except queue.Empty:
                    continue
                if event is None:
                    return
                if isinstance(event, BaseException):
                    raise event
                yield event
        finally:
            leave.set()
