"""``plan_parallelism``: how to lay a job out on n GPUs, and why the common default loses where it does."""

from __future__ import annotations

from dataclasses import replace

from pydantic import BaseModel, Field, field_validator

from tools.errors import BadValue
from tools.memory import estimate
from tools.network.alternatives import Options
from tools.network.inputs import Cluster, ClusterInput, read_cluster
from tools.network.plan_words import simplest, write
from tools.network.search import Layout, Outcome, common_default, search, timed_layout
from tools.registry import tool
from tools.result import Assumption, ToolResult
from tools.units import parse_count
from tools.usual_batch import usual_batch_tokens
from tools.workload import Job

MAX_GPUS = 65_536
_OWN = frozenset({"global_batch_tokens", "top"})


class PlanParallelismInput(ClusterInput):
    """A workload, its machines and the batch that must stay the same."""

    global_batch_tokens: float | str | None = Field(
        default=None,
        description="Tokens a step, all GPUs together, e.g. 4M; default 4M for pretraining, 0.5M for fine-tuning.",
        json_schema_extra={"unit": "tokens"},
    )
    top: int = Field(default=8, ge=1, le=50, description="Layouts to list.")

    @field_validator("global_batch_tokens", mode="after")
    @classmethod
    def _count(cls, value: float | str | None) -> float | None:
        return parse_count(value, "global_batch_tokens") if isinstance(value, str) else value


class PlannedLayout(BaseModel):
    """One layout; times are of one step."""

    tp: int
    pp: int
    cp: int
    ep: int
    dp: int
    sharding: str
    micro_batch: int
    grad_accum: int
    activation_checkpointing: str
    step_seconds: float = Field(json_schema_extra={"unit": "s"})
    compute_seconds: float = Field(json_schema_extra={"unit": "s"})
    bubble_seconds: float = Field(json_schema_extra={"unit": "s"})
    exposed_seconds: float = Field(json_schema_extra={"unit": "s"})
    peak_per_gpu_bytes: float = Field(json_schema_extra={"unit": "B"})
    tokens_per_second: float = Field(json_schema_extra={"unit": "tokens/s"})


class PlanParallelismResult(ToolResult):
    """Layouts that fit, fastest first."""

    layouts: list[PlannedLayout] = Field(default_factory=list)
    recommended: PlannedLayout | None = Field(
        default=None, description="The simplest of the layouts that tie with the fastest within the model's error."
    )
    layouts_tried: int = 0
    layouts_fitting: int = 0
    global_batch_tokens: float = Field(default=0, json_schema_extra={"unit": "tokens"})


@tool(
    "plan_parallelism",
    examples=[
        {"model": "llama-3.1-70b", "method": "full", "gpu": "H100", "n_gpus": 64, "seq_len": 4096},
        {"model": "deepseek-v3", "method": "pretrain", "gpu": "H100", "n_gpus": 2048, "global_batch_tokens": "16M"},
    ],
)
def plan_parallelism(given: PlanParallelismInput) -> PlanParallelismResult:
    """All layouts of n GPUs that fit (TP, PP, CP, EP, ZeRO or FSDP), ranked by the modelled time of one step.

    Step = compute x (1 + (pp - 1) / (micro-batches x virtual stages)) + exposed communication, at one global batch;
    memory of each by the memory model. Not modelled: kernels' loss at small shapes, uneven experts, failures. Raises
    BadValue above 65,536 GPUs and for a global batch below one sequence.
    """
    if (given.n_gpus or 1) > MAX_GPUS:
        raise BadValue(
            "out_of_range", f"Up to {MAX_GPUS:,} GPUs can be laid out.", field="n_gpus", candidates=[str(MAX_GPUS)]
        )
    cluster = read_cluster(given, extra=_OWN, choose=False)
    options = Options(cluster.software)
    samples, notes = _samples(given, cluster)
    job = replace(cluster.job, tp=1, pp=1, cp=1, ep=1)
    found = search(job, cluster.gpu, cluster.fabric, samples, options)
    default = common_default(job, cluster.gpu, cluster.fabric, samples, options)
    result = PlanParallelismResult(
        assumptions=[
            *(note for note in cluster.assumptions if note.name not in _SEARCHED),
            *_stack(given, cluster),
            *notes,
        ],
        layouts=[_planned(layout) for layout in found.layouts[: given.top]],
        recommended=_planned(simplest(found.layouts)) if found.layouts else None,
        layouts_tried=found.tried,
        layouts_fitting=found.fitting,
        global_batch_tokens=samples * job.seq_len,
    )
    asked = _asked(given, cluster, samples, options)
    enough = None if found.layouts else _enough(job, cluster, samples, options)
    write(result, cluster, found, default, asked, enough, given.top)
    return result


_SEARCHED = ("micro_batch", "activation_checkpointing", "sharding", "grad_accum", "framework")


def _stack(given: PlanParallelismInput, cluster: Cluster) -> list[Assumption]:
    """Whose software the times and bytes are of."""
    found = []
    if given.framework is None:
        why = "Hugging Face's conventions where layers stay whole, Megatron's where they are split"
        found.append(Assumption(name="framework", value="by layout", why=why, argument="framework"))
    if given.software is None:
        why = "whose stack: sets the achieved fraction, the same for every layout"
        found.append(Assumption(name="software", value=cluster.software, why=why, argument="software"))
    return found


def _samples(given: PlanParallelismInput, cluster: Cluster) -> tuple[int, list[Assumption]]:
    """Sequences a step; an unstated batch is the usual one, rounded up to whole sequences a GPU."""
    job = cluster.job
    if given.global_batch_tokens is not None:
        samples = round(float(given.global_batch_tokens) / job.seq_len)
        if samples < 1:
            raise BadValue(
                "batch_below_one_sequence",
                f"A batch of {given.global_batch_tokens:g} tokens holds no sequence of {job.seq_len}.",
                field="global_batch_tokens",
                candidates=[str(job.seq_len)],
            )
        return _dividing(samples, job, float(given.global_batch_tokens))
    if given.grad_accum is not None:
        samples = job.micro_batch * job.grad_accum * job.dp
        why = "micro_batch x grad_accum x data-parallel replicas as given"
    else:
        samples = -(-max(usual_batch_tokens(job) // job.seq_len, job.n_gpus) // job.n_gpus) * job.n_gpus
        why = "usual for the method, in whole sequences a GPU"
    note = Assumption(
        name="global_batch_tokens", value=samples * job.seq_len, unit="tokens", why=why, argument="global_batch_tokens"
    )
    return samples, [note]


def _dividing(samples: int, job: Job, asked: float) -> tuple[int, list[Assumption]]:
    """The batch that GPUs can share evenly nearest to the one asked for: a multiple of their count, or a divisor."""
    n = job.n_gpus
    if samples >= n:
        even = max(n, round(samples / n) * n)
    else:
        even = next(size for size in range(samples, 0, -1) if n % size == 0)
    if even * job.seq_len == asked:
        return even, []
    why = f"the batch nearest to {asked:,.0f} tokens that {n} GPUs share evenly in sequences of {job.seq_len}"
    note = Assumption(
        name="global_batch_tokens", value=even * job.seq_len, unit="tokens", why=why, argument="global_batch_tokens"
    )
    return even, [note]


def _asked(given: PlanParallelismInput, cluster: Cluster, samples: int, options: Options) -> Layout | None:
    """The layout that was named, timed at the same batch, where it divides it."""
    job = cluster.job
    if given.tp * given.pp * given.cp * given.ep == 1 and given.sharding is None:
        return None
    each = samples // job.dp
    micro = job.micro_batch if each and each % job.micro_batch == 0 else 1
    laid = replace(job, micro_batch=micro, grad_accum=max(1, each // micro))
    return timed_layout(laid, estimate(laid), cluster.gpu, cluster.fabric, options)


def _enough(job: Job, cluster: Cluster, samples: int, options: Options) -> Outcome | None:
    """The search at the first doubling of GPUs at which something fits."""
    count = job.n_gpus
    while count < min(64 * job.n_gpus, MAX_GPUS):
        count *= 2
        more = replace(job, n_gpus=count)
        rounded = -(-max(samples, count) // count) * count
        fabric = replace(cluster.fabric, gpus_per_node=min(count, max(cluster.fabric.gpus_per_node, 8)))
        found = search(more, cluster.gpu, fabric, rounded, options)
        if found.layouts:
            return found
    return None


def _planned(layout: Layout) -> PlannedLayout:
    job, step = layout.job, layout.step
    return PlannedLayout(
        tp=job.tp, pp=job.pp, cp=job.cp, ep=job.ep, dp=job.dp, sharding=job.sharding, micro_batch=job.micro_batch,
        grad_accum=job.grad_accum, activation_checkpointing=job.checkpointing, step_seconds=layout.seconds,
        compute_seconds=step.compute, bubble_seconds=step.bubble, exposed_seconds=step.exposed,
        peak_per_gpu_bytes=layout.bill.peak_bytes, tokens_per_second=layout.tokens_per_second,
    )  # fmt: skip
