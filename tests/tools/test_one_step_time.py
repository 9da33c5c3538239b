"""One step time behind every tool: the same layout has the same speed and memory wherever it is asked about."""

from __future__ import annotations

from typing import Any

import pytest

from tools.cost.select_gpu import SelectGpuResult
from tools.network.plan_parallelism import PlanParallelismResult
from tools.registry import get_tool

# Dense and mixture, one card to 512, NVLink and PCIe, long context, fine-tuning and pretraining, several stacks.
JOBS: list[dict[str, Any]] = [
    {"model": "llama-3.1-70b", "method": "full", "gpu": "H100", "n_gpus": 64, "seq_len": 4096},
    {"model": "llama-3.1-70b", "method": "pretrain", "gpu": "H100", "n_gpus": 96, "seq_len": 8192},
    {"model": "llama-3.1-405b", "method": "pretrain", "gpu": "H200", "n_gpus": 512, "seq_len": 8192},
    {"model": "llama-3.1-8b", "method": "full", "gpu": "A100", "n_gpus": 16},
    {"model": "llama-3.1-8b", "method": "pretrain", "gpu": "B200", "n_gpus": 8, "precision": "fp8"},
    {"model": "llama-3.1-8b", "method": "full", "gpu": "H100", "n_gpus": 8, "seq_len": 65536},
    {"model": "qwen3-30b-a3b", "method": "full", "gpu": "H100", "n_gpus": 16},
    {"model": "deepseek-v3", "method": "pretrain", "gpu": "H100", "n_gpus": 2048, "global_batch_tokens": "16M"},
    {"model": "llama-3.1-8b", "method": "qlora", "gpu": "RTX 3090", "n_gpus": 2},
    {"model": "llama-3.1-70b", "method": "lora", "gpu": "A100", "n_gpus": 8},
    {"model": "gpt2", "method": "pretrain", "gpu": "RTX 4090", "n_gpus": 4, "seq_len": 1024},
    {"model": "mistral-7b-v0.1", "method": "full", "gpu": "L40S", "n_gpus": 16, "software": "benchmark"},
    {"model": "llama-3.1-70b", "method": "full", "gpu": "H100", "n_gpus": 32, "framework": "megatron"},
    {"model": {"params_b": 13}, "method": "full", "gpu": "MI300X", "n_gpus": 8},
]
SHAPE = ("tp", "pp", "cp", "ep", "sharding", "micro_batch", "grad_accum", "activation_checkpointing")


def _plan(arguments: dict[str, Any]) -> PlanParallelismResult:
    found = get_tool("plan_parallelism").call({**arguments, "top": 50})
    assert isinstance(found, PlanParallelismResult)
    return found


def _laid(arguments: dict[str, Any], layout: Any) -> dict[str, Any]:
    rest = {name: value for name, value in arguments.items() if name != "global_batch_tokens"}
    return rest | {name: getattr(layout, name) for name in SHAPE}


@pytest.mark.parametrize("arguments", JOBS, ids=lambda job: f"{job['model']} on {job['n_gpus']} {job['gpu']}")
def test_a_planned_layout_runs_at_the_same_speed_in_the_same_memory(arguments: dict[str, Any]) -> None:
    layouts = _plan(arguments).layouts
    assert layouts
    for layout in layouts[:: max(1, len(layouts) // 6)]:
        same = _laid(arguments, layout)
        run = get_tool("estimate_run").call({**same, "tokens": "1B", "price": 2})
        assert float(run.fact("tokens_per_second").value) == pytest.approx(layout.tokens_per_second, rel=1e-9)
        assert float(run.fact("peak_per_gpu").value) == pytest.approx(layout.peak_per_gpu_bytes, rel=1e-9)
        links: Any = get_tool("check_interconnect").call(same)
        assert links.compute_seconds == pytest.approx(layout.compute_seconds, rel=1e-9)
        assert links.exposed_seconds == pytest.approx(layout.exposed_seconds, rel=1e-9, abs=1e-15)
        memory = get_tool("estimate_vram").call(
            {name: value for name, value in same.items() if name not in ("gpu", "software")}
        )
        assert float(memory.fact("peak_per_gpu").value) == pytest.approx(layout.peak_per_gpu_bytes, rel=1e-9)


@pytest.mark.parametrize(
    "arguments",
    [
        {"model": "llama-3.1-70b", "method": "pretrain", "tokens": "100B", "gpu": "H100", "n_gpus": 64},
        {"model": "llama-3.1-70b", "method": "pretrain", "tokens": "100B", "gpu": "H100", "max_gpus": 256},
        {"model": "llama-3.1-8b", "method": "full", "tokens": "1B", "gpu": "A100"},
        {"model": "qwen3-30b-a3b", "method": "lora", "tokens": "100M"},
        {"model": "gpt2", "method": "pretrain", "tokens": "10B", "precision": "fp16"},
    ],
)
def test_a_selected_plan_costs_and_takes_what_estimate_run_says_of_it(arguments: dict[str, Any]) -> None:
    found = get_tool("select_gpu").call(arguments)
    assert isinstance(found, SelectGpuResult)
    assert found.plans
    rest = {name: value for name, value in arguments.items() if name not in ("gpu", "n_gpus", "max_gpus")}
    for plan in found.plans:
        shape = {name: getattr(plan, name) for name in SHAPE if name not in ("cp", "ep")}
        per_node = {"gpus_per_node": plan.gpus_per_node} if plan.n_gpus % plan.gpus_per_node == 0 else {}
        run = get_tool("estimate_run").call(
            {**rest, **shape, **per_node, "gpu": plan.gpu, "n_gpus": plan.n_gpus, "precision": plan.precision,
             "price": plan.usd_per_gpu_hour}
        )  # fmt: skip
        assert float(run.fact("wall_hours").value) == pytest.approx(plan.hours, rel=1e-9)
        assert float(run.fact("run_cost").value) == pytest.approx(plan.usd, rel=1e-9)
        assert float(run.fact("peak_per_gpu").value) == pytest.approx(plan.peak_bytes, rel=1e-9)


@pytest.mark.parametrize("pp", [1, 4])
def test_without_a_batch_a_run_is_timed_at_the_one_that_plans_assume(pp: int) -> None:
    same: dict[str, Any] = {"model": "llama-3.1-70b", "method": "full", "gpu": "H100", "n_gpus": 32}
    run = get_tool("estimate_run").call({**same, "tp": 8, "pp": pp, "tokens": "1B", "price": 2, "micro_batch": 1})
    accumulate = {item.name: item.value for item in run.assumptions}["grad_accum"]
    replicas = 32 // (8 * pp)
    assert replicas * 2048 * int(str(accumulate)) == _plan(same).global_batch_tokens
