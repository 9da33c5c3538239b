"""What one block keeps for backward, and the height of its working set, in bytes a token.

Derived by listing the tensors that autograd saves in each operation of the block (the method of Korthikanti et al.
2022, "Reducing activation recomputation", section 4, redone for RMSNorm, rotary embeddings, grouped queries, gated
MLPs, experts and LoRA, and checked tensor by tensor against Hugging Face modules run under fake tensors):

    norm        fp32 copy 4h, its normalised value when the scale is trained, or only the input in a fused kernel
    linears     one input for each trained weight; PEFT casts its own copy to the adapter's dtype for each target
    attention   queries, keys, values, output and the log-sum-exp; eager adds scores and probabilities, a*S a token
    gated MLP   gate, its activation, up and their product: 4f elements; fused kernels recompute two of the four
    experts     the same for the top-k copies of each token, and the routed copies themselves

``..._square`` are multiplied by the sequence length once more.
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
    """Bytes a token of one block: kept by a dense and by an expert block, and the heights of the largest block.

    ``mlp_height`` and ``attention_height`` are all that is alive in the block's MLP and attention while it is
    recomputed and goes backward; the larger of the two counts.
    """

    kept_dense: float
    kept_experts: float
    kept_square: float
    saved: float
    saved_square: float
    mlp_height: float
    mlp_height_square: float
    attention_height: float
    attention_height_square: float


TILES = 8.0  # ALST slices the sequence into about its length over the hidden size; at least this many


@dataclass(frozen=True, slots=True)
class _Mlp:
    saved: float
    height: float


@lru_cache(maxsize=8192)
def block_cost(
    arch: Architecture, recipe: Recipe, adapters: tuple[str, ...], trained: bool, checkpointing: Checkpointing,
    attention: Attention, rank: int, tp: int,
) -> BlockCost:  # fmt: skip
    """The bytes a token of one block on one GPU; fields named "square" are bytes a token and token of context.
    ``adapters`` are LoRA targets (empty when the weights themselves are trained). Cached.
    """
    shape = shape_of(arch)
    targets = adapter_linears(arch, adapters, recipe.fused_qkv, recipe.fused_gate) if adapters else ()
    names = frozenset(target.name for target in targets)
    h, r, c = shape.hidden / tp, recipe.residual, recipe.compute
    first, second = _norms(shape, recipe, trained, tp)
    square, square_height = _scores(shape, recipe, attention, tp)
    core = _attention(shape, recipe, arch, trained, attention, tp) + _adapters(
        recipe, targets, rank, tp, _ATTENTION_SIDE
    )
    if recipe.lora_padding:
        parts = [one for one in adapter_linears(arch, adapters) if one.name in ("q", "k", "v")]
        core += c * sum(one.outputs for one in parts) / tp if len(parts) < 3 else 0.0
    if recipe.linear_outputs:
        core += c * (shape.q + shape.k + shape.v + 2 * shape.hidden + (2 if shape.gated else 1) * shape.ffn) / tp
    lora = _adapters(recipe, targets, rank, tp, None) - _adapters(recipe, targets, rank, tp, _ATTENTION_SIDE)
    dense = _mlp(shape, recipe, names, trained, shape.ffn, "", tp)
    expert = _experts(shape, recipe, names, trained, tp)
    rest = first + second + core + lora
    kinds = [kind for kind, count in ((dense, shape.dense_layers), (expert, shape.moe_layers)) if count]
    largest = max((kind.saved for kind in kinds), default=0.0) + lora
    height = max((kind.height for kind in kinds), default=0.0) + lora
    # Alive beside the block's own tensors: the incoming gradient, and in a frozen block the residual stream and the
    # norm's output, which nothing saves.
    passing = r * h + (0.0 if trained else r * h + c * h)
    if not trained and "down" in names and recipe.adapter > c and not _cast(recipe):
        passing += (recipe.adapter + c) * h  # the gradient cast for the last adapter before the block is recomputed
    back = c * (shape.q + shape.k + shape.v + shape.out) / tp if attention != "eager" else 0.0
    kept = [rest + dense.saved, rest + expert.saved]
    kept_square = square
    if checkpointing == "full":
        inputs = 0.0 if recipe.inputs_on_host else r * h
        kept, kept_square = [inputs, inputs], 0.0
    elif checkpointing == "selective":
        kept, kept_square = [_selective(shape, recipe, saved, r * h, tp) for saved in kept], 0.0
    return BlockCost(
        kept_dense=kept[0],
        kept_experts=kept[1],
        kept_square=kept_square,
        saved=first + second + core + largest,
        saved_square=square,
        mlp_height=first + second + core + height + passing,
        mlp_height_square=square,
        attention_height=first + core + passing + back,
        attention_height_square=square + square_height,
    )


_ATTENTION_SIDE = frozenset({"q", "k", "v", "o", "qkv", "q_a", "q_b", "kv_a", "kv_b"})


def _norms(shape: Shape, recipe: Recipe, trained: bool, tp: int) -> tuple[float, float]:
    """What the norms of the attention and of the MLP side keep."""
    h, r, c = shape.hidden / tp, recipe.residual, recipe.compute
    if recipe.fused_norm or not shape.rms:
        one = r * h
    elif r >= 4 or recipe.fp32_norm:
        one = (8 if trained else 4) * h
    else:
        one = (4 + (c if trained else 0)) * h
    if recipe.shared_norm_input and not recipe.fused_norm and not trained:
        one /= 2  # parallel attention and MLP: both norms keep the same input
    half = (one + 8) * shape.norms / 2
    return half, half


def _attention(shape: Shape, recipe: Recipe, arch: Architecture, trained: bool, attention: Attention, tp: int) -> float:
    """The norm's output as the projections' input, queries, keys, values, output, log-sum-exp."""
    h, c = shape.hidden, recipe.compute
    wide = 1.0 if tp == 1 or recipe.tp_regather else float(tp)  # gathered inputs stay alive where they are not redone
    total = c * h * (1 if recipe.share_inputs else 3) * wide / tp if trained or recipe.linear_inputs else 0.0
    # Repeating a single kv head is a view; several are copied.
    keys = 2 * shape.q if recipe.kv_expand and arch.n_kv_heads > 1 else shape.k + shape.v
    total += c * (shape.q + keys) / tp
    copied = recipe.kv_expand and 1 < arch.n_kv_heads < arch.n_heads
    if recipe.fused_qkv and recipe.rotary and not copied and arch.mla is None:
        total += c * (shape.q + shape.k) / tp
    if attention != "eager":
        total += (c * shape.out * (2 if recipe.copied_output and trained else 1) + 4 * shape.heads) / tp
    elif trained:
        total += c * shape.out / tp  # the output projection's input; the score product itself does not keep it
    if trained:
        total += c * shape.low_rank
    if arch.qk_norm and not recipe.fused_norm:
        scaled = 4 if recipe.fp32_norm else c
        total += (4 + (scaled if trained else 0)) * (shape.q + shape.k) / tp
    elif arch.qk_norm:
        total += c * (shape.q + shape.k) / tp
    if recipe.dropout:
        total += 2 * h / tp
    return total


def _scores(shape: Shape, recipe: Recipe, attention: Attention, tp: int) -> tuple[float, float]:
    """Saved and transient bytes a token and a key position: softmax in fp32 and its cast, mask, soft cap."""
    c, heads = recipe.compute, shape.heads / tp
    if attention == "sdpa" and recipe.math_sdpa:
        return 4 * heads + (c if recipe.explicit_mask else 0.0), 8 * heads
    if attention != "eager":
        return (c, 0.0) if recipe.explicit_mask else (0.0, 0.0)
    if recipe.softmax < 4 <= c + 2:
        return heads * (c + (1 + c if recipe.dropout else 0)), heads * 2 * c
    saved = heads * (recipe.softmax + (c if recipe.softmax != c else 0))
    if recipe.dropout:
        saved += heads * (1 + c)
    if recipe.softcap:
        saved += heads * c
    return saved, heads * (2 * recipe.softmax - c)


def _mlp(shape: Shape, recipe: Recipe, names: frozenset[str], trained: bool, f: int, prefix: str, tp: int) -> _Mlp:
    """Saved tensors and the height of an MLP of width ``f``, its LoRA copies apart."""
    h, c = shape.hidden, recipe.compute
    a = c if _cast(recipe) else recipe.adapter
    down, up = prefix + "down" in names, bool({prefix + "up", prefix + "gate", prefix + "gate_up"} & names)
    wide = 1.0 if tp == 1 or recipe.tp_regather else float(tp)
    inputs = 0.0
    if trained or recipe.linear_inputs:
        inputs = c * h * wide * (1 if recipe.share_inputs or not shape.gated else 2) / tp
    width = f / tp
    own = a * width if down and a > c and not _cast(recipe) else 0.0
    if shape.gated and recipe.fused_mlp:
        base, height = 2 * c * width, 3 * c * width
    elif shape.gated:
        base, height = 3 * c * width, 6 * c * width
    else:
        kept = {"native": 1, "gelu_new": 4, "relu": 0 if trained else 1}[recipe.activation]
        base = kept * c * width
        height = base + (3 if recipe.activation == "gelu_new" else 2) * c * width
    saved = base + (c * width if trained or recipe.linear_inputs else 0.0)
    if trained:
        height = max(height, saved + c * width)
    if up and not recipe.fused_lora:
        height = max(height, base + 2 * a * width - own)  # the adapter's output and its scaled copy beside the base's
    if own:
        height = max(height, base + c * width, base + own)
    if recipe.dropout:
        inputs += h / tp
    if recipe.tiled_mlp:
        saved, height = saved / TILES, height / TILES
    return _Mlp(inputs + saved, inputs + height)


def _experts(shape: Shape, recipe: Recipe, names: frozenset[str], trained: bool, tp: int) -> _Mlp:
    """A token's top-k copies through the experts, with the routed inputs and outputs, and the shared expert."""
    if not shape.moe_layers:
        return _Mlp(0.0, 0.0)
    h, c = shape.hidden / tp, recipe.compute
    inner = _mlp(shape, recipe, names, trained, shape.expert_ffn, "expert_", tp)
    routed = inner.saved + c * h + (0.0 if trained else c * h)  # each copy's output is kept for its routing weight
    share = shape.top_k / shape.experts if recipe.expert_loop else shape.top_k  # a loop works on one expert at a time
    saved = shape.top_k * routed + 8 * shape.experts
    height = saved + share * (inner.height - inner.saved)
    if shape.shared_ffn:
        shared = _mlp(shape, recipe, names, trained, shape.shared_ffn, "shared_", tp)
        saved, height = saved + shared.saved, height + shared.saved
    return _Mlp(saved, height)


def _adapters(recipe: Recipe, targets: tuple[Linear, ...], rank: int, tp: int, only: frozenset[str] | None) -> float:
    """Inputs and low-rank hidden values that LoRA keeps for its own gradients."""
    total, seen = 0.0, set()
    own_copy = recipe.adapter > recipe.compute and not recipe.fused_lora
    copy = recipe.adapter if own_copy and not _cast(recipe) else min(recipe.compute, recipe.adapter)
    for linear in targets:
        if linear.name in ("head", "embed") or (only is not None and linear.name not in only):
            continue
        place = linear.name
        if not own_copy and not recipe.lora_dropout:
            place = _PLACE.get(linear.name, linear.name)
        if place not in seen:
            total += (copy + (1 if recipe.lora_dropout else 0)) * linear.inputs / tp
        seen.add(place)
        total += recipe.adapter * rank
    return total


def _cast(recipe: Recipe) -> bool:
    """Whether adapters see inputs in the compute dtype."""
    return recipe.autocast or recipe.lora_autocast or recipe.fused_lora


_PLACE = {"q": "h1", "k": "h1", "v": "h1", "qkv": "h1", "gate": "h2", "up": "h2", "gate_up": "h2"}


def _selective(shape: Shape, recipe: Recipe, saved: float, block_input: float, tp: int) -> float:
    """Selective checkpointing: Megatron recomputes only the attention core; torchtitan keeps every other matmul."""
    c = recipe.compute
    if recipe.selective_saves == "ops":
        kept = c * (shape.q + shape.v + shape.ffn + shape.out + shape.hidden) / tp + 4 * shape.heads / tp
        return min(saved, block_input + kept)
    return saved
