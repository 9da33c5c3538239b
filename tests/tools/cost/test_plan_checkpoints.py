"""Checkpoint sizes, intervals and storage against sums done by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tools.cost.plan_checkpoints import PlanCheckpointsResult
from tools.errors import InputProblem
from tools.registry import get_tool


def _plan(**arguments: Any) -> PlanCheckpointsResult:
    found = get_tool("plan_checkpoints").call(arguments)
    assert isinstance(found, PlanCheckpointsResult)
    return found


def _value(found: PlanCheckpointsResult, name: str) -> float:
    return float(found.fact(name).value)


def test_seventy_billion_with_adamw_weigh_980_gb_and_140_without_states() -> None:
    found = _plan(model="70B", method="full", n_gpus=64)
    assert _value(found, "checkpoint_bytes") == pytest.approx(980e9)
    assert _value(found, "weights_only_bytes") == pytest.approx(140e9)


def test_saving_980_gb_at_5_gb_per_second_every_half_hour_costs_eleven_percent() -> None:
    found = _plan(model="70B", method="full", n_gpus=8, write_bandwidth="5 GB/s", interval="30 min", mtbf_hours=1e9,
                  restart="1s")  # fmt: skip
    assert _value(found, "write_seconds") == pytest.approx(196)
    assert _value(found, "overhead") == pytest.approx(10.9, abs=0.1)


def test_an_adapter_s_checkpoint_is_a_thousandth_of_the_model_s() -> None:
    lora = _plan(model="llama-3.1-8b", method="lora")
    full = _plan(model="llama-3.1-8b", method="full")
    assert 0.001 < _value(lora, "checkpoint_bytes") / _value(full, "checkpoint_bytes") < 0.01


def test_every_node_writing_its_part_is_as_many_times_faster_as_there_are_nodes() -> None:
    shared = _plan(model="70B", n_gpus=64)
    single = _plan(model="70B", n_gpus=64, gathered=True)
    assert _value(single, "write_seconds") == pytest.approx(8 * _value(shared, "write_seconds"))


def test_five_copies_of_70b_cost_113_dollars_a_month_at_s3_s_price() -> None:
    found = _plan(model="70B", method="full", kept=5, storage_usd_per_gb_month=0.023)
    assert _value(found, "storage_usd_per_month") == pytest.approx(112.7, abs=0.1)


def test_spot_reclaims_shorten_the_interval() -> None:
    calm = _plan(model="70B", n_gpus=64, run_hours=500)
    spot = _plan(model="70B", n_gpus=64, run_hours=500, spot_interruptions_per_month=0.5)
    assert _value(spot, "interval") < _value(calm, "interval")
    assert _value(spot, "overhead") > _value(calm, "overhead")


@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"write_bandwidth": 0}, "write_bandwidth"), ({"write_bandwidth": "fast"}, "write_bandwidth"),
     ({"mtbf_hours": 0}, "mtbf_hours"), ({"run_hours": -1}, "run_hours"), ({"interval": "0 min"}, "interval"),
     ({"spot_interruptions_per_month": 1.5}, "spot_interruptions_per_month"), ({"kept": 0}, "kept")],
)  # fmt: skip
def test_what_cannot_be_is_refused(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(InputProblem) as problem:
        _plan(**{"model": "7B", **wrong})
    assert problem.value.field == field


def test_a_node_s_disk_holds_its_part_of_two_checkpoints_the_weights_and_the_data() -> None:
    found = _plan(model="llama-3.1-8b", method="full", gpu="H100", n_gpus=16, tokens="10B")
    by_hand = 2 * 14 * 8.03e9 / 2 + 2 * 8.03e9 + 2 * 10e9  # 2 nodes; AdamW in mixed precision; 16-bit ids
    assert _value(found, "nvme_per_node") == pytest.approx(by_hand, rel=1e-3)
    assert _value(found, "stall_steps") == pytest.approx(_value(found, "stall_seconds") / _value(found, "step_seconds"))
    tiers = next(table for table in found.tables if table.id == "tiers")
    assert [row[0] for row in tiers.rows][1:3] == ["warm storage", "cold storage"]


def test_keeping_weights_warm_costs_as_many_times_more_as_the_tiers_prices_differ() -> None:
    found = _plan(model="70B", method="full", retention_months=24, storage_usd_per_gb_month=0.02)
    assert _value(found, "retention_cost_warm") == pytest.approx(5 * _value(found, "retention_cost"))
