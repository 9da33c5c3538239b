from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from advisor.events import Done, Event, Text
from advisor.llm.protocol import Finish, ModelEvent, ModelFailed, ModelRequest, TextDelta, ToolCall, Usage
from advisor.turn import Desk, answer, run
from tests.advisor.conftest import Scripted, calls, says
from tools.errors import InputProblem

MEMORY = calls(("toy_memory", {"model": "meta-llama/Llama-3.1-70B"}))
GOOD = "**Yes:** it needs [[t1.peak_per_gpu]] ([[t1.peak_per_gpu|range]]) on the H100.\n\n[[table:t1.bill]]"
QUESTION = "does it fit?"
Desks = Callable[..., Desk]


def kinds(events: list[Event]) -> list[str]:
    return [event.type for event in events]


def shown(events: list[Event]) -> str:
    text = ""
    for event in events:
        if isinstance(event, Text):
            text = event.text if event.replace else text + event.text
    return text


def test_a_turn_calls_tools_then_answers_from_their_facts(desk_of: Desks) -> None:
    model = Scripted(MEMORY, says(GOOD[:20], GOOD[20:]))
    events = list(run(QUESTION, desk=desk_of(model)))
    assert list(dict.fromkeys(kinds(events))) == [
        "started", "tool_started", "tool_finished", "facts", "chart", "text", "done",
    ]  # fmt: skip
    done = events[-1]
    assert isinstance(done, Done)
    got = done.answer
    assert got.status == "answered"
    assert not got.degraded
    assert got.answer.startswith("**Yes:** it needs 45.3 GB (41.2–49.8 GB) on the H100.")
    assert "| weights | 35.3 GB |" in got.answer
    assert "sequence length 2,048 tokens." in got.answer
    assert got.assumptions[0].why == "common length"
    assert "Toy handbook (2026-11-30)" in got.answer
    assert "Only 43.4 % is left." in got.answer
    assert got.grounding.numbers == got.grounding.grounded > 5
    assert [fact.id for fact in got.facts] == ["t1.peak_per_gpu", "t1.headroom", "t1.bill.0.bytes", "t1.bill.1.bytes"]
    assert [fact.value for fact in got.facts[2:]] == [35.3e9, 10.0e9]
    assert got.suggestions == ["And on two H100?"]
    assert shown(events) == got.answer


def test_the_json_answer_has_exactly_the_agreed_keys(desk_of: Desks) -> None:
    got = answer(QUESTION, desk=desk_of(Scripted(MEMORY, says(GOOD)))).as_json()
    assert list(got) == [
        "conversation_id", "turn_id", "status", "answer", "model", "degraded", "tool_calls", "facts", "assumptions",
        "citations", "warnings", "charts", "suggestions", "grounding",
    ]  # fmt: skip
    assert set(got["tool_calls"][0]) == {"id", "name", "arguments", "result", "milliseconds"}
    assert list(got["facts"][0]) == [
        "id", "name", "value", "unit", "low", "high", "kind", "basis", "as_of", "tool_call",
    ]  # fmt: skip
    assert set(got["assumptions"][0]) == {"name", "value", "unit", "why"}
    assert set(got["citations"][0]) == {"id", "title", "source", "as_of"}
    assert set(got["grounding"]) == {"numbers", "grounded", "repaired"}
    json.dumps(got, allow_nan=False)


def test_parallel_calls_run_side_by_side_and_answer_in_order(desk_of: Desks) -> None:
    slow = ("toy_price", {"gpu": "H100-SXM-80GB", "seconds": 0.3})
    other = ("toy_price", {"gpu": "A100-SXM4-80GB", "seconds": 0.25})
    model = Scripted(calls(slow, other), says("[[t1.usd_per_gpu_hour]] for the H100."))
    begun = time.monotonic()
    got = answer(QUESTION, desk=desk_of(model))
    assert time.monotonic() - begun < 0.5
    assert [call.arguments["gpu"] for call in got.tool_calls] == ["H100-SXM-80GB", "A100-SXM4-80GB"]
    results = [message for message in model.requests[1].messages if message.role == "tool"]
    assert [message.tool_call_id for message in results] == ["id0", "id1"]
    assert [json.loads(message.content)["tool_call"] for message in results] == ["t1", "t2"]


def test_a_refused_value_goes_back_to_the_model_which_may_mend_it(desk_of: Desks) -> None:
    model = Scripted(calls(("toy_memory", {"model": "7B", "n_gpus": 0})), MEMORY, says("[[t2.peak_per_gpu]]."))
    got = answer(QUESTION, desk=desk_of(model))
    assert got.status == "answered"
    assert got.tool_calls[0].error
    assert got.tool_calls[0].error["code"] == "out_of_range"
    handed_back = json.loads(model.requests[1].messages[-1].content)
    assert handed_back["error"]["field"] == "n_gpus"
    assert got.facts[0].id == "t2.peak_per_gpu"


@pytest.mark.parametrize(
    "fault",
    [
        [ToolCall("a", "no_such_tool"), Finish(reason="tool_calls")],
        [ToolCall("a", "toy_memory", {}, unreadable='{"model": '), Finish(reason="tool_calls")],
    ],
)
def test_a_call_that_cannot_be_run_is_handed_back_once_then_the_next_model_answers(
    desk_of: Desks, fault: list[ModelEvent]
) -> None:
    mends = Scripted(fault, MEMORY, says("[[t2.peak_per_gpu]]."), name="mends")
    assert answer(QUESTION, desk=desk_of(mends)).model == "mends"
    again = [ToolCall("b", "no_such_tool_either"), Finish(reason="tool_calls")]
    stubborn = Scripted(fault, again, name="stubborn")
    planner = Scripted(calls(("toy_memory", {"model": "7B"})), says("It needs [[peak_per_gpu]]."), name="planner")
    got = answer(QUESTION, desk=desk_of(stubborn, planner))
    assert (got.model, got.degraded, got.status) == ("planner", True, "answered")
    assert "stubborn could not answer" in got.answer


def test_a_number_that_no_tool_gave_is_repaired_once(desk_of: Desks) -> None:
    model = Scripted(MEMORY, says("It needs 61 GB."), says("It needs [[t1.peak_per_gpu]]."))
    events = list(run(QUESTION, desk=desk_of(model)))
    got = events[-1].answer if isinstance(events[-1], Done) else None
    assert got is not None
    assert got.answer.startswith("It needs 45.3 GB.")
    assert got.grounding.repaired
    assert not model.requests[2].allow_tools
    assert "'61 GB'" in model.requests[2].messages[-1].content
    assert all("61 GB" not in event.text for event in events if isinstance(event, Text))


def test_a_model_that_insists_on_its_number_is_replaced_by_the_tools_own_words(desk_of: Desks) -> None:
    model = Scripted(MEMORY, says("It needs 61 GB."), says("Really, 61 GB."))
    got = answer(QUESTION, desk=desk_of(model))
    assert "61" not in got.answer
    assert got.answer.startswith("**Yes: 45.3 GB of 80 GB.**")
    assert got.status == "answered"
    assert got.grounding.numbers == got.grounding.grounded


def test_a_number_without_any_tool_call_is_never_shown(desk_of: Desks) -> None:
    model = Scripted(says("An H100 costs $1.99/h."), says("I said $1.99/h."))
    got = answer(QUESTION, desk=desk_of(model))
    assert "1.99" not in got.answer
    assert got.status == "failed"


def test_the_steps_are_limited_and_what_was_found_is_still_told(desk_of: Desks) -> None:
    moves = [calls(("toy_price", {"gpu": "H100-SXM-80GB", "seconds": number / 1e6})) for number in range(9)]
    got = answer(QUESTION, desk=desk_of(Scripted(*moves), max_steps=4))
    assert len(got.tool_calls) == 3
    assert "$2.40/GPU-h" in got.answer


def test_a_call_repeated_word_for_word_is_not_run_again(desk_of: Desks) -> None:
    got = answer(QUESTION, desk=desk_of(Scripted(MEMORY, MEMORY, MEMORY, says("[[t1.peak_per_gpu]]."))))
    assert len(got.tool_calls) == 1
    assert got.answer.startswith("45.3 GB.")


def test_a_model_that_fails_is_followed_by_the_next_and_the_answer_says_so(desk_of: Desks) -> None:
    down = Scripted(ModelFailed("rate_limited", "x"), name="openai/gpt-9")
    planner = Scripted(MEMORY, says("[[t1.peak_per_gpu]]."), name="planner")
    got = answer(QUESTION, desk=desk_of(down, planner))
    assert (got.model, got.degraded) == ("planner", True)
    assert "openai/gpt-9 could not answer (rate limited)" in got.answer
    assert got.warnings[0].code == "degraded"
    assert got.grounding.numbers == got.grounding.grounded


def test_everything_failing_still_gives_one_kind_answer(desk_of: Desks) -> None:
    got = answer(QUESTION, desk=desk_of(Scripted(RuntimeError("secret sk-1"), name="a"), Scripted(name="planner")))
    assert got.status == "failed"
    assert got.turn_id in got.answer
    assert "sk-1" not in got.answer


def test_what_the_tools_gave_is_told_even_when_every_model_fails_afterwards(desk_of: Desks) -> None:
    got = answer(QUESTION, desk=desk_of(Scripted(MEMORY, RuntimeError("x"), name="a"), Scripted(name="planner")))
    assert (got.status, got.degraded) == ("answered", True)
    assert "45.3 GB" in got.answer


def test_a_refusal_is_not_taken_round_to_another_provider(desk_of: Desks) -> None:
    refuses, other = Scripted(ModelFailed("refused", "x"), name="a"), Scripted(MEMORY, says("x"), name="b")
    planner = Scripted(MEMORY, says("[[t1.peak_per_gpu]]."), name="planner")
    got = answer(QUESTION, desk=desk_of(refuses, other, planner))
    assert got.model == "planner"
    assert not other.requests


def test_an_answer_cut_at_the_token_limit_ends_with_its_last_whole_paragraph(desk_of: Desks) -> None:
    cut = says("It needs [[t1.peak_per_gpu]].\n\nAnd then the", finish=Finish(reason="length"))
    got = answer(QUESTION, desk=desk_of(Scripted(MEMORY, cut)))
    assert got.answer.startswith("It needs 45.3 GB.\n\nNote:")


def test_a_model_may_not_spend_more_tokens_than_a_turn_has(desk_of: Desks) -> None:
    spends = [
        [ToolCall("a", "toy_price", {"gpu": "H100-SXM5", "seconds": n / 1e6}), Finish(usage=Usage(900, 200))]
        for n in range(3)
    ]
    model = Scripted(*spends)
    got = answer(QUESTION, desk=desk_of(model, max_turn_tokens=1000))
    assert len(got.tool_calls) == 1
    assert not model.requests[1].allow_tools


def test_a_tool_with_a_bug_becomes_an_error_result_without_its_text(desk_of: Desks) -> None:
    got = answer(QUESTION, desk=desk_of(Scripted(calls(("toy_price", {"gpu": "boom"})), says("I could not price it."))))
    assert got.tool_calls[0].error
    assert got.tool_calls[0].error["code"] == "tool_failed"
    assert "sk-123" not in json.dumps(got.as_json())


def test_a_tool_that_hangs_is_given_up_at_its_deadline(desk_of: Desks) -> None:
    hangs = calls(("toy_price", {"gpu": "H100-SXM-80GB", "seconds": 30}))
    begun = time.monotonic()
    got = answer(QUESTION, desk=desk_of(Scripted(hangs, says("It did not finish.")), tool_seconds=0.2))
    assert time.monotonic() - begun < 2
    assert got.tool_calls[0].error
    assert got.tool_calls[0].error["code"] == "tool_timeout"


def test_paragraphs_are_shown_as_soon_as_they_hold(desk_of: Desks) -> None:
    seen_when_second_began: list[str] = []
    pieces = ["It needs [[t1.peak", "_per_gpu]].\n\n", "Then ", "more."]

    def slowly(request: ModelRequest) -> list[ModelEvent]:
        return [*(TextDelta(piece) for piece in pieces), Finish()]

    events = []
    for event in run(QUESTION, desk=desk_of(Scripted(MEMORY, slowly))):
        events.append(event)
        if isinstance(event, Text):
            seen_when_second_began.append(event.text)
    assert seen_when_second_began[0] == "It needs 45.3 GB."
    done = events[-1]
    assert isinstance(done, Done)
    assert shown(events) == done.answer.answer


def test_a_question_back_and_a_polite_no_keep_their_status(desk_of: Desks) -> None:
    asks = says("Which GPU do you have?", finish=Finish("needs_input", suggestions=("An RTX 4090",)))
    got = answer(QUESTION, desk=desk_of(Scripted(asks)))
    assert (got.status, got.suggestions) == ("needs_input", ["An RTX 4090"])
    no = says("I only know machines for training models.", finish=Finish("declined"))
    assert answer(QUESTION, desk=desk_of(Scripted(no))).status == "declined"


def test_the_next_turn_sees_the_earlier_one_and_goes_on_counting(desk_of: Desks) -> None:
    first = Scripted(MEMORY, says("[[t1.peak_per_gpu]]."))
    desk = desk_of(first)
    got = answer(QUESTION, desk=desk)
    first.moves += [MEMORY, says("Still [[t2.peak_per_gpu]].")]
    again = answer("and now?", got.conversation_id, desk=desk)
    assert again.conversation_id == got.conversation_id
    assert again.facts[0].id == "t2.peak_per_gpu"
    roles = [message.role for message in first.requests[2].messages]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    turns = desk.store.turns("local", got.conversation_id)
    assert turns is not None
    assert [turn.question for turn in turns] == [QUESTION, "and now?"]
    assert turns[0].answer == got.as_json()


def test_a_reader_who_leaves_ends_the_turn_and_nothing_is_lost(desk_of: Desks) -> None:
    desk = desk_of(Scripted(MEMORY, says("[[t1.peak_per_gpu]].")))
    events = run(QUESTION, "c_x", desk=desk)
    while next(events).type != "tool_finished":
        pass
    events.close()  # type: ignore[attr-defined]
    turns = desk.store.turns("local", "c_x")
    assert turns is not None
    assert turns[0].status == "failed"
    assert turns[0].answer
    assert turns[0].answer["tool_calls"][0]["name"] == "toy_memory"


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("", "empty_question"), ("  \n\t ", "empty_question"),
        ("\u200b\u200b", "empty_question"), ("x" * 100_000, "question_too_long"),
        ("\x00\x01\x02\xff\xfe\x7f\x03", "question_unreadable"), ("\udcff\udcfe\udc80" * 9, "question_unreadable"),
    ],
)  # fmt: skip
def test_a_question_that_cannot_be_read_is_one_clear_error(desk_of: Desks, question: str, code: str) -> None:
    with pytest.raises(InputProblem) as caught:
        answer(question, desk=desk_of(Scripted()))
    assert caught.value.code == code
    assert caught.value.field == "question"


def test_a_late_model_is_cut_off_at_the_turns_deadline(desk_of: Desks) -> None:
    def drips(request: ModelRequest) -> list[ModelEvent]:
        time.sleep(0.3)
        return says("late")

    slow = Scripted(drips, name="slow")
    planner = Scripted(MEMORY, says("[[t1.peak_per_gpu]]."), name="planner")
    got = answer(QUESTION, desk=desk_of(slow, planner, turn_seconds=0.2))
    assert got.degraded
    assert got.status == "answered"
