"""A message into slots: spans are read in an order that keeps "8k", "80GB", "8B" and "8 GPUs" apart.

What is read is blanked out, so that nothing is read twice: versions, then cards, tokens and lengths, data, links,
money, the workload's numbers, then models, counts, memory and times, each with the words that make it one. The words
themselves are data: ``advisor/llm/grammar``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

from advisor.llm.planner import grammar, read_amounts, read_data, read_machine
from advisor.llm.planner.clean import Cleaned, clean
from advisor.llm.planner.intents import read_cues, read_intents
from advisor.llm.planner.mentions import GpuMention, ModelMention
from advisor.llm.planner.number_words import digits
from advisor.llm.planner.page import Page, counted_thousands, number_word, plain_numbers, spoken_shares
from advisor.llm.planner.read_gpus import find_gpus, find_machines, with_shared_memory
from advisor.llm.planner.read_models import find_models
from advisor.llm.planner.slots import Slots
from advisor.llm.planner.spelling import fix_spelling

_COUNT_X = re.compile(r"(?<![a-z\d])(\d{1,5})x(?!tx?\b|large)(?=[a-z]|\d{4}(?!\d))")  # 8xh100, 2x3090; not 9070xt

# h100x8, l40x4, 3090x2
_X_COUNT = re.compile(
    r"(?:(?<=[a-z]\d\d\d)|(?<=[a-z]\d\d)|(?<=[2-5]0[5-9]0)|(?<=[tl]4)|(?<=10g)|(?<=40s)|(?<=\dgb))x(?=\d{1,4}(?![a-wyz\d.]))"
)

_B_BETWEEN = re.compile(r"(?<![a-z\d.])(\d{1,2})b([1-9])(?![\w.])")  # bloom's 7b1 and 1b7

_KEY = re.compile(r"[\"']([a-z_]{1,40})[\"'] ?:")  # of a pasted mapping: 'max_length': 1536

# No number is longer; patterns that look for a unit after a number would try every digit of an endless run.
_LONGEST_NUMBER = 24
_ENDLESS = re.compile(r"\d[\d.,_']{24,}")


def parse(message: str) -> Slots:
    """The slots of one message, as typed or pasted. Never raises on any text."""
    return read(clean(message))


def read(cleaned: Cleaned) -> Slots:
    """The slots of a cleaned message: spans are read in a fixed order, each character once."""
    # A count's "x" becomes a sign of its own, and a line's end a border that no pattern reads across.
    flat = _X_COUNT.sub(" x ", _COUNT_X.sub(r"\1×", cleaned.lower)).replace("\n", " ; ")
    flat = _KEY.sub(r"\1:", flat)
    flat = _B_BETWEEN.sub(r"\1.\2b", flat)
    flat = spoken_shares(digits(counted_thousands(flat, cleaned.language), cleaned.language))
    flat = _ENDLESS.sub(lambda match: match[0][:_LONGEST_NUMBER], flat)
    lower = fix_spelling(plain_numbers(flat))
    page = Page(lower)
    values: dict[str, Any] = {}
    read_amounts.read_versions(page, values)
    read_machine.read_networks(page, values)
    gpus, providers = _machines(page, lower, values)
    read_data.read_tokens(page, values)
    read_data.read_variants(page, values)
    settled = [read_data.read_lengths(page, values)]
    read_data.read_data_set(page, values)
    read_machine.read_links(page, values)
    read_amounts.read_money(page, values, gpus, cleaned.language)
    models = [_as_written(mention, cleaned.prose) for mention in _models(page, values)]
    settled.append(_read_numbers(page, values))
    read_amounts.read_shares(page, values)
    read_data.read_bare_length(page, models, values)
    methods = _methods(lower, gpus, values)
    _read_choices(lower, methods, gpus, values)
    read_machine.read_counts(page, values, gpus)
    read_machine.read_count_pair(page, values)
    if values.get("command_gpus"):
        values.setdefault("n_gpus", values.pop("command_gpus"))
    read_amounts.read_memory(page, values)
    gpus = with_shared_memory(gpus, values)
    read_amounts.read_times(page, values)
    read_amounts.read_log(cleaned.log, values)
    if gpus or page.has("nodes"):
        read_machine.read_each(page, values, gpus)
    region = grammar.first("names", "regions", lower)
    if region:
        values["region"] = region
    read_machine.read_nodes(page, values, gpus)
    slots = Slots(
        values=values,
        models=tuple(models),
        gpus=tuple(gpus),
        methods=methods,
        providers=providers,
        cues=read_cues(_without_settled(_without_form(lower, gpus), settled), cleaned.log),
        log=cleaned.log,
        text=cleaned.prose,
        lower=lower,
        language=cleaned.language,
        secrets=cleaned.secrets,
        links=cleaned.links,
    )
    return replace(slots, intents=read_intents(slots))


def _machines(page: Page, lower: str, values: dict[str, Any]) -> tuple[list[GpuMention], tuple[str, ...]]:
    """The cards named, those inside named machine types among them, and the providers."""
    gpus, providers = find_gpus(page.text), []
    for machine, provider in find_machines(lower):
        gpus = [gpu for gpu in gpus if not machine.start <= gpu.start < machine.end]
        gpus.append(machine)
        providers.append(provider)
        values.setdefault("instance", machine.text)
    gpus.sort(key=lambda gpu: gpu.start)
    for gpu in gpus:
        page.blank(gpu.start, gpu.end)
    providers += [value for value, _match in grammar.found("names", "providers", lower)]
    return gpus, tuple(dict.fromkeys(providers))


def _models(page: Page, values: dict[str, Any]) -> list[ModelMention]:
    """The models named, without sizes that repeat a name's or that are data."""
    models = find_models(page.text)
    for model in models:
        page.blank(model.start, model.start + len(model.text))
    models = _without_echoes(models)
    read_data.read_late_tokens(page, models, values)
    return models


def _as_written(mention: ModelMention, prose: str) -> ModelMention:
    """A hub id with its capitals, which the hub may need."""
    found = re.search(re.escape(mention.text), prose, re.IGNORECASE) if mention.kind == "hub" else None
    return replace(mention, argument=found[0]) if found else mention


def _without_echoes(models: list[ModelMention]) -> list[ModelMention]:
    """A bare size beside a name that already has it is no second model ("Qwen2.5-7B ... the 7B")."""
    named = [mention for mention in models if mention.kind in ("known", "unknown", "unmodelled")]
    kept: list[ModelMention] = []
    for mention in models:
        echo = mention.kind == "size" and any(str(mention.size).lower() in other.text for other in named)
        same = any(
            other.kind == mention.kind and other.argument == mention.argument and mention.argument for other in kept
        )
        if not echo and not same:
            kept.append(mention)
    return kept


def _read_numbers(page: Page, values: dict[str, Any]) -> tuple[int, int] | None:
    """Rank, batches and parallel degrees; gives the place of a batch with its word."""
    batch = None
    if visible := page.take("visible", "numbers"):
        values["command_gpus"] = visible[1].count(",") + 1
    for name, index in grammar.names("numbers"):
        match = page.take(name, "numbers", index)
        if match and name == "micro_batch":
            batch = match.span()
        if match and name not in values:
            said = next(group for group in match.groups() if group)
            values[name] = int(said) if said.lstrip("-").isdecimal() else number_word(said) or said
    if "processes" in values:  # of all machines together
        values["command_gpus"] = values.pop("processes")
        if "nnodes" in values:
            values["n_nodes"] = values.pop("nnodes")
    if "nproc" in values:  # of a pasted command
        nodes = values.pop("nnodes", 1)
        values["gpus_per_node"] = values.pop("nproc")
        values["command_gpus"] = values["gpus_per_node"] * nodes  # where the words say none
        if nodes > 1:
            values["n_nodes"] = nodes
    shape = {name: page.take(name, "shapes") for name, _index in grammar.names("shapes")}
    values |= {name: int(match[1] or match[match.re.groups]) for name, match in shape.items() if match}
    return batch


_ADAPTERS = ("lora", "qlora", "dora")


def _without_form(lower: str, gpus: list[GpuMention]) -> str:
    """The text with the form factor of named cards blanked: "H100 PCIe" asks nothing about links."""
    for gpu in gpus:
        part = lower[gpu.start : gpu.end]
        lower = lower[: gpu.start] + part.replace("pcie", "    ").replace("nvl", "   ") + lower[gpu.end :]
    return lower


_MAX = re.compile(r"max(?:imum)?[\s_\-]{0,2}$")


def _without_settled(lower: str, settled: list[tuple[int, int] | None]) -> str:
    """The text with the lengths and batches that it gives blanked: "max_seq_length 4096" asks for no maximum."""
    for span in settled:
        if span:
            before = _MAX.search(lower[: span[0]])
            start = before.start() if before else span[0]
            lower = lower[:start] + " " * (span[1] - start) + lower[span[1] :]
    return lower


def _methods(lower: str, gpus: list[GpuMention], values: dict[str, Any]) -> tuple[str, ...]:
    """Methods named, in order; "dpo lora" and "grpo qlora" keep both."""

    def says(name: str) -> bool:
        return grammar.named(name).search(lower) is not None

    found = _kept(list(grammar.found("workload", "methods", lower)), lower)
    quantised = says("four_bits") and not says("no_four_bits")
    if says("no_four_bits"):
        found = [value for value in found if value != "qlora"]
    if says("no_adapter") or says("type_full"):
        found = [value for value in found if value not in _ADAPTERS] or ["full"]
    if "full" in found and says("other_full") and not says("full_method"):
        found.remove("full")
    if "pretrain" in found and {"lora", "qlora", "full"} & set(found) and "from scratch" not in lower:
        found.remove("pretrain")
    if "continued_pretrain" in found and {"lora", "qlora"} & set(found):  # the adapter is how it is trained
        found.remove("continued_pretrain")
    if "lora" in found and {"qlora", "dora"} & set(found) and not (says("lora_apart") or _both(lower)):
        found.remove("lora")
    if "lora" in found and "qlora" not in found and quantised:
        found[found.index("lora")] = "qlora"
    serving = grammar.matcher("workload", "inference").search(lower) or _on_a_mac(gpus)
    if not found and says("four_bit_load") and not serving and not says("no_four_bits"):
        found = ["qlora"]
    if not found and _from_nothing(lower, values):
        found = ["pretrain"]
    if not found and "lora_rank" in values:
        found = ["qlora"] if quantised else ["lora"]
    return tuple(found)


def _kept(said: list[tuple[str, re.Match[str]]], lower: str) -> list[str]:
    """The values said, each once and in order, without those that are taken back: "qlora, no sorry, lora"."""
    for (_first, before), (_second, after) in pairwise(said):
        between = lower[before.end() : after.start()]
        if len(between) <= _ONE_BREATH and grammar.named("takes_back").search(between):
            said = [pair for pair in said if pair[1].start() >= after.start()]
    return list(dict.fromkeys(value for value, _match in said))


def _from_nothing(lower: str, values: dict[str, Any]) -> bool:
    """Whether training from nothing is described without its name: "our own 3B on 60B tokens"."""
    if grammar.matcher("workload", "finetune").search(lower):
        return False
    own = grammar.named("of_our_own").search(lower) and values.get("tokens", 0) >= _LARGE_DATA
    return bool(own or grammar.named("pretraining_run").search(lower))


def _both(lower: str) -> bool:
    """LoRA and QLoRA each named as a method: "LoRA (r=8) ... and with QLoRA?"."""
    alone, other = grammar.named("lora_alone").search(lower), re.search(r"qlora|q lora", lower)
    return alone is not None and other is not None and abs(alone.start() - other.start()) > _APART


_LARGE_DATA = 1e9  # tokens; fewer are a fine-tuning set
_APART = 12  # characters; nearer, both words name one thing ("qlora, lora style")
_ONE_BREATH = 30  # characters between a choice and what replaces it


def _on_a_mac(gpus: list[GpuMention]) -> bool:
    """Macs mostly run quantised models; other cards mostly train on them."""
    return any((gpu.argument or "").startswith("Apple") for gpu in gpus)


def _read_choices(lower: str, methods: tuple[str, ...], gpus: list[GpuMention], values: dict[str, Any]) -> None:
    """Optimizer, sharding, attention, framework, launcher, precision, checkpointing, offload, task, billing."""
    for key, name in (
        ("optimizers", "optimizer"),
        ("sharding", "sharding"),
        ("attention", "attention"),
        ("launchers", "launcher"),
    ):
        value = grammar.first("workload", key, lower)
        if value:
            values[name] = value
    if framework := _framework(lower):
        values["framework"] = framework
    optimizers = list(dict.fromkeys(value for value, _match in grammar.found("workload", "optimizers", lower)))
    if len(optimizers) == 2 and "variants" not in values:
        values["variants"] = ("optimizer", optimizers)
    _read_precision(lower, methods, values)
    if grammar.matcher("workload", "checkpointing_off").search(lower):
        values["activation_checkpointing"] = "none"
    elif grammar.matcher("workload", "checkpointing_on").search(lower):
        values["activation_checkpointing"] = "full"
    _read_offload(lower, values)
    if grammar.matcher("workload", "fused_loss").search(lower) or values.get("framework") == "unsloth":
        values["fused_loss"] = True
    if not methods and not grammar.named("vllm_argument").search(lower):
        trains = any(grammar.matcher("workload", key).search(lower) for key in ("finetune", "train"))
        apple = _on_a_mac(gpus)
        stored = values.get("precision") in ("int4", "int8", "nf4", "fp4", "mxfp4")
        if grammar.matcher("workload", "inference").search(lower) or (stored and apple and not trains):
            values["task"] = "inference"
            engine = grammar.first("workload", "engines", lower)
            if engine and "framework" not in values:
                values["framework"] = engine
    kinds = {match.lastindex for match in grammar.named("billing").finditer(lower)}
    billing = grammar.named("billing").search(lower) if len(kinds) == 1 else None  # several: all are asked for
    if billing:
        term = grammar.named("term").search(lower)
        years = "3y" if term and term[1] in ("3", "three") else "1y"
        values["billing"] = "spot" if billing[1] else f"reserved_{years}" if billing[2] else "on_demand"


def _framework(lower: str) -> str | None:
    """The training stack named: one with a recipe of its own before the libraries that it is built on."""
    named = [value for value, _match in grammar.found("workload", "frameworks", lower)]
    return min(named, key=lambda value: _BUILT_ON.index(value) + 1 if value in _BUILT_ON else 0, default=None)


_BUILT_ON = ("lightning", "deepspeed", "hf", "accelerate")


def _read_precision(lower: str, methods: tuple[str, ...], values: dict[str, Any]) -> None:
    denied = grammar.named("not_this")
    said = [
        (value, match)
        for value, match in grammar.found("workload", "precisions", lower)
        if not denied.search(lower[max(0, match.start() - 16) : match.start()])
    ]
    found = _kept(said, lower)
    if "int4" in found and ("qlora" in methods or grammar.named("no_four_bits").search(lower)):
        found.remove("int4")
    if str(values.get("optimizer", "")).endswith("8bit") and "int8" in found:
        found.remove("int8")
    if found:
        values["precision"], values["precisions"] = found[0], found


def _read_offload(lower: str, values: dict[str, Any]) -> None:
    if not grammar.matcher("workload", "offload").search(lower) or grammar.named("no_offload").search(lower):
        return
    states_only = values.get("sharding") in ("zero1", "zero2") or grammar.named("offload_optimizer").search(lower)
    kind = "optimizer" if states_only else "all"
    values["cpu_offload"] = "nvme" if grammar.named("to_disk").search(lower) else kind
    if "sharding" not in values and grammar.named("offload_engine").search(lower):
        values["sharding"] = "zero3" if "infinity" in lower else "zero2"
