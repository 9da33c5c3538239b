"""Power, energy and money of machines by hand, and which circuit carries them."""

from __future__ import annotations

from typing import Any

import pytest

from tools.cost.estimate_power import EstimatePowerResult
from tools.errors import InputProblem
from tools.registry import get_tool


def _power(**arguments: Any) -> EstimatePowerResult:
    found = get_tool("estimate_power").call(arguments)
    assert isinstance(found, EstimatePowerResult)
    return found


def test_four_h100_servers_cost_eleven_thousand_euros_a_month_at_thirty_cents() -> None:
    got = _power(gpu="H100", n_gpus=32, power_price=0.30, currency="EUR")
    assert got.fact("power_cards").value == 32 * 700
    assert got.watts_at_most == pytest.approx(4 * 10_200)  # NVIDIA's figure for a DGX H100
    month = 4 * 10.2 * 0.8 * 1.54 * 730  # kW x load x PUE x hours
    assert got.kwh_per_month == pytest.approx(month)
    cost = got.fact("cost_month")
    assert (cost.unit, cost.value) == ("EUR", pytest.approx(month * 0.30))
    assert cost.low is not None
    assert cost.high is not None
    assert cost.low < float(cost.value) < cost.high
    assert got.fact("emissions_month").value == pytest.approx(month * 0.37)


def test_half_the_hours_cost_half() -> None:
    all_day, half = _power(gpu="H100", n_gpus=8), _power(gpu="H100", n_gpus=8, utilisation=0.5)
    assert half.kwh_per_month == pytest.approx(all_day.kwh_per_month / 2)
    assert half.watts_at_most == all_day.watts_at_most


def test_four_4090_need_more_than_a_us_outlet_and_less_than_a_european_one() -> None:
    got = _power(gpu="RTX 4090", n_gpus=4)
    assert got.watts_at_most == pytest.approx((4 * 450 + 250) / 0.9)
    enough = {row[0]: row[2] for row in got.tables[0].rows}
    assert enough["US 120 V, 15 A"] == enough["US 120 V, 20 A"] == "no"
    assert enough["Europe 230 V, 16 A"] == "yes"  # 0.8 x 3,680 W = 2,944 W
    limit = float(got.fact("power_limit").value)
    assert (4 * limit + 250) / 0.9 <= 0.8 * 120 * 15 < (4 * (limit + 10) + 250) / 0.9


@pytest.mark.parametrize(("cards", "answer"), [(1, "Yes"), (3, "No")])
def test_a_named_circuit_is_judged(cards: int, answer: str) -> None:
    got = _power(gpu="RTX 4090", n_gpus=cards, circuit_volts=120, circuit_amps=15)
    assert got.verdict.startswith(answer)


def test_impossible_values_are_refused_by_field() -> None:
    with pytest.raises(InputProblem) as refused:
        _power(gpu="H100", utilisation=1.4)
    assert refused.value.field == "utilisation"
