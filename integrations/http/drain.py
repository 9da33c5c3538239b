"""Told to stop: new turns are refused at once, running ones get time, their readers a last word."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from integrations.http.service import Service

# A terminal and a parent process may both pass one Ctrl-C on; only what comes later is meant as a second one.
AGAIN_SECONDS = 1.0
log = logging.getLogger("advisor.http")


@contextmanager
def draining(service: Service) -> Iterator[None]:
    """While this lasts, a signal to stop first refuses new turns and gives running ones time.

    The server's own handler is called at once, since it closes the listening socket; but what it starts (the end of
    the lifespan) runs only after the last connection has gone, too late to tell anybody.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    told_before: list[float] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def told(number: int, frame: FrameType | None) -> None:
        if told_before and time.monotonic() - told_before[0] > AGAIN_SECONDS:
            os._exit(128 + number)  # told again: now. What is stored is stored, and threads in a turn hold nothing up
        told_before.append(time.monotonic())
        loop.call_soon_threadsafe(begin_drain, service)
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    for number in before:
        signal.signal(number, told)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def begin_drain(service: Service) -> None:
    """Refuse new turns now, end the others when their time is over."""
    log.info("stopping: running answers have %g s", service.settings.drain_seconds)
    service.turns.refuse_new()
    asyncio.get_running_loop().call_later(service.settings.drain_seconds, service.turns.end_all)
