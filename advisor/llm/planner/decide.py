"""From slots to action: which tools to call with what, or one question back.

Every stated slot goes into the arguments of the tools that take it; what is missing is left to the tools' stated
defaults, except what changes the answer most: a method or card left open is computed for the usual ones. A tool that
the registry does not hold is replaced by the next best one. The actions themselves, one a goal, are in ``act_*.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from advisor.llm.planner import grammar
from advisor.llm.planner.mentions import COMPUTED
from advisor.llm.planner.page import number
from advisor.llm.planner.passage import on_point, sure
from advisor.llm.planner.plan import Call, Limit, Part, Plan
from advisor.llm.planner.premise import premises
from advisor.llm.planner.slots import Slots
from knowledge.gpus import all_gpus
from tools.registry import get_tool, tool_names

MAX_CALLS = 15  # a turn may make sixteen
TYPICAL_ROW_TOKENS = 512  # instruction data: Alpaca's rows average about 130 tokens, long chats over a thousand
LARGE_DATA = 1e9  # tokens from which a run without a method is taken for pretraining
_NEAR = 0.4  # of a message's words, models, cards and numbers aside, that an article must speak of to stand beside sums
PREFERENCE = ("dpo", "grpo", "ppo", "orpo", "kto", "reward")
ADAPTERS = ("qlora", "lora", "dora")
# Without a model these cues make a message a question to the knowledge base, not one that lacks a slot.
TALK = frozenset(
    (
        *("tflops", "bandwidth_ask", "concept", "why", "question_of_truth", "parallel", "pool"),
        *("oom", "killed", "network", "log", "compare", "storage"),
    )
)
# Goals whose tools say why themselves: a passage beside them must be on the point.
NUMERIC = frozenset(
    (
        *("users", "check_speed", "check_busbw", "check_scaling", "power", "host_memory", "change", "spot_or_not"),
        *("interconnect", "price", "time", "cost", "compare", "gpu_select"),
    )
)
_FEW_WORDS = 8
_USUAL_RANK = 16
_SHAPE = ("n_layers", "hidden_size", "n_heads", "vocab_size", "n_experts", "experts_per_token")
_FALLBACKS = {
    "plan_parallelism": "estimate_vram", "launch_plan": "estimate_vram", "diagnose_oom": "estimate_vram",
    "select_gpu": "estimate_vram", "estimate_run": "estimate_vram", "compare_gpus": "lookup_prices",
}  # fmt: skip
_EXPORT_WORDS = ("budget request", "focus csv", "focus column", "as csv", "a csv", "finops", "export the bill")
_STATED = (
    "precision", "optimizer", "lora_rank", "seq_len", "micro_batch", "grad_accum", "activation_checkpointing",
    "attention", "sharding", "n_gpus", "tp", "pp", "cp", "ep", "cpu_offload", "framework", "fused_loss", "tokens",
    "samples", "epochs", "tokens_per_sample", "mfu", "idle_share", "gpus_per_node", "inter_link", "intra_link",
    "billing", "region",
)  # fmt: skip
# What to look up for a model kind that no sum is made for, and for what people ask in other words than articles use.
TOPICS = {
    "vision": "convolutional vision model training: memory and data loading",
    "diffusion": "diffusion model training memory, activations by resolution",
    "robotics": "other model kinds: convolutional, diffusion, robot policies",
    "bits": "network ports in Gb/s and GB/s: NVLink, PCIe, InfiniBand, RoCE and EFA",
    "scaling": "several GPUs slower than one: data parallelism, communication, the same global batch",
    "count_rule": "odd number of GPUs, any number of cards, data parallel",
}
_TOPIC_CUES = ("count_rule",)
# The usual card of each size, tried before any other of it.
_USUAL_CARDS = (
    "RTX-4090", "A100-SXM4-80GB", "A100-SXM4-40GB", "RTX-A6000", "RTX-5090", "RTX-3060-12GB", "RTX-4060-Ti-16GB",
    "RTX-3070", "H200-SXM", "MI300X", "H20",
)  # fmt: skip

Action = Callable[["Decider"], None]
ACTIONS: dict[str, Action] = {}


def action(*goals: str) -> Callable[[Action], Action]:
    """Register the decorated function as what to do for these goals; a later one of the same goal replaces it."""

    def register(do: Action) -> Action:
        ACTIONS.update(dict.fromkeys(goals, do))
        return do

    return register


@lru_cache(maxsize=32)
def fields(tool: str) -> frozenset[str]:
    """The argument names that a tool takes; none for a tool that is not registered."""
    return frozenset(get_tool(tool).input_model.model_fields) if tool in tool_names() else frozenset()


class Decider:
    """One decision over the conversation's slots (``state``), the last message (``turn``) and the tools at hand."""

    def __init__(self, state: Slots, turn: Slots, goals: tuple[str, ...], tools: Iterable[str]) -> None:
        self.state = state
        self.turn = turn
        self.goals = goals
        self.tools = frozenset(tools)
        self.calls: list[Call] = []
        self.notes: list[str] = []
        self.question = ""
        self.subject = next((TOPICS[cue] for cue in _TOPIC_CUES if cue in turn.cues), "")  # to search for instead
        self.stand_in = ""
        self.limit: Limit | None = None
        self.whole = False  # what was planned answers all that was asked

    def plan(self) -> Plan:
        """The whole decision: the goals' actions in order, then premises to correct and articles; each call once."""
        model = self.state.model
        wrong = tuple(premises(self.turn))
        computed = model is not None and model.kind in COMPUTED
        unknown_models = tuple(
            m for m in self.turn.models if m.kind in ("unknown", "unmodelled") or (m.kind == "closed" and not computed)
        )
        unknown_gpus = tuple(gpu for gpu in self.turn.gpus if gpu.kind == "unknown")
        if model is not None and model.kind == "closed":  # nothing to compute or to look up: say so
            return Plan(reply="ask_what", status="needs_input", unknown_models=unknown_models)
        goals = self.goals[:3]
        several = sum(m.kind in COMPUTED for m in self.turn.models) > 2
        if several and "vram" not in goals and goals[:1] != ("gpu_select",):
            goals = ("vram",)  # a table of sizes is asked for; hours of each would drown it
        self.subject = next((TOPICS[premise.attribute] for premise in wrong if not premise.gpu), self.subject)
        if model is None and "no_questions" in self.turn.cues and goals and not self.state.gpus:
            self.notes.append("assumed_model")
            self.add("select_gpu", {"model": "70B", "method": "qlora"})
            self.whole = True
        if self.turn.get("due") and (self.turn.get("deadline_hours") or 1) <= 0:
            self.notes.append("due_past")
        for goal in goals:
            if not self.whole:
                ACTIONS[goal](self)
        for premise in wrong:
            if premise.gpu:
                self.add("compare_gpus", {"gpus": [premise.gpu]}, "premise")
        # Of a job that the message itself names, tools say why; "what is MFU?" after it asks for words.
        # So do messages that ask why, with a size in them and no card: "why does 3B active need the memory of 30B?"
        job = self.turn.gpus or (self.turn.models and "explain" not in self.turn.cues)
        figures = computed and bool(job) and self.goals[:1] and self.goals[0] in NUMERIC
        explains = self.turn.cues & {"why", "question_of_truth"} and not self.turn.get("variants")
        if (explains or unknown_models or self.subject) and self.goals:
            self.know("side", explained=not self.whole and not figures)
        calls = self._unique()
        status = "answered" if calls and not self.question else "needs_input"
        if any(call.part != "side" for call in calls):
            status = "answered"
        return Plan(
            calls=calls,
            goal=goals[0] if goals else "",
            reply="" if calls else self.question or "ask_what",
            status=status,  # type: ignore[arg-type]  # a Literal chosen above
            question=self.question if calls else "",
            premises=wrong,
            unknown_models=unknown_models,
            unknown_gpus=unknown_gpus,
            stand_in=self.stand_in,
            notes=tuple(self.notes),
            limit=self.limit,
        )

    # Building calls -------------------------------------------------------------------------------------------------

    def go(self, goal: str) -> None:
        """Do another goal's action as part of this one. Raises KeyError for a goal without one."""
        ACTIONS[goal](self)

    def add(self, tool: str, arguments: dict[str, Any], part: Part = "main", about: str = "") -> None:
        """Add a call with the arguments that the tool takes, or its stand-in where it is missing."""
        asked = tool
        while tool not in self.tools:
            if tool == "search_knowledge":
                return
            tool = _FALLBACKS.get(tool, "search_knowledge")
        if tool == "search_knowledge":
            arguments = {"query": self.query(), "limit": None if part == "main" else 1}
        elif tool != asked:
            arguments = {**self.workload(tool), **arguments}
            if tool in ("estimate_vram", "estimate_run", "select_gpu") and "model" not in arguments:
                return
        kept = {key: value for key, value in arguments.items() if key in fields(tool) and value is not None}
        self.calls.append(Call(tool, kept, part, about))

    def know(self, part: Part = "main", explained: bool = False) -> None:
        """Search the knowledge base with the asker's words; beside figures only for what is on the point asked.

        ``explained``: an explanation is asked for outright, or a failure described, so that any close passage may help.
        """
        model = self.state.model
        sought = explained or self.subject or (model is not None and model.kind == "unmodelled")
        if part == "side" and self.calls:
            query = self.query()
            if not (self.subject or sure(query)) or not (sought or on_point(query, self.turn)):
                return
        self.add("search_knowledge", {}, part)

    def compare_named(self) -> None:
        """The named cards side by side, as a side of the answer, where what they are is asked for too."""
        if not self.turn.cues & {"compare", "tflops", "bandwidth_ask", "card_use", "purchase"}:
            return
        cards = [gpu.argument for gpu in self.state.gpus if gpu.argument]
        if cards:
            self.add("compare_gpus", {"gpus": list(dict.fromkeys(cards))[:5]}, "side")

    def query(self) -> str:
        """The words to search with: the message without a log, cut to a sentence or two."""
        if self.subject:
            return self.subject
        mention = self.state.model
        if mention is not None and mention.kind == "unmodelled" and not self.turn.cues & {"why", "driver", "network"}:
            return TOPICS.get(str(mention.topic), "") or self.turn.text[:300]
        text = " ".join(self.turn.text.split()) or " ".join(self.turn.log.split()[-40:])
        if self.turn.log and len(text.split()) < _FEW_WORDS:  # "two nodes, aws": what failed stands in the log
            text = f"{' '.join(self.turn.log.split()[-30:])} {text}"
        if self.state.subject and self.state.subject not in self.turn.text:  # "so?": about what was asked before
            text = f"{' '.join(self.state.subject.split())} {text}"
        return text[:300]

    def _unique(self) -> tuple[Call, ...]:
        kept: list[Call] = []
        for call in self.calls:
            same = [other for other in kept if other.name == call.name]
            again = any(other.arguments == call.arguments for other in same)
            if not again and not (same and call.name == "search_knowledge"):
                kept.append(call)
        return tuple(kept[:MAX_CALLS])

    # Slots to arguments ---------------------------------------------------------------------------------------------

    def model(self) -> str | dict[str, Any] | None:
        """The model argument, or None when nothing can be computed for what was named."""
        mention = self.state.model
        if mention is None or mention.kind != "size" or not mention.argument:
            return mention.argument if mention else None
        shape = {name: self.state.get(name) for name in _SHAPE if self.state.get(name)}
        return {"params_b": billions(mention.argument), **shape} if shape else mention.argument

    def component(self) -> str | None:
        """The part of the memory bill that the message asks for by name."""
        return grammar.first("workload", "components", self.turn.lower) if "vram" in self.turn.cues else None

    def method(self) -> str | None:
        """The first method that a workload can have; preference methods win over the adapter they train."""
        methods = self.state.methods
        return next((method for method in methods if method in PREFERENCE), methods[0] if methods else None)

    def workload(self, tool: str, **extra: Any) -> dict[str, Any]:
        """Every stated workload slot that ``tool`` takes, and ``extra`` over them."""
        state, known, method = self.state, fields(tool), self.method()
        arguments: dict[str, Any] = {"model": self.model(), "method": method}
        if state.get("task") == "inference" and not method:
            arguments["task"] = "inference"
        arguments |= {name: state.get(name) for name in _STATED}
        if arguments["tokens"] is None and state.get("steps"):
            per_step = (state.get("global_batch") or state.get("micro_batch") or 0) * state.get("seq_len", 0)
            arguments["tokens"] = float(state.get("steps")) * per_step or None
        if state.get("samples") and state.get("seq_len") is None and arguments["tokens_per_sample"] is None:
            arguments["tokens_per_sample"] = TYPICAL_ROW_TOKENS
        adapters = [name for name in state.methods if name in ADAPTERS]
        if method in PREFERENCE and arguments["precision"] in ("int4", "nf4", "fp4"):
            adapters = ["qlora"]  # a base in four bits is trained by adapters
        if method in PREFERENCE and adapters:  # "dpo with lora": the preference run of an adapter
            arguments["lora_rank"] = arguments["lora_rank"] or _USUAL_RANK
            arguments["precision"] = "nf4" if adapters[0] == "qlora" else arguments["precision"]
        four_bit = arguments["precision"] in ("int4", "nf4", "fp4")
        stored = (None, "qlora", *(PREFERENCE if adapters else ()))  # methods whose base may be stored in four bits
        if (four_bit and method not in stored) or (method == "qlora" and not four_bit):
            arguments["precision"] = None  # said of the base or of the compute; the method implies it
        if state.providers:
            arguments |= {"provider": state.providers[0], "providers": list(state.providers)}
        if state.get("price_usd") is not None and state.get("price_currency", "USD") == "USD" and self.cards():
            arguments["price"] = state.get("price_usd")
        arguments["budget"] = state.get("budget_usd")
        whole = state.get("cap_of_machine", False)
        arguments["max_usd_per_hour" if whole else "max_usd_per_gpu_hour"] = state.get("price_cap_usd")
        due = state.get("deadline_hours") or 0
        if tool == "select_gpu" and not due and state.get("budget_usd"):
            due = state.get("hours") or 0  # "$500 and 3 days": the time that there is
        if due > 0:
            arguments["deadline"] = f"{due:g}h"
        if state.get("billing") == "spot":
            arguments["spot"] = True
        if any(word in self.turn.lower for word in _EXPORT_WORDS):
            arguments["export"] = True
        arguments |= extra
        return {key: value for key, value in arguments.items() if value is not None and (key in known or not known)}

    def cards(self) -> list[str]:
        """The cards named, as tool arguments, or the stand-in for a stated memory size."""
        named = [gpu.argument for gpu in self.state.gpus if gpu.kind == "known" and gpu.argument]
        if named or self.state.gpus:
            return list(dict.fromkeys(named))
        size = self.state.get("gpu_memory_gb")
        if size is None and self.state.get("log_capacity_gib"):
            # What a log calls total is less the driver's share; a card sold as 24 GB may show 22.0 GiB.
            size = round(self.state.get("log_capacity_gib") / 0.985)
            self.stand_in = _card_of(size) or _card_of(size * 2**30 / 1e9)
        elif size:
            self.stand_in = _card_of(size)
        else:
            self.stand_in = ""
        return [self.stand_in] if self.stand_in else []

    def card(self, default: str | None = None) -> str | None:
        """The first card as a tool argument, or ``default`` where no known card or memory size was named."""
        cards = self.cards()
        return cards[0] if cards else default

    def count_of(self, card: str | None) -> int | None:
        """How many of this card were named; the conversation's count where no card has one of its own."""
        for mention in self.state.gpus:
            if card and mention.argument == card and mention.count:
                same_nodes = self.state.get("gpus_per_node") == mention.count
                return mention.count * (mention.nodes or (self.state.get("n_nodes") if same_nodes else 1) or 1)
        if len(self.state.gpus) > 1 and any(mention.count for mention in self.state.gpus):
            return None  # the count belongs to another card
        count: int | None = self.state.get("n_gpus")
        return count

    def plural(self, card: str) -> bool:
        """Whether a card was named in the plural ("on H100s"), which leaves the count open."""
        return any(
            mention.argument == card and self.turn.lower[mention.end : mention.end + 1] == "s"
            for mention in self.turn.gpus
        )


def billions(size: str) -> float:
    """Billions of parameters of a size such as 7B, 350M or 1T. The last letter must be one of these three."""
    return number(size[:-1]) * {"M": 1e-3, "B": 1.0, "T": 1e3}[size[-1]]


def _card_of(gigabytes: float) -> str:
    """A card of this memory: a common one first, else any of that size; "" where none is close."""
    by_id = {gpu.id: gpu for gpu in all_gpus()}
    ordered = [by_id[name] for name in _USUAL_CARDS if name in by_id] + list(by_id.values())
    best = min(ordered, key=lambda gpu: abs(gpu.marketed_memory_gb - gigabytes))
    return best.id if abs(best.marketed_memory_gb - gigabytes) <= 0.07 * gigabytes else ""
