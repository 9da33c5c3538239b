"""Owning against renting: a hand-worked server, break-even, and the mix."""

from __future__ import annotations

from typing import Any

import pytest

from tools.cost.compare_ownership import CompareOwnershipResult
from tools.cost.ownership import Owned, best_mix, break_even_utilisation, owned
from tools.errors import InputProblem
from tools.registry import get_tool


def _node(**more: float) -> Owned:
    given: dict[str, Any] = {
        "server_usd": 350_000, "n_gpus": 8, "gpus_per_server": 8, "years": 3, "residual_36_months": 0.30,
        "support_share": 0.10, "network_share": 0.125, "staff_usd_per_year": 0, "watts_per_gpu": 1020,
        "usd_per_kwh": 0.08, "pue": 1.54, "colo_usd_per_kw_month": 200, "node_watts": 10_200,
    }  # fmt: skip
    return owned(**{**given, **more})


def _compare(**arguments: Any) -> CompareOwnershipResult:
    found = get_tool("compare_ownership").call(arguments)
    assert isinstance(found, CompareOwnershipResult)
    return found


def test_an_owned_h100_node_in_a_colocation_costs_two_dollars_a_gpu_hour_in_use_around_the_clock() -> None:
    # (350,000 - 105,000 + 105,000 support + 200 x 10.2 kW x 36 months) / (8 x 26,280 h) = 423,440 / 210,240
    node = _node()
    assert node.per_used_hour(1.0) == pytest.approx(2.014, abs=0.001)
    assert node.per_used_hour(0.7) == pytest.approx(2.88, abs=0.005)
    assert node.per_used_hour(0.5) == pytest.approx(4.03, abs=0.005)


def test_at_the_break_even_both_cost_the_same() -> None:
    node = _node(colo_usd_per_kw_month=0)
    share = break_even_utilisation(node, 3.2)
    assert node.per_used_hour(share) == pytest.approx(3.2)


def test_owning_never_pays_where_renting_is_cheaper_than_power() -> None:
    assert break_even_utilisation(_node(colo_usd_per_kw_month=0), 0.05) == float("inf")
    assert best_mix(_node(), 0.5, 0.9, 8).owned_gpus == 0


def test_a_mix_is_never_dearer_than_all_of_one_kind() -> None:
    fleet = _node(n_gpus=64)
    for utilisation in (0.2, 0.45, 0.6, 0.85, 1.0):
        mix = best_mix(fleet, 3.2, utilisation, 8)
        rented = 3.2 * 8760 * 3 * 64 * utilisation
        assert mix.total <= min(rented, fleet.total(utilisation)) * (1 + 1e-9)
        assert mix.owned_gpus % 8 == 0


def test_the_verdict_follows_utilisation() -> None:
    assert _compare(gpu="H100", utilisation=0.2).cheapest == "cloud"
    assert _compare(gpu="H100", utilisation=0.95).cheapest == "owned"


@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"utilisation": 80}, "utilisation"), ({"utilisation": 0}, "utilisation"), ({"years": 0}, "years"),
     ({"server_price": "cheap"}, "server_price"),
     ({"cloud_price": "x"}, "cloud_price")],
)  # fmt: skip
def test_what_cannot_be_is_refused(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(InputProblem) as problem:
        _compare(**{"gpu": "H100", **wrong})
    assert problem.value.field == field


def test_a_cloud_that_costs_nothing_is_compared_without_a_crash() -> None:
    found = _compare(gpu="H100", n_gpus=8, cloud_price=0)
    assert "reserved_break_even_utilisation" not in found.facts


@pytest.mark.parametrize(("gpu", "n_gpus", "utilisation"), [("RTX-4090", 1, 0.5), ("A100-SXM4-80GB", 4, 0.7)])
def test_without_a_price_of_the_machine_the_most_it_may_cost_is_said(gpu: str, n_gpus: int, utilisation: float) -> None:
    given = {"gpu": gpu, "n_gpus": n_gpus, "gpus_per_server": n_gpus, "utilisation": utilisation, "staff": 0}
    open_ = _compare(**given)
    most = next(float(fact.value) for fact in open_.facts if fact.name == "most_server_price")
    assert "missing" not in open_.verdict
    # At just that price owning costs what renting does.
    facts = {fact.name: float(fact.value) for fact in _compare(**given, server_price=most).facts}
    assert facts["owned_cost"] == pytest.approx(facts["cloud_cost"], rel=1e-6)


def test_where_power_alone_costs_more_than_rent_no_price_is_low_enough() -> None:
    found = _compare(gpu="RTX-4090", n_gpus=1, gpus_per_server=1, power_price=4.0)
    assert "never pays" in found.verdict
    assert next(fact.value for fact in found.facts if fact.name == "most_server_price") == 0
