"""Pasted configurations of each framework become the workload that they describe."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.config.parse import parse_training_config
from tools.errors import InputProblem

AXOLOTL = """
base_model: meta-llama/Llama-3.1-8B
load_in_4bit: true
adapter: qlora
lora_r: 32
lora_target_linear: true
sequence_len: 4096
sample_packing: true
micro_batch_size: 2
gradient_accumulation_steps: 4
optimizer: adamw_bnb_8bit
bf16: auto
gradient_checkpointing: true
flash_attention: true
deepspeed: deepspeed_configs/zero2.json
learning_rate: 0.0002
strange_setting: 3
"""
LLAMA_FACTORY = """
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: dpo
finetuning_type: lora
lora_rank: 8
lora_target: all
cutoff_len: 2048
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
bf16: true
deepspeed: examples/deepspeed/ds_z3_config.json
"""
TORCHTUNE = """
tokenizer:
  _component_: torchtune.models.llama3.llama3_tokenizer
  max_seq_len: 8192
model:
  _component_: torchtune.models.llama3_1.qlora_llama3_1_8b
  lora_attn_modules: ['q_proj', 'v_proj', 'output_proj']
  apply_lora_to_mlp: True
  lora_rank: 8
batch_size: 2
optimizer:
  _component_: bitsandbytes.optim.PagedAdamW8bit
dtype: bf16
enable_activation_checkpointing: True
"""
MEGATRON = """torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py \\
  --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --num-layers 32 --hidden-size 4096 \\
  --ffn-hidden-size 14336 --num-attention-heads 32 --num-query-groups 8 --seq-length 4096 --micro-batch-size 1 \\
  --global-batch-size 128 --bf16 --use-distributed-optimizer --recompute-granularity selective --swiglu \\
  --untie-embeddings-and-output-weights --vocab-size 128256"""
DEEPSPEED = """{"bf16": {"enabled": true},
 "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "nvme"}},
 "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": "auto"}
distributed_type: DEEPSPEED
num_processes: 8
mixed_precision: bf16
"""
PYTHON = """
model = AutoModelForCausalLM.from_pretrained("mistralai/Mistral-7B-v0.1", torch_dtype=torch.bfloat16,
                                             attn_implementation="flash_attention_2")
peft_config = LoraConfig(r=16, lora_alpha=32, target_modules=["q_proj", "v_proj"])
args = SFTConfig(per_device_train_batch_size=4, max_seq_length=1024, gradient_checkpointing=True, bf16=True,
                 optim="paged_adamw_8bit")
"""


def test_axolotl() -> None:
    parsed = parse_training_config(AXOLOTL)
    assert parsed.dialect == "axolotl"
    assert parsed.arguments == {
        "model": "meta-llama/Llama-3.1-8B", "method": "qlora", "precision": "nf4", "lora_rank": 32,
        "lora_targets": ["all-linear"], "seq_len": 4096, "micro_batch": 2, "grad_accum": 4, "optimizer": "adamw_8bit",
        "activation_checkpointing": "full", "attention": "flash", "sharding": "zero2", "framework": "axolotl",
    }  # fmt: skip
    assert parsed.not_understood == ["strange_setting"]
    assert "learning_rate" in parsed.ignored


def test_llama_factory_preference_training_on_adapters() -> None:
    arguments = parse_training_config(LLAMA_FACTORY).arguments
    assert (arguments["method"], arguments["lora_rank"], arguments["sharding"]) == ("dpo", 8, "zero3")
    assert arguments["precision"] == "bf16"


def test_torchtune_builders_name_model_and_adapter() -> None:
    arguments = parse_training_config(TORCHTUNE).arguments
    assert arguments["model"] == "llama-3.1-8b"
    assert arguments["method"] == "qlora"
    assert arguments["optimizer"] == "paged_adamw_8bit"
    assert set(arguments["lora_targets"]) == {"q_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}


def test_megatron_arguments_give_shape_and_layout() -> None:
    arguments = parse_training_config(MEGATRON).arguments
    assert (arguments["n_gpus"], arguments["tp"], arguments["pp"]) == (32, 4, 2)
    assert arguments["grad_accum"] == 32  # 128 sequences over 32 / (4 * 2) = 4 replicas of 1
    assert arguments["model"]["n_kv_heads"] == 8
    assert arguments["model"]["params_b"] == pytest.approx(8.03, rel=0.01)  # these are Llama-3-8B's widths
    assert (arguments["sharding"], arguments["activation_checkpointing"]) == ("zero1", "selective")


def test_accelerate_with_deepspeed_json() -> None:
    arguments = parse_training_config(DEEPSPEED).arguments
    assert (arguments["sharding"], arguments["n_gpus"], arguments["micro_batch"]) == ("zero3", 8, 4)
    assert arguments["cpu_offload"] == "nvme"


def test_python_keyword_arguments() -> None:
    arguments = parse_training_config(PYTHON).arguments
    assert arguments["model"] == "mistralai/Mistral-7B-v0.1"
    assert (arguments["method"], arguments["lora_targets"], arguments["framework"]) == (
        "lora", ["q_proj", "v_proj"], "hf",
    )  # fmt: skip


def test_nothing_to_read_is_said() -> None:
    with pytest.raises(InputProblem) as problem:
        parse_training_config("my model does not fit, help")
    assert problem.value.field == "training_config"


@given(st.text(max_size=400))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    with contextlib.suppress(InputProblem):
        parsed = parse_training_config(text)
        assert parsed.read or parsed.ignored or parsed.not_understood
