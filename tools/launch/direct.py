"""Files of launchers that start PyTorch itself: torchrun, accelerate, DeepSpeed, torchtitan."""

from __future__ import annotations

from typing import Any

from tools.launch import trainer
from tools.launch.environment import exports
from tools.launch.target import PORT, Target
from tools.launch.yaml_text import to_json, to_yaml
from tools.result import FileText

Written = tuple[list[FileText], list[str]]


def rendezvous(target: Target) -> str:
    """Torchrun's own flags: standalone on one machine, c10d over the first of several."""
    if target.nodes == 1:
        return f"--standalone --nproc-per-node={target.per_node}"
    return (
        f"--nnodes={target.nodes} --nproc-per-node={target.per_node} --rdzv-id=job1 --rdzv-backend=c10d "
        f"--rdzv-endpoint=$MASTER_ADDR:{PORT}"
    )


def torchrun(target: Target) -> Written:
    """The Trainer's script, its launch script and, where weights are sharded, fsdp.json; and the command for every
    node.
    """
    files = [FileText(path="train.py", language="python", text=trainer.script(target))]
    flags = trainer.arguments(target)
    if target.sharded:
        files.append(FileText(path="fsdp.json", language="json", text=to_json(_trainer_fsdp(target))))
        flags = _without_own_checkpointing(flags)
        flags += ["--fsdp", "--fsdp_config fsdp.json"]
    run = "torchrun " + rendezvous(target) + " train.py \\\n  " + " \\\n  ".join(flags)
    files.append(
        FileText(
            path="run.sh", language="bash", text=f"#!/usr/bin/env bash\nset -euo pipefail\n{exports(target)}\n\n{run}\n"
        )
    )
    return files, ["bash run.sh" + (" # on every node" if target.nodes > 1 else "")]


def _trainer_fsdp(target: Target) -> dict[str, Any]:
    """``fsdp_config`` of the Transformers Trainer (FSDP2)."""
    return {
        "version": 2,
        "reshard_after_forward": target.job.sharding != "zero2",
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "cpu_ram_efficient_loading": True,
        "state_dict_type": "SHARDED_STATE_DICT",
        "activation_checkpointing": target.job.checkpointing != "none",
        "cpu_offload": target.job.offload == "all",
    }


def _without_own_checkpointing(flags: list[str]) -> list[str]:
    """FSDP's wrapper checkpoints; the Trainer's own would gather weights twice (transformers#30404)."""
    kept = [flag for flag in flags if not flag.startswith("--gradient_checkpointing")]
    return [*kept, "--gradient_checkpointing false"]


def accelerate_config(target: Target) -> dict[str, Any]:
    """The YAML of ``accelerate launch``: FSDP2, DeepSpeed, or plain data parallel."""
    job = target.job
    config: dict[str, Any] = {
        "compute_environment": "LOCAL_MACHINE",
        "debug": False,
        "distributed_type": "NO" if job.n_gpus == 1 else "MULTI_GPU",
        "downcast_bf16": "no",
        "enable_cpu_affinity": False,
        "machine_rank": 0,
        "main_training_function": "main",
        "mixed_precision": target.precision,
        "num_machines": target.nodes,
        "num_processes": job.n_gpus,
        "rdzv_backend": "static",
        "same_network": True,
        "use_cpu": False,
    }
    if target.nodes > 1:
        config |= {"main_process_ip": "NODE0_ADDRESS", "main_process_port": PORT}
    if target.launcher != "deepspeed" and target.sharded and job.n_gpus > 1:
        config["distributed_type"] = "FSDP"
        config["fsdp_config"] = {
            "fsdp_version": 2,
            "fsdp_activation_checkpointing": job.checkpointing != "none",
            "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
            "fsdp_cpu_ram_efficient_loading": True,
            "fsdp_offload_params": job.offload == "all",
            "fsdp_reshard_after_forward": job.sharding != "zero2",
            "fsdp_state_dict_type": "SHARDED_STATE_DICT",
        }
        if job.sharding == "hsdp" or job.tp > 1 or job.cp > 1:
            replicas = target.nodes if job.sharding == "hsdp" else 1
            config["parallelism_config"] = {
                "parallelism_config_dp_replicate_size": replicas,
                "parallelism_config_dp_shard_size": max(1, job.dp // replicas),
                "parallelism_config_tp_size": job.tp,
                "parallelism_config_cp_size": job.cp,
            }
    return config


def accelerate(target: Target) -> Written:
    """The Accelerate config (YAML), the Trainer's script and the launch script; and the command for every node."""
    config = accelerate_config(target)
    config_name = "accelerate_fsdp.yaml" if config["distributed_type"] == "FSDP" else "accelerate.yaml"
    flags = trainer.arguments(target)
    if config["distributed_type"] == "FSDP":
        flags = _without_own_checkpointing(flags)
    several = " --machine_rank $NODE_RANK --main_process_ip $MASTER_ADDR" if target.nodes > 1 else ""
    run = f"accelerate launch --config_file {config_name}{several} train.py \\\n  " + " \\\n  ".join(flags)
    files = [
        FileText(path=config_name, language="yaml", text=to_yaml(config)),
        FileText(path="train.py", language="python", text=trainer.script(target)),
        FileText(
            path="run.sh", language="bash", text=f"#!/usr/bin/env bash\nset -euo pipefail\n{exports(target)}\n\n{run}\n"
        ),
    ]
    return files, ["bash run.sh" + (" # on every node, NODE_RANK=0, 1, ..." if target.nodes > 1 else "")]


def deepspeed_config(target: Target) -> dict[str, Any]:
    """The JSON of DeepSpeed, with the numbers of this job (no "auto")."""
    job = target.job
    stage = {"zero1": 1, "zero2": 2, "zero3": 3, "fsdp": 3, "hsdp": 3}.get(job.sharding, 0)
    zero: dict[str, Any] = {"stage": stage, "overlap_comm": True, "contiguous_gradients": True}
    if stage == 3:
        zero["stage3_gather_16bit_weights_on_model_save"] = True
        if job.sharding == "hsdp":
            zero["zero_hpz_partition_size"] = target.per_node
    if job.offload in ("optimizer", "all"):
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    if job.offload == "nvme":
        zero["offload_optimizer"] = {"device": "nvme", "nvme_path": "/local_nvme", "pin_memory": True}
    if job.offload in ("all", "nvme") and stage == 3:
        device = "cpu" if job.offload == "all" else "nvme"
        zero["offload_param"] = {"device": device, "pin_memory": True} | (
            {"nvme_path": "/local_nvme"} if device == "nvme" else {}
        )
    return {
        "train_batch_size": job.micro_batch * job.grad_accum * job.n_gpus,
        "train_micro_batch_size_per_gpu": job.micro_batch,
        "gradient_accumulation_steps": job.grad_accum,
        "gradient_clipping": 1.0,
        "bf16": {"enabled": target.precision == "bf16"},
        "fp16": {"enabled": target.precision == "fp16"},
        "zero_optimization": zero,
        "wall_clock_breakdown": False,
    }


def deepspeed(target: Target) -> Written:
    """ds_config.json, the Trainer's script, the launch script and, on several nodes, a hostfile with addresses to fill
    in; and the command, for the first node alone.
    """
    files = [
        FileText(path="ds_config.json", language="json", text=to_json(deepspeed_config(target))),
        FileText(path="train.py", language="python", text=trainer.script(target)),
    ]
    where = f"--num_gpus {target.per_node}"
    if target.nodes > 1:
        hosts = "".join(f"NODE{rank}_ADDRESS slots={target.per_node}\n" for rank in range(target.nodes))
        files.append(FileText(path="hostfile", language="text", text=hosts))
        where = f"--hostfile hostfile --master_addr $MASTER_ADDR --master_port {PORT}"
    flags = [*trainer.arguments(target), "--deepspeed ds_config.json"]
    run = f"deepspeed {where} train.py \\\n  " + " \\\n  ".join(flags)
    files.append(
        FileText(
            path="run.sh", language="bash", text=f"#!/usr/bin/env bash\nset -euo pipefail\n{exports(target)}\n\n{run}\n"
        )
    )
    return files, [
        "bash run.sh" + (" # on the first node; DeepSpeed reaches the others over ssh" if target.nodes > 1 else "")
    ]


# torchtitan's registered configurations by hub id (its models/*/config_registry.py).
TITAN = {
    "meta-llama/Llama-3.1-8B": ("llama3", "llama3_8b"), "meta-llama/Llama-3.1-70B": ("llama3", "llama3_70b"),
    "meta-llama/Llama-3.1-405B": ("llama3", "llama3_405b"), "meta-llama/Meta-Llama-3-8B": ("llama3", "llama3_8b"),
    "meta-llama/Meta-Llama-3-70B": ("llama3", "llama3_70b"), "Qwen/Qwen3-0.6B": ("qwen3", "qwen3_0_6b"),
    "Qwen/Qwen3-1.7B": ("qwen3", "qwen3_1_7b"), "Qwen/Qwen3-14B": ("qwen3", "qwen3_14b"),
    "Qwen/Qwen3-32B": ("qwen3", "qwen3_32b"), "Qwen/Qwen3-30B-A3B": ("qwen3", "qwen3_30b_a3b"),
    "deepseek-ai/DeepSeek-V3": ("deepseek_v3", "deepseek_v3_671b"), "openai/gpt-oss-20b": ("gpt_oss", "gpt_oss_20b"),
    "openai/gpt-oss-120b": ("gpt_oss", "gpt_oss_120b"),
}  # fmt: skip


def titan_flags(target: Target) -> list[str]:
    """Torchtitan's options; since 0.3 configurations are Python functions chosen by --module and --config."""
    job = target.job
    module, config = TITAN.get(job.arch.id, ("llama3", "llama3_8b"))
    replicas = target.nodes if job.sharding == "hsdp" else 1
    flags = [
        f"--module {module}", f"--config {config}", f"--training.local_batch_size {job.micro_batch * job.grad_accum}"
        if job.pp > 1 else f"--training.local_batch_size {job.micro_batch}",
        f"--training.seq_len {job.seq_len}",
        f"--training.global_batch_size {job.micro_batch * job.grad_accum * job.dp}",
        f"--parallelism.data_parallel_replicate_degree {replicas}",
        f"--parallelism.data_parallel_shard_degree {max(1, job.dp // replicas)}",
        f"--parallelism.tensor_parallel_degree {job.tp}", f"--parallelism.pipeline_parallel_degree {job.pp}",
        f"--parallelism.context_parallel_degree {job.cp}",
    ]  # fmt: skip
    if job.ep > 1:
        flags.append(f"--parallelism.expert_parallel_degree {job.ep}")
    if job.pp > 1:
        flags += ["--parallelism.pipeline_parallel_schedule Interleaved1F1B",
                  f"--parallelism.pipeline_parallel_microbatch_size {job.micro_batch}"]  # fmt: skip
    if target.steps:
        flags.append(f"--training.steps {target.steps}")
    flags += ["--checkpoint.enable", f"--checkpoint.interval {target.save_steps}"]
    if job.compile:
        flags.append("--compile.enable")
    return flags


def torchtitan(target: Target) -> Written:
    """One launch script with torchtitan's flags, for it brings its own trainer; and the command for every node."""
    run = "torchrun " + rendezvous(target) + " -m torchtitan.train \\\n  " + " \\\n  ".join(titan_flags(target))
    text = f"#!/usr/bin/env bash\nset -euo pipefail\n{exports(target)}\n\n{run}\n"
    return [FileText(path="run.sh", language="bash", text=text)], ["bash run.sh"]
