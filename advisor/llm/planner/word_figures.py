"""Leads that are one figure: GPU-hours, a million tokens, a payback, a time judged, offers, terms, links side by side.

They come before the leads of ``word_leads`` where the words ask for just that figure; the rest of the answer follows.
"""

from __future__ import annotations

from collections.abc import Callable

from advisor.llm.planner import grammar
from advisor.llm.planner.phrases import Outcome, say
from advisor.llm.planner.slots import Slots
from advisor.llm.planner.told import hours_told
from advisor.llm.planner.word_leads import Lead, cards_of, judged_run

_DATA = ("tokens", "samples", "steps")


def figure_of(goal: str, outcomes: list[Outcome], state: Slots, turn: Slots) -> Lead | None:
    """The figure that is asked for by name, where the results hold it; None where none is."""
    good = [outcome for outcome in outcomes if not outcome.error]
    make = _FIGURES.get(goal)
    return make(good, state, turn) if make and good else None


def _of(outcomes: list[Outcome], tool: str, *facts: str) -> list[Outcome]:
    return [o for o in outcomes if o.call.name == tool and all(o.ref(fact) for fact in facts)]


def _judged(outcomes: list[Outcome], state: Slots, turn: Slots) -> Lead | None:
    """A time that was told against the one modelled; without the amount of data, what decides it."""
    runs = _of(outcomes, "estimate_run", "run_hours", "tokens_per_second")
    if len(runs) != 1:
        return None
    run, told = runs[0], hours_told(turn)
    refs = {"hours": run.ref("run_hours"), "tokens": run.ref("tokens"), "rate": run.ref("tokens_per_second")}
    if not any(state.get(name) for name in _DATA):
        return Lead([say("judge_open", "en", **refs), say("time_told")], [run], [])
    if told is None:
        return Lead([say("judge_expect", "en", **refs)], [run], run.lines("next_steps")[:2])
    return judged_run(run, told)


def _time(outcomes: list[Outcome], state: Slots, turn: Slots) -> Lead | None:
    """GPU-hours, where they are what is asked for."""
    if not grammar.seen("gpu_hours_asked", turn.lower):
        return None
    runs = _of(outcomes, "estimate_run", "gpu_hours")
    lines = [say("gpu_hours", "en", ref=run.ref("gpu_hours"), cards=cards_of(run)) for run in runs]
    return Lead(lines, []) if lines else None


def _cost(outcomes: list[Outcome], state: Slots, turn: Slots) -> Lead | None:
    """The price of a million tokens, where that is what is asked for."""
    if not grammar.seen("per_million", turn.lower):
        return None
    runs = _of(outcomes, "estimate_run", "usd_per_million_tokens", "usd_per_gpu_hour")
    lines = [
        say("per_million", "en", ref=run.ref("usd_per_million_tokens"), cards=cards_of(run), tokens=run.ref("tokens"),
            price=run.ref("usd_per_gpu_hour"))
        for run in runs
    ]  # fmt: skip
    return Lead(lines, []) if lines else None


def _payback(outcomes: list[Outcome], state: Slots, turn: Slots) -> Lead | None:
    """After how long a purchase has paid itself back by rent saved."""
    found = _of(outcomes, "compare_ownership", "purchase", "cloud_usd_per_gpu_hour")
    if not found or not grammar.seen("payback", turn.lower):
        return None
    months, refs = found[0].ref("payback_months"), {"price": found[0].ref("purchase")}
    refs |= {"rent": found[0].ref("cloud_usd_per_gpu_hour")}
    return Lead([say("payback" if months else "payback_never", "en", months=months, **refs)], [])


def _offers(outcomes: list[Outcome], state: Slots, turn: Slots) -> Lead | None:
    """Which card is the cheapest of those with the memory, and within the price, that were asked for."""
    found = next((o for o in outcomes if o.call.name == "lookup_prices"), None)
    if found is None:
        return None
    cap = turn.get("price_cap_usd") or turn.get("price_usd")
    match = grammar.named("at_memory", "asked").search(turn.lower)
    size = turn.get("gpu_memory_gb") or (float(match[1]) if match else None)
    parts = [f"at least {size:g} GB"] if size else []
    parts += [f"under ${cap:g} a GPU-hour"] if cap else []
    return Lead([say("offers_lead", "en", what=" and ".join(parts), gpu=found.call.arguments.get("gpu"))], [])


def _terms(outcomes: list[Outcome], state: Slots, turn: Slots) -> Lead | None:
    """Each kind of billing with its lowest and its median price, in one line."""
    found = [o for o in outcomes if o.call.name == "lookup_prices" and o.ref("usd_per_gpu_hour")]
    if len(found) < 2:
        return None
    pieces = []
    for outcome in found:
        names = ("median_on_demand", "median_specialist_reserved_1y", "median_specialist_reserved_3y",
                 "median_hyperscaler_reserved_1y", "median_hyperscaler_reserved_3y")  # fmt: skip
        middle = next((outcome.ref(name) for name in names if outcome.ref(name)), None)
        median = f", [[{middle}]] in the median" if middle else ""
        pieces.append(f"{outcome.call.about} from [[{outcome.ref('usd_per_gpu_hour')}]]{median}")
    offered = [part for outcome in found for part in (outcome.verdict, *outcome.tables[:1])]
    return Lead([f"**{'; '.join(pieces)}.**", say("terms_use"), *offered], found)


def _serving(outcomes: list[Outcome], state: Slots, turn: Slots) -> Lead | None:
    """What bounds the reading of a prompt, where the wait for the first token is what is asked about."""
    return Lead([say("prefill")], []) if grammar.seen("prefill", turn.lower) else None


def _links(outcomes: list[Outcome], state: Slots, turn: Slots) -> Lead | None:
    """The same job over two links inside a machine."""
    found = [o for o in _of(outcomes, "check_interconnect", "speed_kept") if o.call.about.startswith("link=")]
    if len(found) != 2:
        return None
    names = [o.call.about.partition("=")[2] for o in found]
    kept = [f"{name} keeps [[{o.ref('speed_kept')}]]" for name, o in zip(names, found, strict=True)]
    head = ["| link | speed | of an unlimited link's | waiting a step |", "|---|---:|---:|---:|"]
    columns = ("tokens_per_second", "speed_kept", "exposed_communication")
    rows = [
        f"| {name} | " + " | ".join(f"[[{o.ref(column)}]]" for column in columns) + " |"
        for name, o in zip(names, found, strict=True)
    ]
    shares = [float((o.fact("speed_kept") or {"value": 0})["value"]) for o in found]
    key = "links_alike" if min(shares) > _ALIKE * max(shares) else "links_differ"
    lead = say(key, "en", kept=", ".join(kept), best=names[shares.index(max(shares))])
    return Lead([lead, "\n".join([*head, *rows])], found, [])


_ALIKE = 0.95  # of the better link's speed

_FIGURES: dict[str, Callable[[list[Outcome], Slots, Slots], Lead | None]] = {
    "judge_time": _judged, "time": _time, "cost": _cost, "onprem": _payback, "offers": _offers, "terms": _terms,
    "interconnect": _links, "inference": _serving,
}  # fmt: skip
