"""What to call where owning is held against renting: the machine, its price, how much it is used."""

from __future__ import annotations

import re

from advisor.llm.planner import grammar
from advisor.llm.planner.act_runs import prices
from advisor.llm.planner.decide import Decider, action
from knowledge.gpus import load_gpu
from knowledge.hardware_costs import server_cost
from tools.prices import median_usd_per_gpu_hour

_COMMON_CARD = "H100-SXM5"
_PER_NODE = 8
_HOURS_A_YEAR = 8760
_CHEAPEST_SERVER = 20_000  # USD; a smaller sum beside "buy" is a budget or one card's price
_CHEAPEST_BOX = 300  # USD; of a machine with desktop cards
_QUOTED = re.compile(
    r"(?:quote\w*|offer\w*|costs?|price[ds]?|for|at|paid)\s(?:of |is |us |at )?[$€]?"
    r"(?:(\d{1,6}(?:\.\d{1,2})?)\s?k(?![a-z])"
    r"|(\d{3,7})(?!\d|\.\d|\s?(?:h|hours?|hrs?|w|watts?|gpus?|cards?|years?|tok\w*|%|/|gb|ti)(?![a-z])))"
)
_A_YEAR = re.compile(r"(?<![a-z])(?:a|per|each|every) year|yearly|一年|每年|年間|pro jahr|par an|al año")


@action("onprem")
def onprem(d: Decider) -> None:
    """Owning against renting: break-even utilisation, and cost by GPU-hour of both."""
    state, card = d.state, d.card(_COMMON_CARD)
    if "onprem" not in d.turn.cues and _other_than_owning(d):
        return
    bought = grammar.seen("buy_or_rent", d.turn.lower) or grammar.seen("payback", d.turn.lower)
    if "onprem" not in d.turn.cues and d.model() is not None and not d.cards() and not bought:
        d.go("gpu_select")  # rules on where the data may be: the card for the job is what is asked
        d.know("side")
        return
    counted = next((gpu for gpu in state.gpus if gpu.count and gpu.argument), None)
    if counted is not None:  # of two cards named, the one with a count is the machine
        card = counted.argument
    nodes = state.get("n_nodes") or 0
    count = _whole_machines(d, str(card)) or d.count_of(card)
    lower = d.turn.lower
    priced = grammar.seen("payback", lower) or grammar.seen("buy_or_rent", lower)
    colo = state.get("colo_usd_per_kw_month")
    hours, money = state.get("hours") or 0, state.get("budget_usd") or 0
    yearly = _A_YEAR.search(lower) is not None
    years = hours / _HOURS_A_YEAR if hours >= _HOURS_A_YEAR / 12 and not yearly else None
    server = load_gpu(str(card)).tier == "datacenter"
    many = count or state.get("n_gpus") or 1
    held = server_cost(str(card)) is not None  # else a machine is as many cards as are named, up to a usual one
    machine = _PER_NODE if server and (held or many > _PER_NODE) else min(many, _PER_NODE)
    money = money or _quoted(d)
    arguments = {
        "gpu": card,
        "n_gpus": count or state.get("n_gpus") or (_PER_NODE if server else 1) * (nodes or 1),
        "utilisation": state.get("utilisation") or (hours / _HOURS_A_YEAR if yearly and hours else _weekly(lower)),
        "years": state.get("years") or years,
        "cloud_price": _a_gpu_hour(d, str(card), count),
        "server_price": money if money >= (_CHEAPEST_SERVER if server or not priced else _CHEAPEST_BOX) else None,
        "gpus_per_server": machine if machine != _PER_NODE else None,
        "provider": state.providers[0] if state.providers else None,
        "power_price": state.get("power_price"),
        "colo_usd_per_kw_month": colo,
    }
    if arguments["server_price"] and state.get("budget_each"):
        arguments["server_price"] *= nodes if nodes > 1 else arguments["n_gpus"]
    if not server:  # a box under a desk: nobody is paid to run it, and no hall cools it
        arguments |= {"staff": 0, "support_share": 0.0, "pue": 1.0}
    d.add("compare_ownership", arguments)
    if d.model() is not None and d.turn.cues & {"fit", "vram"}:
        d.go("fit")
    d.know("side")
    d.whole = True  # the prices of renting are part of it


_OF_MACHINES = re.compile(r"s?\s(?:nodes|servers|boxes|machines)(?![a-z])")


_A_WEEK = re.compile(r"(?<![\w.])(\d{1,3})\s?(?:h|hrs?|hours?)\s?(?:/|per|a|each|every)\s?week")
_HOURS_A_WEEK = 168


def _quoted(d: Decider) -> float:
    """The price that a machine is offered at, USD; a card's own number ("for 4090s") is none. 0 where none is named."""
    for found in _QUOTED.finditer(d.turn.lower):
        if not any(gpu.start < found.end() and found.start(1 if found[1] else 2) < gpu.end for gpu in d.turn.gpus):
            return float(found[1]) * 1e3 if found[1] else float(found[2])
    return 0.0


def _weekly(lower: str) -> float | None:
    """The share of the time that "30 h/week" are."""
    found = _A_WEEK.search(lower)
    return min(1.0, int(found[1]) / _HOURS_A_WEEK) if found and int(found[1]) > 0 else None


def _whole_machines(d: Decider, card: str) -> int | None:
    """GPUs of machines that are counted themselves: "2 H200 nodes" are sixteen, "an 8xH100 server" is eight."""
    for mention in d.turn.gpus:
        few = mention.argument == card and mention.count and mention.count < _PER_NODE and not mention.nodes
        if few and mention.count and _OF_MACHINES.match(d.turn.lower[mention.end :]):
            return mention.count * _PER_NODE if load_gpu(card).tier == "datacenter" else None
    return None


_DEAREST = 2.5  # times its median price that nobody asks for one card: such a price is that of the machine


def _a_gpu_hour(d: Decider, card: str, count: int | None) -> float | None:
    """The price of renting by GPU-hour: "8x A100 at 8.5/h" is the machine's."""
    price: float | None = d.state.get("price_usd") if d.state.get("price_currency", "USD") == "USD" else None
    usual = median_usd_per_gpu_hour(card) if price and count and count > 1 else None
    return price / count if price and count and usual and price > _DEAREST * usual.usd_per_gpu_hour else price


def _other_than_owning(d: Decider) -> bool:
    """Rules on where data may be ask for offers in a place."""
    cues, cards = d.turn.cues, [gpu.argument for gpu in d.turn.gpus if gpu.argument]
    if "deployment_rules" in cues and cards:
        d.know()
        prices(d, "main")
        return True
    return False
