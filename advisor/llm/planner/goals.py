"""What a turn is after: its own intents put in order, or the earlier turn's where it only changes a slot."""

from __future__ import annotations

from advisor.llm.planner import grammar
from advisor.llm.planner.asked import asked_of
from advisor.llm.planner.slots import Slots


def goals_of(turn: Slots, state: Slots, earlier: tuple[str, ...]) -> tuple[str, ...]:
    """The goals of ``turn`` in order; ``state`` is the conversation including it."""
    asked = asked_of(turn, state)
    if asked:
        return (asked,)
    own = _ordered(turn, state)
    if earlier and earlier[0] == "inference" and turn.methods:
        return ("vram",)  # "and to QLoRA it?": from serving to training
    if earlier and earlier[0] in _RUNS and turn.values.keys() & _TERMS and "?" not in turn.lower:
        return earlier  # "we pay $1.10 per GPU hour", "it must be done in 2 hours": terms of the run spoken of
    described = turn.values.keys() & {"tokens", "samples"} and "?" not in turn.lower and not turn.cues & {"vram", "fit"}
    if earlier[:1] in (("vram",), ("fit",)) and described:
        return ("time",)  # "from scratch on 60B tokens": a run is spoken of now
    several = state.get("n_gpus", 1) > _ONE_NODE or state.get("n_nodes", 1) > 1 or "nodes" in turn.cues
    weak = own and (own[0] in ("fit", "vram") or (own[0] == "concept" and state.model is not None))
    if weak and "inter_link" in turn.values and several:
        # "full fine-tune 7B on 16 H100 over 100GbE, ok?"; the "gig" of a link asks for no memory
        return ("interconnect", "fit") if own[0] == "fit" and "fit" in turn.cues else ("interconnect",)
    if earlier and _only_changes(turn, own):
        return earlier
    if own[:1] in _OPEN and _asks_a_price(turn, state):
        return ("price",)
    if not own:
        if state.models or state.methods:
            return ("vram",)
        return ("fit",) if state.gpus or state.get("gpu_memory_gb") else ()
    return own


_RUNS = frozenset(("time", "cost", "gpu_select"))
_OPEN = ((), ("fit",), ("concept",), ("concept", "compare"))
# What is asked of a card and a provider besides its price.
_OTHERWISE = frozenset(
    ("explain", "oom", "killed", "driver", "network", "storage", "spot", "slow", "log", "tflops", "parallel")
)
_ONE_NODE = 8  # GPUs; more of them talk over a network
_TERMS = frozenset(("price_usd", "deadline_hours", "hours", "budget_usd", "mfu"))
# Cues that ask for something; without one and without "?" a message only adds to what was asked before.
_ASKS = frozenset(
    ("time", "cost", "price", "which_gpu", "how_many", "vram", "concept", "launch", "biggest_model", "biggest_seq")
)
_SOFT = frozenset(("interconnect", "parallelism", "spot", "storage", "compare", "fit", "price", "inference"))


def _only_changes(turn: Slots, own: tuple[str, ...]) -> bool:
    """A message that names a new value and nothing new to find out: "and on H200?", "make it 70B", "pcie only"."""
    if not own:
        return True
    statement = "?" not in turn.lower and not turn.cues & _ASKS and own[0] in _SOFT
    changes = bool(turn.models or turn.gpus or turn.methods or turn.values)
    asks_fit = own[0] in ("fit", "vram") and not turn.cues & {"vram", "biggest_seq", "biggest_model"}
    weak = asks_fit or (own[0] == "compare" and len(turn.gpus) < 2)
    return statement or (changes and weak and (len(turn.text) < _SHORT or "follow_up" in turn.cues))


_DATA = frozenset(("tokens", "samples", "steps", "hours", "deadline_hours"))
_SHORT = 60  # characters; longer messages are questions of their own


def _defines(turn: Slots) -> frozenset[str]:
    """Whether a term is asked for: "what is MFU?"."""
    named = turn.models or turn.gpus
    return frozenset(("explain",)) if "why" in turn.cues and not named and "time" not in turn.cues else frozenset()


# Failures that the tool for memory errors reads as well, and says that they are none.
_CRASHES = ("watchdog caught", "is killed by signal", "illegal memory access")


def _ordered(turn: Slots, state: Slots) -> tuple[str, ...]:
    intents = list(turn.intents)
    cues = turn.cues
    if intents[:1] == ["parallelism"] and _asks_whether_it_fits(turn, state):
        intents = ["fit", *(name for name in intents if name not in ("fit", "parallelism", "interconnect"))]
    if intents[:1] == ["interconnect"] and _of_one_card(turn, state):
        intents = ["fit", *(name for name in intents if name not in ("fit", "interconnect", "parallelism"))]
    if intents[:1] == ["driver"] and len(intents) > 1 and _of_a_named_job(turn, state):
        intents = ["fit", *(name for name in intents if name not in ("driver", "concept", "compare", "fit"))]
    if "log" in cues and ("oom" in cues or any(words in turn.log.lower() for words in _CRASHES)):
        return ("oom",)
    if cues & {"hang"} and "driver" in intents and "interconnect" in intents:
        return ("driver",) if turn.get("n_nodes") is None else ("interconnect",)
    if not intents:
        return ()
    first = intents[0]
    if first == "time" and "throughput" in cues and "explain" in cues | _defines(turn) and not turn.values:
        first = "concept"  # "what is MFU?"
    if first in ("time", "compare") and "explain" in cues and not turn.gpus and not turn.values.keys() & _DATA:
        first = "concept"  # "why is an MoE with 3B active not faster to train?": no run to time
    if first == "oom" and not turn.log:
        # "X ooms on Y, why" is a fit question with a reason asked for.
        first = "parallelism" if "parallel" in cues and turn.model is None else "oom"
    if first == "fit" and "concept" in intents and turn.model is None and not cues & {"biggest_model", "fit"}:
        first = "concept"
    several = len({mention.argument or mention.text for mention in turn.gpus}) > 1
    if several and first in ("cost", "gpu_select", "fit") and not turn.get("tokens") and "compare" in intents:
        first = "compare"
    if first == "interconnect" and not grammar.named("layout", "asked").search(turn.lower):
        intents = [name for name in intents if name != "parallelism"]
    if first == "parallelism" and "inter_link" not in turn.values and not cues & {"link_enough"}:
        intents = [name for name in intents if name != "interconnect"]  # several nodes alone ask nothing of links
    if first in ("fit", "vram") and not _asks_of_a_run(turn):
        intents = [name for name in intents if name not in ("time", "cost")]
    data = turn.values.keys() & {"tokens", "samples"} and state.model is not None
    if first == "gpu_select" and data and "time" in intents and "which_gpu" not in cues:
        counted = grammar.named("how_many_cards", "asked").search(turn.lower) or turn.get("deadline_hours")
        first = first if counted or not state.gpus else "time"  # "how many hours", in any language
    if first == "price" and data and not turn.get("since"):
        first = "cost"  # the price of a run
    if first == "vram" and data and "cost" in cues and grammar.named("of_memory", "asked").search(turn.lower) is None:
        first = "cost"
    if (
        first in ("time", "vram")
        and "which_gpu" not in cues
        and not grammar.named("how_many_cards", "asked").search(turn.lower)
    ):
        intents = [name for name in intents if name != "gpu_select"]  # "how many days": no cards are counted
    beside = [goal for goal in intents[1:] if goal in grammar.data("intents")["beside"].get(first, ())]
    return (first, *beside[:2])


def _asks_whether_it_fits(turn: Slots, state: Slots) -> bool:
    """Whether sharding is only how the job is run, and whether it fits is what is asked."""
    named = state.model is not None and bool(state.gpus or state.get("gpu_memory_gb"))
    return named and grammar.named("layout", "asked").search(turn.lower) is None


def _of_a_named_job(turn: Slots, state: Slots) -> bool:
    """Whether a library is only named in passing: a job with its card, and nothing of versions or errors."""
    job = turn.model is not None and bool(turn.methods or turn.get("seq_len")) and bool(turn.gpus)
    return job and not turn.log and grammar.named("of_versions", "asked").search(turn.lower) is None


def _asks_of_a_run(turn: Slots) -> bool:
    """Whether hours or money of a run are asked for, beside whether it fits: data or a limit is named with them."""
    named = turn.values.keys() & {"tokens", "samples", "steps", "epochs", "hours", "deadline_hours", "budget_usd"}
    return bool(named) or grammar.named("of_a_run", "asked").search(turn.lower) is not None


def _asks_a_price(turn: Slots, state: Slots) -> bool:
    """Whether a card with a provider, a billing or a cap, and nothing else, is named: "is an H100 under 2.50"."""
    offered = turn.providers or turn.get("billing") or turn.get("price_cap_usd")
    job = state.models or turn.methods or turn.get("task")
    return bool(turn.gpus and offered) and not job and not turn.cues & _OTHERWISE


def _of_one_card(turn: Slots, state: Slots) -> bool:
    """Whether a single card is named and no link between any: "a 4090 with NVLink, full 13B?" asks whether it fits."""
    one = len(state.gpus) == 1 and state.get("n_gpus", 1) == 1 and state.get("n_nodes", 1) == 1
    linked = turn.values.keys() & {"inter_link", "rates", "counts"} or "nodes" in turn.cues
    return one and state.model is not None and not linked and bool(turn.gpus)
