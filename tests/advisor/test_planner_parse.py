"""What people write, read into slots. Expected values are read off the sentences by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.llm.planner.clean import MAX_PROSE, clean, redact
from advisor.llm.planner.parse import parse


@pytest.mark.parametrize(
    ("text", "card", "count"),
    [
        ("70b qlora on 2x3090", "RTX-3090", 2),
        ("8xH100 for a 7B", "H100-SXM5", 8),
        ("does it fit on 8 x A100 80GB?", "A100-SXM4-80GB", 8),
        ("4xA100-40, seq 4k", "A100-SXM4-40GB", 4),
        ("four 4090s and a 13B", "RTX-4090", 4),
        ("一张A100 80G 够吗", "A100-SXM4-80GB", 1),
        ("两张4090能微调吗", "RTX-4090", 2),
        ("A100 80GB 1枚で足りますか", "A100-SXM4-80GB", 1),
        ("zwei RTX 4090 für ein 7B Modell", "RTX-4090", 2),
        ("j'ai deux 3090 sans nvlink", "RTX-3090", 2),
        ("a single 4090", "RTX-4090", 1),
        ("2 nodes of 8xH100 training a 7B", "H100-SXM5", 16),
        ("2x used 3090 or nothing", "RTX-3090", 2),
        ("h100 pcie x 4 ok?", "H100-PCIe", 4),
        ("64 h100 for a 70b", "H100-SXM5", 64),
        ("8 GPUs, H100s I think", "H100-SXM5", 8),
    ],
)
def test_cards_and_counts(text: str, card: str, count: int) -> None:
    slots = parse(text)
    assert slots.gpus[0].argument == card
    assert slots.get("n_gpus") == count


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("llama 3.1 8b lora", "meta-llama/Llama-3.1-8B"),
        ("Meta-Llama-3-70B", "meta-llama/Meta-Llama-3-70B"),
        ("qwen2.5-14b lora r16", "Qwen/Qwen2.5-14B"),
        ("qwn 2.5 32 b qlroa", "Qwen/Qwen2.5-32B"),
        ("mixtral 8x22 4bit", "mistralai/Mixtral-8x22B-v0.1"),
        ("whisper large v2", "openai/whisper-large-v2"),
        ("a 1.3B on 26B tokens", "1.3B"),
        ("pretrain a 124m", "124M"),
        ("un modèle de 7 milliards de paramètres", "7B"),
        ("700亿参数的模型", "70B"),
        ("ein Modell mit 7 Milliarden Parametern", "7B"),
        ("a 67b-a2b moe on 10T tokens", "67B-A2B"),
        ("pretrain 200B A20B", "200B-A20B"),
        ("qwen3 30b-a3b full ft", "Qwen/Qwen3-30B-A3B"),
    ],
)
def test_models_and_sizes(text: str, model: str) -> None:
    mention = parse(text).model
    assert mention is not None
    assert mention.argument == model


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8k seq, bs 2", {"seq_len": 8192, "micro_batch": 2}),
        ("ctx 120k", {"seq_len": 120_000}),
        ("at 32k ctx?", {"seq_len": 32_768}),
        ("max_seq_length: 17500\nr: 256", {"seq_len": 17_500, "lora_rank": 256}),
        ("per_device_train_batch_size=4 gradient_accumulation_steps=8", {"micro_batch": 4, "grad_accum": 8}),
        ("20bn tokens", {"tokens": 20e9}),
        ("on 1.5T tokens", {"tokens": 1.5e12}),
        ("20 Mrd. Tokens", {"tokens": 20e9}),
        ("41k rows, 3 epochs", {"samples": 41_000, "epochs": 3}),
        ("1,000,000 samples", {"samples": 1_000_000}),
        ("budget $2.5k", {"budget_usd": 2500.0}),
        ("600 eur", {"budget_other": 600.0, "budget_currency": "EUR"}),
        ("at $2.2/h", {"price_usd": 2.2}),
        ("0.38/kWh", {"power_price": 0.38}),
        ("40% MFU", {"mfu": 0.4}),
        ("say 30% util", {"utilisation": 0.3}),
        ("deadline is friday 5pm, its weds noon", {"deadline_hours": 53.0}),
        ("for 2 weeks", {"hours": 336.0}),
        ("6 A40 for 1h40", {"hours": 1 + 40 / 60, "n_gpus": 6}),
        ("zero3 offload", {"sharding": "zero3", "cpu_offload": "all"}),
        ("tp 8 pp=2", {"tp": 8, "pp": 2}),
        ("128gb ram", {"ram_gb": 128.0}),
        ("on a 16gb card", {"gpu_memory_gb": 16.0}),
        ("driver 535, cuda 12.2 -> 12.8", {"driver": "535", "cuda": "12.8", "cuda_from": "12.2"}),
        ("torch 2.4.1+cu121", {"torch": "2.4.1", "cuda": "12.1"}),
        ("roce 200g", {"inter_link": "RoCE-200GbE"}),
        ("paged adamw 8bit", {"optimizer": "paged_adamw_8bit"}),
    ],
)
def test_numbers_with_their_units(text: str, expected: dict[str, Any]) -> None:
    values = parse(text).values
    assert {name: values.get(name) for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "methods"),
    [
        ("full finetune", ("full",)),
        ("no peft no quant", ("full",)),
        ("4bit + lora", ("qlora",)),
        ("lora vs qlora", ("lora", "qlora")),
        ("全参微调", ("full",)),
        ("フルファインチューニング", ("full",)),
        ("train from scratch", ("pretrain",)),
        ("saving FULL_STATE_DICT takes ages", ()),
        ("7b DPO LoRA", ("dpo", "lora")),
    ],
)
def test_methods(text: str, methods: tuple[str, ...]) -> None:
    assert parse(text).methods == methods


@pytest.mark.parametrize(
    "text",
    [
        "4090 tokens per sample",
        "we paid $4090 for it",
        "step 3090 of training",
        "2080 rows in the csv",
    ],
)
def test_bare_numbers_are_not_cards(text: str) -> None:
    assert not parse(text).gpus


@pytest.mark.parametrize(
    "secret",
    [
        "hf_abcdefghijklmnopqrstuv",
        "sk-proj-abcdef0123456789abcdef",
        "ghp_0123456789abcdefABCDEF0123456789abcd",
        "AKIAIOSFODNN7EXAMPLE",
        "xoxb-123456789012-abcdefghijkl",
        "password=hunter2hunter2",
    ],
)
def test_secrets_are_taken_out_before_anything_is_read(secret: str) -> None:
    cleaned = clean(f"my config token is {secret} and the model is 7b, vram?")
    assert cleaned.secrets >= 1
    assert secret not in cleaned.prose + cleaned.log
    assert secret.rpartition("=")[2] not in cleaned.prose + cleaned.log


def test_slack_markup_is_read_through() -> None:
    slots = parse("<@U04ADV1SOR> :eyes: can you check <https://x.example/wiki|this plan>? 70b LoRA r=64 on 2x A100 80")
    assert slots.links == 1
    assert slots.get("lora_rank") == 64
    assert slots.get("n_gpus") == 2
    assert "U04ADV1SOR" not in slots.text


def test_a_traceback_is_kept_apart_from_the_words() -> None:
    slots = parse(
        "Traceback (most recent call last):\n"
        '  File "/home/user/train.py", line 88, in <module>\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.83 GiB. GPU 0 has 23.52 GiB.\n"
        "llama 3 8b qlora, 8k seq, bs 2. help"
    )
    assert "Tried to allocate" in slots.log
    assert "Traceback" not in slots.text
    assert slots.get("seq_len") == 8192
    assert slots.methods == ("qlora",)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=400))
def test_no_text_breaks_the_reader(text: str) -> None:
    slots = parse(text)
    assert isinstance(slots.values, dict)


PIECES = [
    *["8x", "H100", "70b", "qlora", "$", "€", "1e9", "tokens", "/h", "4090", "0", "-", "NaN", "٣", "½", "億", "x8"],
    *["\n", "```", "<@U1>", "gb", "k", "seq", "99999999999999999999", "::", "[[", "]]", "{", "}", "%s", "\\", "|", ">"],
]


def test_an_endless_exponent_is_a_number() -> None:
    for text in (
        "seq 1e94090k",
        "train on 1e99999 tokens",
        "rank 1e400",
        "$1e500 budget",
        "1e400 h100",
        "1e999b model",
    ):
        parse(text)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_no_pile_of_fragments_breaks_the_reader(parts: list[str]) -> None:
    parse(" ".join(parts))
    parse("".join(parts))


@pytest.mark.parametrize(
    "junk", ["a" * 100_000, "\x00\xff" * 50_000, "7b " * 30_000, "(" * 50_000, "1," * 50_000, "x8" * 50_000]
)
def test_long_and_binary_junk_is_read_quickly(junk: str) -> None:
    slots = parse(junk)
    assert len(slots.text) <= MAX_PROSE + 1


def test_redaction_counts_what_it_takes() -> None:
    assert redact("no secrets here: 8xH100, token budget 20B tokens")[1] == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("300 a100 hours left", {"gpu_hours": 300.0, "n_gpus": None}),
        ("8h a day for 6 months", {"utilisation": 1 / 3, "hours": 4380.0}),
        ("1,5 milliard de paramètres sur 30 milliards de tokens", {"tokens": 30e9}),
        ("租一台8卡A100一个月多少钱", {"hours": 730.0, "n_gpus": 8}),
        ("H100 8枚で70Bを1000億トークン学習", {"tokens": 1e11, "n_gpus": 8}),
        ("512 h100 for a 7b", {"n_gpus": 512, "seq_len": None}),
        ("what about 8 of each", {"n_gpus": 8}),
        ("-5 GPUs for a 7B", {"n_gpus": -5}),
        ("seq len -100", {"seq_len": -100}),
        ("fsdp 4x80, 70b", {"n_gpus": 4, "gpu_memory_gb": 80.0}),
        ("p5.48xlarge please", {"instance": "p5.48xlarge", "n_gpus": 8}),
        ("my batch size is NaN", {"micro_batch": "nan"}),
        ("70b = 600 GB they say", {"quoted_gb": 600.0, "gpu_memory_gb": None}),
    ],
)
def test_more_numbers_with_their_units(text: str, expected: dict[str, Any]) -> None:
    values = parse(text).values
    for name, value in expected.items():
        assert values.get(name) == (pytest.approx(value) if isinstance(value, float) else value), name


@pytest.mark.parametrize(
    ("text", "kind", "argument"),
    [
        ("vram for llama 9 500b", "unknown", "500B"),
        ("foobarium-7b lora", "unknown", "7B"),
        ("GPT-5.7 finetune", "closed", None),
        ("claude opus 4 lora", "closed", None),
        ("resnet50 on imagenet", "unmodelled", None),
        ("sdxl lora", "unmodelled", None),
        ("video lora 14B cosmos", "unmodelled", None),
        ("SomeOrg/Foo-7B-Instruct lora", "hub", "SomeOrg/Foo-7B-Instruct"),
    ],
)
def test_names_that_are_not_held_are_told_apart(text: str, kind: str, argument: str | None) -> None:
    mention = parse(text).model
    assert mention is not None
    assert (mention.kind, mention.argument) == (kind, argument)


@pytest.mark.parametrize(
    "text", ["is llama.cpp faster", "llama-factory fsdp config", "all my models are slow", "the spark job fails", "phi"]
)
def test_tools_and_ordinary_words_are_no_models(text: str) -> None:
    assert parse(text).model is None
    assert not parse(text).gpus


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("what GPU for 70B QLoRA?", "en"),
        ("两张4090能微调吗", "zh"),
        ("A100で足りますか", "ja"),
        ("4090으로 가능한가요", "ko"),
        ("welche GPU brauche ich für ein 7B Modell", "de"),
        ("quel GPU pour un modèle de 7B", "fr"),
        ("qué GPU necesito para un 7B", "es"),
        ("qlora 70b 2x3090", "en"),
    ],
)
def test_the_language_of_a_message(text: str, language: str) -> None:
    assert clean(text).language == language


@pytest.mark.parametrize(
    ("text", "nodes", "gpus"),
    [
        ("2 nodes of 8xH100", 2, 16),
        ("2x8 A100", 2, 16),
        ("4 nodes (8xA100 each)", 4, 32),
        ("2 nodes x 8, step 900", 2, 16),
        ("half throughput on 2 of 10 nodes azure h100", 10, None),
        ("3 nodes with 4 gpus", 3, 12),
    ],
)
def test_nodes_and_what_is_in_them(text: str, nodes: int, gpus: int | None) -> None:
    slots = parse(text)
    assert slots.get("n_nodes") == nodes
    assert slots.get("n_gpus") == gpus


@pytest.mark.parametrize(
    ("text", "name", "size"),
    [
        ("how much vram does Mistral Huge 300B need", "mistral huge 300b", "300B"),
        ("deepseek v9 lora", "deepseek v9", None),
        ("kimi k9 lora", "kimi k9", None),
        ("phi-7 full ft", "phi-7", None),
        ("bert-gigantic finetune", "bert-gigantic", None),
    ],
)
def test_a_version_that_the_tables_lack_is_unknown(text: str, name: str, size: str | None) -> None:
    (model,) = parse(text).models
    assert (model.text, model.kind, model.size) == (name, "unknown", size)


@pytest.mark.parametrize(
    ("text", "models"),
    [
        ("llama r16 lora 8b", ["meta-llama/Llama-3.1-8B"]),
        ("gemma full fine tuning 27b on 8xh100", ["google/gemma-3-27b-pt"]),
        ("mistral vs 70b", ["mistralai/Mistral-7B-v0.3", "70B"]),
        ("deepseek-v2 lora", ["deepseek-ai/DeepSeek-V2"]),
        ("llama 2 gpus qlora", ["meta-llama/Llama-2-7b-hf"]),
    ],
)
def test_a_family_takes_the_size_in_its_clause(text: str, models: list[str]) -> None:
    assert [model.argument for model in parse(text).models] == models


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("vllm llama 8b, 64 concurrent users", {"micro_batch": 64, "task": "inference"}),
        ("serve llama 70b to 100 users, which gpu", {"micro_batch": 100, "task": "inference"}),
        ("8 H100 across 2 nodes, 70b full", {"n_gpus": 8, "n_nodes": 2, "gpus_per_node": 4}),
        ("2 nodes, 8xH100, 70b", {"n_gpus": 16, "n_nodes": 2, "gpus_per_node": 8}),
        ("32 h100 over 4 servers", {"n_gpus": 32, "n_nodes": 4, "gpus_per_node": 8}),
    ],
)
def test_users_served_and_cards_over_nodes(text: str, values: dict[str, Any]) -> None:
    assert values.items() <= parse(text).values.items()
