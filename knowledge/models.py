"""Model architectures by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from knowledge.errors import UnknownName
from knowledge.names import find
from knowledge.store import connection
from knowledge.types import Architecture, Match, Mla, Moe

_ELSEWHERE: list[Callable[[str, str], Architecture | None]] = []
_ASKED = [0]
_HINT = 'Give a known model, or its parameters: {"params_b": 7}, with layers, hidden size and heads if known.'


def find_model(name: str, field: str = "model") -> Match[Architecture]:
    """The architecture that people call ``name``. Raises UnknownName with the nearest known ones.

    A name that is not held goes to the place that ``set_elsewhere`` set, where a surface has set one.
    """
    try:
        found = find("models", name, field, _HINT)
    except UnknownName:
        _ASKED[0] += bool(_ELSEWHERE)
        read = _ELSEWHERE[0](name.strip(), field) if _ELSEWHERE else None
        if read is None:
            raise
        note = f"{name!r} read from its configuration on the hub, {read.as_of}."
        return Match(read, name, note if read.notes is None else f"{note[:-1]}; {read.notes}.")
    return Match(load_model(found.id), name, found.note, found.alternatives)


def asked_elsewhere() -> int:
    """How often a model was looked for elsewhere: what came of it may be otherwise next time."""
    return _ASKED[0]


def set_elsewhere(read: Callable[[str, str], Architecture | None] | None) -> None:
    """Where to read models that are not held (the hub); the function gives None for what is no id there."""
    _ELSEWHERE[:] = [read] if read else []


@lru_cache(maxsize=512)
def load_model(model_id: str) -> Architecture:
    """The architecture with exactly this id, as ``find_model`` gives it; any other is a TypeError, since ids are never
    typed in.
    """
    row = connection().execute("select record from models where id = ?", (model_id,)).fetchone()
    return architecture(json.loads(row["record"]))


@lru_cache(maxsize=1)
def all_models() -> tuple[Architecture, ...]:
    """Every architecture held, in file order; read and typed once, then cached."""
    return tuple(architecture(json.loads(row["record"])) for row in connection().execute("select record from models"))


def architecture(row: dict[str, Any]) -> Architecture:
    """A typed architecture from one record of ``data/models.json``."""
    terms, attention, moe = row.get("param_terms") or {}, row.get("attention") or {}, row.get("moe")
    linear = attention.get("linear_attention") or {}
    hidden, layers = row.get("hidden_size") or 0, row.get("num_layers") or 0
    heads = row.get("num_attention_heads") or 0
    # The tables mark computed decoders by the formula that reproduced their count; encoders have plain shapes too.
    known = bool(hidden and layers and heads) and (
        terms.get("formula") == "decoder" or row["modality"] in ("encoder", "asr")
    )
    mla = None
    if attention.get("kv_lora_rank"):
        mla = Mla(
            q_lora_rank=attention.get("q_lora_rank"),
            kv_lora_rank=attention["kv_lora_rank"],
            qk_nope_head_dim=attention["qk_nope_head_dim"],
            qk_rope_head_dim=attention["qk_rope_head_dim"],
            v_head_dim=attention["v_head_dim"],
        )
    return Architecture(
        id=row["id"],
        family=row["family"],
        modality=row["modality"],
        total_params=int(row.get("total_params") or row.get("published_params") or 0),
        active_params=int(row.get("active_params") or row.get("total_params") or row.get("published_params") or 0),
        n_layers=layers,
        hidden_size=hidden,
        ffn_size=row.get("intermediate_size") or 0,
        n_heads=heads,
        n_kv_heads=row.get("num_kv_heads") or heads,
        head_dim=row.get("head_dim") or (hidden // heads if heads else 0),
        vocab_size=row.get("vocab_size") or 0,
        tied_embeddings=bool(row.get("tie_word_embeddings")),
        gated_mlp=row.get("mlp_type") == "gated",
        norm=row.get("norm") or "rmsnorm",
        norms_per_layer=terms.get("norms_per_layer", 2),
        attention=attention.get("type", "mha"),
        max_seq_len=row.get("max_position_embeddings"),
        qkv_bias=bool(terms.get("qkv_bias", attention.get("qkv_bias"))),
        o_bias=bool(terms.get("o_bias")),
        mlp_bias=bool(row.get("mlp_bias")),
        qk_norm=terms.get("qk_norm") or attention.get("qk_norm"),
        learned_positions=terms.get("learned_position_rows", 0),
        sliding_window=row.get("sliding_window"),
        full_attention_every=linear.get("full_attention_every"),
        mla=mla,
        moe=_moe(moe) if moe and moe.get("experts_per_token") else None,
        vision_params=int(terms.get("vision_params") or 0),
        mtp_params=int(row.get("mtp_params") or 0),
        shape_known=known,
        licence=row.get("licence"),
        gated=row.get("gated"),
        release_year=row.get("release_year"),
        basis=row.get("fields_basis", "read"),
        source=row.get("source", ""),
        as_of=row.get("as_of", "2026-11-30"),
        notes=row.get("notes"),
        source_ids=tuple(row.get("sources", ())),
    )


def _moe(row: dict[str, Any]) -> Moe:
    return Moe(
        n_experts=row["num_experts"],
        experts_per_token=row["experts_per_token"],
        expert_ffn=row["moe_intermediate_size"] or 0,
        shared_ffn=row.get("shared_intermediate_size") or 0,
        first_dense_layers=row.get("first_dense_layers") or 0,
        every=row.get("moe_layer_every") or 1,
        dense_ffn=row.get("dense_intermediate_size") or 0,
    )
