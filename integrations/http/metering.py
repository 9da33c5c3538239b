"""Between a turn and its model: the call is paid for before it is made, and left when nobody waits any more."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from advisor.llm.door import PLANNER
from advisor.llm.protocol import Finish, Model, ModelEvent, ModelFailed, ModelRequest, Usage


class Meter(Protocol):
    """Pays for model calls out of a caller's budget."""

    def before(self, model: str, request: ModelRequest) -> None:
        """Reserve the most that the call can cost. Raises ModelFailed when that is more than is left."""
        ...

    def after(self, model: str, usage: Usage | None) -> None:
        """Settle what it did cost; None when the call ended without saying, which costs the whole reservation."""
        ...


class Watched:
    """A model that learns when nobody waits any more, and whose calls are paid for. The planner costs nothing."""

    def __init__(self, model: Model, stop: threading.Event, meter: Meter | None) -> None:
        self.name = model.name
        self._model, self._stop, self._meter = model, stop, meter

    def reply(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """The model's step."""
        if self._stop.is_set():
            raise ModelFailed("stopped", "Nobody waits for the answer any more.")
        if self.name == PLANNER:
            yield from self._model.reply(request)
            return
        if self._meter is not None:
            self._meter.before(self.name, request)
        usage: Usage | None = None
        try:
            for event in self._model.reply(replace(request, stopped=self._stop.is_set)):
                if isinstance(event, Finish):
                    usage = event.usage
                yield event
        finally:
            if self._meter is not None:
                self._meter.after(self.name, usage)
