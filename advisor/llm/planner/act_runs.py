"""What to call where a card, hours or money are asked for: plans, runs, offers, and the most within a limit."""

from __future__ import annotations

import math
import re
from typing import Any

from advisor.llm.planner import grammar
from advisor.llm.planner.act_memory import methods_of, with_method
from advisor.llm.planner.decide import ADAPTERS, TALK, Decider, action
from advisor.llm.planner.limits import (
    in_time,
    model_for_money,
    model_in_gpu_hours,
    model_in_time,
    tokens_for_money,
    tokens_in_time,
)
from advisor.llm.planner.mentions import COMPUTED
from advisor.llm.planner.plan import Part
from advisor.llm.planner.run_sizes import default_count, fitting_count, run_methods

_FOR_A_DESK = ["RTX-3090", "RTX-4060-Ti-16GB", "RTX-4090", "RTX-5090"]  # what people buy, from small to large
# Counts to try, by about how many are needed.
_COUNTS = (
    (32, (1, 2, 4, 8, 16, 32, 64)),
    (128, (8, 16, 32, 64, 128, 256)),
    (math.inf, (64, 128, 256, 512, 1024)),
)
_COMMON_CARDS = ["H100-SXM5", "A100-SXM4-80GB"]


@action("gpu_select")
def choose(d: Decider) -> None:
    """Which card and how many: ranked plans with the bill that decides them, or the count where a card is named."""
    cards, many = d.cards(), "how_many" in d.turn.cues
    if not cards and d.turn.cues & {"own_card"} and d.model() is not None and not d.state.get("tokens"):
        _buy(d)
    elif d.state.model is None:
        _choose_without_model(d, cards)
    elif d.model() is None:
        d.know()
    elif cards and many and (d.state.get("deadline_hours") or 0) > 0:
        in_time(d, cards[0])
        d.add("select_gpu", with_method(d.workload("select_gpu"), d.method() or run_methods(d)[0]), "line")
    elif len(cards) == 1 and many:
        base = {"method": "full", **d.workload("estimate_vram", gpu=cards[0])}
        for count in next(counts for most, counts in _COUNTS if default_count(d) <= most):
            d.add("estimate_vram", {**base, "n_gpus": count}, "ladder", f"n_gpus={count}")
        if "estimate_run" in d.tools and (d.state.get("tokens") or d.state.get("samples")):
            time(d)
    elif len(cards) == 1:
        d.go("fit")
        if "follow_up" not in d.turn.cues:  # "and on a 4090?" has seen the ranking already
            d.add("select_gpu", d.workload("select_gpu"), "side")
    elif cards:
        d.go("fit")
        d.go("compare")
    else:
        _select(d)


def _buy(d: Decider) -> None:
    """A card to own: what people put under a desk side by side, and what each size named needs by each method."""
    sizes = [m.argument for m in d.state.models if m.kind in COMPUTED and m.argument][:3]
    methods = [method for method in d.state.methods if method in (*ADAPTERS, "full")][:2] or ["qlora", "lora"]
    base = d.workload("estimate_vram")
    for size in sizes or [base["model"]]:
        for method in methods:
            d.add("estimate_vram", {**with_method(base, method), "model": size}, "main", f"{size} {method}")
    d.add("compare_gpus", {"gpus": _FOR_A_DESK}, "side")
    d.know("side")
    d.whole = True


def _choose_without_model(d: Decider, cards: list[str]) -> None:
    budget = d.state.get("budget_usd") or d.state.get("budget_other")
    if "biggest_model" in d.turn.cues and cards:
        biggest_model(d)
    elif len(cards) > 1 or budget or "purchase" in d.turn.cues:
        d.add("compare_gpus", {"gpus": (cards or _FOR_A_DESK)[:5]})
        d.know("side")
    else:
        d.question = "ask_model"


@action("biggest_model")
def biggest_model(d: Decider) -> None:
    """The largest model on a card: the estimate over common sizes."""
    cards = d.cards()
    if d.state.get("gpu_hours"):
        model_in_gpu_hours(d, d.card("A100-SXM4-80GB") or "")
        return
    if cards and "pretrain" in d.state.methods and (d.state.get("hours") or d.state.get("deadline_hours")):
        model_in_time(d, cards[0])
        return
    if d.state.get("budget_usd") and "pretrain" in d.state.methods:
        model_for_money(d, d.card("H100-SXM5") or "")
        return
    if not cards:
        d.question = "ask_gpu"
        return
    method = d.method() or "qlora"
    base = d.workload("estimate_vram", gpu=cards[0], n_gpus=d.count_of(cards[0]), method=method)
    base.setdefault("activation_checkpointing", "full")  # one recipe for all sizes, so that they compare
    for size in ("1B", "3B", "8B", "13B", "32B", "70B"):
        d.add("estimate_vram", {**base, "model": size}, "ladder", size)


def _select(d: Decider) -> None:
    """Ranked plans for the method meant, or the lightest, with the bill of each that may be meant."""
    if "select_gpu" not in d.tools:
        d.go("vram")
        return
    first, *others = methods_of(d)
    ranked = {}
    if grammar.seen("fastest", d.turn.lower):
        ranked = {"objective": "time", "tokens": d.state.get("tokens") or _PRICED_TOKENS}
    d.add("select_gpu", with_method(d.workload("select_gpu", **ranked), first), "main", first or "")
    for method in (first, *others):
        d.add("estimate_vram", with_method(d.workload("estimate_vram"), method), "line", method or "")


@action("time")
def time(d: Decider) -> None:
    """``estimate_run`` on the cards named, or on two common ones; asks for the model where none is known."""
    state = d.state
    if state.model is None:
        if state.get("gpu_hours") and "biggest_model" in d.turn.cues:
            biggest_model(d)
        elif state.get("gpu_hours") or (state.get("hours") and not d.turn.cues & TALK):
            price(d)
        elif d.turn.cues & TALK or "slow" in d.turn.cues:
            d.know()
            d.compare_named()
        else:
            d.question = "ask_model"
        return
    if d.model() is None:
        d.know()
        return
    cards = d.cards()
    if cards and "how_many" in d.turn.cues and (state.get("deadline_hours") or 0) > 0 and not d.count_of(cards[0]):
        in_time(d, cards[0])
        d.whole = True
        return
    asks_tokens = "how_many_tokens" in d.turn.cues and not state.get("tokens") and not state.get("samples")
    if cards and asks_tokens and (state.get("deadline_hours") or state.get("hours")):
        tokens_in_time(d, cards[0])
        return
    whole = grammar.seen("gpu_hours_asked", d.turn.lower) is not None  # GPU-hours are of a job that fits
    counts = [d.count_of(card) or (default_count(d) if whole or d.plural(card) else None) for card in cards]
    if not cards and state.gpus:  # only cards that the tables do not hold: no other card's hours for them
        d.know()
        return
    if not cards and any(call.name == "select_gpu" and call.part == "main" for call in d.calls):
        _compare_usual(d)
        return
    told = state.get("tokens") or state.get("samples")
    if not cards and told and "which_gpu" in d.turn.cues and "select_gpu" in d.tools:
        _rank(d)
        return
    if not cards:
        cards = _COMMON_CARDS
        counts = [state.get("n_gpus") or default_count(d)] * len(cards)
    methods = run_methods(d)
    for card, count in list(zip(cards, counts, strict=True))[:4]:
        base = d.workload("estimate_run", gpu=card, n_gpus=count)
        if len(d.cards()) > 1 and not any(name in base for name in ("tokens", "samples")):
            base["tokens"] = _PRICED_TOKENS  # cards side by side: more than start-up decides
        unit = base.get("tokens", 1e6) in (1e6, 1e9) and "samples" not in base  # "a million tokens" is no data
        if unit and grammar.seen("per_million", d.turn.lower):
            base["tokens"] = _PRICED_TOKENS  # start-up decides the price of a few
        for method in methods:
            about = card if len(cards) > 1 else method or ""
            d.add("estimate_run", with_method(base, method), "main", about)
        if len(cards) == len(methods) == 1:
            _row_span(d, d.calls[-1].arguments)


_PRICED_TOKENS = "100M"


def _rank(d: Decider) -> None:
    """Ranked plans of a run, the lightest method that may be meant first, and one run on a usual card beside them."""
    part: Part = "main"
    for method in reversed(run_methods(d)):
        d.add("select_gpu", with_method(d.workload("select_gpu"), method), part, method or "")
        part = "line"
    _compare_usual(d)
    d.whole = True


def _compare_usual(d: Decider) -> None:
    """One line beside a ranking: the run on the card that most people name."""
    card, method = _COMMON_CARDS[0], run_methods(d)[-1]
    count = d.state.get("n_gpus") or fitting_count(d, card, method)
    arguments = with_method(d.workload("estimate_run", gpu=card, n_gpus=count), method)
    d.add("estimate_run", arguments, "line", "compare_usual")


def _row_span(d: Decider, base: dict[str, Any]) -> None:
    """Rows without their length say little: short rows once, and long rows three times, are the ends."""
    if "samples" not in base or "seq_len" in base or d.state.get("tokens_per_sample"):
        return
    epochs = base.get("epochs")
    for words, length, passes in (("short rows", 128, epochs or 1), ("long rows", 4096, epochs or 3)):
        arguments = {**base, "tokens_per_sample": length, "epochs": passes}
        often = "" if epochs else " once" if passes == 1 else " three times"
        d.add("estimate_run", arguments, "span", words + often)


# A sum that was paid, or is only quoted, is no budget.
_SPENT = re.compile(
    r"(?:he|she|they|we|someone|people|docs?|paper|readme|blog) (?:says?|said|claims?|paid|spent|spend|burn\w*|pay)"
    r"|(?:costs?|paid|spent|burn\w*) (?:us |me |about |around |like |~)*\$"
)


@action("cost")
def cost(d: Decider) -> None:
    """The bill of a run (USD); plans ranked where a card is asked for or a sum named; without a run, prices."""
    state = d.state
    if _ran(d):
        prices(d, "main")
        d.whole = True
        return
    if state.model is not None and d.model() is not None:
        most = grammar.seen("most_for_money", d.turn.lower) is not None
        asks_tokens = most or d.cards() or "how_many_tokens" in d.turn.cues
        no_data = not (state.get("tokens") or state.get("samples")) and not _SPENT.search(d.turn.lower)
        if most and no_data and state.get("budget_other") and not state.get("budget_usd"):
            _unconverted(d)
            return
        if state.get("budget_usd") and asks_tokens and no_data:
            tokens_for_money(d, d.card(_COMMON_CARDS[0]) or "")
            if d.cards() and not most:
                prices(d, "side")
            d.whole = True
            return
        ranked = "select_gpu" in d.tools and ("which_gpu" in d.turn.cues or bool(state.get("budget_usd")))
        if ranked and not d.cards():  # who asks which card, or names a sum, wants the ranking before any one run
            _rank(d)
            return
        time(d)
        if not d.cards():
            for method in run_methods(d):
                d.add("estimate_vram", with_method(d.workload("estimate_vram"), method), "line")
        elif "which_gpu" in d.turn.cues:
            d.add("select_gpu", d.workload("select_gpu"), "side")
        if d.cards() and state.get("budget_usd"):
            prices(d, "side")
    elif (state.model is not None and not d.state.gpus) or d.turn.cues & {"storage"}:
        d.know()
    else:
        price(d)


def _ran(d: Decider) -> bool:
    """Whether a run is told with its hours and cards: its bill is those hours' price, not a run modelled anew."""
    told = d.turn.get("hours") and d.cards() and grammar.named("ran", "asked").search(d.turn.lower)
    return bool(told) and not (d.state.get("tokens") or d.state.get("samples"))


_PRICED_SHARE = "1B"  # tokens of the run that is priced where a sum cannot be held against any


def _unconverted(d: Decider) -> None:
    """What a run costs in dollars, beside a sum in another currency: no dated rate is held to compare them by."""
    card, method = d.card(_COMMON_CARDS[0]) or "", d.method() or run_methods(d)[0]
    count = d.count_of(card) or fitting_count(d, card, method)
    base = d.workload("estimate_run", gpu=card, n_gpus=count, tokens=_PRICED_SHARE)
    d.add("estimate_run", with_method(base, method))
    d.notes.append("other_currency")
    d.whole = True


@action("price")
def price(d: Decider) -> None:
    """Dated offers (USD per GPU-hour) of the cards and providers named; without either, what they are wanted for."""
    state, cues = d.state, d.turn.cues
    if state.gpus and not d.cards():  # only cards that the tables do not hold: no other card's prices for them
        d.question = "ask_model"
    elif state.gpus or state.providers or state.get("gpu_memory_gb"):
        prices(d, "main")
    elif d.calls:
        pass  # figures of the job are there; a list of every card's price would drown them
    elif "same_again" in cues:
        d.question = "ask_what"
    elif cues & {"why", "concept"} and "price" not in cues:
        d.know()
    elif cues & {"price", "cost"}:
        d.question = "ask_purpose"
        prices(d, "side")
    else:
        d.know()


def _hours_per(text: str) -> float | None:
    """Hours of the time that a price is asked per ("per month": 730, the month of cloud price lists)."""
    found = grammar.named("per_time").search(text)
    if not found:
        return None
    starts = (("y", 8760.0), ("m", 730.0), ("w", 168.0), ("s", 168.0), ("d", 24.0))
    return next(hours for start, hours in starts if found[1].startswith(start))


def prices(d: Decider, part: Part) -> None:
    """``lookup_prices`` for each card and provider named, as ``part`` of the answer: three cards, four providers at
    most.
    """
    state = d.state
    asked = {name: state.get(name) for name in ("region", "billing", "hours", "gpu_hours", "since")}
    if asked["hours"] is None and asked["gpu_hours"] is None:
        asked["hours"] = _hours_per(d.turn.lower)
    if state.get("price_usd") is not None and state.get("price_currency", "USD") == "USD":
        asked["price"] = state.get("price_usd")
    cards: list[str | None] = [*d.cards()[:3]] or [None]
    providers: list[str | None] = [*state.providers[:4]] or [None]
    for card in cards:
        for provider in providers:
            arguments = {**asked, "gpu": card, "provider": provider, "n_gpus": d.count_of(card)}
            d.add("lookup_prices", arguments, part, str(provider or card or ""))
