"""One writer a launcher: from a target to its files and the command that starts it.

Key names follow the releases named in ``tools.launch.checked``; a file that no real parser has read says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tools.launch import trainer
from tools.launch.environment import environment, exports
from tools.launch.target import PORT, Launcher, Target
from tools.launch.yaml_text import to_json, to_yaml
from tools.result import FileText

Written = tuple[list[FileText], list[str]]


def write(target: Target) -> Written:
    """The files of this launcher and its commands, in order."""
    return _WRITERS[target.launcher](target)


def rendezvous(target: Target) -> str:
    """Torchrun's own flags: standalone on one machine, c10d over the first of several."""
    if target.nodes == 1:
        return f"--standalone --nproc-per-node={target.per_node}"
    return (
        f"--nnodes={target.nodes} --nproc-per-node={target.per_node} --rdzv-id=job1 --rdzv-backend=c10d "
        f"--rdzv-endpoint=$MASTER_ADDR:{PORT}"
    )


def _torchrun(target: Target) -> Written:
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


def _accelerate(target: Target) -> Written:
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


def _deepspeed(target: Target) -> Written:
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


def _torchtitan(target: Target) -> Written:
    run = "torchrun " + rendezvous(target) + " -m torchtitan.train \\\n  " + " \\\n  ".join(titan_flags(target))
    text = f"#!/usr/bin/env bash\nset -euo pipefail\n{exports(target)}\n\n{run}\n"
    return [FileText(path="run.sh", language="bash", text=text)], ["bash run.sh"]


def axolotl_config(target: Target) -> dict[str, Any]:
    """Axolotl's YAML."""
    job = target.job
    config: dict[str, Any] = {
        "base_model": target.model,
        "datasets": [{"path": target.dataset, "type": "chat_template"}],
        "output_dir": "./out",
        "sequence_len": job.seq_len,
        "sample_packing": True,
        "micro_batch_size": job.micro_batch,
        "gradient_accumulation_steps": job.grad_accum,
        "learning_rate": 0.0002 if target.adapter else 0.00001,
        "optimizer": {"adamw": "adamw_torch_fused"}.get(job.optimizer, job.optimizer),
        "lr_scheduler": "cosine",
        "bf16": target.precision == "bf16",
        "gradient_checkpointing": job.checkpointing != "none" and not target.sharded,
        "attn_implementation": {"flash": "flash_attention_2"}.get(job.attention, job.attention),
        "save_steps": target.save_steps,
        "auto_resume_from_checkpoints": True,
    }
    if target.steps:
        config["max_steps"] = target.steps
    else:
        config["num_epochs"] = 1
    if target.adapter:
        config |= {
            "adapter": "qlora" if target.four_bit else "lora", "lora_r": job.lora_rank,
            "lora_alpha": 2 * job.lora_rank, "load_in_4bit": target.four_bit,
        }  # fmt: skip
        if target.lora_modules == "all-linear":
            config["lora_target_linear"] = True
        else:
            config["lora_target_modules"] = target.lora_modules.split(",")
    if target.sharded and job.n_gpus > 1:
        config |= {
            "fsdp_version": 2,
            "fsdp_config": {
                "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
                "reshard_after_forward": job.sharding != "zero2",
                "state_dict_type": "SHARDED_STATE_DICT",
                "offload_params": job.offload == "all",
                "activation_checkpointing": job.checkpointing != "none",
                "cpu_ram_efficient_loading": True,
            },
        }
        if job.sharding == "hsdp":
            config |= {"dp_replicate_size": target.nodes, "dp_shard_size": max(1, job.dp // target.nodes)}
    if job.tp > 1:
        config["tensor_parallel_size"] = job.tp
    if job.cp > 1:
        config["context_parallel_size"] = job.cp
    return config


def _axolotl(target: Target) -> Written:
    run = "axolotl train axolotl.yaml"
    if target.nodes > 1:
        run += " --launcher torchrun -- " + rendezvous(target)
    text = f"#!/usr/bin/env bash\nset -euo pipefail\n{exports(target)}\n\n{run}\n"
    return [
        FileText(path="axolotl.yaml", language="yaml", text=to_yaml(axolotl_config(target))),
        FileText(path="run.sh", language="bash", text=text),
    ], ["bash run.sh"]


def llamafactory_config(target: Target) -> dict[str, Any]:
    """LLaMA-Factory's YAML."""
    job = target.job
    config: dict[str, Any] = {
        "model_name_or_path": target.model,
        "stage": "dpo" if job.method == "dpo" else ("pt" if "pretrain" in job.method else "sft"),
        "do_train": True,
        "finetuning_type": "lora" if target.adapter else "full",
        "dataset": target.dataset,
        "template": "default",
        "cutoff_len": job.seq_len,
        "output_dir": "out",
        "per_device_train_batch_size": job.micro_batch,
        "gradient_accumulation_steps": job.grad_accum,
        "learning_rate": 0.0001 if target.adapter else 0.00001,
        "lr_scheduler_type": "cosine",
        "bf16": target.precision == "bf16",
        "fp16": target.precision == "fp16",
        "flash_attn": {"flash": "fa2", "sdpa": "sdpa", "eager": "disabled"}[job.attention],
        "disable_gradient_checkpointing": job.checkpointing == "none",
        "enable_liger_kernel": job.fused_loss,
        "save_steps": target.save_steps,
    }
    if target.steps:
        config["max_steps"] = target.steps
    else:
        config["num_train_epochs"] = 1.0
    if target.adapter:
        config |= {"lora_rank": job.lora_rank, "lora_alpha": 2 * job.lora_rank,
                   "lora_target": "all" if target.lora_modules == "all-linear" else target.lora_modules}  # fmt: skip
    if target.four_bit:
        config |= {"quantization_bit": 4, "quantization_method": "bnb", "double_quantization": True}
    if job.sharding in ("zero1", "zero2", "zero3", "fsdp", "hsdp") and job.n_gpus > 1:
        config["deepspeed"] = "ds_config.json"
    return config


def _llamafactory(target: Target) -> Written:
    files = [FileText(path="llamafactory.yaml", language="yaml", text=to_yaml(llamafactory_config(target)))]
    if "deepspeed" in llamafactory_config(target):
        files.append(FileText(path="ds_config.json", language="json", text=to_json(deepspeed_config(target))))
    several = ""
    if target.nodes > 1:
        several = f"NNODES={target.nodes} NODE_RANK=$NODE_RANK MASTER_ADDR=$MASTER_ADDR MASTER_PORT={PORT} "
    run = f"FORCE_TORCHRUN=1 NPROC_PER_NODE={target.per_node} {several}llamafactory-cli train llamafactory.yaml"
    text = f"#!/usr/bin/env bash\nset -euo pipefail\n{exports(target)}\n\n{run}\n"
    files.append(FileText(path="run.sh", language="bash", text=text))
    return files, ["bash run.sh"]


_SKY_NAMES = {
    "H100-SXM5": "H100", "H100-PCIe": "H100", "H200-SXM": "H200", "B200-SXM": "B200", "GB200": "GB200",
    "B300-SXM": "B300",
    "A100-SXM4-80GB": "A100-80GB", "A100-PCIe-80GB": "A100-80GB", "A100-SXM4-40GB": "A100", "A100-PCIe-40GB": "A100",
    "L40S": "L40S", "L4": "L4", "A10G": "A10G", "A10": "A10", "T4": "T4", "V100-SXM2-16GB": "V100",
    "V100-SXM2-32GB": "V100-32GB", "RTX-4090": "RTX4090", "RTX-3090": "RTX3090", "RTX-A6000": "RTXA6000",
    "RTX-6000-Ada": "RTX6000-Ada", "MI300X": "MI300X",
}  # fmt: skip


def skypilot_task(target: Target) -> dict[str, Any]:
    """A SkyPilot task: machines, idle stop, recovery, and the same torchrun command on every node."""
    name = _SKY_NAMES.get(target.gpu.id, target.gpu.id)
    resources: dict[str, Any] = {"accelerators": f"{name}:{target.per_node}", "disk_size": 1024}
    if target.nodes > 1 and target.fabric.inter_kind in ("infiniband", "roce", "efa", "gcp-tcp"):
        resources["network_tier"] = "best"
    if target.spot:
        resources |= {"use_spot": True, "job_recovery": {"strategy": "EAGER_NEXT_REGION", "max_restarts_on_errors": 2}}
    resources["autostop"] = {"idle_minutes": target.idle_minutes, "down": True}
    files, _commands = _torchrun(target)
    run = next(file.text for file in files if file.path == "run.sh").split("\n\n", 1)[1].strip()
    if target.nodes > 1:
        run = 'export MASTER_ADDR=$(echo "$SKYPILOT_NODE_IPS" | head -n1)\n' + run
    envs = {key: value for key, value in environment(target).items() if key != "MASTER_ADDR"}
    return {
        "name": "train",
        "resources": resources,
        "num_nodes": target.nodes,
        "workdir": ".",
        "envs": envs,
        "secrets": {"HF_TOKEN": None},
        "setup": "pip install -q torch transformers trl peft datasets bitsandbytes\n",
        "run": run + "\n",
    }


def _skypilot(target: Target) -> Written:
    files = [file for file in _torchrun(target)[0] if file.path != "run.sh"]
    files.insert(0, FileText(path="task.yaml", language="yaml", text=to_yaml(skypilot_task(target))))
    if target.spot:
        return files, ["sky jobs launch --secret HF_TOKEN task.yaml"]
    return files, ["sky launch -c train --secret HF_TOKEN task.yaml", "sky logs train"]


def _slurm(target: Target) -> Written:
    files, _commands = _torchrun(target)
    run = next(file.text for file in files if file.path == "run.sh").split("\n\n", 1)[1].strip()
    if target.nodes == 1:
        own = "--nnodes=1 --rdzv-id=$SLURM_JOB_ID --rdzv-backend=c10d --rdzv-endpoint=localhost:0"
        run = run.replace("--standalone", own)
    run = run.replace("--rdzv-id=job1", "--rdzv-id=$SLURM_JOB_ID")
    lines = [
        "#!/usr/bin/env bash",
        "#SBATCH --job-name=train",
        f"#SBATCH --nodes={target.nodes}",
        "#SBATCH --ntasks-per-node=1",
        f"#SBATCH --gpus-per-node={target.per_node}",
        f"#SBATCH --cpus-per-task={8 * target.per_node}",
        "#SBATCH --exclusive",
        "#SBATCH --time=24:00:00",
        "#SBATCH --output=%x-%j.log",
        "#SBATCH --signal=B:USR1@300",
        "#SBATCH --requeue",
        "",
        "set -euo pipefail",
    ]
    if target.nodes > 1:
        lines.append('export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)')
    lines += [exports(target, ("MASTER_ADDR",)), "", "srun " + run]
    kept = [file for file in files if file.path != "run.sh"]
    kept.insert(0, FileText(path="train.sbatch", language="bash", text="\n".join(lines) + "\n"))
    return kept, ["sbatch train.sbatch"]


_WRITERS: dict[Launcher, Callable[[Target], Written]] = {
    "torchrun": _torchrun, "accelerate": _accelerate, "fsdp": _accelerate, "deepspeed": _deepspeed,
    "torchtitan": _torchtitan, "axolotl": _axolotl, "llama-factory": _llamafactory, "skypilot": _skypilot,
    "slurm": _slurm,
}  # fmt: skip
