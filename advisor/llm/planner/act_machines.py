"""What to call for cards side by side, layouts, links, checkpoints, spot, ownership, versions and launching."""

from __future__ import annotations

import re
from typing import Any

from advisor.llm.planner import grammar
from advisor.llm.planner.act_memory import whole_model, with_method
from advisor.llm.planner.act_runs import prices
from advisor.llm.planner.decide import Decider, action
from advisor.llm.planner.passage import sure
from advisor.llm.planner.read_machine import BETWEEN_NODES, VAGUE_LINKS
from advisor.llm.planner.run_sizes import BYTES_PER_PARAM, billions_of, fitting_count, run_methods
from knowledge.gpus import load_gpu

_COMMON_CARD = "H100-SXM5"
_PER_NODE = 8
# A network rate; "GB/s" with a large B is one of memory or NVLink.
_BIT_RATE = re.compile(r"\b\d+(?:\.\d+)? ?(?:Gb/s|Gbps|Gbit/s|gbps|gbit/s|Gbit|gbit)\b")
# A rate of storage: bytes, so "GB/s", or "gb/s" where nobody keeps capitals, but not "Gb/s".
_BYTE_RATE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s?(?:([MGT])i?B|([mgt])b)(?:ytes?)?/s")


_COMPARED_TOKENS = "100M"  # where no amount of data is named: more than start-up decides


@action("compare")
def compare(d: Decider) -> None:
    """Finished runs on the cards named, side by side; without a workload, the cards themselves."""
    cards = d.cards()
    asks_price = d.turn.cues & {"price", "cost"}
    if len(cards) < 2 and len(d.state.providers) > 1 and d.state.model is None and asks_price:
        d.go("price")
    elif len(cards) > 1 and d.model() is not None and "estimate_run" in d.tools and d.state.get("task") != "inference":
        compare_runs(d, cards[:_MOST_RUNS])
        for card in (
            cards[:3] if d.turn.cues & {"fit", "vram"} or _of_memory(d) else ()
        ):  # "doable on A, or do I book B?"
            d.add("estimate_vram", d.workload("estimate_vram", gpu=card, n_gpus=d.count_of(card)), "line", card)
        if d.turn.cues & {"tflops", "bandwidth_ask", "own_card", "purchase"}:  # more than the run is compared
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


def _of_memory(d: Decider) -> bool:
    """Whether memory is what the cards are compared by: "memory wise"."""
    found = grammar.named("of_memory", "asked").search(d.turn.lower)
    return found is not None and not found[0].startswith("g")  # "80 GB" belongs to a card's name


_MOST_RUNS = 5


def compare_runs(d: Decider, cards: list[str]) -> None:
    """The same run on each card; a count that nobody named is what holds the job."""
    method = _compared_method(d, cards)
    named = d.state.get("tokens") or d.state.get("samples") or d.state.get("steps")
    data = {} if named else {"tokens": _COMPARED_TOKENS}
    for card in cards:
        count = d.count_of(card) or (fitting_count(d, card, method) if not _singular(d, card) else 1)
        price = d.state.get("card_prices", {}).get(card) or d.state.get("price_usd")
        arguments = {**d.workload("estimate_run", gpu=card, n_gpus=count, price=price), **data}
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
    extra: dict[str, Any] = {}
    if d.state.model is None and d.state.get("tp") and (d.state.get("n_gpus") or 1) > 1:
        extra["model"] = _TYPICAL  # which degrees divide the GPUs is the same for most models
        d.notes.append("assumed_model_size")
    elif d.model() is None:
        d.know()
        d.compare_named()
        return
    card = d.card(_COMMON_CARD)
    count = d.count_of(card) or d.state.get("n_gpus") or _PER_NODE * (d.state.get("n_nodes") or 1)
    sizes = [mention.argument for mention in d.turn.models if mention.kind == "size" and mention.argument]
    both = sizes if len(sizes) == _PAIR and count > 1 else []  # "1B-15B": the layout of either end
    for size in both:
        arguments = d.workload("plan_parallelism", gpu=card, n_gpus=count, **extra) | {"model": size}
        d.add("plan_parallelism", arguments, "main", size)
    if count > 1 and not both:
        d.add("plan_parallelism", d.workload("plan_parallelism", gpu=card, n_gpus=count, **extra))
    d.add("estimate_vram", d.workload("estimate_vram", gpu=card, n_gpus=count, **extra), "side")
    d.know("side")


@action("interconnect")
def network(d: Decider) -> None:
    """Whether the links suffice for a workload; else facts about the links."""
    extra: dict[str, Any] = {}
    inside = _inside_links(d)
    if d.state.model is None and (_asks_need(d) or inside):
        big = load_gpu(str(d.card())).tier == "datacenter"
        extra = {"model": _COMMON_SIZE, "method": d.method() or ("full" if big else "lora")}
        d.notes.append("assumed_model_link")
    elif d.model() is None:
        d.know()
        d.compare_named()
        return
    card, nodes = d.card(_COMMON_CARD), d.state.get("n_nodes") or 0
    count = d.count_of(card) or d.state.get("n_gpus") or _PER_NODE * (nodes or 2)
    count = max([count, *d.state.get("counts", ())])
    if count < nodes:
        count = _PER_NODE * nodes
    for lane in inside:
        arguments = d.workload("check_interconnect", gpu=card, n_gpus=max(count, 2), intra_link=lane, **extra)
        arguments.pop("inter_link", None)
        d.add("check_interconnect", arguments, "main", f"link={lane}")
    if inside:
        return
    named = [name for name in d.state.get("links", []) if name.startswith(BETWEEN_NODES) and name not in VAGUE_LINKS]
    rate = _BIT_RATE.search(d.turn.text)
    if str(d.state.get("intra_link", "")).startswith("NVLink") and not load_gpu(str(card)).nvlink_bytes_per_s:
        extra["intra_link"] = "PCIe"  # what joins these cards; the answer says that they have no NVLink
        d.notes.append("premise_nvlink")
    for link in named if len(named) > 1 else (d.state.get("inter_link") or (rate and rate[0]) or None,):
        each = max(1, count // (nodes or 2)) if link and count <= _PER_NODE else None  # "two boxes over 10GbE"
        if _needs_nvlink(d):  # what the job does without it
            extra["intra_link"] = "PCIe"
        arguments = {
            "gpus_per_node": each,
            **d.workload("check_interconnect", gpu=card, n_gpus=count, inter_link=link, **extra),
        }
        d.add("check_interconnect", arguments, "main", link or "")
    d.know("side")


_GENERATIONS = ((40e9, 5), (20e9, 4), (0.0, 3))  # bytes/s one way of x16, from which a slot is of this generation


def _inside_links(d: Decider) -> list[str]:
    """Two links inside a machine that are set against each other: x8 and x16 lanes, a bridge or none."""
    card = d.card()
    if card is None or d.state.get("task") == "inference":
        return []
    gpu = load_gpu(card)
    if grammar.seen("bridged", d.turn.lower) and gpu.nvlink_bytes_per_s and not d.turn.get("inter_link"):
        return ["NVLink", "PCIe"]
    found = list(grammar.named("lanes", "asked").finditer(d.turn.lower))
    lanes = list(dict.fromkeys(match[2] for match in found))
    if len(lanes) != _PAIR:
        return []
    rate = gpu.pcie_bytes_per_s or 0.0
    usual = next(generation for least, generation in _GENERATIONS if rate >= least)
    generation = next((match[1] for match in found if match[1]), usual)
    return [f"PCIe {generation}.0 x{lane}" for lane in lanes]


_PAIR = 2
_COMMON_SIZE = "8B"  # where commands are asked for and no model is named
_TYPICAL = "70B"  # where the answer hangs on the machines and only its scale on the model


def _needs_nvlink(d: Decider) -> bool:
    """Whether NVLink is asked for by those who may do without it."""
    named = d.turn.get("intra_link") == "NVLink" and not d.turn.get("inter_link")
    return named and grammar.named("needed").search(d.turn.lower) is not None


def _asks_need(d: Decider) -> bool:
    """Whether a link is asked about for cards that are named, several of them, with no model."""
    card = d.card()
    several = (d.count_of(card) or 1) > 1 or (d.state.get("n_nodes") or 1) > 1
    asks = d.turn.cues & {"link_enough"} or ("concept" in d.turn.cues and d.turn.cues & {"network"})
    return bool(card and several and asks and not d.turn.cues & {"bandwidth_ask", "inference", "hang", "oom"})


@action("storage", "checkpoint")
def storage(d: Decider) -> None:
    """Checkpoint bytes and interval where a model is named; else what the knowledge base says."""
    extra: dict[str, Any] = {}
    if d.model() is None:
        if d.state.model is not None or not (d.state.get("mtbf_hours") and "checkpoint_plan" in d.turn.cues):
            d.know()
            d.compare_named()
            return
        extra["model"] = _TYPICAL
        d.notes.append("assumed_model_size")
    d.add("plan_checkpoints", d.workload("plan_checkpoints", gpu=d.card(), **_saving(d), **extra))
    if "oom" in d.turn.cues:
        d.add("estimate_vram", d.workload("estimate_vram", gpu=d.card()), "line")
    d.know("side")


def _saving(d: Decider) -> dict[str, Any]:
    """What the message says of the run and of where it writes."""
    rate = _BYTE_RATE.search(d.turn.text)
    bits, kept = (grammar.named(name, "asked").search(d.turn.lower) for name in ("bit_rate", "kept"))
    written = f"{rate[1]} {(rate[2] or rate[3]).upper()}B/s" if rate else None
    if written is None and bits:
        written = f"{float(bits[1]) / 8:g} GB/s"
    return {
        "write_bandwidth": written,
        "kept": int(next(number for number in kept.groups() if number)) if kept else None,
        "mtbf_hours": d.state.get("mtbf_hours"),
        "run_hours": d.state.get("deadline_hours") or d.state.get("hours"),
    }


@action("spot")
def spot(d: Decider) -> None:
    """Spot against on-demand: ``plan_checkpoints`` with both bills, lost work and restarts counted."""
    if d.model() is not None:
        arguments = d.workload("plan_checkpoints", gpu=d.card(_COMMON_CARD), **_saving(d))
        d.add("plan_checkpoints", arguments)
        if d.state.get("tokens") or d.state.get("samples"):
            d.go("time")
    if d.state.gpus:
        prices(d, "side")
    d.know("side" if d.calls else "main")


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
    """Versions of driver, CUDA and torch that work together, for the card named or for any."""
    state = d.state
    torch = state.get("torch")
    versions = {name: state.get(name) for name in ("cuda", "driver", "precision", "attention", "torch")}
    # A wheel brings its own CUDA, and nvcc may be another: each must suit the driver.
    cudas = list(dict.fromkeys(state.get(name) for name in ("cuda", "cuda_wheel", "nvcc") if state.get(name)))
    if _FLASH_3.search(d.turn.lower):
        versions["attention"] = "flash3"
    named = [name for name, pattern in _LIBRARIES.items() if pattern.search(d.turn.lower)]
    framework = state.get("framework")
    named += [framework] if framework and framework not in named else []
    stack = " ".join([*([f"torch {torch}"] if torch else []), *named])
    arguments = {**versions, "framework": stack or None, "error": d.turn.log[:20_000] or None}
    cards: list[str | None] = [*d.cards()[:2]] or [None]
    paired = sum(bool(arguments[name]) for name in ("cuda", "driver", "framework")) > 1 or arguments["error"]
    asked = any(value for name, value in arguments.items() if name != "gpu")
    for card in cards if (d.cards() and asked) or paired else ():  # one version alone decides nothing
        for cuda in cudas[:_PAIR] or [None]:
            d.add(
                "check_compatibility", {**arguments, "cuda": cuda, "gpu": card}, "main", cuda if len(cudas) > 1 else ""
            )
    if d.calls and not d.cards() and arguments["error"]:
        d.add("search_knowledge", {}, "side")  # a message alone may decide nothing; the nearest article then leads
    else:
        d.know("side" if d.calls else "main", explained=True)
    if d.model() is not None and state.methods:
        d.go("fit")


@action("launch")
def launch(d: Decider) -> None:
    """Commands and configuration files of a run, on the usual card where none was named."""
    extra: dict[str, Any] = {}
    if d.state.model is None:
        extra["model"] = _COMMON_SIZE
        d.notes.append("assumed_model_launch")
    elif d.model() is None:
        d.know()
        return
    card = d.card(_COMMON_CARD)
    if not d.cards():
        d.notes.append("took_card")
    launcher = d.state.get("launcher") or ("deepspeed" if d.state.get("framework") == "deepspeed" else None)
    d.add("launch_plan", d.workload("launch_plan", gpu=card, launcher=launcher, **extra))
    if d.model() is not None and d.cards():  # whether what the files start fits, and what would
        d.add("estimate_vram", d.workload("estimate_vram", gpu=card, n_gpus=d.count_of(card)), "line")


@action("concept")
def concept(d: Decider) -> None:
    """What the knowledge base says, with the sums where a workload is named."""
    d.know()
    if d.model() is None:
        d.compare_named()
        return
    job = d.state.methods or d.cards() or d.state.get("tokens") or d.turn.cues & {"vram", "fit"}
    if not job and sure(d.query()):  # a model in passing: nobody asked for its bill
        return
    if d.state.get("tokens"):
        d.go("time")
    d.go("fit")
