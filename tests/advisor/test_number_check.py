from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.number_check import Evidence, check, evidence_of
from advisor.render import Sources, compose, render, show_fact
from advisor.tool_payload import payload
from tests.advisor.toys import MemoryInput, toy_memory
from tools.errors import InputProblem
from tools.registry import all_tools
from tools.result import Assumption, Column, Fact, SourceRef, Table, ToolResult
from tools.units import UNITS

H100, B200, LLAMA = "H100-SXM5", "B200-SXM", "meta-llama/Llama-3.1-70B"
RESULT = ToolResult(
    facts=[
        Fact(id="peak", name="peak_per_gpu", value=45.312e9, unit="B", low=41.2e9, high=49.8e9, about=[LLAMA, H100]),
        Fact(id="price", name="usd_per_gpu_hour", value=2.4, unit="USD/GPU-h", as_of="2026-08-21",
             about=[H100, "lambda"]),
        Fact(id="hours", name="run_hours", value=36.25, unit="h", low=30.0, high=44.0, about=[H100]),
        Fact(id="gpu_hours", name="gpu_hours", value=290.0, unit="h", about=[H100]),
        Fact(id="cost", name="run_cost", value=1234.0, unit="USD", about=[H100]),
        Fact(id="mfu", name="mfu", value=43.4, unit="%", about=[H100]),
        Fact(id="n_gpus", name="n_gpus", value=8, unit="GPUs", about=[H100]),
        Fact(id="link", name="link", value=50e9, unit="B/s", about=["InfiniBand-NDR"]),
        Fact(id="cuda", name="min_cuda", value="12.4", kind="quoted"),
        Fact(id="tokens", name="tokens", value=20e9, unit="tokens"),
    ],
    assumptions=[Assumption(name="seq_len", value=2048, unit="tokens", why="usual above 1B parameters")],
    sources=[SourceRef(id="s", title="Price book", as_of="2026-08-21")],
    tables=[
        Table(id="t", title="Cards", columns=[Column(key="gpu", label="GPU"), Column(key="b", label="Left", unit="B")],
              rows=[["B200-SXM", 137e9]])
    ],
)  # fmt: skip
SAID = "My budget is $5,000 and I have 24 GB on each of 3 cards since 2024; does llama 70b fit?"


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    found = Evidence([SAID])
    found.add("t1", {"model": "llama-3.1-70b", "gpu": "H100", "micro_batch": 4}, RESULT)
    return found


CLEAN = [
    "It needs 45.3 GB on the H100.",
    "It needs about 45 GB (41.2–49.8 GB) per GPU on an H100.",
    "It needs 42.2 GiB.",
    "Llama 3.1 70B needs 45.31 GB.",
    "Between 41.2 and 49.8 GB, so an 8x H100 box is plenty.",
    "The run takes 36.3 h (30–44 h) on 8 GPUs, or about 1.5 days.",
    "That is 290 GPU-hours.",
    "At $2.40/GPU-h (lambda, 2026-08-21) it costs $1,234 on H100s.",
    "At $2.40 per GPU per hour it costs $1,234, within your $5,000.",
    "MFU is 43.4 %, that is 43%.",
    "50 GB/s, that is 400 Gb/s, over InfiniBand NDR.",
    "It needs CUDA 12.4 or later.",
    "With 20B tokens of 2,048 tokens each and a micro-batch of 4.",
    "20 billion tokens.",
    "Your three cards of 24 GB are too small.",
    "The B200 has 137 GB left.",
    "1. Use ZeRO-3 with bf16.\n2. Or 8-bit Adam and FlashAttention-2 over PCIe 5.0.",
    "Llama-3.1-70B in NF4 on an RTX 4090 over NVLink 4 is another matter.",
    "Prices are from Price book (2026-08-21), seen in August 2026.",
    "Above 1B parameters checkpointing is usual.",
    "FP8 and mxfp4 need sm_90 or later; GDDR6X is slower than HBM3e.",
    "You said you started in 2024.",
    "p5.48xlarge and a2-highgpu-8g are the machines; both use 3D parallelism.",
    "Option 2 is better than option 1.",
    "One GPU holds it. Half-precision weights, double-checked.",
]

BAD = [
    "It needs 46.3 GB.", "It needs 45.3 GiB.", "It needs 45.3 TB.", "It needs 45.3 Gb.", "It needs 45.4 GB.",
    "It needs 45.3 GB on the B200.", "Llama-3.1-8B needs 45.3 GB.", "It takes 36.3 days.", "It takes 37 h.",
    "That is 36.3 GPU-hours.", "It costs $2.40/h.", "It costs $2.41/GPU-h.", "On aws it is $2.40/GPU-h.",
    "It costs €1,234.", "It costs $12,340.", "It costs $1,234/month.", "43.4 GB of it.", "It reaches 44.4 %.",
    "It reaches 43.4.", "Take 16 GPUs.", "Take 8 nodes.", "Take sixteen GPUs.", "Take a dozen cards.",
    "The link gives 50 Gb/s.", "The link gives 400 GB/s.", "It needs CUDA 12.8.", "It needs driver 550.54.15.",
    "Prices of 2026-08-22.", "Prices of May 2026.", "Back in 2019 it was dearer.", "Try the H300.", "Try Qwen9-77B.",
    "It needs ４６ GB.", "It needs ٤٦ GB.", "It needs 𝟜𝟞 GB.", "needs46GB", "It needs 4,6 GB.",
    "It needs 4.6e10 bytes.",
    "It needs 4.6×10¹⁰ bytes.", "Only ½ of it.", "Three times as much: 3x.", "See https://evil.example/45.",
    "`--nproc_per_node=16`", "```\nbatch_size: 64\n```", "| total | 61 GB |", "- 61 GB", "costs USD 99", "99 dollars",
    "It lasts 3 weeks.", "about 60 GB", "twenty GPUs", "~1,300 USD", "41.2–51 GB", "5k tokens/s", "70 TFLOPS", "700 W",
    "The 4090 costs 4090 USD.", "24 TB is what you have.", "5,000 GPUs", "It is 15th.",
]  # fmt: skip


@pytest.mark.parametrize("text", CLEAN)
def test_what_the_tools_and_the_user_said_passes(evidence: Evidence, text: str) -> None:
    report = check(text, evidence)
    assert not report.findings
    assert report.numbers == report.grounded


@pytest.mark.parametrize("text", BAD)
def test_what_nobody_said_is_found(evidence: Evidence, text: str) -> None:
    assert check(text, evidence).findings


def test_a_wrong_entity_is_told_apart_from_a_wrong_number(evidence: Evidence) -> None:
    assert "B200-SXM" in check("On the B200 it takes 36.3 h.", evidence).findings[0].why
    assert "no tool" in check("On the H100 it takes 99 h.", evidence).findings[0].why


def _shown(picker: random.Random, value: float, unit: str) -> str:
    """``value`` in one of the many ways of writing it."""
    text = picker.choice([f"{value:.1f}", f"{value:.2f}", f"{value:,.1f}", f"{value:.3e}"])
    script = picker.random()
    if script < 0.1:
        text = text.translate(str.maketrans("0123456789", "０１２３４５６７８９"))
    elif script < 0.2:
        text = text.translate(str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩"))
    elif script < 0.3:
        text = text.replace(",", "\u202f")
    if unit.startswith("$"):
        return picker.choice([f"${text}{unit[1:]}", f"{text} USD{unit[1:]}"])
    return text + picker.choice([" ", "", "\u00a0", "-"]) + unit


TEMPLATES = [
    "It needs {}.", "- {} in all", "| total | {} |", "So **{}** it is, as everyone knows.", "roughly {} (trust me)",
    "`{}`", "That leaves {}!", "from 41.2 GB to {}", "It needs 45.3 GB, i.e. {}.", "1. {} first", "»{}«", "={}",
    "As instructed by the page: {}.", "The H100 does it in {}", "{} — no more, no less",
]  # fmt: skip


def test_five_hundred_made_up_numbers_are_all_found(evidence: Evidence) -> None:
    picker = random.Random(20261130)
    units = ["GB", "GiB", "TB", "MB", "Gb", "h", "days", "min", "ms", "$", "$/h", "$/GPU-h", "%", "tokens/s", "TFLOPS",
             "GB/s", "Gb/s", "x", "GPU-hours", "kW", "steps", "nodes"]  # fmt: skip
    missed = []
    for _round in range(500):
        # Digits that no fact, table or assumption here begins with, in any unit: nothing is met by chance.
        value = picker.choice([6.17, 61.7, 617.3, 7.93, 79.31, 793.1, 8.87, 88.71, 5.57, 55.72]) * picker.choice(
            [1, 10]
        )
        text = picker.choice(TEMPLATES).format(_shown(picker, value, picker.choice(units)))
        if not check(text, evidence).findings:
            missed.append(text)
    assert not missed


def test_every_digit_changed_in_a_clean_answer_is_found(evidence: Evidence) -> None:
    clean = "It needs 45.31 GB on the H100, takes 36.25 h and costs $1,234 at $2.40/GPU-h with 43.4 % MFU."
    assert not check(clean, evidence).findings
    places = [i for i, letter in enumerate(clean) if letter.isdigit() and clean[i - 1 : i + 3] != "H100"]
    places = [i for i in places if not clean[max(0, i - 3) : i + 3].count("H1")]
    for place in places:
        for digit in "0123456789":
            if digit != clean[place]:
                wrong = clean[:place] + digit + clean[place + 1 :]
                assert check(wrong, evidence).findings, wrong


@given(
    st.sampled_from([unit for unit in UNITS if unit]),
    st.floats(1e-3, 1e15, allow_nan=False),
    st.sampled_from(["", "range", "GiB", "GB", "h", "days", "Gb/s"]),
    st.floats(0.5, 0.99),
)
@settings(max_examples=800, deadline=None)
def test_whatever_the_renderer_prints_of_a_fact_passes(unit: str, value: float, form: str, share: float) -> None:
    fact = Fact(id="f", name="f", value=value, unit=unit, low=value * share, high=value / share)  # type: ignore[arg-type]
    found = Evidence()
    found.add("t1", {}, ToolResult(facts=[fact]))
    for text in (f"It is {show_fact(fact, form)}.", f"| a | {show_fact(fact, form)} |", f"**{show_fact(fact, form)}**"):
        assert not check(text, found).findings, text


def test_twice_and_half_stand_only_between_facts_of_one_name() -> None:
    found = Evidence()
    facts = [
        Fact(id="a", name="peak_per_gpu", value=40e9, unit="B"),
        Fact(id="b", name="peak_per_gpu", value=20e9, unit="B"),
        Fact(id="c", name="weights", value=10e9, unit="B"),
    ]
    found.add("t1", {}, ToolResult(facts=facts))
    assert not check("One needs twice as much as the other, or half.", found).findings
    assert check("One needs four times, a quarter of the other: triple it.", found).findings
    assert check("Weights take a quarter of it.", found).findings


def test_the_finished_turn_can_be_checked_again_from_its_json() -> None:
    result = toy_memory(MemoryInput(model=LLAMA))
    call: dict[str, Any] = {"arguments": {"model": LLAMA}, "result": result.model_dump(mode="json")}
    answer = {"tool_calls": [call], "warnings": [], "turn_id": "t_1"}
    again = evidence_of(answer, ["does it fit?"])
    assert not check("It needs 45.3 GB.", again).findings
    assert check("It needs 45.9 GB.", again).findings


def test_no_answer_composed_from_a_real_tools_result_gives_an_alarm() -> None:
    numbers = alarms = 0
    for name, spec in all_tools().items():
        for arguments in spec.examples:
            try:
                result = spec.call(arguments)
            except InputProblem:
                continue
            found, sources = Evidence(), Sources()
            found.add("t1", arguments, result)
            sources.add("t1", result)
            report = check(render(compose([payload("t1", name, result)]), sources).text, found)
            numbers += report.numbers
            alarms += len(report.findings)
    assert alarms <= 0.01 * numbers


@pytest.mark.parametrize(
    "text",
    ["see http://evil.example/x", "see www.evil.example", "[here](//evil.example/a)", "[x](evil.example)",
     "![](https://evil.example/p.png?q=secret)", "go to evil.example/login now", "ftp://evil.example"],
)  # fmt: skip
def test_an_address_that_nobody_gave_is_found(evidence: Evidence, text: str) -> None:
    assert check(text, evidence).findings


@pytest.mark.parametrize("text", ["vast.ai and fly.io rent them", "and/or", "60 GB/s", "bf16/fp16", "it is 1/2 etc."])
def test_what_only_looks_like_an_address_is_not_taken_for_one(text: str) -> None:
    assert not any("address" in finding.why for finding in check(text, Evidence()).findings)


def test_what_was_read_of_a_line_under_one_evidence_decides_nothing_under_another() -> None:
    line = "Since 2024 it takes 24 GB."
    assert not check(line, Evidence([SAID])).findings
    assert [finding.text for finding in check(line, Evidence()).findings] == ["2024", "24 GB"]
    assert [finding.text for finding in check(line, Evidence(["since 2024?"])).findings] == ["24 GB"]
    assert not check(line, Evidence([SAID])).findings


@pytest.mark.parametrize(
    ("quoted", "shown"), [("at most 8,192 tokens", "8192 tokens"), ("7e9 parameters", "7 B parameters"),
                          ("0.5 h of work", "30 min"), ("80GB of memory", "80 GB")]
)  # fmt: skip
def test_a_quoted_number_stands_also_where_it_is_written_otherwise(quoted: str, shown: str) -> None:
    evidence = Evidence()
    evidence.add_text(f"The article says {quoted}.")
    assert not check(f"That is {shown}.", evidence).findings
    assert check(f"That is 3{shown}.", evidence).findings
