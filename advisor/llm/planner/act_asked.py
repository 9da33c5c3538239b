"""What to call where the words name the quantity: power, host memory, a measured speed, a change, spot or not."""

from __future__ import annotations

from typing import Any

from advisor.llm.planner import grammar
from advisor.llm.planner.act_memory import methods_of, with_method
from advisor.llm.planner.asked import change_of, scaling_of, speed_told
from advisor.llm.planner.decide import TOPICS, Decider, action
from advisor.llm.planner.run_sizes import fitting_count, run_methods
from advisor.llm.planner.told import busbw_told

_COMMON_CARD = "H100-SXM5"
_CURRENCIES = ("USD", "EUR", "GBP")
_SPOT_MONTHLY = 0.15  # chance of a reclaim in a month, the middle of AWS Spot Advisor's bands, as tools.cost.run has it
_STAND_IN = "8B"  # a job's model where none is named: its checkpoint decides little of what spot costs


@action("power")
def power(d: Decider) -> None:
    """Watts and money of cards; with a run, its energy and emissions too."""
    state, lower = d.state, d.turn.lower
    runs = d.model() is not None and (state.get("tokens") or state.get("samples") or not state.gpus)
    if runs or (d.model() is not None and grammar.named("emissions", "asked").search(lower)):
        card = d.card(_COMMON_CARD)
        method = d.method() or run_methods(d)[0]
        count = d.count_of(card) or fitting_count(d, str(card), method)
        if not state.methods and method == "full" and fitting_count(d, str(card), "full") > count:
            method = "lora"  # what was described cannot be full training there
            d.notes.append("took_lora")
        d.add("estimate_run", with_method(d.workload("estimate_run", gpu=card, n_gpus=count), method))
        if state.get("power_price") is None:
            return
    card = d.card(_COMMON_CARD)
    price, currency = state.get("power_price"), state.get("power_currency", "USD")
    amps, volts = (grammar.named(name, "asked").search(lower) for name in ("circuit_amps", "circuit_volts"))
    for name in d.cards()[:3] or [str(card)]:
        arguments = {
            "gpu": name,
            "n_gpus": d.count_of(name),
            "power_price": price,
            "currency": currency if price is not None and currency in _CURRENCIES else None,
            "hours": state.get("hours"),
            "utilisation": state.get("utilisation"),
            "circuits": bool(grammar.named("circuit", "asked").search(lower) or "house" in lower or "home" in lower),
            "circuit_amps": float(amps[1]) if amps else None,
            "circuit_volts": float(volts[1]) if volts and amps else None,
        }
        d.add("estimate_power", arguments, "side" if d.calls else "main", name)


_FULL_MACHINE = 8  # GPUs of the largest machine that is common
_DATA = ("tokens", "samples", "epochs")


@action("host_memory")
def host_memory(d: Decider) -> None:
    """Host memory that offloading takes: of full fine-tuning, the usual meaning, unless a method was named."""
    card = d.card()
    base = with_method(d.workload("estimate_vram", gpu=card, n_gpus=d.count_of(card)), d.method() or "full")
    d.add("estimate_vram", base)
    if base.get("n_gpus") is None:  # each card's process has buffers of its own: without a count, a full machine too
        d.add("estimate_vram", {**base, "n_gpus": _FULL_MACHINE}, "main", f"n_gpus={_FULL_MACHINE}")


@action("check_speed")
def check_speed(d: Decider) -> None:
    """A measured speed (MFU, tokens/s or seconds a step) against the modelled one; without a figure, what is known."""
    card = d.card(_COMMON_CARD)
    count = d.count_of(card) or d.state.get("n_gpus") or fitting_count(d, str(card), d.method())
    told = speed_told(d.turn)
    arguments = d.workload("check_speed", gpu=card, n_gpus=count)
    if "step_seconds" in told and not d.state.get("micro_batch"):
        whole = d.state.get("global_batch")
        if whole and whole >= count:
            arguments["grad_accum"] = whole // count
        else:
            d.notes.append("took_batch")
    if told.keys() <= {"gpu_utilisation"}:  # which says little: the article comes first
        d.know("side")
    d.add("check_speed", {**arguments, **told})
    d.know("side")


@action("check_busbw")
def check_busbw(d: Decider) -> None:
    """The bus bandwidth of a test against what the links should give, and what is known of the test."""
    card = d.card()
    arguments = {
        "gpu": card,
        "n_gpus": d.count_of(card) or d.state.get("n_gpus"),
        **{name: d.state.get(name) for name in ("gpus_per_node", "inter_link", "intra_link", "instance")},
        **busbw_told(d.turn),
    }
    count = arguments["n_gpus"]
    if (
        count
        and arguments["inter_link"]
        and "nodes" in d.turn.cues
        and not d.state.get("n_nodes")
        and count <= _FULL_MACHINE
    ):
        arguments |= {"gpus_per_node": count, "n_gpus": 2 * count}  # the count was of each of two boxes
    d.add("check_speed", {name: value for name, value in arguments.items() if value is not None})
    d.know("side")


@action("check_scaling")
def check_scaling(d: Decider) -> None:
    """A measured speed-up over the ratio of GPUs, and what holds it back."""
    found = scaling_of(d.turn)
    if found is None:
        d.know()
        return
    speedup, fewer, more = found
    arguments: dict[str, Any] = {"speedup": speedup, "from_gpus": fewer, "n_gpus": more}
    arguments["framework"] = d.state.get("framework")
    if d.model() is not None:
        arguments = {**d.workload("check_speed", gpu=d.card(_COMMON_CARD)), **arguments}
    d.add("check_speed", arguments)
    d.subject = TOPICS["scaling"]
    d.know("side")


@action("change")
def change(d: Decider) -> None:
    """The same estimate before and after one change: memory, and with a card named the speed too."""
    found = change_of(d.turn, d.state)
    if found is None:
        d.go("fit")
        return
    choice, data = isinstance(found.before, str), found.argument in _DATA
    whole = choice and found.argument in ("sharding", "precision", "cpu_offload")  # of adapters they change little
    method = d.method() or ("full" if whole else methods_of(d)[0])
    if found.after == "nf4":  # a base stored in few bits is trained by adapters
        method = "lora"
    serves = d.state.get("task") == "inference"
    of_memory = d.turn.cues & {"fit", "vram", "question_of_truth"} and not d.turn.cues & {"time", "throughput", "cost"}
    reshards = grammar.seen("reshard", d.turn.lower) is not None
    speeds = data or not of_memory or (choice and not reshards)  # a choice is paid for in speed
    card = d.card(_COMMON_CARD if data or (choice and not serves and not reshards) else None)
    count = d.count_of(card) or d.state.get("n_gpus")
    if choice and count is None:
        count = _FULL_MACHINE if found.argument == "sharding" else fitting_count(d, str(card), method)
    tool = "estimate_run" if card and not serves and speeds else "estimate_vram"
    if card and not d.cards():
        d.notes.append("took_card")
    base = with_method(d.workload(tool, gpu=card, n_gpus=count or (1 if card else None)), method)
    for moment, value in (("before", found.before), ("after", found.after)):
        d.add(tool, {**base, found.argument: value}, "main", f"{moment};{found.argument}={value}")
    if choice:
        d.know("side", explained=True)


@action("spot_or_not")
def spot_or_not(d: Decider) -> None:
    """Expected totals of the same run on spot and on demand, lost work and restarts counted."""
    card = d.card(_COMMON_CARD)
    arguments = d.workload("plan_checkpoints", gpu=card, n_gpus=d.count_of(card))
    if d.model() is None:
        arguments |= {"model": _STAND_IN, "method": "full"}
        d.notes.append("spot_stand_in")
    elif d.method() is None and not d.state.get("tokens"):
        arguments["method"] = "full"
    hours = d.state.get("hours") or d.state.get("deadline_hours")
    if hours:
        arguments["run_hours"] = float(hours)
    d.add("plan_checkpoints", {**arguments, "spot_interruptions_per_month": _SPOT_MONTHLY})


_USERS = (1, 4, 16, 32, 64, 128, 256)  # sequences served at once


@action("users")
def users(d: Decider) -> None:
    """How many sequences a card serves at once: serving memory over rising numbers of them."""
    card = d.card(_COMMON_CARD)
    base = d.workload("estimate_vram", gpu=card, task="inference", n_gpus=d.count_of(card))
    base.pop("method", None)
    for number in _USERS:
        d.add("estimate_vram", {**base, "micro_batch": number}, "ladder", f"users={number}")
