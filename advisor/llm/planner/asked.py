"""Which quantity a question is about, where its words say so plainly: power, host memory, a speed, a change, spot.

The intents of ``intents.yaml`` weigh cues; these readings are exact and come before them. What they read besides
(a measured speed, two GPU counts, the ends of a change) is given to the actions of ``act_asked``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from advisor.llm.planner import grammar
from advisor.llm.planner.choices import choice_of
from advisor.llm.planner.mentions import COMPUTED
from advisor.llm.planner.page import number_word
from advisor.llm.planner.slots import Slots
from advisor.llm.planner.told import busbw_told, hours_told, step_seconds, tells_time, times_by_count

_FACTORS = (("doubl", 2.0), ("twice", 2.0), ("2x", 2.0), ("tripl", 3.0), ("quadrupl", 4.0), ("hal", 0.5))
_KNOBS = (
    ("micro", "micro_batch"), ("batch", "micro_batch"), ("bs", "micro_batch"), ("seq", "seq_len"),
    ("context", "seq_len"), ("ctx", "seq_len"), ("token", "seq_len"), ("lora", "lora_rank"), ("rank", "lora_rank"),
    ("gpu", "n_gpus"), ("card", "n_gpus"), ("node", "n_gpus"),
    ("epoch", "epochs"), ("data", "data"), ("row", "data"), ("sample", "data"), ("example", "data"), ("corpus", "data"),
)  # fmt: skip
# What stands where nothing was said: the tools' own defaults.
_DEFAULTS = {"micro_batch": 1, "seq_len": 2048, "lora_rank": 16, "n_gpus": 1}
_SHORTEST_LENGTH = 256  # a smaller end of a change is no sequence length
_MOST_GPUS = 100_000


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one argument, from a value to another."""

    argument: str
    before: int | float | str
    after: int | float | str


def _named(name: str) -> re.Pattern[str]:
    return grammar.named(name, "asked")


def asked_of(turn: Slots, state: Slots) -> str:
    """The goal that the words of the last message name outright, or ""."""
    if turn.log or ("oom" in turn.cues and grammar.seen("how_to_split", turn.lower) is None):
        return ""
    if turn.gpus and busbw_told(turn):
        return "check_busbw"
    if scaling_of(turn) is not None:
        return "check_scaling"
    computed = state.model is not None and state.model.kind in COMPUTED
    return (_of_a_job(turn, state) if computed else "") or _of_machines(turn, state, computed=computed)


def _of_a_job(turn: Slots, state: Slots) -> str:
    """What is asked of a job whose model can be computed with."""
    data = turn.get("tokens") or turn.get("samples")
    budget = turn.get("budget_usd") or turn.get("budget_other")
    buys = grammar.seen("buy_or_rent", turn.lower)
    if turn.get("price_cap_usd") is not None and not state.gpus:
        return "gpu_select"  # a cap on the price is a choice, whatever else the words say
    if data and budget and not state.gpus:
        return "cost"  # what a sum buys is a choice of machines too
    if budget and not buys and grammar.seen("most_for_money", turn.lower):
        return "cost"
    if data and turn.get("deadline_hours") and state.gpus and "how_many" in turn.cues:
        return "gpu_select"
    if grammar.seen("how_to_split", turn.lower) and (state.get("n_gpus", 1) > 1 or "nodes" in turn.cues):
        return "parallelism"
    if grammar.seen("per_million", turn.lower) or ("cost" in turn.cues and _ran(turn)):
        return "cost"
    if _asks_how_many_cards(turn, state) and not data:
        return "gpu_select"
    if "storage" in turn.cues and (grammar.seen("quota", turn.lower) or grammar.seen("writes", turn.lower)):
        return "storage"
    if grammar.seen("gpu_hours_asked", turn.lower) and (data or turn.get("steps")):
        return "time"
    if "cost" in turn.cues and (turn.get("tokens") or turn.get("samples")) and "onprem" in turn.intents and not buys:
        return "cost"  # "what would training our own 3B cost": nothing is bought
    if _link_hurts(turn, state):
        return "interconnect"
    if speed_told(turn) and (_judges(turn) or grammar.seen("got_tflops", turn.lower)):
        return "check_speed"
    if _judges(turn) and tells_time(turn) and (hours_told(turn) or "time" in turn.cues) and len(state.gpus) < _SEVERAL:
        return "judge_time"
    if grammar.seen("prefill", turn.lower) and not turn.methods:
        return "inference"
    if _serves(turn):
        return "inference"
    if _asks_host_memory(turn, state):
        return "host_memory"
    if change_of(turn, state) is not None:
        return "change"
    return "gpu_select" if grammar.seen("fastest", turn.lower) and not state.gpus else ""


def _link_hurts(turn: Slots, state: Slots) -> bool:
    """Whether what a link costs a job is asked: several cards, a link that is named or missing, and harm or enough."""
    several = state.get("n_gpus", 1) > 1 or state.get("n_nodes", 1) > 1 or len(state.gpus) > 1
    text = turn.lower
    for card in turn.gpus:  # "4x A100 PCIe" names a card, no link
        text = text[: card.start] + " " * (card.end - card.start) + text[card.end :]
    linked = turn.values.keys() & {"intra_link", "inter_link"} or _named("a_link").search(text)
    return bool(several and state.gpus and linked and _named("link_hurts").search(turn.lower))


_SEVERAL = 2  # cards with a time told for each are compared, not judged


def _of_machines(turn: Slots, state: Slots, *, computed: bool) -> str:
    """What is asked of cards, machines and prices, or of a failure, whatever is run on them."""
    if _asks_for_offers(turn, state):
        return "offers"
    timed = turn.get("hours") or turn.get("deadline_hours")
    if not state.models and state.gpus and "pretrain" in turn.methods and timed:
        return "biggest_model"
    if state.gpus and grammar.seen("rack", turn.lower) and "how_many" in turn.cues:
        return "rack"
    if state.gpus and (grammar.seen("buy_or_rent", turn.lower) or grammar.seen("payback", turn.lower)):
        return "onprem"
    if _asks_power(turn, state):
        return "power"
    if state.gpus and (grammar.seen("bridged", turn.lower) or _lanes_against(turn)):
        return "interconnect"
    if grammar.seen("loses", turn.lower) and (turn.models or turn.providers or "spot" in turn.cues):
        return "spot"
    if state.gpus and grammar.seen("spot_against", turn.lower) and _of_a_run(turn):
        return "spot_or_not"
    if state.gpus and grammar.seen("reserved_against", turn.lower):
        return "terms"
    if computed and state.gpus and grammar.seen("users", turn.lower) and not turn.methods:
        return "users"
    if _named("unstable").search(turn.lower) and not turn.cues & {"vram", "cost", "which_gpu", "how_many"}:
        return "concept"
    if grammar.seen("grows", turn.lower) and "storage" not in turn.cues:
        return "oom"
    if grammar.seen("failure", turn.lower) and not turn.values.keys() & _VERSIONS:
        return "failure"
    if turn.gpus and grammar.seen("feature", turn.lower) and not turn.methods and "fit" not in turn.cues:
        return "driver"
    return "bytes_each" if grammar.seen("bytes_each", turn.lower) and not turn.gpus else ""


_STORED = ("int4", "int8", "nf4", "fp4", "mxfp4")


def _serves(turn: Slots) -> bool:
    """Whether a model is run rather than trained: weights stored in few bits, or a chat, and no word of training."""
    if turn.methods or "log" in turn.cues or not _named("runs_model").search(turn.lower):
        return False
    stored = turn.get("precision") in _STORED or "chat" in turn.lower
    return stored and _named("trains").search(turn.lower) is None


def _ran(turn: Slots) -> bool:
    """Whether a run is told with its hours and cards, and no data to model it by."""
    told = bool(turn.get("hours") and turn.gpus) and not (turn.get("tokens") or turn.get("samples"))
    return told and _named("ran").search(turn.lower) is not None


def _asks_how_many_cards(turn: Slots, state: Slots) -> bool:
    """Whether a count of one card that is named is asked for: "how many H100 nodes for a 340B?"."""
    one = len({gpu.argument for gpu in state.gpus}) == 1 and not any(gpu.count for gpu in state.gpus)
    return one and state.get("task") != "inference" and _named("how_many_cards").search(turn.lower) is not None


def _lanes_against(turn: Slots) -> bool:
    """Whether two widths of a slot are set against each other: "x8/x8 vs x16"."""
    return len({match[2] for match in _named("lanes").finditer(turn.lower)}) > 1


_VERSIONS = frozenset(("cuda", "driver", "torch"))
_BY_PRICE = frozenset(("price", "cost", "which_gpu"))


def _asks_for_offers(turn: Slots, state: Slots) -> bool:
    """Whether cards of a memory, or under a price, are looked for and no job is named: "cheapest GPU with 48 GB"."""
    if state.gpus or turn.models or turn.methods or turn.get("budget_usd") or "onprem" in turn.cues:
        return False
    size = turn.get("gpu_memory_gb") or _named("at_memory").search(turn.lower)
    cap = turn.get("price_cap_usd") or turn.get("price_usd")
    if not (turn.cues & _BY_PRICE or cap) or turn.get("hours"):
        return False
    lowest = _named("cheapest").search(turn.lower) is not None
    return bool((size and (lowest or cap)) or (cap and (lowest or "which_gpu" in turn.cues)))


def _of_a_run(turn: Slots) -> bool:
    """Whether a run is spoken of, or nothing else: "an hour on spot and on demand, cheapest providers" asks prices."""
    timed = turn.models or turn.methods or {"hours", "deadline_hours", "tokens", "samples"} & turn.values.keys()
    return bool(timed) or "price" not in turn.cues or _named("a_run").search(turn.lower) is not None


def _judges(turn: Slots) -> bool:
    """Whether a figure is to be judged, rather than computed with ("at 40 % MFU, how long for 1T tokens?")."""
    computes = turn.cues & {"cost", "how_many", "which_gpu", "how_many_tokens"} or "how long" in turn.lower
    return _named("judged").search(turn.lower) is not None and not computes


def speed_told(turn: Slots) -> dict[str, float]:
    """A measured speed as arguments of ``check_speed``: MFU, tokens/s, seconds a step, utilisation."""
    told: dict[str, float] = {}
    if turn.get("mfu") is not None:
        told["measured_mfu"] = turn.get("mfu")
    if turn.get("tokens_per_second"):
        match = grammar.named("tokens_per_second").search(turn.lower)
        each = match and _named("per_gpu").match(turn.lower[match.end() :])
        told["tokens_per_second_per_gpu" if each else "tokens_per_second"] = turn.get("tokens_per_second")
    flops = grammar.seen("tflops_each", turn.lower) or grammar.seen("got_tflops", turn.lower)
    if flops:
        told["tflops_per_gpu"] = float(flops[1])
    seconds = step_seconds(turn.lower)
    if seconds:
        told["step_seconds"] = seconds
    of_cards = re.search(r"gpu|card|nvidia|util", turn.lower) and not turn.get("years")
    if turn.get("utilisation") is not None and of_cards and not _named("owned").search(turn.lower):
        told["gpu_utilisation"] = turn.get("utilisation")
    return told


def scaling_of(turn: Slots) -> tuple[float, int, int] | None:
    """A measured speed-up with the smaller and the larger GPU count, or None where one is not said."""
    told = _efficiency_told(turn) or times_by_count(turn)
    if told is not None:
        return told
    match = grammar.seen("speedup", turn.lower)
    percent = None if match else grammar.seen("percent_faster", turn.lower)
    if not match and not percent:
        return None
    speedup = float(match[1] or match[2]) if match else 1 + float(percent[1]) / 100  # type: ignore[index]  # one is set
    start, end = (match or percent).span()  # type: ignore[union-attr]
    rest = turn.lower[:start] + " ; " + turn.lower[end:]
    counts, nodes = [], False
    for found in _named("scaled").finditer(rest):
        count = number_word(found[1] or found[3])
        nodes = nodes or (found[2] or found[4] or "").startswith(("node", "machine"))
        if count and count <= _MOST_GPUS:
            counts.append(count)
    distinct = sorted(set(counts))
    if len(distinct) != 2 or not 0 < speedup <= 1.1 * distinct[1] / distinct[0]:
        return None
    each = (turn.get("gpus_per_node") or 8) if nodes else 1
    return speedup, distinct[0] * each, distinct[1] * each


def _efficiency_told(turn: Slots) -> tuple[float, int, int] | None:
    """A scaling efficiency that is told itself ("60 % scaling efficiency on 2 nodes"): against one node, or one GPU."""
    match = grammar.seen("efficiency", turn.lower)
    if not match:
        return None
    nodes, each = turn.get("n_nodes") or 1, turn.get("gpus_per_node") or 8
    more = turn.get("n_gpus") or nodes * each
    fewer = max(1, more // nodes) if nodes > 1 else 1
    share = float(match[1] or match[2]) / 100
    return (share * more / fewer, fewer, more) if more > fewer and 0 < share <= 1 else None


def _asks_power(turn: Slots, state: Slots) -> bool:
    if not (turn.gpus or state.gpus or state.model) or _named("owned").search(turn.lower):
        return False
    if not turn.gpus and turn.cues & {"which_gpu", "how_many"}:
        return False  # "what card should I get? the supply has 850 W": the choice is asked for
    return grammar.seen("power", turn.lower) is not None


def _asks_host_memory(turn: Slots, state: Slots) -> bool:
    offloads = "cpu_offload" in state.values and not turn.cues & {"killed", "storage"}
    return offloads and ("ram_gb" in turn.values or grammar.seen("host_memory", turn.lower) is not None)


def change_of(turn: Slots, state: Slots) -> Change | None:
    """The change of one argument that a message asks about: "double the batch", "from 4k to 16k context"."""
    choice = choice_of(turn)
    if choice is not None:
        return Change(*choice)
    against = grammar.seen("against", turn.lower)
    if against:
        argument = _argument(against[1])
        left, right = (int(against[at]) * (1024 if against[at + 1] else 1) for at in (2, 5))
        if "instead" in against[0]:
            left, right = right, left
        return Change(argument, left, right) if argument and left != right and min(left, right) >= 1 else None
    counts = grammar.seen("count_instead", turn.lower)
    if counts and counts[1] != counts[2] and min(int(counts[1]), int(counts[2])) >= 1:
        return Change("n_gpus", int(counts[2]), int(counts[1]))
    match = grammar.seen("from_to", turn.lower)
    if match and not _named("other_unit").match(turn.lower[match.end() :]):
        word = match[1] or match[4] or match[7] or ""
        before, after = (int(match[at]) * (1024 if match[at + 1] else 1) for at in (2, 5))
        argument = _argument(word)
        if argument == "" and (match[7] or turn.gpus) and after <= _MOST_GPUS and not match[3]:
            argument = "n_gpus"  # "from 8 to 16 H100"
        if argument == "" and min(before, after) >= _SHORTEST_LENGTH:
            argument = "seq_len"
        return Change(argument, before, after) if argument and before >= 1 and before != after else None
    if match:
        return None
    match = grammar.seen("changed", turn.lower)
    argument = _argument(match[2]) if match else ""
    if not match or not argument:
        return None
    factor = next(factor for head, factor in _FACTORS if match[1].startswith(head))
    if argument in ("data", "epochs"):
        return _of_data(argument, factor, state)
    before = state.get(argument) or _DEFAULTS[argument]
    if argument == "micro_batch" and factor < 1 and before == 1:
        before = 2  # half of one sample cannot be
    return Change(argument, int(before), max(1, int(before * factor)))


def _argument(word: str) -> str:
    return next((argument for head, argument in _KNOBS if word.startswith(head)), "")


def _of_data(argument: str, factor: float, state: Slots) -> Change | None:
    """More or less of the data that the conversation has named: its tokens, else its rows."""
    name = next((one for one in ("tokens", "samples") if state.get(one)), "") if argument == "data" else "epochs"
    before = state.get(name) or (1 if name == "epochs" else None)
    return Change(name, before, before * factor) if before else None
