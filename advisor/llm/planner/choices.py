"""Two values of one choice that a message sets against each other: ZeRO-2 or ZeRO-3, checkpointing on or off.

Each gives the argument, what stands before and what after, as the tools take them; the same job is then computed for
both.
"""

from __future__ import annotations

import re

from advisor.llm.planner import grammar
from advisor.llm.planner.slots import Slots

Pair = tuple[str, str, str]  # argument, before, after
_SWITCHES = (
    ("checkpointing_switch", "activation_checkpointing", "none", "full"),
    ("offload_switch", "cpu_offload", "none", "all"),
    ("flash_switch", "attention", "eager", "flash"),
)
# Kept whole between forward and backward, weights take what ZeRO-2 takes; sharded again, what FSDP takes.
_RESHARD = ("sharding", "fsdp", "zero2")
_COMPARED = ("sharding", "precisions", "attention")  # lists of workload.yaml, two of which make a choice
_ARGUMENTS = {"precisions": "precision"}
_STORED = ("nf4", "fp4", "int4", "int8", "mxfp4")  # how a frozen base is stored; methods say that


def _named(name: str) -> re.Pattern[str]:
    return grammar.named(name, "asked")


def choice_of(turn: Slots) -> Pair | None:
    """The choice between two ways that a message asks about; None where it asks about none."""
    lower = turn.lower
    if grammar.seen("reshard", lower):
        return _RESHARD
    for name, argument, before, after in _SWITCHES:
        if grammar.seen(name, lower):
            return argument, before, after
    if grammar.seen("fp8_worth", lower):
        return "precision", "bf16", "fp8"
    if grammar.seen("bits_against", lower):
        return "precision", "int8", "nf4"
    if not grammar.seen("set_against", lower):
        return None
    for name in _COMPARED:
        found = list(grammar.found("workload", name, lower))
        values = list(dict.fromkeys(value for value, _match in found if value not in _STORED))
        if name == "sharding" and grammar.named("layout", "asked").search(lower):
            continue  # tensor or pipeline parallelism beside it: a layout is asked for
        if len(values) == 2 and _beside(lower, found[0][1], found[-1][1]):
            return _ARGUMENTS.get(name, name), values[0], values[1]
    return None


_NEAR = 40  # characters between two values that are set against each other


def _beside(lower: str, first: re.Match[str], last: re.Match[str]) -> bool:
    between = lower[first.end() : last.start()]
    return len(between) <= _NEAR and _named("set_against").search(lower[first.start() : last.end()]) is not None
