"""Log lines for people on a terminal, JSON elsewhere; known secrets and things that look like one never pass."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, MutableMapping
from typing import Any, TextIO

import structlog

from advisor.redaction import Redaction
from integrations.http.settings import ServiceSettings

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def set_up(settings: ServiceSettings, secrets: Iterable[str] = (), out: TextIO | None = None) -> None:
    """Send the logs of ours and of the libraries to ``out`` (standard error)."""
    out = out or sys.stderr
    as_json = settings.log_format == "json" or (settings.log_format == "auto" and not out.isatty())
    last: Any = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if as_json
        else structlog.dev.ConsoleRenderer(colors=out.isatty())
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper("iso", utc=True),
            _extra,
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,  # before secrets are taken out: tracebacks hold them too
            Redaction(secrets),
            last,
        ],
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(settings.log_level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], True
    # Libraries that log every message they pass.
    for name in ("httpx", "httpcore", "mcp", "LiteLLM"):
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


def _extra(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """What a call gave as ``extra``, beside the message."""
    record = event.get("_record")
    if record is not None:
        event.update({key: value for key, value in vars(record).items() if key not in _STANDARD and key[0] != "_"})
        event.pop("color_message", None)  # uvicorn's message again, for terminals
    return event
