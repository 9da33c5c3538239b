"""Cassettes: a provider's replies recorded once with a key and replayed without one.

A reply is kept under the hash of what it answers: model, messages and offered tools with their schemas. A question,
prompt or tool that changed since gives another hash, and the replay fails as stale: it never answers from memory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from advisor.llm.door import PLANNER, open_model
from advisor.llm.protocol import Finish, Model, ModelEvent, ModelFailed, ModelRequest, TextDelta, ToolCall, Usage
from advisor.settings import get_settings


def opener_of(record: Path | None, replay: Path | None) -> Callable[[str], Model]:
    """Opens models that record into, or answer from, a folder; the planner needs neither."""

    def open_one(name: str) -> Model:
        if name == PLANNER:
            return open_model(name, get_settings())
        if replay is not None:
            return Replayed(name, replay)
        assert record is not None
        return Recorded(open_model(name, get_settings()), record)

    return open_one


class Recorded:
    """Passes a model's steps through and keeps each."""

    def __init__(self, model: Model, folder: Path) -> None:
        self.name = model.name
        self._model = model
        self._folder = folder

    def reply(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """The model's own step as it streams; written to the folder when it is complete, so a step that fails or is
        left early is not kept. Raises as the model does.
        """
        kept: list[ModelEvent] = []
        for event in self._model.reply(request):
            kept.append(event)
            yield event
        self._folder.mkdir(parents=True, exist_ok=True)
        data = {"model": self.name, "events": [_out(event) for event in kept]}
        file = self._folder / f"{request_hash(self.name, request)}.json"
        file.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


class Replayed:
    """Answers from the folder only."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder

    def reply(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """The recorded step. Raises StaleCassette when the request is not a recorded one."""
        file = self._folder / f"{request_hash(self.name, request)}.json"
        if not file.exists():
            raise StaleCassette(f"no cassette of {self.name} for this request; record it anew")
        for event in json.loads(file.read_text(encoding="utf-8"))["events"]:
            yield _in(event)


class StaleCassette(ModelFailed):
    """No recorded request is this one. The turn falls back to the planner, which the run counts as failed."""

    def __init__(self, message: str) -> None:
        super().__init__("missing", message)


def request_hash(model: str, request: ModelRequest) -> str:
    """Hash of everything that decides a reply; call ids are left out, since providers draw them at random."""
    order: dict[str, str] = {}
    messages: list[dict[str, Any]] = []
    for message in request.messages:
        data = asdict(message)
        for call in data["tool_calls"]:
            call["id"] = order.setdefault(call["id"], f"c{len(order)}")
        if data["tool_call_id"]:
            data["tool_call_id"] = order.setdefault(data["tool_call_id"], f"c{len(order)}")
        messages.append(data)
    tools = [(tool.name, tool.description, tool.parameters) for tool in request.tools]
    text = json.dumps([model, request.system(), messages, tools, request.allow_tools], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _out(event: ModelEvent) -> dict[str, Any]:
    return {"kind": type(event).__name__, **asdict(event)}


def _in(data: dict[str, Any]) -> ModelEvent:
    rest = {key: value for key, value in data.items() if key != "kind"}
    if data["kind"] == "TextDelta":
        return TextDelta(**rest)
    if data["kind"] == "ToolCall":
        return ToolCall(**rest)
    return Finish(**{**rest, "usage": Usage(**rest["usage"]), "suggestions": tuple(rest["suggestions"])})
