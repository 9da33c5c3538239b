"""The answer of ``plan_parallelism`` in facts, tables, chart and sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tools.memory import verdict
from tools.network.inputs import Cluster
from tools.network.search import Layout, Outcome
from tools.result import Column, Fact, SourceRef, Step, Table, ToolResult, Warn

if TYPE_CHECKING:
    from tools.network.plan_parallelism import PlanParallelismResult

SOURCES = (
    SourceRef(id="megatron-2", title="Efficient large-scale training on GPU clusters (Narayanan et al.)",
              as_of="2021-08-23", url="https://arxiv.org/abs/2104.04473"),
    SourceRef(id="zero", title="ZeRO (Rajbhandari et al.)", as_of="2020-05-13", url="https://arxiv.org/abs/1910.02054"),
    SourceRef(id="sequence-parallel", title="Reducing activation recomputation (Korthikanti et al.)",
              as_of="2022-05-10", url="https://arxiv.org/abs/2205.05198"),
)  # fmt: skip
TIE = 0.03  # layouts this close in modelled time are a tie: published runs scatter more


def write(
    result: PlanParallelismResult,
    cluster: Cluster,
    found: Outcome,
    default: Layout,
    asked: Layout | None,
    enough: Outcome | None,
    top: int,
) -> None:
    """Fill the result, in place. ``found`` holds the layouts that fit, fastest first, of which ``top`` are shown;
    ``asked`` is the asker's own layout and ``enough`` the outcome on more GPUs where nothing fits, None where there is
    none.
    """
    result.sources += SOURCES
    result.facts += [
        _fact("layouts_tried", found.tried, "", "layouts tried", kind="exact", basis="all that divide model and batch"),
        _fact("layouts_fitting", found.fitting, "", "layouts that fit", basis="memory model, at most 90 % of the card"),
    ]
    if not found.layouts:
        _nothing_fits(result, cluster, found, enough)
        return
    fastest = found.layouts[0]
    best = simplest(found.layouts)
    _add(result, "best", best)
    _add(result, "default", default)
    result.tables.append(_table(cluster, found.layouts[:top], default, asked))
    result.charts.append(_chart(cluster, found.layouts[:top], default))
    result.steps += _steps(best)
    lead = "Fastest of" if best is fastest else "Best of"
    result.verdict = (
        f"{lead} [[layouts_fitting]] layouts that fit: {_spelled(best)}. A step takes [[best_step_time]] "
        f"([[best_tokens_per_second]]), with [[best_bubble]] of bubble, [[best_exposed]] of exposed communication and "
        "[[best_memory]] per GPU."
    )
    result.next_steps.append(_why_default(result, cluster, best, default))
    if fastest is not best:
        _add(result, "fastest", fastest)
        result.next_steps.append(
            f"Modelled a little faster, within the model's error and with more to set up: {_spelled(fastest)} "
            "([[fastest_tokens_per_second]])."
        )
    if asked is not None:
        _add(result, "asked", asked)
        result.next_steps.append(_judge_asked(cluster, best, asked))
    if any(layout.job.tp > cluster.fabric.gpus_per_node for layout in found.layouts[:top]):
        result.warnings.append(Warn(code="tensor_parallel_across_nodes", text="Tensor parallel leaves the node here."))
    name = cluster.job.arch.id.rpartition("/")[2]
    result.suggestions += [
        f"Give me the launch files for {name} on {cluster.job.n_gpus} {cluster.gpu.id}",
        f"What would {name} cost on {cluster.job.n_gpus} {cluster.gpu.id}?",
        "Is InfiniBand needed for this layout?",
    ]


def _fact(name: str, value: float, unit: Any, label: str, **more: Any) -> Fact:
    return Fact(id=name, name=name, value=value, unit=unit, label=label, **more)


def _add(result: ToolResult, prefix: str, layout: Layout) -> None:
    step, words = layout.step, layout.words
    result.facts += [
        _fact(f"{prefix}_step_time", layout.seconds, "s", f"step: {words}", basis="compute + bubble + exposed"),
        _fact(f"{prefix}_compute", step.compute, "s", f"compute: {words}", basis="recomputation included"),
        _fact(f"{prefix}_bubble", step.bubble, "s", f"pipeline bubble: {words}", basis="(pp - 1) / (passes x stages)"),
        _fact(f"{prefix}_exposed", step.exposed, "s", f"exposed communication: {words}", basis="as check_interconnect"),
        _fact(f"{prefix}_memory", layout.bill.peak_bytes, "B", f"memory per GPU: {words}", low=layout.bill.low_bytes,
              high=layout.bill.high_bytes, basis="memory model"),
        _fact(f"{prefix}_tokens_per_second", layout.tokens_per_second, "tokens/s", f"speed: {words}",
              basis="global batch / step"),
    ]  # fmt: skip


def _spelled(layout: Layout) -> str:
    job = layout.job
    recompute = {"none": "no recomputation", "selective": "selective recomputation", "full": "full recomputation"}
    passes = f" x {job.grad_accum} passes" if job.grad_accum > 1 else ""
    return f"{layout.words}, micro-batch {job.micro_batch}{passes}, {recompute[job.checkpointing]}"


def _why_default(result: ToolResult, cluster: Cluster, best: Layout, default: Layout) -> str:
    """Why FSDP over everything is not the answer, or that it is."""
    ours, theirs = best.job, default.job
    name = "DDP" if theirs.sharding == "ddp" else "FSDP over all GPUs with full recomputation"
    if verdict(default.bill, cluster.gpu) == "does_not_fit":
        return f"The common default, {name}, does not fit: [[default_memory]] per GPU."
    if verdict(default.bill, cluster.gpu) == "borderline":
        return f"The common default, {name}, needs [[default_memory]] per GPU: too close to the limit to count on."
    loss = 100 * (best.tokens_per_second / default.tokens_per_second - 1)
    result.facts.append(_fact("default_slower", loss, "%", "the best layout is faster than the default by"))
    if loss < 100 * TIE:
        return f"The common default, {name}, is as good here: [[default_tokens_per_second]]."
    reasons = []
    if theirs.checkpointing == "full" and ours.checkpointing != "full":
        reasons.append("it recomputes the forward pass ([[default_compute]] of compute instead of [[best_compute]])")
    if default.step.exposed > 1.2 * best.step.exposed:
        reasons.append("it gathers every weight each pass ([[default_exposed]] exposed instead of [[best_exposed]])")
    if theirs.tokens_per_step > ours.tokens_per_step:
        reasons.append("the batch has fewer sequences than GPUs")
    why = " and ".join(reasons) or "its micro-batches are smaller"
    return f"It is [[default_slower]] faster than the common default, {name} ([[default_tokens_per_second]]): {why}."


def _judge_asked(cluster: Cluster, best: Layout, asked: Layout) -> str:
    if verdict(asked.bill, cluster.gpu) == "does_not_fit":
        return f"The layout asked for ({asked.words}) does not fit: [[asked_memory]] per GPU."
    if asked.seconds < (1 + TIE) * best.seconds:
        return f"The layout asked for ({asked.words}) is as good: [[asked_tokens_per_second]]."
    return f"The layout asked for ({asked.words}): [[asked_tokens_per_second]], [[asked_exposed]] exposed a step."


def simplest(layouts: tuple[Layout, ...]) -> Layout:
    """The layout with fewest axes among those that tie with the fastest."""
    near = [layout for layout in layouts if layout.seconds <= (1 + TIE) * layouts[0].seconds]
    return min(near, key=lambda layout: (_axes(layout), layout.seconds))


def _axes(layout: Layout) -> int:
    job = layout.job
    return sum(size > 1 for size in (job.tp, job.pp, job.cp, job.ep)) + (job.sharding == "hsdp")


def _nothing_fits(result: ToolResult, cluster: Cluster, found: Outcome, enough: Outcome | None) -> None:
    job, gpu = cluster.job, cluster.gpu
    result.facts.append(
        _fact("usable_memory", float(gpu.usable_bytes), "B", f"usable on {gpu.id}", kind="quoted", as_of=gpu.as_of)
    )
    if found.smallest is None:
        result.verdict = f"No layout of {job.n_gpus} GPUs divides this batch: it has fewer sequences than replicas."
        result.next_steps.append("Raise global_batch_tokens, or use fewer GPUs.")
        return
    _add(result, "smallest", found.smallest)
    result.verdict = (
        f"No layout of {job.n_gpus} x {gpu.id} fits: the leanest, {_spelled(found.smallest)}, needs "
        "[[smallest_memory]] per GPU, and a card has [[usable_memory]] usable."
    )
    if enough is not None:
        best = enough.layouts[0]
        _add(result, "enough", best)
        result.facts.append(_fact("enough_gpus", best.job.n_gpus, "GPUs", "first doubling that fits", basis="search"))
        result.next_steps.append(
            f"[[enough_gpus]] do: {_spelled(best)}, [[enough_memory]] per GPU, [[enough_tokens_per_second]]."
        )
    if not job.is_adapter:
        result.next_steps.append("Or train adapters (method=lora): the base then has no gradients or optimizer states.")
    result.suggestions += ["And with LoRA?", "And with 8-bit AdamW?", "And on B200?"]


def _table(cluster: Cluster, layouts: tuple[Layout, ...], default: Layout, asked: Layout | None) -> Table:
    rows = [_row(str(place), layout, cluster) for place, layout in enumerate(layouts, 1)]
    rows.append(_row("common default", default, cluster))
    if asked is not None:
        rows.append(_row("asked", asked, cluster))
    return Table(
        id="layouts",
        title="Layouts by time of a step, at the same global batch",
        columns=[
            Column(key="rank", label="rank"), Column(key="layout", label="layout"),
            Column(key="micro", label="micro-batch"), Column(key="passes", label="passes"),
            Column(key="recompute", label="recomputation"), Column(key="step", label="step", unit="s"),
            Column(key="compute", label="compute", unit="s"), Column(key="bubble", label="bubble", unit="s"),
            Column(key="exposed", label="exposed communication", unit="s"),
            Column(key="memory", label="memory per GPU", unit="B"), Column(key="speed", label="speed", unit="tokens/s"),
            Column(key="fits", label="fits"),
        ],
        rows=rows,
    )  # fmt: skip


def _row(rank: str, layout: Layout, cluster: Cluster) -> list[float | int | str | bool | None]:
    job, step = layout.job, layout.step
    fit = verdict(layout.bill, cluster.gpu).replace("_", " ")
    return [rank, layout.words, job.micro_batch, job.grad_accum, job.checkpointing, layout.seconds, step.compute,
            step.bubble, step.exposed, layout.bill.peak_bytes, layout.tokens_per_second, fit]  # fmt: skip


def _steps(best: Layout) -> list[Step]:
    step = best.step
    parts = f"{step.compute:.4g} + {step.bubble:.4g} + {step.exposed:.4g}"
    exposed = [
        Step(symbol=f"exposed {axis}", expression="seconds of the best layout's step", value=seconds, unit="s")
        for axis, seconds in step.communication.by_axis.items()
        if seconds
    ]
    return [
        *exposed,
        Step(symbol="step", expression=f"compute + bubble + exposed = {parts}", value=best.seconds, unit="s"),
    ]


def _chart(cluster: Cluster, layouts: tuple[Layout, ...], default: Layout) -> dict[str, Any]:
    values = []
    for place, layout in enumerate((*layouts, default)):
        name = f"{place + 1}. {layout.words}" if place < len(layouts) else "common default"
        parts = {"compute": layout.step.compute, "bubble": layout.step.bubble, "exposed": layout.step.exposed}
        values += [{"layout": name, "part": part, "seconds": round(time, 4)} for part, time in parts.items()]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": f"Where a step goes: {cluster.job.arch.id} on {cluster.job.n_gpus} x {cluster.gpu.id}",
        "data": {"values": values},
        "mark": "bar",
        "encoding": {
            "y": {"field": "layout", "type": "nominal", "sort": None, "title": None},
            "x": {"field": "seconds", "type": "quantitative", "title": "seconds a step"},
            "color": {"field": "part", "type": "nominal", "sort": ["compute", "bubble", "exposed"], "title": None},
            "tooltip": [{"field": "layout"}, {"field": "part"}, {"field": "seconds"}],
        },
    }
