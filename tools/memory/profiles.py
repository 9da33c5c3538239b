"""From a job to its recipe: the conventions of each framework and the traits of each model family, by reading code."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from tools.frameworks import Framework
from tools.memory.recipe import Convention, Recipe
from tools.workload import Job, Method, Optimizer, Precision, Sharding

_QUANT_OF: dict[Precision, str] = {
    "nf4": "nf4_double", "int4": "int4", "int8": "int8", "fp4": "fp4", "mxfp4": "mxfp4",
}  # fmt: skip
_TRAINED: dict[Convention, dict[str, float]] = {
    "pure": {"weight": 2, "grad": 2, "master": 0, "state": 2, "step_temp": 2},
    "mixed": {"weight": 4, "grad": 4, "master": 0, "state": 4, "step_temp": 4},
    "master": {"weight": 2, "grad": 2, "master": 4, "state": 4, "step_temp": 4},
    "megatron": {"weight": 2, "grad": 4, "master": 4, "state": 4, "step_temp": 0},
}
MIXED_FRAMEWORKS = frozenset({"torchtitan", "nanogpt", "llm-foundry", "maxtext"})
HF_FRAMEWORKS = frozenset({"hf", "trl", "axolotl", "llama-factory", "fms", "deepspeed"})
ZERO = frozenset({"zero1", "zero2", "zero3"})
FSDP = frozenset({"fsdp", "hsdp"})
# Optimizers whose PyTorch step makes no temporary of the size of the parameters: fused or one tensor at a time.
LEAN_OPTIMIZERS = frozenset({
    "adamw_8bit", "paged_adamw_8bit", "paged_adamw", "adafactor", "lion", "sgd", "muon", "galore",
})  # fmt: skip

# Traits of families, in any framework and in Hugging Face's modules only.
_TRAITS: dict[str, dict[str, Any]] = {
    "gemma": {"fp32_norm": True},
    "olmo2": {"fp32_norm": True},
    "olmo3": {"fp32_norm": True},
    "gpt-neox": {"shared_norm_input": True},
    "pythia": {"shared_norm_input": True},
    "opt": {"activation": "relu"},
    "bert": {"dropout": True},
    "roberta": {"dropout": True},
    "deberta": {"dropout": True},
}
_HF_TRAITS: dict[str, dict[str, Any]] = {
    "gpt2": {"activation": "gelu_new", "dropout": True, "softmax": 2.0, "fused_qkv": True, "rotary": False},
    "starcoder": {"fused_qkv": True, "rotary": False},
    "bloom": {"fused_qkv": True, "rotary": False},
    "mpt": {"fused_qkv": True, "rotary": False},
    "gpt-neo": {"activation": "gelu_new"},
    "gpt-j": {"activation": "gelu_new"},
    "phi": {"activation": "gelu_new"},
    "phi3": {"fused_qkv": True, "fused_gate": True},
    "glm": {"fused_gate": True},
    "gpt-neox": {"fused_qkv": True},
    "pythia": {"fused_qkv": True},
    "falcon": {"fused_qkv": True, "softmax": 2.0, "math_sdpa": True},
    "internlm": {"fused_qkv": True},
}


def recipe_for(job: Job) -> Recipe:
    """The recipe of a job, cached: the framework's conventions under the job's precision, sharding and method."""
    arch = job.arch
    family = "phi3" if arch.family == "phi" and arch.gated_mlp else arch.family
    return _recipe(
        job.framework, job.precision, job.method, job.sharding, job.optimizer, job.fused_loss, job.compile, family,
        "gemma-2-" in arch.id.lower(), job.is_adapter,
    )  # fmt: skip


def convention_of(framework: Framework, precision: Precision, sharding: Sharding) -> Convention:
    """Which bytes-per-parameter convention a full fine-tune under these choices follows."""
    if framework in ("megatron", "nemo"):
        return "megatron"
    if sharding in ZERO or framework == "deepspeed":
        return "master"
    if precision in ("bf16_mixed", "fp16_mixed", "fp32", "fp8") or framework in MIXED_FRAMEWORKS:
        return "mixed"
    return "pure"


@lru_cache(maxsize=4096)
def _recipe(
    framework: Framework, precision: Precision, method: Method, sharding: Sharding, optimizer: Optimizer,
    fused_loss: bool, compiled: bool, family: str, softcap: bool, adapter: bool,
) -> Recipe:  # fmt: skip
    convention = convention_of(framework, precision, sharding)
    recipe = Recipe(name=framework, convention=convention, **_TRAINED[convention])  # type: ignore[arg-type]
    if precision == "fp32":
        recipe = replace(recipe, compute=4.0, frozen=4.0, residual=4.0, gather=4.0)
    if convention == "mixed" and sharding not in FSDP and precision != "fp32":
        recipe = replace(recipe, autocast=True, residual=4.0, share_inputs=False)
    if optimizer in LEAN_OPTIMIZERS:
        recipe = replace(recipe, step_temp=0.0)
    elif convention != "master":
        # Fused AdamW, the default of current stacks; foreach versions make one temporary a trained parameter.
        recipe = replace(recipe, step_temp=0.0)
    if adapter:
        recipe = _adapter(recipe, precision, method)
    recipe = _framework(recipe, framework, sharding, adapter)
    if adapter and framework in HF_FRAMEWORKS:
        recipe = _peft(recipe, framework, precision, sharding)
    if fused_loss:
        recipe = replace(recipe, loss="linear")
    if compiled:
        # Inductor recomputes pointwise chains in backward: norms keep their input, the MLP its two products.
        recipe = replace(recipe, fused_norm=True, fused_mlp=True)
        if recipe.loss == "titan":
            recipe = replace(recipe, loss="fp32")  # the compiled loss reads the 16-bit logits
    traits = _TRAITS.get(family, {}) | (_HF_TRAITS.get(family, {}) if framework in HF_FRAMEWORKS else {})
    return replace(recipe, softcap=softcap, **traits)


def _adapter(recipe: Recipe, precision: Precision, method: Method) -> Recipe:
    quant = _QUANT_OF.get(precision) or ("nf4_double" if method == "qlora" else None)
    if quant is None and precision in ("bf16_mixed", "fp16_mixed"):
        return replace(recipe, frozen=4.0)
    return replace(recipe, quant=quant)


def _peft(recipe: Recipe, framework: Framework, precision: Precision, sharding: Sharding) -> Recipe:
    """PEFT under the Hugging Face Trainer: fp32 adapters, run under autocast when the Trainer's bf16 is on."""
    recipe = replace(recipe, lora_autocast=precision != "fp32")
    if sharding in FSDP:
        # FSDP wraps adapters apart from their block; measured slopes with the batch show one more bf16 copy of each
        # block's input alive in backward than without FSDP or with every weight trained (fms-acceleration).
        recipe = replace(recipe, extra_inputs=1.0)
    elif recipe.quant and framework == "trl" and sharding != "zero3":
        recipe = upcast_for_kbit(recipe)
    return recipe


def upcast_for_kbit(recipe: Recipe) -> Recipe:
    """peft.prepare_model_for_kbit_training: what is not quantised in fp32, and with it the residual stream."""
    return replace(recipe, frozen=4.0, residual=4.0, share_inputs=False)


def _framework(recipe: Recipe, framework: Framework, sharding: Sharding, adapter: bool) -> Recipe:
    """What differs from Hugging Face's modules in one framework."""
    if framework == "litgpt":
        recipe = replace(
            recipe, adapter=recipe.weight, loss="bf16", kv_expand=True, step_temp=recipe.state, untied=True,
            lora_dropout=adapter, lora_padding=adapter, fused_qkv=True,
            extra_inputs=1.0 if adapter and sharding in FSDP else 0.0,
        )  # fmt: skip
        if recipe.quant:
            # The bitsandbytes precision plugin replaces bf16-true: what it does not quantise computes in fp32.
            recipe = replace(recipe, compute=4.0, residual=4.0)
        return recipe
    if framework in ("megatron", "nemo"):
        return replace(
            recipe, grads_persist=True, fused_norm=True, fused_mlp=True, loss="vocab_parallel",
            selective_saves="core_attention", root_unsharded=False,
            wgrad=6.0,  # the bf16 product and its fp32 copy, added to main_grad
        )  # fmt: skip
    if framework == "torchtitan":
        return replace(recipe, kv_expand=True, loss="titan", selective_saves="ops", tp_regather=False)
    if framework == "torchtune":
        return replace(recipe, loss="chunked", kv_expand=True, adapter=2.0)
    if framework == "unsloth":
        return replace(recipe, fused_norm=True, fused_mlp=True, fused_lora=True, loss="linear", inputs_on_host=True)
    if framework == "llm-foundry":
        return replace(recipe, fused_norm=True, loss="fused_bf16", fused_qkv=True, rotary=False)
    if framework == "maxtext":
        return replace(recipe, fused_norm=True, loss="fp32", step_temp=0.0)
    if framework == "nanogpt":
        return replace(recipe, loss="bf16", step_temp=0.0, fused_norm=True)
    if framework == "deepspeed" or sharding in ZERO:
        # Two flat buckets of 5e8 elements (DeepSpeed's default reduce and all-gather bucket sizes), in bf16.
        # ZeRO-3 gathers ahead up to stage3_max_live_parameters, 1e9 by default.
        return replace(
            recipe, bucket=0.0 if adapter else 2e9, root_unsharded=False,
            live_params=1e9 if sharding == "zero3" else 0.0,
        )  # fmt: skip
    return recipe
