"""What to call where a card, hours or money are asked for: plans, runs, offers, and the most within a limit."""

from __future__ import annotations

import math
from typing import Any

from advisor.llm.planner import grammar
from advisor.llm.planner.act_memory import methods_of, whole_model, with_method
from advisor.llm.planner.decide import ADAPTERS, LARGE_DATA, TALK, Decider, action, billions
from advisor.llm.planner.mentions import COMPUTED, ModelMention
from advisor.llm.planner.plan import Limit, Part
from knowledge.gpus import load_gpu
from knowledge.models import load_model

_FOR_A_DESK = ["RTX-3090", "RTX-4060-Ti-16GB", "RTX-4090", "RTX-5090"]  # what people buy, from small to large
# Only for choosing how many cards to ask the tools about; the tools then say what is needed. Bytes a parameter: 4-bit
# base, 16-bit base, weights with gradients and Adam states; GB of an 80 GB card left beside activations.
BYTES_PER_PARAM = {"qlora": 0.65, "lora": 2.4, "dora": 2.4, "full": 18.0}
_ROOM_GB = 66.0
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
        _in_time(d, cards[0])
        d.add("select_gpu", with_method(d.workload("select_gpu"), d.method() or run_methods(d)[0]), "line")
    elif len(cards) == 1 and many:
        base = {"method": "full", **d.workload("estimate_vram", gpu=cards[0])}
        for count in next(counts for most, counts in _COUNTS if default_count(d) <= most):
            d.add("estimate_vram", {**base, "n_gpus": count}, "ladder", f"n_gpus={count}")
        if "estimate_run" in d.tools and (d.state.get("tokens") or d.state.get("samples")):
            time(d)
    elif len(cards) == 1:
        d.go("fit")
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
        _model_in_gpu_hours(d, d.card("A100-SXM4-80GB") or "")
        return
    if d.state.get("budget_usd") and "pretrain" in d.state.methods:
        _model_for_money(d, d.card("H100-SXM5") or "")
        return
    if not cards:
        d.question = "ask_gpu"
        return
    method = d.method() or "qlora"
    base = d.workload("estimate_vram", gpu=cards[0], n_gpus=d.count_of(cards[0]), method=method)
    base.setdefault("activation_checkpointing", "full")  # one recipe for all sizes, so that they compare
    for size in ("1B", "3B", "8B", "13B", "32B", "70B"):
        d.add("estimate_vram", {**base, "model": size}, "ladder", size)


def _ladder(d: Decider, limit: Limit, argument: str, values: tuple[Any, ...], **extra: Any) -> None:
    """estimate_run over rising values of one argument, held against a limit that the asker gave."""
    d.limit = limit
    base = d.workload("estimate_run", **extra)
    for value in values:
        about = str(value) if argument == "model" else f"{argument}={value}"
        d.add("estimate_run", {**base, argument: value}, "ladder", about)


def _in_time(d: Decider, card: str) -> None:
    """The fewest of a card that finish by the deadline."""
    hours = float(d.state.get("deadline_hours"))
    limit = Limit("run_hours", hours, "the deadline")
    method = d.method() or run_methods(d)[0]
    _ladder(d, limit, "n_gpus", _counts_around(d, card, hours), gpu=card, method=method)
    d.whole = True


_ROUGH_MFU = 0.35  # only for choosing which counts to compute
_MOST_TRIED = 4096


def _counts_around(d: Decider, card: str, hours: float) -> tuple[int, ...]:
    """Six counts, doubling, around what the work takes at a usual share of peak: 6 x parameters x tokens."""
    tokens = float(d.state.get("tokens") or 0)
    peak = load_gpu(card).dense_flops.get("bf16") or load_gpu(card).dense_flops.get("fp16") or 1e14
    needed = 6e9 * billions_of(d.state.model) * tokens / (_ROUGH_MFU * peak * hours * 3600) if tokens else 4
    middle = 2 ** round(math.log2(max(needed, 4)))
    least = max(1, min(middle, _MOST_TRIED) // 8)
    return tuple(least * 2**step for step in range(6))


def _tokens_in_time(d: Decider, card: str) -> None:
    """The most tokens that a count of cards sees in a time."""
    limit = Limit("run_hours", float(d.state.get("deadline_hours") or d.state.get("hours")), "the time")
    values = ("100M", "300M", "1B", "3B", "10B", "30B", "100B", "300B", "1T")
    count = d.count_of(card) or default_count(d)
    _ladder(d, limit, "tokens", values, gpu=card, n_gpus=count, method=d.method() or "pretrain")


def _tokens_for_money(d: Decider, card: str) -> None:
    """The most tokens that a budget buys."""
    limit = Limit("run_cost", float(d.state.get("budget_usd")), "the budget")
    values = ("3M", "10M", "30M", "100M", "300M", "1B", "3B", "10B", "30B")
    _ladder(d, limit, "tokens", values, gpu=card, n_gpus=d.count_of(card) or default_count(d))


def _model_for_money(d: Decider, card: str) -> None:
    """The largest model that a budget trains on its default share of tokens."""
    limit = Limit("run_cost", float(d.state.get("budget_usd")), "the budget")
    values = ("410M", "1B", "1.4B", "2B", "3B", "4B", "7B", "13B")
    _ladder(d, limit, "model", values, gpu=card, n_gpus=d.count_of(card) or 8, method="pretrain")


def _model_in_gpu_hours(d: Decider, card: str) -> None:
    """The largest model that a stock of GPU-hours trains on its default share of tokens."""
    limit = Limit("gpu_hours", float(d.state.get("gpu_hours")), "the GPU-hours")
    values = ("160M", "410M", "700M", "1B", "1.4B", "2B", "3B", "7B")
    _ladder(d, limit, "model", values, gpu=card, n_gpus=d.state.get("n_gpus"), method="pretrain")


def _select(d: Decider) -> None:
    """Ranked plans for the method meant, or the lightest, with the bill of each that may be meant."""
    if "select_gpu" not in d.tools:
        d.go("vram")
        return
    first, *others = methods_of(d)
    d.add("select_gpu", with_method(d.workload("select_gpu"), first), "main", first or "")
    for method in (first, *others):
        d.add("estimate_vram", with_method(d.workload("estimate_vram"), method), "line", method or "")


@action("time")
def time(d: Decider) -> None:
    """estimate_run on the cards named, or on two common ones."""
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
        _in_time(d, cards[0])
        d.whole = True
        return
    asks_tokens = "how_many_tokens" in d.turn.cues and not state.get("tokens") and not state.get("samples")
    if cards and asks_tokens and (state.get("deadline_hours") or state.get("hours")):
        _tokens_in_time(d, cards[0])
        return
    counts = [d.count_of(card) or (default_count(d) if d.plural(card) else None) for card in cards]
    if not cards and state.gpus:  # only cards that the tables do not hold: no other card's hours for them
        d.know()
        return
    if not cards and any(call.name == "select_gpu" and call.part == "main" for call in d.calls):
        _compare_usual(d)
        return
    if not cards:
        cards = _COMMON_CARDS
        counts = [state.get("n_gpus") or default_count(d)] * len(cards)
    methods = run_methods(d)
    for card, count in list(zip(cards, counts, strict=True))[:4]:
        base = d.workload("estimate_run", gpu=card, n_gpus=count)
        for method in methods:
            about = card if len(cards) > 1 else method or ""
            d.add("estimate_run", with_method(base, method), "main", about)
        if len(cards) == len(methods) == 1:
            _row_span(d, d.calls[-1].arguments)


def _compare_usual(d: Decider) -> None:
    """One line beside a ranking: the run on the card that most people name."""
    arguments = with_method(d.workload("estimate_run", gpu=_COMMON_CARDS[0]), run_methods(d)[-1])
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


def run_methods(d: Decider) -> list[str | None]:
    """The methods of a run: the one named, pretraining for much data, else both ends of fine-tuning."""
    tokens = d.state.get("tokens") or 0
    if d.state.methods or d.state.get("task") == "inference":
        return [d.method()]
    if tokens >= LARGE_DATA:
        return ["pretrain"]
    both = (tokens or d.state.get("samples")) and not whole_model(d)
    return ["full", "qlora"] if both else ["full"]


def default_count(d: Decider) -> int:
    """GPUs for a run without a count: what holds the states on 80 GB cards, and a node at least for much data."""
    method = d.method() or ("pretrain" if (d.state.get("tokens") or 0) >= LARGE_DATA else "full")
    share = BYTES_PER_PARAM.get(method, BYTES_PER_PARAM["full"])
    needed = math.ceil(billions_of(d.state.model) * share / _ROOM_GB)
    if method not in ADAPTERS and (method == "pretrain" or (d.state.get("tokens") or 0) >= LARGE_DATA):
        needed = max(needed, 1 if billions_of(d.state.model) < 1 else 8)
    return next((count for count in (1, 2, 4, 8) if count >= needed), 8 * math.ceil(needed / 8))


_OF_A_CARD = _ROOM_GB / 80  # of a card's memory that is left beside activations


def fitting_count(d: Decider, card: str, method: str | None = None) -> int:
    """Cards of this kind that hold the states of the model under this method: a power of two, then whole nodes."""
    share = BYTES_PER_PARAM.get(method or "full", BYTES_PER_PARAM["full"])
    needed = math.ceil(billions_of(d.state.model) * share / (load_gpu(card).marketed_memory_gb * _OF_A_CARD))
    if method == "pretrain" and billions_of(d.state.model) >= 1:
        needed = max(needed, 8)  # pretraining is done on whole machines
    return next((count for count in (1, 2, 4, 8) if count >= needed), 8 * math.ceil(needed / 8))


def billions_of(mention: ModelMention | None) -> float:
    """Billions of parameters; 7 where nothing says."""
    if mention is not None and mention.kind == "known" and mention.argument:
        return load_model(mention.argument).total_params / 1e9
    size = mention.size if mention is not None else None
    return billions(size) if size else 7.0


@action("cost")
def cost(d: Decider) -> None:
    """The bill of a run; without a run, prices."""
    state = d.state
    if state.model is not None and d.model() is not None:
        asks_tokens = d.cards() or "how_many_tokens" in d.turn.cues
        if state.get("budget_usd") and asks_tokens and not (state.get("tokens") or state.get("samples")):
            _tokens_for_money(d, d.card(_COMMON_CARDS[0]) or "")
            if d.cards():
                prices(d, "side")
            d.whole = True
            return
        ranked = "select_gpu" in d.tools and ("which_gpu" in d.turn.cues or bool(state.get("budget_usd")))
        if ranked and not d.cards():  # who asks which card, or names a sum, wants the ranking before any one run
            part: Part = "main"
            for method in reversed(run_methods(d)):  # the lightest first: what the sum buys at least
                d.add("select_gpu", with_method(d.workload("select_gpu"), method), part, method or "")
                part = "line"
            _compare_usual(d)
            d.whole = True
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


@action("price")
def price(d: Decider) -> None:
    """Dated offers."""
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
    """lookup_prices for each card and provider named."""
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
