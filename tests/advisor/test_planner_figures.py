"""The figure that is asked for comes first: a time judged, two values of a choice, a price, a payback, a quota."""

from __future__ import annotations

import pytest

from advisor.answer import Answer
from advisor.llm.planner.choices import choice_of
from advisor.llm.planner.parse import parse
from advisor.llm.planner.told import hours_told, step_seconds, times_by_count
from advisor.turn import Desk
from tests.advisor.reading import ask, lead


def facts(got: Answer, name: str) -> list[float]:
    return [float(fact.value) for fact in got.facts if fact.name == name]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("126 s a step", 126.0),
        ("each step takes 45 seconds", 45.0),
        ("step time 3.2 s", 3.2),
        ("22s/it", 22.0),
        ("0.5 it/s", 2.0),
        ("每步45秒", 45.0),
        ("ein schritt dauert 30 s", 30.0),
        ("takes 30 seconds to load", None),
    ],
)
def test_seconds_a_step_are_read_as_they_are_put(text: str, seconds: float | None) -> None:
    assert step_seconds(text) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("one gpu: 80 hours. four gpus: 150 hours.", (80 / 150, 1, 4)),
        ("40 hours on one gpu, 38 hours on two", (40 / 38, 1, 2)),
        ("2 gpus took 2 days, 4 gpus took 36 hours", (48 / 36, 2, 4)),
        ("2 A100 took 10 hours, 4 H100 took 5 hours", None),
        ("4 gpus take 10 hours", None),
    ],
)
def test_two_counts_with_a_time_each_make_a_speed_up(text: str, found: tuple[float, int, int] | None) -> None:
    got = times_by_count(parse(text))
    assert (got is None) == (found is None)
    if got and found:
        assert got[0] == pytest.approx(found[0])
        assert got[1:] == found[1:]


def test_hours_are_told_only_where_a_run_or_a_bar_tells_them() -> None:
    assert hours_told(parse("took 40h on a 4090")) == 40
    assert hours_told(parse("the bar says hundreds of hours")) == 200
    assert hours_told(parse("I need it in 40h")) is None


def test_a_time_that_was_told_is_judged_by_the_range_of_the_run(planner_desk: Desk) -> None:
    slow = ask(planner_desk, "tqdm says 400 hours for qlora of llama 3.1 8b on a 3090, 20M tokens, normal?")
    assert "slower than I expect" in lead(slow)
    assert facts(slow, "run_hours")[0] < 400
    fine = ask(
        planner_desk,
        f"took {facts(slow, 'run_hours')[0]:.1f} hours for qlora of llama 3.1 8b on a 3090, 20M tokens, ok?",
    )
    assert "that is normal" in lead(fine)
    undated = ask(planner_desk, "the bar says hundreds of hours for a 13b lora on an a100, normal?")
    assert "named no amount of data" in lead(undated)


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("zero2 vs zero3 for 13b", ("sharding", "zero2", "zero3")),
        ("fsdp or ddp for a 1b on 8 a100", ("sharding", "fsdp", "ddp")),
        ("8b lora: gradient checkpointing on vs off", ("activation_checkpointing", "none", "full")),
        ("with and without activation checkpointing, how much memory?", ("activation_checkpointing", "none", "full")),
        ("is gradient checkpointing worth it for a 7b", ("activation_checkpointing", "none", "full")),
        ("reshard_after_forward=False on an 8b", ("sharding", "fsdp", "zero2")),
        ("with or without cpu offload for a 13b", ("cpu_offload", "none", "all")),
        ("bf16 vs fp8 for an 8b on h100", ("precision", "bf16", "fp8")),
        ("is fp8 worth it for 70b on 64 h100", ("precision", "bf16", "fp8")),
        ("fsdp vs zero3 vs tp vs pp for 34b", None),
        ("7b lora with gradient checkpointing on a 4090", None),
        ("zero3 with cpu offload for 13b", None),
    ],
)
def test_two_values_set_against_each_other_are_one_choice(text: str, pair: tuple[str, str, str] | None) -> None:
    assert choice_of(parse(text)) == pair


def test_both_values_of_a_choice_are_computed_with_memory_and_speed(planner_desk: Desk) -> None:
    got = ask(planner_desk, "zero2 vs zero3 for a 13b full finetune on 8 a100 80gb")
    assert [call.arguments["sharding"] for call in got.tool_calls if call.name == "estimate_run"] == ["zero2", "zero3"]
    two, three = facts(got, "peak_per_gpu")
    # ZeRO-3 shards the weights too: of 13e9 x 4 bytes each card keeps an eighth.
    assert two - three > 0.3 * 13e9 * 4 * 7 / 8
    assert "ZeRO-2 to ZeRO-3" in lead(got)
    assert "tokens/s" in lead(got)


def test_doubling_the_data_of_the_run_spoken_of_doubles_its_hours(planner_desk: Desk) -> None:
    got = ask(planner_desk, "llama 3.1 8b lora on a 4090, 10M tokens: how long?", "and if I double my dataset?")
    assert "from 10 M tokens to 20 M tokens" in lead(got)
    before, after = facts(got, "run_hours")
    assert after == pytest.approx(2 * before, rel=0.05)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("cost per million tokens to train a 13b lora on an a100", "a million tokens on"),
        ("how many gpu hours for 7b on 100B tokens on h100", "of GPU time"),
        ("payback of a 4090 box at $2500 against renting", "pays itself back in"),
        ("a 12 kW rack, how many 8xH100 servers", "8 × H100-SXM5, one machine"),
        ("cheapest gpu with 48 GB", "with at least 48 GB"),
        ("6 TB quota, 32B full checkpoints, i keep the last 5. enough?", "5 kept take"),
        ("a 70b checkpoint from 8xh100 at 10 gbit, how long does it stall the run", "stops training for"),
        ("reserved one year against on demand for h100", "reserved for a year from"),
        ("does the 3090 have nvlink, compared with a 4090?", "RTX-3090 has NVLink"),
        ("pcie x8 vs x16 for 2x 4090, 7b lora", "PCIe 4.0 x8 keeps"),
        ("100k prompt takes 20 minutes before the first token, llama 70b q4 on a mac m3 ultra", "bound by the machine"),
    ],
)
def test_the_figure_asked_for_leads(planner_desk: Desk, question: str, words: str) -> None:
    assert words in lead(ask(planner_desk, question))


def test_the_price_of_a_million_tokens_is_that_of_the_run(planner_desk: Desk) -> None:
    got = ask(planner_desk, "cost per million tokens to train a 13b lora on an a100 at $1.39/h")
    cost, tokens, each = (facts(got, name)[0] for name in ("run_cost", "tokens", "usd_per_million_tokens"))
    assert each == pytest.approx(cost / tokens * 1e6)


def test_offers_hold_the_memory_and_the_price_asked_for(planner_desk: Desk) -> None:
    got = ask(planner_desk, "need a single card >=80GB under 2 bucks an hour")
    cards = next(call.arguments["gpus"] for call in got.tool_calls if call.name == "compare_gpus")
    assert len(cards) == 4
    sheets = [float(fact.value) for fact in got.facts if fact.name == "memory"]
    assert min(sheets) >= 80e9


def test_a_purchase_without_a_price_says_the_most_that_it_may_cost(planner_desk: Desk) -> None:
    got = ask(planner_desk, "should i buy a 4090 or rent one")
    assert "costs less than" in lead(got)
    assert got.status == "answered"


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Xid 79 on one of our H100s", "Xid catalogue"),
        ("FSDP hangs at checkpoint save, 70b on 16 h100", "every rank must enter it"),
        ("all ranks hang at the first all_reduce", "one rank waits for a collective"),
    ],
)
def test_a_failure_leads_with_its_usual_cause(planner_desk: Desk, question: str, words: str) -> None:
    got = ask(planner_desk, question)
    assert words in lead(got)
    assert [call.name for call in got.tool_calls] == ["search_knowledge"]


def test_a_run_that_was_told_with_its_hours_is_billed_by_them(planner_desk: Desk) -> None:
    got = ask(planner_desk, "our 70b full run took 25 hours on 32 A10G at aws. what did we pay?")
    assert [call.name for call in got.tool_calls] == ["lookup_prices"]
    assert got.tool_calls[0].arguments["hours"] == 25


def test_words_that_the_asker_takes_back_are_not_answered(planner_desk: Desk) -> None:
    got = ask(planner_desk, "4x A40 or rent? no wait, forget that. just tell me gpus that hold a 20B lora at 4k")
    assert "compare_ownership" not in {call.name for call in got.tool_calls}
    assert "20B" in got.answer


def test_a_passage_that_is_only_near_does_not_stand_beside_figures(planner_desk: Desk) -> None:
    got = ask(planner_desk, "a four b model in 4bit wont start on my 4090, Qwen3-4B, fast_inference, max_seq 2000")
    assert "No article answers just that" not in got.answer
    assert "loosely_related" not in {warning.code for warning in got.warnings}


def test_a_bill_beside_another_answer_is_one_line_without_a_bare_yes(planner_desk: Desk) -> None:
    got = ask(planner_desk, "tp/pp layout for 70b on 64 h100")
    assert got.tool_calls[0].name == "plan_parallelism"
    assert "\nYes: " not in got.answer
    assert "Memory per GPU at" not in got.answer
