"""The verdicts on claims agree with what the tools compute: one story, wherever a user asks."""

import re

import pytest

from knowledge.article_tables import read_yaml
from tools.registry import get_tool

CLAIMS = {claim["id"]: claim for claim in read_yaml("claims")}
PURE = {"idle_share": 0, "failures": False, "evaluation_share": 0, "start_up_hours": 0}


def call(tool, **arguments):
    return get_tool(tool).call(arguments)


def stated(claim_id, before, unit=""):
    """The number that stands after these words in the claim's sum."""
    match = re.search(re.escape(before) + r"\s*([\d.,]+)\s*" + re.escape(unit), CLAIMS[claim_id]["sum"])
    assert match, (claim_id, before)
    return float(match[1].rstrip(".,").replace(",", ""))


@pytest.mark.parametrize(
    ("claim_id", "arguments"),
    [
        ("S000-26", {"model": "70B", "gpu": "H100", "n_gpus": 8, "tokens": 100e9, "mfu": 0.4}),
        ("S000-28", {"model": "1B", "gpu": "RTX 3090", "n_gpus": 1, "tokens": 10e9, "mfu": 0.4}),
    ],
)
def test_run_hours_of_a_claim_are_the_tools_run_hours(claim_id, arguments):
    hours = call("estimate_run", method="full", **arguments, **PURE).fact("run_hours").value
    assert hours == pytest.approx(CLAIMS[claim_id]["check"]["result"], rel=0.01)
    low, high = CLAIMS[claim_id]["check"]["claimed"]
    assert not low <= hours <= high  # the verdict is wrong, and the tool says so too


def test_a_70b_needs_the_bytes_that_the_claims_say():
    states = call("estimate_vram", model="llama-3.1-70b", method="full", precision="bf16_mixed", sharding="none")
    total = sum(states.fact(name).value for name in ("weights", "gradients", "optimizer_states"))
    # 16 bytes a parameter however they are named: the claim rounds 70.55 to 70 billion.
    assert total == pytest.approx(CLAIMS["S000-22"]["check"]["result"] * 1e9, rel=0.01)
    lora = call("estimate_vram", model="llama-3.1-70b", method="lora", precision="bf16", gpu="A100 80GB")
    assert lora.fact("weights").value == pytest.approx(CLAIMS["S000-23"]["check"]["result"] * 1e9, rel=0.01)
    assert lora.gpu_verdict == "does_not_fit"
    qlora = call("estimate_vram", model="llama-3.1-70b", method="qlora", gpu="A100 80GB")
    assert qlora.gpu_verdict == "fits"
    assert qlora.fact("weights").value == pytest.approx(CLAIMS["S002-10"]["check"]["result"] * 1e9, rel=0.02)
    assert qlora.fact("peak_per_gpu").value < 66e9 < 88e9  # S002-27: 88 GB is wrong


def test_a_7b_full_fine_tune_is_not_80_gb_by_the_tool_either():
    peak = call("estimate_vram", model="llama-2-7b", method="full", precision="bf16_mixed", sharding="none")
    assert peak.fact("peak_per_gpu").value > CLAIMS["S002-11"]["check"]["claimed"][1] * 1e9


def test_13b_lora_does_not_fit_a_3090_and_qlora_does():
    base = {"model": "llama-2-13b", "gpu": "RTX 3090", "seq_len": 1024}
    assert call("estimate_vram", method="lora", precision="bf16", **base).gpu_verdict == "does_not_fit"
    assert call("estimate_vram", method="qlora", **base).gpu_verdict == "fits"


def test_a_16_gb_card_trains_more_than_tiny_models():
    small = call("estimate_vram", model="llama-3.1-8b", method="qlora", gpu="T4", seq_len=1024, fused_loss=True)
    assert small.gpu_verdict in ("fits", "borderline")  # S002-55 is too strict


def test_rates_of_claims_are_those_of_the_cards():
    compared = call("compare_gpus", gpus=["RTX 4090", "RTX 3090"])
    assert compared.fact("bf16_ratio").value == pytest.approx(CLAIMS["S000-03"]["check"]["result"], rel=0.02)
    compared = call("compare_gpus", gpus=["H100 SXM", "A100 80GB SXM"])
    assert compared.fact("bf16_ratio").value == pytest.approx(CLAIMS["S000-09"]["check"]["result"], rel=0.01)


@pytest.mark.parametrize(
    ("claim_id", "card", "fact", "words", "rel"),
    [
        ("S002-36", "H100 SXM", "median_specialist_on_demand", "medians", 0.1),
        ("S002-36", "H100 SXM", "median_hyperscaler_on_demand", "at specialists,", 0.1),
        ("S002-37", "A100 80GB SXM", "median_specialist_on_demand", "(median", 0.1),
        ("S002-38", "B200", "median_specialist_on_demand", "(median", 0.1),
        ("S002-39", "L40S", "median_specialist_on_demand", "(median", 0.1),
        ("S002-40", "RTX 4090", "median_specialist_on_demand", "at specialists (median", 0.1),
    ],
)
def test_medians_that_claims_quote_are_those_of_the_price_book(claim_id, card, fact, words, rel):
    # The packaged book; a refresh of it that moves a median by a tenth asks for the sentence to be rewritten.
    median = call("lookup_prices", gpu=card).fact(fact).value
    assert median == pytest.approx(stated(claim_id, words), rel=rel)


def test_the_saving_of_specialists_is_the_price_books():
    saving = call("lookup_prices", gpu="H100 SXM").fact("specialist_saving").value
    assert saving == pytest.approx(CLAIMS["S002-04"]["check"]["result"], rel=0.05)


def test_infiniband_is_not_needed_for_a_lora_by_the_tool_either():
    kept = call(
        "check_interconnect", model="7B", method="lora", gpu="H100", n_gpus=16, gpus_per_node=8, inter_link="100GbE"
    )
    assert kept.fact("speed_kept").value > 85  # S000-11: recommended, not required
