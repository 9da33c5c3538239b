"""Whole questions with all that they state: the others in English.

Expected values are read off the sentences by hand. ``gpu`` is the first card, ``methods`` what is named in order.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.advisor.reading import assert_read

QUESTIONS: list[tuple[str, dict[str, Any]]] = [
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
    ("llama-2-70b on 16 * A10( 16 * 23G) in one machine, possible?", {"n_gpus": 16, "gpu": "A10"}),
    (
        "qwen2-72b qlora+dpo OOMs on 4 A100 with 80G each",
        {"n_gpus": 4, "methods": ("qlora", "dpo"), "gpu": "A100-SXM4-80GB"},
    ),
    (
        "2x24GB llama 3.1 8b qlora fsdp config, 512 sequence length still ooms",
        {"n_gpus": 2, "seq_len": 512, "sharding": "fsdp", "methods": ("qlora",), "gpu_memory_gb": 24.0},
    ),
    ("4x3090 24GB, 70B, FSDP or deepspeed zero3", {"n_gpus": 4, "gpu": "RTX-3090"}),
    (
        "fsdp: [full_shard, auto_wrap], 2*RTX3090 (24G per card), 70b llama2 qlora, sequence_len 512, "
        "micro_batch_size 1",
        {"n_gpus": 2, "gpu": "RTX-3090", "seq_len": 512, "micro_batch": 1, "sharding": "fsdp", "methods": ("qlora",)},
    ),
    (
        "stage: dpo, finetuning_type: lora, cutoff_len: 1024, per_device_train_batch_size: 4, llama3 8b on an A10 24G",
        {"methods": ("dpo", "lora"), "seq_len": 1024, "micro_batch": 4, "gpu": "A10", "framework": "llama-factory"},
    ),
    ("4 A800 * batch size = 1 * grad acc 4, dpo", {"n_gpus": 4, "micro_batch": 1, "methods": ("dpo",)}),
    ("6B with 4*A40 (49G) and 100G CPU memory", {"n_gpus": 4, "gpu": "A40", "ram_gb": 100.0}),
    ("train_ppo.sh with a 7B on 8 H100 80 GB GPUs OOM", {"n_gpus": 8, "methods": ("ppo",), "gpu": "H100-SXM5"}),
    (
        "DPO of llama2-7b, OOM on an A100 40GB even with batch_size=1",
        {"methods": ("dpo",), "micro_batch": 1, "gpu": "A100-SXM4-40GB"},
    ),
    ("minimum gpus for 70b ppo with all memory savings on (openrlhf)", {"methods": ("ppo",), "framework": "openrlhf"}),
    (
        "how long to pre-train gpt2 with python train.py, I have an RTX 4090, openwebtext",
        {"gpu": "RTX-4090", "methods": ("pretrain",)},
    ),
    (
        "nanogpt small 125M on openwebtext with 8 x A100 gives 560ms per iteration, reasonable?",
        {"n_gpus": 8, "framework": "nanogpt"},
    ),
    (
        "600M params, 250k vocab, 64(8*8) 32GB V100, global_batch_size 256, seq_length 2048, 4.3s per iteration",
        {"n_gpus": 64, "global_batch": 256, "seq_len": 2048, "gpu": "V100-SXM2-32GB"},
    ),
    (
        "batch_size = 12 block_size = 1024 gradient_accumulation_steps = 5 max_iters = 600000 on one 4090",
        {"micro_batch": 12, "seq_len": 1024, "grad_accum": 5, "n_gpus": 1, "steps": 600000},
    ),
    ("23.9B tokens, gpt-2 medium, 4 GPUs (3090)", {"tokens": 23900000000.0, "n_gpus": 4}),
    (
        "max_model_len=2048 and gpu_memory_utilization=0.25, qwen2.5-vl 7b vllm takes 70GB why",
        {"seq_len": 2048, "framework": "vllm", "task": "inference"},
    ),
    ("kimi-linear 48b awq on 2x3090, --max_model_len 120000 --tensor_parallel 2", {"n_gpus": 2, "seq_len": 120000}),
    (
        "GPU : H100 80G *2, Llama 3.1 70B, MAX_SEQUENCE_LENGTH 20000, MAX_BATCH_SIZE 4",
        {"n_gpus": 2, "seq_len": 20000, "micro_batch": 4},
    ),
    (
        "serve qwen3-coder-30b fp8 over a 5070 ti 16gb and a 5090 32gb, pipeline parallel 2",
        {"precision": "fp8", "task": "inference"},
    ),
    ("how many 8xH100 nodes for llama 405b at 120K context", {"seq_len": 120000}),
    (
        "deepseek-coder 6.7b on 2*T4 (2*16GB) float16 vllm",
        {"n_gpus": 2, "gpu": "T4", "precision": "fp16", "task": "inference"},
    ),
    ("qwen2.5-vl-72b oom in 4 A100 40G, vllm 0.8.3", {"n_gpus": 4, "gpu": "A100-SXM4-40GB"}),
    ("flan-t5-base lora on 8GB VRAM OOMs, batch 1", {"gpu_memory_gb": 8.0, "micro_batch": 1, "methods": ("lora",)}),
    (
        "what batch size can i get away with on 24gb for 7b qlora at 2k",
        {"gpu_memory_gb": 24.0, "seq_len": 2048, "methods": ("qlora",)},
    ),
    ("is it worth going from 4x to 8x A100 for a 13b lora, 50k samples", {"methods": ("lora",), "samples": 50000}),
    (
        "we'd like to go up to 64k context on our 8B, currently 8 H100s with FSDP at 16k",
        {"n_gpus": 8, "sharding": "fsdp"},
    ),
    (
        "got a quote: 8xB300 for 550k. vs nebius at 5.5/gpu/h. 4 yrs",
        {"n_gpus": 8, "gpu": "B300-SXM", "years": 4, "price_usd": 5.5},
    ),
    ("half our a100s sit idle, utilization maybe 35-40%", {"gpu": "A100-SXM4-80GB"}),
    ("electricity is 28 ct/kWh here, 4x 5090 24/7", {"n_gpus": 4, "gpu": "RTX-5090", "power_price": 0.28}),
    (
        "1 epoch of 1M alpaca-style rows on a 3b, 2x l40s, hours?",
        {"epochs": 1, "samples": 1000000, "n_gpus": 2, "gpu": "L40S"},
    ),
    (
        "lr 2e-4, r 16, alpha 32, dropout .05, 3 eps, 12k rows, llama 8b, colab A100 40",
        {"lora_rank": 16, "epochs": 3, "samples": 12000, "gpu": "A100-SXM4-40GB"},
    ),
    (
        "ssh'd into the node: 8x NVIDIA H200 141GB. can we full-FT a 70B there, seq 8k, mbs1?",
        {"n_gpus": 8, "gpu": "H200-SXM", "seq_len": 8192, "micro_batch": 1, "methods": ("full",)},
    ),
    (
        "512 A100s, 175B, 300B tokens, 140 tflops per gpu",
        {"n_gpus": 512, "tokens": 300000000000.0, "gpu": "A100-SXM4-80GB"},
    ),
    ("ctx8k bs1 r8 7b 3090", {"seq_len": 8192, "micro_batch": 1, "lora_rank": 8, "gpu": "RTX-3090"}),
    (
        "seq=4096,mbs=2,ga=8,zero2,13b,8*a100-40g",
        {"seq_len": 4096, "micro_batch": 2, "grad_accum": 8, "sharding": "zero2", "n_gpus": 8, "gpu": "A100-SXM4-40GB"},
    ),
    ("7B/4090/lora/2048/bs4?", {"gpu": "RTX-4090", "methods": ("lora",), "micro_batch": 4, "seq_len": 2048}),
    ("H100x4 70B QLoRA seq8192", {"n_gpus": 4, "methods": ("qlora",), "seq_len": 8192}),
    ("A100x8x2 65b full bf16", {"n_gpus": 16, "methods": ("full",), "precision": "bf16"}),
    ("i only have 1 (one) 3090. mistral 7b full?", {"n_gpus": 1, "methods": ("full",)}),
    ("a node of 8 and another of 4 a100s, ddp", {"sharding": "ddp"}),
    ("train on 2, 4 or 8 a100? 13b lora", {"methods": ("lora",)}),
    (
        "3 x 80GB cards enough for 70b bf16 inference?",
        {"n_gpus": 3, "gpu_memory_gb": 80.0, "task": "inference", "precision": "bf16"},
    ),
    ("rlhf on 13b w/ deepspeed-chat, 8x A100-40", {"methods": ("ppo",), "framework": "deepspeed", "n_gpus": 8}),
    ("peft + bitsandbytes, falcon 7b, kaggle P100 16gb", {"gpu": "P100-PCIe"}),
    ("training a 350M bert from scratch on 16 TPU v3 cores", {"methods": ("pretrain",)}),
    ("tpu v4-32 for 7b pretraining", {"gpu": "TPU-v4", "n_gpus": 16, "methods": ("pretrain",)}),
    ("spot h100 on gcp dies every 6h, ckpt takes 4 min, interval?", {"mtbf_hours": 6.0, "providers": ("gcp",)}),
    (
        "our cluster: 32 nodes, 8 H100 each, NDR400. 405B pretrain layout?",
        {"n_gpus": 256, "n_nodes": 32, "methods": ("pretrain",)},
    ),
    ("2x 8-gpu A100 boxes with 25GbE between them, 7b ddp", {"n_gpus": 16, "sharding": "ddp"}),
    ("10gbe between 4 workstations each w/ one 4090", {"n_gpus": 4}),
    ("kaggle 2-T4, 16G for each, qwen image bnb 4bit oom", {"n_gpus": 2, "gpu": "T4"}),
    (
        "colab T4, llama-3-8b-bnb-4bit, data with max context length of 18000, batch size per device = "
        "2, grad acc steps = 4",
        {"gpu": "T4", "seq_len": 18000, "micro_batch": 2, "grad_accum": 4},
    ),
    (
        "A100, 4bit qwen2.5-vl 7b, r = 32, batch size = 2, unsloth FastVisionModel OOM",
        {"lora_rank": 32, "micro_batch": 2, "framework": "unsloth"},
    ),
    (
        "grpo of qwen3 4b on a 4090, context lowered from 5,000 to 2,000, still oom w/ load_in_4bit",
        {"methods": ("grpo",)},
    ),
    ("gemma 4 31B grpo on 32 GB VRAM at 1-2k seq", {"methods": ("grpo",), "gpu_memory_gb": 32.0}),
    (
        "4x H100 GPUs with 94GB memory each, torchtune fp8, llama3-8b, batch size of 16, 1 epoch alpaca",
        {"n_gpus": 4, "framework": "torchtune", "micro_batch": 16, "epochs": 1, "precision": "fp8"},
    ),
    ("llama2 13B full with 4 A100s(40GB), i.e. 4*40GB", {"n_gpus": 4, "gpu": "A100-SXM4-40GB", "methods": ("full",)}),
    (
        "8B with sequence length = 8192 on 64 nodes, MBS 1, TP 1: 8290 tokens/sec/gpu",
        {"seq_len": 8192, "micro_batch": 1, "n_nodes": 64},
    ),
    ("8-card 4090 setup, 20GB each in use, 1b model", {"n_gpus": 8, "gpu": "RTX-4090"}),
    (
        "13B finetune, no lora, i plan to rent 8 A100 and train with 2048 tokens",
        {"n_gpus": 8, "seq_len": 2048, "methods": ("full",)},
    ),
    (
        "Llama 3 8B with full 8K context using LoRA on just 1 A100 80GB, torchtune",
        {"seq_len": 8192, "methods": ("lora",), "n_gpus": 1, "framework": "torchtune"},
    ),
    (
        "tune run lora_finetune_single_device llama3 8b dataset.max_seq_len=8192",
        {"framework": "torchtune", "seq_len": 8192, "methods": ("lora",)},
    ),
    (
        "tune run --nproc_per_node 8 full_finetune_distributed 8B, batch_size=64 OOM on g5.8xlarge",
        {"methods": ("full",), "micro_batch": 64},
    ),
    ("$14 balance buys 3.7h on ml.g6e.4xlarge, 34B needs 10-48h", {"gpu": "L40S"}),
    (
        "aws spot 2 minute warning enough for a 70b zero3 save on 64 a100?",
        {"n_gpus": 64, "sharding": "zero3", "gpu": "A100-SXM4-80GB"},
    ),
    ("checkpoint every 1000 steps, step takes 12 s, spot dies every 5 hours, 13b", {"mtbf_hours": 5.0}),
    ("ml.p4d.24xlarge sagemaker, falcon 40b lora", {"n_gpus": 8, "gpu": "A100-SXM4-40GB", "methods": ("lora",)}),
    ("does flash attention work on T4? (sm75), qwen 7b", {"gpu": "T4", "attention": "flash"}),
    ("i trained mistral 7b on slim orca, a100, 842 minutes w/ unsloth. 4090?", {"framework": "unsloth"}),
    ("min vram for llama-3 70b in unsloth 4bit qlora", {"framework": "unsloth", "methods": ("qlora",)}),
    ("what about a 3-node setup, 8x L40S per node, 25 GbE, 34b lora", {"n_gpus": 24, "methods": ("lora",)}),
    ("pair of A100 PCIe 40GB w/o nvlink - TP2 or FSDP for 13b?", {"n_gpus": 2, "gpu": "A100-PCIe-40GB"}),
    (
        "megatron tp4pp2 on 16 h100 for 30b, mbs2 gbs256 seq4096",
        {"tp": 4, "pp": 2, "n_gpus": 16, "micro_batch": 2, "global_batch": 256, "seq_len": 4096},
    ),
    ("TP=2,PP=1,DP=4 8xA100 7b", {"tp": 2, "n_gpus": 8}),
    ("is zero-1 plus bf16 ok for 1.3b on 8 3090s", {"sharding": "zero1", "precision": "bf16", "n_gpus": 8}),
    ("stage-2 w/ cpu offload, 6b, 1x3090, 128gb ram", {"sharding": "zero2", "n_gpus": 1, "ram_gb": 128.0}),
    (
        "fsdp full shard + activation ckpt for a 30b on 8 A100-40GB at 4k: fits?",
        {"sharding": "fsdp", "n_gpus": 8, "seq_len": 4096, "gpu": "A100-SXM4-40GB"},
    ),
    (
        "8 x RTX 6000 Ada, LLaVA 13b full, ds zero3",
        {"n_gpus": 8, "gpu": "RTX-6000-Ada", "sharding": "zero3", "methods": ("full",)},
    ),
    ("Is 2 x 5090 (32GB) > 1 x A6000 Pro for 32b lora?", {"methods": ("lora",)}),
    ("gh200 96gb single node lora 70b int8", {"gpu": "GH200-96GB", "precision": "int8"}),
    (
        "how fast is one b200 for 8b pretrain in fp8, tok/s",
        {"n_gpus": 1, "gpu": "B200-SXM", "precision": "fp8", "methods": ("pretrain",)},
    ),
    (
        "3 nodes * 8 * A100 40G, GLM-4 9B full, seqlen=8192",
        {"n_gpus": 24, "gpu": "A100-SXM4-40GB", "seq_len": 8192, "methods": ("full",)},
    ),
    (
        "llama-3-70b Q-LoRA 2 GPU 48 Go chacune, contexte 4096",
        {"n_gpus": 2, "gpu_memory_gb": 48.0, "seq_len": 4096, "methods": ("qlora",)},
    ),
    ("zwei Knoten mit je vier H100, 30B LoRA", {"n_gpus": 8, "gpu": "H100-SXM5", "methods": ("lora",)}),
    (
        "necesito 3 nodos con 4 A100 cada uno para 34b full?",
        {"n_gpus": 12, "gpu": "A100-SXM4-80GB", "methods": ("full",)},
    ),
    (
        "hi, i'd like to sft qwen 2.5 14B w/ trl's SFTTrainer, bf16, 2 x H100 NVL, packing=True "
        "max_length=8192 bs=2 ga=16",
        {
            "framework": "trl",
            "n_gpus": 2,
            "gpu": "H100-NVL",
            "seq_len": 8192,
            "micro_batch": 2,
            "grad_accum": 16,
            "precision": "bf16",
        },
    ),
]


@pytest.mark.parametrize(("text", "expected"), QUESTIONS)
def test_all_that_a_question_states_is_read(text: str, expected: dict[str, Any]) -> None:
    assert_read(text, expected)
