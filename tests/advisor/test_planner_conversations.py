"""What a conversation has said by its last turn: each turn fills and replaces slots of the earlier ones.

Expected values are read off the turns by hand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from advisor.answer import Answer
from advisor.llm.planner import Planner
from advisor.settings import Settings
from advisor.store import SqliteConversations
from advisor.turn import Desk, answer

CONVERSATIONS: list[tuple[list[str], dict[str, Any]]] = [
    (["70b lora", "on 4 a100 80gb", "seq 8k"], {"n_gpus": 4, "seq_len": 8192}),
    (
        ["can i train 13b full on 2x a6000?", "and with zero3 offload?", "ok what about 4 of them"],
        {"n_gpus": 4, "sharding": "zero3"},
    ),
    (["qwen2.5 32b qlora", "24 gigs", "ctx 4k"], {"seq_len": 4096}),
    (["how long for 7b on 1B tokens", "8 h100", "lora"], {"tokens": 1000000000.0, "n_gpus": 8}),
    (["llama 3 8b full ft 8xH100", "seq 16k?", "bs 2"], {"n_gpus": 8, "seq_len": 16384, "micro_batch": 2}),
    (["need a gpu for 34b", "qlora, r=64", "cheapest"], {"lora_rank": 64}),
    (["we have 2 nodes", "8 a100 each", "65b full, fits?"], {"n_gpus": 16}),
    (["is a 4090 ok for 8b lora", "two?", "and 16k ctx"], {"n_gpus": 2, "seq_len": 16384}),
    (["price of an h100", "on runpod", "8 of them"], {"n_gpus": 8}),
    (["gemma 2 27b", "full", "8 l40s", "2k"], {"n_gpus": 8, "seq_len": 2048}),
    (
        ["pretrain 1b 20B tokens on 8 4090s", "and on h100s instead", "16 of those"],
        {"tokens": 20000000000.0, "n_gpus": 16},
    ),
    (["vram for 7b grpo", "qwen", "4k completions, 1 a100 40"], {"seq_len": 4096, "n_gpus": 1}),
    (
        ["axolotl qlora 70b 2x3090", "sample packing at 4096", "mbs 1 still oom"],
        {"framework": "axolotl", "n_gpus": 2, "seq_len": 4096, "micro_batch": 1},
    ),
    (["单卡4090微调7b", "lora", "长度4096呢"], {"n_gpus": 1, "seq_len": 4096}),
    (["70bのLoRAは？", "H100 4枚", "8kで"], {"n_gpus": 4, "seq_len": 8192}),
    (["8b sft 4 a100", "zero2", "actually 8 gpus"], {"n_gpus": 8, "sharding": "zero2"}),
    (["h100 vs h200 for 70b lora", "seq 32k", "single card"], {"seq_len": 32768}),
    (["13b, 2 gpus", "a100 40", "full"], {"n_gpus": 2}),
    (["cost of 8b full on 500M tokens", "with 8xA100 at $1.5/h"], {"tokens": 500000000.0, "n_gpus": 8}),
]


def last_of(path: Path, turns: list[str]) -> Answer:
    store = SqliteConversations(path / "turns.db")
    desk = Desk(Settings(database_url=f"sqlite:///{path}/turns.db"), store, lambda _name: Planner())
    got = answer(turns[0], None, "planner", desk=desk)
    for turn in turns[1:]:
        got = answer(turn, got.conversation_id, "planner", desk=desk)
    return got


@pytest.mark.parametrize(("turns", "expected"), CONVERSATIONS, ids=[turns[-1] for turns, _want in CONVERSATIONS])
def test_the_last_turn_calls_with_all_that_was_said(tmp_path: Path, turns: list[str], expected: dict[str, Any]) -> None:
    calls = [call.arguments for call in last_of(tmp_path, turns).tool_calls]
    for name, value in expected.items():
        given = [call[name] for call in calls if name in call]
        assert value in given, (name, given)


@pytest.mark.parametrize(
    ("card", "known"),
    [("H150", "A100 80G"), ("910B", "A100 80G"), ("RTX 5095", "4090"), ("M4 Ultra", "H100"), ("5090 ti", "5090")],
)
def test_an_unknown_card_beside_a_known_one_is_said_to_be_unknown(tmp_path: Path, card: str, known: str) -> None:
    got = last_of(tmp_path, [f"14B full on 8x {card} or 8x {known}?"])
    assert "do not have a GPU called" in got.answer
    named = {str(call.arguments.get("gpu", "")) for call in got.tool_calls}
    assert all(card.replace(" ", "-") not in gpu for gpu in named), named
