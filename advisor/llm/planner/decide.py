"""From slots to action: which tools to call with what, or one question back, or a friendly no.

Every stated slot goes into the arguments of the tools that take it; what is missing is left to the tools' stated
defaults, except the two that change the answer most: a method left open is computed for all three usual ones, a card
left open for two. A tool that the registry does not hold is replaced by the next best one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from advisor.llm.planner import grammar
from advisor.llm.planner.mentions import GpuMention, ModelMention
from advisor.llm.planner.premise import Premise, premises
from advisor.llm.planner.slots import Slots
from knowledge.gpus import all_gpus
from tools.registry import get_tool, tool_names

MAX_CALLS = 15


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call with its part in the answer: "main", or "side" for what only adds to it."""

    name: str
    arguments: dict[str, Any]
    part: str = "main"
    about: str = ""  # what distinguishes it from its sisters: a method, a card, a count


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound that the asker gave: ``fact`` of each rung must not be above ``value``, said as ``words``."""

    fact: str
    value: float
    words: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do. Without calls, ``reply`` (a key of ``words.yaml``) is the whole answer."""

    calls: tuple[Call, ...] = ()
    goal: str = ""
    reply: str = ""
    status: str = "answered"
    question: str = ""  # a key of words.yaml asked at the end
    premises: tuple[Premise, ...] = ()
    unknown_models: tuple[ModelMention, ...] = ()
    unknown_gpus: tuple[GpuMention, ...] = ()
    stand_in: str = ""  # card that stands for a stated memory size
    notes: tuple[str, ...] = field(default=())  # keys of words.yaml
    limit: Limit | None = None  # what the rungs of a ladder are held against; None: the card's memory


@lru_cache(maxsize=32)
def fields(tool: str) -> frozenset[str]:
    """The argument names that a tool takes; none for a tool that is not registered."""
    return frozenset(get_tool(tool).input_model.model_fields) if tool in tool_names() else frozenset()


_FALLBACKS = {
    "plan_parallelism": "estimate_vram", "plan_checkpoints": "search_knowledge", "compare_ownership": "search_knowledge",  # noqa: E501
    "check_compatibility": "search_knowledge", "launch_plan": "estimate_vram", "diagnose_oom": "estimate_vram",
    "select_gpu": "estimate_vram", "check_interconnect": "search_knowledge", "compare_gpus": "lookup_prices",
    "estimate_run": "estimate_vram", "estimate_vram": "search_knowledge", "lookup_prices": "search_knowledge",
}  # fmt: skip


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
        self.stand_in = ""
        self.limit: Limit | None = None

    def plan(self) -> Plan:
        """The whole decision."""
        state = self.state
        found = tuple(premises(self.turn))
        computed = state.model is not None and state.model.kind in ("known", "size")
        unknown_models = tuple(
            m for m in self.turn.models if m.kind in ("unknown", "unmodelled") or (m.kind == "closed" and not computed)
        )
        unknown_gpus = tuple(g for g in self.turn.gpus if g.kind == "unknown")
        goals = self.goals[:3]
        if len([m for m in self.turn.models if m.kind in ("size", "known")]) > 2 and "vram" not in goals:
            goals = ("vram",)  # a table of sizes is asked for; hours of each would drown it
        for goal in goals:
            _GOALS[goal](self)
        for premise in found:
            self.add("compare_gpus", {"gpus": [premise.gpu]}, "premise")
        if (self.turn.cues & {"why", "question_of_truth"} or unknown_models) and self.goals:
            self.know("side")
        calls = self._unique()
        goal = self.goals[0] if self.goals else ""
        if not calls:
            reply = self.question or "ask_what"
            return Plan(
                (), goal, reply, "needs_input", "", found, unknown_models, unknown_gpus, notes=tuple(self.notes)
            )
        status = "needs_input" if self.question and not any(c.part == "main" for c in calls) else "answered"
        if state.model is not None and state.model.kind == "closed":
            status = "declined"
        return Plan(
            tuple(calls), goal, "", status, self.question, found, unknown_models, unknown_gpus, self.stand_in,
            tuple(self.notes), self.limit,
        )  # fmt: skip

    # --- building calls ---------------------------------------------------------------------------------------------

    def add(self, tool: str, arguments: dict[str, Any], part: str = "main", about: str = "") -> None:
        """Add a call with the arguments that the tool takes, or its stand-in where it is missing."""
        seen = set()
        while tool not in self.tools:
            seen.add(tool)
            tool = _FALLBACKS.get(tool, "search_knowledge")
            if tool in seen:
                return
        if tool == "search_knowledge":
            if "query" not in arguments:
                arguments = {"query": self.query()}
        elif (
            tool in ("estimate_vram", "estimate_run", "select_gpu")
            and "model" not in arguments
            and "training_config" not in arguments
        ):
            arguments = {**arguments, **self.workload(tool)}
            if "model" not in arguments:
                return
        kept = {key: value for key, value in arguments.items() if key in fields(tool) and value is not None}
        self.calls.append(Call(tool, kept, part, about))

    def know(self, part: str = "main") -> None:
        """Search the knowledge base with the asker's words."""
        self.add("search_knowledge", {"query": self.query()}, part)

    def query(self) -> str:
        """The words to search with: the message without a log, cut to a sentence or two."""
        mention = self.state.model
        if mention is not None and mention.kind == "unmodelled" and not self.turn.cues & {"why", "driver", "network"}:
            return _TOPICS.get(str(mention.topic), "") or self.turn.text[:300]
        text = " ".join(self.turn.text.split()) or " ".join(self.turn.log.split()[-40:])
        return text[:300]

    def _unique(self) -> list[Call]:
        kept: list[Call] = []
        for call in self.calls:
            if not any(other.name == call.name and other.arguments == call.arguments for other in kept):
                if call.name == "search_knowledge" and any(other.name == "search_knowledge" for other in kept):
                    continue
                kept.append(call)
        return kept[:MAX_CALLS]

    # --- slots to arguments -----------------------------------------------------------------------------------------

    def model(self) -> str | None:
        """The model argument, or None when nothing can be computed for what was named."""
        mention = self.state.model
        return mention.argument if mention else None

    def method(self) -> str | None:
        """The first method that a workload can have; preference methods win over the adapter they train."""
        methods = self.state.methods
        return next(
            (m for m in methods if m in ("dpo", "grpo", "ppo", "orpo", "kto", "reward")),
            methods[0] if methods else None,
        )

    def workload(self, tool: str, **extra: Any) -> dict[str, Any]:
        """Every stated workload slot that ``tool`` takes."""
        state, known = self.state, fields(tool)
        arguments: dict[str, Any] = {}
        if (model := self.model()) is not None:
            arguments["model"] = model
        method = self.method()
        if state.get("task") == "inference" and not method:
            arguments["task"] = "inference"
        elif method:
            arguments["method"] = method
        names = (
            "precision", "optimizer", "lora_rank", "seq_len", "micro_batch", "grad_accum", "activation_checkpointing",
            "attention", "sharding", "n_gpus", "tp", "pp", "cp", "ep", "cpu_offload", "framework", "fused_loss",
            "tokens", "samples", "epochs", "tokens_per_sample", "mfu", "idle_share", "gpus_per_node", "inter_link", "intra_link", "billing",  # noqa: E501
            "region",
        )  # fmt: skip
        for name in names:
            if (value := state.get(name)) is not None:
                arguments[name] = value
        if state.get("tokens") is None and state.get("steps") and "tokens" in known:
            per_step = (state.get("global_batch") or state.get("micro_batch") or 0) * state.get("seq_len", 0)
            if per_step:
                arguments["tokens"] = float(state.get("steps")) * per_step
        if state.get("samples") and state.get("seq_len") is None and state.get("tokens_per_sample") is None:
            arguments["tokens_per_sample"] = _TYPICAL_ROW_TOKENS
        if state.get("precision") in ("int4", "nf4", "fp4") and method not in (None, "qlora"):
            arguments.pop("precision", None)
        if method == "qlora" and state.get("precision") in ("bf16", "fp16", "fp32"):
            arguments.pop("precision", None)
        if state.providers:
            arguments["provider"] = state.providers[0]
            arguments["providers"] = list(state.providers)
        if state.get("price_usd") is not None and state.get("price_currency", "USD") == "USD":
            arguments["price"] = state.get("price_usd")
        if state.get("budget_usd") is not None:
            arguments["budget"] = state.get("budget_usd")
        if state.get("deadline_hours") is not None:
            arguments["deadline"] = f"{state.get('deadline_hours'):g}h"
        if state.get("billing") == "spot":
            arguments["spot"] = True
        arguments.update(extra)
        return {key: value for key, value in arguments.items() if key in known or not known}

    def cards(self) -> list[str]:
        """The cards named, as tool arguments, or the stand-in for a stated memory size."""
        named = list(dict.fromkeys(g.argument for g in self.state.gpus if g.kind == "known" and g.argument))
        if named:
            return [str(name) for name in named]
        size = self.state.get("gpu_memory_gb") or self._log_gb()
        if size and not self.state.gpus:
            self.stand_in = _card_of(size)
            return [self.stand_in] if self.stand_in else []
        return []

    def _log_gb(self) -> float | None:
        seen = self.state.get("log_capacity_gib")
        return float(round(float(seen) / 0.985)) if seen else None

    def count_of(self, card: str) -> int | None:
        """How many of this card were named; the conversation's count where the card has none of its own."""
        for mention in self.state.gpus:
            if mention.argument == card and mention.count:
                nodes = mention.nodes or (
                    self.state.get("n_nodes") if self.state.get("gpus_per_node") == mention.count else 1
                )
                return mention.count * (nodes or 1)
        if any(mention.count for mention in self.state.gpus) and len(self.state.gpus) > 1:
            return None  # the count belongs to another card
        count: int | None = self.state.get("n_gpus")
        return count

    def _plural(self, card: str) -> bool:
        """Whether a card was named in the plural ("on H100s"), which leaves the count open."""
        return any(
            mention.argument == card and self.turn.lower[mention.end : mention.end + 1] == "s"
            for mention in self.turn.gpus
        )

    def card(self, default: str | None = None) -> str | None:
        """The first card, or ``default``."""
        cards = self.cards()
        return cards[0] if cards else default

    # --- goals ------------------------------------------------------------------------------------------------------

    def memory(self) -> None:
        """estimate_vram for what is stated, once a method and card that are left open or named together."""
        if self.state.model is None:
            self._without_model()
            return
        if self.model() is None:
            self.know()
            return
        cards: list[str | None] = [*self.cards()[:3]] or [None]
        if "biggest_seq" in self.turn.cues:
            self._ladder("seq_len", [2048, 4096, 8192, 16384, 32768, 65536, 131072], cards[0])
            return
        if "biggest_batch" in self.turn.cues:
            self._ladder("micro_batch", [1, 2, 4, 8, 16, 32, 64], cards[0])
            return
        sizes = [m.argument for m in self.state.models if m.kind in ("size", "known") and m.argument]
        methods = self._methods()
        for card in cards:
            count = self.count_of(card) if card else self.state.get("n_gpus")
            if card and count is None and not self._plural(card):
                count = 1
            base = self.workload("estimate_vram", gpu=card, n_gpus=count)
            for size in sizes[:5] if len(sizes) > 1 else [base.get("model")]:
                for method in methods:
                    arguments = {**base, "model": size, **({"method": method} if method else {})}
                    if method == "qlora" and arguments.get("precision") in ("bf16", "fp16", "int8"):
                        arguments.pop("precision")
                    about = (method or "") if len(methods) > 1 else str(card or "")
                    if len(self.calls) < MAX_CALLS:
                        self.add("estimate_vram", arguments, "main", about)
            if len(cards) == len(methods) == 1 and len(sizes) < 2:
                self._span({**base, **({"method": methods[0]} if methods[0] else {})})

    def _span(self, base: dict[str, Any]) -> None:
        """The range over a sequence length that was left open, where no batch says what is meant either."""
        if "seq_len" in base or "micro_batch" in base or base.get("task") == "inference" or self.turn.cues & {"brief"}:
            return
        for length in (512, 8192):
            self.add("estimate_vram", {**base, "seq_len": length}, "span", f"seq_len={length}")

    def _methods(self) -> list[str | None]:
        """The methods to compute: the one named, the two compared, or all three where it is left open."""
        state = self.state
        preferred = [m for m in state.methods if m in ("dpo", "grpo", "ppo", "orpo", "kto", "reward")]
        if preferred:  # with an adapter named too: what the adapter's run needs, beside the full one
            adapters = [m for m in state.methods if m in ("qlora", "lora", "dora")]
            return [*adapters[:1], preferred[0]]
        if len(state.methods) > 1 and "lora" not in state.methods and _all_methods(self.turn.lower):
            return ["full", "lora", "qlora"]
        if state.methods:
            return list(state.methods[:3])
        if state.get("task") == "inference":
            return [None]
        if state.get("tokens", 0) and state.get("tokens", 0) >= 1e9:
            return ["full"]
        return ["qlora", "lora", "full"]

    def _ladder(self, argument: str, values: list[int], card: str | None) -> None:
        """The same estimate over rising values of one argument: where it stops to fit is the answer."""
        base = self.workload("estimate_vram", gpu=card or "H100-SXM5", n_gpus=self.count_of(card) if card else None)
        for value in values:
            self.add("estimate_vram", {**base, argument: value}, "ladder", f"{argument}={value}")

    def biggest_model(self) -> None:
        """The largest model on a card: the estimate over common sizes."""
        cards = self.cards()
        if self.state.get("gpu_hours"):
            self._in_gpu_hours(self.card("A100-SXM4-80GB") or "")
            return
        if self.state.get("budget_usd") and "pretrain" in self.state.methods:
            self._train_for_money(self.card("H100-SXM5") or "")
            return
        if not cards:
            self.question = "ask_gpu"
            return
        method = self.method() or "qlora"
        base = self.workload("estimate_vram", gpu=cards[0], n_gpus=self.count_of(cards[0]), method=method)
        base.setdefault("activation_checkpointing", "full")  # one recipe for all sizes, so that they compare
        for size in ("1B", "3B", "8B", "13B", "32B", "70B"):
            self.add("estimate_vram", {**base, "model": size}, "ladder", size)

    def _without_model(self) -> None:
        state = self.state
        if "biggest_model" in self.turn.cues:
            self.biggest_model()
        elif (
            state.gpus
            and (state.get("precision") or state.get("attention"))
            and not (state.methods or "tflops" in self.turn.cues)
        ):
            self.driver()
        elif self.turn.cues & _TALK:
            self.know()
            self._compare_named()
        elif "no_questions" in self.turn.cues:
            self.notes.append("assumed_model")
            self.add("select_gpu", {"model": "70B", "method": "qlora"})
        else:
            self.question = (
                "ask_model" if self.state.gpus or self.state.methods or self.state.get("gpu_memory_gb") else "ask_what"
            )

    def _compare_named(self) -> None:
        cards = [g.argument for g in self.state.gpus if g.argument]
        if cards:
            self.add("compare_gpus", {"gpus": list(dict.fromkeys(cards))[:5]}, "side")

    def choose(self) -> None:
        """select_gpu, with the memory bill that decides it."""
        if self.state.model is None:
            if "biggest_model" in self.turn.cues and self.cards():
                self.biggest_model()
            elif (
                len(self.cards()) > 1
                or self.state.get("budget_usd")
                or self.state.get("budget_other")
                or "purchase" in self.turn.cues
            ):
                cards = self.cards() or ["RTX-3090", "RTX-4060-Ti-16GB", "RTX-4090", "RTX-5090"]
                self.add("compare_gpus", {"gpus": cards[:5]})
                self.know("side")
            else:
                self.question = "ask_model"
            return
        if self.model() is None:
            self.know()
            return
        cards = self.cards()
        many = "how_many" in self.turn.cues
        if cards and many and self.state.get("deadline_hours") is not None:
            self._in_time(cards[0])
            self.add("select_gpu", self.workload("select_gpu"), "side")
            return
        if len(cards) == 1 and not many:
            self.memory()
            self.add("select_gpu", self.workload("select_gpu"), "side")
        elif len(cards) == 1:
            base = self.workload("estimate_vram", gpu=cards[0])
            method = self.method() or "full"
            for count in (1, 2, 4, 8, 16, 32, 64):
                self.add("estimate_vram", {**base, "method": method, "n_gpus": count}, "ladder", f"n_gpus={count}")
            if "estimate_run" in self.tools and (self.state.get("tokens") or self.state.get("samples")):
                self.time()
        elif len(cards) > 1:
            self.memory()
            self.compare()
        else:
            self._select()

    def _in_time(self, card: str) -> None:
        """The fewest of a card that finish by the deadline."""
        hours = float(self.state.get("deadline_hours"))
        self.limit = Limit("run_hours", hours, "the deadline")
        base = self.workload("estimate_run", gpu=card)
        for count in (1, 2, 4, 8, 16, 32):
            self.add("estimate_run", {**base, "n_gpus": count}, "ladder", f"n_gpus={count}")

    def _for_money(self, card: str) -> None:
        """The most tokens that a budget buys."""
        self.limit = Limit("run_cost", float(self.state.get("budget_usd")), "the budget")
        base = self.workload("estimate_run", gpu=card, n_gpus=self.count_of(card) or self._default_count())
        for tokens in ("3M", "10M", "30M", "100M", "300M", "1B", "3B", "10B"):
            self.add("estimate_run", {**base, "tokens": tokens}, "ladder", f"tokens={tokens}")

    def _train_for_money(self, card: str) -> None:
        """The largest model that a budget trains on its default share of tokens."""
        self.limit = Limit("run_cost", float(self.state.get("budget_usd")), "the budget")
        base = self.workload("estimate_run", gpu=card, n_gpus=self.count_of(card) or 8, method="pretrain")
        for size in ("410M", "1B", "1.4B", "2B", "3B", "4B", "7B", "13B"):
            self.add("estimate_run", {**base, "model": size}, "ladder", size)

    def _tokens_in_time(self, card: str) -> None:
        """The most tokens that a count of cards sees by the deadline."""
        hours = self.state.get("deadline_hours") or self.state.get("hours")
        self.limit = Limit("run_hours", float(hours), "the time")
        base = self.workload("estimate_run", gpu=card, n_gpus=self.count_of(card) or self._default_count())
        method = self.method() or "pretrain"
        for tokens in ("100M", "300M", "1B", "3B", "10B", "30B", "100B", "300B", "1T"):
            self.add("estimate_run", {**base, "method": method, "tokens": tokens}, "ladder", f"tokens={tokens}")

    def _in_gpu_hours(self, card: str) -> None:
        """The largest model that a stock of GPU-hours trains on its default share of tokens."""
        self.limit = Limit("gpu_hours", float(self.state.get("gpu_hours")), "the GPU-hours")
        base = self.workload("estimate_run", gpu=card, n_gpus=self.state.get("n_gpus"), method="pretrain")
        for size in ("160M", "410M", "700M", "1B", "1.4B", "2B", "3B", "7B"):
            self.add("estimate_run", {**base, "model": size}, "ladder", size)

    def _select(self) -> None:
        if "select_gpu" not in self.tools:
            self.memory()
            return
        for index, method in enumerate(self._methods()):
            self.add(
                "select_gpu",
                {**self.workload("select_gpu"), **({"method": method} if method else {})},
                "main" if index == 0 else "side",
                method or "",
            )
            if index == 0:
                self.add(
                    "estimate_vram",
                    {**self.workload("estimate_vram"), **({"method": method} if method else {})},
                    "side",
                )

    def time(self) -> None:
        """estimate_run on the cards named, or on two common ones."""
        state = self.state
        if state.model is None:
            if state.get("gpu_hours") and "biggest_model" in self.turn.cues:
                self.biggest_model()
            elif state.get("gpu_hours") or state.get("hours"):
                self.price()
            elif self.turn.cues & {"concept", "question_of_truth", "slow"}:
                self.know()
                self._compare_named()
            else:
                self.question = "ask_model"
            return
        if self.model() is None:
            self.know()
            return
        cards = self.cards()
        asks_tokens = "how_many_tokens" in self.turn.cues and not state.get("tokens") and not state.get("samples")
        if cards and asks_tokens and (state.get("deadline_hours") or state.get("hours")):
            self._tokens_in_time(cards[0])
            return
        counts = [self.count_of(card) for card in cards]
        if not cards and state.gpus:  # only cards that the tables do not hold: no other card's hours for them
            self.know()
            return
        if not cards:
            cards = ["H100-SXM5", "A100-SXM4-80GB"]
            counts = [state.get("n_gpus") or self._default_count()] * 2
        for card, count in list(zip(cards, counts, strict=True))[:4]:
            base = self.workload("estimate_run", gpu=card, n_gpus=count)
            if "method" not in base and (state.get("tokens") or 0) >= 1e9 and "method" in fields("estimate_run"):
                base["method"] = "pretrain"
            methods = self._run_methods(base)
            for method in methods:
                arguments = {**base, **({"method": method} if method else {})}
                self.add("estimate_run", arguments, "main", card if len(cards) > 1 else (method or ""))
            if len(cards) == len(methods) == 1:
                self._row_span(self.calls[-1].arguments)

    def _row_span(self, base: dict[str, Any]) -> None:
        """Rows without their length say little: short rows once, and long rows three times, are the ends."""
        if "samples" not in base or "seq_len" in base or self.state.get("tokens_per_sample"):
            return
        epochs = base.get("epochs")
        for words, length, passes in (("short rows", 128, epochs or 1), ("long rows", 2048, epochs or 3)):
            arguments = {**base, "tokens_per_sample": length, "epochs": passes}
            often = "" if epochs else " once" if passes == 1 else " three times"
            self.add("estimate_run", arguments, "span", words + often)

    def _run_methods(self, base: dict[str, Any]) -> list[str | None]:
        if "method" in base or self.state.get("task") == "inference":
            return [None]
        if "pretrain" in self.state.methods:
            return ["pretrain"]
        return ["full", "qlora"] if self.state.get("tokens") or self.state.get("samples") else ["full"]

    def _default_count(self) -> int:
        """GPUs for a run without a count: one for adapters and small models, a node else."""
        mention = self.state.model
        billions = _billions(mention)
        if self.method() in ("lora", "qlora", "dora") or billions < 1:
            return 1
        return 8 if "pretrain" in self.state.methods or (self.state.get("tokens") or 0) >= 1e9 or billions > 12 else 1

    def cost(self) -> None:
        """The bill of a run; without a run, prices."""
        state = self.state
        if state.model is not None and self.model() is not None:
            if state.get("budget_usd") and self.cards() and not (state.get("tokens") or state.get("samples")):
                self._for_money(self.cards()[0])
                self._prices("side")
                return
            self.time()
            if "which_gpu" in self.turn.cues or not self.cards():
                self.add("select_gpu", self.workload("select_gpu"), "side")
            if self.cards() and (state.get("budget_usd") or state.get("hours")):
                self._prices("side")
        elif (state.model is not None and not self.state.gpus) or self.turn.cues & {"storage"}:
            self.know()
        else:
            self.price()

    def price(self) -> None:
        """Dated offers."""
        if not self.state.gpus and not self.state.providers and not self.turn.cues & {"price", "cost"}:
            self.know()
            return
        if self.state.gpus or self.state.providers or self.state.get("gpu_memory_gb"):
            self._prices("main")
        else:
            self.question = "ask_what" if "same_again" in self.turn.cues else "ask_purpose"
            if self.question == "ask_purpose":
                self._prices("side")

    def _prices(self, part: str) -> None:
        state = self.state
        base = {
            "region": state.get("region"), "billing": state.get("billing"), "n_gpus": state.get("n_gpus"),
            "hours": state.get("hours"), "gpu_hours": state.get("gpu_hours"), "n_nodes": None,
        }  # fmt: skip
        cards: list[str | None] = [*self.cards()[:3]] or [None]
        providers: list[str | None] = [*state.providers[:4]] or [None]
        for card in cards:
            for provider in providers:
                count = self.count_of(card) if card else None
                self.add(
                    "lookup_prices",
                    {**base, "gpu": card, "provider": provider, "n_gpus": count},
                    part,
                    str(provider or card or ""),
                )

    def compare(self) -> None:
        """Cards side by side; with a workload, the run on each."""
        cards = self.cards()
        if len(cards) < 2 and not (cards and self.state.model is None):
            if self.state.model is not None and self.model() is not None:
                self.memory()
            elif len(self.state.providers) > 1:
                self.price()
            elif cards:
                self._compare_named()
            else:
                self.know()
            return
        self.add("compare_gpus", {"gpus": cards[:5]})
        if self.model() is not None and len(cards) > 1:
            for card in cards[:3]:
                self.add(
                    "estimate_run",
                    self.workload("estimate_run", gpu=card, n_gpus=self.count_of(card) or 1),
                    "main",
                    card,
                )
                self.add(
                    "estimate_vram", self.workload("estimate_vram", gpu=card, n_gpus=self.count_of(card)), "side", card
                )
        if self.turn.cues & {"price", "cost"}:
            self._prices("side")

    def parallel(self) -> None:
        """Layouts that fit, ranked; without a workload, what the knowledge base says."""
        state = self.state
        if self.model() is not None:
            card = (self.cards() or ["H100-SXM5"])[0]
            count = self.count_of(card) or state.get("n_gpus") or 8
            if count > 1 or "plan_parallelism" not in self.tools:
                self.add(
                    "plan_parallelism",
                    self.workload("plan_parallelism", gpu=card, n_gpus=count)
                    if "plan_parallelism" in self.tools
                    else {},
                )
            self.add("estimate_vram", self.workload("estimate_vram", gpu=card, n_gpus=count), "side")
        self.know("side" if self.calls else "main")
        if self.model() is None:
            self._compare_named()

    def network(self) -> None:
        """Whether the links suffice for a workload; else facts about the links."""
        state = self.state
        if self.model() is not None:
            card = (self.cards() or ["H100-SXM5"])[0]
            count = (
                self.count_of(card) or state.get("n_gpus") or (8 * state.get("n_nodes") if state.get("n_nodes") else 16)
            )
            if state.get("n_nodes") and count < state.get("n_nodes"):
                count = 8 * state.get("n_nodes")
            if self._links():
                for link in self._links():
                    self.add(
                        "check_interconnect",
                        self.workload("check_interconnect", gpu=card, n_gpus=count, inter_link=link),
                        "main",
                        link,
                    )
            else:
                self.add("check_interconnect", self.workload("check_interconnect", gpu=card, n_gpus=count))
        self.know("side" if self.calls else "main")
        if self.model() is None:
            self._compare_named()

    def _links(self) -> list[str]:
        named = [
            name
            for name in self.state.get("links", [])
            if name.startswith(("InfiniBand", "RoCE", "Ethernet", "EFA", "10G", "1G", "40G", "50G"))
        ]
        exact = [name for name in named if name not in ("InfiniBand", "Ethernet", "EFA")]
        return exact if len(exact) > 1 else []

    def storage(self) -> None:
        """Checkpoint bytes and interval where a model is named; else what the knowledge base says."""
        if self.model() is not None:
            self.add(
                "plan_checkpoints",
                self.workload("plan_checkpoints", gpu=self.card(), n_gpus=self.state.get("n_gpus")),
            )
            if self.turn.cues & {"oom"} or self.state.methods:
                card = self.card()
                self.add("estimate_vram", self.workload("estimate_vram", gpu=card), "side")
        self.know("side" if self.calls else "main")
        if self.model() is None:
            self._compare_named()

    def spot(self) -> None:
        """Spot against on-demand."""
        state = self.state
        if self.model() is not None:
            self.add(
                "plan_checkpoints",
                self.workload("plan_checkpoints", gpu=(self.cards() or ["H100-SXM5"])[0], billing="spot", spot=True),
            )
            if state.get("tokens") or state.get("samples"):
                self.time()
        elif "plan_checkpoints" in self.tools and state.get("n_gpus"):
            self.add("plan_checkpoints", {"n_gpus": state.get("n_gpus")}, "side") if "model" not in _required(
                "plan_checkpoints"
            ) else None
        if self.state.gpus:
            self._prices("side")
        self.know("side" if self.calls else "main")

    def onprem(self) -> None:
        """Owning against renting."""
        state = self.state
        cards = self.cards()
        card = cards[0] if cards else "H100-SXM5"
        count = self.count_of(card) or state.get("n_gpus") or (8 * state.get("n_nodes") if state.get("n_nodes") else 8)
        arguments = {
            "gpu": card, "n_gpus": count, "utilisation": state.get("utilisation"), "years": state.get("years"),
            "cloud_price": state.get("price_usd"), "power_price": state.get("power_price"),
            "colo_usd_per_kw_month": state.get("colo_usd_per_kw_month"), "colo_price": state.get("colo_usd_per_kw_month"),  # noqa: E501
        }  # fmt: skip
        self.add("compare_ownership", arguments)
        if self.model() is not None:
            self.memory()
        self.know("side")

    def driver(self) -> None:
        """Versions that work together."""
        state = self.state
        cards = self.cards()
        arguments = {
            "gpu": cards[0] if cards else None, "cuda": state.get("cuda"), "driver": state.get("driver"),
            "framework": f"torch {state.get('torch')}" if state.get("torch") else None, "torch": state.get("torch"),
            "precision": state.get("precision"), "attention": state.get("attention"),
        }  # fmt: skip
        if any(value is not None for value in arguments.values()):
            for card in cards[:2] if cards else (None,):
                self.add("check_compatibility", {**arguments, "gpu": card})
        self.know("side" if self.calls else "main")
        if self.model() is not None and self.state.methods:
            self.memory()

    def oom(self) -> None:
        """What filled the card."""
        text = (self.turn.log + "\n" + self.turn.text).strip() or self.state.text
        if "diagnose_oom" in self.tools and (
            "tried to allocate" in text.lower() or self.turn.log or self.model() is not None
        ):
            card = self.card()
            workload = self.workload("diagnose_oom", gpu=card)
            traceback: dict[str, Any] = {
                name: text[:20_000] for name in ("traceback", "text", "log") if name in fields("diagnose_oom")
            }
            self.add("diagnose_oom", {**workload, **traceback})
        if self.model() is not None:
            self.memory()
        elif not self.calls:
            self.know()
            self._compare_named()
        self.know("side")

    def inference(self) -> None:
        """Serving memory."""
        if self.model() is None:
            self.know()
            self._compare_named()
            return
        card = self.card()
        base = self.workload(
            "estimate_vram",
            gpu=card,
            task="inference",
            n_gpus=self.count_of(card) if card else self.state.get("n_gpus"),
        )
        base.pop("method", None)
        precisions = self.state.get("precisions") or ["bf16", "int4"]
        for precision in precisions[:3]:
            self.add("estimate_vram", {**base, "precision": precision}, "main", precision)
        self.know("side")

    def launch(self) -> None:
        """Commands and configuration."""
        if self.model() is None:
            self.question = "ask_model"
            return
        card = (self.cards() or ["H100-SXM5"])[0]
        self.add("launch_plan", self.workload("launch_plan", gpu=card, launcher=self.state.get("launcher")))
        self.add("estimate_vram", self.workload("estimate_vram", gpu=card), "side")

    def concept(self) -> None:
        """What the knowledge base says, with the sums where a workload is named."""
        self.know()
        if self.model() is not None:
            if self.state.get("tokens"):
                self.time()
            self.memory()
        else:
            self._compare_named()


# What to look up for a model kind that no sum is made for.
_TOPICS = {
    "vision": "convolutional vision model training: memory and data loading",
    "diffusion": "diffusion model training memory, activations by resolution",
    "robotics": "other model kinds: convolutional, diffusion, robot policies",
}
# Without a model these make a message a question to the knowledge base, not one that lacks a slot.
_TALK = frozenset(
    {
        "tflops",
        "bandwidth_ask",
        "concept",
        "why",
        "question_of_truth",
        "parallel",
        "pool",
        "oom",
        "killed",
        "network",
        "log",
        "compare",
        "storage",
    }
)
_TYPICAL_ROW_TOKENS = 512  # instruction data sets: Alpaca rows average about 130 tokens, long chat data over 1000
_GOALS: dict[str, Callable[[Decider], None]] = {
    "vram": Decider.memory, "fit": Decider.memory, "gpu_select": Decider.choose, "time": Decider.time,
    "cost": Decider.cost, "price": Decider.price, "compare": Decider.compare, "parallelism": Decider.parallel,
    "interconnect": Decider.network, "storage": Decider.storage, "checkpoint": Decider.storage, "spot": Decider.spot,
    "onprem": Decider.onprem, "driver": Decider.driver, "oom": Decider.oom, "inference": Decider.inference,
    "launch": Decider.launch, "concept": Decider.concept,
}  # fmt: skip
GOALS = frozenset(_GOALS)


def _all_methods(lower: str) -> bool:
    """Whether the three methods stand side by side ("full/lora/qlora")."""
    return all(word in lower for word in ("full", "lora", "qlora"))


def _required(tool: str) -> frozenset[str]:
    return frozenset(name for name, info in get_tool(tool).input_model.model_fields.items() if info.is_required())


def _billions(mention: ModelMention | None) -> float:
    text = (mention.argument or "") if mention else ""
    if text.endswith("B"):
        try:
            return float(text[:-1])
        except ValueError:
            return 7.0
    if mention is not None and mention.kind == "known":
        from knowledge.models import load_model

        return load_model(text).total_params / 1e9
    return 7.0


_TYPICAL_CARDS = (
    "RTX-4090",
    "A100-SXM4-80GB",
    "A100-SXM4-40GB",
    "RTX-A6000",
    "RTX-5090",
    "RTX-3060-12GB",
    "RTX-4060-Ti-16GB",
    "RTX-3070",
    "H200-SXM",
    "MI300X",
    "H20",
)


def _card_of(gigabytes: float) -> str:
    """A card of this memory: a common one first, else any of that size; "" where none is close."""
    by_id = {gpu.id: gpu for gpu in all_gpus()}
    ordered = [by_id[name] for name in _TYPICAL_CARDS if name in by_id] + list(by_id.values())
    best = min(ordered, key=lambda gpu: abs(gpu.marketed_memory_gb - gigabytes))
    return best.id if abs(best.marketed_memory_gb - gigabytes) <= 0.07 * gigabytes else ""


def out_of_scope(turn: Slots) -> str | None:
    """The kind of thing asked for that is none of ours, or None."""
    for kind, match in grammar.found("scope", "kinds", turn.lower):
        if kind in ("gaming", "food", "finance", "general", "repair") and turn.models and match:
            continue
        return kind
    return None
