"""The tool's answers: verdicts that the field agrees on, references that resolve, input that cannot be."""

import re
from typing import Any

import pytest

from tools.errors import InputProblem
from tools.network.check_interconnect import CheckInterconnectResult
from tools.registry import get_tool


def ask(**given: Any) -> CheckInterconnectResult:
    result = get_tool("check_interconnect").call(given)
    assert isinstance(result, CheckInterconnectResult)
    return result


def test_full_training_of_a_70b_over_25_gigabit_needs_rdma() -> None:
    result = ask(model="llama-3.1-70b", method="full", sharding="zero3", gpu="H100", n_gpus=64, inter_link="25GbE")
    assert result.infiniband_needed
    assert result.scaling_efficiency < 0.15
    assert "does not suffice" in result.verdict.partition(". ")[0]  # the link that was asked about comes first
    assert "This job needs an RDMA fabric" in result.verdict


def test_lora_over_25_gigabit_does_not() -> None:
    result = ask(model="llama-3.1-8b", method="lora", gpu="H100", n_gpus=16, inter_link="25GbE")
    assert not result.infiniband_needed
    assert result.scaling_efficiency > 0.9
    assert result.verdict.startswith("No, ")


def test_one_node_needs_no_network_whatever_the_job() -> None:
    result = ask(model="llama-3.1-70b", method="full", gpu="H100", n_gpus=8)
    assert not result.infiniband_needed
    assert "No network" in result.verdict


def test_efficiency_is_compute_over_the_whole_step() -> None:
    result = ask(model="llama-3.1-8b", gpu="H100", n_gpus=64)
    whole = result.compute_seconds + result.exposed_seconds
    assert result.scaling_efficiency == pytest.approx(result.compute_seconds / whole)
    assert result.fact("step_time").value == pytest.approx(whole)
    assert result.fact("scaling_efficiency").value == result.scaling_efficiency
    assert result.fact("exposed_communication").value == result.exposed_seconds


def test_the_bytes_of_fsdp_are_three_times_the_weights_less_a_share() -> None:
    result = ask(model="llama-2-7b", method="full", gpu="H100", n_gpus=8, micro_batch=1, sharding="zero3")
    params = 6_738_415_616
    assert result.intra_bytes_per_step == pytest.approx(3 * 7 / 8 * params * 2, rel=0.001)
    assert result.inter_bytes_per_step == 0


def test_the_cheapest_link_keeps_what_was_asked_and_the_one_below_does_not() -> None:
    result = ask(model="llama-3.1-8b", method="full", gpu="H100", n_gpus=64, keep=0.9)
    table = next(table for table in result.tables if table.id == "links")
    kept = {str(row[0]): float(row[4] or 0) for row in table.rows}
    names = list(kept)
    place = names.index(result.cheapest_link or "")
    assert kept[names[place]] >= 90
    assert all(kept[name] < 90 for name in names[:place])


def test_a_dearer_link_of_the_ladder_at_the_same_kind_never_slows_the_job() -> None:
    result = ask(model="llama-3.1-70b", method="full", gpu="H100", n_gpus=64)
    table = next(table for table in result.tables if table.id == "links")
    speeds = [float(row[5] or 0) for row in table.rows if "RoCE" not in str(row[0])]
    assert speeds == sorted(speeds)


@pytest.mark.parametrize(
    "given",
    [
        {"model": "llama-3.1-8b", "instance": "p5.48xlarge", "n_gpus": 64},
        {"model": "llama-3.1-70b", "tp": 16, "n_gpus": 32, "inter_link": "100GbE"},
        {"model": "mixtral-8x7b", "ep": 8, "n_gpus": 32, "keep": "95%"},
        {"model": "llama-3.1-8b", "n_gpus": 1},
        {"model": "llama-3.1-8b", "method": "qlora", "gpu": "3090", "n_gpus": 2},
        {"model": "llama-3.1-70b", "gpu": "GB200", "n_gpus": 144, "pp": 2, "grad_accum": 8},
        {"model": "llama-3.1-8b", "gpu": "MI300X", "n_gpus": 8},
    ],
)
def test_every_reference_in_a_sentence_is_a_fact(given: dict[str, Any]) -> None:
    result = ask(**given)
    ids = [fact.id for fact in result.facts]
    assert len(ids) == len(set(ids))
    for sentence in [result.verdict, *result.next_steps]:
        for name in re.findall(r"\[\[([^\]|]+)", sentence):
            assert name in ids
    for fact in result.facts:
        if fact.low is not None and fact.high is not None:
            assert fact.low <= float(fact.value) <= fact.high


def test_tensor_parallel_across_nodes_is_allowed_and_its_cost_shown() -> None:
    result = ask(model="llama-3.1-70b", n_gpus=16, tp=16)
    assert any(warning.code == "tensor_parallel_across_nodes" for warning in result.warnings)
    assert any("tp=8" in step for step in result.next_steps)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"n_gpus": 12, "tp": 8}, "n_gpus"),
        ({"n_gpus": 12, "gpus_per_node": 8}, "n_gpus"),
        ({"instance": "p5.49xlarge"}, "instance"),
        ({"inter_link": "0 GB/s"}, "inter_link"),
        ({"intra_link": "NVLink 5", "gpu": "H100"}, "intra_link"),
        ({"gpu": "H1000"}, "gpu"),
        ({"keep": 0}, "keep"),
        ({"bandwidth": 5}, "bandwidth"),
    ],
)
def test_what_cannot_be_names_the_field(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InputProblem) as problem:
        ask(model="llama-3.1-70b", **given)
    assert problem.value.field == field


def test_the_chart_is_a_line_a_link_over_gpu_counts() -> None:
    chart = ask(model="llama-3.1-8b", gpu="H100", n_gpus=32).charts[0]
    assert chart["mark"]["type"] == "line"
    counts = {row["GPUs"] for row in chart["data"]["values"]}
    assert {8, 16, 32, 64} <= counts
