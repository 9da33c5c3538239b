"""What passes between the turn loop and a model: messages and tool schemas in, text or tool calls out, streamed.

The loop knows only this file. Two models implement ``Model``: the built-in planner
(``advisor.llm.planner.Planner``, built without arguments) and any provider through litellm
(``advisor.llm.client.LitellmModel``). Both see the same messages:

    system     only after an answer whose numbers do not hold: what to mend
    user       a question as typed; earlier questions of the conversation come first
    assistant  an earlier answer, or (with ``tool_calls``) the calls that the model asked for
    tool       one for each call, in order; ``content`` is the JSON that ``advisor.tool_payload`` makes

A model answers one step at a time: either ToolCalls (the loop runs them, appends the results and asks again) or text,
then exactly one Finish. Text refers to facts as ``[[t1.peak_per_gpu]]`` (forms: ``|range``, ``|GiB``, see
``tools.result``) and to a result's table as ``[[table:t1.bill]]``, with the ids that the tool messages carry. The
loop prints them, checks every other number, and adds warnings, what was assumed and the sources: a model writes none
of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, Protocol

Role = Literal["system", "user", "assistant", "tool"]
Status = Literal["answered", "needs_input", "declined", "failed"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model asks for. ``id`` is opaque: providers pack data into it."""

    id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    unreadable: str | None = None  # the argument text where it was no JSON object; the loop hands back an error


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of the conversation as a model sees it."""

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None  # role "tool": which call this answers
    name: str | None = None  # role "tool": the tool's name


class ToolSchema:
    """A tool as offered to a model. All but the name is fetched when a model reads it, which the planner never does."""

    def __init__(self, name: str, fetch: Callable[[], tuple[str, str, dict[str, Any]]]) -> None:
        self.name = name
        self._fetch = fetch

    @cached_property
    def _fetched(self) -> tuple[str, str, dict[str, Any]]:
        return self._fetch()

    @property
    def summary(self) -> str:
        """What the tool answers, in one line. Imports the tool when first read, as the two below do."""
        return self._fetched[0]

    @property
    def description(self) -> str:
        """How the tool computes it: formula and what is not modelled."""
        return self._fetched[1]

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments, with units and descriptions; shared, so do not change it."""
        return self._fetched[2]


def _never() -> bool:
    return False


def _no_system() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One step: everything said so far and what may be called."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...]
    deadline: float  # time.monotonic() by which the step must be over
    allow_tools: bool = True  # False when the step limit is reached or a repair is asked for: answer in words now
    max_output_tokens: int = 2000
    system: Callable[[], str] = _no_system  # rules and the tools in one line each, for models that need telling
    now: datetime | None = None  # when the question was asked, for "by Friday"; None: no clock is at hand
    stopped: Callable[[], bool] = _never  # true once nobody waits: a provider's client looks often, and hangs up


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one step, 0 where the provider did not say."""

    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of a step. ``status`` is for a step that ends in text: a question back, a polite no, or an answer."""

    status: Status = "answered"
    reason: Literal["stop", "tool_calls", "length"] = "stop"
    usage: Usage = Usage()
    suggestions: tuple[str, ...] = ()  # what the user may ask next, as typed


ModelEvent = TextDelta | ToolCall | Finish


class ModelFailed(Exception):
    """The model gave no usable step: provider down, deadline over, reply unreadable. The next model is tried.

    ``code`` is one of: timeout, rate_limited, unavailable, bad_reply, refused, misconfigured, missing,
    stopped.
    ``message`` is ours, never the provider's text, which may echo a key.
    ``free``: the provider did no work that it could bill.
    """

    def __init__(self, code: str, message: str, free: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.free = free


class Model(Protocol):
    """A planner or a provider's model. ``reply`` runs in the caller's thread and may raise ModelFailed."""

    name: str  # "planner" or "provider/name"

    def reply(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """The next step: text pieces or tool calls, then one Finish."""
        ...
