"""Files of fine-tuning tools that read one YAML: Axolotl and LLaMA-Factory."""

from __future__ import annotations

from typing import Any

from tools.launch.direct import Written, deepspeed_config, rendezvous
from tools.launch.environment import exports
from tools.launch.target import PORT, Target
from tools.launch.yaml_text import to_json, to_yaml
from tools.result import FileText


def axolotl_config(target: Target) -> dict[str, Any]:
    """Axolotl's settings by its own key names, in the order to be written. Learning rates are the recipes' usual 2e-4
    for adapters and 1e-5 else; one epoch where no steps are set.
    """
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


def axolotl(target: Target) -> Written:
    """axolotl.yaml and a launch script; and the command for every node."""
    run = "axolotl train axolotl.yaml"
    if target.nodes > 1:
        run += " --launcher torchrun -- " + rendezvous(target)
    text = f"#!/usr/bin/env bash\nset -euo pipefail\n{exports(target)}\n\n{run}\n"
    return [
        FileText(path="axolotl.yaml", language="yaml", text=to_yaml(axolotl_config(target))),
        FileText(path="run.sh", language="bash", text=text),
    ], ["bash run.sh"]


def llamafactory_config(target: Target) -> dict[str, Any]:
    """LLaMA-Factory's settings by its own key names, in the order to be written. Learning rates are the recipes' usual
    1e-4 for adapters and 1e-5 else; sharding is left to ds_config.json.
    """
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


def llamafactory(target: Target) -> Written:
    """llamafactory.yaml, a launch script and, where states are sharded, ds_config.json; and the command
    for every node.
    """
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
