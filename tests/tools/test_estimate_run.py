"""estimate_run: worked checks, switches of the hidden parts, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tools.errors import BadValue, InputProblem
from tools.registry import get_tool
from tools.result import ToolResult

OFF = {"idle_share": 0, "evaluation_share": 0, "failures": 0, "checkpoints_kept": 0, "dataset_gb": 0}


def _run(**arguments: Any) -> ToolResult:
    return get_tool("estimate_run").call(arguments)


def _value(result: ToolResult, name: str) -> float:
    return float(result.fact(name).value)


def test_seventy_billion_parameters_on_a_hundred_billion_tokens_is_3686_hours_and_does_not_fit() -> None:
    found = _run(model="70B", method="pretrain", gpu="H100", n_gpus=8, tokens="100B", mfu=0.40)
    # 6 x 70e9 x 100e9 / (8 x 989.4e12 x 0.40) / 3600, and not the 37 h that circulate
    assert _value(found, "run_hours") == pytest.approx(3686, rel=2e-3)
    assert found.verdict.startswith("It does not fit")
    assert any(warn.code == "does_not_fit" for warn in found.warnings)


def test_one_billion_on_ten_billion_tokens_keeps_a_3090_busy_for_590_hours() -> None:
    found = _run(model="1B", method="pretrain", gpu="RTX 3090", tokens="10B", mfu=0.40)
    assert _value(found, "run_hours") == pytest.approx(590, rel=0.02)


def test_with_every_hidden_part_off_the_cost_is_hours_times_price() -> None:
    found = _run(model="llama-3.1-8b", gpu="H100", n_gpus=8, tokens="1B", price=2.5, **OFF)
    assert _value(found, "gpu_hours") == pytest.approx(8 * _value(found, "run_hours"))
    assert _value(found, "run_cost") == pytest.approx(2.5 * _value(found, "gpu_hours"), rel=1e-6)


def test_hidden_parts_add_up_to_the_cost() -> None:
    found = _run(model="llama-3.1-8b", gpu="H100", n_gpus=8, tokens="10B", price=2.5)
    parts = [fact.value for fact in found.facts if fact.name.endswith("_cost") and fact.name not in
             ("run_cost", "hidden_cost", "spot_run_cost")]  # fmt: skip
    assert sum(float(part) for part in parts) == pytest.approx(_value(found, "run_cost"), rel=1e-6)
    assert _value(found, "idle_cost") > 0


def test_low_and_high_enclose_the_estimate() -> None:
    found = _run(model="llama-3.1-8b", gpu="A100", n_gpus=8, tokens="1B")
    for name in ("run_hours", "gpu_hours", "run_cost", "mfu", "tokens_per_second"):
        fact = found.fact(name)
        assert fact.low is not None
        assert fact.high is not None
        assert fact.low < float(fact.value) < fact.high


@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"tokens": 0}, "tokens"), ({"tokens": "-5B"}, "tokens"), ({"mfu": 1.5}, "mfu"), ({"mfu": 40}, "mfu"),
     ({"mfu": 0}, "mfu"), ({"epochs": 0}, "epochs"), ({"gpu": "H999"}, "gpu"), ({"price": "cheap"}, "price"),
     ({"idle_share": 1}, "idle_share"), ({"provider": "nowhere"}, "provider")],
)  # fmt: skip
def test_what_cannot_be_is_refused_naming_the_field(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(InputProblem) as problem:
        _run(**{"model": "7B", "gpu": "H100", "tokens": "1B", **wrong})
    assert problem.value.field == field


def test_a_card_without_a_price_gets_hours_and_no_invented_cost() -> None:
    found = _run(model="8B", gpu="TPU v5e", n_gpus=16, tokens="1B")
    assert _value(found, "run_hours") > 0
    assert all(fact.unit != "USD" for fact in found.facts)
    assert any(warn.code == "no_price" for warn in found.warnings)


def test_percent_is_read_as_a_share_and_forty_is_explained() -> None:
    assert _value(_run(model="7B", gpu="H100", tokens="1B", mfu="40%"), "mfu") == 0.4
    with pytest.raises(BadValue) as problem:
        _run(model="7B", gpu="H100", tokens="1B", mfu=40)
    assert problem.value.candidates == ["0.4"]
