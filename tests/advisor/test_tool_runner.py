"""Tools beside each other in threads that are kept: order, deadlines, and no thread is lost to a tool that hangs."""

from __future__ import annotations

import threading

import pytest

from advisor import tool_runner
from advisor.kept_results import KeptResults
from advisor.llm.protocol import ToolCall
from advisor.tool_runner import Outcome, run_calls


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The thread that each call ran in; a call waits for what it is given as ``until``."""
    seen: list[int] = []

    def run_call(call: ToolCall, _kept: KeptResults | None = None) -> Outcome:
        seen.append(threading.get_ident())
        if "until" in call.arguments:
            call.arguments["until"].wait(10)
        return Outcome(call, data={"name": call.name})

    monkeypatch.setattr(tool_runner, "run_call", run_call)
    return seen


def call(name: str, until: threading.Event | threading.Barrier | None = None) -> ToolCall:
    return ToolCall(name, name, {"until": until} if until else {})


def test_calls_one_after_the_other_share_a_thread(threads: list[int]) -> None:
    for name in "abc":
        assert [outcome.data for outcome in run_calls([call(name)], 10.0)] == [{"name": name}]
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()


def test_calls_of_one_step_run_side_by_side_and_come_back_in_order(threads: list[int]) -> None:
    both = threading.Barrier(2)  # broken, with an error in the call, unless two wait at once
    outcomes = run_calls([call("one", both), call("other", both), call("alone")], 10.0)
    assert not both.broken
    assert [outcome.call.name for outcome in outcomes] == ["one", "other", "alone"]
    assert all(outcome.error is None for outcome in outcomes)


def test_a_call_that_hangs_is_given_up_and_the_next_one_has_another_thread(threads: list[int]) -> None:
    never = threading.Event()
    (late,) = run_calls([call("hangs", never)], 0.05)
    assert late.error is not None
    assert late.error["code"] == "tool_timeout"
    (next_one,) = run_calls([call("next")], 10.0)
    never.set()
    assert next_one.data == {"name": "next"}
    assert threads[0] != threads[1]


def test_no_more_threads_are_kept_than_may_be_idle(threads: list[int]) -> None:
    count = tool_runner.MOST_IDLE + 8
    all_at_once = threading.Barrier(count)
    run_calls([call(str(number), all_at_once) for number in range(count)], 10.0)
    assert len(set(threads)) == count
    assert len(tool_runner._idle) <= tool_runner.MOST_IDLE
