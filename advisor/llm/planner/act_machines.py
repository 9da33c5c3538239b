"""What to call for cards side by side, layouts, links, checkpoints, spot, ownership, versions and launching."""

from __future__ import annotations

import re

from advisor.llm.planner import grammar
from advisor.llm.planner.act_memory import whole_model, with_method
from advisor.llm.planner.act_runs import BYTES_PER_PARAM, billions_of, fitting_count, prices, run_methods
from advisor.llm.planner.decide import Decider, action
from advisor.llm.planner.read_machine import BETWEEN_NODES, VAGUE_LINKS
from knowledge.gpus import load_gpu

_COMMON_CARD = "H100-SXM5"
_PER_NODE = 8
_HOURS_A_YEAR = 8760
# A network rate; "GB/s" with a large B is one of memory or NVLink.
_BIT_RATE = re.compile(r"\b\d+(?:\.\d+)? ?(?:Gb/s|Gbps|Gbit/s|gbps|gbit/s|Gbit|gbit)\b")
_CHEAPEST_SERVER = 20_000  # USD; a smaller sum beside "buy" is a budget or one card's price


_COMPARED_TOKENS = "100M"  # where no amount of data is named: more than start-up decides


@action("compare")
def compare(d: Decider) -> None:
    """Finished runs on the cards named, side by side; without a workload, the cards themselves."""
    cards = d.cards()
    if len(cards) > 1 and d.model() is not None and "estimate_run" in d.tools and d.state.get("task") != "inference":
        compare_runs(d, cards[:_MOST_RUNS])
        if not (d.state.get("tokens") or d.state.get("samples")):  # more than money is compared
            d.add("compare_gpus", {"gpus": cards[:5]}, "line")
        d.whole = True
    elif len(cards) > 1 or (cards and d.state.model is None):
        d.add("compare_gpus", {"gpus": cards[:5]})
        for card in cards[:3] if d.model() is not None else ():
            d.add("estimate_vram", d.workload("estimate_vram", gpu=card, n_gpus=d.count_of(card)), "side", card)
        if d.turn.cues & {"price", "cost"}:
            prices(d, "side")
    elif d.model() is not None and any(call.name == "check_interconnect" for call in d.calls):
        pass  # links are compared, and are there
    elif d.model() is not None:
        d.go("fit")
    elif len(d.state.providers) > 1:
        d.go("price")
    else:
        d.know()


_MOST_RUNS = 5


def compare_runs(d: Decider, cards: list[str]) -> None:
    """The same run on each card; a count that nobody named is what holds the job."""
    method = _compared_method(d, cards)
    named = d.state.get("tokens") or d.state.get("samples") or d.state.get("steps")
    data = {} if named else {"tokens": _COMPARED_TOKENS}
    for card in cards:
        count = d.count_of(card) or (fitting_count(d, card, method) if not _singular(d, card) else 1)
        arguments = {**d.workload("estimate_run", gpu=card, n_gpus=count), **data}
        d.add("estimate_run", with_method(arguments, method), "main", card)


def _compared_method(d: Decider, cards: list[str]) -> str | None:
    """The method named; else whole training where that is said or usual or fits a card, LoRA where none holds it."""
    first = run_methods(d)[0]
    if d.state.methods or first == "pretrain" or whole_model(d):
        return first
    trains = not grammar.matcher("workload", "finetune").search(d.turn.lower)
    largest = max(load_gpu(card).marketed_memory_gb * (d.count_of(card) or 8) for card in cards)
    if trains and largest >= BYTES_PER_PARAM["full"] * billions_of(d.state.model):
        return "full"
    d.notes.append("took_lora")
    return "lora"


def _singular(d: Decider, card: str) -> bool:
    return any(mention.argument == card and mention.count == 1 for mention in d.state.gpus)


@action("parallelism")
def parallel(d: Decider) -> None:
    """Layouts that fit, ranked; without a workload, what the knowledge base says."""
    if d.model() is None:
        d.know()
        d.compare_named()
        return
    card = d.card(_COMMON_CARD)
    count = d.count_of(card) or d.state.get("n_gpus") or _PER_NODE
    if count > 1:
        d.add("plan_parallelism", d.workload("plan_parallelism", gpu=card, n_gpus=count))
    d.add("estimate_vram", d.workload("estimate_vram", gpu=card, n_gpus=count), "side")
    d.know("side")


@action("interconnect")
def network(d: Decider) -> None:
    """Whether the links suffice for a workload; else facts about the links."""
    if d.model() is None:
        d.know()
        d.compare_named()
        return
    card, nodes = d.card(_COMMON_CARD), d.state.get("n_nodes") or 0
    count = d.count_of(card) or d.state.get("n_gpus") or _PER_NODE * (nodes or 2)
    if count < nodes:
        count = _PER_NODE * nodes
    named = [name for name in d.state.get("links", []) if name.startswith(BETWEEN_NODES) and name not in VAGUE_LINKS]
    rate = _BIT_RATE.search(d.turn.text)
    extra = {}
    if str(d.state.get("intra_link", "")).startswith("NVLink") and not load_gpu(str(card)).nvlink_bytes_per_s:
        extra["intra_link"] = "PCIe"  # what joins these cards; the answer says that they have no NVLink
        d.notes.append("premise_nvlink")
    for link in named if len(named) > 1 else (d.state.get("inter_link") or (rate and rate[0]) or None,):
        each = max(1, count // (nodes or 2)) if link and count <= _PER_NODE else None  # "two boxes over 10GbE"
        arguments = {
            "gpus_per_node": each,
            **d.workload("check_interconnect", gpu=card, n_gpus=count, inter_link=link, **extra),
        }
        d.add("check_interconnect", arguments, "main", link or "")
    d.know("side")


@action("storage", "checkpoint")
def storage(d: Decider) -> None:
    """Checkpoint bytes and interval where a model is named; else what the knowledge base says."""
    if d.model() is None:
        d.know()
        d.compare_named()
        return
    d.add("plan_checkpoints", d.workload("plan_checkpoints", gpu=d.card()))
    if "oom" in d.turn.cues or d.state.methods:
        d.add("estimate_vram", d.workload("estimate_vram", gpu=d.card()), "line")
    d.know("side")


@action("spot")
def spot(d: Decider) -> None:
    """Spot against on-demand."""
    if d.model() is not None:
        arguments = d.workload("plan_checkpoints", gpu=d.card(_COMMON_CARD), billing="spot", spot=True)
        d.add("plan_checkpoints", arguments)
        if d.state.get("tokens") or d.state.get("samples"):
            d.go("time")
    if d.state.gpus:
        prices(d, "side")
    d.know("side" if d.calls else "main")


@action("onprem")
def onprem(d: Decider) -> None:
    """Owning against renting."""
    state, card = d.state, d.card(_COMMON_CARD)
    nodes = state.get("n_nodes") or 0
    colo = state.get("colo_usd_per_kw_month")
    hours, money = state.get("hours") or 0, state.get("budget_usd") or 0
    years = hours / _HOURS_A_YEAR if hours >= _HOURS_A_YEAR / 12 else None
    server = load_gpu(str(card)).tier == "datacenter"
    arguments = {
        "gpu": card,
        "n_gpus": d.count_of(card) or state.get("n_gpus") or (_PER_NODE if server else 1) * (nodes or 1),
        "utilisation": state.get("utilisation"),
        "years": state.get("years") or years,
        "cloud_price": state.get("price_usd"),
        "server_price": money if money >= _CHEAPEST_SERVER else None,
        "provider": state.providers[0] if state.providers else None,
        "power_price": state.get("power_price"),
        "colo_usd_per_kw_month": colo,
    }
    d.add("compare_ownership", arguments)
    if d.model() is not None:
        d.go("fit")
    d.know("side")


_FLASH_3 = re.compile(r"flash[ -]?att\w*[ -]?3|\bfa ?-?3\b")
# What the compatibility tool holds facts on, by the words people use.
_LIBRARIES = {
    "bitsandbytes": re.compile(r"bits ?and ?bytes|\bbnb\b"), "xformers": re.compile(r"\bxformers\b"),
    "transformer-engine": re.compile(r"transformer[ -]?engine"), "vllm": re.compile(r"\bvllm\b"),
    "unsloth": re.compile(r"\bunsloth\b"), "triton": re.compile(r"\btriton\b"),
    "deepspeed": re.compile(r"\bdeep ?speed\b"), "mlx": re.compile(r"\bmlx\b"),
}  # fmt: skip


@action("driver")
def driver(d: Decider) -> None:
    """Versions that work together."""
    state = d.state
    torch = state.get("torch")
    versions = {name: state.get(name) for name in ("cuda", "driver", "precision", "attention", "torch")}
    if _FLASH_3.search(d.turn.lower):
        versions["attention"] = "flash3"
    named = [name for name, pattern in _LIBRARIES.items() if pattern.search(d.turn.lower)]
    stack = " ".join([*([f"torch {torch}"] if torch else []), *named])
    arguments = {**versions, "framework": stack or None, "error": d.turn.log[:20_000] or None}
    cards: list[str | None] = [*d.cards()[:2]] or [None]
    for card in cards if d.cards() or any(arguments.values()) else ():
        d.add("check_compatibility", {**arguments, "gpu": card})
    d.know("side" if d.calls else "main", explained=True)
    if d.model() is not None and state.methods:
        d.go("fit")


@action("launch")
def launch(d: Decider) -> None:
    """Commands and configuration."""
    if d.model() is None:
        d.question = "ask_model"
        return
    card = d.card(_COMMON_CARD)
    if not d.cards():
        d.notes.append("took_card")
    d.add("launch_plan", d.workload("launch_plan", gpu=card, launcher=d.state.get("launcher")))


@action("concept")
def concept(d: Decider) -> None:
    """What the knowledge base says, with the sums where a workload is named."""
    d.know()
    if d.model() is None:
        d.compare_named()
        return
    if d.state.get("tokens"):
        d.go("time")
    d.go("fit")
