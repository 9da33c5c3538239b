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


def test_a_spot_run_is_set_against_machines_that_stay_and_breaks_even_where_both_cost_the_same() -> None:
    job: dict[str, Any] = {"model": "llama-3.1-70b", "gpu": "H100", "n_gpus": 64, "tokens": "10B"}
    spot = _run(**job, billing="spot")
    firm = _run(**job)
    assert _value(spot, "on_demand_run_cost") == pytest.approx(_value(firm, "run_cost"), rel=1e-6)
    dearest = _value(spot, "spot_break_even_price")
    assert dearest < _value(firm, "usd_per_gpu_hour")  # reclaims must be paid for
    hours = _value(spot, "billed_gpu_hours") / _value(firm, "billed_gpu_hours")
    assert dearest == pytest.approx(_value(firm, "usd_per_gpu_hour") / hours)


def test_an_export_says_the_budget_request_and_energy_is_said() -> None:
    found = _run(model="llama-3.1-8b", method="lora", gpu="A100", tokens="500M", export=True)
    assert found.next_steps[0].startswith("Budget request: [[run_cost]]")
    assert any("[[emissions]]" in step for step in found.next_steps)


def test_dpo_counts_the_reference_s_forward_and_both_answers_of_a_pair() -> None:
    job: dict[str, Any] = {"model": "llama-3.1-8b", "gpu": "H100", "n_gpus": 8, "samples": 10_000, "seq_len": 1024}
    full = _run(**job, method="full", activation_checkpointing="none")
    dpo = _run(**job, method="dpo", activation_checkpointing="none")
    assert _value(dpo, "tokens") == 2 * _value(full, "tokens")
    assert _value(dpo, "flops_per_token") == pytest.approx(8 / 6 * _value(full, "flops_per_token"), rel=1e-6)


def test_ppo_trains_a_critic_and_scores_with_four_models() -> None:
    job: dict[str, Any] = {"model": "llama-3.1-8b", "gpu": "H100", "n_gpus": 8, "tokens": "10M"}
    full, grpo, ppo = (_run(**job, method=method) for method in ("full", "grpo", "ppo"))
    per_token = _value(full, "flops_per_token")
    assert _value(grpo, "flops_per_token") == pytest.approx((6 + 2 * 2) / 6 * per_token, rel=1e-6)
    assert _value(ppo, "flops_per_token") == pytest.approx((6 + 6 + 4 * 2) / 6 * per_token, rel=1e-6)
    for found in (grpo, ppo):
        assert 10 < _value(found, "rollout_share") < 95
        assert found.fact("rollout_seconds").basis.startswith("derived")
        assert any("[[rollout_seconds]]" in step for step in found.next_steps)
        spread = found.fact("run_hours")
        assert float(spread.high or 0) / float(spread.low or 1) > 1.4**2  # wider than training alone


def test_a_completion_that_leaves_no_prompt_is_refused() -> None:
    with pytest.raises(InputProblem) as problem:
        _run(model="llama-3.1-8b", method="grpo", gpu="H100", tokens="10M", seq_len=512, response_tokens=512)
    assert problem.value.field == "response_tokens"
