"""Launch files: they parse, agree with the job, and what cannot be is refused."""

import ast
import json
import re
import subprocess
from typing import Any

import pytest
import yaml

from tools.errors import InputProblem
from tools.launch.launch_plan import LaunchPlanResult
from tools.registry import get_tool

LAUNCHERS = (
    "torchrun",
    "accelerate",
    "fsdp",
    "deepspeed",
    "torchtitan",
    "axolotl",
    "llama-factory",
    "skypilot",
    "slurm",
)


def ask(**given: Any) -> LaunchPlanResult:
    result = get_tool("launch_plan").call({"model": "llama-3.1-8b", "gpu": "H100", **given})
    assert isinstance(result, LaunchPlanResult)
    return result


def text(result: LaunchPlanResult, path: str) -> str:
    return next(file.text for file in result.files if file.path == path)


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize(
    "job",
    [
        {"n_gpus": 8},
        {"n_gpus": 32, "sharding": "hsdp", "tokens": "1B"},
        {"n_gpus": 1, "method": "lora"},
        {"n_gpus": 4, "method": "qlora", "sharding": "fsdp"},
    ],
)
def test_every_file_is_well_formed(launcher: str, job: dict[str, Any]) -> None:
    result = ask(launcher=launcher, **job)
    assert result.commands
    for file in result.files:
        assert file.checked or file.language == "text"
        if file.language == "yaml":
            assert isinstance(yaml.safe_load(file.text), dict)
        elif file.language == "json":
            assert isinstance(json.loads(file.text), dict)
        elif file.language == "python":
            ast.parse(file.text)
        elif file.language == "bash":
            subprocess.run(["bash", "-n"], input=file.text, text=True, check=True)


def test_torchrun_counts_nodes_and_processes() -> None:
    one, two = text(ask(launcher="torchrun", n_gpus=8), "run.sh"), text(ask(launcher="torchrun", n_gpus=16), "run.sh")
    assert "--standalone --nproc-per-node=8" in one
    assert "--nnodes=2 --nproc-per-node=8" in two
    assert "MASTER_ADDR" in two
    assert "MASTER_ADDR" not in one


def test_the_deepspeed_batch_adds_up() -> None:
    config = json.loads(text(ask(launcher="deepspeed", n_gpus=16, sharding="zero2", grad_accum=4), "ds_config.json"))
    assert config["train_batch_size"] == config["train_micro_batch_size_per_gpu"] * 4 * 16
    assert config["zero_optimization"]["stage"] == 2


def test_offloading_reaches_the_deepspeed_config() -> None:
    result = ask(launcher="deepspeed", n_gpus=8, sharding="zero3", cpu_offload="all")
    zero = json.loads(text(result, "ds_config.json"))["zero_optimization"]
    assert zero["offload_optimizer"]["device"] == zero["offload_param"]["device"] == "cpu"


def test_accelerate_shards_as_the_job_does() -> None:
    config = yaml.safe_load(text(ask(launcher="fsdp", n_gpus=32, sharding="hsdp"), "accelerate_fsdp.yaml"))
    assert (config["num_machines"], config["num_processes"]) == (4, 32)
    assert config["fsdp_config"]["fsdp_version"] == 2
    assert config["parallelism_config"]["parallelism_config_dp_replicate_size"] == 4
    assert config["parallelism_config"]["parallelism_config_dp_shard_size"] == 8


def test_torchtitan_degrees_multiply_to_the_gpus() -> None:
    result = ask(model="llama-3.1-70b", launcher="torchtitan", n_gpus=64, tp=8, pp=2, sharding="zero1", grad_accum=16)
    degrees = dict(re.findall(r"--parallelism\.(\w+)_degree (\d+)", text(result, "run.sh")))
    product = 1
    for value in degrees.values():
        product *= int(value)
    assert product == 64
    assert "--config llama3_70b" in text(result, "run.sh")


def test_skypilot_recovers_on_spot_and_stops_when_idle() -> None:
    task = yaml.safe_load(text(ask(launcher="skypilot", n_gpus=16, spot=True, idle_minutes=7), "task.yaml"))
    assert task["resources"]["use_spot"] is True
    assert task["resources"]["autostop"] == {"idle_minutes": 7, "down": True}
    assert (task["num_nodes"], task["resources"]["accelerators"]) == (2, "H100:8")
    assert "MASTER_ADDR" in task["run"]


@pytest.mark.parametrize(
    ("given", "variable", "value"),
    [
        ({"gpu": "RTX 4090", "n_gpus": 2}, "NCCL_P2P_DISABLE", "1"),
        ({"instance": "p5.48xlarge", "n_gpus": 16}, "FI_PROVIDER", "efa"),
        ({"n_gpus": 16, "inter_link": "25GbE"}, "NCCL_IB_DISABLE", "1"),
        ({"n_gpus": 16, "inter_link": "NDR"}, "NCCL_IB_HCA", "mlx5"),
        ({"gpu": "MI300X", "n_gpus": 8}, "PYTORCH_HIP_ALLOC_CONF", "expandable_segments:True"),
    ],
)
def test_variables_follow_the_links(given: dict[str, Any], variable: str, value: str) -> None:
    assert ask(**{"gpu": "H100", **given}).environment[variable] == value


def test_tokens_set_the_steps_and_saves_never_come_after_the_end() -> None:
    result = ask(launcher="axolotl", n_gpus=8, tokens="10M", micro_batch=1)
    config = yaml.safe_load(text(result, "axolotl.yaml"))
    assert config["max_steps"] == round(10e6 / (8 * 2048))
    assert config["save_steps"] <= config["max_steps"]


def test_spot_saves_more_often_than_on_demand() -> None:
    on_demand, spot = ask(n_gpus=8), ask(n_gpus=8, spot=True)
    assert float(spot.fact("save_interval").value) < float(on_demand.fact("save_interval").value)


def test_the_checklist_is_open_where_the_job_does_not_fit() -> None:
    result = ask(model="llama-3.1-70b", n_gpus=8, method="full")
    assert "not ready" in result.verdict.lower()
    table = next(table for table in result.tables if table.id == "readiness")
    assert table.rows[0][1] == "open"


def test_a_data_name_cannot_smuggle_a_command() -> None:
    result = ask(launcher="torchrun", n_gpus=8, dataset='x"; rm -rf / #')
    assert "rm -rf" not in text(result, "run.sh")


@pytest.mark.parametrize(
    ("given", "field"),
    [({"launcher": "make"}, "launcher"), ({"n_gpus": 12, "tp": 8}, "n_gpus"), ({"idle_minutes": 0}, "idle_minutes")],
)
def test_what_cannot_be_names_the_field(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InputProblem) as problem:
        ask(**given)
    assert problem.value.field == field


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_every_reference_in_a_sentence_is_a_fact(launcher: str) -> None:
    result = ask(launcher=launcher, n_gpus=16, tokens="1B")
    ids = [fact.id for fact in result.facts]
    assert len(ids) == len(set(ids))
    for sentence in [result.verdict, *result.next_steps]:
        assert set(re.findall(r"\[\[([^\]|]+)", sentence)) <= set(ids)
