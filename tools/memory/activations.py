"""What one block keeps for backward, and what its backward needs on top, in bytes a token.

Derived by listing the tensors that autograd saves in each operation of the block (the method of Korthikanti et al.
2022, "Reducing activation recomputation", section 4, redone for RMSNorm, rotary embeddings, grouped queries, gated
MLPs, experts and LoRA, and checked tensor by tensor against Hugging Face modules run under fake tensors):

    norm        fp32 copy 4h, its normalised value when the scale is trained, or only the input in a fused kernel
    linears     one input for each trained weight; PEFT casts its own copy to the adapter's dtype for each target
    attention   queries, keys, values, output and the log-sum-exp; eager adds scores and probabilities, a*S a token
    gated MLP   gate, its activation, up and their product: 4f elements; fused kernels recompute two of the four
    experts     the same for the top-k copies of each token, and the routed copies themselves

``saved_square`` is multiplied by the sequence length once more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from knowledge.types import Architecture
from tools.memory.recipe import Recipe
from tools.memory.shapes import Linear, Shape, adapter_linears, shape_of
from tools.workload import Attention, Checkpointing


@dataclass(frozen=True, slots=True)
class BlockCost:
    """Bytes a token of one block, averaged over dense and expert blocks; the working set is the larger kind's."""

    saved: float
    saved_square: float
    kept: float  # what stays with the checkpointing asked for
    kept_square: float
    working: float  # saved by the largest block when it is recomputed
    back: float  # on top of it, at the height of its backward
    back_square: float


@lru_cache(maxsize=8192)
def block_cost(
    arch: Architecture, recipe: Recipe, adapters: tuple[str, ...], trained: bool, checkpointing: Checkpointing,
    attention: Attention, rank: int, tp: int,
) -> BlockCost:  # fmt: skip
    """The bytes of a block; ``adapters`` are LoRA targets (empty when the weights themselves are trained)."""
    shape = shape_of(arch)
    targets = adapter_linears(arch, adapters) if adapters else ()
    common = _common(shape, recipe, targets, trained, arch, tp)
    square, back_square = _scores(shape, recipe, attention, tp)
    dense, dense_back = _mlp(shape, recipe, targets, trained, shape.ffn, "", tp)
    expert, expert_back = _experts(shape, recipe, targets, trained, tp)
    lora = _adapters(recipe, targets, rank, tp)
    layers = max(1, shape.layers)
    saved = common + lora + (dense * shape.dense_layers + expert * shape.moe_layers) / layers
    largest = common + lora + max(dense if shape.dense_layers else 0.0, expert if shape.moe_layers else 0.0)
    back = recipe.residual * shape.hidden / tp + max(
        dense_back if shape.dense_layers else 0.0, expert_back if shape.moe_layers else 0.0
    )
    block_input = recipe.residual * shape.hidden / tp
    kept, kept_square = saved, square
    if checkpointing == "full":
        kept, kept_square = block_input, 0.0
    elif checkpointing == "selective":
        kept, kept_square = _selective(shape, recipe, saved, block_input, tp), 0.0
    return BlockCost(saved, square, kept, kept_square, largest, back, back_square)


def _common(
    shape: Shape, recipe: Recipe, targets: tuple[Linear, ...], trained: bool, arch: Architecture, tp: int
) -> float:
    """Norms, their outputs and attention, without scores, a token."""
    h, c = shape.hidden, recipe.compute
    norm = _norm(shape, recipe, trained)
    total = shape.norms * (norm + 8) / tp
    inputs = 1 if recipe.share_inputs else 3
    wide = 1.0 if tp == 1 or recipe.tp_regather else float(tp)  # inputs gathered over the tensor-parallel group stay
    if trained:
        total += c * h * inputs * wide / tp
    keys = (shape.q, shape.q) if recipe.kv_expand else (shape.k, shape.v)
    total += c * (shape.q + sum(keys) + shape.out) / tp + 4 * shape.heads / tp
    if trained:
        total += c * shape.low_rank
    if arch.qk_norm:
        total += (4 + (c if trained else 0)) * (shape.q + shape.k) / tp
    if recipe.dropout:
        total += 2 * h / tp
    return total


def _norm(shape: Shape, recipe: Recipe, trained: bool) -> float:
    h, r, c = shape.hidden, recipe.residual, recipe.compute
    if recipe.fused_norm or not shape.rms:
        return r * h
    if r >= 4:
        return (8 if trained else 4) * h
    return (4 + (c if trained else 0)) * h


def _scores(shape: Shape, recipe: Recipe, attention: Attention, tp: int) -> tuple[float, float]:
    """Saved and transient bytes a token and a key position."""
    if attention != "eager":
        return (2.0, 0.0) if recipe.explicit_mask else (0.0, 0.0)
    c = recipe.compute
    heads = shape.heads / tp
    saved = heads * (4 + c) + (heads * (1 + c) if recipe.dropout else 0)  # fp32 softmax, its cast, dropout mask
    if recipe.softcap:
        saved += heads * 2 * c
    return saved, heads * (8 + c)


def _mlp(
    shape: Shape, recipe: Recipe, targets: tuple[Linear, ...], trained: bool, f: int, prefix: str, tp: int
) -> tuple[float, float]:
    h, c = shape.hidden, recipe.compute
    down = any(x.name == prefix + "down" for x in targets)
    wide = 1.0 if tp == 1 or recipe.tp_regather else float(tp)
    total = 0.0
    if trained:
        total += c * h * wide * (1 if recipe.share_inputs or not shape.gated else 2) / tp
    if shape.gated:
        kept = 2 if recipe.fused_mlp else 3
        total += c * f * (kept + (1 if trained else 0)) / tp
        back = c * f * (1 if recipe.fused_mlp else (2 if trained or down else 3)) / tp
    else:
        total += c * f * (2 if trained else 1) / tp
        back = c * f * (1 if trained else 2) / tp
    if recipe.dropout:
        total += h / tp
    return total, back


def _experts(shape: Shape, recipe: Recipe, targets: tuple[Linear, ...], trained: bool, tp: int) -> tuple[float, float]:
    """A token's top-k copies through the experts, with the routed inputs and outputs, and the shared expert."""
    if not shape.moe_layers:
        return 0.0, 0.0
    h, c = shape.hidden, recipe.compute
    inner, back = _mlp(shape, recipe, targets, trained, shape.expert_ffn, "expert_", tp)
    routed = shape.top_k * (inner + c * h / tp)  # each copy's output is kept for its routing weight
    if not trained:
        routed += shape.top_k * c * h / tp
    total = routed + 8 * shape.experts
    if shape.shared_ffn:
        total += _mlp(shape, recipe, targets, trained, shape.shared_ffn, "shared_", tp)[0]
    return total, shape.top_k * back


def _adapters(recipe: Recipe, targets: tuple[Linear, ...], rank: int, tp: int) -> float:
    """Inputs and low-rank hidden values that LoRA keeps for its own gradients."""
    total, seen = 0.0, set()
    copy = recipe.compute if recipe.autocast or recipe.fused_lora else max(recipe.adapter, recipe.compute)
    own_copy = recipe.adapter > recipe.compute and not recipe.fused_lora
    for linear in targets:
        if linear.name in ("head", "embed"):
            continue
        place = linear.name if own_copy else _PLACE.get(linear.name, linear.name)
        share = linear.blocks and linear.copies == 1
        if place not in seen or not share:
            total += copy * linear.inputs / tp
        seen.add(place)
        total += recipe.adapter * rank
    return total


_PLACE = {"q": "h1", "k": "h1", "v": "h1", "qkv": "h1", "gate": "h2", "up": "h2", "gate_up": "h2"}


def _selective(shape: Shape, recipe: Recipe, saved: float, block_input: float, tp: int) -> float:
    """Selective checkpointing: Megatron recomputes only the attention core; torchtitan keeps every other matmul."""
    c = recipe.compute
    if recipe.selective_saves == "ops":
        kept = c * (shape.q + shape.v + shape.ffn + shape.out) / tp + 4 * shape.heads / tp + c * shape.hidden / tp
        return min(saved, block_input + kept)
    return saved
