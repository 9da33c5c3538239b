"""What the load script asks: a few fixed questions over and over, or thousands that all differ.

The fixed ones show what a server gives when people ask the same things; the distinct ones, the same eight kinds of
question with other sizes, cards, counts, lengths and tokens in each, what it gives when nothing was asked before.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

QUESTIONS = [
    "what GPU for 70B QLoRA?",
    "how much memory does a 7B need for full fine-tuning?",
    "can I train a 13B with LoRA on a 4090?",
    "what does a H100 cost per hour?",
    "does llama-3.1-8b fit on an A100 40GB for inference?",
    "how long does LoRA of an 8B on 100 million tokens take on one H100?",
    "compare H100 and A100",
    "do I need InfiniBand for 16 H100 and a 13B?",
]
CALLS: list[dict[str, object]] = [
    {"model": "7B", "method": "qlora"},
    {"model": "llama-3.1-70b", "method": "lora", "n_gpus": 8, "sharding": "fsdp"},
    {"model": "13B", "method": "full", "n_gpus": 8, "sharding": "zero3", "seq_len": 4096},
    {"model": "mistral-7b", "task": "inference", "gpu": "4090"},
]

_CARDS = ("H100", "A100 80GB", "A100 40GB", "H200", "B200", "L40S", "L4", "A10G", "RTX 4090", "RTX 3090", "RTX 5090",
          "A6000", "V100 32GB", "T4", "MI300X", "GH200")  # fmt: skip
_CLUSTER_CARDS = ("H100", "A100 80GB", "H200", "B200", "MI300X", "L40S")
_MODELS = ("llama-3.1-8b", "llama-3.1-70b", "mistral-7b", "qwen2.5-7b", "qwen2.5-32b", "qwen2.5-72b", "gemma-2-9b",
           "gemma-2-27b", "mixtral-8x7b", "phi-4", "llama-2-13b", "llama-3.2-3b")  # fmt: skip
_PLACES = ("", " on AWS", " at Lambda", " on GCP", " on Azure", " at RunPod", " at CoreWeave", " on Vast.ai")


def distinct(count: int, seed: int = 1) -> list[str]:
    """``count`` questions, no two alike, the eight kinds in turn; the same for the same seed. Fewer where the kinds are
    used up.
    """
    chance = random.Random(seed)
    seen: set[str] = set()
    found: list[str] = []
    for make in _round(chance):
        if len(found) == count:
            break
        question = make()
        for _again in range(20):
            if question not in seen:
                break
            question = make()
        if question not in seen:  # a kind whose questions are used up is passed over
            seen.add(question)
            found.append(question)
    return found


def _round(chance: random.Random) -> Iterator[Callable[[], str]]:
    pick = chance.choice

    def size() -> str:
        return f"{pick([chance.randint(1, 30), chance.randint(30, 180), chance.randint(10, 99) / 10]):g}B"

    def length() -> int:
        return 256 * chance.randint(2, 128)

    kinds: list[Callable[[], str]] = [
        lambda: f"what GPU for {size()} {pick(['QLoRA', 'LoRA', 'full fine-tuning'])} at sequence length {length()}?",
        lambda: f"how much memory does a {size()} need for full fine-tuning at sequence length {length()}?",
        lambda: f"can I train a {size()} with LoRA on a {pick(_CARDS)} at sequence length {length()}?",
        lambda: f"what do {chance.randint(1, 64)} {pick(_CARDS)} cost per hour{pick(_PLACES)}?",
        lambda: f"does {pick(_MODELS)} fit on an {pick(_CARDS)} for inference with {length()} tokens of context?",
        lambda: (
            f"how long does LoRA of an {size()} on {chance.randint(2, 900)} million tokens take on one {pick(_CARDS)}?"
        ),
        lambda: "compare {}, {} and {}".format(*chance.sample(_CARDS, 3)),
        lambda: f"do I need InfiniBand for {8 * chance.randint(2, 16)} {pick(_CLUSTER_CARDS)} and a {size()}?",
    ]
    while True:
        yield from kinds
