"""The graders, on faults that graders elsewhere have let through."""

import pytest

from evals.canaries import CANARIES, EXPECT, healthy, run_canaries
from evals.casefile import Expect
from evals.graders import GRADERS, grade
from evals.stray import stray_numbers
from evals.transcript import Happened
from evals.units import same_unit, to_fact
from tools.errors import BadValue


def test_every_canary_is_caught_and_the_healthy_turn_passes():
    assert run_canaries() == []
    assert len(CANARIES) >= 30
    assert {grader for grader, _ in CANARIES.values()} >= set(GRADERS) | {"crash"}


def text_misses(text, value, unit, rel=0.01):
    expect = Expect.model_validate(
        {"shown": [{"value": value, "unit": unit, "rel": rel, "source": "of this test"}], "grounded": False}
    )
    return [miss for miss in grade(expect, Happened(question="", text=text), []) if miss.grader == "text_value"]


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("it needs 49 GB", 49, "GB"),
        ("it needs **49.0 GB**.", 49, "GB"),
        ("about 1,120 GB in all", 1120, "GB"),
        ("1.12 TB", 1120, "GB"),
        ("takes 42! hours? no: 42 h", 42, "h"),
        ("(42 h)", 42, "h"),
        ("154 days", 3696, "h"),
        ("60 %", 60, "%"),
        ("$2.40/GPU-h", 2.40, "USD/GPU-h"),
        ("-7.25 GB of headroom", -7.25, "GB"),
        ("400 Gb/s", 50, "GB/s"),
        ("3,686 h", 3686.2, "h"),
    ],
)
def test_a_shown_number_is_seen(text, value, unit):
    assert text_misses(text, value, unit) == []


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("it needs 711 GB", 11, "GB"),  # suffix
        ("it needs 110 GB", 11, "GB"),  # prefix
        ("it needs 100 GB", 10, "GB"),  # substring
        ("it needs 49 GiB", 49, "GB"),
        ("it moves 50 Gb/s", 50, "GB/s"),
        ("60", 60, "%"),
        ("0.6", 60, "%"),
        ("H100", 100, "GB"),
        ("ZeRO-3 with 8 GPUs", 3, "h"),
        ("$2.40 in all", 2.40, "USD/GPU-h"),
        ("no number at all", 5, "GB"),
        ("37 h", 3686, "h"),
    ],
)
def test_what_only_looks_like_the_number_is_not(text, value, unit):
    assert len(text_misses(text, value, unit)) == 1


def test_names_of_one_thing_are_the_same_argument_and_look_alikes_are_not():
    def misses(given, wanted):
        call = {"id": "t1", "name": "estimate_vram", "arguments": {"gpu": given}, "error": {"message": "x"}}
        expect = Expect.model_validate({"tools": [{"name": "estimate_vram", "args": {"gpu": wanted}}]})
        happened = Happened(question="", calls=[call])
        return [miss for miss in grade(expect, happened, []) if miss.grader == "arguments"]

    assert misses("H100-SXM5", ["h100 sxm"]) == []
    assert misses("4090", ["RTX 4090"]) == []
    assert misses(None, ["H100", None]) == []
    assert misses("H100 PCIe", ["h100 sxm"])
    assert misses("A100 40GB", ["A100 80GB"])
    assert misses(None, ["H100"])


def test_counts_and_sizes_compare_as_numbers_however_they_are_written():
    def misses(given, wanted):
        call = {"id": "t1", "name": "estimate_run", "arguments": {"tokens": given}, "error": {"message": "x"}}
        expect = Expect.model_validate({"tools": [{"name": "estimate_run", "args": {"tokens": [wanted]}}]})
        return [miss for miss in grade(expect, Happened(question="", calls=[call]), []) if miss.grader == "arguments"]

    assert misses("20B", 2e10) == []
    assert misses(20_000_000_000, "20B") == []
    assert misses("20B", "2B")
    assert misses("20B", "200B")


def test_units_convert_by_exact_factors_only():
    assert to_fact(1, "GiB") == (2**30, "B")
    assert to_fact(400, "Gb/s") == (50e9, "B/s")
    assert same_unit(2, "h", "s") == 7200
    assert same_unit(2, "h", "USD") is None
    with pytest.raises(BadValue):
        to_fact(1, "furlongs")


def test_a_stray_number_is_found_without_the_products_own_check():
    happened = healthy()
    assert stray_numbers(happened, [happened.question]) == []
    happened.text += " Also 873.4 of something, all told."
    assert stray_numbers(happened, [happened.question]) == ["873.4"]
    assert stray_numbers(happened, [happened.question, "I have 873.4"]) == []


def test_one_miss_fails_the_case_whatever_else_holds():
    happened = healthy()
    happened.facts[0]["value"] *= 1.02
    misses = grade(EXPECT, happened, [])
    assert {miss.grader for miss in misses} >= {"fact_value"}


def test_a_crash_is_one_miss_and_never_a_pass():
    assert [miss.grader for miss in grade(Expect(), Happened(question="", crash="boom"), [])] == ["crash"]
