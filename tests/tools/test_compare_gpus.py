"""``compare_gpus``: data-sheet figures, dense, and prices a unit derived by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tools.compare_gpus import CompareGpusResult
from tools.errors import BadValue, InputProblem, MissingValue, UnknownName
from tools.prices import median_usd_per_gpu_hour
from tools.registry import get_tool


def _ask(gpus: Any, **more: Any) -> CompareGpusResult:
    result = get_tool("compare_gpus").call({"gpus": gpus, **more})
    assert isinstance(result, CompareGpusResult)
    ids = [fact.id for fact in result.facts]
    assert len(set(ids)) == len(ids)
    return result


def test_the_figures_are_the_dense_ones_of_the_data_sheets() -> None:
    result = _ask(["H100 SXM", "A100 80GB SXM"])
    h100, a100 = result.gpus
    assert h100.dense_flops["bf16"] == pytest.approx(989e12, rel=0.001)
    assert a100.dense_flops["bf16"] == pytest.approx(312e12)
    assert a100.dense_flops["fp8"] is None
    assert (h100.memory_bytes, h100.bandwidth_bytes_per_s) == (80e9, pytest.approx(3.35e12))
    assert h100.nvlink_bytes_per_s == pytest.approx(450e9)  # one direction: half of the 900 GB/s on the sheet


def test_ratios_are_the_first_card_over_the_other() -> None:
    result = _ask(["H100 SXM", "A100 80GB SXM"])
    assert result.fact("bf16_ratio").value == pytest.approx(989 / 312, rel=0.002)
    assert result.fact("bandwidth_ratio").value == pytest.approx(3.35 / 2.039, rel=0.001)
    assert "[[bf16_ratio]]" in result.verdict


def test_price_a_unit_is_the_median_over_the_peak() -> None:
    row = _ask(["L40S"]).gpus[0]
    price = median_usd_per_gpu_hour("L40S")
    assert price is not None
    assert row.usd_per_gpu_hour == price.usd_per_gpu_hour
    assert row.usd_per_gb_hour == pytest.approx(price.usd_per_gpu_hour / 48)
    assert row.usd_per_tflop_hour == pytest.approx(price.usd_per_gpu_hour / 362, rel=0.02)


def test_each_price_carries_its_dates() -> None:
    fact = _ask(["H100 SXM"]).fact("usd_per_gpu_hour")
    assert fact.kind == "price"
    assert fact.as_of is not None
    assert "seen 2026" in fact.basis


def test_a_card_without_a_price_says_so_and_costs_nothing_made_up() -> None:
    result = _ask(["Apple M4 Max", "RTX 4090"])
    assert result.gpus[0].usd_per_gpu_hour is None
    assert any(warn.code == "no_price" and "Apple-M4-Max" in warn.text for warn in result.warnings)


def test_one_line_of_text_is_split_into_cards() -> None:
    assert [row.gpu for row in _ask("4090 vs 3090").gpus] == ["RTX-4090", "RTX-3090"]
    assert [row.gpu for row in _ask("h200, b200 and mi300x").gpus] == ["H200-SXM", "B200-SXM", "MI300X"]


def test_cards_without_bf16_are_compared_by_a_rate_they_have() -> None:
    assert "fp16" in _ask(["T4", "V100 16GB"]).verdict


def test_ambiguous_names_are_said() -> None:
    assert "H100-NVL" in _ask(["H100"]).assumptions[0].why


@pytest.mark.parametrize(
    ("gpus", "error"),
    [
        ([], MissingValue),
        (["  "], MissingValue),
        (["H300"], UnknownName),
        (["A100 60GB"], BadValue),
        (["T4"] * 9, BadValue),
    ],
)
def test_bad_input_is_one_error_that_names_the_field(gpus: list[str], error: type[InputProblem]) -> None:
    with pytest.raises(error) as problem:
        _ask(gpus)
    assert problem.value.field in ("gpus", "gpu")
