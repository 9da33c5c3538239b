"""What a turn tells a surface while it runs: typed, versioned, the same for every model and every surface.

Order: started, then any of tool_started / tool_finished / chart / facts / text, then exactly one done or error.
``text`` is already rendered and checked; one with ``replace`` takes the place of all text shown so far.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from advisor.answer import Answer, AnswerFact

VERSION = 1


class _Event(BaseModel):
    v: Literal[1] = 1


class Started(_Event):
    """The turn has an id; work begins."""

    type: Literal["started"] = "started"
    conversation_id: str
    turn_id: str
    model: str


class Text(_Event):
    """A piece of the answer as markdown, every number in it checked."""

    type: Literal["text"] = "text"
    text: str
    replace: bool = False


class ToolStarted(_Event):
    """A tool is about to run."""

    type: Literal["tool_started"] = "tool_started"
    id: str
    name: str
    arguments: dict[str, Any]


class ToolFinished(_Event):
    """A tool is done: its verdict as printed, or the error it gave."""

    type: Literal["tool_finished"] = "tool_finished"
    id: str
    name: str
    verdict: str = ""
    error: dict[str, Any] | None = None
    milliseconds: float


class Facts(_Event):
    """The facts of one tool call."""

    type: Literal["facts"] = "facts"
    tool_call: str
    facts: list[AnswerFact]


class Chart(_Event):
    """A Vega-Lite specification of one tool call."""

    type: Literal["chart"] = "chart"
    tool_call: str
    spec: dict[str, Any]


class Done(_Event):
    """The turn is over; ``answer`` is the whole of it."""

    type: Literal["done"] = "done"
    answer: Answer


class Error(_Event):
    """The turn could not be taken up at all (a bad question, a store that cannot be written)."""

    type: Literal["error"] = "error"
    error: dict[str, Any]


Event = Annotated[
    Started | Text | ToolStarted | ToolFinished | Facts | Chart | Done | Error, Field(discriminator="type")
]
