"""The architecture that a measured row names: known, carried with the measurements, cut to fewer layers, or generic.

Names are spelled in many ways ("Llama-3-70B dims, 12 layers", "qwen-7b-chat", "Mistral-7B-v0.1-GPTQ"); a name that
nobody knows takes the row's parameter count and the typical shape of that size.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from typing import Any

from knowledge.errors import InputProblem
from knowledge.models import find_model
from knowledge.types import Architecture, Mla, Moe
from tools.architectures import from_parameters
from tools.memory.shapes import shape_of

Row = dict[str, str]


class Unsupported(ValueError):
    """The row cannot be estimated; the message says why."""


_DIMS = re.compile(r"^(?P<base>.+?) dims(?: \((?P<kv>\d+) KV groups\))?, (?P<layers>\d+) layers(?P<rest>.*)$")


def architecture_of(row: Row, open_points: list[str]) -> Architecture:
    """The architecture that a row's model text names; a generic one of ``params_b`` when nobody knows the name."""
    name = (row.get("model") or "").strip()
    cut = _DIMS.match(name)
    if cut:
        return _truncated(_named(cut["base"], None) or _generic(row, open_points), cut)
    size = re.search(r"\d+(\.\d+)?", row.get("params_b") or "")
    return _named(name, float(size[0]) * 1e9 if size else None) or _generic(row, open_points)


def _named(name: str, params: float | None) -> Architecture | None:
    near: list[str] = []
    for candidate in _spellings(name):
        extra = _extras().get(_key(candidate))
        if extra is not None:
            return extra
        try:
            match = find_model(candidate)
        except InputProblem as problem:
            near += problem.candidates
            continue
        if match.value.total_params:
            return match.value
    # A name spelled otherwise than in the knowledge base: the nearest one whose size is the printed one, or, of a cut
    # model, the one that names the same size.
    for candidate in near:
        arch = find_model(candidate).value
        if params and abs(arch.total_params / params - 1) < 0.015:
            return arch
        size = re.search(r"\d+(\.\d+)?b\b", name.lower())
        if params is None and size and re.search(rf"\b{re.escape(size[0])}\b", candidate.lower()):
            return arch
    return None


_SUFFIX = re.compile(
    r"[-_ ](chat|instruct|hf|gptq|awq|bnb|4bit|base|it|int4|int8|unsloth|sft|dpo|moe|\d{4}|v\d(\.\d)?)$", re.IGNORECASE
)


def _spellings(name: str) -> list[str]:
    plain = re.sub(r"\s*\([^)]*\)", "", name).strip()
    tries = [name, plain, plain.rpartition("/")[2]]
    current = tries[-1]
    while (shorter := _SUFFIX.sub("", current)) != current:
        tries.append(shorter)
        current = shorter
    inner = re.search(r"\(([^)]*)\)", name)
    if inner:
        tries.append(inner[1])
    return list(dict.fromkeys(t for t in tries if t))


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


@lru_cache(maxsize=1)
def _extras() -> dict[str, Architecture]:
    text = resources.files("evals").joinpath("data/architectures.json").read_text(encoding="utf-8")
    found = {}
    for row in json.loads(text)["architectures"]:
        arch = _extra(row)
        for name in (row["name"], *row.get("aliases", ())):
            found[_key(name)] = arch
    return found


def _extra(row: dict[str, Any]) -> Architecture:
    moe = Moe(*row["moe"]) if row.get("moe") else None
    mla = Mla(*row["mla"]) if row.get("mla") else None
    base = Architecture(
        id=row["name"], family=row.get("family", ""), modality="text", total_params=0, active_params=0,
        n_layers=row["layers"], hidden_size=row["hidden"], ffn_size=row["ffn"], n_heads=row["heads"],
        n_kv_heads=row["kv_heads"], head_dim=row["head_dim"], vocab_size=row["vocab"],
        tied_embeddings=row["tied"], gated_mlp=row["gated"], norm=row["norm"], norms_per_layer=row.get("norms", 2),
        attention="mla" if mla else "mha", max_seq_len=None, learned_positions=row.get("positions", 0), moe=moe,
        mla=mla, basis="assumed", source=row["source"],
    )  # fmt: skip
    return _counted(base)


def _counted(arch: Architecture) -> Architecture:
    """The architecture with its parameter count summed from its shape."""
    probe = replace(arch, total_params=10**15)
    shape = shape_of(probe)
    norms = shape.layers * shape.norms * shape.hidden * (2 if arch.norm == "layernorm" else 1)
    total = shape.linear_weights + shape.embed + shape.head + norms + arch.hidden_size * (arch.learned_positions + 1)
    return replace(arch, total_params=total, active_params=total)


def _truncated(arch: Architecture, cut: re.Match[str]) -> Architecture:
    moe = arch.moe
    dense = re.search(r"\((\d+) dense\)", cut["rest"])
    if moe is not None:
        moe = replace(moe, first_dense_layers=int(dense[1]) if dense else min(moe.first_dense_layers, 1))
    changed = replace(
        arch, id=f"{arch.id} cut to {cut['layers']} layers", n_layers=int(cut["layers"]), moe=moe, mtp_params=0,
        n_kv_heads=int(cut["kv"]) if cut["kv"] else arch.n_kv_heads,
    )  # fmt: skip
    return _counted(changed)


_VOCABULARY = (
    ("qwen", 152064), ("llama-3", 128256), ("llama3", 128256), ("gemma", 256000), ("llama", 32000),
    ("mistral", 32768), ("phi", 100352), ("glm", 151552), ("deepseek", 129280), ("gpt", 50304), ("mpt", 50368),
)  # fmt: skip


def _generic(row: Row, open_points: list[str]) -> Architecture:
    name = (row.get("model") or "").lower()
    size = re.search(r"\d+(\.\d+)?", row.get("params_b") or "") or re.search(r"(\d+(\.\d+)?)(?=b\b)", name)
    if not size:
        raise Unsupported(f"the model {row.get('model')!r} is unknown and no parameter count is given")
    open_points.append("model")
    given: dict[str, Any] = {"params_b": float(size[0])}
    for family, vocab in _VOCABULARY:
        if family in name:
            given["vocab_size"] = vocab
            break
    experts = re.search(r"(\d+)x\d", name)
    if experts:
        given |= {"n_experts": int(experts[1]), "experts_per_token": 2}
    return from_parameters(given)[0]
