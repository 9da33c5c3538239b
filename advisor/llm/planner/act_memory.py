"""What to call where memory is asked for: the bill, its range, rows of estimates, serving, out-of-memory errors."""

from __future__ import annotations

import re
from typing import Any

from advisor.llm.planner.decide import (
    LARGE_DATA,
    MAX_CALLS,
    PREFERENCE,
    TALK,
    Decider,
    action,
    billions,
    fields,
)
from advisor.llm.planner.mentions import COMPUTED
from advisor.llm.planner.plan import Part
from advisor.llm.planner.slots import Slots
from knowledge.gpus import load_gpu
from knowledge.models import load_model
from knowledge.search import closeness

_CLOSE = 0.95  # of the words, from which an article answers what would else be asked back for its model
_FEW_WORDS = 4  # "24 GB enough?" resembles many articles, and wants its model named
LONGEST = 100_000_000  # tokens in a sample, as the tools take them

_LADDERS = {
    "biggest_seq": ("seq_len", (2048, 4096, 8192, 16384, 32768, 65536, 131072)),
    "biggest_batch": ("micro_batch", (1, 2, 4, 8, 16, 32, 64)),
}
_MOST_SIZES = 5


@action("vram", "fit")
def memory(d: Decider) -> None:
    """estimate_vram for what is stated, once a method and card that are left open or named together."""
    if d.state.model is None:
        _without_model(d)
        return
    if d.model() is None:
        d.know()
        return
    cards: list[str | None] = [*d.cards()[:3]] or [None]
    for cue, (argument, values) in _LADDERS.items():
        if cue in d.turn.cues:
            _ladder(d, argument, values, cards[0])
            return
    if d.state.get("variants"):
        _variants(d, cards[0])
        return
    sizes: list[Any] = [m.argument for m in d.state.models if m.kind in COMPUTED and m.argument][:_MOST_SIZES]
    if len(sizes) == 1:
        sizes = [d.model()]
    methods = methods_of(d)
    for card in cards:
        base = d.workload("estimate_vram", gpu=card, n_gpus=_count(d, card))
        for size in sizes:
            for method in methods:
                if len(d.calls) < MAX_CALLS:
                    about = str(method if len(methods) > 1 else card or "")
                    d.add("estimate_vram", {**with_method(base, method), "model": size}, "main", about)
        if len(cards) == len(methods) == len(sizes) == 1:
            _span(d, with_method(base, methods[0]))


def _variants(d: Decider, card: str | None) -> None:
    """The two values of one choice that the message sets against each other."""
    name, pair = d.state.get("variants")
    base = d.workload("estimate_vram", gpu=card, n_gpus=_count(d, card))
    method = methods_of(d)[0] if d.state.methods or name == "lora_rank" else "full" if name == "optimizer" else "lora"
    for value in pair:
        about = f"{name}={value}" if name != "optimizer" else str(value)
        d.add("estimate_vram", {**with_method(base, method), name: value}, "main", about)


def _count(d: Decider, card: str | None) -> int | None:
    """The count of a card; one where it is named in the singular without any."""
    count = d.count_of(card)
    return 1 if card and count is None and not d.plural(card) else count


def with_method(base: dict[str, Any], method: str | None) -> dict[str, Any]:
    """``base`` with a method; under QLoRA a 16-bit precision is that of the compute, which it implies."""
    arguments = {**base, **({"method": method} if method else {})}
    if method == "qlora" and arguments.get("precision") in ("bf16", "fp16", "int8"):
        arguments.pop("precision")
    return arguments


def _span(d: Decider, base: dict[str, Any]) -> None:
    """The range over a sequence length that was left open, where no batch says what is meant either."""
    if "seq_len" in base or "micro_batch" in base or base.get("task") == "inference":
        return
    for length in (512, 8192):
        d.add("estimate_vram", {**base, "seq_len": length}, "span", f"seq_len={length}")


def methods_of(d: Decider) -> list[str | None]:
    """The methods to compute: the one named, the two compared, or all three where it is left open."""
    state = d.state
    preferred = [method for method in state.methods if method in PREFERENCE]
    if preferred:  # an adapter that is named too is how it is trained: see ``Decider.workload``
        return [preferred[0]]
    if all(word in d.turn.lower for word in ("full", "lora", "qlora")):
        return ["full", "lora", "qlora"]
    if state.methods:
        return list(state.methods[:3])
    if d.component() in ("optimizer_states", "gradients"):  # asked for alone: those of the whole model are meant
        return ["full"]
    if state.get("task") == "inference":
        return [None]
    if whole_model(d):
        return ["full", "lora"]
    return ["full"] if (state.get("tokens") or 0) >= LARGE_DATA else ["qlora", "lora", "full"]


# Small models, and kinds that people train whole without saying so: encoders, encoder-decoders, speech.
_WHOLE_BELOW = 1e9  # parameters
_WHOLE_KINDS = re.compile(r"bert|t5|whisper|bart|gpt-?2|wav2vec|clip|vit|nanogpt|e5-|bge|minilm|electra|deberta")


def whole_model(d: Decider) -> bool:
    """Whether the model is one that people train whole unless they say otherwise."""
    mention = d.state.model
    if mention is None or not mention.argument:
        return False
    if mention.kind == "known":
        usual = _WHOLE_KINDS.search(mention.argument.lower()) is not None
        return usual or load_model(mention.argument).total_params < _WHOLE_BELOW
    return mention.size is not None and billions(mention.size) * 1e9 < _WHOLE_BELOW


def _ladder(d: Decider, argument: str, values: tuple[int, ...], card: str | None) -> None:
    """The same estimate over rising values of one argument: where it stops to fit is the answer."""
    base = d.workload("estimate_vram", gpu=card or "H100-SXM5", n_gpus=d.count_of(card))
    if base.get("task") == "inference" and base.get("n_gpus") in _SPLITS:
        base.setdefault("tp", base["n_gpus"])
    for value in values:
        d.add("estimate_vram", {**base, argument: value}, "ladder", f"{argument}={value}")


def _without_model(d: Decider) -> None:
    """No model: the largest one, versions, talk, a default where no question may be asked, or a question."""
    state, cues = d.state, d.turn.cues
    of_versions = state.gpus and (state.get("precision") or state.get("attention")) and not state.methods
    if _impossible(state):
        d.question = "bad_values"
    elif "card_use" in cues and d.cards():
        card_use(d)
    elif "biggest_model" in cues:
        d.go("biggest_model")
    elif of_versions and "tflops" not in cues:
        d.go("driver")
    elif state.providers and (state.gpus or "price" in cues):
        d.go("price")
    elif cues & {"mixed_cards", "count_rule"}:
        d.know()
    elif cues & TALK:
        d.know()
        d.compare_named()
    elif "no_questions" in cues:
        d.notes.append("assumed_model")
        d.add("select_gpu", {"model": "70B", "method": "qlora"})
    else:
        telling = "?" in d.turn.text and len(d.turn.text.split()) > _FEW_WORDS
        if telling and closeness(d.turn.topic()) >= _CLOSE:  # an article answers it
            d.know()
            d.compare_named()
            return
        partly = state.gpus or state.methods or state.get("gpu_memory_gb")
        d.question = "ask_model" if partly else "ask_what"
        if d.cards() and not state.get("tokens"):  # what the card holds narrows the question down
            _sizes(d, d.cards()[0], d.method() or "qlora", "side")


# Sizes to try, and bytes a parameter that choose which of them to ask the tool about (it then says what is needed).
_SIZES_B = (0.5, 1, 3, 8, 14, 32, 70, 120, 200, 405)
_BYTES_PER_PARAM = {"qlora": 0.7, "lora": 2.2, "dora": 2.2, "full": 17.0}
_SIZES_TRIED = 3
_METHODS = ("qlora", "lora", "full")


@action("card_use")
def card_use(d: Decider) -> None:
    """What a card is good for where no model is named: the largest model of each method beside its data sheet."""
    card = next(iter(d.cards()), None)
    if card is None or d.state.model is not None:
        d.go("fit")
        return
    method = d.method()
    for name in (method,) if method in _METHODS else _METHODS:
        _sizes(d, card, name, "main")
    d.add("compare_gpus", {"gpus": [card]}, "side")
    d.whole = True


def _sizes(d: Decider, card: str, method: str, part: Part) -> None:
    """The estimate for the sizes around what the card's memory may hold by this method."""
    count = d.count_of(card) or 1
    memory = load_gpu(card).marketed_memory_gb * count
    share = _BYTES_PER_PARAM.get(method, _BYTES_PER_PARAM["full"])
    fits = sum(size * share <= memory for size in _SIZES_B)
    first = min(max(0, fits - 2), len(_SIZES_B) - _SIZES_TRIED)
    base = d.workload("estimate_vram", gpu=card, n_gpus=count, method=method, activation_checkpointing="full")
    for size in _SIZES_B[first : first + _SIZES_TRIED]:
        d.add("estimate_vram", {**base, "model": f"{size:g}B"}, part, f"size={size:g}B")


def _impossible(state: Slots) -> bool:
    """Whether a length or batch cannot be; with a model the tool says so itself."""
    length, batch = state.get("seq_len", 1), state.get("micro_batch", 1)
    return isinstance(batch, str) or batch < 1 or not 1 <= length <= LONGEST


_SPLITS = (2, 4, 8, 16)


@action("inference")
def inference(d: Decider) -> None:
    """Memory of serving: weights, key-value cache and what users at once add."""
    if d.model() is None:
        d.know()
        d.compare_named()
        return
    card = d.card()
    base = d.workload("estimate_vram", gpu=card, task="inference", n_gpus=d.count_of(card))
    base.pop("method", None)
    count = base.get("n_gpus") or 1
    if count in _SPLITS and not d.state.get("tp"):  # serving on several cards splits the weights over them
        base["tp"] = count
    precisions = d.state.get("precisions") or ["bf16", "int4"]
    for cue, (argument, values) in _LADDERS.items():
        if cue in d.turn.cues:
            for value in values:
                arguments = {**base, "precision": precisions[0], argument: value}
                d.add("estimate_vram", arguments, "ladder", f"{argument}={value}")
            return
    if card and d.count_of(card) is None and "how_many" in d.turn.cues:
        for count in (1, 2, 4, 8, 16):
            arguments = {**base, "n_gpus": count, "tp": count, "precision": precisions[0]}
            d.add("estimate_vram", arguments, "ladder", f"n_gpus={count}")
        return
    for precision in precisions[:3]:
        d.add("estimate_vram", {**base, "precision": precision}, "main", precision)
    d.know("side")


# What a failure's words say without a model or a pasted message: the moment, or the bytes asked for.
_TELLS = re.compile(r"tried to allocate|climb|creep|grow|leak|\bsav(?:e|ing)\b|\beval|logging|\bload(?:s|ing)?\b")


@action("oom")
def oom(d: Decider) -> None:
    """What filled the card, from the pasted log or from the job described."""
    log, said = d.turn.log.strip(), d.turn.text.strip()
    pieces = [piece for piece, other in ((log, said), (said, log)) if piece and piece not in other]
    text = "\n".join(pieces) or log or d.state.text  # one long line is both, and is passed once
    if "diagnose_oom" in d.tools and (d.turn.log or d.model() is not None or _TELLS.search(text.lower())):
        pasted: dict[str, Any] = {
            name: text[:20_000] for name in ("traceback", "text", "log") if name in fields("diagnose_oom")
        }
        d.add("diagnose_oom", {**d.workload("diagnose_oom", gpu=d.card()), **pasted})
    if d.model() is None:
        if not d.calls:
            d.know()
            d.compare_named()
    elif d.calls:  # the diagnosis holds the bill; this says whether the job as described should fit
        cards: list[str | None] = [*d.cards()[:2]] or [None]
        for card in cards:
            base = d.workload("estimate_vram", gpu=card, n_gpus=_count(d, card))
            for method in methods_of(d):
                d.add("estimate_vram", with_method(base, method), "line", method or "")
    else:
        memory(d)
    log = d.turn.log.lower()
    plain = "tried to allocate" in log or "out of memory" in log  # such a log needs no reading up on
    if "pool" in d.turn.cues or not plain:
        d.know("side", explained=True)
