"""Known traps and the exported bill."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from tools.cost.export import COLUMNS
from tools.registry import get_tool


def _run(**arguments: Any) -> Any:
    return get_tool("estimate_run").call(arguments)


def _cost(gpu: str, **more: Any) -> float:
    return float(_run(gpu=gpu, method="pretrain", **more).fact("run_cost").value)


def test_for_a_nanogpt_size_model_an_a100_finishes_cheaper_than_an_h100() -> None:
    small = {"model": "gpt2", "tokens": "10B", "seq_len": 1024, "micro_batch": 12}
    assert _cost("A100", **small) < _cost("H100", **small)
    picked = get_tool("select_gpu").call(
        {"model": "gpt2", "method": "pretrain", "tokens": "10B", "gpu": ["A100", "H100"]}
    )
    assert str(picked.fact("recommended_gpu").value).startswith("A100")


def test_for_pretraining_seventy_billion_the_h100_wins() -> None:
    large = {"model": "llama-3.1-70b", "tokens": "1T", "n_gpus": 256, "micro_batch": 2}
    assert _cost("H100", **large) < _cost("A100", **large)
    asked = {"model": "llama-3.1-70b", "method": "pretrain", "tokens": "1T", "gpu": ["A100", "H100"]}
    picked = get_tool("select_gpu").call(asked)
    assert str(picked.fact("recommended_gpu").value).startswith("H100")


def test_fp8_gains_what_is_published_and_not_two_times() -> None:
    def speed(precision: str) -> float:
        job = {"model": "llama-3.1-8b", "method": "pretrain", "gpu": "H100", "n_gpus": 8, "seq_len": 8192,
               "activation_checkpointing": "selective", "framework": "torchtitan", "tokens": "1B"}  # fmt: skip
        return float(_run(precision=precision, **job).fact("tokens_per_second").value)

    assert 1.1 < speed("fp8") / speed("bf16") < 1.5


def test_the_exported_rows_add_up_to_the_bill_under_focus_names() -> None:
    found = _run(
        model="llama-3.1-8b", method="full", gpu="H100", n_gpus=8, tokens="1B", export=True, start="2026-12-01"
    )
    table, listed = (file.text for file in found.files)
    rows = list(csv.DictReader(io.StringIO(table)))
    assert tuple(rows[0]) == COLUMNS
    total = sum(float(row["BilledCost"]) for row in rows)
    assert total == pytest.approx(float(found.fact("run_cost").value), rel=1e-5)
    assert len(json.loads(listed)) == len(rows)
    assert rows[0]["ChargePeriodStart"] == "2026-12-01T00:00:00Z"
    assert "[[run_cost]]" in found.budget_request


def test_cost_grows_in_proportion_to_tokens_once_start_up_is_paid() -> None:
    one = _cost("H100", model="gpt2", tokens="10B", start_up_hours=0, checkpoints_kept=0, dataset_gb=0, failures=0)
    ten = _cost("H100", model="gpt2", tokens="100B", start_up_hours=0, checkpoints_kept=0, dataset_gb=0, failures=0)
    assert ten / one == pytest.approx(10, rel=1e-6)


def test_spot_is_billed_with_its_reclaims() -> None:
    firm = _run(model="llama-3.1-8b", gpu="H100", n_gpus=8, tokens="10B", price=2)
    spot = _run(model="llama-3.1-8b", gpu="H100", n_gpus=8, tokens="10B", price=2, billing="spot")
    assert float(spot.fact("run_cost").value) > float(firm.fact("run_cost").value)


def test_the_chart_of_plans_joins_those_that_nothing_beats() -> None:
    picked = get_tool("select_gpu").call({"model": "8B", "method": "lora", "tokens": "200M"})
    values = picked.charts[0]["data"]["values"]
    front = sorted((row["hours"], row["USD"]) for row in values if row["front"] == "nothing beats it")
    assert len(front) >= 2
    assert [usd for _hours, usd in front] == sorted((usd for _hours, usd in front), reverse=True)
    for row in values:  # a point on the front has no other that is both faster and cheaper
        if row["front"] == "nothing beats it":
            assert not any(o["hours"] < 0.99 * row["hours"] and o["USD"] < 0.99 * row["USD"] for o in values)
