"""Which quantity a question is about: what the lead, the calls and the readings are of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from advisor.answer import Answer
from advisor.llm.planner import Planner
from advisor.llm.planner.asked import Change, asked_of, change_of, scaling_of, speed_told
from advisor.llm.planner.parse import parse
from advisor.settings import Settings
from advisor.store import SqliteConversations
from advisor.turn import Desk, answer


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    settings = Settings(database_url=f"sqlite:///{tmp_path}/turns.db")
    return Desk(settings, SqliteConversations(tmp_path / "turns.db"), lambda _name: Planner())


def _ask(desk: Desk, question: str) -> Answer:
    got = answer(question, None, "planner", desk=desk)
    assert got.status == "answered"
    assert got.grounding.numbers == got.grounding.grounded > 0
    assert not got.grounding.repaired
    assert all(call.error is None for call in got.tool_calls)
    return got


def _lead(got: Answer) -> str:
    return got.answer.split("\n\n")[0]


@pytest.mark.parametrize(
    ("question", "goal"),
    [
        ("is mfu of 32% on 128 a100 for 13B normal?", "check_speed"),
        ("we see 41% mfu with llama 3 8b on 64 h100, is that good", "check_speed"),
        ("GPU utilisation 40 % training llama 8b on 8 H100, why?", "check_speed"),
        ("at 40% mfu how long for 7B on 1T tokens with 64 H100?", ""),
        ("our training on 16 gpus is only 1.3x faster than 8. why?", "check_scaling"),
        ("going from 8 to 16 A100 gave 30% more throughput for 7b, normal?", "check_scaling"),
        ("is an H100 3x faster than an A100 for 7b?", ""),
        ("how much power do 32 H100 draw?", "power"),
        ("buy or rent 8 H100 at 0.12 per kWh electricity?", "onprem"),
        ("is 64GB RAM enough for zero offload of a 7B", "host_memory"),
        ("what happens if I double the batch size on a 4090 with lora llama 3 8b", "change"),
        ("spot vs on demand for a 5 day job on 8 H100?", "spot_or_not"),
        ("spot price of an H100?", ""),
    ],
)
def test_words_that_name_a_quantity_decide_the_goal(question: str, goal: str) -> None:
    slots = parse(question)
    assert asked_of(slots, slots) == goal


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("16 gpus is only 1.3x faster than 8", (1.3, 8, 16)),
        ("scaling from 2 nodes to 4 nodes we got a speedup of 1.5x", (1.5, 16, 32)),
        ("speedup of 9x on 2 gpus vs 1 gpu", None),
        ("1.3x faster with flash attention", None),
    ],
)
def test_a_speed_up_is_read_with_both_counts(question: str, found: tuple[float, int, int] | None) -> None:
    assert scaling_of(parse(question)) == found


@pytest.mark.parametrize(
    ("question", "change"),
    [
        ("lora 7b on a100, what if I double the batch", Change("micro_batch", 1, 2)),
        ("lora 7b batch size 8 on a100, halve the batch size?", Change("micro_batch", 8, 4)),
        ("qwen 7b lora: from 4k to 16k context", Change("seq_len", 4096, 16384)),
        ("llama 8b full, going from 8 to 16 H100", Change("n_gpus", 8, 16)),
        ("7b lora rank from 16 to 64", Change("lora_rank", 16, 64)),
        ("llama 8b from scratch to 2 epochs", None),
    ],
)
def test_a_change_is_read_with_both_ends(question: str, change: Change | None) -> None:
    slots = parse(question)
    assert change_of(slots, slots) == change


def test_a_rate_is_of_one_gpu_only_where_that_is_said() -> None:
    assert speed_told(parse("2,300 tokens/s per GPU on llama 8B")) == {"tokens_per_second_per_gpu": 2300}
    assert speed_told(parse("18k tok/s on llama 8B with 8 H100")) == {"tokens_per_second": 18000}


@pytest.mark.parametrize(
    "words",
    ["a 10 gig link", "10Gb ethernet", "10 gbit network", "10 gigabit ethernet", "a 10gbps nic", "10G networking"],
)
def test_a_rate_beside_a_network_word_is_a_link(words: str) -> None:
    slots = parse(f"2x8 H100 and {words}, is it the bottleneck for llama 8b full finetune")
    assert slots.get("inter_link") == "10GbE"
    assert slots.get("gpu_memory_gb") is None
    assert [gpu.argument for gpu in slots.gpus] == ["H100-SXM5"]


@pytest.mark.parametrize("words", ["a 10 GB card", "100 gb network volume"])
def test_memory_and_storage_are_no_links(words: str) -> None:
    slots = parse(f"{words} for llama 8b qlora")
    assert slots.get("inter_link") is None
    assert not slots.gpus


def test_cards_are_compared_by_finished_runs_once_each(desk: Desk) -> None:
    got = _ask(desk, "what's cheaper for finetuning mistral 7b lora on 50M tokens: L4, A10G or T4")
    assert [call.name for call in got.tool_calls] == ["estimate_run"] * 3
    costs = {fact.tool_call: float(fact.value) for fact in got.facts if fact.name == "run_cost"}
    cards = {call.id: call.arguments["gpu"] for call in got.tool_calls}
    assert f"Cheapest is 1× {cards[min(costs, key=lambda call: costs[call])]}" in _lead(got)


def test_a_price_cap_holds_for_the_runner_up_too(desk: Desk) -> None:
    got = _ask(desk, "best gpu under $2/hr for 8B full finetune")
    prices = [float(fact.value) for fact in got.facts if fact.name in ("usd_per_gpu_hour", "runner_up_price")]
    assert len(prices) == 2
    assert max(prices) <= 2
    assert "$2.00/GPU-h" in _lead(got)


def test_host_memory_is_what_is_answered(desk: Desk) -> None:
    lead = _lead(_ask(desk, "is 64GB RAM enough for zero offload of a 7B"))
    assert lead.startswith("**No")
    assert "host memory" in lead
    assert "64 GB" in lead


def test_before_and_after_stand_side_by_side(desk: Desk) -> None:
    got = _ask(desk, "what happens if I double batch size on rtx 4090 lora llama 3 8b")
    assert [call.arguments["micro_batch"] for call in got.tool_calls] == [1, 2]
    assert "from 1 to 2" in _lead(got)


def test_spot_and_on_demand_are_totals_of_the_same_run(desk: Desk) -> None:
    got = _ask(desk, "spot vs on demand for a 5 day job on 8 H100?")
    facts: dict[str, Any] = {fact.name: fact.value for fact in got.facts}
    assert facts["run_hours"] == 120
    firm = facts["on_demand_usd_per_gpu_hour"] * 8 * 120
    assert firm <= facts["on_demand_cost"] < 1.3 * firm  # saves, start-up and idle time on top
    assert "spot" in _lead(got).lower() or "spot" in got.answer.split("\n\n")[1].lower()


def test_small_models_and_encoders_are_trained_whole_unless_said_otherwise(desk: Desk) -> None:
    got = _ask(desk, "how much vram to fine-tune bert-large?")
    assert got.tool_calls[0].arguments["method"] == "full"
