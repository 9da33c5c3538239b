"""Running the app: one process or several, logs, and an end that lets running answers finish."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from advisor.llm.door import PLANNER
from advisor.redaction import secret_values
from advisor.settings import read_settings
from advisor.store import SqliteConversations
from advisor.turn import answer
from integrations.http import logs, tracing
from integrations.http.app import create_app
from integrations.http.service import open_desk
from integrations.http.settings import ServiceSettings

# After the last words have been sent the connections get this long to take them.
LAST_WORDS_SECONDS = 3
# Asked of each new process before it serves: between them they read the articles, the price book and the link tables.
PRACTICE = ("what GPU for 7B LoRA?", "do I need InfiniBand for 16 H100 and a 13B?", "what is gradient checkpointing?")


def serve(settings: ServiceSettings) -> None:
    """Serve on ``settings.host`` and ``port`` until SIGTERM or SIGINT, then let running turns finish for up to
    ``drain_seconds``. Blocks; sets ADVISOR_* variables of this process, which its workers inherit.
    """
    for name in ServiceSettings.model_fields:  # what the command line said reaches the processes through these
        _export(name, getattr(settings, name))
    signal.signal(signal.SIGTERM, _leave)  # the server raises the signal again once it has stopped in good order
    with _shared_figures(settings.workers):
        uvicorn.run(
            "integrations.http.server:app",
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=int(settings.drain_seconds) + LAST_WORDS_SECONDS,
            backlog=1024,
        )


def _leave(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)


def app() -> FastAPI:
    """The app of a server process, as the environment describes it."""
    settings = read_settings(ServiceSettings)
    logs.set_up(settings, secret_values())
    if settings.otel:
        tracing.set_up()
    desk = open_desk()
    practice = replace(desk, store=SqliteConversations(":memory:"))
    for question in PRACTICE:  # what is read once is read before anybody waits
        answer(question, model=PLANNER, desk=practice)
    made = create_app(settings, desk)
    # What lives as long as the process is not looked at again by each collection, which would hold up every answer.
    gc.collect()
    gc.freeze()
    return made


def _export(name: str, value: Any) -> None:
    variable = f"ADVISOR_{name.upper()}"
    if hasattr(value, "get_secret_value"):
        value = value.get_secret_value()
    if value is None or value == ():
        os.environ.pop(variable, None)
    else:
        os.environ[variable] = ",".join(value) if isinstance(value, tuple) else str(value)


@contextmanager
def _shared_figures(workers: int) -> Iterator[None]:
    """Several processes count into one folder, which must be known before the first figure is made."""
    if workers == 1 or "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="advisor-figures-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        yield
