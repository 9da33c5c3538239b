"""What one message says, and what a conversation has said so far: later turns fill and replace earlier ones."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from advisor.llm.planner.mentions import COMPUTED, GpuMention, ModelMention


@dataclass(frozen=True, slots=True)
class Slots:
    """Everything read from a message. ``values`` holds scalars under the tools' argument names where one exists.

    Besides those: tokens, samples, epochs, steps, steps_count, budget_usd, budget (amount, currency), deadline_hours,
    due (a ``read_dates.Due``: its hours become deadline_hours once the time is known), hours, price_usd, utilisation,
    mfu, gpu_memory_gb, ram_gb, n_nodes, gpus_per_node, inter_link, intra_link, region,
    billing, driver, cuda, torch, years, power_price, mtbf_hours, variants (argument, its two values).
    """

    values: dict[str, Any] = field(default_factory=dict)
    models: tuple[ModelMention, ...] = ()
    gpus: tuple[GpuMention, ...] = ()
    methods: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    intents: tuple[str, ...] = ()  # strongest first
    cues: frozenset[str] = frozenset()
    log: str = ""
    text: str = ""
    lower: str = ""
    language: str = "en"
    secrets: int = 0
    links: int = 0
    subject: str = ""  # the last message of the conversation that asked for something

    def get(self, name: str, default: Any = None) -> Any:
        """A scalar slot by its name; ``default`` where it was not stated."""
        return self.values.get(name, default)

    def topic(self) -> str:
        """What the message speaks of besides the models, cards and numbers that it names."""
        text = self.lower
        for card in self.gpus:
            text = text[: card.start] + " " * (card.end - card.start) + text[card.end :]
        for mention in self.models:
            text = text.replace(mention.text, " ")
        return " ".join(_FIGURE.sub(" ", text).split())

    @property
    def model(self) -> ModelMention | None:
        """The model to compute with: a named one before a bare size, the first of a kind."""
        for kind in (*COMPUTED, "unknown", "unmodelled", "closed"):
            for mention in self.models:
                if mention.kind == kind:
                    return mention
        return None

    @property
    def gpu(self) -> GpuMention | None:
        """The first card that the tables hold, else the first one named."""
        return next((mention for mention in self.gpus if mention.kind == "known"), self.gpus[0] if self.gpus else None)


_FIGURE = re.compile(r"(?<![a-z])\d[\w.,%$]*")
_TURN_ONLY = ("intents", "cues", "log", "text", "lower", "language", "secrets", "links")
# A change of method drops what only the old method had; a new model or card drops what was said of the old one.
_METHOD_BOUND = ("lora_rank", "lora_targets", "precision")


_SHORTEST_SUBJECT = 20  # characters; "so?" and "and now?" have none of their own


def merge(earlier: Slots, turn: Slots) -> Slots:
    """The conversation's slots after ``turn``: what it names replaces, what it leaves open stays."""
    values = dict(earlier.values)
    if turn.methods and earlier.methods and turn.methods != earlier.methods:
        for name in _METHOD_BOUND:
            values.pop(name, None)
    if turn.gpus and earlier.gpus:
        for name in ("n_gpus", "n_nodes", "gpus_per_node", "gpu_memory_gb"):
            same_run = name != "gpu_memory_gb" and "follow_up" in turn.cues and "tokens" in values  # "and on H200?"
            if name not in turn.values and not same_run and not ("more" in turn.cues and name == "gpu_memory_gb"):
                values.pop(name, None)
    if "gpu_memory_gb" in turn.values and not turn.gpus:
        earlier = replace(earlier, gpus=())
    values.update(turn.values)
    of_one = turn.get("gpus_per_node") == turn.get("n_gpus") and "n_nodes" not in turn.values
    if ("n_gpus" not in turn.values or of_one) and turn.values.keys() & {"n_nodes", "gpus_per_node"}:
        nodes, each = values.get("n_nodes"), values.get("gpus_per_node")
        if nodes and each:  # "on 4 nodes", then "8 each"
            values["n_gpus"] = nodes * each
    gpus = turn.gpus or earlier.gpus
    if not turn.gpus and turn.get("n_gpus") and gpus:
        nodes = turn.get("n_nodes")
        count = max(1, turn.get("n_gpus") // nodes) if nodes and nodes > 0 else turn.get("n_gpus")
        gpus = tuple(replace(mention, count=count, nodes=nodes) for mention in gpus)
    return Slots(
        values=values,
        models=turn.models or earlier.models,
        gpus=gpus,
        methods=turn.methods or earlier.methods,
        providers=turn.providers or earlier.providers,
        subject=turn.text if turn.intents and len(turn.text) >= _SHORTEST_SUBJECT else earlier.subject,
        **{name: getattr(turn, name) for name in _TURN_ONLY},
    )
