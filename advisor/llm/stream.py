"""Folding a provider's streamed deltas into text and whole tool calls. Pure; the client feeds it.

Providers differ (litellm issues 7621, 11407, 20480, 5063; llama_index 21693): ids only on the first delta or on each
one, none at all, one index for several calls, the whole call in one delta, a summary delta that repeats it, argument
text empty or in pieces. A call is told by its index and, where one is sent, a new id or name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from advisor.llm.protocol import Status, ToolCall
from knowledge.foreign import read_json

MAX_ARGUMENT_CHARS = 200_000
MAX_CALLS = 256  # in one step; as many as a turn may be allowed at most
_UNWRITABLE = re.compile("[\x00\ud800-\udfff]")
MARKS: dict[str, Status] = {"[[needs_input]]": "needs_input", "[[declined]]": "declined"}


@dataclass(slots=True)
class _Part:
    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""

    def complete(self) -> bool:
        try:
            return isinstance(read_json(self.arguments), dict)
        except ValueError:
            return False


class CallFolder:
    """Collects the pieces of tool calls, in the order in which the calls began."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []

    def feed(self, deltas: list[Mapping[str, Any]]) -> None:
        """Take in the ``tool_calls`` of one delta; beyond ``MAX_CALLS`` calls and ``MAX_ARGUMENT_CHARS`` characters of
        one nothing is kept. Raises nothing for odd deltas.
        """
        for delta in deltas[: max(0, MAX_CALLS - len(self._parts))]:
            function = delta.get("function") or {}
            call_id, name = str(delta.get("id") or ""), readable(str(function.get("name") or ""))
            arguments = function.get("arguments")
            text = arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""
            part = self._part(delta.get("index"), call_id, name, text)
            part.id = part.id or call_id
            if name and not part.name:
                part.name = name
            if not (text == part.arguments and part.complete()):  # else a summary that repeats the call
                part.arguments = (part.arguments + text)[:MAX_ARGUMENT_CHARS]

    def calls(self) -> list[ToolCall]:
        """The calls as they stand, in the order begun; one without an id is given one, arguments cut short are
        unreadable.
        """
        return [
            whole_call(part.id or f"call_{number}", part.name, part.arguments)
            for number, part in enumerate(self._parts)
            if part.name or part.arguments
        ]

    def _part(self, index: Any, call_id: str, name: str, text: str) -> _Part:
        for part in reversed(self._parts):
            if call_id and part.id == call_id:
                return part
        number = index if isinstance(index, int) else None
        same = [part for part in self._parts if number is None or part.index == number]
        last = same[-1] if same else None
        if last is not None:
            new_id = bool(call_id and last.id and call_id != last.id)
            new_name = bool(name and last.name and last.complete() and (name != last.name or text != last.arguments))
            if not new_id and not (new_name and not call_id):
                return last
        part = _Part(number if number is not None else len(self._parts))
        self._parts.append(part)
        return part


def whole_call(call_id: str, name: str, arguments: str) -> ToolCall:
    """A call from its argument text; text that is no JSON object is kept as unreadable. Empty text means none."""
    text = arguments.strip()
    if not text:
        return ToolCall(call_id, name)
    try:
        value = read_json(text)
        if isinstance(value, str):  # encoded twice
            value = read_json(value)
        value = _all_readable(value)
    except ValueError:
        return ToolCall(call_id, name, unreadable=arguments)
    if value is None:
        return ToolCall(call_id, name)
    return ToolCall(call_id, name, value) if isinstance(value, dict) else ToolCall(call_id, name, unreadable=arguments)


def readable(text: str) -> str:
    """``text`` without what no database and no wire takes: NUL and halves of surrogate pairs."""
    return _UNWRITABLE.sub("", text)


def _all_readable(value: Any) -> Any:
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, list):
        return [_all_readable(item) for item in value]
    if isinstance(value, dict):
        return {readable(key): _all_readable(item) for key, item in value.items()}
    return value


class MarkReader:
    """Takes a leading ``[[needs_input]]`` or ``[[declined]]`` off a streamed text."""

    def __init__(self) -> None:
        self.status: Status = "answered"
        self._held: str | None = ""

    def feed(self, text: str) -> str:
        """What of the text so far may be passed on: "" while it may still be the beginning of a mark, which sets
        ``status``.
        """
        if self._held is None:
            return text
        self._held += text
        start = self._held.lstrip()
        for mark, status in MARKS.items():
            if start.startswith(mark):
                self.status = status
                return self._release(start[len(mark) :].lstrip())
        if any(mark.startswith(start) for mark in MARKS):
            return ""
        return self._release(self._held)

    def rest(self) -> str:
        """What is still held when the stream ends: a text that only began like a mark."""
        return self._release(self._held or "")

    def _release(self, text: str) -> str:
        self._held = None
        return text
