"""Which methods a run may have and how many cards hold it, where the message leaves either open."""

from __future__ import annotations

import math

from advisor.llm.planner.act_memory import whole_model
from advisor.llm.planner.decide import ADAPTERS, LARGE_DATA, Decider, billions
from advisor.llm.planner.mentions import ModelMention
from knowledge.gpus import load_gpu
from knowledge.models import load_model

# Only for choosing how many cards to ask the tools about; the tools then say what is needed. Bytes a parameter: 4-bit
# base, 16-bit base, weights with gradients and Adam states; GB of an 80 GB card left beside activations.
BYTES_PER_PARAM = {"qlora": 0.65, "lora": 2.4, "dora": 2.4, "full": 18.0}
_ROOM_GB = 66.0


def run_methods(d: Decider) -> list[str | None]:
    """The methods of a run: the one named, pretraining for much data, else both ends of fine-tuning."""
    tokens = d.state.get("tokens") or 0
    if d.state.methods or d.state.get("task") == "inference":
        return [d.method()]
    if tokens >= LARGE_DATA:
        return ["pretrain"]
    both = (tokens or d.state.get("samples")) and not whole_model(d)
    return ["full", "qlora"] if both else ["full"]


def default_count(d: Decider) -> int:
    """GPUs for a run without a count: what holds the states on 80 GB cards, and a node at least for much data."""
    method = d.method() or ("pretrain" if (d.state.get("tokens") or 0) >= LARGE_DATA else "full")
    share = BYTES_PER_PARAM.get(method, BYTES_PER_PARAM["full"])
    needed = math.ceil(billions_of(d.state.model) * share / _ROOM_GB)
    if method not in ADAPTERS and (method == "pretrain" or (d.state.get("tokens") or 0) >= LARGE_DATA):
        needed = max(needed, 1 if billions_of(d.state.model) < 1 else 8)
    return next((count for count in (1, 2, 4, 8) if count >= needed), 8 * math.ceil(needed / 8))


_OF_A_CARD = _ROOM_GB / 80  # of a card's memory that is left beside activations


def fitting_count(d: Decider, card: str, method: str | None = None) -> int:
    """Cards of this kind that hold the states of the model under this method: a power of two, then whole nodes."""
    share = BYTES_PER_PARAM.get(method or "full", BYTES_PER_PARAM["full"])
    needed = math.ceil(billions_of(d.state.model) * share / (load_gpu(card).marketed_memory_gb * _OF_A_CARD))
    if method == "pretrain" and billions_of(d.state.model) >= 1:
        needed = max(needed, 8)  # pretraining is done on whole machines
    return next((count for count in (1, 2, 4, 8) if count >= needed), 8 * math.ceil(needed / 8))


def billions_of(mention: ModelMention | None) -> float:
    """Billions of parameters of a mention; 7 where neither name nor size says."""
    if mention is not None and mention.kind == "known" and mention.argument:
        return load_model(mention.argument).total_params / 1e9
    size = mention.size if mention is not None else None
    return billions(size) if size else 7.0
