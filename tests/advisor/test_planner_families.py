"""Families of questions: however a wish is put, the same tool answers it, and its figures hold."""

from __future__ import annotations

import pytest

from advisor.turn import Desk
from tests.advisor.reading import ask

# What is wanted: the first tool that is called; "declined" and "needs_input" are statuses. Then ten ways to put it.
FAMILIES = {
    ("check_speed", "a step time or a speed judged"): [
        "7b full on 8xH100, mbs 2, seq 4096: 9 seconds per step, slow?",
        "step time 3.2 s for llama 8b lora on one A100 batch 4, is that normal",
        "13b qlora on a 3090, 22s/it with batch 8. what's wrong",
        "our 70b run on 64 h100 does 12 s per iteration at micro batch 1, good or bad?",
        "each iteration takes 6 seconds, mistral 7b lora, 4090, bs 2 — reasonable?",
        "every step needs 40 seconds for qwen 7b full on 4 a100. too slow?",
        "Ein Schritt dauert 30 s: 8B LoRA auf einer 4090, Batch 4, langsam?",
        "llama 8b qlora 3090 batch 4: 0.12 it/s, expected?",
        "每步45秒，7B lora，单张4090，batch 4，正常吗",
        "8b fft on 8 a100s gives 150 tflops per gpu, is this good",
    ],
    ("check_speed", "a bus bandwidth judged"): [
        "all_reduce_perf between two 8-gpu a100 boxes: busbw 9.84 GB/s. four 200 gig roce nics in each. way too low?",
        "300 nodes, 8 H100 + 4 IB each, busbw peaks at 14GB/s. script wrong?",
        "nccl-tests busbw of 480 GB/s on 8xH100, fine?",
        "8xA100, 8*100 gbps nic roce, two boxes, nccl-tests says 600Gbps. expected?",
        "bus bandwidth 42 GB/s over 2 nodes of 8 h200 with NDR, all_gather_perf. ok?",
        "rccl-tests shows 310 GB/s on 8 MI300X, normal?",
        "nccl test on two 4090s: 6.5 GB/s busbw, can that be",
        "we see busbw=77 GB/s across 2 p4d.24xlarge, good?",
        "nccl-tests auf 2x8 H100 mit InfiniBand: busbw 190 GB/s, ist das normal?",
        "16 h100 nccl-tests all_reduce busbw 45 GB/s, 8 nics per node, is sharp broken",
    ],
    ("estimate_run", "a run time or a bar judged"): [
        "qwen 7b lora on a 4090, tqdm says 61 hours for 40k samples, is that right?",
        "the progress bar shows 12 days for 13b full on 8 a100, 200M tokens. normal?",
        "took 30 hours to lora an 8b on one a100 with 100k rows, should it?",
        "eta 400h?? llama 70b qlora on 2 h100, 50M tokens",
        "llama 8b full on 8 h100 took 9h for 1B tokens, is that slow",
        "estimated 35 hours per epoch for mistral 7b qlora on a 3090, 52k rows - normal?",
        "trainer says 5 days remaining, 8b lora, single l40s, 120k samples. expected?",
        "Qwen-14B lora，3张A100，进度条显示好几百小时，正常吗",
        "laut Anzeige 200 Stunden für 8B QLoRA auf einer 3090, normal?",
        "bar says hundreds of hours for a 13b lora on two 3090s, wrong?",
    ],
    ("check_speed", "two counts with a time each"): [
        "1 gpu: 20 h. 8 gpus: 9 h. llama 8b lora. why so bad",
        "one card took 12 hours, two cards took 11 hours",
        "2 gpus 10h, 4 gpus 9h, what gives",
        "40 hours on one gpu, 38 hours on two, is ddp broken",
        "single gpu 6h, 4 gpus 7h with unsloth",
        "one node: 30h, four nodes: 25h, 7b full",
        "1 a100 needs 50 hours, 8 a100 need 20 hours, normal?",
        "8 gpus 24h, 16 gpus 22h, 13b full ft",
        "with one 3090 15 h, with two 3090 14 h",
        "1 gpu = 100 min, 2 gpus = 95 min",
    ],
    ("compare_ownership", "buying against renting"): [
        "buy an 8xH100 box at 260k or go reserved for 3 years",
        "should we purchase 4 H100 or keep renting from lambda",
        "8x H100 kaufen oder mieten bei 50% Auslastung",
        "acheter 8 H100 ou louer pendant 3 ans ?",
        "¿comprar 8 H100 o alquilar en la nube?",
        "8卡H100自己买还是租，用三年",
        "H100を8枚購入するかクラウドでレンタルするか",
        "rent or buy 16 B200 for 2 years at 60% utilisation",
        "own 32 H100 vs cloud, power 0.10/kWh",
        "at what point does owning 8 H100 break even against renting",
    ],
    ("lookup_prices", "a memory or a price cap, no job"): [
        "need a single card >=80GB under 2 bucks an hour",
        "any gpu with 48gb for less than $0.60 per hour?",
        "cheapest gpu with 24 GB right now",
        "what is the cheapest 80gb card to rent",
        "lowest price per hour for a card with at least 96 GB",
        "card with 40GB or more under $1/h, what's available",
        "günstigste GPU mit 48 GB pro Stunde",
        "la gpu más barata con 24 GB por hora",
        "最便宜的80GB显卡租一小时多少钱",
        "best deal on a 32 GB gpu under $0.5 an hour",
    ],
    ("estimate_run", "the most for a sum"): [
        "biggest continued pretraining of an 8B for 40k EUR",
        "largest 3B pretrain we can do with $25k",
        "how much pretraining of a 1.4B does 10000 dollars buy",
        "longest full finetuning of a 7b for $2000",
        "we have $5k, longest training run of a 3B?",
        "40k euros left: the biggest pretraining run on a 8b?",
        "what can we train for $15k: pretrain a 1B",
        "max training on a 13b lora for 500 dollars",
        "how far does $8000 get us pretraining a 2B",
        "with $100k, the largest pretraining of a 7B",
    ],
    ("estimate_run", "a model of our own"): [
        "what would training our own 3B on 60B tokens set us back",
        "the board asks what training our own 7B on 100B tokens costs",
        "how much would it cost to train our own 1B on 20B tokens",
        "ballpark for pretraining our own 2.7B, 54B tokens, in dollars",
        "what's the bill for our own 13B on 200B tokens",
        "price tag of training our own 8B with 1T tokens?",
        "cost of our own 500M model on 10B tokens",
        "what do we pay to train our own 3B on 50B tokens",
        "budget needed for our own 6B on 120B tokens",
        "how expensive is training our own 1.5B on 30B tokens",
    ],
    ("check_compatibility", "a feature of a card"): [
        "7b on V100s: bf16 yes or no",
        "does a T4 support bf16?",
        "bf16 on a V100, possible?",
        "can a 2080 ti do flash attention 2?",
        "fp8 on A100 supported?",
        "do L40S cards have fp8?",
        "flash-attn 3 on a 4090, yes or no",
        "is fp8 available on the MI300X?",
        "kann die V100 bf16?",
        "has the 3090 fp8?",
    ],
    ("search_knowledge", "bytes a parameter"): [
        "18, 12 or 16 bytes per param, who is right",
        "colleague says 18 bytes/param, blog says 16: which one for adamw",
        "is it 16 or 20 bytes per parameter with mixed precision?",
        "how many bytes per parameter does adamw really need",
        "12 bytes a param or 16?",
        "bytes per param: mosaic says 12, torchtune 16",
        "where do the 16 bytes per parameter come from",
        "7 x 16 = 112 GB, where do those 16 come from",
        "does muon also take 16 bytes per param",
        "16 bytes/param for lora too?",
    ],
    ("search_knowledge", "a failure"): [
        "FSDP hangs at checkpoint save on 16 gpus",
        "training stuck at saving the checkpoint, 32 ranks",
        "Xid 79 on one node",
        "what does Xid 94 mean",
        "what does -9 mean",
        "exited with code 137, what is it",
        "what does exit code -11 mean",
        "all ranks hang at the first all_reduce",
        "deepspeed froze during checkpoint saving",
        "job hangs after epoch 1 with 8 gpus",
    ],
    ("needs_input", "no subject"): [
        "how long??? thx",
        "fit in 80?",
        "is this normal [screenshot.png]",
        "will it run?",
        "how much?",
        "is it enough?",
        "ok and how long",
        "can it fit?",
        "what about cost",
        "is this good? [image.jpg]",
    ],
    ("declined", "other people's work"): [
        "make slides about fsdp for my talk",
        "can you make the slides for my conference talk about FSDP? nice colours",
        "translate our GPU policy PDF into polish",
        "please create a powerpoint on lora for the team",
        "proofread my paper on lora",
        "design a logo for our gpu cluster",
        "übersetze unsere GPU-Richtlinie ins Polnische",
        "prepare a deck about our H100 cluster for my boss",
        "write a press release about our new gpus",
        "translate the readme of our training repo to french",
    ],
    ("check_interconnect", "links inside a machine"): [
        "pcie x8/x8 vs x16 for 2x 4090 lora 7b",
        "2x 3090: x8 or x16 slots for 13b qlora?",
        "does x4 vs x16 matter for 2 4090 on a 7b full finetune",
        "PCIe 4.0 x8 vs x16 with four 3090, 7b lora",
        "gen 5 x8 against x16 for two 5090, 8b full ft",
        "2x3090 NVLink bridged or not for 13b qlora",
        "do i need nvlink for 2 3090 on 7b full?",
        "two A6000 with and without nvlink, 13b full",
        "is the nvlink bridge worth it for 2x3090, 7b lora ddp",
        "A100 pcie pair: nvlink bridge or just pcie for 13b fsdp",
    ],
    ("lookup_prices", "reserved against on demand"): [
        "reserved one year against on demand for H100",
        "H100 on demand vs reserved 1 year",
        "a100 reserved for a year or on-demand, price per hour",
        "on demand or reserved (3 years) for B200?",
        "how much cheaper is reserved vs on-demand for h100",
        "commit for 1 year vs on demand on A100 80GB",
        "l40s reserved vs on demand price",
        "H200 on-demand against 1-year commitment",
        "reserved 1y vs on demand, mi300x",
        "on-demand vs committed use 3 years for a100",
    ],
    ("estimate_power", "machines in a rack"): [
        "a 12 kW rack, how many 8xH100 servers",
        "how many H100 servers fit in a 40 kW rack",
        "17 kW per rack: how many 8x A100 boxes",
        "how many 8xB200 nodes with 60 kW",
        "rack limit 20kW, how many H200 machines",
        "how many 4090s can i run on 3 kW",
        "we have 100 kW, how many 8xH100 nodes is that",
        "how many MI300X servers in 30 kW",
        "24kW cabinet - how many hgx h100 8 gpu nodes",
        "how many dgx h100 per 45 kw rack",
    ],
}
QUESTIONS = [(want, question) for (want, _wish), ways in FAMILIES.items() for question in ways]


@pytest.mark.parametrize(("want", "question"), QUESTIONS)
def test_each_way_to_put_a_wish_gets_its_tool(planner_desk: Desk, want: str, question: str) -> None:
    got = ask(planner_desk, question)
    if want in ("declined", "needs_input"):
        assert got.status == want
        assert not got.tool_calls
        return
    assert got.status == "answered"
    assert got.tool_calls[0].name == want
    assert all(call.error is None for call in got.tool_calls)


def test_every_family_has_ten_ways() -> None:
    assert {len(ways) for ways in FAMILIES.values()} == {10}
