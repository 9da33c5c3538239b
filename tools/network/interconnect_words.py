"""The answer of ``check_interconnect`` in facts, tables, chart and sentences."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tools.memory import estimate, verdict
from tools.network import constants as fit
from tools.network.alternatives import Options, Rung, timed
from tools.network.fabric import fabric_for
from tools.network.inputs import Cluster
from tools.network.questions import question_table
from tools.network.step import StepTime
from tools.result import Column, Fact, SourceRef, Step, Table, ToolResult, Warn
from tools.workload import Job

if TYPE_CHECKING:
    from tools.network.check_interconnect import CheckInterconnectResult

# Nine in ten published scaling runs lie between these: exposed communication this factor larger or smaller, and this
# share of compute that efficiencies scatter by whatever the links (evals/notes/network.md).
EXPOSED_FACTOR = 2.5
SCATTER = 0.06
SOURCES = (
    SourceRef(id="zero", title="ZeRO, communication volumes (Rajbhandari et al.)", as_of="2020-05-13",
              url="https://arxiv.org/abs/1910.02054"),
    SourceRef(id="megatron", title="Megatron-LM, tensor parallelism (Shoeybi et al.)", as_of="2020-03-13",
              url="https://arxiv.org/abs/1909.08053"),
    SourceRef(id="ml-engineering", title="Measured all-reduce bandwidth (stas00/ml-engineering, CC BY-SA 4.0)",
              as_of="2026-11-30", url="https://github.com/stas00/ml-engineering"),
    SourceRef(id="nccl-tests", title="Bus bandwidth and what is normal (NVIDIA/nccl-tests, NVIDIA/nccl issues)",
              as_of="2026-11-30", url="https://github.com/NVIDIA/nccl-tests"),
)  # fmt: skip


def write(
    result: CheckInterconnectResult,
    cluster: Cluster,
    step: StepTime,
    kept: float,
    rungs: list[Rung],
    best: Rung | None,
    keep: float,
    options: Options,
) -> None:
    """Fill the result, in place. ``kept`` and ``keep`` are shares (0 to 1) of an unlimited link's speed: what the job
    keeps and what was asked for. ``best`` is the cheapest rung that does, None where none of ``rungs`` does.
    """
    result.facts += _facts(cluster, step, kept, best, keep)
    result.steps += _steps(step)
    result.sources += SOURCES
    result.warnings += _warnings(cluster, rungs)
    result.tables += [_links(cluster, rungs), _bill(step)] if rungs else []
    if cluster.fabric.nodes(cluster.job.n_gpus) > 1:
        result.tables.append(question_table(cluster, best))
    if rungs:
        result.charts.append(scaling_chart(cluster, options))
    result.verdict = _verdict(result, cluster, best, kept, keep)
    _knobs(result, cluster, step, options)
    if result.infiniband_needed:
        result.next_steps.append(
            "Before signing, ask the provider for nccl-tests over your node count at large and small messages, ports a "
            "node and oversubscription, and whether the nodes stand in one block (fabric_questions lists all)."
        )
    name = cluster.job.arch.id.rpartition("/")[2]
    result.suggestions += [
        f"Best layout for {name} on {cluster.job.n_gpus} {cluster.gpu.id}?",
        f"What does {name} cost on {cluster.job.n_gpus} {cluster.gpu.id}?",
        "And over 100GbE?",
    ]


def efficiency_range(step: StepTime) -> tuple[float, float]:
    """(low, high) efficiency, 0 to 1, with the exposed communication larger and smaller by the calibrated factor."""
    busy = step.compute + step.bubble
    slack = SCATTER * step.compute
    return (
        step.compute / (busy + step.exposed * EXPOSED_FACTOR + slack),
        min(1.0, step.compute / (busy + step.exposed / EXPOSED_FACTOR - slack)),
    )


def _facts(cluster: Cluster, step: StepTime, kept: float, best: Rung | None, keep: float) -> list[Fact]:
    job, fabric = cluster.job, cluster.fabric
    about = [job.arch.id, cluster.gpu.id]
    low, high = efficiency_range(step)
    tokens = job.tokens_per_step / step.total
    spread = {"low": step.exposed / EXPOSED_FACTOR, "high": step.exposed * EXPOSED_FACTOR}
    moved = step.communication
    facts = [
        _fact("scaling_efficiency", step.efficiency, "", "scaling efficiency", about, low=low, high=high,
              basis="compute / (compute + pipeline bubble + exposed communication)"),
        _fact("efficiency_percent", 100 * step.efficiency, "%", "scaling efficiency", about, low=100 * low,
              high=100 * high, basis="scaling_efficiency x 100"),
        _fact("speed_kept", 100 * kept, "%", "speed kept against an unlimited link", about,
              basis="step over an unlimited link / step over this one"),
        _fact("exposed_communication", step.exposed, "s", "communication that nothing hides, a step", about,
              basis="what does not fit under compute, plus waiting and fixed costs", **spread),
        _fact("communication_time", moved.total_seconds, "s", "all communication of a step", about,
              basis="sum over collectives of latency + bytes / achieved rate + pipelining"),
        _fact("compute_time", step.compute, "s", "compute of a step", about, basis="FLOPs and bytes at achieved rates"),
        _fact("step_time", step.total, "s", "a whole step", about, basis="compute + bubble + exposed communication"),
        _fact("tokens_per_second", tokens, "tokens/s", "speed of the whole job", about,
              basis=f"{job.tokens_per_step} tokens a step / step_time"),
        _fact("intra_bytes", moved.intra_bytes, "B", "sent a GPU and step inside the node", about, kind="exact",
              basis="ring volumes"),
        _fact("inter_bytes", moved.inter_bytes, "B", "sent a GPU and step between nodes", about, kind="exact",
              basis="ring volumes through every GPU's share of the ports"),
        _fact("intra_rate", fabric.intra_bytes_per_s, "B/s", f"{fabric.intra_name}, a GPU, one direction", about,
              kind="quoted", basis="nominal"),
        _fact("inter_rate", fabric.inter_bytes_per_s, "B/s", f"{fabric.inter_name}, a GPU, one direction", about,
              kind="quoted", basis="nominal, the GPU's share of its node's ports"),
        _fact("keep", 100 * keep, "%", "speed to keep", about, kind="exact", basis="argument keep"),
    ]  # fmt: skip
    if step.bubble:
        facts.append(_fact("bubble", step.bubble, "s", "pipeline bubble of a step", about, basis="(pp - 1) / passes"))
    if best is not None:
        facts += [
            _fact("cheapest_kept", 100 * best.kept, "%", f"speed kept over {best.name}", about, basis="as speed_kept"),
            _fact("cheapest_efficiency", 100 * best.step.efficiency, "%", f"scaling efficiency over {best.name}",
                  about, basis="as scaling_efficiency"),
            _fact("cheapest_tokens_per_second", job.tokens_per_step / best.step.total, "tokens/s",
                  f"speed over {best.name}", about, basis="as tokens_per_second"),
        ]  # fmt: skip
    return facts


def _fact(name: str, value: float, unit: Any, label: str, about: list[str], **more: Any) -> Fact:
    return Fact(id=name, name=name, value=value, unit=unit, label=label, about=about, **more)


def _steps(step: StepTime) -> list[Step]:
    rows = [
        Step(symbol=f"exposed {axis}", expression=_WHY[axis], value=seconds, unit="s")
        for axis, seconds in step.communication.by_axis.items()
        if seconds
    ]
    expression = f"{step.compute:.4g} / ({step.compute:.4g} + {step.bubble:.4g} + {step.exposed:.4g})"
    return [*rows, Step(symbol="scaling_efficiency", expression=expression, value=step.efficiency)]


_WHY = {
    "data": f"weights and gradients beyond {fit.OVERLAP:.0%} of the pass they run beside",
    "tensor": "all-gather and reduce-scatter between layers that wait for them",
    "context": "keys and values beyond what attention hides",
    "expert": "dispatch and combine of routed tokens",
    "pipeline": "hidden states between stages",
    "contention": "compute slowed by traffic beside it",
    "waiting": f"slowest of many nodes: {fit.STRAGGLER_PER_DOUBLING:.1%} of compute a doubling",
    "fixed": "host work, optimizer launches, loss synchronisation",
}


def _warnings(cluster: Cluster, rungs: list[Rung]) -> list[Warn]:
    job, gpu, fabric = cluster.job, cluster.gpu, cluster.fabric
    found = []
    if job.tp > fabric.gpus_per_node:
        found.append(
            Warn(code="tensor_parallel_across_nodes",
                 text=f"Tensor parallel {job.tp} leaves the node of {fabric.gpus_per_node}: every layer waits for the "
                 "network. Keep it inside and spread pipeline or data parallel across nodes.")
        )  # fmt: skip
    if job.task == "train" and verdict(estimate(job), gpu) == "does_not_fit":
        found.append(
            Warn(
                code="does_not_fit",
                text=f"As laid out this job does not fit {gpu.id}; the times are of a job that would.",
            )
        )
    if fabric.intra_kind in fit.RECALLED or fabric.inter_kind in fit.RECALLED:
        found.append(
            Warn(code="recalled_rate",
                 text="No measured collective of this kind of link is held; its achieved share follows similar ones.")
        )  # fmt: skip
    if not rungs:
        found.append(Warn(code="one_gpu", text="One GPU exchanges nothing: no link limits it."))
    return found


def _bill(step: StepTime) -> Table:
    rows: list[list[float | int | str | bool | None]] = [
        [use.what, use.axis, use.op.replace("_", "-"), use.members, use.intra_bytes, use.inter_bytes, use.seconds]
        for use in step.communication.uses
    ]
    return Table(
        id="traffic",
        title="What one GPU sends in a step",
        columns=[
            Column(key="what", label="what"), Column(key="axis", label="parallelism"), Column(key="op", label="call"),
            Column(key="members", label="among", unit="GPUs"), Column(key="intra", label="inside the node", unit="B"),
            Column(key="inter", label="between nodes", unit="B"), Column(key="seconds", label="time", unit="s"),
        ],
        rows=rows,
    )  # fmt: skip


def _links(cluster: Cluster, rungs: list[Rung]) -> Table:
    inside = cluster.fabric.nodes(cluster.job.n_gpus) == 1
    tokens = cluster.job.tokens_per_step
    rows: list[list[float | int | str | bool | None]] = []
    for rung in rungs:
        rate = rung.fabric.intra_bytes_per_s if inside else rung.fabric.inter_bytes_per_s
        rows.append(
            [rung.name, rate, rung.step.exposed, 100 * rung.step.efficiency, 100 * rung.kept, tokens / rung.step.total]
        )
    return Table(
        id="links",
        title="The same job over other links",
        columns=[
            Column(key="link", label="link"), Column(key="rate", label="a GPU, one way", unit="B/s"),
            Column(key="exposed", label="exposed a step", unit="s"),
            Column(key="efficiency", label="scaling efficiency", unit="%"),
            Column(key="kept", label="of an unlimited link's speed", unit="%"),
            Column(key="speed", label="speed", unit="tokens/s"),
        ],
        rows=rows,
    )  # fmt: skip


def _verdict(result: CheckInterconnectResult, cluster: Cluster, best: Rung | None, kept: float, keep: float) -> str:
    job, fabric = cluster.job, cluster.fabric
    if job.n_gpus == 1:
        return "One GPU exchanges nothing with anyone: no interconnect is needed."
    inside = fabric.nodes(job.n_gpus) == 1
    link = fabric.intra_name if inside else fabric.inter_name
    state = "suffices" if kept >= keep else "does not suffice"
    keeps = f"{link} {state}: it keeps [[speed_kept]] of the speed that an unlimited link would give"
    cost = "[[exposed_communication]] of each [[step_time]] step is waiting for communication"
    efficiency = "scaling efficiency [[efficiency_percent]] ([[efficiency_percent|range]])"
    if inside:
        question = "No network between nodes is in play. " if fabric.intra_kind != "none" else ""
        return f"{question}{keeps}; {cost}, {efficiency}."
    if best is None:
        need = "No usual network keeps [[keep]]: this layout is latency-bound or needs larger batches"
    elif result.infiniband_needed:
        need = f"Yes, this job needs an RDMA fabric: the cheapest link that keeps [[keep]] is {best.name}"
        need += "" if "InfiniBand" in best.name else " (InfiniBand of that rate does as well)"
    else:
        need = f"No, this job does not need InfiniBand: {best.name} already keeps [[cheapest_kept]]"
    named = all(each.name != "inter_link" for each in result.assumptions)
    if named and kept < keep:  # the asker's own link first
        need = need.removeprefix("Yes, ").removeprefix("No, ")
        return f"{keeps}; {cost}, {efficiency}. {need[0].upper()}{need[1:]}."
    return f"{need}. {keeps}; {cost}, {efficiency}."


def _knobs(result: ToolResult, cluster: Cluster, step: StepTime, options: Options) -> None:
    """The two changes of the job itself that gain most speed over these links, each with its effect."""
    job, gpu, fabric = cluster.job, cluster.gpu, cluster.fabric
    changes: list[tuple[str, Job]] = []
    if job.sharding in ("zero3", "fsdp") and fabric.nodes(job.n_gpus) > 1 and not job.is_adapter:
        changes.append(("Shard inside the node only (sharding=hsdp)", replace(job, sharding="hsdp")))
    if job.is_adapter and job.sharding != "ddp":
        changes.append(("Replicate the frozen base (sharding=ddp)", replace(job, sharding="ddp")))
    if job.task == "train":
        more = job.grad_accum * 4
        changes.append((f"Accumulate {more} passes a step (grad_accum={more})", replace(job, grad_accum=more)))
        larger = job.micro_batch * 2
        changes.append((f"Double the micro-batch (micro_batch={larger})", replace(job, micro_batch=larger)))
    if job.tp > fabric.gpus_per_node and job.n_gpus % fabric.gpus_per_node == 0:
        inner = fabric.gpus_per_node
        stages = job.tp * job.pp // inner
        moved = replace(job, tp=inner, pp=stages, grad_accum=max(job.grad_accum, 4 * stages))
        changes.append((f"Keep tensor parallel inside the node (tp={inner}, pp={stages})", moved))
    gains = []
    fits = verdict(estimate(job), gpu) != "does_not_fit"
    now = job.tokens_per_step / step.total
    for words, changed in changes:
        if fits and verdict(estimate(changed), gpu) == "does_not_fit":
            continue
        then = timed(changed, gpu, fabric, options)
        speed = changed.tokens_per_step / then.total
        if speed > 1.03 * now:
            gains.append((speed, words, then))
    gains.sort(key=lambda gain: -gain[0])
    for place, (speed, words, then) in enumerate(gains[:2], 1):
        result.facts += [
            _fact(f"knob_{place}_tokens_per_second", speed, "tokens/s", words, [job.arch.id],
                  basis="as tokens_per_second"),
            _fact(f"knob_{place}_efficiency", 100 * then.efficiency, "%", words, [job.arch.id],
                  basis="as scaling_efficiency"),
        ]  # fmt: skip
        result.next_steps.append(
            f"{words}: [[knob_{place}_tokens_per_second]] instead of [[tokens_per_second]], "
            f"efficiency [[knob_{place}_efficiency]]."
        )


def scaling_chart(cluster: Cluster, options: Options) -> dict[str, Any]:
    """Scaling efficiency by GPU count and link, the same batch a GPU, as a Vega-Lite chart."""
    job, gpu, fabric = cluster.job, cluster.gpu, cluster.fabric
    node = fabric.gpus_per_node
    counts = [node * 2**power for power in range(8) if node * 2**power <= max(8 * job.n_gpus, 16 * node)]
    shards = job.tp * job.pp * job.cp
    values = []
    for name in (None, "25GbE", "100GbE", "HDR", "NDR"):
        for count in counts:
            if count % shards:
                continue
            link = fabric
            if name is not None:
                found = fabric_for(gpu, count, min(node, count), inter_link=name)[0]
                link = replace(fabric, inter_kind=found.inter_kind, inter_bytes_per_s=found.inter_bytes_per_s)
            elif fabric.nodes(job.n_gpus) == 1 and count > node:
                continue
            step = timed(replace(job, n_gpus=count), gpu, link, options)
            label = fabric.inter_name if name is None else name
            values.append({"GPUs": count, "link": label, "efficiency": round(step.efficiency, 4)})
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": f"Scaling efficiency: {job.arch.id}, {job.method}, {job.sharding}, {gpu.id}",
        "data": {"values": values},
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": "GPUs", "type": "quantitative", "scale": {"type": "log", "base": 2}, "title": "GPUs"},
            "y": {"field": "efficiency", "type": "quantitative", "axis": {"format": "%"}, "scale": {"domain": [0, 1]}},
            "color": {"field": "link", "type": "nominal", "title": "between nodes"},
            "tooltip": [{"field": "GPUs"}, {"field": "link"}, {"field": "efficiency", "format": ".1%"}],
        },
    }
