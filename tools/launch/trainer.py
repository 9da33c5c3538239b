"""A short training script on Transformers, PEFT and TRL, which torchrun, accelerate and DeepSpeed start alike."""

from __future__ import annotations

from tools.launch.target import Target

_OPTIMIZERS = {
    "adamw": "adamw_torch_fused", "adamw_8bit": "adamw_8bit", "paged_adamw": "paged_adamw_32bit",
    "paged_adamw_8bit": "paged_adamw_8bit", "adafactor": "adafactor", "lion": "lion_32bit", "sgd": "sgd",
}  # fmt: skip


def arguments(target: Target) -> list[str]:
    """Trainer arguments of the job, as command-line flags of ``train.py``."""
    job = target.job
    flags = [
        f"--model_name_or_path {target.model}",
        f"--dataset_name {target.dataset}",
        "--output_dir out",
        f"--max_length {job.seq_len}",
        f"--per_device_train_batch_size {job.micro_batch}",
        f"--gradient_accumulation_steps {job.grad_accum}",
        f"--gradient_checkpointing {'true' if job.checkpointing != 'none' else 'false'}",
        f"--optim {_OPTIMIZERS.get(job.optimizer, 'adamw_torch_fused')}",
        f"--max_steps {target.steps}" if target.steps else "--num_train_epochs 1",
        f"--save_steps {target.save_steps}",
    ]
    if target.precision != "no":
        flags.append(f"--{target.precision} true")
    if job.fused_loss:
        flags.append("--use_liger_kernel true")
    return flags


def script(target: Target) -> str:
    """``train.py``: supervised fine-tuning, with adapters where the job has them."""
    job = target.job
    attention = {"flash": "flash_attention_2", "sdpa": "sdpa", "eager": "eager"}[job.attention]
    imports = ["from pathlib import Path\n", "import torch", "from datasets import load_dataset"]
    peft = "None"
    if target.adapter:
        imports.append("from peft import LoraConfig")
        modules = f'"{target.lora_modules}"'
        if "," in target.lora_modules:
            modules = str(target.lora_modules.split(","))
        dora = ", use_dora=True" if job.method == "dora" else ""
        rank = f"r={job.lora_rank}, lora_alpha={2 * job.lora_rank}"
        peft = f'LoraConfig({rank}, target_modules={modules}{dora}, task_type="CAUSAL_LM")'
    imports.append("from transformers import AutoModelForCausalLM, HfArgumentParser")
    quantised = ""
    if target.four_bit:
        imports[-1] = "from transformers import AutoModelForCausalLM, BitsAndBytesConfig, HfArgumentParser"
        quantised = (
            '    quantization_config=BitsAndBytesConfig(\n        load_in_4bit=True, bnb_4bit_quant_type="nf4", '
            "bnb_4bit_use_double_quant=True,\n        bnb_4bit_compute_dtype=torch.bfloat16, "
            "bnb_4bit_quant_storage=torch.bfloat16,\n    ),\n"
        )
    imports.append("from trl import ModelConfig, ScriptArguments, SFTConfig, SFTTrainer")
    dtype = "torch.float32" if job.precision in ("fp32", "bf16_mixed", "fp16_mixed") else "torch.bfloat16"
    return (
        "\n".join(imports)
        + f"""

data, args, model_args = HfArgumentParser((ScriptArguments, SFTConfig, ModelConfig)).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained(
    model_args.model_name_or_path,
    dtype={dtype},
    attn_implementation="{attention}",
{quantised})
trainer = SFTTrainer(
    model=model,
    args=args,
    train_dataset=load_dataset(data.dataset_name, split=data.dataset_train_split),
    peft_config={peft},
)
trainer.train(resume_from_checkpoint=any(Path(args.output_dir).glob("checkpoint-*")))
trainer.save_model()
"""
    )
