"""Whole questions with all that they state: some of those in English, and what follows them.

Expected values are read off the sentences by hand. ``gpu`` is the first card, ``methods`` what is named in order.
"""

from __future__ import annotations

from typing import Any

import pytest

from advisor.llm.planner.follow_up import read_follow_up
from advisor.llm.planner.parse import parse
from tests.advisor.reading import assert_read

QUESTIONS: list[tuple[str, dict[str, Any]]] = [
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
    (
        "mixtral 8x7b full ft on 16 h100s (2 nodes), zero3, seq 4096, mbs 2",
        {"n_gpus": 16, "sharding": "zero3", "seq_len": 4096, "micro_batch": 2, "methods": ("full",)},
    ),
    ("starcoder2-15b lora with 24 gigs of vram?", {"gpu_memory_gb": 24.0, "methods": ("lora",)}),
    (
        "bert-base mlm on 40GB text, 4x V100 32G, 1M steps bs 256",
        {"n_gpus": 4, "gpu": "V100-SXM2-32GB", "steps": 1000000},
    ),
    ("llama3-8b-instruct ORPO with 16bit lora on L4?", {"methods": ("orpo", "lora"), "gpu": "L4"}),
    ("MI250X 8 GCDs per node, 4 nodes, gpt-neox 20b", {"n_gpus": 32}),
    ("do i need 8 or 16 h100 for 70b full at 8k?", {"seq_len": 8192, "methods": ("full",)}),
    (
        "kto 7b lora, 1 x A100 40, per device bs 2, grad acc 8, 4k tokens",
        {
            "methods": ("kto", "lora"),
            "n_gpus": 1,
            "gpu": "A100-SXM4-40GB",
            "micro_batch": 2,
            "grad_accum": 8,
            "seq_len": 4096,
        },
    ),
    ("whisper large v3 ft on 3090, batch 16?", {"micro_batch": 16, "gpu": "RTX-3090"}),
    ("gpt-oss-20b qlora on 16GB 4080?", {"gpu": "RTX-4080", "methods": ("qlora",)}),
    ("how much faster is h200 than h100 for llama 70b lora at 32k", {"seq_len": 32768, "methods": ("lora",)}),
    (
        "tp=4 pp=2 dp=4 on 32 h100 for 70b, mbs 1, gbs 512",
        {"tp": 4, "pp": 2, "n_gpus": 32, "micro_batch": 1, "global_batch": 512},
    ),
    (
        "3B model from scratch, 300B tokens, 64 A100 80G, 45% mfu -> days?",
        {"tokens": 300000000000.0, "n_gpus": 64, "mfu": 0.45, "methods": ("pretrain",)},
    ),
    ("cheapest way to qlora a 70b once? $50 max", {"budget_usd": 50.0, "methods": ("qlora",)}),
    (
        "vast.ai 3090 $0.15/h x 4, 13b lora 20k rows 3ep",
        {"n_gpus": 4, "price_usd": 0.15, "samples": 20000, "epochs": 3, "methods": ("lora",)},
    ),
    (
        "fsdp2 + float8 llama 8b torchtitan 8 h100, seq 8192, local batch 1",
        {"framework": "torchtitan", "n_gpus": 8, "seq_len": 8192, "micro_batch": 1, "precision": "fp8"},
    ),
    ("olmo2 13b, 5 nodes of 4x A100-40", {"n_gpus": 20, "gpu": "A100-SXM4-40GB"}),
    (
        "gemma2 9b eager attention 8k oom on 48gb, full ft w/ adafactor",
        {"seq_len": 8192, "gpu_memory_gb": 48.0, "methods": ("full",), "optimizer": "adafactor"},
    ),
    (
        "what would 10B tokens of CPT on llama-3.1-70b cost on 32 H100 @ $2.2",
        {"tokens": 10000000000.0, "n_gpus": 32, "price_usd": 2.2, "methods": ("continued_pretrain",)},
    ),
    ("Falcon-180B qlora on 8 x A100 (40GB)?", {"n_gpus": 8, "gpu": "A100-SXM4-40GB", "methods": ("qlora",)}),
    ("qwen2-vl 7b lora 24gb, images 1024x1024, bs 1", {"micro_batch": 1, "methods": ("lora",), "gpu_memory_gb": 24.0}),
    ("jarvislabs a6000 per hour?", {"providers": ("jarvislabs",), "gpu": "RTX-A6000"}),
    ("H100 80GB PCIe x8 vs SXM x8 for 70b training", {"n_gpus": 8}),
    (
        "rank 256 lora on all linear, 32b, 1xH100, 4k, flash attn, gradient checkpointing on",
        {"lora_rank": 256, "n_gpus": 1, "seq_len": 4096, "methods": ("lora",)},
    ),
    ("r = 16, alpha=32, 7B, T4 x2 kaggle", {"lora_rank": 16, "n_gpus": 2, "gpu": "T4"}),
    (
        "kaggle 2xT4, gemma-2b full finetune possible? max_len 512",
        {"n_gpus": 2, "gpu": "T4", "seq_len": 512, "methods": ("full",)},
    ),
    (
        "Llama-2-13b-chat-hf, 3 x RTX A5000, deepspeed zero-3 offload param+opt, 128GB RAM",
        {"n_gpus": 3, "framework": "deepspeed", "sharding": "zero3", "ram_gb": 128.0, "gpu": "RTX-A5000"},
    ),
    (
        "Kann ich Mistral 7B auf 2x RTX 3060 (12GB) mit QLoRA trainieren, Kontext 2048?",
        {"n_gpus": 2, "gpu": "RTX-3060-12GB", "seq_len": 2048, "methods": ("qlora",)},
    ),
    ("deadline 48h, 7b sft on 1B tokens: how many h100", {"deadline_hours": 48.0, "tokens": 1000000000.0}),
    (
        "must finish within 3 days. 13b, 10B tokens, a100s at $1.8/hr",
        {"deadline_hours": 72.0, "tokens": 10000000000.0, "price_usd": 1.8},
    ),
    (
        "my 2080ti 11GB, bert-large squad, fp16, seq 384, bs?",
        {"gpu": "RTX-2080-Ti", "seq_len": 384, "precision": "fp16"},
    ),
    ("throughput 1.2k tok/s on 8b lora, 4090, seq 2k, is this bad", {"seq_len": 2048, "methods": ("lora",)}),
    (
        "ppo w/ 7b policy and 7b critic, reward 7b, 8x A100 80, openrlhf, max len 2048",
        {"methods": ("ppo",), "n_gpus": 8, "framework": "openrlhf", "seq_len": 2048},
    ),
    ("lambda 8xH100 for a week, how many tokens of a 7b", {"n_gpus": 8, "hours": 168.0}),
    (
        "sft full, llama 3.3 70b, 2x8 H200, fsdp, ctx=16384",
        {"n_gpus": 16, "seq_len": 16384, "sharding": "fsdp", "methods": ("full",)},
    ),
    ("qlora 65b on 1x48GB as in the paper", {"n_gpus": 1, "gpu_memory_gb": 48.0, "methods": ("qlora",)}),
    (
        "liger kernel, 8b full, 4 x a100 40gb sxm, context 16k",
        {"n_gpus": 4, "seq_len": 16384, "gpu": "A100-SXM4-40GB", "methods": ("full",)},
    ),
    (
        "4GPU with 48GB memory each and batch size of 1, the 7B lora ds script still fails",
        {"n_gpus": 4, "gpu_memory_gb": 48.0, "micro_batch": 1, "methods": ("lora",)},
    ),
    ("i have a 49GB*4 machine, qwen-vl 9.6b lora OOMs", {"n_gpus": 4}),
    ("single node 80G*8 VRAM, 7b grpo, vllm util 0.7", {"n_gpus": 8, "methods": ("grpo",)}),
    ("with 4x8 A100 80 GB it took 32 hours, vit-l. for a 1b?", {"n_gpus": 32}),
    ("qwen2.5-14b dapo on 2 * 8 H100, verl", {"n_gpus": 16, "methods": ("grpo",), "framework": "verl"}),
    ("qwen3-14b grpo works on 1 * 8 A100 (80G)", {"n_gpus": 8, "methods": ("grpo",)}),
    ("lora on 2 x 40GB A100s, 7B, len 2048", {"n_gpus": 2, "gpu": "A100-SXM4-40GB", "seq_len": 2048}),
    ("pretrained on two 16-GPU nodes, how long for a 400M", {"n_gpus": 32}),
    ("96 DGX-A100 (8x40G) and 400B tokens, 130B from scratch: days?", {"n_gpus": 768, "tokens": 400000000000.0}),
    ("4xL4 (4 x 24 GB) instance with Llama3.2-1b grpo + vllm OOM", {"n_gpus": 4, "gpu": "L4", "methods": ("grpo",)}),
    ("managed 15 batch size with 200 max length on a 4090, 7b lora", {"micro_batch": 15, "seq_len": 200}),
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
    (
        "can I train the lora in 8bit so my 3090 does a 13B at 512 ctx",
        {"seq_len": 512, "methods": ("lora",), "gpu": "RTX-3090"},
    ),
    ("single A800-80GB enough to lora llava 7b?", {"n_gpus": 1, "gpu": "A800-SXM4-80GB", "methods": ("lora",)}),
    ("macbook pro m4 pro 48gb, qwen 27b only 10 tok/s, normal?", {"gpu": "Apple-M4-Pro 48GB"}),
    ("llama 3.3 70b on m3-max 64GB vs 2xRTX-3090", {"gpu": "Apple-M3-Max 64GB"}),
    ("M1 MBP 2020 with only 8GB, llama 1b qlora mlx", {"framework": "mlx", "methods": ("qlora",)}),
    ("mac studio m4 max 36gb 100k context qwen3 27b 4bit", {"seq_len": 100000}),
    ("2 machines each with 4 Titan X, fairseq, slower than 1 machine", {"n_gpus": 8}),
    ("8 v100 32G per node, 3 nodes, samples/s/gpu falls from 30 to 5", {"n_gpus": 24, "gpu": "V100-SXM2-32GB"}),
]


@pytest.mark.parametrize(("text", "expected"), QUESTIONS)
def test_all_that_a_question_states_is_read(text: str, expected: dict[str, Any]) -> None:
    assert_read(text, expected)


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
