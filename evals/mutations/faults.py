"""The seeded faults, each the kind of mistake that such a program really makes, with the cases that stand guard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from advisor.number_check import Report
from evals.graders import Miss
from evals.mutations.prove import Mutation
from knowledge.types import Gpu
from tools.errors import UnknownName

Changed = Callable[[Any], Any]


def _gpu(change: Callable[[Gpu], Gpu], only: str = "") -> Changed:
    """``load_gpu`` with every card (or one) changed."""

    def wrap(load: Any) -> Any:
        return lambda gpu_id: change(load(gpu_id)) if not only or gpu_id == only else load(gpu_id)

    return wrap


def _rates(factor: float) -> Callable[[Gpu], Gpu]:
    return lambda gpu: replace(
        gpu, dense_flops={name: rate and rate * factor for name, rate in gpu.dense_flops.items()}
    )


def _result(change: Callable[[Any], None]) -> Changed:
    """Every tool's result changed on its way out."""

    def wrap(call: Any) -> Any:
        def called(spec: Any, arguments: dict[str, Any]) -> Any:
            result = call(spec, arguments)
            change(result)
            return result

        return called

    return wrap


def _for_facts(change: Callable[[Any], None]) -> Changed:
    def all_facts(result: Any) -> None:
        for fact in result.facts:
            change(fact)

    return _result(all_facts)


def _hide_price_dates(fact: Any) -> None:
    if fact.kind == "price":
        fact.as_of = None


def _price_times_1000(fact: Any) -> None:
    if fact.unit in ("USD/GPU-h", "USD"):
        fact.value *= 1000


def _collapse_range(fact: Any) -> None:
    fact.low = fact.high = None


def _strip_unit(fact: Any) -> None:
    fact.unit = ""


def _gib_as_gb(fact: Any) -> None:
    if fact.unit == "B":
        fact.value = fact.value / 2**30 * 1e9


def _drop_sources(result: Any) -> None:
    result.sources = []


def _swallow_unknown(find: Any) -> Any:
    def found(name: str, field: str = "model") -> Any:
        try:
            return find(name, field)
        except UnknownName:
            return find("llama-3.1-70b", field)

    return found


def _flip_verdicts(search: Any) -> Any:
    return lambda query, limit=5: [
        replace(passage, verdict="right") if passage.kind == "claim" else passage for passage in search(query, limit)
    ]


def _ten_times(proof: Any) -> Any:
    def changed(claim_id: str) -> Any:
        found = proof(claim_id)
        return {**found, "result": found["result"] * 10} if found else found

    return changed


def _any_arguments(parse: Any) -> Any:
    def accept(model: Any, arguments: dict[str, Any]) -> Any:
        try:
            return parse(model, arguments)
        except Exception:
            return parse(model, {key: value for key, value in arguments.items() if key in ("model", "method")})

    return accept


def _crash(call: Any) -> Any:
    def boom(spec: Any, arguments: dict[str, Any]) -> Any:
        raise ZeroDivisionError("seeded")

    return boom


def _invent(function: Any) -> Any:
    """The turn's check lets everything through, and its text gains a number."""
    if function.__name__ == "check":
        return lambda text, evidence: Report(numbers=1, grounded=1)

    def shown(text: str, sources: Any) -> Any:
        done = function(text, sources)
        done.text += "\n\nIt also wants 873 GB of spare memory."
        return done

    return shown


def _without(grader: str) -> Changed:
    return lambda all_graders: {**all_graders, grader: lambda expect, happened, said: iter(())}


def _suffix_match(all_graders: Any) -> Any:
    def text_value(expect: Any, happened: Any, said: Any) -> Any:
        for number in expect.numbers:
            if number.in_text and f"{number.value:g}" not in happened.text.replace(",", ""):
                yield Miss("text_value", "not shown")

    return {**all_graders, "text_value": text_value}


def _crash_is_fine(grade: Any) -> Any:
    return lambda expect, happened, said: [] if happened.crash else grade(expect, happened, said)


MUTATIONS: tuple[Mutation, ...] = (
    # Units and capacities
    Mutation("card memory in decimal gigabytes", "an 80 GB card holds 80 GiB", ("knowledge.gpus:load_gpu",),
             _gpu(lambda gpu: replace(gpu, memory_bytes=int(gpu.marketed_memory_gb * 1e9),
                                      usable_bytes=int(gpu.marketed_memory_gb * 0.985e9))),
             ("memory.fit.8b.full.h100",)),
    Mutation("GiB printed as GB", "results 7 % too small", ("tools.registry:ToolSpec.call",), _for_facts(_gib_as_gb),
             ("memory.full.8b.bf16", "memory.inference.70b")),
    Mutation("unit stripped", "a number without its unit", ("tools.registry:ToolSpec.call",), _for_facts(_strip_unit),
             ("memory.full.8b.bf16",)),
    Mutation("bits taken for bytes", "400 Gb/s is 50 GB/s", ("tools.network.links:_gbit",),
             lambda read: lambda text, asked: read(text, asked) * 8, ("network.rate.ndr", "network.rate.100gbe")),
    Mutation("both directions of NVLink", "600 GB/s is the sum of two", ("knowledge.gpus:load_gpu",),
             _gpu(lambda gpu: replace(gpu, nvlink_bytes_per_s=(gpu.nvlink_bytes_per_s or 0) * 2)),
             ("network.nvlink.a100",)),
    Mutation("sparse rates", "2:4 sparsity does not train", ("knowledge.gpus:load_gpu",), _gpu(_rates(2)),
             ("time.70b.100b.8h100", "time.1b.20b.8a100")),
    Mutation("GeForce at full rate", "32-bit accumulation halves it", ("knowledge.gpus:load_gpu",),
             _gpu(_rates(2), "RTX-3090"), ("time.1b.10b.3090",)),
    Mutation("cards swapped", "an A100 answered for an H100", ("knowledge.gpus:load_gpu",),
             lambda load: lambda gpu_id: load("A100-SXM4-80GB" if gpu_id == "H100-SXM5" else gpu_id),
             ("time.70b.100b.8h100", "network.rate.ndr")),
    # Memory
    Mutation("optimizer states dropped", "the commonest wrong sum", ("tools.memory.states:moment_bytes",),
             lambda count: lambda *given: 0.0, ("memory.full.8b.mixed", "memory.full.70b.mixed")),
    Mutation("cache of all heads", "grouped key-value heads ignored", ("tools.memory.inference:cache_bytes",),
             lambda count: lambda job, shape: 4 * count(job, shape), ("memory.inference.8b.kv",)),
    Mutation("active parameters loaded only", "a mixture of experts stores all",
             ("tools.memory.inference:weight_bytes",),
             lambda count: lambda job, shape: 2.0 * job.arch.active_params, ("memory.inference.mixtral",)),
    Mutation("4 bits without scales and embeddings", "0.5 GB per billion is not the bill",
             ("tools.memory.recipe:QUANT_BYTES",), lambda table: dict.fromkeys(table, 0.27),
             ("memory.qlora.70b.weights", "memory.fit.8b.qlora.4090")),
    Mutation("adapters on one matrix", "rank counted once", ("tools.memory.states:adapter_params",),
             lambda count: lambda job, shape: count(job, shape) // 7, ("memory.lora.8b.adapters",)),
    # Time, money, network
    Mutation("2ND for 6ND", "the backward pass forgotten", ("tools.cost.estimate_run:hours_at_mfu",),
             lambda hours: lambda *given: (hours(*given)[0] / 3, *hours(*given)[1:]),
             ("time.70b.100b.8h100", "time.7b.1t.64h100")),
    Mutation("utilisation ignored", "peak taken for speed", ("tools.cost.estimate_run:hours_at_mfu",),
             lambda hours: lambda job, gpu, tokens, mfu, speed: hours(job, gpu, tokens, 1.0, speed),
             ("time.1b.20b.8a100",)),
    Mutation("prices a thousandfold", "a slip of the decimal point", ("tools.registry:ToolSpec.call",),
             _for_facts(_price_times_1000), ("cost.70b.at2usd",)),
    Mutation("idle hours free", "hidden costs dropped", ("tools.registry:parse_input",),
             lambda parse: lambda model, given: parse(model, {key: 0 if key == "idle_share" else value
                                                              for key, value in given.items()}),
             ("cost.idle.adds",)),
    Mutation("reduced bytes halved", "one way of the ring counted", ("tools.network.volumes:wire_bytes",),
             lambda count: lambda *given: tuple(part / 2 for part in count(*given)), ("network.bytes.7b.ddp",)),
    # Honesty
    Mutation("date of a price hidden", "a stale price looks fresh", ("tools.registry:ToolSpec.call",),
             _for_facts(_hide_price_dates), ("ask.run.1b",)),
    Mutation("sources dropped", "an answer without evidence", ("tools.registry:ToolSpec.call",), _result(_drop_sources),
             ("knowledge.infiniband",)),
    Mutation("range dropped", "a model's value as if exact", ("tools.registry:ToolSpec.call",),
             _for_facts(_collapse_range), ("memory.range.8b.lora",)),
    Mutation("nearest model answered for an unknown one", "a silent wrong match",
             ("tools.architectures:find_model",), _swallow_unknown, ("error.unknown.model",)),
    Mutation("bad input quietly replaced", "a negative length becomes the default", ("tools.registry:parse_input",),
             _any_arguments, ("error.negative", "error.unknown.argument")),
    Mutation("verdicts of claims flipped", "a wrong claim called right", ("tools.search_knowledge:search",),
             _flip_verdicts, ("claims.7b.80gb", "claims.70b.37h")),
    Mutation("sum of a claim off by ten", "the proof does not prove", ("tools.search_knowledge:claim_proof",),
             _ten_times, ("claims.70b.37h",)),
    Mutation("a number invented", "text with a figure that no tool gave", ("advisor.turn:check", "advisor.turn:render"),
             _invent, ("ask.gpu.70b.qlora",)),
    Mutation("tools not called", "an answer from nowhere", ("advisor.llm.planner.model:decide",),
             lambda decide: lambda *given: replace(decide(*given), calls=()),
             ("ask.gpu.70b.qlora", "ask.full.8b.h100")),
    Mutation("another method asked for", "full training answered as LoRA", ("advisor.llm.planner.model:decide",),
             lambda decide: lambda *given: _with(decide(*given), method="lora"), ("ask.full.8b.h100",)),
    Mutation("a tool crashes", "a crash must be a failure", ("tools.registry:ToolSpec.call",), _crash,
             ("memory.full.8b.bf16", "ask.gpu.70b.qlora")),
    # Graders
    Mutation("suffix-match grader", "149 passes for 49", ("evals.graders:GRADERS",), _suffix_match),
    Mutation("crash counted as a pass", "0 failures because everything crashed", ("evals.graders:grade",),
             _crash_is_fine),
    Mutation("no tolerance in values", "any value passes", ("evals.graders:_number_miss",),
             lambda miss: lambda number, fact: None),
    Mutation("units ignored by the grader", "hours for dollars", ("evals.graders:same_unit",),
             lambda same: lambda value, unit, wanted: value),
    Mutation("any argument accepted", "PCIe passes for SXM", ("evals.graders:_same",),
             lambda same: lambda value, wanted: True),
    Mutation("grounding not graded", "invented numbers pass", ("evals.graders:GRADERS",), _without("grounding")),
    Mutation("the product's check trusted blindly", "a number of another card passes", ("evals.graders:check",),
             lambda check: lambda text, evidence: Report()),
    Mutation("citations not graded", "no source, no date", ("evals.graders:GRADERS",), _without("citation")),
    Mutation("refusals not graded", "declining everything passes", ("evals.graders:GRADERS",), _without("refusal")),
    Mutation("calls not graded", "any tool will do", ("evals.graders:GRADERS",), _without("tools")),
)  # fmt: skip


def _with(plan: Any, **arguments: Any) -> Any:
    return replace(plan, calls=tuple(replace(call, arguments={**call.arguments, **arguments}) for call in plan.calls))
