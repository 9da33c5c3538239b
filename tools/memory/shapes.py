"""Parameter counts by place in the model, read off an architecture once and cached.

Counts follow from the published shapes: attention h*q + 2*h*kv + q*h (DeepSeek-V2 section 2.1 for MLA), a gated MLP
3*h*f (Shazeer 2020, GLU variants) or a plain one 2*h*f, experts times that (Shazeer 2017). What the shapes do not
explain (positions, a vision tower, biases) is ``other``, so that the total stays the published one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from knowledge.types import Architecture


@dataclass(frozen=True, slots=True)
class Linear:
    """One linear layer of a block: canonical name, widths, and how many blocks hold it."""

    name: str
    inputs: int
    outputs: int
    blocks: int
    copies: int = 1  # experts

    @property
    def weights(self) -> int:
        """Weights over the whole model, a count: inputs x outputs x blocks x experts."""
        return self.inputs * self.outputs * self.blocks * self.copies


@dataclass(frozen=True, slots=True)
class Shape:
    """An architecture as the memory formulas need it."""

    layers: int
    hidden: int
    heads: int
    q: int  # width of the queries over all heads
    k: int
    v: int
    out: int  # width of the attention output before the output projection
    dense_layers: int
    moe_layers: int
    ffn: int
    expert_ffn: int
    shared_ffn: int
    experts: int
    top_k: int
    vocab: int
    gated: bool
    rms: bool
    norms: int
    embed: int
    head: int
    block: int  # parameters of the largest block
    dense_block: int
    attention_block: int  # an expert block without its routed experts
    experts_block: int  # parameters of all routed experts of one MoE block
    routed: int  # parameters of all routed experts of the model
    norm_weights: int
    linear_weights: int  # entries of all linear layers in the blocks (what 4-bit loaders quantise)
    other: int
    total: int
    tied: bool
    linears: tuple[Linear, ...]
    widest: int  # entries of the largest linear layer
    low_rank: int = 0  # widths of MLA's compressed queries and keys/values, saved once a token


@lru_cache(maxsize=1024)
def shape_of(arch: Architecture) -> Shape:
    """The counts of ``arch``; a shape that is not published becomes blocks of the leftover parameters."""
    h, layers = arch.hidden_size, max(1, arch.n_layers)
    mla, moe = arch.mla, arch.moe
    if mla is not None:
        q = arch.n_heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim)
        k, v, out = q, arch.n_heads * mla.v_head_dim, arch.n_heads * mla.v_head_dim
    else:
        q = out = arch.n_heads * arch.head_dim
        k = v = arch.n_kv_heads * arch.head_dim
    moe_layers = 0
    if moe is not None:
        moe_layers = max(0, (layers - moe.first_dense_layers) // max(1, moe.every))
    linears = _linears(arch, q, k, v, out, layers, moe_layers)
    attention = sum(x.inputs * x.outputs for x in linears if x.name in _ATTENTION)
    dense = sum(x.inputs * x.outputs for x in linears if x.name in _MLP and x.blocks and x.copies == 1)
    experts = sum(x.inputs * x.outputs * x.copies for x in linears if x.name.startswith("expert_"))
    shared = sum(x.inputs * x.outputs for x in linears if x.name.startswith("shared_") or x.name == "router")
    norms = arch.norms_per_layer * h * (2 if arch.norm == "layernorm" else 1)
    embed = arch.embedding_params
    head = arch.head_params
    in_linears = sum(x.weights for x in linears)
    total = arch.total_params
    other = total - embed - head - in_linears - layers * norms
    block_moe = attention + experts + shared + norms
    block_dense = attention + dense + norms
    known = arch.shape_known and h > 0 and layers > 0
    if not known or other < -0.02 * total:
        linears, in_linears, other = (), total - embed - head, 0
        block_dense, block_moe = in_linears // layers, 0
    return Shape(
        layers=layers, hidden=h, heads=arch.n_heads, q=q, k=k, v=v, out=out,
        dense_layers=layers - moe_layers, moe_layers=moe_layers,
        ffn=(moe.dense_ffn if moe and moe.dense_ffn else arch.ffn_size) or 4 * h,
        expert_ffn=moe.expert_ffn if moe else 0, shared_ffn=moe.shared_ffn if moe else 0,
        experts=moe.n_experts if moe else 0, top_k=moe.experts_per_token if moe else 0,
        vocab=arch.vocab_size, gated=arch.gated_mlp, rms=arch.norm == "rmsnorm", norms=arch.norms_per_layer,
        embed=embed, head=head, block=max(block_dense if moe_layers < layers else 0, block_moe if moe_layers else 0),
        dense_block=block_dense, attention_block=attention + shared + norms, norm_weights=layers * norms,
        experts_block=experts if moe_layers else 0,
        routed=experts * moe_layers, linear_weights=in_linears, other=other, total=total,
        tied=arch.tied_embeddings, linears=linears,
        widest=max((x.inputs * x.outputs for x in linears), default=0),
        low_rank=(mla.kv_lora_rank + (mla.q_lora_rank or 0)) if mla else 0,
    )  # fmt: skip


_ATTENTION = frozenset({"q", "k", "v", "o", "q_a", "q_b", "kv_a", "kv_b"})
_MLP = frozenset({"gate", "up", "down"})


def _linears(arch: Architecture, q: int, k: int, v: int, out: int, layers: int, moe_layers: int) -> tuple[Linear, ...]:
    h, found = arch.hidden_size, []
    if arch.mla is not None:
        m = arch.mla
        if m.q_lora_rank:
            found += [Linear("q_a", h, m.q_lora_rank, layers), Linear("q_b", m.q_lora_rank, q, layers)]
        else:
            found.append(Linear("q", h, q, layers))
        heads = arch.n_heads * (m.qk_nope_head_dim + m.v_head_dim)
        found += [
            Linear("kv_a", h, m.kv_lora_rank + m.qk_rope_head_dim, layers),
            Linear("kv_b", m.kv_lora_rank, heads, layers),
        ]
    else:
        found += [Linear("q", h, q, layers), Linear("k", h, k, layers), Linear("v", h, v, layers)]
    found.append(Linear("o", out, h, layers))
    dense_ffn = arch.moe.dense_ffn if arch.moe and arch.moe.dense_ffn else arch.ffn_size
    found += _mlp(h, dense_ffn, layers - moe_layers, arch.gated_mlp, "", 1)
    if arch.moe is not None and moe_layers:
        found += _mlp(h, arch.moe.expert_ffn, moe_layers, arch.gated_mlp, "expert_", arch.moe.n_experts)
        if arch.moe.shared_ffn:
            found += _mlp(h, arch.moe.shared_ffn, moe_layers, arch.gated_mlp, "shared_", 1)
        found.append(Linear("router", h, arch.moe.n_experts, moe_layers))
    return tuple(found)


def _mlp(h: int, f: int, blocks: int, gated: bool, prefix: str, copies: int) -> list[Linear]:
    if not blocks:
        return []
    gate = [Linear(prefix + "gate", h, f, blocks, copies)] if gated else []
    return [*gate, Linear(prefix + "up", h, f, blocks, copies), Linear(prefix + "down", f, h, blocks, copies)]


# What people and frameworks call a linear layer -> canonical names. A fused projection adapts its parts as one matrix.
_TARGETS: dict[str, tuple[str, ...]] = {
    "q_proj": ("q", "q_b"), "q": ("q", "q_b"), "query": ("q", "q_b"), "wq": ("q", "q_b"), "q_a_proj": ("q_a",),
    "q_b_proj": ("q_b",), "k_proj": ("k",), "k": ("k",), "key": ("k",), "wk": ("k",), "v_proj": ("v",), "v": ("v",),
    "value": ("v",), "wv": ("v",), "o_proj": ("o",), "o": ("o",), "wo": ("o",), "out_proj": ("o",),
    "projection": ("o",), "linear_proj": ("o",), "kv_a_proj_with_mqa": ("kv_a",), "kv_b_proj": ("kv_b",),
    "gate_proj": ("gate", "expert_gate", "shared_gate"), "gate": ("gate", "expert_gate", "shared_gate"),
    "w1": ("gate", "expert_gate", "shared_gate"), "up_proj": ("up", "expert_up", "shared_up"),
    "up": ("up", "expert_up", "shared_up"), "w3": ("up", "expert_up", "shared_up"), "fc1": ("up",), "c_fc": ("up",),
    "dense_h_to_4h": ("up",), "down_proj": ("down", "expert_down", "shared_down"),
    "down": ("down", "expert_down", "shared_down"), "w2": ("down", "expert_down", "shared_down"), "fc2": ("down",),
    "dense_4h_to_h": ("down",), "dense": ("o",), "c_proj": ("o", "down"),
    "mlp": ("gate", "up", "down"), "head": ("head",), "lm_head": ("head",), "embed_tokens": ("embed",),
    "model.embed_tokens": ("embed",), "output": ("head",),
    "c_attn": ("qkv",), "qkv_proj": ("qkv",), "query_key_value": ("qkv",), "wqkv": ("qkv",), "w_pack": ("qkv",),
    "linear_qkv": ("qkv",), "gate_up_proj": ("gate_up",), "linear_fc1": ("gate_up",), "linear_fc2": ("down",),
}  # fmt: skip
_ALL_DENSE = ("q", "k", "v", "o", "q_a", "q_b", "kv_a", "kv_b", "gate", "up", "down", "shared_gate", "shared_up",
              "shared_down")  # fmt: skip
_GROUPS: dict[str, tuple[str, ...]] = {
    "all-linear": _ALL_DENSE, "all": _ALL_DENSE, "all_linear": _ALL_DENSE, "attention": ("q", "k", "v", "o", "q_a",
    "q_b", "kv_a", "kv_b"), "qv": ("q", "q_b", "v", "kv_b"), "default": ("q", "q_b", "v", "kv_b"),
    "qkvo": ("q", "k", "v", "o"), "experts": ("expert_gate", "expert_up", "expert_down"),
}  # fmt: skip
TARGET_NAMES: tuple[str, ...] = (*_GROUPS, *_TARGETS)


@lru_cache(maxsize=1024)
def adapter_weights(arch: Architecture, rank: int, targets: tuple[str, ...]) -> float:
    """Adapter weights: rank x (in + out) of every adapted matrix (Hu et al. 2021, arXiv:2106.09685)."""
    return float(rank * sum((x.inputs + x.outputs) * x.blocks * x.copies for x in adapter_linears(arch, targets)))


@lru_cache(maxsize=4096)
def adapter_linears(
    arch: Architecture, targets: tuple[str, ...], fused_qkv: bool = False, fused_gate: bool = False
) -> tuple[Linear, ...]:
    """The linear layers that LoRA ``targets`` name; where the model fuses projections, the fused one is adapted."""
    shape = shape_of(arch)
    by_name = {x.name: x for x in shape.linears}
    wanted: list[str] = []
    for target in targets:
        key = target.strip().lower()
        wanted += _GROUPS.get(key) or _TARGETS.get(key) or ()
    if fused_qkv and {"q", "k", "v"} & set(wanted):
        wanted = ["qkv", *(name for name in wanted if name not in ("q", "k", "v"))]
    if fused_gate and "gate" in wanted and "up" in wanted:
        wanted = ["gate_up", *(name for name in wanted if name not in ("gate", "up"))]
    found: dict[str, Linear] = {}
    for name in wanted:
        if name == "qkv" and "q" in by_name:
            q = by_name["q"]
            found[name] = Linear("qkv", q.inputs, shape.q + shape.k + shape.v, q.blocks)
        elif name == "gate_up" and "up" in by_name:
            up = by_name["up"]
            found[name] = Linear("gate_up", up.inputs, (2 if shape.gated else 1) * up.outputs, up.blocks)
        elif name in ("head", "embed"):
            found[name] = Linear(name, shape.hidden, shape.vocab, 1)
        elif name in by_name:
            found[name] = by_name[name]
    return tuple(found.values())
