"""Whole questions in other languages, or with signs of theirs, with all that they state.

Expected values are read off the sentences by hand. ``gpu`` is the first card, ``methods`` what is named in order.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.advisor.reading import assert_read

QUESTIONS: list[tuple[str, dict[str, Any]]] = [
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
    ("全量微调7b，用了3块V100，每个32G，显存不足", {"n_gpus": 3, "methods": ("full",)}),
    ("单张V100 32G 全参微调 qwen 1.8b 爆显存", {"n_gpus": 1, "gpu": "V100-SXM2-32GB", "methods": ("full",)}),
    ("24张V100(32GB) 训 13B", {"n_gpus": 24, "gpu": "V100-SXM2-32GB"}),
    (
        "max-length调到128以及batch size=1还是不行，chatglm2 6b 全量，4卡",
        {"seq_len": 128, "micro_batch": 1, "n_gpus": 4, "methods": ("full",)},
    ),
    (
        "per_device_train_batch_size改为1 --cutoff_len 为256依然爆显存，qwen 1.8b 全参",
        {"micro_batch": 1, "seq_len": 256, "methods": ("full",)},
    ),
    ("使用4台8*A800机器 全参 70b bs=1 ctx=4k", {"n_gpus": 32, "micro_batch": 1, "seq_len": 4096, "methods": ("full",)}),
    ("总共4张卡，单卡11G显存，visualglm 6b lora OOM", {"n_gpus": 4}),
    ("我的batch_size调成1了，15G/张卡，共2张，还是报OOM", {"micro_batch": 1, "n_gpus": 2}),
    ("我有六张卡每一张都是24G，qlora 33b 行不行", {"n_gpus": 6, "gpu_memory_gb": 24.0, "methods": ("qlora",)}),
    ("两张16g的显卡 7b lora", {"n_gpus": 2, "gpu_memory_gb": 16.0}),
    (
        "本地只有4张4090显卡，单卡显存24G，总显存96G，LoRA训练Llama 3.1 8b",
        {"n_gpus": 4, "gpu": "RTX-4090", "methods": ("lora",)},
    ),
    ("V100 32G，batch_size=2都OOM，chatglm lora", {"gpu": "V100-SXM2-32GB", "micro_batch": 2}),
    ("colab的T4 minicpm 2b dpo fp16 lora", {"gpu": "T4", "precision": "fp16", "methods": ("dpo", "lora")}),
    ("2080ti 22g 能跑lora吗 batch size 1 7b", {"gpu": "RTX-2080-Ti", "micro_batch": 1}),
    ("8张3090 deepspeed zero2 minicpm-v 8b lora 超显存, zero3 占17G", {"n_gpus": 8, "methods": ("lora",)}),
    ("runpod community 4090 0.34/hr × 2 for 20h, 7b lora", {"n_gpus": 2, "price_usd": 0.34, "hours": 20.0}),
    (
        "8*H20 96G 训 72b lora, 序列8k, bs 1",
        {"n_gpus": 8, "seq_len": 8192, "micro_batch": 1, "methods": ("lora",), "gpu": "H20"},
    ),
    ("想用2张4090跑72b的qlora，max_seq_len设512", {"n_gpus": 2, "seq_len": 512, "methods": ("qlora",)}),
    (
        "预训练1.5B，100B token，32张A800，大概几天",
        {"tokens": 100000000000.0, "n_gpus": 32, "methods": ("pretrain",), "gpu": "A800-SXM4-80GB"},
    ),
    ("3090单卡 int4 推理 32b 上下文16k", {"n_gpus": 1, "seq_len": 16384, "task": "inference", "precision": "int4"}),
    ("H100 一台8卡 每小时多少钱", {"n_gpus": 8, "gpu": "H100-SXM5"}),
    ("一千万token微调 13b，一张A100 要多久", {"n_gpus": 1}),
    ("2千条数据 7b lora 要多久 4090", {"samples": 2000}),
    ("10万条样本，平均500 token，14b lora 4卡A100", {"samples": 100000, "n_gpus": 4}),
    ("RTX3090×2とRTX4090×1、7BのQLoRAならどっち", {"methods": ("qlora",)}),
    (
        "70BをQLoRAで、A100 80GB 2枚、コンテキスト4kで回せる？",
        {"n_gpus": 2, "seq_len": 4096, "methods": ("qlora",), "gpu": "A100-SXM4-80GB"},
    ),
    (
        "A100 4枚でLlama-2-13Bをフルパラメータ、バッチ1、DeepSpeed ZeRO3",
        {"n_gpus": 4, "micro_batch": 1, "sharding": "zero3", "framework": "deepspeed", "methods": ("full",)},
    ),
    ("1.3Bを300億トークンで事前学習、8xA100で何日？", {"tokens": 30000000000.0, "n_gpus": 8, "methods": ("pretrain",)}),
    ("4090 두 장으로 13B QLoRA 되나요? 시퀀스 길이 2048", {"n_gpus": 2, "seq_len": 2048, "methods": ("qlora",)}),
    ("H100 8장으로 70B 풀 파인튜닝 가능?", {"n_gpus": 8, "methods": ("full",)}),
    (
        "Reicht eine 3090 (24 GB) für LoRA auf einem 7B bei 4096 Kontext?",
        {"n_gpus": 1, "gpu": "RTX-3090", "seq_len": 4096, "methods": ("lora",)},
    ),
    ("combien de H100 pour full finetune un 70B en séquences de 8k ?", {"seq_len": 8192, "methods": ("full",)}),
    ("j'ai 2 cartes de 24 Go, 13B en QLoRA ça passe ?", {"n_gpus": 2, "gpu_memory_gb": 24.0, "methods": ("qlora",)}),
    (
        "¿Puedo hacer fine-tuning completo de un 3B en dos A100 de 40GB?",
        {"n_gpus": 2, "gpu": "A100-SXM4-40GB", "methods": ("full",)},
    ),
    (
        "cuánto tarda un 7B LoRA con 50 mil ejemplos, 3 épocas, en una 4090",
        {"samples": 50000, "epochs": 3, "n_gpus": 1, "gpu": "RTX-4090", "methods": ("lora",)},
    ),
    ("p4de.24xlarge × 4, 30b full, efa", {"n_gpus": 32, "gpu": "A100-SXM4-80GB"}),
    ("DPO方式全量训练7B要多少资源，8卡A800, 400G内存报错", {"n_gpus": 8, "gpu": "A800-SXM4-80GB", "ram_gb": 400.0}),
    (
        "8GBのVRAMでflan-t5-baseのLoRA、バッチサイズ1でもOOM",
        {"gpu_memory_gb": 8.0, "micro_batch": 1, "methods": ("lora",)},
    ),
    ("RTX 3060 12GBでGemma 2BのLoRAできますか", {"gpu": "RTX-3060-12GB", "methods": ("lora",)}),
    (
        "8×A100-80G 全参 llama-70b ZeRO-3 + CPU offload",
        {"n_gpus": 8, "sharding": "zero3", "cpu_offload": "all", "methods": ("full",)},
    ),
    ("H100 SXM ×16, 2ノード、Qwen2.5-32Bのフル学習、系列長8192", {"n_gpus": 16, "seq_len": 8192, "methods": ("full",)}),
    (
        "用 4*H800 做 qwen3-8b 的 grpo，rollout 长度 8k，verl，micro batch 2",
        {"n_gpus": 4, "gpu": "H800-SXM5", "seq_len": 8192, "framework": "verl", "micro_batch": 2, "methods": ("grpo",)},
    ),
    (
        "一机八卡A100，deepspeed zero3，Baichuan2-13B 全量，max_length 4096，batch 2 能跑吗",
        {
            "n_gpus": 8,
            "sharding": "zero3",
            "seq_len": 4096,
            "micro_batch": 2,
            "methods": ("full",),
            "framework": "deepspeed",
        },
    ),
    (
        "三张3090能全参7b吗，lr不重要，bs=1，长度1024",
        {"n_gpus": 3, "seq_len": 1024, "micro_batch": 1, "methods": ("full",)},
    ),
]


@pytest.mark.parametrize(("text", "expected"), QUESTIONS)
def test_all_that_a_question_states_is_read(text: str, expected: dict[str, Any]) -> None:
    assert_read(text, expected)
