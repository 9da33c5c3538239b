"""Whole questions with all that they state: pasted commands, mixed languages, several counts and sizes in a line.

Expected values are read off the sentences by hand. ``gpu`` is the first card, ``methods`` what is named in order.
"""

from __future__ import annotations

from typing import Any

import pytest

from advisor.llm.planner.follow_up import read_follow_up
from advisor.llm.planner.parse import parse

COMMANDS_AND_REPORTS: list[tuple[str, dict[str, Any]]] = [
    (
        "4GPU with 48GB memory each and batch size of 1, the 7B lora ds script still fails",
        {"n_gpus": 4, "gpu_memory_gb": 48.0, "micro_batch": 1, "methods": ("lora",)},
    ),
    ("i have a 49GB*4 machine, qwen-vl 9.6b lora OOMs", {"n_gpus": 4}),
    ("single node 80G*8 VRAM, 7b grpo, vllm util 0.7", {"n_gpus": 8, "methods": ("grpo",)}),
    (
        "4台A800-80G*8，微调14b模型 model_max_length 16384 zero3，还是显存不够",
        {"n_gpus": 32, "seq_len": 16384, "sharding": "zero3"},
    ),
    (
        "目前4 * A100-SXM4-40GB, 内存1T, deepspeed zero2, offload_optimizer=cpu, "
        "per_device_train_batch_size=1, 全参微调 9.7B",
        {
            "n_gpus": 4,
            "gpu": "A100-SXM4-40GB",
            "sharding": "zero2",
            "micro_batch": 1,
            "methods": ("full",),
            "framework": "deepspeed",
        },
    ),
    ("with 4x8 A100 80 GB it took 32 hours, vit-l. for a 1b?", {"n_gpus": 32}),
    ("qwen2.5-14b dapo on 2 * 8 H100, verl", {"n_gpus": 16, "methods": ("grpo",), "framework": "verl"}),
    ("qwen3-14b grpo works on 1 * 8 A100 (80G)", {"n_gpus": 8, "methods": ("grpo",)}),
    ("lora on 2 x 40GB A100s, 7B, len 2048", {"n_gpus": 2, "gpu": "A100-SXM4-40GB", "seq_len": 2048}),
    ("pretrained on two 16-GPU nodes, how long for a 400M", {"n_gpus": 32}),
    ("96 DGX-A100 (8x40G) and 400B tokens, 130B from scratch: days?", {"n_gpus": 768, "tokens": 400000000000.0}),
    ("4xL4 (4 x 24 GB) instance with Llama3.2-1b grpo + vllm OOM", {"n_gpus": 4, "gpu": "L4", "methods": ("grpo",)}),
    ("全量微调7b，用了3块V100，每个32G，显存不足", {"n_gpus": 3, "methods": ("full",)}),
    ("单张V100 32G 全参微调 qwen 1.8b 爆显存", {"n_gpus": 1, "gpu": "V100-SXM2-32GB", "methods": ("full",)}),
    ("24张V100(32GB) 训 13B", {"n_gpus": 24, "gpu": "V100-SXM2-32GB"}),
    ("managed 15 batch size with 200 max length on a 4090, 7b lora", {"micro_batch": 15, "seq_len": 200}),
    (
        "max-length调到128以及batch size=1还是不行，chatglm2 6b 全量，4卡",
        {"seq_len": 128, "micro_batch": 1, "n_gpus": 4, "methods": ("full",)},
    ),
    (
        "my batch_size is set to 1 and max_len=512 on 32G, bloom-1b7 full fp16 zero2",
        {"micro_batch": 1, "seq_len": 512, "sharding": "zero2", "precision": "fp16", "methods": ("full",)},
    ),
    (
        "deepspeed --include localhost:4,5,6,7 --finetuning_type full --cutoff_len 1536 baichuan2-13b "
        "A800 80G --per_device_train_batch_size 1",
        {"n_gpus": 4, "seq_len": 1536, "methods": ("full",), "micro_batch": 1},
    ),
    (
        "deepspeed --num_gpus 4 --finetuning_type full --lora_rank 8 qwen1.5-14b V100",
        {"n_gpus": 4, "methods": ("full",)},
    ),
    (
        "openrlhf.cli.train_sft --max_len 2048 --micro_train_batch_size 1 --zero_stage 2 --pretrain "
        "meta-llama/Meta-Llama-3-8B on one 3090 24G",
        {"framework": "openrlhf", "seq_len": 2048, "micro_batch": 1, "sharding": "zero2", "n_gpus": 1},
    ),
    (
        "per_device_train_batch_size改为1 --cutoff_len 为256依然爆显存，qwen 1.8b 全参",
        {"micro_batch": 1, "seq_len": 256, "methods": ("full",)},
    ),
    ("--generate_max_len 3000 --prompt_max_len 8000 zero_stage 3 ppo 7b", {"sharding": "zero3", "methods": ("ppo",)}),
    ("actor_num_gpus_per_node 4, rloo, 7b, micro_train_batch_size 2", {"methods": ("grpo",), "micro_batch": 2}),
    ("rented a 4xA100 for half a week, could that do a 3b t0 finetune", {"n_gpus": 4}),
    ("10 A100s, total batch 40 so 4 each, 3b", {"n_gpus": 10}),
    (
        "M3 Max Macbook with 128GB memory crashes on mlx_lm.lora llama 3.1 8b, batch_size: 4, "
        "max_seq_length: 8192, lora_layers 16, rank: 16",
        {
            "gpu": "Apple-M3-Max",
            "framework": "mlx",
            "micro_batch": 4,
            "seq_len": 8192,
            "lora_rank": 16,
            "methods": ("lora",),
        },
    ),
    ("flux-dev lora with batch size 1 needs 40 GB?", {"micro_batch": 1}),
    ("2 1080 with 8GB each sd 2.1 lora", {"n_gpus": 2}),
    ("H800 x8 72b verl gspo", {"n_gpus": 8, "methods": ("grpo",), "framework": "verl"}),
    ("使用4台8*A800机器 全参 70b bs=1 ctx=4k", {"n_gpus": 32, "micro_batch": 1, "seq_len": 4096, "methods": ("full",)}),
    ("EasyR1 qwen2.5-vl-7b on 8x80G", {"n_gpus": 8, "gpu_memory_gb": 80.0}),
    ("3090*2 24G*2 qlora 33b cutoff len 512", {"n_gpus": 2, "seq_len": 512, "methods": ("qlora",)}),
    (
        "GPU: A100 80G * 2, llama-30b, bf16, lora_rank=8",
        {"n_gpus": 2, "lora_rank": 8, "precision": "bf16", "gpu": "A100-SXM4-80GB"},
    ),
    ("V100 16G x 8, chatglm 6b p-tuning", {"n_gpus": 8, "gpu": "V100-SXM2-16GB"}),
    (
        "gradient_accumulation_steps: 16, micro_batch_size: 1, sequence_len: 4096, adapter: qlora, "
        "base_model: codellama/CodeLlama-34b-hf on 2 L4",
        {"micro_batch": 1, "grad_accum": 16, "seq_len": 4096, "methods": ("qlora",), "n_gpus": 2, "gpu": "L4"},
    ),
    (
        "load_in_4bit: true, lora_r: 32, lora_alpha: 16, mixtral, 48gb a40",
        {"lora_rank": 32, "gpu": "A40", "methods": ("qlora",)},
    ),
    ("fully sharded on 32 GPUs (4 per node) 65b v100 32gb", {"n_gpus": 32, "sharding": "fsdp"}),
    (
        "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 4 --micro-batch-size 1 "
        "--global-batch-size 1024 --seq-length 4096 64 A100s, 175b",
        {"tp": 8, "pp": 4, "micro_batch": 1, "global_batch": 1024, "seq_len": 4096, "n_gpus": 64},
    ),
    (
        "--context-parallel-size 2 --expert-model-parallel-size 8 mixtral 8x22b 128 h100",
        {"n_gpus": 128, "ep": 8, "cp": 2},
    ),
    ("torchrun --nnodes=4 --nproc_per_node=8 train.py llama 13b on A100 40GB", {"n_gpus": 32}),
    ("srun -N 8 --gpus-per-node=4 llama 30b A100", {"n_gpus": 32}),
    ("#SBATCH --nodes=2 #SBATCH --gres=gpu:4 falcon 40b a100 80", {"n_gpus": 8}),
    ("accelerate launch --num_processes 8 --num_machines 2 7b a100", {"n_gpus": 8}),
    (
        "bf16: true, tf32: true, zero_optimization: {stage: 3}, 13b on 4xA10",
        {"n_gpus": 4, "sharding": "zero3", "precision": "bf16"},
    ),
    ("ddp vs fsdp for 1.3b on 8x A10G 24gb?", {"n_gpus": 8}),
    ("llama2 70b chat, 8-bit inference, 2x A6000", {"precision": "int8", "n_gpus": 2, "task": "inference"}),
    (
        "Qwen2-72B-Instruct-GPTQ-Int4 on 2 A100-40G, 32k context vLLM",
        {"n_gpus": 2, "seq_len": 32768, "task": "inference", "framework": "vllm"},
    ),
    (
        "finetune Qwen2.5-Coder-32B-Instruct, r=128, alpha=256, max_seq_length=16384, unsloth, 1x H100 80GB",
        {"lora_rank": 128, "seq_len": 16384, "framework": "unsloth", "n_gpus": 1},
    ),
    (
        "DeepSeek-R1-Distill-Qwen-32B sft, full, 16384 len, H20 x 8 x 2",
        {"seq_len": 16384, "methods": ("full",), "n_gpus": 16},
    ),
    ("with 64 gpus, 7b 128k full finetune (YaRN)", {"n_gpus": 64, "seq_len": 131072, "methods": ("full",)}),
    ("how many A100-80G for 13b at 128k context", {"seq_len": 131072}),
    ("24 GB of VRAM total (3x8gb), 7b", {"n_gpus": 3}),
    ("2nodes*8gpus H100 405b lora", {"n_gpus": 16, "methods": ("lora",)}),
    ("16 GPU (2x8) A100 65b full", {"n_gpus": 16, "methods": ("full",)}),
    (
        "8 nodes x 8 GPUs x A100 80GB, 175b megatron, microbatch 1",
        {"n_gpus": 64, "micro_batch": 1, "framework": "megatron"},
    ),
    ("single-GPU (3090) 7B QLoRA, seqlen 2k, bsz 4", {"n_gpus": 1, "seq_len": 2048, "micro_batch": 4}),
]
OTHER_LANGUAGES: list[tuple[str, dict[str, Any]]] = [
    (
        "wir haben 3 Server mit je 8 A100 40GB und 100GbE. Reicht das fürs Pretraining eines 7B-Modells?",
        {"n_gpus": 24, "gpu": "A100-SXM4-40GB", "inter_link": "100GbE", "methods": ("pretrain",)},
    ),
    (
        "¿cabe un 13B en qlora con una 4060 Ti de 16GB? contexto 4096",
        {"gpu": "RTX-4060-Ti-16GB", "seq_len": 4096, "methods": ("qlora",)},
    ),
    (
        "Qwen3-32B を LoRA (rank 64) で、H200 1枚、max_seq_len 8192 はいけますか",
        {"lora_rank": 64, "gpu": "H200-SXM", "n_gpus": 1, "seq_len": 8192},
    ),
    (
        "求助：4张3090跑llama-factory，qwen2.5-14b，lora，cutoff_len 4096，per_device_train_batch_size 1还是爆显存",
        {"n_gpus": 4, "framework": "llama-factory", "seq_len": 4096, "micro_batch": 1, "methods": ("lora",)},
    ),
    ("昇腾910B 8卡能不能跑qwen2.5-72b的lora", {"n_gpus": 8, "methods": ("lora",)}),
    (
        "8*A800 全参 qwen-72b zero3+offload 内存1TB 够吗",
        {"n_gpus": 8, "sharding": "zero3", "ram_gb": 1000.0, "methods": ("full",)},
    ),
    ("单卡4090(24G) 微调 chatglm3-6b 用 p-tuning 还是 lora，max_source_length 1024", {"gpu": "RTX-4090", "n_gpus": 1}),
    ("预算5万人民币，想训练一个1B模型，20B tokens", {"tokens": 20000000000.0}),
    ("H20 141G 八卡 deepseek-v3 推理 fp8", {"n_gpus": 8, "precision": "fp8", "task": "inference"}),
    ("2台8卡H800 IB 400G 训 qwen2.5-32b 全参 seq 32k", {"n_gpus": 16, "seq_len": 32768, "methods": ("full",)}),
    (
        "Combien coûte l'entraînement d'un 1,3B sur 26 milliards de tokens avec 8 A100 ?",
        {"tokens": 26000000000.0, "n_gpus": 8},
    ),
    (
        "llama 8B 를 A100 80GB 두 장에서 풀파인튜닝, 시퀀스 4096, 배치 1",
        {"n_gpus": 2, "seq_len": 4096, "micro_batch": 1, "methods": ("full",)},
    ),
    (
        "RTX 4090 2枚でLlama-3-70BのQLoRAは可能？シーケンス長は2048、バッチサイズ1",
        {"n_gpus": 2, "seq_len": 2048, "micro_batch": 1, "methods": ("qlora",)},
    ),
]
PLAIN: list[tuple[str, dict[str, Any]]] = [
    (
        "trying to finetune codellama-34b w/ axolotl, qlora, sample packing at 8192, single 3090.. OOM "
        "at step 1. anything left to try?",
        {"framework": "axolotl", "methods": ("qlora",), "seq_len": 8192, "n_gpus": 1, "gpu": "RTX-3090"},
    ),
    (
        "phi-3-mini lora r=8 on a T4 colab, max_seq_len=1024 bs=2",
        {"lora_rank": 8, "gpu": "T4", "seq_len": 1024, "micro_batch": 2},
    ),
    (
        "we've got 4 nodes w/ 8x MI300X, want to pretrain a 13B on 1T tokens w/ megatron. eta?",
        {"n_gpus": 32, "tokens": 1000000000000.0, "framework": "megatron", "methods": ("pretrain",)},
    ),
    (
        "gemma 3 27b QAT on 2x 7900XTX llama.cpp, 16k ctx",
        {"n_gpus": 2, "seq_len": 16384, "framework": "llama.cpp", "task": "inference"},
    ),
    (
        "Is 96GB (4x24) enough for full sft of qwen2.5 7b w/ zero3?",
        {"n_gpus": 4, "sharding": "zero3", "gpu_memory_gb": 24.0},
    ),
    (
        "how long would dpo on 60k pairs take, llama 3.1 8b, lora, 1x H100, 2 epochs, seq 2048",
        {"samples": 60000, "epochs": 2, "seq_len": 2048, "n_gpus": 1, "methods": ("dpo", "lora")},
    ),
    (
        "spot p4d.24xlarge vs on demand for a 3 day 13b run, checkpoints every hour?",
        {"n_gpus": 8, "gpu": "A100-SXM4-40GB"},
    ),
    ("h100 prices on lambda vs runpod rn", {"providers": ("lambda", "runpod")}),
    (
        "un H100 80Go suffit pour full finetune un 8B en bf16 avec adam 8bit ?",
        {"gpu": "H100-SXM5", "methods": ("full",), "optimizer": "adamw_8bit", "precision": "bf16"},
    ),
    (
        "budget is 2k usd, deadline friday, 8b continued pretrain on 5B tokens. which gpus",
        {"budget_usd": 2000.0, "tokens": 5000000000.0, "methods": ("continued_pretrain",)},
    ),
    (
        "deepseek-r1-distill-llama-70b awq int4 on 2 x L40S vllm max_model_len 16k, 32 concurrent users",
        {"n_gpus": 2, "seq_len": 16384, "micro_batch": 32, "task": "inference", "framework": "vllm"},
    ),
    ("can i nvlink two 4090s for a 34b qlora?", {"n_gpus": 2, "methods": ("qlora",)}),
    (
        "unsloth says 2x faster. true for mistral 7b lora r 32 on A10G 24g, seq 4k, bs 4?",
        {"framework": "unsloth", "lora_rank": 32, "seq_len": 4096, "micro_batch": 4, "gpu": "A10G"},
    ),
    ("llama 70b int8 on 4x A10G (g5.12xlarge)?", {"precision": "int8", "n_gpus": 4, "gpu": "A10G"}),
    (
        "3 epochs, 100k examples of ~800 tokens, 7b full ft, 8xA100-80: hours and $?",
        {"epochs": 3, "samples": 100000, "n_gpus": 8, "methods": ("full",)},
    ),
    (
        "grpo qwen2.5-3b group size 16, 2k prompt + 4k completion, 4xA6000, trl+vllm colocate",
        {"methods": ("grpo",), "n_gpus": 4, "framework": "trl", "gpu": "RTX-A6000"},
    ),
    ("torch 2.7 cu128 on driver 550.127.05 w/ 5090?", {"torch": "2.7", "driver": "550.127.05", "gpu": "RTX-5090"}),
    (
        "sm_120 not compatible w/ current pytorch install, rtx pro 6000, torch 2.5.1+cu124",
        {"torch": "2.5.1", "cuda": "12.4"},
    ),
    ("hetzner style box, 2x RTX 4000 ada 20gb, 13b qlora fits?", {"n_gpus": 2, "gpu": "RTX-4000-Ada"}),
    (
        "buy 8xH200 (~$310k) vs rent @ $2.9/gpu/hr, 3y, 65% util",
        {"gpu": "H200-SXM", "n_gpus": 8, "price_usd": 2.9, "years": 3, "utilisation": 0.65, "budget_usd": 310000.0},
    ),
    ("nccl allreduce busbw only 11 GB/s, 2 nodes 8xA100, 100G RoCE. expected?", {"n_gpus": 16}),
]


@pytest.mark.parametrize(("text", "expected"), [*COMMANDS_AND_REPORTS, *OTHER_LANGUAGES, *PLAIN])
def test_all_that_a_question_states_is_read(text: str, expected: dict[str, Any]) -> None:
    slots = parse(text)
    named = {
        "gpu": slots.gpus[0].argument if slots.gpus else None, "methods": slots.methods, "providers": slots.providers
    }  # fmt: skip
    read = {**slots.values, **named}
    for name, value in expected.items():
        assert read.get(name) == (pytest.approx(value) if isinstance(value, float) else value), name


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("do i need 8 or 16 h100 for 70b full at 8k?", [8, 16]),
        ("will two 3090s do for a 34b qlora or do i need four?", [2, 4]),
        ("one or two A100 80GB for 34b lora", [1, 2]),
        ("QLoRA 70B auf zwei gebrauchte 3090er oder brauch ich da doch vier?", [2, 4]),
        ("is one h100 enough for 70b qlora or two?", [1, 2]),
        ("2/4 gpus for 13b lora on a100", [2, 4]),
    ],
)
def test_two_counts_to_choose_from_are_computed_side_by_side(text: str, pair: list[int]) -> None:
    assert parse(text).get("variants") == ("n_gpus", pair)


@pytest.mark.parametrize(
    "text", ["lora or qlora on a 3090", "H100 or A100 for 7b", "ddp or fsdp on 4 a100", "1 a100 or 2 4090 for 7b lora"]
)
def test_other_choices_are_no_pair_of_counts(text: str) -> None:
    assert parse(text).get("variants") is None


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("hm. on two then", 2),
        ("ok, and on 4?", 4),
        ("what about four?", 4),
        ("make it eight", 8),
        ("and with two of them?", 2),
        ("8 gpus then", 8),
        ("well, over 16 then", 16),
        ("und auf vier?", 4),
        ("try sixteen", 16),
        ("on just two", 2),
    ],
)
def test_a_short_follow_up_counts_the_cards_named_before(text: str, count: int) -> None:
    earlier = parse("is one A100-40 ok for mixtral 8x7b qlora")
    assert read_follow_up(parse(text), earlier, ("fit",)).get("n_gpus") == count


@pytest.mark.parametrize(
    "text",
    [
        "zero3 on 16 cards OOMs, 70G of states each before activations",
        "i saw 178 GB with zero3 offload on a 7b",
        "it writes ~60GB every save",
        "12gb of activations for a 7b?",
    ],
)
def test_a_figure_that_is_told_is_no_card(text: str) -> None:
    assert parse(text).get("gpu_memory_gb") is None
