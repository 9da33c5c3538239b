"""The answer to a question, as every surface gets it: the object that ``advisor ask --json`` prints."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from advisor.llm.protocol import Status
from tools.result import FactKind, Warn
from tools.units import Unit


def _is_none(value: object) -> bool:
    return value is None


class AnswerFact(BaseModel):
    """A fact with the tool call it came from; ``id`` is unique within the conversation."""

    model_config = ConfigDict(extra="forbid")

    id: str
    name: str
    value: float | int | str | bool | None
    unit: Unit = ""
    low: float | None = None
    high: float | None = None
    kind: FactKind = "modelled"
    basis: str = ""
    as_of: str | None = None
    tool_call: str


class AnswerAssumption(BaseModel):
    """A default that mattered."""

    name: str
    value: float | int | str | bool | None
    unit: Unit = ""
    why: str


class Citation(BaseModel):
    """Where facts or formulas come from."""

    id: str
    title: str
    source: str
    as_of: str


class ToolRecord(BaseModel):
    """One tool call of the turn with its whole result, or the error it gave."""

    id: str
    name: str
    arguments: dict[str, Any]
    result: dict[str, Any] | None = Field(default=None, exclude_if=_is_none)
    error: dict[str, Any] | None = Field(default=None, exclude_if=_is_none)
    milliseconds: float = 0.0


class Grounding(BaseModel):
    """What the number check found in the text that is shown."""

    numbers: int = 0
    grounded: int = 0
    repaired: bool = False


class Answer(BaseModel):
    """A finished turn."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    conversation_id: str
    turn_id: str
    status: Status
    answer: str = Field(description="Markdown.")
    model: str
    degraded: bool = False
    tool_calls: list[ToolRecord] = Field(default_factory=list)
    facts: list[AnswerFact] = Field(default_factory=list)
    assumptions: list[AnswerAssumption] = Field(default_factory=list)
    citations: list[Citation] = Field(default_factory=list)
    warnings: list[Warn] = Field(default_factory=list)
    charts: list[dict[str, Any]] = Field(default_factory=list)
    suggestions: list[str] = Field(default_factory=list)
    grounding: Grounding = Field(default_factory=Grounding)

    def as_json(self) -> dict[str, Any]:
        """Plain JSON data: a tool call holds either its result or its error, and no number is infinite."""
        data: dict[str, Any] = finite(self.model_dump(mode="json"))
        return data

    def as_text(self) -> str:
        """The same as JSON text, several times faster than by way of data; made once, to be kept and to be sent."""
        return self._text

    def warn(self, code: str, text: str) -> None:
        """Add a warning to a finished answer, in place; ``as_text`` is made anew."""
        self.warnings.append(Warn(code=code, text=text))
        self.__dict__.pop("_text", None)

    @cached_property
    def _text(self) -> str:
        return self.model_dump_json()


def finite(value: Any) -> Any:
    """``value`` with what JSON cannot hold (infinities, NaN) as null; itself where there is none, as nearly always."""
    try:
        json.dumps(value, allow_nan=False)  # far quicker than a look at every number
    except (ValueError, TypeError):
        return _nulled(value)
    return value


def _nulled(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _nulled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_nulled(item) for item in value]
    return value
