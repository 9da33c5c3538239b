"""Names of training stacks that people use, and the stack whose conventions each is counted by.

Which engine runs the training step is recalled from what each project says of itself, not read in a source held here,
and the assumption that a result carries names the stack it was counted by: XTuner, ms-swift, LMFlow and PEFT
scripts train Hugging Face modules; OpenRLHF and Colossal-AI shard as DeepSpeed does; verl trains Hugging Face modules
under FSDP. Engines that only serve are counted like Hugging Face's: weights, cache and activations are the same.
"""

from __future__ import annotations

import re
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

Framework = Literal[
    "hf", "trl", "axolotl", "llama-factory", "unsloth", "torchtune", "torchtitan", "litgpt", "llm-foundry", "megatron",
    "nemo", "deepspeed", "fms", "nanogpt", "maxtext",
]  # fmt: skip

_COUNTED_AS: dict[Framework, tuple[str, ...]] = {
    "hf": (
        "transformers", "huggingface", "peft", "accelerate", "autotrain", "xtuner", "swift", "msswift", "lmflow",
        "firefly", "fastchat", "verl", "lightning", "pytorchlightning", "kohya", "kohyass", "sdscripts", "simpletuner",
        "aitoolkit", "onetrainer", "diffusers", "mlx", "mlxlm", "vllm", "sglang", "tgi", "lmdeploy", "tensorrtllm",
        "llamacpp", "ollama", "lmstudio", "exllama", "fsdp", "pytorch", "torch", "llamacookbook", "llamarecipes",
        "openinstruct", "slime", "torchforge",
    ),
    "trl": ("sfttrainer", "dpotrainer", "grpotrainer", "alignmenthandbook", "openr1"),
    "deepspeed": ("openrlhf", "colossalai", "deepspeedchat", "dschat", "bmtrain"),
    "megatron": ("megatronlm", "megatroncore", "mcore", "megatrondeepspeed", "gptneox", "megatronlms", "mindspeed"),
    "nemo": ("nemoframework", "nemo2", "nemorl", "nemoaligner"),
    "nanogpt": ("nanochat", "moddednanogpt", "mingpt"),
    "llm-foundry": ("llmfoundry", "mosaicml", "composer"),
    "llama-factory": ("llamafactory", "llamafactorycli"),
    "litgpt": ("litllama",),
    "maxtext": ("levanter", "easylm", "jax"),
    "torchtitan": ("titan",),
    "torchtune": ("tune",),
}  # fmt: skip
_TABLE = {name: counted for counted, names in _COUNTED_AS.items() for name in names}


def counted_as(name: str) -> Framework | None:
    """The stack that ``name`` is counted by, in any spelling; None for a name that is not held here."""
    return _TABLE.get(re.sub(r"[^a-z0-9]+", "", name.casefold()))


class NamesFramework(BaseModel):
    """An input whose ``framework`` may be any stack that people name; what was named survives a dump."""

    _stack: str | None = PrivateAttr(default=None)

    @property
    def stack(self) -> str | None:
        """The stack named, where ``framework`` holds the one that it is counted by."""
        return self._stack

    @model_validator(mode="wrap")
    @classmethod
    def _counted(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        said = given.get("framework") if isinstance(given, dict) else None
        counted = counted_as(said) if isinstance(said, str) else None
        made = handler({**given, "framework": counted} if counted else given)
        made._stack = said if counted and said != counted else None
        return made

    @model_serializer(mode="wrap")
    def _as_named(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        return {**written, "framework": self._stack} if self._stack and "framework" in written else written


def usual_framework(tp: int, pp: int, cp: int, ep: int) -> Framework:
    """Hugging Face's Trainer replicates and shards; what splits layers, sequences or experts is Megatron's kind."""
    return "megatron" if tp * pp * cp * ep > 1 else "hf"


def usual_framework_why(tp: int, pp: int, cp: int, ep: int) -> tuple[Framework, str]:
    """The stack where none is named, and why it is assumed."""
    chosen = usual_framework(tp, pp, cp, ep)
    if chosen == "hf":
        return chosen, "Hugging Face Trainer conventions"
    return chosen, "conventions of a stack that splits layers or experts; Hugging Face's Trainer does not"
