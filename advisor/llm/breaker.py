"""A breaker a model: a provider that keeps failing is left alone for a moment, so that no user waits for it."""

from __future__ import annotations

import threading
import time
from collections import deque

from advisor.llm.protocol import ModelFailed

FAILURES, WINDOW_SECONDS, COOLDOWN_SECONDS = 5, 30.0, 15.0


class Breaker:
    """Opens after five failures in half a minute, for a quarter of one; then lets one call through to see."""

    def __init__(self) -> None:
        self._failures: deque[float] = deque(maxlen=FAILURES)
        self._open_until = 0.0
        self._lock = threading.Lock()

    def check(self) -> None:
        """Let a call through, or one probe after the pause. Raises ModelFailed("unavailable"), free of cost, while the
        model is left alone.
        """
        with self._lock:
            now = time.monotonic()
            if now < self._open_until:
                raise ModelFailed("unavailable", "The model keeps failing; it is left alone for a moment.", free=True)
            if self._open_until:
                self._open_until = now + COOLDOWN_SECONDS  # one probe at a time

    def failed(self) -> None:
        """Count a failure; the fifth within 30 s has the model left alone for 15 s."""
        with self._lock:
            now = time.monotonic()
            self._failures.append(now)
            if len(self._failures) == FAILURES and now - self._failures[0] < WINDOW_SECONDS:
                self._open_until = now + COOLDOWN_SECONDS

    def worked(self) -> None:
        """The model answered: forget its failures and let every call through."""
        with self._lock:
            self._failures.clear()
            self._open_until = 0.0


BREAKERS: dict[str, Breaker] = {}


def breaker_of(name: str) -> Breaker:
    """The breaker of this model, one for the whole process; made when first asked for."""
    return BREAKERS.setdefault(name, Breaker())
