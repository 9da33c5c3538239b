"""Stated slots in unusual words, by family: number words, other languages' units, flags, counts without a counter.

Expected values are read off the sentences by hand; None where nothing of the kind is stated.
"""

from __future__ import annotations

from typing import Any

import pytest

from advisor.llm.planner.parse import parse

FAMILIES: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "deadlines": [
        ("8b lora on 50k rows, three days tops", {"deadline_hours": 72.0}),
        ("need it inside of two days, 13b qlora", {"deadline_hours": 48.0}),
        ("7b on 10B tokens in under a week", {"deadline_hours": 168.0}),
        ("un 7B sur 5 G tokens en moins d'une semaine, quel GPU", {"deadline_hours": 168.0}),
        ("entrenar un 3B en menos de 5 días", {"deadline_hours": 120.0}),
        ("ein 8B in weniger als 3 Tagen trainieren", {"deadline_hours": 72.0}),
        ("72 hour hackathon, 8b qlora, which card", {"deadline_hours": 72.0}),
        ("for a 24-hour hackathon: 7b lora", {"deadline_hours": 24.0}),
        ("a day and a half at most, 70b lora", {"deadline_hours": 36.0}),
        ("最多两天，7b全参，用什么卡", {"deadline_hours": 48.0}),
        ("7B 全参 3天之内 跑完 要几张卡", {"deadline_hours": 72.0}),
        ("no more than six hours, 8b lora", {"deadline_hours": 6.0}),
        ("10 hours or less, 8b lora 20k rows", {"deadline_hours": 10.0}),
        ("maximal 2 Wochen, 1B von Grund auf", {"deadline_hours": 336.0}),
        ("em menos de 2 dias, lora de 13b", {"deadline_hours": 48.0}),
        ("in no more than a fortnight pretrain 1b", {"deadline_hours": 336.0}),
        ("half a day is all i have, 8b qlora", {"deadline_hours": 12.0}),
        ("48h budget of time, 8b", {"hours": 48.0}),
        ("must finish overnight", {"deadline_hours": 12.0}),
        ("3日以内に終わらせたい 8B LoRA", {"deadline_hours": 72.0}),
        ("이틀 안에 8B 파인튜닝", {"deadline_hours": 48.0}),
        ("32 Knoten, je 8 A800 und 4x 200G RoCE", {"deadline_hours": None, "hours": None}),
    ],
    "prices": [
        ("h100s for three bucks an hour, 7b full on 1B tokens", {"price_usd": 3.0}),
        ("4090 at 45 cents an hour, 8b qlora", {"price_usd": 0.45}),
        ("a100 for eighty-nine cents/hr", {"price_usd": 0.89}),
        ("L40S @ 79c/hr lora 8b", {"price_usd": 0.79}),
        ("h100 at $2.49 an hour", {"price_usd": 2.49}),
        ("H100 zu 2,10 € die Stunde", {"price_usd": 2.1, "price_currency": "EUR"}),
        ("H100 für 1,99 €/h", {"price_usd": 1.99, "price_currency": "EUR"}),
        ("A100 à 1,50 € de l'heure", {"price_usd": 1.5, "price_currency": "EUR"}),
        ("4090 每小时2.5元 微调7b", {"price_usd": 2.5, "price_currency": "CNY"}),
        ("A100 ¥9/小时 跑 7B lora", {"price_usd": 9.0, "price_currency": "CNY"}),
        ("一张H100一小时15块", {"price_usd": 15.0, "price_currency": "CNY"}),
        ("H100 at two dollars fifty an hour", {"price_usd": 2.5}),
        ("h100 for a buck ninety an hour", {"price_usd": 1.9}),
        ("paying 1.85/gpu-hr for 64 h100", {"price_usd": 1.85}),
        ("we pay $3/card/hr", {"price_usd": 3.0}),
        ("a4500 at 35¢ per hour", {"price_usd": 0.35}),
        ("el H100 a 2 dólares la hora", {"price_usd": 2.0}),
        ("H100 2.2 USD por hora", {"price_usd": 2.2}),
        ("1時間300円の4090", {"price_usd": 300.0, "price_currency": "JPY"}),
    ],
    "utilisation": [
        ("buy or rent 8 h100, busy half the time", {"utilisation": 0.5}),
        ("buy or rent 8 h100, 70 percent busy", {"utilisation": 0.7}),
        ("eigener Server, 40 Prozent Auslastung", {"utilisation": 0.4}),
        ("Auslastung ca. 30 %", {"utilisation": 0.3}),
        ("bei 25 % Auslastung", {"utilisation": 0.25}),
        ("利用率大约七成", {"utilisation": 0.7}),
        ("利用率六成半", {"utilisation": 0.65}),
        ("使用率差不多百分之八十", {"utilisation": 0.8}),
        ("utilisation de 60 pour cent", {"utilisation": 0.6}),
        ("uso del 45 por ciento", {"utilisation": 0.45}),
        ("the cluster runs 24/7", {"utilisation": 1.0}),
        ("busy around the clock", {"utilisation": 1.0}),
        ("used a third of the time", {"utilisation": 0.33}),
        ("running three quarters of the year", {"utilisation": 0.75}),
        ("稼働率60パーセント", {"utilisation": 0.6}),
        ("utilised maybe 55%", {"utilisation": 0.55}),
        ("we'd keep them at 80% load", {"utilisation": 0.8}),
        ("利用率只有三成", {"utilisation": 0.3}),
        ("taux d'utilisation 50 %", {"utilisation": 0.5}),
        ("12 hours a day", {"utilisation": 0.5}),
        ("half a day on 8 h100", {"utilisation": None}),
        ("rank 0.5, 3rd run of the day", {"utilisation": None}),
    ],
    "lengths": [
        ("yi 34b qlora seq 1k", {"seq_len": 1024}),
        ("ctx=32k, 8b lora", {"seq_len": 32768}),
        ("8b lora, séquences de 2000 tokens", {"seq_len": 2000}),
        ("7B LoRA, longueur 4096", {"seq_len": 4096}),
        ("시퀀스 4천 7B", {"seq_len": 4000}),
        ("contexto de 16 mil tokens, 8B lora", {"seq_len": 16000}),
        ("contexte de 8 mille tokens, 8B lora", {"seq_len": 8000}),
        ("Kontext 32 tausend, 8B", {"seq_len": 32000}),
        ("序列长度4千，7B", {"seq_len": 4000}),
        ("context of four thousand, 8b", {"seq_len": 4000}),
        ("8b full, 8k tokens per sample", {"seq_len": 8192}),
        ("8b lora with sequences of 3k", {"seq_len": 3000}),
        ("7b, each sample two thousand tokens", {"seq_len": 2000}),
        ("7b lora 文本长度2048", {"seq_len": 2048}),
        ("7b lora 上下文8K", {"seq_len": 8192}),
        ("8b dpo chosen+rejected around 3k tokens each", {"seq_len": 3000}),
        ("secuencias de 4096, 8b qlora", {"seq_len": 4096}),
        ("Sequenzen von 2048, 8b qlora", {"seq_len": 2048}),
        ("sequenze da 2048, 8b qlora", {"seq_len": 2048}),
        ("len=1.5k 8b qlora", {"seq_len": 1500}),
    ],
    "counts": [
        ("twin 4090, 13b qlora", {"n_gpus": 2}),
        ("3090 duo for 34b qlora", {"n_gpus": 2}),
        ("a trio of 3090s, 30b qlora", {"n_gpus": 3}),
        ("triple 3090, 30b qlora", {"n_gpus": 3}),
        ("quad A6000 70b lora", {"n_gpus": 4}),
        ("bs=2,4×A100,fsdp 13b", {"n_gpus": 4}),
        ("seq=4096,8xh100,70b lora", {"n_gpus": 8}),
        ("7b on h100, 64 of em", {"n_gpus": 64}),
        ("16 Knoten, je 8 H100, 70B", {"n_gpus": 128}),
        ("4 Server, jeweils 8 A100", {"n_gpus": 32}),
        ("4 nodes, each 8 h100", {"n_gpus": 32}),
        ("3 nœuds, chacun 8 H100", {"n_gpus": 24}),
        ("4张4090够吗，还是8张，70b qlora", {"n_gpus": 4, "variants": ("n_gpus", [4, 8])}),
        ("8卡H100还是16卡，70B全参", {"n_gpus": 8, "variants": ("n_gpus", [8, 16])}),
        ("4 h100 or do i need 8? 70b lora", {"n_gpus": 4, "variants": ("n_gpus", [4, 8])}),
        ("all sixteen of them h100, 70b", {"n_gpus": 16}),
        ("four nodes, eight a100s apiece, 70b", {"n_gpus": 32}),
        ("two DGX H100, 70b full", {"n_gpus": 16}),
        ("a single lonely 4090, 8b", {"n_gpus": 1}),
        ("8卡4090 7b全参", {"n_gpus": 8}),
        ("双卡3090 13b qlora", {"n_gpus": 2}),
        ("un par de 4090, 13b qlora", {"n_gpus": 2}),
        ("zwei Stück 4090, 13b", {"n_gpus": 2}),
        ("4 mal A100, 13b", {"n_gpus": 4}),
        ("half a dozen A100s for a 30b", {"n_gpus": 6}),
        ("on 4090, just 2 of em", {"n_gpus": 2}),
        ("my second 4090 is in an x4 slot", {"n_gpus": 2}),
        ("second hand 4090, 8b qlora", {"n_gpus": None}),
        ("all seventy-two", {"n_gpus": 72}),
        ("only eight of those", {"n_gpus": 8}),
    ],
    "data": [
        ("2个epoch，3万条样本 7b", {"epochs": 2, "samples": 30000}),
        ("两个epoch 5万条指令 7b lora", {"epochs": 2, "samples": 50000}),
        ("30k customer emails, 8b lora", {"samples": 30000}),
        ("12k medical questions, 8b qlora on a 4090", {"samples": 12000}),
        ("1500 hand-written examples, 8b lora", {"samples": 1500}),
        ("100 thousand rows, 8b lora", {"samples": 100000}),
        ("1.5 million pairs dpo 8b", {"samples": 1500000}),
        ("fifty thousand convos, 8b", {"samples": 50000}),
        ("entrenar un 8B con sesenta mil pares, lora", {"samples": 60000}),
        ("20 mil ejemplos, 3 épocas, 8b", {"samples": 20000, "epochs": 3}),
        ("50.000 Beispiele, 2 Epochen, 8b", {"samples": 50000, "epochs": 2}),
        ("10 000 exemples, 3 époques, 8b", {"samples": 10000, "epochs": 3}),
        ("2,400 tickets 13b qlora", {"samples": 2400}),
        ("8b lora, dataset of 25k", {"samples": 25000}),
        ("3万条对话 qwen 7b lora", {"samples": 30000}),
        ("5만 건 8B 로라 3에폭", {"samples": 50000, "epochs": 3}),
        ("データ5万件 3エポック 8B LoRA", {"samples": 50000, "epochs": 3}),
        ("40k legal documents, 8b lora", {"samples": 40000}),
        ("a single epoch over 200k rows, 8b", {"samples": 200000, "epochs": 1}),
        ("6k support threads, 3b qlora", {"samples": 6000}),
        ("llama 13b chat lora", {"samples": None}),
        ("qwen 14b-chat on 8 a100", {"samples": None}),
        ("8b with 8k context chat", {"samples": None}),
        ("3 preference pairs per prompt, 8b", {"samples": None}),
        ("70b instruct questions", {"samples": None}),
    ],
    "tokens": [
        ("python train.py --tokens 5e9 7b", {"tokens": 5000000000.0}),
        ("tokens=2e12 7b pretrain", {"tokens": 2000000000000.0}),
        ("3B / 26B tokens / 8 H100", {"tokens": 26000000000.0}),
        ("50 Mio. Tokens 7b lora", {"tokens": 50000000.0}),
        ("3 Mrd. Tokens 7b", {"tokens": 3000000000.0}),
        ("a quarter billion tokens 7b lora", {"tokens": 250000000.0}),
        ("half a trillion tokens 3b", {"tokens": 500000000000.0}),
        ("one and a half billion tokens, 7b", {"tokens": 1500000000.0}),
        ("2 billones de tokens 7b", {"tokens": 2000000000000.0}),
        ("20亿token 7b", {"tokens": 2000000000.0}),
        ("200亿 tokens 3B 预训练", {"tokens": 20000000000.0}),
        ("two hundred million tokens, 8b lora", {"tokens": 200000000.0}),
        ("1,2 milliard de tokens, 7b", {"tokens": 1200000000.0}),
        ("30 Gtok 1b", {"tokens": 30000000000.0}),
        ("10b toks, 3b", {"tokens": 10000000000.0}),
        ("15T tokens / 405B / 16k H100", {"tokens": 15000000000000.0}),
        ("300 millones de tokens, 8b lora", {"tokens": 300000000.0}),
        ("7b; toks: 5B", {"tokens": 5000000000.0}),
    ],
    "methods": [
        ("kein LoRA, 8B auf 8 H100", {"methods": ("full",)}),
        ("pas de lora, 8B", {"methods": ("full",)}),
        ("peft_scheme: null 8b nemo yaml", {"methods": ("full",), "framework": "nemo"}),
        ("adapter: none, llama 8b", {"methods": ("full",)}),
        ("8b lora rang 16", {"lora_rank": 16, "methods": ("lora",)}),
        ("lora rango 8, 7b", {"lora_rank": 8}),
        ("LoRA com posto 64, 7b", {"lora_rank": 64}),
        ("lora 秩32 7b", {"lora_rank": 32}),
        ("does the rank change anything? 16 vs 256, 8b lora", {"variants": ("lora_rank", [16, 256])}),
        ("ranks: 8 or 64, 7b lora", {"variants": ("lora_rank", [8, 64])}),
        ("deepspeed stage three 13b", {"sharding": "zero3"}),
        ("ds stage 2 13b", {"sharding": "zero2"}),
        ("zero two, 13b full", {"sharding": "zero2"}),
        ("ds3 offload 13b", {"sharding": "zero3"}),
        ("ZeRO Stufe 3, 13b", {"sharding": "zero3"}),
        ("fp16, sorry, bf16, 8b full", {"precision": "bf16"}),
        ("bf16 no wait fp16 8b", {"precision": "fp16"}),
        ("fp32, nein, bf16, 8B", {"precision": "bf16"}),
        ("v100 has no bf16 so fp16, 7b", {"precision": "fp16"}),
        ("fp16 since no bf16 on v100, 7b", {"precision": "fp16"}),
        ("7b full in 16 bit", {"precision": "bf16"}),
        ("7b full mixed precision", {"precision": "bf16"}),
        ("lit-llama 7b lora", {"framework": "litgpt"}),
        ("ds config zero 3 for 13b", {"sharding": "zero3", "framework": "deepspeed"}),
    ],
    "versions": [
        ("cuda twelve four, driver 550", {"cuda": "12.4"}),
        ("pinned at 525.105.17, torch 2.4", {"driver": "525.105.17"}),
        ("capped at 535.183 on rhel, torch 2.8", {"driver": "535.183"}),
        ("cuda 11 8", {"cuda": "11.8"}),
        ("cuda twelve point one", {"cuda": "12.1"}),
    ],
    "memory": [
        ("a mac with 512 gigs, deepseek r1", {"seq_len": None}),
        ("GPU 0; 22.02 GiB total capacity; who ate the other ten gigs", {"gpu_memory_gb": 22.02}),
    ],
    "batches": [
        ("batch = -4, 8b lora", {"micro_batch": -4}),
        ("7b qlora 16 per device", {"micro_batch": 16}),
        ("batch 512, micro 64, 7b", {"global_batch": 512, "micro_batch": 64}),
        ("global batch 256, micro 8, 7b", {"global_batch": 256, "micro_batch": 8}),
        ("micro=2 13b full", {"micro_batch": 2}),
    ],
    "settings": [
        ("Tage für 1,5 Billionen Tokens mit einem 7B", {"tokens": 1.5e12, "lora_rank": None}),
        ("ein 7B für 8 H100 planen", {"lora_rank": None, "n_gpus": 8}),
        ("für 16 Millionen Tokens, 7B", {"lora_rank": None, "tokens": 16e6}),
        ("Kosten: 8B voll, 1 Mrd. Tokens", {"methods": ("full",), "tokens": 1e9}),
        ("four boxes (8 a100 apiece), 65b full", {"n_gpus": 32}),
        ("batch sz 6, len 2k, 7b", {"micro_batch": 6}),
        ("7B LoRA com 80 mil exemplos", {"samples": 80000}),
        ("LoRA 8B, 3000 esempi", {"samples": 3000}),
        ("8B, h100s @ 1.99", {"price_usd": 1.99}),
        ("30B full, len 2k, 1 per gpu", {"micro_batch": 1}),
        ("7b, qlora no sorry lora", {"methods": ("lora",)}),
        ("7b lora, actually full", {"methods": ("full",)}),
        ("lora vs full for a 7b, what is actually better", {"methods": ("lora", "full")}),
        (
            "{'model': 'gemma-2-27b', 'r': 32, 'max_length': 1536, 'micro_batch_size': 2}",
            {"lora_rank": 32, "seq_len": 1536, "micro_batch": 2},
        ),
        ('{"lora_r": 8, "cutoff_len": 1024, "num_gpus": 4}, 8b', {"lora_rank": 8, "seq_len": 1024, "n_gpus": 4}),
        ("tensor 8, pipeline 4, 96 H100, 70b", {"tp": 8, "pp": 4, "n_gpus": 96}),
        ("tensor parallel 4, pipeline 2", {"tp": 4, "pp": 2}),
        ("8k context to 3 people, llama 70b", {"seq_len": 8192}),
        ("16k context 2 gpus, 8b", {"seq_len": 16384, "n_gpus": 2}),
        ("T4x2, 3b lora", {"n_gpus": 2}),
        ("L40Sx4, 13b lora", {"n_gpus": 4}),
        ("A10Gx8, 13b lora", {"n_gpus": 8}),
        ("zero3，序列2k，batch每卡1", {"micro_batch": 1}),
        ("7B，1万亿token", {"tokens": 1e12}),
        ("A100 한 장으로 8B QLoRA 3만 샘플", {"n_gpus": 1, "samples": 30000}),
        ("필요한 A100 개수는? 70B", {"n_gpus": None}),
        ("QLoRA 34B, 15 000 exemples", {"samples": 15000}),
        ("beim vollen Finetuning von 13B", {"methods": ("full",)}),
        ('{"gpu": "H100", "count": 16, "model": "70B", "method": "full"}', {"n_gpus": 16}),
        ("gpu=a100-40g ngpu=4 model=falcon-7b r=64", {"n_gpus": 4, "lora_rank": 64}),
        ("num_gpus: 8, model: 13b", {"n_gpus": 8}),
        ("gpus: 8, gpu: 4090", {"n_gpus": 8}),
        ("lora rank 256 alpha 512 dropout .05 llama2-13b", {"lora_rank": 256, "seq_len": None}),
        ("hidden 4096 vocab 32768, 3b, bs 2", {"seq_len": None, "micro_batch": 2}),
        ("15 tokens per param for a 3B, 16 H100", {"seq_len": None, "tokens": None}),
        ("4x 3090 64GB ram, 30b zero3 offload", {"ram_gb": 64.0, "gpu_memory_gb": None}),
    ],
    "rates": [
        ("spot 4090, 3 interruptions a day, 40h run", {"hours": 40.0}),
        ("8 Stunden am Tag, 8 H100 kaufen", {"utilisation": 1 / 3}),
        ("6 heures par jour, 4 A100", {"utilisation": 0.25}),
        ("12 horas al día, 4 A100", {"utilisation": 0.5}),
        ("买8张4090，每天跑10小时", {"utilisation": 10 / 24}),
        ("电费0.6元一度，租1.8元/卡时", {"power_price": 0.6, "price_usd": 1.8, "price_currency": "CNY"}),
        ("A100 租5元每卡每小时", {"price_usd": 5.0, "price_currency": "CNY"}),
        ("A100 80기가 8장으로 70B", {"n_gpus": 8}),
        ("KTO, 8B, 20k prefs", {"samples": 20000, "seq_len": None}),
        ("8b sft on 9k jsonl lines", {"samples": 9000}),
        ("100k lines of code, 8b", {"samples": None}),
    ],
}
CASES = [(family, *case) for family, cases in FAMILIES.items() for case in cases]
SIZES = [
    ("训练一个百亿参数模型全参", 10.0),
    ("千亿参数的模型", 100.0),
    ("十亿级模型", 1.0),
    ("un modelo de 34 mil millones con QLoRA", 34.0),
    ("ein Modell mit 7 Milliarden auf 2 A100", 7.0),
    ("un modèle de 3 milliards sur une A100", 3.0),
    ("modelo de 1.300 millones de parámetros, fp32", 1.3),
    ("350 million parameters from scratch", 0.35),
    ("Modell mit 7 Milliarden Parametern", 7.0),
    ("seven billion params, full ft", 7.0),
    ("13亿参数模型", 1.3),
    ("125 millions de paramètres", 0.125),
    ("1,5 Milliarden Parameter", 1.5),
    ("a half-billion parameter model", 0.5),
    ("un modelo de mil millones de parámetros", 1.0),
    ("70 mil millones de parámetros", 70.0),
    ("700 Mio. Parameter", 0.7),
    ("modelo de 7 bilhões de parâmetros", 7.0),
    ("bert 10 billion", 10.0),
    ("Search-R1 7b grpo", 7.0),
    ("1.1 billion param model", 1.1),
    ("eight billion", 8.0),
]


@pytest.mark.parametrize(("family", "text", "wanted"), CASES, ids=[f"{case[0]}-{case[1][:50]}" for case in CASES])
def test_what_is_stated_is_read(family: str, text: str, wanted: dict[str, Any]) -> None:
    slots = parse(text)
    for name, value in wanted.items():
        read = slots.methods if name == "methods" else slots.get(name)
        assert read == (pytest.approx(value) if isinstance(value, float) else value), (family, name)


@pytest.mark.parametrize(("text", "billions"), SIZES, ids=[text for text, _size in SIZES])
def test_sizes_in_words(text: str, billions: float) -> None:
    model = parse(text).model
    assert model is not None
    assert model.size is not None
    assert float(model.size[:-1]) * {"B": 1.0, "M": 1e-3}[model.size[-1]] == pytest.approx(billions)


@pytest.mark.parametrize(
    ("text", "prices"),
    [
        ("A100 @1.39 or H100 SXM @2.69, lora 13b", {1.39, 2.69}),
        ("4090 at 0.44 vs a100 at 1.59, 8b qlora", {0.44, 1.59}),
        ("h100 for 2.99 or h200 for 3.79 on runpod", {2.99, 3.79}),
        ("A100 zu 1.20 oder H100 zu 2.30", {1.2, 2.3}),
    ],
)
def test_prices_behind_cards_without_a_sign(text: str, prices: set[float]) -> None:
    assert set(parse(text).get("card_prices", {}).values()) == prices


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("lit-llama adapter, batch 1", []),
        ("Search-R1 200 steps for the 7B", ["7B"]),
        ("open-r1 grpo of a 1.5B", ["1.5B"]),
        ("nemo config for nemotron 22b", ["nvidia/nemotron-3-22b"]),
        ("deepseek r1 on 8 h200", ["deepseek-ai/DeepSeek-R1"]),
    ],
)
def test_stacks_whose_names_end_as_models_do(text: str, names: list[str]) -> None:
    assert [mention.argument for mention in parse(text).models] == names


@pytest.mark.parametrize(
    ("text", "providers"),
    [
        ("mi300x per hour: runpod, hot aisle", ("runpod", "hotaisle")),
        ("h100 at Voltage Park or Thunder Compute?", ("voltagepark", "thundercompute")),
        ("akash vs fly.io for an a100", ("akash", "fly-io")),
        ("linode rtx 6000 ada price", ("akamai",)),
        ("cheapest h200 on novita.ai, genesis cloud or prime intellect", ("novita", "genesiscloud", "primeintellect")),
        ("koyeb a100 or cudo compute a100", ("koyeb", "cudo")),
        ("on the fly ioctl errors with e2e tests", ()),
    ],
)
def test_places_to_rent_that_prices_are_held_of(text: str, providers: tuple[str, ...]) -> None:
    assert parse(text).providers == providers


def test_sizes_between_slashes_are_each_a_size() -> None:
    assert [mention.argument for mention in parse("7B/13B/34B full on 8xA100").models] == ["7B", "13B", "34B"]
    assert [mention.argument for mention in parse("reads 7B/s from disk, 13B model").models] == ["13B"]
