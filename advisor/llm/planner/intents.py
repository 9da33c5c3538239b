"""What is asked for: cue words of the grammar, counted, with what the slots say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from advisor.llm.planner import grammar

if TYPE_CHECKING:
    from advisor.llm.planner.slots import Slots


def read_cues(lower: str, log: str) -> frozenset[str]:
    """The names of the cue lists of ``intents.yaml`` that the text hits."""
    cues = {name for name in grammar.data("intents")["cues"] if _cue(name).search(lower)}
    if (oom := grammar.named("oom", "logs")).search(lower) or oom.search(log):
        cues.add("oom")
    if log:
        cues.add("log")
    return frozenset(cues)


def _cue(name: str) -> re.Pattern[str]:
    compiled = _CUES.get(name)
    if compiled is None:
        compiled = _CUES[name] = re.compile(grammar.pattern(grammar.data("intents")["cues"][name]))
    return compiled


_CUES: dict[str, re.Pattern[str]] = {}


def read_intents(slots: Slots) -> tuple[str, ...]:
    """Intents by weight, strongest first: cues of ``intents.yaml`` weighted, slots adding their own evidence."""
    weights: dict[str, float] = {}
    for name, spec in grammar.data("intents")["intents"].items():
        score = sum(float(weight) for cue, weight in spec.items() if cue in slots.cues or _slot(slots, cue))
        if score >= 1:
            weights[name] = score
    if slots.methods and "inference" in weights and not grammar.named("serving").search(slots.lower):
        # An engine or a cache is spoken of while something is trained: GRPO writes its completions with them.
        weights["fit"] = max(weights.pop("inference"), weights.get("fit", 0.0))
    return tuple(sorted(weights, key=lambda name: -weights[name]))


def _slot(slots: Slots, cue: str) -> bool:
    if not cue.startswith("slot:"):
        return False
    name = cue[5:]
    if name == "model":
        return slots.model is not None and slots.model.kind != "closed"
    if name == "gpu":
        return bool(slots.gpus) or "gpu_memory_gb" in slots.values
    if name == "gpus":
        return len({mention.argument or mention.text for mention in slots.gpus}) > 1
    if name == "providers":
        return len(slots.providers) > 1
    if name == "method":
        return bool(slots.methods)
    return slots.get(name) is not None
