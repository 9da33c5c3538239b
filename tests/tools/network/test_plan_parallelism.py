"""Layouts: valid, complete, ranked, within memory; and what the answer says of the common default."""

import re
import time
from typing import Any

import pytest

from knowledge.gpus import find_gpu
from tools.errors import InputProblem
from tools.memory import estimate, verdict
from tools.network import fabric_for
from tools.network.plan_parallelism import PlanParallelismResult
from tools.network.search import Outcome, search
from tools.registry import get_tool
from tools.workload import WorkloadInput, resolve

H100 = find_gpu("H100 SXM").value
TRILLION = {"params_b": 1000, "n_experts": 256, "experts_per_token": 8, "active_params_b": 40}


def ask(**given: Any) -> PlanParallelismResult:
    result = get_tool("plan_parallelism").call(given)
    assert isinstance(result, PlanParallelismResult)
    return result


def found(model: Any, n_gpus: int, samples: int, **given: Any) -> Outcome:
    job = resolve(WorkloadInput(model=model, n_gpus=n_gpus, **given))
    return search(job, H100, fabric_for(H100, n_gpus)[0], samples)


@pytest.mark.parametrize(("model", "n_gpus", "samples"), [("llama-3.1-70b", 64, 256), ("mixtral-8x7b", 64, 256)])
def test_every_layout_divides_gpus_heads_experts_and_batch_and_fits(model: str, n_gpus: int, samples: int) -> None:
    for layout in found(model, n_gpus, samples, seq_len=4096).layouts:
        job = layout.job
        assert job.tp * job.pp * job.cp * job.dp == n_gpus
        assert job.arch.n_heads % job.tp == 0
        assert job.micro_batch * job.grad_accum * job.dp == samples
        assert job.arch.moe is None or job.arch.moe.n_experts % job.ep == 0
        assert verdict(estimate(job), H100) == "fits"


def test_layouts_come_fastest_first_and_each_once() -> None:
    layouts = found("llama-3.1-70b", 64, 256, seq_len=4096).layouts
    seconds = [layout.seconds for layout in layouts]
    assert seconds == sorted(seconds)
    keys = [(x.job.tp, x.job.pp, x.job.cp, x.job.ep, x.job.sharding) for x in layouts]
    assert len(keys) == len(set(keys)) > 5


def test_the_best_of_1024_gpus_is_found_within_a_second() -> None:
    found("llama-3.1-405b", 64, 64, seq_len=8192)  # loads the knowledge base
    start = time.process_time()
    assert found("llama-3.1-405b", 1024, 1024, seq_len=8192).layouts
    assert time.process_time() - start < 1.0


def test_a_trillion_parameters_on_16384_gpus_are_laid_out_with_model_parallelism() -> None:
    best = found(TRILLION, 16384, 16384, method="pretrain", seq_len=4096).layouts[0].job
    assert best.tp * best.pp * best.ep >= 16


def test_tensor_parallel_stays_inside_the_node() -> None:
    assert all(layout.job.tp <= 8 for layout in found("llama-3.1-405b", 512, 512, seq_len=8192).layouts)


def test_a_small_model_on_one_node_is_laid_out_with_data_parallelism() -> None:
    best = ask(model="llama-3.1-8b", method="full", gpu="H100", n_gpus=8).recommended
    assert best
    assert (best.tp, best.pp, best.dp) == (1, 1, 8)


def test_where_nothing_fits_the_smallest_need_and_the_count_that_fits_are_named() -> None:
    result = ask(model="llama-3.1-70b", method="full", gpu="H100", n_gpus=8)
    assert not result.layouts
    assert result.verdict.startswith("No layout of 8")
    assert result.fact("smallest_memory").value > result.fact("usable_memory").value  # type: ignore[operator]
    assert int(result.fact("enough_gpus").value) > 8


def test_more_gpus_never_make_the_best_layout_of_the_same_batch_slower() -> None:
    speeds = [found("llama-3.1-70b", n, 512, seq_len=4096).layouts[0].tokens_per_second for n in (64, 128, 256, 512)]
    assert speeds == sorted(speeds)


@pytest.mark.parametrize(
    "given",
    [
        {"model": "llama-3.1-70b", "n_gpus": 64, "seq_len": 4096},
        {"model": "llama-3.1-70b", "n_gpus": 8},
        {"model": "llama-3.1-8b", "n_gpus": 8, "tp": 8},
        {"model": "llama-3.1-8b", "method": "qlora", "gpu": "3090", "n_gpus": 2},
        {"model": "deepseek-v3", "method": "pretrain", "n_gpus": 2048, "global_batch_tokens": "16M"},
        {"model": "llama-3.1-8b", "n_gpus": 7},
        {"model": "llama-3.1-8b", "n_gpus": 16, "global_batch_tokens": "16k"},
    ],
)
def test_every_reference_in_a_sentence_is_a_fact(given: dict[str, Any]) -> None:
    result = ask(**given)
    ids = [fact.id for fact in result.facts]
    assert len(ids) == len(set(ids))
    for sentence in [result.verdict, *result.next_steps]:
        assert set(re.findall(r"\[\[([^\]|]+)", sentence)) <= set(ids)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"n_gpus": 64, "tp": 3}, "n_gpus"),
        ({"n_gpus": 16, "global_batch_tokens": 100}, "global_batch_tokens"),
        ({"n_gpus": 1_000_000}, "n_gpus"),
        ({"n_gpus": 64, "ep": 3}, "ep"),
    ],
)
def test_what_cannot_be_names_the_field(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InputProblem) as problem:
        ask(model="llama-3.1-70b", **given)
    assert problem.value.field == field
