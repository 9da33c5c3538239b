"""Secrets out of whatever is logged: the values that this process was given, and what looks like one.

A provider's error may repeat the key that it refuses, and an exception carries what was being read: so nothing is
written to a log before it has passed here, tracebacks included.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any
from urllib.parse import unquote, urlsplit

HIDDEN = "[hidden]"
SHORTEST = 8  # characters; what is shorter is no secret, and would be found in ordinary words
_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "HEADERS", "DATABASE_URL", "DSN")
_PATTERNS = re.compile(
    r"(?:sk|xox[abeoprs]|xapp|adv|gh[opsru]|hf|nvapi)[-_][A-Za-z0-9_-]{12,400}|(?<=Bearer )\S{8,4000}"
    r"|(?<=[?&]key=)[^&\s\"']{8,400}|(?<=://)[^\s/:@]{0,200}:[^\s/@]{1,400}(?=@)"
)


def secret_values(environment: Mapping[str, str] | None = None) -> list[str]:
    """What must never be shown: the variables that hold keys, tokens, secrets or passwords, whole and in their parts.

    Parts: the items of a list, KEY of OWNER:KEY, the value of NAME=VALUE, and the password of an address.
    """
    values = os.environ if environment is None else environment
    found: set[str] = set()
    for name, value in values.items():
        password = _password(value)
        found |= {password, unquote(password)}  # of a proxy, a mirror, a database
        if any(word in name.upper() for word in _NAMES):
            for part in (value, *value.split(",")):
                given = part.strip().partition("=")[2].strip()
                found |= {part.strip(), part.strip().rpartition(":")[2], given, given.rpartition(" ")[2]}
    return sorted((one for one in found if len(one) >= SHORTEST), key=len, reverse=True)


class Redaction:
    """Takes secrets out of texts and out of every value of a log line, exceptions included."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known = sorted({one for one in secrets if len(one) >= SHORTEST}, key=len, reverse=True)

    def __call__(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """One line of a structured log."""
        for key in [key for key in event if not key.startswith("_")]:
            event[self.text(key)] = self.clean(event.pop(key))
        return event

    def text(self, text: str) -> str:
        """``text`` without secrets, and without what would move the cursor of a terminal."""
        for secret in self._known:
            text = text.replace(secret, HIDDEN)
        text = _PATTERNS.sub(HIDDEN, text)
        return "".join(letter if letter in "\n\t" or ord(letter) >= 32 else "�" for letter in text)

    def clean(self, value: Any) -> Any:
        """The same for what a log line's field may hold; of other objects, their printed form where it holds one."""
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, dict):
            return {self.clean(key): self.clean(item) for key, item in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.clean(item) for item in value]
        return self.text(value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value))


class RedactingFormatter(logging.Formatter):
    """Plain log lines for commands, as the standard formatter writes them, tracebacks included, without secrets."""

    def __init__(self, secrets: Iterable[str] | None = None) -> None:
        super().__init__(logging.BASIC_FORMAT)
        self._redaction = Redaction(secret_values() if secrets is None else secrets)

    def format(self, record: logging.LogRecord) -> str:
        """See ``logging.Formatter``: the record's line and traceback, without secrets."""
        return self._redaction.text(super().format(record))


def log_plainly(level: int) -> None:
    """Let this process log to standard error from ``level`` on, without secrets."""
    handler = logging.StreamHandler()
    handler.setFormatter(RedactingFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)


def without_password(address: str) -> str:
    """A database's address as it may be shown: "[hidden]" in place of its password, itself where it has none."""
    secret = _password(address)
    return address.replace(secret, HIDDEN) if secret else address


def _password(address: str) -> str:
    try:
        return (urlsplit(address).password or "") if "@" in address else ""
    except ValueError:
        return ""
