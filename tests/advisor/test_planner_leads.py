"""What is asked for leads the answer: one figure of a bill, two values of a choice, a card alone, a rule, a premise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from advisor.answer import Answer
from advisor.llm.planner import Planner
from advisor.llm.planner.parse import parse
from advisor.settings import Settings
from advisor.store import SqliteConversations
from advisor.turn import Desk, answer


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    settings = Settings(database_url=f"sqlite:///{tmp_path}/leads.db")
    return Desk(settings, SqliteConversations(tmp_path / "leads.db"), lambda _name: Planner())


def ask(desk: Desk, question: str) -> Answer:
    got = answer(question, None, "planner", desk=desk)
    assert got.grounding.numbers == got.grounding.grounded
    assert not got.grounding.repaired
    return got


def calls(got: Answer, tool: str) -> list[dict[str, Any]]:
    return [call.arguments for call in got.tool_calls if call.name == tool]


def first_line(got: Answer) -> str:
    return got.answer.split("\n", 1)[0]


# Reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cards"),
    [
        ("what is the difference between sxm and pcie h100", {"H100-SXM5", "H100-PCIe"}),
        ("a100 pcie or sxm?", {"A100-PCIe-80GB", "A100-SXM4-80GB"}),
        ("H100 SXM with PCIe NICs", {"H100-SXM5"}),
        ("is a 10 gig link enough", set()),
        ("we need a 100 GB disk", set()),
    ],
)
def test_forms_set_beside_each_other_are_two_cards_and_a_number_after_an_article_is_none(
    text: str, cards: set[str]
) -> None:
    assert {mention.argument for mention in parse(text).gpus} == cards


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("train 7b on TPU v5e-64", "n_gpus", 64),
        ("7b on tpu v4-64", "n_gpus", 32),  # two cores a chip
        ("torchrun --nproc_per_node 8 train.py", "n_gpus", 8),
        ("convert for 16 gpus: torchrun --nproc_per_node 8 x.py", "n_gpus", 16),
        ("my office 4090 and my home 4090", "n_gpus", 2),
        ("two 8xH100 servers", "n_gpus", 16),
        ("训练3B模型，1000亿token，8张A800", "n_gpus", 8),
        ("lora rank 64 vs 16 on 7b", "variants", ("lora_rank", [64, 16])),
        ("8bit adam instead of adamw for 7b", "variants", ("optimizer", ["adamw_8bit", "adamw"])),
        ("7b full, seq 4k or 8k", "variants", ("seq_len", [4096, 8192])),
        ("cluster mtbf 12h", "mtbf_hours", 12.0),
        ("a node fails every 2 days", "mtbf_hours", 48.0),
        ("A100 at $1.50 vs H100 at $2.70 an hour", "card_prices", {"A100-SXM4-80GB": 1.5, "H100-SXM5": 2.7}),
        ("7B at 1M tokens on 64 A100", "seq_len", 1_000_000),
        ("13B, 15M tokens each", "tokens", 15e6),
        ("I trained at 1024, my colleague wants 6k", "seq_len", 6000),
        ("batch 256x512 tokens", "seq_len", 512),
        ("is a 10 gig link enough for 2 nodes", "inter_link", "10GbE"),
        ("100Gb ethernet between nodes", "inter_link", "100GbE"),
        ("finished overnight (say 10 hours)", "deadline_hours", 10.0),
        ("busy 50% of the week", "utilisation", 0.5),
    ],
)
def test_slots_that_people_write_their_own_way(text: str, name: str, value: object) -> None:
    assert parse(text).values.get(name) == value


@pytest.mark.parametrize(
    ("text", "methods"),
    [
        ("LoRA (r=8) on 8B, and with QLoRA?", ("lora", "qlora")),
        ("qlora 70b, lora rank 16", ("qlora",)),
        ("llama 3.1 70b full on 32 h100", ("full",)),
        ("70b with the full 128k context", ()),
        ("Trainable params: 4M || all params: 16B, 30b nf4 r=256", ("qlora",)),
    ],
)
def test_methods_that_stand_apart_and_words_that_are_none(text: str, methods: tuple[str, ...]) -> None:
    assert parse(text).methods == methods


# Answering --------------------------------------------------------------------------------------------------------


def test_two_values_of_a_choice_are_computed_and_lead(desk: Desk) -> None:
    got = ask(desk, "lora rank 64 vs 16 memory difference for llama 3.1 70b")
    ranks = [call["lora_rank"] for call in calls(got, "estimate_vram")]
    assert ranks == [64, 16]
    assert "from 64 to 16" in first_line(got)


def test_a_part_of_the_bill_leads_where_it_is_asked_for(desk: Desk) -> None:
    got = ask(desk, "how big is the optimizer state for 13b adam")
    # AdamW keeps two fp32 moments: 8 bytes a parameter of 13e9.
    assert "104 GB" in first_line(got)
    assert {call["method"] for call in calls(got, "estimate_vram")} == {"full"}


@pytest.mark.parametrize(
    "question", ["gtx 1080ti can train what?", "is L40S good for training?", "can a 7900xtx do lora"]
)
def test_a_card_alone_is_answered_with_what_it_holds(desk: Desk, question: str) -> None:
    got = ask(desk, question)
    assert got.status == "answered"
    assert calls(got, "compare_gpus")
    assert "can train, by method" in got.answer
    assert "LoRA" in got.answer
    assert "fits (" in got.answer


def test_the_largest_size_said_to_fit_is_below_the_one_said_not_to(desk: Desk) -> None:
    got = ask(desk, "is an RTX 4090 any good?")
    line = next(line for line in got.answer.split("\n") if line.startswith("- QLoRA"))
    fits, above = line.split(";")
    size = [float(part.split("B ")[0].rsplit(" ", 1)[-1]) for part in (fits, above)]
    assert size[0] < size[1]


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("does my 850W psu handle two 4090s", "No"),  # 2 x 450 W
        ("will a 1600W psu run two 4090s?", "Yes"),
        ("is a 1250 W power supply enough for 2x 4090", "Too tight"),  # 900 W of cards and 250 W of host,
    ],
)
def test_a_supply_is_held_against_what_the_cards_draw(desk: Desk, question: str, word: str) -> None:
    assert first_line(ask(desk, question)).startswith(f"**{word}")


def test_carbon_leads_with_energy_and_emissions(desk: Desk) -> None:
    got = ask(desk, "estimate the carbon footprint of training llama 7b on 1T tokens")
    assert "kWh" in first_line(got)
    assert "CO2e" in first_line(got)


def test_a_deadline_is_met_by_the_count_that_the_rows_say(desk: Desk) -> None:
    got = ask(desk, "how many h100 do i need to finish 7b on 1T tokens in 30 days")
    tried = [call["n_gpus"] for call in calls(got, "estimate_run")]
    assert max(tried) >= 64  # 6 x 7e9 x 1e12 FLOP in 720 h at 400 TFLOP/s are about 41 cards
    assert first_line(got).startswith("**Fewest that meet the deadline")
    assert {call["method"] for call in calls(got, "estimate_run")} == {"pretrain"}


def test_the_next_knob_is_that_of_the_rung_that_is_the_answer(desk: Desk) -> None:
    got = ask(desk, "what batch size fits for llama 3.1 8b qlora on 24gb at 4096")
    assert "507 GB less" not in got.answer  # the knob of the largest batch tried
    assert len(calls(got, "estimate_vram")) > 3


def test_serving_counts_cards_where_how_many_is_asked(desk: Desk) -> None:
    got = ask(desk, "llama 3.1 405b inference fp8 how many h200")
    assert "Smallest that fits: 4 × H200-SXM" in got.answer  # 405 GB of weights over 141 GB cards


def test_cards_are_compared_on_as_many_as_hold_the_job(desk: Desk) -> None:
    got = ask(desk, "is h200 worth it over h100 for 70b full finetune")
    assert all(call["n_gpus"] >= 16 for call in calls(got, "estimate_run"))  # 16 bytes x 70e9 over 80 GB
    assert "It does not fit" not in got.answer


def test_stated_prices_go_to_their_cards(desk: Desk) -> None:
    got = ask(desk, "A100 80 at $1.50 vs H100 at $2.70 an hour for a 7B lora. which is cheaper for the whole job?")
    prices = {call["gpu"]: call["price"] for call in calls(got, "estimate_run")}
    assert prices == {"A100-SXM4-80GB": 1.5, "H100-SXM5": 2.7}


def test_a_machines_price_is_taken_by_the_card(desk: Desk) -> None:
    got = ask(desk, "DGX A100 for 75k or keep renting 8x A100-40 at 8.5/h? busy 50% of the week, 3 years")
    (call,) = calls(got, "compare_ownership")
    assert call["cloud_price"] == pytest.approx(8.5 / 8)
    assert call["server_price"] == 75_000
    assert call["utilisation"] == 0.5


def test_the_price_of_an_unknown_card_is_not_a_list_of_others(desk: Desk) -> None:
    got = ask(desk, "A200 price")
    assert not got.tool_calls
    assert "a200" in got.answer
    assert "nearest" in got.answer


def test_a_port_in_gigabits_is_not_so_many_gigabytes(desk: Desk) -> None:
    got = ask(desk, "is infiniband 400 = 400 GB/s right?")
    assert first_line(got).startswith("No, not 400 GB/s")
    assert "50 GB/s" in got.answer


def test_any_number_of_cards_works(desk: Desk) -> None:
    assert first_line(ask(desk, "can i train on 3 gpus or must it be 2/4/8")).startswith(
        "**Any number of cards works.**"
    )


def test_a_degree_that_does_not_divide_names_those_that_do(desk: Desk) -> None:
    got = ask(desk, "tp 3 on 8 gpus for llama 3.1 70b")
    assert first_line(got).startswith("8 GPUs cannot be split")
    assert "tp can be 1, 2, 4 or 8" in got.answer


@pytest.mark.parametrize(
    ("question", "tool"),
    [
        ("my loss is nan after 200 steps, why?", "search_knowledge"),
        ("GDPR: we need 8 H100 in the EU", "lookup_prices"),
        ("which gpu should i buy for bert at home", "compare_gpus"),
        ("is NVLink needed for 2x3090 fine-tuning", "check_interconnect"),
        ("chinchilla optimal tokens for 3B and what will it cost on 8 A100", "estimate_run"),
        ("how long does a H100 rental have to be to beat buying at 30k each", "compare_ownership"),
        ("whats the checkpoint interval for 512 H100, cluster mtbf 12h", "plan_checkpoints"),
        ("launch cmd for 4 nodes x 8, torchrun, fsdp", "launch_plan"),
        ("why does an moe with 3B active need the memory of 30B and is not faster to train", "search_knowledge"),
        ("dont ask me anything just: gpu + price + time for 'a big model'", "select_gpu"),
    ],
)
def test_the_tool_that_the_question_is_for(desk: Desk, question: str, tool: str) -> None:
    assert tool in {call.name for call in ask(desk, question).tool_calls}


def test_a_message_without_a_subject_is_asked_back_and_not_refused(desk: Desk) -> None:
    assert ask(desk, "is it enough?").status == "needs_input"


@pytest.mark.parametrize(
    "question", ["summarise the attention is all you need paper", "does my model infringe copyright?"]
)
def test_what_is_none_of_ours_is_declined(desk: Desk, question: str) -> None:
    assert ask(desk, question).status == "declined"
