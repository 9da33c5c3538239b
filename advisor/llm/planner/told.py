"""What a message tells of a run or a test: hours that it took, seconds a step, two counts with a time each, a bus
bandwidth.

They are judged, not computed with: "took 40 h on the A100, normal?", "one gpu: 80 hours, four gpus: 150 hours".
"""

from __future__ import annotations

import re
from typing import Any

from advisor.llm.planner import grammar
from advisor.llm.planner.page import number_word
from advisor.llm.planner.slots import Slots

VAGUE_HOURS = 200.0  # "hundreds of hours": two hundred at the least
_HOURS = (("mo", 730.0), ("w", 168.0), ("d", 24.0), ("h", 1.0), ("mi", 1 / 60), ("s", 1 / 3600))
_MOST_GPUS = 100_000
_PAIR = 2


def _named(name: str) -> re.Pattern[str]:
    return grammar.named(name, "asked")


def tells_time(turn: Slots) -> bool:
    """Whether a run's time is told: what it took, or what a progress bar says."""
    return _named("time_told").search(turn.lower) is not None


def hours_told(turn: Slots) -> float | None:
    """The hours that a run took or is said to take; None where none are told."""
    if not tells_time(turn):
        return None
    said = turn.get("hours") or turn.get("deadline_hours")  # "again 40h" reads like a limit, and is none
    if said:
        return float(said)
    return VAGUE_HOURS if _named("hundreds_of_hours").search(turn.lower) else None


def step_seconds(lower: str) -> float | None:
    """Seconds that one optimizer step takes, from seconds a step or steps a second."""
    found = _named("step_seconds").search(lower)
    if found:
        return float(next(group for group in found.groups() if group))
    minutes = _named("step_minutes").search(lower)
    if minutes:
        return 60 * float(minutes[1] or minutes[2])
    rate = _named("its_per_second").search(lower)
    return 1 / float(rate[1]) if rate and float(rate[1]) > 0 else None


def times_by_count(turn: Slots) -> tuple[float, int, int] | None:
    """The speed-up from a smaller to a larger count of one card, where each is told with its time; else None."""
    if len({gpu.argument for gpu in turn.gpus}) > 1:
        return None
    for name, count_at, time_at in (("count_then_time", 1, 2), ("time_then_count", 3, 1)):
        times: dict[int, float] = {}
        for found in _named(name).finditer(turn.lower):
            count = number_word(found[count_at])
            unit = found[time_at + 1]
            each = next((hours for head, hours in _HOURS if unit.startswith(head)), None)
            if count and count <= _MOST_GPUS and each and float(found[time_at]) > 0:
                times.setdefault(count, float(found[time_at]) * each)
        if len(times) == _PAIR:
            fewer, more = sorted(times)
            return times[fewer] / times[more], fewer, more
    return None


_COLLECTIVES = ("all_gather", "reduce_scatter", "all_to_all", "all_reduce")


def busbw_told(turn: Slots) -> dict[str, Any]:
    """A measured bus bandwidth as arguments of ``check_speed``; {} where no test or no figure is named.

    GB/s as nccl-tests prints it; what is clearly in bits ("Gbps", "Gb/s") is divided by eight.
    """
    word = grammar.seen("busbw_test", turn.lower)
    if word is None:
        return {}
    found = list(grammar.named("busbw_rate", "asked").finditer(turn.lower))
    if not found:
        return {}
    nearest = min(found, key=lambda match: abs(match.start() - word.start()))
    told: dict[str, Any] = {"busbw_gb_per_s": float(nearest[1]) / (8 if _in_bits(turn, nearest[0]) else 1)}
    spoken = turn.lower.replace(" ", "_").replace("-", "_")
    told["collective"] = next((name for name in _COLLECTIVES if name in spoken), None)
    ports = grammar.named("busbw_ports", "asked").search(turn.lower)
    told["nics_per_node"] = number_word(ports[1]) if ports else None
    return told


def _in_bits(turn: Slots, rate: str) -> bool:
    """By the unit's letters as they were typed: "Gb/s" is bits, "gb/s" is taken as what the tool prints."""
    if "ps" in rate or "bit" in rate:
        return "bit" in rate or "GBps" not in turn.text
    start = turn.text.lower().find(rate.split()[-1])
    return turn.text[start : start + len(rate.split()[-1])].endswith("Gb/s")
