"""What to call where one figure is wanted: offers of a memory, machines in a rack, terms of a price, a time judged."""

from __future__ import annotations

import re
from typing import Any

from advisor.llm.planner import grammar
from advisor.llm.planner.act_memory import with_method
from advisor.llm.planner.act_runs import prices
from advisor.llm.planner.decide import Decider, action
from advisor.llm.planner.plan import Limit
from advisor.llm.planner.run_sizes import fitting_count, run_methods
from knowledge import prices as book
from knowledge.gpus import all_gpus, load_gpu
from tools.prices import cheapest, without_stale

_COMMON_CARD = "H100-SXM5"
_JUDGED_TOKENS = "100M"  # where no data is named: more than start-up decides
_SHOWN = 4  # cards side by side
_NEARLY = 0.98  # of the memory asked for: a card that is sold as that size
_SERVER = 8  # GPUs of a usual server of data-centre cards
_MACHINE_FACTOR = 1.8  # a whole server's watts over those of its cards, roughly: it chooses what to compute
_TRIED = 3  # counts of machines below and above the rough one
_TERMS = (
    ("reserved_3y", re.compile(r"3[\s-]?y|three[\s-]?y|36 ?mo")),
    ("reserved_1y", re.compile(r"1[\s-]?y|one[\s-]?y|an? year|12 ?mo")),
)


def _named(name: str) -> re.Pattern[str]:
    return grammar.named(name, "asked")


@action("judge_time")
def judge_time(d: Decider) -> None:
    """The run whose time was told, as modelled: on the card named, for the data named."""
    card = d.card(_COMMON_CARD)
    method = d.method() or run_methods(d)[0]
    count = d.count_of(card) or fitting_count(d, str(card), method)
    arguments = d.workload("estimate_run", gpu=card, n_gpus=count)
    if not (d.state.get("tokens") or d.state.get("samples") or d.state.get("steps")):
        arguments["tokens"] = _JUDGED_TOKENS
    d.add("estimate_run", with_method(arguments, method))
    d.know("side")


@action("offers")
def offers(d: Decider) -> None:
    """The cheapest cards of at least a memory, within a price: their data sheets, and the offers of the cheapest."""
    found = _named("at_memory").search(d.turn.lower)
    size = d.turn.get("gpu_memory_gb") or (float(found[1]) if found else 0.0)
    cap = d.turn.get("price_cap_usd") or d.turn.get("price_usd")
    priced = []
    for gpu in all_gpus():
        if gpu.marketed_memory_gb < _NEARLY * size:
            continue
        best = cheapest(without_stale(book.offers(gpu.id, billing="firm")))
        if best is not None and (cap is None or best.usd_per_gpu_hour <= cap):
            priced.append((best.usd_per_gpu_hour, gpu.id))
    cards = [name for _price, name in sorted(priced)[:_SHOWN]]
    if not cards:
        d.know()
        return
    d.add("lookup_prices", {"gpu": cards[0], "region": d.state.get("region")}, "main", cards[0])
    d.add("compare_gpus", {"gpus": cards}, "side")
    d.whole = True


@action("terms")
def terms(d: Decider) -> None:
    """USD per GPU-hour on demand and reserved, each with its offers, of the cards and providers named."""
    asked = [term for term, words in _TERMS if words.search(d.turn.lower)] or [term for term, _words in _TERMS]
    for card in d.cards()[:2]:
        for billing in ("on_demand", *asked):
            arguments = {"gpu": card, "provider": next(iter(d.state.providers), None), "region": d.state.get("region")}
            words = billing.replace("_", " ").replace("1y", "for a year").replace("3y", "for three years")
            d.add("lookup_prices", {**arguments, "billing": billing}, "main", f"{card} {words}")
    if not d.calls:
        prices(d, "main")


@action("rack")
def rack(d: Decider) -> None:
    """How many machines a power supply feeds: what each number of them draws at most."""
    card = str(d.card(_COMMON_CARD))
    found = grammar.seen("rack", d.turn.lower)
    if found is None:
        d.go("power")
        return
    gpu, watts = load_gpu(card), float(found[1]) * 1e3
    each = d.count_of(card) or (_SERVER if gpu.tier == "datacenter" else 1)
    middle = round(watts / (_MACHINE_FACTOR * each * (gpu.tdp_watts or 500)))
    d.limit = Limit("power_at_most", watts, "that power")
    for machines in range(max(1, middle - _TRIED), max(1, middle) + _TRIED + 1):
        d.add("estimate_power", {"gpu": card, "n_gpus": machines * each}, "ladder", f"machines={machines}")
    d.whole = True


_FAILURES = ("xid", "hang_saving", "hang_anywhere")  # patterns, and the sentences of the same names


@action("failure")
def failure(d: Decider) -> None:
    """A hang, an exit code or an Xid: the usual cause in a line, and what is known of it; no sum says why."""
    d.notes += [name for name in _FAILURES if grammar.named(name, "asked").search(d.turn.lower)][:1]
    d.know("main", explained=True)


@action("bytes_each")
def bytes_each(d: Decider) -> None:
    """Which bytes a parameter takes: the article, and for a model that is named its bill."""
    d.know("main", explained=True)
    if d.model() is not None:
        arguments: dict[str, Any] = with_method(d.workload("estimate_vram", gpu=d.card()), d.method() or "full")
        d.add("estimate_vram", arguments, "side")
