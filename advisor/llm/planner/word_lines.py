"""Lines before a tool's own verdict that answer the very thing asked for: a part of the bill, a rule, a supply.

A tool's verdict answers the tool's usual question. Where the message asks for one figure of the result, or for what
holds of all machines, that comes first.
"""

from __future__ import annotations

from advisor.llm.planner import grammar
from advisor.llm.planner.phrases import Outcome, say
from advisor.llm.planner.slots import Slots
from advisor.llm.planner.told import tells_time
from knowledge.gpus import load_gpu
from tools.cost.estimate_power import SUPPLY_EFFICIENCY
from tools.memory import verdict_bytes

_RULES = ("count_rule", "mixed_cards")  # what holds of all machines, in a sentence of our own
_SCALES_WELL = 0.9  # scaling efficiency from which a faster link buys little
_ENDS = ("low", "value", "high")
_SAME = 0.005  # of the larger figure: two values that differ by less are alike


def first_lines(main: list[Outcome], turn: Slots) -> list[str]:
    """The lines that come first; none where the tools' verdicts say it all."""
    language = turn.language
    rules = [cue for cue in _RULES if cue in turn.cues and (cue != "mixed_cards" or len(turn.gpus) > 1)]
    lines = [
        *(say(cue, language) for cue in rules),
        _by_the_deadline(main, turn, language),
        _two_values(main, turn, language),
        *_has_link(main, turn, language),
        _component(main, turn, language),
        supply_line(main, turn, language),
        _nvlink(main, turn, language),
        _cheapest(main, language),
    ]
    return [line for line in lines if line]


def _by_the_deadline(main: list[Outcome], turn: Slots, language: str) -> str:
    """Whether the run asked about is over by the deadline: surely, perhaps or not, by its range."""
    hours = None if tells_time(turn) else turn.get("deadline_hours")
    runs = [o for o in main if o.call.name == "estimate_run"]
    fact = runs[0].fact("run_hours") if len(runs) == 1 else None
    if not hours or hours <= 0 or fact is None or not _holds(runs[0]):
        return ""
    low, middle, high = (float(fact[end] if fact[end] is not None else fact["value"]) for end in _ENDS)
    key = "deadline_met" if high <= hours else "deadline_likely" if middle <= hours else "deadline_unlikely"
    return say("deadline_missed" if low > hours else key, language, ref=fact["id"])


def _holds(outcome: Outcome) -> bool:
    """Whether the cards of a run hold its job, surely or nearly."""
    peak, usable = outcome.fact("peak_per_gpu"), outcome.fact("usable_memory")
    return (
        peak is None or usable is None or verdict_bytes(float(peak["value"]), float(usable["value"])) != "does_not_fit"
    )


def _two_values(main: list[Outcome], turn: Slots, language: str) -> str:
    """Two values of one choice: the figure of each in one line."""
    if not turn.get("variants") or len(main) != 2:
        return ""
    facts = [outcome.fact("peak_per_gpu") for outcome in main]
    if facts[0] is None or facts[1] is None:
        return ""
    name, pair = turn.get("variants")
    words = [say(f"variant_{name}", language, value=str(value).replace("_", " ")) or str(value) for value in pair]
    first, second = (float(fact["value"]) for fact in facts if fact)
    key = "variants_same" if abs(first - second) < _SAME * max(first, second) else "variants"
    return say(key, language, first=facts[0]["id"], second=facts[1]["id"], one=words[0], other=words[1])


def _component(main: list[Outcome], turn: Slots, language: str) -> str:
    """A part of the memory bill that is asked for by name."""
    name = grammar.first("workload", "components", turn.lower)
    if not name or not ("vram" in turn.cues or name == "kv_cache"):
        return ""
    first = next((outcome for outcome in main if outcome.call.name == "estimate_vram"), None)
    fact = first.fact(name) if first else None
    if first is None or fact is None or not float(fact["value"]):
        return ""
    label = str(fact.get("label") or name.replace("_", " "))
    return say(
        "component", language, label=label[:1].upper() + label[1:], ref=fact["id"], peak=first.ref("peak_per_gpu")
    )


def supply_line(main: list[Outcome], turn: Slots, language: str) -> str:
    """A power supply's watts, where the message names them, against what the machine draws."""
    outcome = next((outcome for outcome in main if outcome.call.name == "estimate_power"), None)
    watts = turn.get("watts")
    if outcome is None or not watts or not grammar.named("supply", "asked").search(turn.lower):
        return ""
    most, supply = outcome.fact("power_at_most"), outcome.fact("supply_watts")
    if most is None or supply is None:
        return ""
    inside = float(most["value"]) * SUPPLY_EFFICIENCY  # a supply is rated by what it gives, not by what it takes
    key = "supply_over" if watts < inside else "supply_tight" if watts < float(supply["value"]) else "supply_fits"
    return say(key, language, ref=supply["id"], watts=f"{watts:g}")


def _has_link(main: list[Outcome], turn: Slots, language: str) -> list[str]:
    """Which of the cards named have NVLink, where that is asked."""
    if not grammar.seen("has_link", turn.lower) or not any(o.call.name == "compare_gpus" for o in main):
        return []
    cards = [gpu.argument for gpu in turn.gpus if gpu.argument]
    linked = {card: load_gpu(card).nvlink_bytes_per_s for card in dict.fromkeys(cards)}
    return [
        f"**{say('has_nvlink' if link else 'premise_nvlink', language, gpu=card)}**" for card, link in linked.items()
    ]


def _nvlink(main: list[Outcome], turn: Slots, language: str) -> str:
    """Whether NVLink is needed, by how the job does over PCIe."""
    outcome = next((o for o in main if o.call.name == "check_interconnect"), None)
    if outcome is None or outcome.call.arguments.get("intra_link") != "PCIe" or turn.get("intra_link") != "NVLink":
        return ""
    share = outcome.fact("scaling_efficiency")
    return say("nvlink_extra" if share and float(share["value"]) >= _SCALES_WELL else "nvlink_pays", language)


def _cheapest(main: list[Outcome], language: str) -> str:
    """The cheapest of several providers, or cards, asked for."""
    offers = [
        (float(fact["value"]), outcome)
        for outcome in main
        if outcome.call.name == "lookup_prices" and outcome.call.about and (fact := outcome.fact("usd_per_gpu_hour"))
    ]
    if len(offers) < 2:
        return ""
    best = min(offers, key=lambda offer: offer[0])[1]
    return say("cheapest_of", language, name=best.call.about, ref=best.ref("usd_per_gpu_hour"))
