"""Sentences as a good model would write them about real results: the number check must let them pass."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from advisor.names import kind_of
from advisor.number_check import Evidence, check
from tools.errors import InputProblem
from tools.registry import all_tools
from tools.result import Fact, ToolResult
from tools.units import format_range, format_value

LEAST = 1000
MOST_FALSE_ALARMS = 0.01
TEMPLATES = (
    "That comes to {}.", "**{}**", "- {} in total", "So plan for {}, no more.", "| total | {} |", "1. Expect {}.",
    "(i.e. {})",
)  # fmt: skip


def results() -> Iterator[tuple[dict[str, object], ToolResult]]:
    for spec in all_tools().values():
        for arguments in spec.examples:
            try:
                yield arguments, spec.call(arguments)
            except InputProblem:
                continue


def rounded(fact: Fact) -> list[str]:
    """Ways of writing a fact that keep to its value at the digits shown."""
    value, unit = fact.value, fact.unit
    if isinstance(value, (bool, str)) or value <= 0:
        return []
    ways = [format_value(value, unit)]
    if unit == "B" and value > 2e9:
        ways += [
            f"{value / 1e9:.1f} GB",
            f"{value / 2**30:.1f} GiB",
            f"about {value / 1e9:,.0f} GB",
            f"{value / 1e12:.2f}TB",
        ]
    if unit == "h" and value > 2:
        ways += [f"{value:.1f} hours", f"~{value:,.0f} h", f"{value / 24:.1f} days"]
    if unit == "s" and value > 100:
        ways += [f"{value / 60:.1f} minutes", f"{value / 3600:.2f} h"]
    if unit == "USD" and value > 10:
        ways += [
            f"${value:,.0f}",
            f"${value:.2f}",
            f"roughly ${value:,.0f}",
            f"{value:,.0f} USD",
            f"${value / 1000:.2f}k",
        ]
    if unit == "USD/GPU-h":
        ways += [f"${value:.2f} per GPU-hour", f"${value:.2f} per GPU per hour", f"{value:.2f} USD/GPU/h"]
    if unit == "%":
        ways += [f"{value:.0f}%", f"{value:.1f} percent"]
    if unit == "tokens/s":
        ways += [f"{value:,.0f} tokens per second", f"{value / 1000:.1f}k tokens/s"]
    if unit == "tokens" and value >= 1e9:
        ways += [f"{value / 1e9:.1f} billion tokens"]
    if unit == "GPUs":
        ways += [f"{value:.0f}x H100", f"{value:.0f} cards"]
    return ways


def sentences(picker: random.Random) -> Iterator[tuple[Evidence, str]]:
    for arguments, result in results():
        evidence = Evidence(["what should I use?"])
        evidence.add("t1", arguments, result)
        for fact in result.facts:
            gpus = [name for name in fact.about if kind_of(name) == "gpus"]
            models = [name for name in fact.about if kind_of(name) == "models"]
            for way in rounded(fact):
                templates = list(TEMPLATES)
                templates += [f"On the {gpu}: {{}}." for gpu in gpus] + [f"{name} needs {{}}." for name in models]
                yield evidence, picker.choice(templates).format(way)
            if fact.low is not None and fact.high is not None and fact.low > 0:
                span = format_range(fact.low, fact.high, fact.unit)
                yield evidence, picker.choice(["Between {}.", "The range is {}.", "({})"]).format(span)


def test_good_answers_about_real_results_give_hardly_any_false_alarm() -> None:
    total = 0
    alarms: list[str] = []
    for evidence, text in sentences(random.Random(11)):
        report = check(text, evidence)
        total += max(1, report.numbers)
        alarms += [str(finding) for finding in report.findings]
    assert total > LEAST
    assert len(alarms) < MOST_FALSE_ALARMS * total, alarms[:20]


@pytest.mark.parametrize("rate", [1.5, 0.4, 3.0])
def test_wrong_values_pass_only_where_they_meet_another_fact_of_the_turn(rate: float) -> None:
    """A check of numbers cannot tell one right number from another; how often chance makes one is bounded here."""
    total = passed = 0
    picker = random.Random(12)
    for arguments, result in results():
        evidence = Evidence(["what should I use?"])
        evidence.add("t1", arguments, result)
        for fact in result.facts:
            if isinstance(fact.value, float) and fact.value > 0 and fact.unit in ("B", "h", "USD", "USD/GPU-h", "%"):
                wrong = fact.value * rate * picker.uniform(0.9, 1.1)
                total += 1
                passed += not check(f"It is {format_value(wrong, fact.unit)}.", evidence).findings
    assert total > 150
    assert passed < 0.1 * total
