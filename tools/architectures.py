"""From a model argument (name, bare size, or parameters) to an architecture, saying what was assumed."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

from knowledge.models import all_models, find_model
from knowledge.types import Architecture, Moe
from tools.errors import BadValue, MissingValue, UnknownName
from tools.result import Assumption
from tools.units import parse_count

_BARE_SIZE = re.compile(
    r"^\s*~?(\d+(?:\.\d+)?)\s*([kmbt])(?:illion)?\s*(?:params?|parameters|model)?\s*$", re.IGNORECASE
)
_BARE_MOE = re.compile(r"^\s*~?(\d{1,5}(?:\.\d{1,3})?)\s?B[\s\-]?A(\d{1,4}(?:\.\d{1,3})?)B\s*$", re.IGNORECASE)
MAX_PARAMS = 1e14  # beyond a hundred trillion nothing here has been checked

# Shapes of dense decoders by size, read off the Llama family (Llama-2 and 3 papers, table of sizes) and the Pythia
# and Qwen2.5 suites below 1B: (parameters, layers, hidden size, FFN size, heads, kv heads).
_TYPICAL = (
    (0.124e9, 12, 768, 3072, 12, 12),
    (0.36e9, 24, 960, 2560, 15, 5),
    (0.5e9, 24, 896, 4864, 14, 2),
    (1.1e9, 22, 2048, 5632, 32, 4),
    (1.7e9, 28, 2048, 6144, 16, 8),
    (3.2e9, 28, 3072, 8192, 24, 8),
    (8.0e9, 32, 4096, 14336, 32, 8),
    (13.0e9, 40, 5120, 13824, 40, 40),
    (32.5e9, 64, 5120, 27648, 40, 8),
    (70.6e9, 80, 8192, 28672, 64, 8),
    (123e9, 88, 12288, 28672, 96, 8),
    (405.9e9, 126, 16384, 53248, 128, 8),
    (1000e9, 160, 24576, 77824, 192, 8),
)


def resolve_architecture(model: str | dict[str, Any], field: str = "model") -> tuple[Architecture, list[Assumption]]:
    """The architecture meant, with one assumption a guess.

    Raises UnknownName for a name not held, MissingValue without any size, BadValue for impossible shapes.
    """
    if isinstance(model, dict):
        return from_parameters(model, field)
    text = model.strip()
    if not text:
        raise MissingValue("missing_argument", "No model was named.", field=field, hint="E.g. llama-3.1-8b, or 7B.")
    bare = _BARE_SIZE.fullmatch(text)
    if bare:
        return from_parameters({"params_b": float(parse_count(bare[1] + bare[2])) / 1e9}, field)
    mixture = _BARE_MOE.fullmatch(text)
    if mixture and not known_model(text):
        return _mixture_of(float(mixture[1]) * 1e9, float(mixture[2]) * 1e9, field)
    match = find_model(text, field)
    notes = []
    if match.note:
        notes.append(Assumption(name="model", value=match.value.id, why=match.note, argument=field))
    return match.value, notes


def from_parameters(given: dict[str, Any], field: str = "model") -> tuple[Architecture, list[Assumption]]:
    """A dense (or, with n_experts, mixture-of-experts) decoder of ``params_b`` billion parameters.

    Accepts params_b, active_params_b, n_layers, hidden_size, ffn_size, n_heads, n_kv_heads, vocab_size, tied,
    n_experts, experts_per_token, expert_ffn. What is missing is taken from a typical dense decoder of that size with
    its FFN width solved so that the parameter count comes out right. Raises MissingValue without params_b, BadValue
    where it is no number or outside 0.0001 to 100,000 and for shapes that cannot be.
    """
    if "name" in given and "params_b" not in given:
        return resolve_architecture(str(given["name"]), field)
    if given.get("params_b") is None:
        raise MissingValue("missing_argument", "A custom model needs params_b.", field=field, hint='{"params_b": 7}')
    try:
        total = float(given["params_b"]) * 1e9
    except (TypeError, ValueError):
        raise BadValue("not_a_number", f"params_b cannot be {given['params_b']!r}.", field=field) from None
    if not 1e5 <= total <= MAX_PARAMS:
        raise BadValue(
            "out_of_range",
            f"A model of {given['params_b']} billion parameters cannot be sized.",
            field=field,
            hint="params_b is in billions: 7 for a 7B model. From 0.0001 to 100,000.",
            candidates=["7", "70"],
        )
    base = _typical(total)
    layers, hidden = int(given.get("n_layers") or base[1]), int(given.get("hidden_size") or base[2])
    heads = int(given.get("n_heads") or _heads(hidden, base))
    kv_heads = int(given.get("n_kv_heads") or min(heads, base[5] if heads % base[5] == 0 else heads))
    vocab = int(given.get("vocab_size") or (128256 if total > 0.9e9 else 50304))
    tied = bool(given.get("tied", total < 2e9))
    _check_shape(layers, hidden, heads, kv_heads, field)
    ffn = int(given.get("ffn_size") or 0) or _solve_ffn(total, layers, hidden, heads, kv_heads, vocab, tied)
    arch = Architecture(
        id=f"{total / 1e9:g}B dense decoder",
        family="generic",
        modality="text",
        total_params=int(total),
        active_params=int(total),
        n_layers=layers,
        hidden_size=hidden,
        ffn_size=ffn,
        n_heads=heads,
        n_kv_heads=kv_heads,
        head_dim=hidden // heads,
        vocab_size=vocab,
        tied_embeddings=tied,
        gated_mlp=True,
        norm="rmsnorm",
        norms_per_layer=2,
        attention="gqa" if kv_heads < heads else "mha",
        max_seq_len=None,
        source="typical shape for the size",
        basis="assumed",
    )
    why = f"typical dense decoder of {total / 1e9:g}B: {layers} layers, hidden {hidden}, {heads} heads ({kv_heads} kv)"
    if given.get("n_experts"):
        arch, why = _as_moe(arch, given, total, field)
    return arch, [Assumption(name="architecture", value=arch.id, why=why, argument=field)]


def _mixture_of(total: float, active: float, field: str) -> tuple[Architecture, list[Assumption]]:
    """A mixture of experts of so many parameters in all and for each token ("67B-A2B"), shaped as the nearest held one.

    Its experts' width follows from the two: total - active = 3 x hidden x width x layers x (experts - experts a token).
    Raises BadValue where a token has as many parameters as there are.
    """
    if not 0 < active < total:
        raise BadValue(
            "out_of_range",
            f"Of {total / 1e9:g}B parameters {active / 1e9:g}B cannot be active for a token.",
            field=field,
            hint="Name the whole first: 30B-A3B has 3B active.",
        )
    near = min(
        (arch for arch in all_models() if arch.moe and arch.moe.experts_per_token and arch.n_layers),
        key=lambda arch: (
            abs(math.log(arch.total_params / total))
            + abs(math.log(arch.active_params / arch.total_params * total / active))
        ),
    )
    assert near.moe is not None
    experts, top_k = near.moe.n_experts, near.moe.experts_per_token
    layers, hidden = near.n_layers or 1, near.hidden_size or 1
    width = (total - active) / (3 * hidden * layers * (experts - top_k))
    square = bool(near.n_heads) and hidden % near.n_heads == 0  # the sums below take heads of hidden / heads values
    shape = {
        "n_layers": layers, "hidden_size": hidden, "n_heads": near.n_heads if square else None,
        "n_kv_heads": near.n_kv_heads if square else None, "vocab_size": near.vocab_size,
        "n_experts": experts, "experts_per_token": top_k, "expert_ffn": max(64, round(width / 64) * 64),
    }  # fmt: skip
    arch, _notes = from_parameters({"params_b": total / 1e9, "active_params_b": active / 1e9, **shape}, field)
    why = f"{active / 1e9:g}B active; layers, hidden size and experts as {near.id}, experts' width to match"
    arch = replace(arch, id=f"{total / 1e9:g}B mixture of experts, {active / 1e9:g}B active")
    return arch, [Assumption(name="architecture", value=arch.id, why=why, argument=field)]


def known_model(name: str) -> bool:
    """Whether the knowledge base resolves this name, if need be by a guess that it notes; False where it only has near
    ones.
    """
    try:
        find_model(name)
    except UnknownName:
        return False
    return True


def _typical(total: float) -> tuple[float, int, int, int, int, int]:
    return min(_TYPICAL, key=lambda row: abs(row[0] / total - 1) if row[0] > total else abs(total / row[0] - 1))


def _heads(hidden: int, base: tuple[float, int, int, int, int, int]) -> int:
    if hidden == base[2]:
        return base[4]
    for dim in (128, 64, 96, 80, 32):
        if hidden % dim == 0:
            return hidden // dim
    return 1


def _check_shape(layers: int, hidden: int, heads: int, kv_heads: int, field: str) -> None:
    if min(layers, hidden, heads, kv_heads) < 1:
        raise BadValue("out_of_range", "Layers, hidden size and heads must be positive.", field=field)
    if hidden % heads:
        fits = [str(n) for n in range(heads, 0, -1) if hidden % n == 0][:2]
        raise BadValue(
            "heads_do_not_divide",
            f"{heads} heads do not divide a hidden size of {hidden}.",
            field=field,
            hint="hidden_size must be a multiple of n_heads.",
            candidates=fits,
        )
    if heads % kv_heads:
        fits = [str(n) for n in range(kv_heads, 0, -1) if heads % n == 0][:2]
        raise BadValue(
            "kv_heads_do_not_divide",
            f"{kv_heads} kv heads do not divide {heads} heads.",
            field=field,
            candidates=fits,
        )


def _solve_ffn(total: float, layers: int, hidden: int, heads: int, kv_heads: int, vocab: int, tied: bool) -> int:
    attention = 2 * hidden * hidden + 2 * hidden * kv_heads * (hidden // heads)
    rest = total - vocab * hidden * (1 if tied else 2) - layers * (attention + 2 * hidden)
    return max(64, round(rest / layers / (3 * hidden) / 64) * 64)


def _as_moe(arch: Architecture, given: dict[str, Any], total: float, field: str) -> tuple[Architecture, str]:
    experts, top_k = int(given["n_experts"]), int(given.get("experts_per_token") or 2)
    if not 1 <= top_k <= experts:
        raise BadValue(
            "out_of_range",
            f"{top_k} experts a token out of {experts} cannot be.",
            field=field,
            candidates=[str(min(max(top_k, 1), experts))],
        )
    active = float(given.get("active_params_b") or 0) * 1e9
    expert_ffn = int(given.get("expert_ffn") or max(64, round(arch.ffn_size / experts / 64) * 64))
    routed = 3 * arch.hidden_size * expert_ffn * arch.n_layers
    moe = Moe(experts, top_k, expert_ffn, 0, 0, 1, 0)
    active = active or total - routed * (experts - top_k)
    name = f"{total / 1e9:g}B mixture of experts"
    return (
        replace(arch, id=name, moe=moe, ffn_size=expert_ffn, active_params=int(active)),
        f"decoder with {experts} experts, {top_k} a token, {active / 1e9:.3g}B active",
    )
