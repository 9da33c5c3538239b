"""What the planner decided: calls, or words without calls, and what the wording needs to know of either."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from advisor.llm.planner.mentions import GpuMention, ModelMention
from advisor.llm.planner.premise import Premise
from advisor.llm.protocol import Status

# main: what was asked; side: adds to it; line: its verdict only; span: an end of what was left open; ladder: a rung of
# several; premise: a fact to correct a wrong one with.
Part = Literal["main", "side", "line", "span", "ladder", "premise"]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call with its part in the answer, and what distinguishes it from its sisters."""

    name: str
    arguments: dict[str, Any]
    part: Part = "main"
    about: str = ""


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound that the asker gave: ``fact`` of each rung must not be above ``value``, said as ``words``."""

    fact: str
    value: float
    words: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do. Without calls, ``reply`` (a key of ``words.yaml``) is the whole answer."""

    calls: tuple[Call, ...] = ()
    goal: str = ""
    reply: str = ""
    status: Status = "answered"
    question: str = ""  # a key of words.yaml, asked at the end
    premises: tuple[Premise, ...] = ()
    unknown_models: tuple[ModelMention, ...] = ()
    unknown_gpus: tuple[GpuMention, ...] = ()
    stand_in: str = ""  # card that stands for a stated memory size
    notes: tuple[str, ...] = ()  # keys of words.yaml
    limit: Limit | None = None  # what the rungs of a ladder are held against; None: the card's memory
