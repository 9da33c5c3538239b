"""Leads that put the quantity asked for first: runs side by side, before and after, host memory, spot or not, energy.

Each takes the outcomes of one goal and gives the parts of the answer's top, the outcomes that are spent by it, and the
knobs. Numbers are fact references only; which side of a limit a fact is on decides the words.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from advisor.llm.planner import grammar
from advisor.llm.planner.phrases import Outcome, say
from advisor.llm.planner.slots import Slots
from advisor.llm.planner.word_lines import supply_line
from tools.memory import verdict_bytes

_ALIKE = 0.1  # hours or money closer than this are about the same


@dataclass(slots=True)
class Lead:
    """The top of an answer, the outcomes it has told all of, and what to change next."""

    parts: list[str]
    spent: list[Outcome]
    knobs: list[str] = field(default_factory=list)


def lead_of(goal: str, outcomes: list[Outcome], state: Slots, turn: Slots) -> Lead | None:
    """The lead of a goal that has one of its own, where its results are there to tell."""
    make = _LEADS.get(goal)
    good = [o for o in outcomes if not o.error]
    return make(good, state, turn) if make and good else None


# Runs side by side ------------------------------------------------------------------------------------------------


def _runs(outcomes: list[Outcome], state: Slots, turn: Slots) -> Lead | None:
    runs = [o for o in outcomes if o.call.name == "estimate_run" and o.ref("run_hours") and o.call.part == "main"]
    if len(runs) < 2 or len({o.call.arguments.get("gpu") for o in runs}) < len(runs) or not state.gpus:
        return None
    fitting = [o for o in runs if _fits(o) != "no"]
    priced = [o for o in fitting if o.ref("run_cost")]
    parts = [_runs_verdict(fitting, priced, runs)]
    if not (state.get("tokens") or state.get("samples") or state.get("steps")):
        parts.append(say("took_tokens", tokens=runs[0].ref("tokens")))
    parts.append(_runs_table(runs))
    knobs = [
        f"{cards_of(o)}: {line[0].lower()}{line[1:]}"
        for o in runs
        for line in o.lines("next_steps")[:1]
        if len(runs) <= 3
    ]
    return Lead(parts, runs, knobs[:3])


def _runs_verdict(fitting: list[Outcome], priced: list[Outcome], runs: list[Outcome]) -> str:
    out = [o for o in runs if o not in fitting]
    lacking = f" {_list([cards_of(o) for o in out])} {'does' if len(out) == 1 else 'do'} not hold it." if out else ""
    if not fitting:
        return "**None of them holds this job as described**; hours and cost below are what they would be if it fitted."
    fastest = min(fitting, key=lambda o: _value(o, "run_hours"))
    if len(fitting) == 1:
        only = fitting[0]
        cost = f" and [[{only.ref('run_cost')}]]" if only.ref("run_cost") else ""
        took = f"in [[{only.ref('run_hours')}]]{cost}"
        return f"**{cards_of(only)}: it is the only one that holds the job, {took}.**{lacking}"
    speed = f"fastest is {cards_of(fastest)} in [[{fastest.ref('run_hours')}]]"
    slowest = max(fitting, key=lambda o: _value(o, "run_hours"))
    if _value(slowest, "run_hours") < (1 + _ALIKE) * _value(fastest, "run_hours"):
        speed = f"all take about as long (fastest {cards_of(fastest)}, [[{fastest.ref('run_hours')}]])"
    if not priced:
        return f"**{speed[0].upper()}{speed[1:]}.** No price of these cards is held.{lacking}"
    cheapest = min(priced, key=lambda o: _value(o, "run_cost"))
    dearest = max(priced, key=lambda o: _value(o, "run_cost"))
    if len(priced) > 1 and _value(dearest, "run_cost") < (1 + _ALIKE) * _value(cheapest, "run_cost"):
        about = f"a finished run costs about the same (cheapest {cards_of(cheapest)}, [[{cheapest.ref('run_cost')}]])"
        return f"**{speed[0].upper()}{speed[1:]}; {about}.**{lacking}"
    cost = f"[[{cheapest.ref('run_cost')}]] a finished run ([[{cheapest.ref('run_cost')}|range]])"
    if cheapest is fastest:
        took = f"in [[{cheapest.ref('run_hours')}]]"
        return f"**{cards_of(cheapest)} is both cheapest, at {cost}, and fastest, {took}.**{lacking}"
    return f"**Cheapest is {cards_of(cheapest)} at {cost}; {speed}.**{lacking}"


def _runs_table(runs: list[Outcome]) -> str:
    head = "| cards | fits | memory a GPU | of | hours | a finished run | per GPU-hour |"
    head += "\n|---|---|---:|---:|---:|---:|---:|"
    rows = []
    for o in runs:
        hours, cost, price = o.ref("run_hours"), o.ref("run_cost"), o.ref("usd_per_gpu_hour")
        cells = [
            cards_of(o), _fits(o), f"[[{o.ref('peak_per_gpu')}]]", f"[[{o.ref('usable_memory')}]]",
            f"[[{hours}]] ([[{hours}|range]])", f"[[{cost}]] ([[{cost}|range]])" if cost else "no price held",
            f"[[{price}]]" if price else "–",
        ]  # fmt: skip
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join([head, *rows])


def cards_of(outcome: Outcome) -> str:
    """The cards of a call in words: "8× H100-SXM5"; one where it names no count."""
    return f"{outcome.call.arguments.get('n_gpus', 1)}× {outcome.call.arguments.get('gpu')}"


def _fits(outcome: Outcome) -> str:
    """yes, tight or no: the peak against what the card has, as the tools judge it."""
    peak, usable = outcome.fact("peak_per_gpu"), outcome.fact("usable_memory")
    if peak is None or usable is None:
        return "–"
    judged = verdict_bytes(float(peak["value"]), float(usable["value"]))
    return {"fits": "yes", "borderline": "tight", "does_not_fit": "no"}[judged]


def _ranged(outcome: Outcome, name: str) -> str:
    return f"[[{outcome.ref(name)}]] ([[{outcome.ref(name)}|range]])"


def _value(outcome: Outcome, name: str) -> float:
    fact = outcome.fact(name)
    return float(fact["value"]) if fact else float("inf")


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# Before and after --------------------------------------------------------------------------------------------------

_NAMES = {
    "micro_batch": "the micro-batch", "seq_len": "the sequence length", "lora_rank": "the LoRA rank",
    "n_gpus": "the number of GPUs", "tokens": "the data", "samples": "the rows", "epochs": "the passes over the data",
}  # fmt: skip
_COMPARED = (
    ("peak_per_gpu", "memory a GPU"), ("tokens_per_second", "speed of the whole job"), ("run_hours", "hours"),
    ("run_cost", "a finished run"),
)  # fmt: skip


def _change(outcomes: list[Outcome], state: Slots, turn: Slots) -> Lead | None:
    pair = [o for o in outcomes if o.call.about.startswith(("before;", "after;"))]
    if len(pair) != 2:
        return None
    before, after = pair
    argument, _, _value_before = before.call.about.partition(";")[2].partition("=")
    old, new = (_value_words(o, argument) for o in pair)
    if grammar.seen("reshard", turn.lower):
        old, new = say("reshard_true"), say("reshard_false")
    name = _NAMES.get(argument, argument)
    if argument in _DATA:
        return _more_data(pair, name, old, new)
    memory = f"memory a GPU goes from [[{before.ref('peak_per_gpu')}]] to [[{after.ref('peak_per_gpu')}]]"
    usable = after.ref("usable_memory")
    outcome = {"yes": "which fits", "tight": "borderline for", "no": "too much for"}.get(_fits(after), "")
    room = f", {outcome} the [[{usable}]] usable" if usable and outcome else ""
    speed = ""
    if before.ref("tokens_per_second"):
        gain = _value(after, "tokens_per_second") / _value(before, "tokens_per_second")
        rates = f"from [[{before.ref('tokens_per_second')}]] to [[{after.ref('tokens_per_second')}]]"
        speed = f", and speed {'stays about the same' if abs(gain - 1) < 0.03 else 'goes'} ({rates})"
        if abs(gain - 1) >= 0.03:
            speed = f", and speed {'rises' if gain > 1 else 'falls'} {rates}"
    told = isinstance(after.call.arguments.get(argument), str)
    taking = f"From {old} to {new}" if told else f"Taking {name} from {old} to {new}"
    parts = [f"**{taking}: {memory}{room}{speed}.**"]
    named = any(state.get(data) for data in ("tokens", "samples", "steps"))  # hours of other data say little
    rows = [
        f"| {label} | {_ranged(before, fact)} | {_ranged(after, fact)} |"
        for fact, label in _COMPARED
        if before.ref(fact) and after.ref(fact) and (named or fact not in ("run_hours", "run_cost"))
    ]
    parts.append("\n".join([f"| | {old} | {new} |", "|---|---:|---:|", *rows]))
    if argument == "micro_batch" and before.ref("tokens_per_second"):
        parts.append("Halve gradient accumulation with it, and the step sees the same global batch.")
    knobs = [line for line in after.lines("next_steps") if "spot" not in line.lower()]
    return Lead(parts, pair, knobs[:2] if _fits(after) != "yes" else [])


_DATA = ("tokens", "samples", "epochs")


def _value_words(outcome: Outcome, argument: str) -> str:
    """A value of a change as people write it."""
    value = outcome.call.arguments[argument]
    if isinstance(value, str):
        return say(f"choice_{argument}_{value}") or value.replace("_", " ")
    if argument == "tokens" and outcome.ref("tokens"):
        return f"[[{outcome.ref('tokens')}]]"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:g}"


def _more_data(pair: list[Outcome], name: str, old: str, new: str) -> Lead | None:
    """Hours and cost of a run before and after its data changed."""
    before, after = pair
    if not (before.ref("run_hours") and after.ref("run_hours")):
        return None
    hours = f"the run goes from [[{before.ref('run_hours')}]] to [[{after.ref('run_hours')}]]"
    cost = ""
    if before.ref("run_cost") and after.ref("run_cost"):
        cost = f", and its cost from [[{before.ref('run_cost')}]] to [[{after.ref('run_cost')}]]"
    rows = [
        f"| {label} | {_ranged(before, fact)} | {_ranged(after, fact)} |"
        for fact, label in _COMPARED[2:]
        if before.ref(fact) and after.ref(fact)
    ]
    table = "\n".join([f"| | {old} | {new} |", "|---|---:|---:|", *rows])
    return Lead([f"**Taking {name} from {old} to {new}: {hours}{cost}. Memory stays the same.**", table], pair, [])


# Host memory --------------------------------------------------------------------------------------------------------


def _host(outcomes: list[Outcome], state: Slots, turn: Slots) -> Lead | None:
    found = next((o for o in outcomes if o.call.name == "estimate_vram"), None)
    need = found.fact("host_ram") if found else None
    if found is None:
        return None
    if need is None:
        return Lead([say("host_none"), found.verdict], [found], found.lines("next_steps")[:2])
    ref = str(need["id"])
    method = "full fine-tuning" if found.call.arguments.get("method") == "full" else "this job"
    has = turn.get("ram_gb") or state.get("ram_gb")
    told = f"{method} with states offloaded needs about [[{ref}]] of host memory ([[{ref}|range]])"
    if has is None:
        lead = f"**{told[0].upper()}{told[1:]}.**"
    else:
        low, high = float(need.get("low") or need["value"]), float(need.get("high") or need["value"])
        given = float(has) * 1e9
        answer = "Yes" if given >= 1.1 * high else "No" if given < low else "Borderline"
        lead = f"**{answer}: {told}, and you have {has:g} GB.**"
    full = next((o for o in outcomes if o.call.about.startswith("n_gpus=") and o.ref("host_ram")), None)
    loading = (full or found).ref("host_ram_loading")
    more = say("host_full_machine" if full else "host_loading", ref=loading) if loading else ""
    parts = [lead, more, say("host_use"), f"On the GPU: {found.verdict}"]
    knobs = [say("host_knobs")] if has is None or float(has) * 1e9 < 1.1 * float(need["value"]) else []
    return Lead([part for part in parts if part], [found, *([full] if full else [])], knobs)


# Spot or not --------------------------------------------------------------------------------------------------------


def _spot(outcomes: list[Outcome], state: Slots, turn: Slots) -> Lead | None:
    found = next((o for o in outcomes if o.call.name == "plan_checkpoints" and o.ref("spot_cost")), None)
    if found is None:
        return None
    firm, spot = found.ref("on_demand_cost"), found.ref("spot_cost")
    cheaper = _value(found, "spot_cost") < _value(found, "on_demand_cost")
    count = found.call.arguments.get("n_gpus", 1)
    cards = f"{count}× {found.call.arguments.get('gpu')}"
    wins = "Spot is cheaper" if cheaper else "On demand is cheaper"
    lead = (
        f"**{wins} for [[{found.ref('run_hours')}]] on {cards}: [[{spot}]] expected on spot against [[{firm}]] on "
        "demand, lost work and restarts counted.**"
    )
    rows = [
        ("price a GPU-hour", "on_demand_usd_per_gpu_hour", "spot_usd_per_gpu_hour"),
        ("hours until done", "on_demand_wall_hours", "spot_wall_hours"),
        ("interruptions expected", "on_demand_interruptions", "spot_interruptions"),
        ("total", "on_demand_cost", "spot_cost"),
    ]
    table = ["| | on demand | spot |", "|---|---:|---:|"]
    refs = [(words, found.ref(firm_name), found.ref(spot_name)) for words, firm_name, spot_name in rows]
    table += [f"| {words} | [[{left}]] | [[{right}]] |" for words, left, right in refs if left and right]
    save = f"Save every [[{found.ref('interval')}]]; a reclaim then costs about [[{found.ref('lost_per_failure')}]]."
    return Lead([lead, "\n".join(table), save, say("spot_needs")], [found], found.lines("next_steps")[:1])


# Energy of a run ----------------------------------------------------------------------------------------------------


def _energy(outcomes: list[Outcome], state: Slots, turn: Slots) -> Lead | None:
    run = next((o for o in outcomes if o.call.name == "estimate_run" and o.ref("energy")), None)
    if run is None:
        return None
    energy, carbon = f"[[{run.ref('energy')}]] at the meter", f"[[{run.ref('emissions')}]]"
    what = f"for [[{run.ref('billed_hours')}]] of {cards_of(run)}"
    if grammar.named("emissions", "asked").search(turn.lower):
        lead = f"**About {carbon}, from {energy}, {what}.**"
    else:
        lead = f"**About {energy}, {what}; {carbon} of emissions.**"
    return Lead([lead, say("grid"), run.verdict], [run])


# A time that was told, sizes of checkpoints, power supplies ---------------------------------------------------------


def _time(outcomes: list[Outcome], state: Slots, turn: Slots) -> Lead | None:
    """A run time that the asker has, judged against the range; else runs side by side."""
    run = outcomes[0]
    hours, fact = turn.get("hours"), run.fact("run_hours")
    judged = grammar.named("judged", "asked").search(turn.lower)
    if len(outcomes) != 1 or not hours or not judged or fact is None or fact.get("low") is None:
        return _runs(outcomes, state, turn)
    return judged_run(run, hours)


def judged_run(run: Outcome, hours: float) -> Lead | None:
    """Whether ``hours`` are what to expect of a run, by its range."""
    fact = run.fact("run_hours")
    if fact is None or fact.get("low") is None:
        return None
    low, high = float(fact["low"]), float(fact["high"])
    ref = str(fact["id"])
    answer = "Yes, that is normal" if low <= hours <= high else "That is faster than I expect"
    if hours > high:
        answer = "That is slower than I expect"
    told = (
        f"**{answer}: [[{ref}]] ([[{ref}|range]]) for [[{run.ref('tokens')}]], at [[{run.ref('tokens_per_second')}]].**"
    )
    knobs = [line for line in run.lines("next_steps") if "spot" not in line.lower()]
    return Lead([told, say("time_told") if hours > high else ""], [run], knobs[:2])


_STALL = re.compile(r"stall|how long|write time|takes? to (?:save|write)|pause")


def _quota(found: Outcome, turn: Slots) -> str:
    """Whether the kept checkpoints stay within the space that was named."""
    match = grammar.named("quota", "asked").search(turn.lower)
    kept = found.fact("stored_bytes")
    if match is None or kept is None:
        return ""
    size, unit = (match[1], match[2]) if match[1] else (match[3], match[4])
    space = float(size) * (1e12 if unit.startswith("t") else 1e9)
    key = "quota_fits" if float(kept["value"]) <= space else "quota_over"
    return say(key, "en", ref=kept["id"], space=f"{size} {unit[0].upper()}B", kept=found.call.arguments.get("kept", 3))


_SIZE = re.compile(r"how (?:big|large|much (?:disk|space|storage))|\bsize\b|disk space|how many gb")


def _checkpoint(outcomes: list[Outcome], state: Slots, turn: Slots) -> Lead | None:
    """The size, the space or the pause first, where that is what was asked."""
    found = next((o for o in outcomes if o.call.name == "plan_checkpoints"), None)
    if found is not None and (held := _quota(found, turn)):
        return Lead([held, *found.tables[:1], found.verdict], [found], found.lines("next_steps")[:1])
    if found is not None and _STALL.search(turn.lower) and found.ref("stall_seconds"):
        lead = say("stall", "en", ref=found.ref("stall_seconds"), size=found.ref("checkpoint_bytes"))
        return Lead([lead, *found.tables[:1], found.verdict], [found], found.lines("next_steps")[:2])
    if found is None or not _SIZE.search(turn.lower) or not found.ref("checkpoint_bytes"):
        return None
    size, light, kept = (found.ref(name) for name in ("checkpoint_bytes", "weights_only_bytes", "stored_bytes"))
    lead = f"**A resumable checkpoint is [[{size}]]; the weights alone are [[{light}]]. Those kept take [[{kept}]].**"
    return Lead([lead, *found.tables[:1], found.verdict], [found], found.lines("next_steps")[:1])


def _power(outcomes: list[Outcome], state: Slots, turn: Slots) -> Lead | None:
    """Energy of a run, or the power supply where that is what was asked."""
    found = next((o for o in outcomes if o.call.name == "estimate_power" and o.ref("supply_watts")), None)
    if found is None or not re.search(r"\bpsus?\b|power suppl", turn.lower):
        return _energy(outcomes, state, turn)
    lead = (
        f"**Power supplies for about [[{found.ref('supply_watts')}]]: {cards_of(found)} with the rest of the machine "
        f"draw up to [[{found.ref('power_at_most')}]] at the wall, and short peaks need a quarter to spare.**"
    )
    held = supply_line([found], turn, turn.language)  # the supply that they have, against what is drawn
    lines = [held, lead.replace("**", "")] if held else [lead]
    return Lead([*lines, *found.tables[:1]], [found], found.lines("next_steps")[:1])


_LEADS: dict[str, Callable[[list[Outcome], Slots, Slots], Lead | None]] = {
    "compare": _runs, "cost": _runs, "time": _time, "checkpoint": _checkpoint, "storage": _checkpoint,
    "change": _change, "host_memory": _host,
    "spot_or_not": _spot, "power": _power,
}  # fmt: skip
