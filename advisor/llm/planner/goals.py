"""What a turn is after: its own intents put in order, or the earlier turn's where it only changes a slot."""

from __future__ import annotations

from advisor.llm.planner import grammar
from advisor.llm.planner.slots import Slots


def goals_of(turn: Slots, state: Slots, earlier: tuple[str, ...]) -> tuple[str, ...]:
    """The goals of ``turn`` in order; ``state`` is the conversation including it."""
    own = _ordered(turn, state)
    if earlier and _only_changes(turn, own):
        return earlier
    if not own:
        if earlier:
            return earlier
        if state.models or state.methods:
            return ("vram",)
        return ("fit",) if state.gpus or state.get("gpu_memory_gb") else ()
    return own


def _only_changes(turn: Slots, own: tuple[str, ...]) -> bool:
    """A message that names a new value and nothing new to find out: "and on H200?", "make it 70B"."""
    changes = bool(turn.models or turn.gpus or turn.methods or turn.values)
    weak = (
        not own
        or (own[0] in ("fit", "vram") and not turn.cues & {"vram", "biggest_seq", "biggest_model"})
        or (own[0] == "compare" and len(turn.gpus) < 2)
    )
    return (changes and weak and (len(turn.text) < 60 or "follow_up" in turn.cues)) or (not changes and not own)


def _ordered(turn: Slots, state: Slots) -> tuple[str, ...]:
    intents = list(turn.intents)
    cues = turn.cues
    if "log" in cues and "oom" in cues:
        return ("oom",)
    if cues & {"hang"} and "driver" in intents and "interconnect" in intents:
        return ("driver",) if turn.get("n_nodes") is None else ("interconnect",)
    if not intents:
        return ()
    first = intents[0]
    if first == "oom" and not turn.log:
        # "X ooms on Y, why" is a fit question with a reason asked for.
        first = "parallelism" if "parallel" in cues and turn.model is None else "oom"
    if first == "fit" and "concept" in intents and turn.model is None and not cues & {"biggest_model", "fit"}:
        first = "concept"
    several = len({mention.argument or mention.text for mention in turn.gpus}) > 1
    if several and first in ("cost", "gpu_select", "fit") and not turn.get("tokens") and "compare" in intents:
        first = "compare"
    beside = [goal for goal in intents[1:] if goal in grammar.data("intents")["beside"].get(first, ())]
    return (first, *beside[:2])
