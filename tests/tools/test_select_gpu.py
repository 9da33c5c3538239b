"""select_gpu: what it recommends, limits on time and money, and that the whole book is searched quickly."""

from __future__ import annotations

import time
from datetime import date
from typing import Any

import pytest

from knowledge.prices import columns
from tools.cost import old_prices
from tools.cost.search import NEWER_DAYS, pareto
from tools.cost.select_gpu import SelectGpuResult
from tools.errors import InputProblem
from tools.registry import get_tool


def _select(**arguments: Any) -> SelectGpuResult:
    found = get_tool("select_gpu").call(arguments)
    assert isinstance(found, SelectGpuResult)
    return found


def test_seventy_billion_qlora_gets_one_card_with_headroom_its_dated_price_and_a_runner_up() -> None:
    found = _select(model="llama-3.3-70b", method="qlora")
    assert found.fact("recommended_count").value == 1
    assert float(found.fact("headroom").value) > 10
    price = found.fact("usd_per_gpu_hour")
    assert price.kind == "price"
    assert price.as_of is not None
    assert "Runner-up" in found.verdict
    assert any(row[0] == "1× RTX-4090" for table in found.tables if table.id == "ruled_out" for row in table.rows)


def test_a_too_small_budget_says_what_it_buys() -> None:
    found = _select(model="llama-3.1-8b", method="full", tokens="10B", budget=50)
    assert found.verdict.startswith("No")
    cheapest, bought = float(found.fact("cheapest_cost").value), float(found.fact("tokens_affordable").value)
    assert bought == pytest.approx(10e9 * 50 / cheapest)


def test_a_too_early_deadline_names_the_fastest_plan_and_how_far_it_gets() -> None:
    found = _select(model="llama-3.1-70b", method="full", tokens="100B", deadline="1h")
    assert any(warn.code == "too_late" for warn in found.warnings)
    assert float(found.fact("fastest_hours").value) > 1
    assert float(found.fact("tokens_in_time").value) < 100e9


def test_limits_that_can_be_met_are_met() -> None:
    found = _select(model="llama-3.1-8b", method="lora", tokens="500M", budget="$500", deadline="48h")
    assert float(found.fact("run_cost").value) <= 500
    assert float(found.fact("wall_hours").value) <= 48


def test_friday_is_counted_from_now_to_the_end_of_that_day() -> None:
    found = _select(model="llama-3.1-8b", method="lora", tokens="10M", deadline="by friday", now="2026-11-30T12:00")
    assert found.fact("deadline").value == pytest.approx(4 * 24 + 12)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"deadline": "2026-11-01", "now": "2026-11-30"}, "deadline"), ({"deadline": -3}, "deadline"),
     ({"deadline": "2026-12-24"}, "now"), ({"budget": 0}, "budget"), ({"budget": "cheap"}, "budget"),
     ({"tokens": 0}, "tokens"), ({"gpu": "H9000"}, "gpu"), ({"max_gpus": 0}, "max_gpus"),
     ({"provider": "nowhere"}, "provider")],
)  # fmt: skip
def test_impossible_limits_are_refused_naming_the_field(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(InputProblem) as problem:
        _select(**{"model": "8B", "method": "lora", **wrong})
    assert problem.value.field == field


def test_filters_that_leave_no_offer_say_so_without_a_guess() -> None:
    found = _select(model="8B", method="lora", provider="together", gpu="RTX 3090")
    assert found.plans == []
    assert any(warn.code == "no_price" for warn in found.warnings)


def test_no_plan_shown_is_beaten_in_both_cost_and_time() -> None:
    plans = _select(model="llama-3.1-8b", method="full", tokens="1B").plans
    for precision in ("bf16_mixed", "fp8"):
        same = [plan for plan in plans if plan.precision == precision]
        assert len(same) >= 2
        for plan in same:
            assert not any(other.usd < plan.usd and other.hours < plan.hours for other in same)


def test_fp8_stands_beside_the_verdict_and_is_never_it_unless_asked_for() -> None:
    found = _select(model="llama-3.1-8b", method="full", tokens="1B")
    assert found.plans[0].precision == "bf16_mixed"
    assert "FP8" not in found.verdict
    assert any("Transformer Engine" in warn.text for warn in found.warnings)
    pinned = _select(model="llama-3.1-8b", method="full", tokens="1B", precision="bf16")
    assert {plan.precision for plan in pinned.plans} == {"bf16"}
    asked = _select(model="llama-3.1-8b", method="full", tokens="1B", precision="fp8")
    assert {plan.precision for plan in asked.plans} == {"fp8"}
    assert "FP8" in asked.verdict


def test_adapters_are_offered_no_fp8() -> None:
    assert {plan.precision for plan in _select(model="llama-3.1-8b", method="lora", tokens="1B").plans} == {"bf16"}


def test_cards_without_bf16_train_in_fp16_and_are_out_where_bf16_was_asked_for() -> None:
    free = _select(model="gpt2", method="pretrain", tokens="1B", gpu="V100")
    assert {plan.precision for plan in free.plans} == {"fp16_mixed"}
    assert "fp16" in free.verdict
    pinned = _select(model="gpt2", method="pretrain", tokens="1B", gpu="V100", precision="bf16")
    assert pinned.plans == []
    assert any("no bf16" in str(row) for table in pinned.tables for row in table.rows)
    assert "no bf16" in pinned.verdict


def test_limits_that_only_fp8_meets_are_said_to_be_met_by_it_beside_the_no() -> None:
    found = _select(model="llama-3.1-8b", method="full", tokens="1B", gpu="H100")
    cheapest = {
        precision: min(plan.usd for plan in found.plans if plan.precision == precision)
        for precision in ("bf16_mixed", "fp8")
    }
    between = sum(cheapest.values()) / 2
    held = _select(model="llama-3.1-8b", method="full", tokens="1B", gpu="H100", budget=between)
    assert held.verdict.startswith("No")
    assert any("FP8" in step and "within the limits" in step for step in held.next_steps)


def test_the_front_of_no_plans_is_empty() -> None:
    assert pareto([]) == []


def test_spot_machines_enter_only_when_asked_for() -> None:
    firm = _select(model="llama-3.1-8b", method="full", tokens="1B")
    loose = _select(model="llama-3.1-8b", method="full", tokens="1B", spot=True)
    assert {plan.billing for plan in firm.plans} <= {"on_demand", "secure"}
    assert float(loose.fact("run_cost").value) < float(firm.fact("run_cost").value)


def test_the_whole_book_is_priced_in_a_blink() -> None:
    arguments: dict[str, Any] = {"model": "llama-3.1-8b", "method": "full", "tokens": "10B", "spot": True}
    _select(**arguments)
    best = min(_timed(arguments) for _ in range(5))
    assert best < 0.150


def _timed(arguments: dict[str, Any]) -> float:
    start = time.process_time()
    _select(**arguments)
    return time.process_time() - start


def test_a_winner_at_an_old_price_is_shown_beside_the_winner_at_newer_ones() -> None:
    result = _select(model="llama-3.1-8b", method="lora", tokens="500M")
    newest = date.fromisoformat(str(columns().day.max()))
    seen = date.fromisoformat(str(result.fact("run_cost").as_of)[:10])
    old = (newest - seen).days > NEWER_DAYS
    assert old == ("price_age" in {fact.name for fact in result.facts})
    if old:
        newer = result.fact("newer_cost")
        assert (newest - date.fromisoformat(str(newer.as_of)[:10])).days <= NEWER_DAYS
        assert newer.value >= result.fact("run_cost").value
        assert result.next_steps[0].startswith("That price is [[price_age]]")


def test_a_new_price_is_not_called_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(old_prices, "NEWER_DAYS", 10_000)
    assert "price_age" not in {fact.name for fact in _select(model="7B", method="lora", tokens="50M").facts}
