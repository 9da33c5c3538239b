"""Recipes: how many bytes each framework keeps for a parameter, and which tensors its layers save.

Nothing here is fitted to a measurement: each figure is what the framework's code allocates. Names:
Bytes per parameter of full AdamW training (weights + gradients + states; the temporary at the step in brackets):

    pure bf16 (torch.optim on bf16 weights)               2 + 2 + 4  =  8 (+2)
    fp32 weights, bf16 autocast or FSDP mixed precision   4 + 4 + 8  = 16 (+4)
    DeepSpeed/Colossal ZeRO: bf16 weights, fp32 master    2 + 2 + 12 = 16, cut by stage
    Megatron with distributed optimizer                   2 + 4 + 12/DP = 6 + 12/DP
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from tools.workload import Framework, Job, Method, Optimizer, Precision, Sharding

Loss = Literal["hf", "fp32", "fused_ce", "chunked", "linear", "bf16", "vocab_parallel"]
Convention = Literal["pure", "mixed", "master", "megatron"]

# NF4: 4 bits a weight and one fp32 constant per 64 (QLoRA paper, section 3); double quantisation brings that to an
# 8-bit constant per 64 and an fp32 one per 256 of those (4.127 bits). GPTQ/AWQ at group 128: fp16 scale, 4-bit zero.
QUANT_BYTES: dict[str, float] = {
    "nf4": 0.5 + 4 / 64,
    "nf4_double": 0.5 + 1 / 64 + 4 / (64 * 256),
    "fp4": 0.5 + 4 / 64,
    "int4": 0.5 + 2.5 / 128,
    "mxfp4": 0.5 + 1 / 32,
    "int8": 1.0 + 2 / 4096,
    "fp8": 1.0,
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """Dtypes in bytes and the layer implementation; everything the formulas need beside the job."""

    name: str
    convention: Convention = "mixed"
    quant: str | None = None  # key of QUANT_BYTES for a frozen base
    weight: float = 2.0  # trained weights as stored (sharded where sharding shards them)
    frozen: float = 2.0  # frozen weights that are not quantised: embeddings, head, norms under QLoRA
    compute: float = 2.0  # activations and matmul operands
    autocast: bool = False  # weights are cast at each use and the casts live until backward
    grad: float = 2.0
    grads_persist: bool = False  # gradient buffers allocated through forward and backward (Megatron, ZeRO buckets)
    master: float = 0.0
    state: float = 2.0  # one AdamW moment
    step_temp: float = 2.0  # foreach temporary a trained parameter at the optimizer step
    adapter: float = 4.0  # LoRA weights, gradients and moments
    gather: float = 2.0  # parameters gathered for use under FSDP/ZeRO-3
    gathered_units: float = 1.0  # blocks unsharded at once; recomputation gathers no second one ahead
    root_unsharded: bool = True  # embeddings, head and final norm stay gathered from forward to the end of backward
    flat_frozen_grads: bool = False  # FSDP1 flat parameters: frozen weights get unsharded gradients (2023 stacks)
    bucket: float = 0.0  # bytes of communication buckets
    # The layer implementation.
    residual: float = 2.0
    fp32_norm: bool = False  # Gemma scales in fp32, so the normalised value is kept in fp32
    activation: str = "native"
    fused_norm: bool = False  # one kernel that saves its bf16 input instead of fp32 copies
    fused_mlp: bool = False  # activation and product recomputed in backward (Liger, Unsloth, Triton SwiGLU)
    fused_lora: bool = False  # LoRA without its own input copies
    lora_dropout: bool = False  # a mask byte beside each adapter's input
    linear_outputs: bool = False  # trained scales and biases on every linear layer (LLaMA-Adapter v2) keep its output
    extra_inputs: float = 0.0  # further copies of a block's input alive in backward under checkpointing
    lora_autocast: bool = False  # adapters run under autocast: their input copies are in the compute dtype
    fused_qkv: bool = False  # one projection, whose whole output lives as long as the values, a view into it
    fused_gate: bool = False  # gate and up in one matrix, adapted as one
    shared_norm_input: bool = False
    untied: bool = False  # embeddings and head are separate modules even where the checkpoint ties them
    share_inputs: bool = True  # q, k, v (gate, up) save one input; autocast from fp32 casts one for each
    softmax: float = 4.0  # dtype of eager attention's softmax
    expert_loop: bool = True  # experts run one after the other, not as one grouped product
    kv_expand: bool = False  # keys and values repeated to all heads before attention
    explicit_mask: bool = False  # a mask tensor in compute dtype saved by each SDPA call
    mask_bytes: float = 0.0
    dropout: bool = False
    selective_saves: str = "attention"
    tp_regather: bool = True  # Megatron sequence parallel gathers inputs again in backward instead of saving them
    # Loss.
    loss: Loss = "hf"
    softcap: bool = False
    # Around the live tensors.
    context: str = "torch"


_QUANT_OF: dict[Precision, str] = {
    "nf4": "nf4_double", "int4": "int4", "int8": "int8", "fp4": "fp4", "mxfp4": "mxfp4",
}  # fmt: skip
_TRAINED: dict[Convention, dict[str, float]] = {
    "pure": {"weight": 2, "grad": 2, "master": 0, "state": 2, "step_temp": 2},
    "mixed": {"weight": 4, "grad": 4, "master": 0, "state": 4, "step_temp": 4},
    "master": {"weight": 2, "grad": 2, "master": 4, "state": 4, "step_temp": 4},
    "megatron": {"weight": 2, "grad": 4, "master": 4, "state": 4, "step_temp": 0},
}
# Activations written as a chain of operations (0.5x, tanh, 1 + tanh are kept), or whose output is what is kept.
GELU_NEW_FAMILIES = frozenset({"gpt2", "gpt-neo", "gpt_neo", "gpt-j", "gptj", "phi"})
FP32_NORM_FAMILIES = frozenset({"gemma", "olmo2", "olmo3"})
PARALLEL_FAMILIES = frozenset({"gpt-neox", "pythia"})
FUSED_GATE_FAMILIES = frozenset({"phi3", "glm", "chatglm"})
FUSED_QKV_FAMILIES = frozenset({"gpt-neox", "pythia", "falcon", "internlm", "baichuan", "qwen", "chatglm", "phi3"})
LOW_SOFTMAX_FAMILIES = frozenset({"gpt2"})  # eager softmax in the compute dtype
RELU_FAMILIES = frozenset({"opt"})
HF_FRAMEWORKS = frozenset({"hf", "trl", "axolotl", "llama-factory", "fms", "deepspeed"})
MASTER_FRAMEWORKS = frozenset({"deepspeed"})
MIXED_FRAMEWORKS = frozenset({"torchtitan", "nanogpt", "llm-foundry", "maxtext"})
PURE_FRAMEWORKS = frozenset({"torchtune", "unsloth", "litgpt", "fms"})
ZERO = frozenset({"zero1", "zero2", "zero3"})


def recipe_for(job: Job) -> Recipe:
    """The recipe of a job, cached: the framework's conventions under the job's precision, sharding and method."""
    return _recipe(
        job.framework, job.precision, job.method, job.sharding, job.n_gpus > 1, job.optimizer, job.fused_loss,
        "phi3" if job.arch.family == "phi" and job.arch.gated_mlp else job.arch.family, "gemma-2-" in job.arch.id.lower(), job.is_adapter,
    )  # fmt: skip


def convention_of(framework: Framework, precision: Precision, sharding: Sharding) -> Convention:
    """Which bytes-per-parameter convention a full fine-tune under these choices follows."""
    if framework in ("megatron", "nemo"):
        return "megatron"
    if sharding in ZERO or framework in MASTER_FRAMEWORKS:
        return "master"
    if precision in ("bf16_mixed", "fp16_mixed", "fp32", "fp8") or framework in MIXED_FRAMEWORKS:
        return "mixed"
    return "pure"


@lru_cache(maxsize=4096)
def _recipe(
    framework: Framework, precision: Precision, method: Method, sharding: Sharding, several: bool,
    optimizer: Optimizer, fused_loss: bool, family: str, softcap: bool, adapter: bool,
) -> Recipe:  # fmt: skip
    convention = convention_of(framework, precision, sharding)
    recipe = Recipe(name=framework, convention=convention, **_TRAINED[convention])  # type: ignore[arg-type]
    if precision == "fp32":
        recipe = replace(recipe, compute=4.0, frozen=4.0, residual=4.0, gather=4.0)
    quant = _QUANT_OF.get(precision) if adapter else None
    if quant or method == "qlora":
        recipe = replace(recipe, quant=quant or "nf4_double")
    if precision in ("bf16_mixed", "fp16_mixed") and adapter and not recipe.quant:
        recipe = replace(recipe, frozen=4.0)
    if convention == "mixed" and sharding not in ("fsdp", "hsdp", "zero3") and precision != "fp32":
        recipe = replace(recipe, autocast=True, residual=4.0, share_inputs=False)
    if optimizer in ("adamw_8bit", "paged_adamw_8bit", "paged_adamw", "adafactor", "lion", "sgd", "muon", "galore"):
        recipe = replace(recipe, step_temp=0.0)
    recipe = _profile(recipe, framework, sharding, adapter)
    if adapter and framework in HF_FRAMEWORKS:
        recipe = replace(recipe, lora_autocast=precision != "fp32")  # the Trainer's bf16=True
    if recipe.quant and framework in ("hf", "trl") and sharding not in ("fsdp", "hsdp", "zero3"):
        # peft.prepare_model_for_kbit_training casts what is not quantised to fp32, and with it the residual stream.
        recipe = replace(recipe, frozen=4.0, residual=4.0, share_inputs=False)
    if sharding in ("fsdp", "hsdp") and adapter and framework in HF_FRAMEWORKS | {"litgpt"}:
        # FSDP wraps adapters apart from their block; measured slopes with the batch show one more bf16 copy of each
        # block's input alive in backward than without FSDP or with every weight trained (fms-acceleration, 2 and 4 GPUs).
        recipe = replace(recipe, extra_inputs=1.0)
    if fused_loss:
        recipe = replace(recipe, loss="linear")
    return replace(
        recipe, softcap=softcap, fp32_norm=family in FP32_NORM_FAMILIES,
        shared_norm_input=family in PARALLEL_FAMILIES,
        fused_gate=framework in HF_FRAMEWORKS and family in FUSED_GATE_FAMILIES, dropout=family in ("gpt2",),
        fused_qkv=recipe.fused_qkv or (framework in HF_FRAMEWORKS and family in FUSED_QKV_FAMILIES),
        softmax=recipe.compute if family in LOW_SOFTMAX_FAMILIES else 4.0,
        activation="gelu_new" if family in GELU_NEW_FAMILIES and framework in HF_FRAMEWORKS else "relu" if family in RELU_FAMILIES else "native",
    )  # fmt: skip


def _profile(recipe: Recipe, framework: Framework, sharding: Sharding, adapter: bool) -> Recipe:
    """What differs from Hugging Face's modules in one framework, by reading its code."""
    if framework == "litgpt":
        recipe = replace(
            recipe, adapter=recipe.weight, loss="bf16", kv_expand=True, step_temp=recipe.state, untied=True,
            lora_dropout=adapter, fused_qkv=True,
        )  # fmt: skip
        if recipe.quant:
            # The bitsandbytes precision plugin replaces bf16-true: what it does not quantise computes in fp32.
            recipe = replace(recipe, compute=4.0, residual=4.0, adapter=4.0)
        return recipe
    if framework in ("megatron", "nemo"):
        return replace(
            recipe, grads_persist=True, fused_norm=True, fused_mlp=False, loss="vocab_parallel", adapter=4.0,
            selective_saves="core_attention", root_unsharded=False,
        )  # fmt: skip
    if framework == "torchtitan":
        return replace(recipe, kv_expand=True, loss="fp32", selective_saves="ops", tp_regather=False)
    if framework == "torchtune":
        return replace(recipe, loss="chunked", kv_expand=True, adapter=2.0)
    if framework == "unsloth":
        return replace(recipe, fused_norm=True, fused_mlp=True, fused_lora=True, loss="linear")
    if framework == "llm-foundry":
        return replace(recipe, fused_norm=True, loss="fp32")
    if framework == "maxtext":
        return replace(recipe, fused_norm=True, loss="fp32", step_temp=0.0)
    if framework == "nanogpt":
        return replace(recipe, loss="bf16", step_temp=0.0, fused_norm=True)
    if framework == "deepspeed" or sharding in ZERO:
        # Two flat buckets of 5e8 elements (DeepSpeed's default reduce and all-gather bucket sizes), in bf16.
        return replace(recipe, bucket=0.0 if adapter else 2e9, grads_persist=sharding == "zero1", root_unsharded=False)
    return recipe
