"""What hides and what shows: properties of exposed communication and published shapes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.gpus import find_gpu
from tools.network import communication, fabric_for, pipeline_bubble
from tools.network.model import Ways
from tools.network.step import step_time
from tools.throughput import estimate_throughput, software_of
from tools.workload import Job, WorkloadInput, resolve

H100 = find_gpu("H100 SXM").value


def job(model: str = "llama-3.1-70b", **given: Any) -> Job:
    given.setdefault("method", "full")
    return resolve(WorkloadInput(model=model, **given))


def efficiency(work: Job, link: str) -> float:
    return step_time(work, H100, fabric_for(H100, work.n_gpus, inter_link=link)[0]).efficiency


def test_zero3_of_a_70b_over_25_gigabit_ethernet_is_hopeless_and_over_ndr_fine() -> None:
    work = job(n_gpus=32, sharding="zero3", micro_batch=4, seq_len=4096)
    assert efficiency(work, "25GbE") < 0.15
    assert efficiency(work, "NDR") > 0.85


def test_lora_over_25_gigabit_ethernet_is_fine() -> None:
    work = job("llama-3.1-8b", method="lora", n_gpus=16, sharding="ddp", micro_batch=4, seq_len=2048)
    assert efficiency(work, "25GbE") > 0.9


def test_accumulation_buys_back_a_slow_link() -> None:
    few = job("llama-3.1-8b", n_gpus=16, sharding="zero1", grad_accum=1)
    many = job("llama-3.1-8b", n_gpus=16, sharding="zero1", grad_accum=32)
    assert efficiency(many, "100GbE") > 2 * efficiency(few, "100GbE")


def test_tensor_parallel_across_nodes_costs_more_than_twice_what_it_costs_inside() -> None:
    inside = job(n_gpus=16, tp=8, sharding="zero1", grad_accum=8)
    across = job(n_gpus=16, tp=16, sharding="zero1", grad_accum=16)
    fabric = fabric_for(H100, 16)[0]
    spent = [
        step_time(work, H100, fabric).communication.by_axis["tensor"] / work.tokens_per_step
        for work in (inside, across)
    ]
    assert spent[1] > 2 * spent[0]


def test_the_bubble_of_eight_stages_and_64_micro_batches_is_seven_sixty_fourths() -> None:
    work = job(n_gpus=64, tp=8, pp=8, grad_accum=64)
    assert pipeline_bubble(work) == pytest.approx(7 / 64)
    assert pipeline_bubble(work, 2) == pytest.approx(7 / 128)


def test_one_gpu_has_nothing_to_say_to_anyone() -> None:
    alone = job("llama-3.1-8b", n_gpus=1)
    moved = communication(alone, H100, fabric_for(H100, 1)[0], 1.0)
    assert (moved.total_seconds, moved.exposed_seconds, moved.uses) == (0.0, 0.0, ())


def test_without_overlap_all_data_parallel_traffic_shows() -> None:
    work = job("llama-3.1-8b", n_gpus=16, sharding="ddp")
    fabric = fabric_for(H100, 16)[0]
    hidden, shown = (communication(work, H100, fabric, 10.0, Ways(overlap=flag)) for flag in (True, False))
    assert shown.by_axis["data"] == pytest.approx(shown.total_seconds)
    assert hidden.by_axis["data"] < 0.05 * shown.by_axis["data"]


@given(
    rates=st.tuples(st.floats(1, 100), st.floats(1, 100)),
    sharding=st.sampled_from(["ddp", "zero1", "zero2", "zero3", "hsdp"]),
    gpus=st.sampled_from([16, 64, 512]),
    compute=st.floats(0.01, 100),
)
def test_a_faster_link_never_exposes_more(rates: tuple[float, float], sharding: str, gpus: int, compute: float) -> None:
    slow, fast = sorted(rates)
    work = job("llama-3.1-8b", n_gpus=gpus, sharding=sharding)
    exposed = [
        communication(work, H100, fabric_for(H100, gpus, inter_link=f"{rate} GB/s per GPU")[0], compute).exposed_seconds
        for rate in (slow, fast)
    ]
    assert exposed[1] <= exposed[0] * (1 + 1e-9)


@pytest.mark.parametrize(
    "given",
    [
        {"n_gpus": 64, "tp": 8, "pp": 2, "sharding": "zero1", "grad_accum": 16, "framework": "nemo"},
        {"n_gpus": 32, "sharding": "zero3", "micro_batch": 4},
        {"model": "llama-3.1-8b", "n_gpus": 8, "method": "lora", "sharding": "ddp"},
        {"model": "mixtral-8x7b", "n_gpus": 16, "ep": 8, "sharding": "zero1"},
        {"model": "llama-3.1-8b", "n_gpus": 1, "cpu_offload": "optimizer"},
    ],
)
def test_the_step_is_the_one_that_speed_estimates_use(given: dict[str, Any]) -> None:
    work = job(**given)
    fabric = fabric_for(H100, work.n_gpus)[0]
    software = software_of(work.framework)
    expected = estimate_throughput(work, H100, fabric, software).step_seconds
    assert step_time(work, H100, fabric).total == pytest.approx(expected, rel=1e-12)
