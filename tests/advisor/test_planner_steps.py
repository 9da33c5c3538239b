"""The planner as a model behind the door: each step ends well, whatever is said and whatever the tools give back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.llm.planner import Planner
from advisor.llm.protocol import Finish, Message, ModelEvent, ModelRequest, TextDelta, ToolCall, ToolSchema
from tools.registry import tool_names

TOOLS = tuple(ToolSchema(name, dict) for name in tool_names())


def step(*messages: Message, tools: tuple[ToolSchema, ...] = TOOLS, allow_tools: bool = True) -> list[ModelEvent]:
    return list(Planner().reply(ModelRequest(messages, tools, 1e12, allow_tools)))


def calls(events: list[ModelEvent]) -> list[ToolCall]:
    return [event for event in events if isinstance(event, ToolCall)]


def text(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def answered(question: str, made: list[ToolCall], contents: list[str]) -> tuple[Message, ...]:
    results = [Message("tool", content, tool_call_id=call.id, name=call.name)
               for call, content in zip(made, contents, strict=True)]  # fmt: skip
    return (Message("user", question), Message("assistant", tool_calls=tuple(made)), *results)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300))
def test_every_step_is_calls_or_text_and_then_one_finish(question: str) -> None:
    events = step(Message("user", question))
    assert isinstance(events[-1], Finish)
    assert sum(isinstance(event, Finish) for event in events) == 1
    assert bool(calls(events)) != bool(text(events))


QUESTIONS = ["what GPU for 70B QLoRA?", "cost of 1B on 20B tokens", "biggest qlora on a 4090", "13b lora on 2x4090"]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(QUESTIONS),
    st.one_of(
        st.just("not json"),
        st.just("[]"),
        st.just('{"error": {"message": "No.", "hint": null}}'),
        st.dictionaries(
            st.sampled_from(["verdict", "facts", "tables", "next_steps", "error", "tool_call"]),
            st.one_of(st.none(), st.text(max_size=20), st.lists(st.integers(), max_size=3)),
        ).map(json.dumps),
    ),
)
def test_whatever_tools_give_back_ends_in_words(question: str, content: str) -> None:
    made = calls(step(Message("user", question)))
    events = step(*answered(question, made, [content] * len(made)))
    assert not calls(events)
    assert text(events).strip()


def test_without_leave_to_call_it_answers_in_words() -> None:
    events = step(Message("user", "what GPU for 70B QLoRA?"), allow_tools=False)
    assert not calls(events)
    assert text(events).strip()


@pytest.mark.parametrize("missing", tool_names())
def test_a_tool_that_is_not_there_is_done_without(missing: str) -> None:
    tools = tuple(tool for tool in TOOLS if tool.name != missing)
    for question in (*QUESTIONS, "fsdp or tp for 70b on 64 h100", "4090 vs 3090", "checkpoint size of a 70b"):
        made = calls(step(Message("user", question), tools=tools))
        assert missing not in {call.name for call in made}


def test_no_tools_at_all_still_gives_words() -> None:
    events = step(Message("user", "what GPU for 70B QLoRA?"), tools=())
    assert not calls(events)
    assert text(events).strip()


def test_every_call_is_one_that_the_tool_takes() -> None:
    from tools.registry import get_tool, parse_input

    for question in (
        "llama 3.1 8b lora r=64 bs 4 seq 8k zero3 offload 2x3090, 20M tokens, 3 epochs on runpod spot, does it fit?",
        "cost of llama 3.1 8b lora r=64 bs 4 seq 8k zero3 offload 2x3090, 20M tokens, 3 epochs on runpod spot",
        "torch 2.4.1+cu121 driver 535 on 5090 bf16",
        "8xH100 vs 16xA100 for a 7b on 1T tokens",
        "own 8xH100 server $300k vs cloud $2.5/h over 3 years at 60% utilization",
    ):
        for call in calls(step(Message("user", question))):
            parse_input(get_tool(call.name).input_model, call.arguments)
