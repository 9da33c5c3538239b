"""A model's published ``config.json`` as one of our architecture records. Pure.

A saved configuration leaves out what equals its class's default, so each model type's conventions (biases, norms,
tied embeddings) are written here; they are those of the Transformers model definitions. A type that is not listed is
read as a Llama-like decoder, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from knowledge.errors import BadValue

Config = Mapping[str, Any]
LIMITS = {"num_layers": 2_000, "hidden_size": 1_000_000, "vocab_size": 10_000_000, "num_attention_heads": 10_000,
          "intermediate_size": 10_000_000, "head_dim": 100_000, "num_kv_heads": 10_000}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Convention:
    """What a model type does where its configuration is silent."""

    gated: bool = True
    norm: str = "rmsnorm"
    norms_per_layer: int = 2
    qkv_bias: bool = False
    o_bias: bool = False
    mlp_bias: bool = False
    head_bias: bool = False
    tied: bool = False
    qk_norm: str | None = None
    positions: str | None = None  # the key that holds the rows of a learned position table
    extra_positions: int = 0
    embedding_norm: bool = False
    kv_heads: int | None = None  # multi-query types without a key for it
    encoder: bool = False


_OLD = Convention(gated=False, norm="layernorm", qkv_bias=True, o_bias=True, mlp_bias=True)
CONVENTIONS: dict[str, Convention] = {
    "llama": Convention(),
    "mistral": Convention(),
    "mixtral": Convention(),
    "qwen2": Convention(qkv_bias=True),
    "qwen2_moe": Convention(qkv_bias=True),
    "qwen3": Convention(qk_norm="head"),
    "qwen3_moe": Convention(qk_norm="head"),
    "gemma": Convention(tied=True),
    "gemma2": Convention(tied=True, norms_per_layer=4),
    "gemma3_text": Convention(tied=True, norms_per_layer=4, qk_norm="head"),
    "gemma3": Convention(tied=True, norms_per_layer=4, qk_norm="head"),
    "phi": replace(_OLD, norms_per_layer=1, head_bias=True),
    "phi3": Convention(),
    "olmo": Convention(norm="nonparametric-layernorm"),
    "olmo2": Convention(qk_norm="full"),
    "olmo3": Convention(qk_norm="full"),
    "olmoe": Convention(qk_norm="full"),
    "granite": Convention(tied=True),
    "smollm3": Convention(tied=True),
    "cohere": Convention(norm="layernorm-no-bias", norms_per_layer=1, tied=True),
    "cohere2": Convention(norm="layernorm-no-bias", norms_per_layer=1, tied=True),
    "stablelm": Convention(norm="layernorm"),
    "starcoder2": replace(_OLD, tied=True),
    "nemotron": Convention(gated=False, norm="layernorm"),
    "deepseek_v2": Convention(),
    "deepseek_v3": Convention(),
    "glm4_moe": Convention(),
    "gpt_oss": Convention(qkv_bias=True, o_bias=True),
    "gpt2": replace(_OLD, tied=True, positions="n_positions"),
    "gpt_bigcode": replace(_OLD, tied=True, positions="n_positions", kv_heads=1),
    "gpt_neo": Convention(gated=False, norm="layernorm", o_bias=True, mlp_bias=True, tied=True,
                          positions="max_position_embeddings"),
    "gptj": Convention(gated=False, norm="layernorm", norms_per_layer=1, mlp_bias=True, head_bias=True),
    "gpt_neox": _OLD,
    "opt": replace(_OLD, tied=True, positions="max_position_embeddings", extra_positions=2),
    "bloom": replace(_OLD, tied=True, embedding_norm=True),
    "falcon": Convention(gated=False, norm="layernorm", norms_per_layer=1, tied=True),
    "mpt": Convention(gated=False, norm="layernorm-no-bias", tied=True),
    "bert": replace(_OLD, tied=True, positions="max_position_embeddings", encoder=True),
    "roberta": replace(_OLD, tied=True, positions="max_position_embeddings", encoder=True),
    "xlm-roberta": replace(_OLD, tied=True, positions="max_position_embeddings", encoder=True),
}  # fmt: skip


def record(model_id: str, config: Config, about: Config, day: str) -> dict[str, Any]:
    """A record as in ``data/models.json``; ``about`` is the hub's description (weights total, licence, gate).

    Raises BadValue where the configuration holds no transformer's shape.
    """
    text = _text_part(config)
    kind = _word(text.get("model_type") or config.get("model_type"))
    way = CONVENTIONS.get(kind, Convention())
    shape = _shape(model_id, text, way)
    terms = _terms(text, way, shape, kind)
    row: dict[str, Any] = {
        **shape,
        "id": model_id,
        "family": kind or "unknown",
        "norm": way.norm,
        "mlp_type": "gated" if way.gated else "plain",
        "mlp_bias": terms["mlp_bias"],
        "moe": _moe(text, shape),
        "attention": _attention(text, shape),
        "param_terms": terms,
        "max_position_embeddings": _number(text, "max_position_embeddings", "n_positions", "seq_length", "max_seq_len"),
        "sliding_window": _number(text, "sliding_window") if text.get("use_sliding_window", True) else None,
        "modality": "encoder" if way.encoder else "text" if text is config else "vision-language",
        "licence": _licence(about),
        "gated": bool(about.get("gated")),
        "release_year": None,
        "source": f"config.json of {model_id} on the Hugging Face hub",
        "sources": ["hf-metadata"],
        "as_of": day,
        "fields_basis": "read" if kind in CONVENTIONS else f"read; layers of {kind or 'this type'} taken as Llama's",
    }  # fmt: skip
    total, active = count(row)
    stated = _weights(about)
    quantised = bool(config.get("quantization_config"))
    row["published_params"] = stated
    notes = []
    if stated and not quantised and text is not config and stated > total:
        terms["vision_params"] = stated - total  # the encoder and projector, whose shapes are not read
        total, active = stated, active + stated - total
    elif stated and not quantised and abs(total / stated - 1) > 0.03:
        notes.append(f"the shapes read account for {total / stated:.0%} of the {stated:,} weights stored")
        active = round(active * stated / total)
        total = stated
    if quantised:
        notes.append("the stored weights are quantised; the shape is that of the unquantised model")
    return {**row, "total_params": total, "active_params": min(active, total), "notes": "; ".join(notes) or None}


def count(row: Mapping[str, Any]) -> tuple[int, int]:
    """Weights in all and those that one token passes, from the shape (layer definitions of Transformers)."""
    terms, attention, moe = row["param_terms"], row["attention"], row["moe"]
    h, layers, vocab = row["hidden_size"], row["num_layers"], row["vocab_size"]
    norm = {"layernorm": 2 * h, "nonparametric-layernorm": 0}.get(row["norm"], h)
    fixed = vocab * h * (1 if row["tie_word_embeddings"] else 2) + terms["learned_position_rows"] * h + norm
    fixed += (vocab if terms["head_bias"] else 0) + (2 * h if terms["embedding_layernorm"] else 0)
    fixed += layers * (_attention_weights(row, attention, terms) + terms["norms_per_layer"] * norm)
    matrices = 3 if row["mlp_type"] == "gated" else 2

    def feed_forward(width: int) -> int:
        return int(matrices * h * width + ((matrices - 1) * width + h if terms["mlp_bias"] else 0))

    if moe is None:
        total = fixed + layers * feed_forward(row["intermediate_size"])
        return total, total
    first, every = moe["first_dense_layers"], moe["moe_layer_every"]
    sparse = sum(1 for n in range(first, layers) if n % every == every - 1)
    dense = layers - sparse
    width = moe["moe_intermediate_size"]
    one = matrices * h * width + ((matrices - 1) * width + h if terms["expert_bias"] else 0)
    common = h * moe["num_experts"] + matrices * h * (moe["shared_intermediate_size"] or 0)
    common += (moe["num_experts"] if terms["router_bias"] else 0) + (h if terms["shared_expert_gate"] else 0)
    fixed += dense * feed_forward(moe["dense_intermediate_size"] or 0) + sparse * common
    return fixed + sparse * one * moe["num_experts"], fixed + sparse * one * moe["experts_per_token"]


def _attention_weights(row: Mapping[str, Any], attention: Mapping[str, Any], terms: Mapping[str, Any]) -> int:
    h, heads, kv, d = row["hidden_size"], row["num_attention_heads"], row["num_kv_heads"], row["head_dim"]
    if attention["type"] == "mla":
        rank, nope, rope = (attention[name] for name in ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim"))
        value, q_rank = attention["v_head_dim"], attention["q_lora_rank"]
        queries = q_rank * (h + 1 + heads * (nope + rope)) if q_rank else h * heads * (nope + rope)
        keys = h * (rank + rope) + rank + rank * heads * (nope + value)
        return int(queries + keys + heads * value * h)
    total = 2 * h * heads * d + 2 * h * kv * d
    total += (heads + 2 * kv) * d if terms["qkv_bias"] else 0
    total += h if terms["o_bias"] else 0
    total += heads if terms["attn_sinks"] else 0
    return int(total + {"head": 2 * d, "full": (heads + kv) * d}.get(terms["qk_norm"], 0))


def _text_part(config: Config) -> Config:
    for name in ("text_config", "llm_config", "language_config"):
        part = config.get(name)
        if isinstance(part, Mapping) and part.get("hidden_size"):
            return part
    return config


def _shape(model_id: str, text: Config, way: Convention) -> dict[str, Any]:
    hidden = _number(text, "hidden_size", "n_embd", "d_model", "dim")
    layers = _number(text, "num_hidden_layers", "n_layer", "num_layers", "n_layers")
    heads = _number(text, "num_attention_heads", "n_head", "num_heads", "n_heads")
    vocab = _number(text, "vocab_size", "padded_vocab_size")
    if not (hidden and layers and heads and vocab):
        raise BadValue(
            "no_shape",
            f"The configuration of {model_id} holds no transformer's shape.",
            field="model",
            hint='Give its parameters instead: {"params_b": 7, "n_layers": 32, "hidden_size": 4096, "n_heads": 32}.',
        )
    kv = _number(text, "num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num") or way.kv_heads
    if text.get("model_type") == "falcon" and not text.get("new_decoder_architecture"):
        kv = 1 if text.get("multi_query", True) else heads
    ffn = _number(text, "intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size") or 4 * hidden
    shape = {
        "num_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": ffn,
        "num_attention_heads": heads,
        "num_kv_heads": kv or heads,
        "head_dim": _number(text, "head_dim", "kv_channels") or max(1, hidden // heads),
        "vocab_size": vocab,
        "tie_word_embeddings": bool(text.get("tie_word_embeddings", way.tied)),
    }
    for name, limit in LIMITS.items():
        if not 1 <= shape[name] <= limit:
            raise BadValue("no_shape", f"{name} of {model_id} is {shape[name]}, which cannot be.", field="model")
    return shape


def _terms(text: Config, way: Convention, shape: Mapping[str, Any], kind: str) -> dict[str, Any]:
    bias = text.get("attention_bias")
    plain_bias = bool(text.get("use_bias", text.get("bias", False)))
    rows = _number(text, way.positions) if way.positions else 0
    new_falcon = kind == "falcon" and text.get("new_decoder_architecture")
    return {
        "formula": "decoder",
        "norms_per_layer": 2 if new_falcon else way.norms_per_layer,
        "final_norm": True,
        "qkv_bias": way.qkv_bias if bias is None else bool(bias) or way.qkv_bias,
        "o_bias": way.o_bias or (bool(bias) and kind in ("llama", "granite")),
        "mlp_bias": bool(text.get("mlp_bias", way.mlp_bias)) or (plain_bias and kind == "starcoder2"),
        "head_bias": way.head_bias,
        "qk_norm": way.qk_norm or ("head" if text.get("use_qk_norm") or text.get("qk_layernorm") else None),
        "attn_sinks": kind == "gpt_oss",
        "attn_output_gate": False,
        "embedding_layernorm": way.embedding_norm,
        "learned_position_rows": (rows or 0) + (way.extra_positions if rows else 0),
        "router_bias": kind in ("gpt_oss", "deepseek_v3", "glm4_moe"),
        "expert_bias": kind == "gpt_oss",
        "shared_expert_gate": kind == "qwen2_moe",
        "dsa_indexer_heads_dim": None,
        "vision_params": 0,
        "other_params": 0,
        "published_adds": {"mtp": 0, "tied_head_copy": 0, "buffers": 0},
    }


def _moe(text: Config, shape: Mapping[str, Any]) -> dict[str, Any] | None:
    experts = _number(text, "num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
    if not experts or experts < 2:
        return None
    width = _number(text, "moe_intermediate_size", "expert_intermediate_size") or shape["intermediate_size"]
    shared = _number(text, "shared_expert_intermediate_size") or width * (_number(text, "n_shared_experts") or 0)
    return {
        "num_experts": experts,
        "experts_per_token": _number(text, "num_experts_per_tok", "experts_per_token", "moe_top_k", "top_k") or 1,
        "moe_intermediate_size": width,
        "shared_intermediate_size": shared,
        "first_dense_layers": _number(text, "first_k_dense_replace") or 0,
        "moe_layer_every": max(1, _number(text, "decoder_sparse_step", "moe_layer_freq") or 1),
        "dense_intermediate_size": shape["intermediate_size"],
    }


def _attention(text: Config, shape: Mapping[str, Any]) -> dict[str, Any]:
    if _number(text, "kv_lora_rank"):
        names = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
        found = {name: _number(text, name) for name in names}
        if None in found.values():
            raise BadValue("no_shape", "Latent attention without all its ranks.", field="model")
        return {"type": "mla", "q_lora_rank": _number(text, "q_lora_rank"), **found}
    heads, kv = shape["num_attention_heads"], shape["num_kv_heads"]
    return {"type": "mha" if kv == heads else "mqa" if kv == 1 else "gqa"}


def _number(text: Config, *names: str | None) -> int | None:
    for name in names:
        value = text.get(name) if name else None
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _weights(about: Config) -> int | None:
    """Stored weights by the hub's safetensors summary."""
    found = about.get("safetensors")
    total = found.get("total") if isinstance(found, Mapping) else None
    return total if isinstance(total, int) and 0 < total < 10**14 else None


def _licence(about: Config) -> str | None:
    card = about.get("cardData")
    licence = card.get("license") if isinstance(card, Mapping) else None
    return _word(licence) or None


def _word(value: Any) -> str:
    """A short name as a stranger gave it, without what could be read as anything but a name."""
    return re.sub(r"[^A-Za-z0-9_.+ -]", "", value[:200])[:60].strip() if isinstance(value, str) else ""
