"""Whole questions with all that they state: the second half of those in English.

Expected values are read off the sentences by hand. ``gpu`` is the first card, ``methods`` what is named in order.
"""

from __future__ import annotations

from typing import Any

import pytest

from advisor.llm.planner.parse import parse

QUESTIONS: list[tuple[str, dict[str, Any]]] = [
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
    (
        "mpt-1b, composer --world_size 16, num_gpus_per_node: 8, 8x slower than one node, no infiniband",
        {"n_gpus": 16, "framework": "llm-foundry"},
    ),
    ("roberta-base 125M on 2 p3.16xlarge, sync 16GB per step?", {"n_gpus": 16, "gpu": "V100-SXM2-16GB"}),
    (
        "NVIDIA-SMI 535.183.01  Driver Version: 535.183.01  CUDA Version: 12.2, 3050",
        {"driver": "535.183.01", "cuda": "12.2"},
    ),
    ("driver 515.48.07 cuda 11.7 torch 2.1 cu121 p100", {"driver": "515.48.07", "gpu": "P100-SXM2", "torch": "2.1"}),
    ("on 418.39 with a p100, which torch", {"driver": "418.39", "gpu": "P100-SXM2"}),
    ("cuda 13 wheels need which driver? have r570", {"driver": "570"}),
    (
        "nvidia 580.65.06, torch nightly cu130, RTX 5070 Ti",
        {"driver": "580.65.06", "cuda": "13.0", "gpu": "RTX-5070-Ti"},
    ),
    ("rocm 6.3 on 7900xtx, flash attention?", {"rocm": "6.3", "gpu": "RX-7900-XTX"}),
    (
        "8xH100 SXM node ~$350k, 75% sustained utilization over 3 years, power 0.10/kWh: own or rent at 2.5",
        {"gpu": "H100-SXM5", "n_gpus": 8, "utilisation": 0.75, "years": 3, "power_price": 0.1},
    ),
    ("12-24 month lease on B200s or purchase? util ~60%", {"gpu": "B200-SXM", "utilisation": 0.6}),
    ("colo fees 200/kW/month, 10.2kW node, 8 H200, 3yr", {"n_gpus": 8, "gpu": "H200-SXM", "years": 3}),
    ("reserved 1yr p5 vs buying 8 h100, we use it half the time", {"gpu": "H100-SXM5"}),
    ("save_steps 500, 70b full on 64 h100, lustre 10GB/s", {"n_gpus": 64, "methods": ("full",)}),
    ("spot a100s get reclaimed every 4 hours, 13b full, 20 min saves", {"mtbf_hours": 4.0, "methods": ("full",)}),
    ("preempted 3 times a day on gcp a3-highgpu-8g", {"n_gpus": 8, "gpu": "H100-SXM5"}),
    ("price of 8xB200 per hour on nebius?", {"providers": ("nebius",), "n_gpus": 8, "gpu": "B200-SXM"}),
    ("cheapest l40s right now?", {"gpu": "L40S"}),
    ("azure nd96isr_h100_v5 hourly", {"gpu": "H100-SXM5", "providers": ("azure",)}),
    ("what does lambda charge for gh200", {"gpu": "GH200-96GB", "providers": ("lambda",)}),
    ("5090 or 2x 3090 for 32b qlora at 4k", {"seq_len": 4096, "methods": ("qlora",)}),
    (
        "is the rtx pro 6000 blackwell 96gb enough for 70b lora bf16?",
        {"gpu": "RTX-PRO-6000-Blackwell", "precision": "bf16", "methods": ("lora",)},
    ),
    (
        "4x A40 (48 GB), nvlink pairs, llama-2-70b qlora seq 4096",
        {"n_gpus": 4, "gpu": "A40", "seq_len": 4096, "methods": ("qlora",)},
    ),
    (
        "T4s (16GB) x8, 3b full ft fp16 zero3",
        {"n_gpus": 8, "gpu": "T4", "precision": "fp16", "sharding": "zero3", "methods": ("full",)},
    ),
    (
        "pls fit qwen2.5 0.5b full ft in 8 gigs, ctx 1k, bs 8",
        {"gpu_memory_gb": 8.0, "seq_len": 1024, "micro_batch": 8, "methods": ("full",)},
    ),
    (
        "34B, 8k, LoRA r64, 4 cards 24 gigs each",
        {"seq_len": 8192, "lora_rank": 64, "n_gpus": 4, "gpu_memory_gb": 24.0, "methods": ("lora",)},
    ),
    (
        "tokens/s for 8b lora on a single h100? seq 4096 mb 8",
        {"seq_len": 4096, "micro_batch": 8, "n_gpus": 1, "methods": ("lora",)},
    ),
    ("minitron 4b distill on 94B tokens, 32 nodes h100: days", {"tokens": 94000000000.0, "n_nodes": 32}),
    ("SmolLM 135M, 600B tokens, 64 H100, how long", {"tokens": 600000000000.0, "n_gpus": 64}),
    ("1.5T tok, 7B, 512 H800, 38% MFU", {"tokens": 1500000000000.0, "n_gpus": 512, "mfu": 0.38, "gpu": "H800-SXM5"}),
    ("we need it done by monday 9am. 8 a100, 3b, 2B tokens", {"tokens": 2000000000.0, "n_gpus": 8}),
    ("finish in under a day: 500k conversations ~1k tokens, 8b full", {"samples": 500000, "methods": ("full",)}),
    ("fp8 training on 4090?", {"precision": "fp8", "gpu": "RTX-4090"}),
    (
        "mxfp4 gpt-oss 120b on one h100 for inference, 128k ctx",
        {"precision": "mxfp4", "n_gpus": 1, "seq_len": 131072, "task": "inference"},
    ),
    ("awq 72b on a pair of 3090s, 8k", {"n_gpus": 2, "seq_len": 8192, "precision": "int4"}),
    ("Q4_K_M llama 70b + 32k context, 2x 24gb", {"seq_len": 32768, "n_gpus": 2, "gpu_memory_gb": 24.0}),
    ("exl2 4.0bpw 70b 48gb", {"gpu_memory_gb": 48.0}),
    ("ZeRO++ qwz on 16 a100, 30b", {"n_gpus": 16, "framework": "deepspeed"}),
    (
        "hsdp 4 nodes x 8 h100 torchtitan 70b, seq 8192 local bs 2",
        {"sharding": "hsdp", "n_gpus": 32, "framework": "torchtitan", "seq_len": 8192, "micro_batch": 2},
    ),
    (
        "hey <@U9Z> 2 A6000s + nvlink, phi-4 14b full ft w/ adamw 8bit? seq=2k",
        {"n_gpus": 2, "optimizer": "adamw_8bit", "seq_len": 2048, "methods": ("full",)},
    ),
    (">does a 13B fit\non 1 x L4 w/ qlora", {"n_gpus": 1, "gpu": "L4", "methods": ("qlora",)}),
    ("LORA 8B ON 3070 8GB??", {"gpu": "RTX-3070", "methods": ("lora",)}),
    (
        "i wanna do dpo (full) on mistral 7b, 4 a100 40gb, beta .1, max_prompt 512 max_len 1024",
        {"methods": ("dpo", "full"), "n_gpus": 4, "gpu": "A100-SXM4-40GB", "seq_len": 1024},
    ),
    ("reward model 7b, 8 a6000, bs 4", {"methods": ("reward",), "n_gpus": 8, "micro_batch": 4}),
    (
        "grpo w lora r32, num_generations 16, max_completion_length 2048, qwen3 4b, 1 a100",
        {"methods": ("grpo", "lora"), "lora_rank": 32, "n_gpus": 1, "seq_len": 2048},
    ),
    ("an eight billion parameter model, lora, one 4090", {"model": "8B", "n_gpus": 1}),
    ("seventy billion params on thirty-two h100s", {"model": "70B", "n_gpus": 32}),
    ("13 billion parameter model full finetune twelve a100s", {"model": "13B", "n_gpus": 12}),
    ("7 bil model qlora on 3060", {"model": "7B"}),
    ("a FOUR b model in 4bit on my 4090", {"model": "4B"}),
    ("seven B lora", {"model": "7B"}),
    ("lamma3 8b lora", {"model": "meta-llama/Meta-Llama-3-8B"}),
    ("llama 3 8 b lora 24gb", {"model": "meta-llama/Meta-Llama-3-8B"}),
    ("Qwen2.5-7B-Instruct-1M 256k ctx", {"seq_len": 262144}),
    ("llama-3-8b-instruct-262k qlora", {"methods": ("qlora",)}),
    ("deepseek v3 671b full ft 256 h800", {"model": "deepseek-ai/DeepSeek-V3", "n_gpus": 256}),
    ("R1 671B on 2x8 H200 vllm fp8", {"n_gpus": 16, "task": "inference", "precision": "fp8"}),
    ("qwen 3 30b a3b lora 1x a6000", {"n_gpus": 1, "methods": ("lora",)}),
    ("gemma-2-27b-it dpo qlora, h100", {"methods": ("dpo", "qlora")}),
    ("moe 8x7b w/ zero3 on sixteen A100-40", {"n_gpus": 16, "gpu": "A100-SXM4-40GB", "sharding": "zero3"}),
    ("phi 3.5 mini 3.8b 128k context lora a100", {"seq_len": 131072, "methods": ("lora",)}),
    ("opt-66b 8 x v100", {"n_gpus": 8}),
    (
        "gpt2-xl 1.5b on 2x 1080ti, fp16, bs 1, 1024",
        {"n_gpus": 2, "precision": "fp16", "micro_batch": 1, "seq_len": 1024},
    ),
    ("bloomz 7b1 lora 3090", {"methods": ("lora",)}),
    ("yi 34b 200k context full ft?", {"seq_len": 200000, "methods": ("full",)}),
    ("the 8B at 32k vs 64k on one h100, lora", {"methods": ("lora",), "n_gpus": 1}),
    ("seq len 4096 instead of 2048, 13b full on 8xA100 40GB", {"n_gpus": 8, "methods": ("full",)}),
    ("2x batch (4 -> 8), 7b lora", {"methods": ("lora",)}),
    (
        "what if i use adafactor? 3b full, 24 gigs, 1k ctx",
        {"optimizer": "adafactor", "methods": ("full",), "gpu_memory_gb": 24.0, "seq_len": 1024},
    ),
    ("lion optimizer 7b full 2 h100", {"optimizer": "lion", "n_gpus": 2}),
    ("paged_adamw_8bit, 7b full, 4090, gc on", {"optimizer": "paged_adamw_8bit", "methods": ("full",)}),
    (
        "no grad ckpt, 7b lora, A100-40, 2048",
        {"seq_len": 2048, "methods": ("lora",), "activation_checkpointing": "none"},
    ),
    ("flash attn 2, 8b full fsdp 8 a100, 8k", {"attention": "flash", "sharding": "fsdp", "seq_len": 8192}),
    ("train 1b for 100B tokens w/ muon on 8 h100", {"optimizer": "muon", "tokens": 100000000000.0, "n_gpus": 8}),
    ("train 3B params on 60 billion tokens, startup, ballpark", {"tokens": 60000000000.0, "model": "3B"}),
    ("chinchilla optimal 1.4b on 8 a100", {"methods": ("pretrain",), "n_gpus": 8}),
    (
        "Wie lange dauert das Vortrainieren von 1B auf 20 Mrd Token mit acht H100?",
        {"tokens": 20000000000.0, "n_gpus": 8, "methods": ("pretrain",)},
    ),
    ("Was kostet ein 8er H100 Server pro Stunde?", {"n_gpus": 8, "gpu": "H100-SXM5"}),
    ("quanto custa treinar um 7B com LoRA em 2 A100 por 10 horas?", {"n_gpus": 2, "hours": 10.0, "methods": ("lora",)}),
    (
        "basta una 4090 per un 13B in qlora con contesto 2048?",
        {"gpu": "RTX-4090", "methods": ("qlora",), "seq_len": 2048},
    ),
    ("70B, 2-bit quant + lora, 24G", {"methods": ("lora",), "gpu_memory_gb": 24.0}),
    ("8x 5090 pcie only, 32b full zero3?", {"n_gpus": 8, "gpu": "RTX-5090", "sharding": "zero3", "methods": ("full",)}),
    ("v5e-16 tpu, gemma 7b full maxtext", {"n_gpus": 16, "framework": "maxtext", "methods": ("full",)}),
    ("trn1.32xlarge llama 8b", {"n_gpus": 16}),
    ("gaudi2 x8 llama 70b lora", {"n_gpus": 8, "gpu": "Gaudi2", "methods": ("lora",)}),
    ("L4 on gcp g2-standard-48", {"n_gpus": 4, "gpu": "L4", "providers": ("gcp",)}),
    ("aws g6.12xlarge price spot", {"n_gpus": 4, "gpu": "L4", "billing": "spot"}),
]


@pytest.mark.parametrize(("text", "expected"), QUESTIONS)
def test_all_that_a_question_states_is_read(text: str, expected: dict[str, Any]) -> None:
    slots = parse(text)
    read = {
        **slots.values,
        "gpu": slots.gpus[0].argument if slots.gpus else None,
        "model": slots.model.argument if slots.model else None,
        "methods": slots.methods,
        "providers": slots.providers,
    }
    for name, value in expected.items():
        assert read.get(name) == (pytest.approx(value) if isinstance(value, float) else value), name
