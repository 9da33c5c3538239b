"""Measured speeds judged: sums by hand for what is exact, bounds for what is modelled."""

from __future__ import annotations

from typing import Any

import pytest

from tools.diagnose.check_speed import CheckSpeedResult
from tools.errors import InputProblem
from tools.registry import get_tool


def _check(**arguments: Any) -> CheckSpeedResult:
    found = get_tool("check_speed").call(arguments)
    assert isinstance(found, CheckSpeedResult)
    return found


def test_a_speed_up_of_1_3_from_twice_the_gpus_is_65_per_cent_of_ten_gpus_worth() -> None:
    got = _check(speedup=1.3, from_gpus=8, n_gpus=16)
    assert got.scaling_efficiency == pytest.approx(0.65)
    assert got.fact("worth").value == pytest.approx(10.4)
    # Amdahl: 1 = f + p, and 1/1.3 = f + p/2, so f = 2/1.3 - 1
    assert got.fact("fixed_part").value == pytest.approx((2 / 1.3 - 1) * 100)
    assert "nccl-tests" in got.next_steps[0]


def test_a_perfect_speed_up_leaves_nothing_fixed() -> None:
    assert _check(speedup=2, from_gpus=8, n_gpus=16).fact("fixed_part").value == 0


def test_tokens_per_second_become_an_mfu_of_dense_peak() -> None:
    got = _check(model="llama-3.1-8b", gpu="H100", n_gpus=8, tokens_per_second_per_gpu=10_000)
    by_hand = 10_000 * 6 * 7.5e9 / 989e12  # 6 x parameters without the embedding, attention left out
    assert got.measured_mfu == pytest.approx(by_hand, rel=0.12)
    assert got.judgement in ("within", "above")


def test_the_whole_jobs_rate_and_one_gpus_are_the_same_measurement() -> None:
    job: dict[str, Any] = {"model": "7B", "gpu": "A100", "n_gpus": 16}
    one = _check(**job, tokens_per_second_per_gpu=2_000)
    every = _check(**job, tokens_per_second=32_000)
    step = _check(**job, micro_batch=4, seq_len=2048, step_seconds=4 * 2048 / 2_000)
    assert one.measured_mfu == pytest.approx(every.measured_mfu) == pytest.approx(step.measured_mfu)


@pytest.mark.parametrize(("mfu", "judgement"), [(0.05, "below"), (0.38, "within"), (0.8, "above")])
def test_an_mfu_is_judged_against_the_range(mfu: float, judgement: str) -> None:
    got = _check(model="13B", gpu="A100", n_gpus=128, measured_mfu=mfu)
    assert got.judgement == judgement
    expected = got.fact("expected_mfu")
    assert expected.low is not None
    assert expected.high is not None
    assert 20 < expected.low < float(expected.value) < expected.high < 65  # tuned to plain stacks on A100


def test_utilisation_alone_says_what_idles() -> None:
    got = _check(gpu_utilisation="40 %")
    assert got.fact("idle").value == pytest.approx(60)
    assert got.fact("filled_gain").value == pytest.approx(2.5)


@pytest.mark.parametrize(
    "arguments",
    [
        {"tokens_per_second": 5_000},
        {"speedup": 1.5, "n_gpus": 8},
        {"model": "8B", "gpu": "H100", "n_gpus": 1, "tokens_per_second": 1e6},
    ],
)
def test_what_cannot_be_judged_is_refused_with_what_is_missing(arguments: dict[str, Any]) -> None:
    with pytest.raises(InputProblem) as refused:
        _check(**arguments)
    assert refused.value.field
    assert refused.value.candidates
