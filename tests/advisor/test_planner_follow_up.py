"""Bare numbers in short follow-ups, and what of a run stays when one thing of it changes."""

import pytest

from advisor.llm.planner.model import Planner, _read
from advisor.llm.protocol import Message, ModelRequest, ToolCall, ToolSchema
from tools.registry import all_tools


def calls(*said):
    tools = tuple(ToolSchema(name, lambda: ("", "", {})) for name in all_tools())
    request = ModelRequest(messages=tuple(Message("user", text) for text in said), tools=tools, deadline=0.0)
    return [event for event in Planner().reply(request) if isinstance(event, ToolCall)]


def last_call(*said):
    return calls(*said)[0]


@pytest.mark.parametrize(
    ("follow_up", "length"),
    [("at 8192?", 8192), ("and at 4096 tokens?", 4096), ("32k then", 32768), ("and 16,384?", 16384)],
)
def test_a_large_bare_number_is_a_sequence_length(follow_up, length):
    call = last_call("QLoRA llama-3.1-8b at 2048 tokens, how much memory?", follow_up)
    assert call.name == "estimate_vram"
    assert call.arguments["seq_len"] == length
    assert "tokens" not in call.arguments


@pytest.mark.parametrize("follow_up", ["with 16?", "and with 16", "on 16?"])
def test_a_small_bare_number_after_a_run_is_a_count_of_gpus(follow_up):
    call = last_call("how long to pretrain 1B on 20B tokens on 8 A100?", follow_up)
    assert call.name == "estimate_run"
    assert call.arguments["n_gpus"] == 16
    assert float(call.arguments["tokens"]) == 20e9


def test_a_number_that_names_what_it_counts_is_left_to_the_reader():
    state, *_ = _read(("qlora of llama 3.1 8b, memory", "batch size 4"))
    assert state.get("micro_batch") == 4
    state, *_ = _read(("1B model, 20B tokens, 8xA100, how long?", "sorry, 40B tokens"))
    assert state.get("tokens") == 40e9


def test_another_card_keeps_the_count_of_a_run():
    call = last_call("how long for a 7B on 100B tokens with 64 H100?", "and on H200?")
    assert call.arguments["n_gpus"] == 64


def test_a_price_or_a_deadline_changes_the_run_that_was_spoken_of():
    call = last_call("1B on 20B tokens on 8 A100, cost?", "we pay $1.10 per GPU hour")
    assert (call.name, call.arguments["price"]) == ("estimate_run", 1.1)
    made = calls("which GPU for QLoRA of 8B on 50M tokens?", "it must be done in 2 hours")
    assert next(call for call in made if call.name == "select_gpu").arguments["deadline"] == "2h"


def test_training_after_serving_is_training():
    call = last_call("memory to serve llama 3.1 70b in bf16?", "and to QLoRA it?")
    assert call.arguments["method"] == "qlora"
    assert call.arguments.get("task", "train") == "train"


@pytest.mark.parametrize("question", ["what is showback?", "what is the difference between GB and GiB?"])
def test_what_an_article_speaks_of_is_answered_from_it(question):
    assert last_call(question).name == "search_knowledge"


@pytest.mark.parametrize("question", ["how old are you", "how to lose weight", "who won the world cup"])
def test_what_no_article_speaks_of_is_not(question):
    assert calls(question) == []
