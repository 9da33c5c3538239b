"""Short follow-ups that name a bare number: "at 8192?", "with 16?", "and with 4 nodes?", "and at 4096 tokens?".

What the number counts follows from its size, its preposition and what the conversation is after: lengths of sequences
are hundreds and more, GPUs are few, and a run is repeated on more of them.
"""

from __future__ import annotations

import re
from dataclasses import replace

from advisor.llm.planner import grammar
from advisor.llm.planner.page import number_word
from advisor.llm.planner.slots import Slots

_RUN_GOALS = frozenset(("time", "cost", "interconnect", "parallelism", "throughput"))
_SHORTEST_LENGTH = 256  # tokens; fewer are GPUs, batches or ranks
_LONGEST_LENGTH = 2_097_152
_MOST_GPUS = 4096


def _means_cards(match: re.Match[str], turn: Slots, earlier: Slots) -> bool:
    """Whether "on two then" and "four?" count the cards named before: lengths and batches are not spelled out."""
    spelled = not any(char.isdigit() for char in turn.text)
    few = int(number_word(match["number"].replace(",", "")) or 0) < _SHORTEST_LENGTH
    return bool(earlier.gpus or earlier.get("n_gpus")) and (spelled or (match["on"] is not None and few))


def read_follow_up(turn: Slots, earlier: Slots, goals: tuple[str, ...]) -> Slots:
    """``turn`` with the bare number of a short follow-up put where it belongs; ``goals`` are those of before."""
    match = grammar.named("bare_number", "follow_up").match(turn.lower)
    if not match or not goals:
        return turn
    number = (number_word(match["number"].replace(",", "")) or 0) * (1024 if match["k"] else 1)
    unit = match["unit"] or ""
    values = dict(turn.values)
    if unit.startswith("node"):
        each = earlier.get("gpus_per_node") or 8
        values |= {"n_nodes": number, "gpus_per_node": each, "n_gpus": number * each}
    elif number <= _MOST_GPUS and (unit[:1] in ("g", "c", "o") or (not unit and _means_cards(match, turn, earlier))):
        values["n_gpus"] = number
    elif _SHORTEST_LENGTH <= number <= _LONGEST_LENGTH and (unit.startswith("tok") or not unit):
        values.pop("tokens", None)
        values["seq_len"] = number
    elif (
        not unit
        and number <= _MOST_GPUS
        and (match["with"] or match["on"])
        and (goals[0] in _RUN_GOALS or earlier.get("n_gpus", 1) > 1)
    ):
        values["n_gpus"] = number
    else:
        return turn
    return replace(turn, values=values, intents=())
