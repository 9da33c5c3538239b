"""Running the calls that a model asked for: side by side, in order, each with a deadline, errors as results."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import Any

from advisor.grounds import Grounds, grounds_of
from advisor.kept_results import KeptResults, Unchanged, key_of
from advisor.llm.protocol import ToolCall
from advisor.tool_payload import error_payload, payload
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
    grounds: Grounds | None = None  # what the result lets an answer state
    payloads: dict[str, dict[str, Any]] = field(default_factory=dict)  # as models read it, by the call's short id

    def payload(self, short: str) -> dict[str, Any]:
        """What a model reads of it, as the call of this short id (t1); a result's is made once and kept, so do not
        change it.
        """
        if short not in self.payloads:
            if self.result is None:
                return error_payload(short, self.call.name, self.error or {})
            self.payloads[short] = payload(short, self.call.name, self.result)
        return self.payloads[short]

    @property
    def protocol_fault(self) -> bool:
        """Whether the model broke the protocol (no JSON object, no such tool), rather than a tool refusing a value."""
        return bool(self.error and self.error["code"] in ("arguments_unreadable", "unknown_tool"))


def run_calls(calls: Sequence[ToolCall], seconds: float, kept: KeptResults | None = None) -> list[Outcome]:
    """The outcomes in the order of ``calls``. Tools are pure, so several may run at once; a late one is given up.

    With ``kept``, a call that was made before is answered from there.
    """
    if not calls:
        return []
    until = time.monotonic() + seconds
    jobs = [_Job(call, kept) for call in calls]
    for job in jobs:
        _hand_over(job)
    for job in jobs:
        job.done.acquire(timeout=max(0.0, until - time.monotonic()))
    return [job.outcome or _late(job.call, seconds) for job in jobs]


def run_call(call: ToolCall, kept: KeptResults | None = None) -> Outcome:
    """One call, with whatever goes wrong as an error of the one shape: it raises nothing. With ``kept``, from there if
    it was made before. Milliseconds are this call's, not the first one's.
    """
    begun = time.perf_counter()
    outcome = Outcome(call)
    try:
        if kept is not None and call.unreadable is None:
            key, unchanged = key_of(call), Unchanged()
            before = kept.get(key)
            if before is None:
                before = run_call(call)
                if before.result is not None and unchanged:
                    kept.put(key, before)
            milliseconds = round((time.perf_counter() - begun) * 1e3, 3)
            return replace(before, call=call, milliseconds=milliseconds)
        if call.unreadable is not None:
            raise BadValue(
                "arguments_unreadable",
                "The arguments are not one JSON object.",
                field="arguments",
                hint="Send one JSON object that follows the tool's schema.",
            )
        outcome.result = get_tool(call.name).call(call.arguments)
        outcome.data = outcome.result.model_dump(mode="json")
        outcome.grounds = grounds_of(call.arguments, outcome.data)
    except InputProblem as problem:
        outcome.error = problem.as_dict()
    except Exception:
        log.exception("tool %s failed", call.name)
        outcome.error = BadValue(
            "tool_failed", f"{call.name} failed on this input.", hint="Try other values; the fault is logged."
        ).as_dict()
    outcome.milliseconds = round((time.perf_counter() - begun) * 1e3, 3)
    return outcome


class _Job:
    """A call that a worker makes; ``done`` can be taken once it has."""

    def __init__(self, call: ToolCall, kept: KeptResults | None) -> None:
        self.call, self.kept = call, kept
        self.outcome: Outcome | None = None
        self.done = threading.Lock()
        self.done.acquire()


class _Worker(threading.Thread):
    """A thread that makes one call after the other and waits in between.

    A daemon: a tool that hangs must hold up neither the turn nor the end of the process. Kept, since each thread has
    its own connection to the knowledge base, which costs more to open than most calls do.
    """

    def __init__(self) -> None:
        super().__init__(name="tool", daemon=True)
        self.jobs: SimpleQueue[_Job] = SimpleQueue()

    def run(self) -> None:
        while True:
            job = self.jobs.get()
            job.outcome = run_call(job.call, job.kept)
            if len(_idle) >= MOST_IDLE:
                job.done.release()
                return
            _idle.append(self)  # before the caller goes on, who may have the next call
            job.done.release()
            del job  # a result is not kept while nothing is to do


MOST_IDLE = 16
_idle: deque[_Worker] = deque()
os.register_at_fork(after_in_child=_idle.clear)  # threads do not outlive a fork


def _hand_over(job: _Job) -> None:
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
        worker.start()
    worker.jobs.put(job)


def _late(call: ToolCall, seconds: float) -> Outcome:
    problem = BadValue(
        "tool_timeout", f"{call.name} did not finish within {seconds:g} s.", hint="Ask for a smaller search."
    )
    return Outcome(call, error=problem.as_dict(), milliseconds=seconds * 1e3)
