from __future__ import annotations

import json

from advisor.history import trimmed
from advisor.llm.protocol import Message, ToolCall


def turn(number: int, size: int) -> list[Message]:
    call = ToolCall(f"c{number}", "estimate_vram", {"model": "7B"})
    content = json.dumps({"tool_call": f"t{number}", "tool": "estimate_vram", "verdict": "Yes.", "facts": "x" * size})
    return [
        Message("user", f"question {number}"),
        Message("assistant", tool_calls=(call,)),
        Message("tool", content, tool_call_id=call.id, name=call.name),
        Message("assistant", f"answer {number}"),
    ]


def history(*sizes: int) -> list[Message]:
    return [message for number, size in enumerate(sizes) for message in turn(number, size)]


def test_the_newest_turns_are_whole_and_older_results_keep_their_verdict() -> None:
    kept = trimmed(history(500, 500, 500), 10_000)
    results = [json.loads(message.content) for message in kept if message.role == "tool"]
    assert ["facts" in result for result in results] == [False, True, True]
    assert results[0]["verdict"] == "Yes."
    assert [message.tool_calls[0].arguments for message in kept if message.tool_calls] == [{"model": "7B"}] * 3


def test_what_does_not_fit_is_left_out_from_the_oldest_on_in_whole_turns() -> None:
    kept = trimmed(history(*[500] * 40), 2_000)
    assert sum(len(message.content) for message in kept) <= 2_000
    assert kept[0].role == "user"
    assert kept[-1].content == "answer 39"
    assert len(kept) % 4 == 0


def test_a_huge_last_result_is_shortened_rather_than_lost() -> None:
    kept = trimmed(history(100_000), 1_000)
    assert [message.role for message in kept] == ["user", "assistant", "tool", "assistant"]
    assert "facts" not in kept[2].content


def test_no_history_is_no_history() -> None:
    assert trimmed([], 1_000) == ()
