"""Running the calls that a model asked for: side by side, in order, each with a deadline, errors as results."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from advisor.llm.protocol import ToolCall
from tools.errors import BadValue, InputProblem
from tools.registry import get_tool
from tools.result import ToolResult

log = logging.getLogger("advisor")


@dataclass(slots=True)
class Outcome:
    """What became of one call: a result or an error, never both."""

    call: ToolCall
    result: ToolResult | None = None
    data: dict[str, Any] | None = None  # the result as JSON data
    error: dict[str, Any] | None = None
    milliseconds: float = 0.0

    @property
    def protocol_fault(self) -> bool:
        """Whether the model broke the protocol (no JSON object, no such tool), rather than a tool refusing a value."""
        return bool(self.error and self.error["code"] in ("arguments_unreadable", "unknown_tool"))


def run_calls(calls: Sequence[ToolCall], seconds: float) -> list[Outcome]:
    """The outcomes in the order of ``calls``. Tools are pure, so several may run at once; a late one is given up."""
    if not calls:
        return []
    outcomes: list[Outcome | None] = [None] * len(calls)

    def work(number: int) -> None:
        outcomes[number] = run_call(calls[number])

    # Daemon threads: a tool that hangs must hold up neither the turn nor the end of the process.
    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(len(calls))]
    until = time.monotonic() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return [outcome or _late(call, seconds) for call, outcome in zip(calls, outcomes, strict=True)]


def run_call(call: ToolCall) -> Outcome:
    """One call, with whatever goes wrong as an error of the one shape."""
    begun = time.perf_counter()
    outcome = Outcome(call)
    try:
        if call.unreadable is not None:
            raise BadValue(
                "arguments_unreadable",
                "The arguments are not one JSON object.",
                field="arguments",
                hint="Send one JSON object that follows the tool's schema.",
            )
        outcome.result = get_tool(call.name).call(call.arguments)
        outcome.data = outcome.result.model_dump(mode="json")
    except InputProblem as problem:
        outcome.error = problem.as_dict()
    except Exception:
        log.exception("tool %s failed", call.name)
        outcome.error = BadValue(
            "tool_failed", f"{call.name} failed on this input.", hint="Try other values; the fault is logged."
        ).as_dict()
    outcome.milliseconds = round((time.perf_counter() - begun) * 1e3, 3)
    return outcome


def _late(call: ToolCall, seconds: float) -> Outcome:
    problem = BadValue(
        "tool_timeout", f"{call.name} did not finish within {seconds:g} s.", hint="Ask for a smaller search."
    )
    return Outcome(call, error=problem.as_dict(), milliseconds=seconds * 1e3)
