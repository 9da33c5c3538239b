"""Small helpers for the results of tools about time and money: facts in order, and names as people say them."""

from __future__ import annotations

from typing import Any

from knowledge.types import Gpu
from tools.result import Assumption, Fact
from tools.units import Unit
from tools.workload import Job

_DOING = {
    "full": "Full fine-tuning of", "pretrain": "Pretraining", "continued_pretrain": "Continued pretraining of",
    "lora": "LoRA fine-tuning of", "qlora": "QLoRA fine-tuning of", "dora": "DoRA fine-tuning of",
    "dpo": "DPO on", "orpo": "ORPO on", "kto": "KTO on", "grpo": "GRPO on", "ppo": "PPO on",
    "reward": "Reward-model training of",
}  # fmt: skip


class Facts:
    """Collects facts, each under an id that is its name unless told otherwise."""

    def __init__(self) -> None:
        self.found: list[Fact] = []

    def add(self, name: str, value: float | int | str | bool, unit: Unit = "", **more: Any) -> Fact:
        """One more fact, kept in ``found`` and returned; ``more`` are Fact's own fields. Its id is ``name`` unless
        given; that ids differ is the caller's to see to. Raises ValidationError for a field unknown to Fact.
        """
        fact = Fact(id=more.pop("id", name), name=name, value=value, unit=unit, **more)
        self.found.append(fact)
        return fact


def doing(job: Job, inside: bool = False) -> str:
    """The job in words, e.g. QLoRA fine-tuning of Llama-3.1-70B; ``inside`` a sentence, not at its start."""
    text = _doing(job)
    named = text.startswith(("LoRA", "QLoRA", "DoRA")) or text[1].isupper()
    return text if named or not inside else text[0].lower() + text[1:]


def _doing(job: Job) -> str:
    if job.task == "inference":
        return f"Running {model_name(job)}"
    return f"{_DOING[job.method]} {model_name(job)}"


def model_name(job: Job) -> str:
    """The model for a sentence: "Llama-3.1-70B" without its organisation; a bare size gets an article ("a 7B dense
    decoder").
    """
    name = job.arch.id.split("/")[-1]
    if job.arch.family != "generic":
        return name
    article = "an" if name.startswith(("8", "11B", "11.", "18B", "18.")) else "a"
    return f"{article} {name}"


def cards(n: int, gpu: Gpu | str) -> str:
    """A count of cards for people, by the card's id: "8× H100-SXM5"."""
    return f"{n}× {gpu if isinstance(gpu, str) else gpu.id}"


def set_aside(assumed: list[Assumption], *names: str) -> list[Assumption]:
    """A new list of ``assumed`` without those of these names, in the same order."""
    return [item for item in assumed if item.name not in names]
