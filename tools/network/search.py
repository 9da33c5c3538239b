"""All layouts of a job on n GPUs that fit, ranked by the modelled step: tensor, pipeline, context, expert, ZeRO.

For every split n = tensor x pipeline x context x data that divides the model and the global batch, every ZeRO stage
that suits it, and every micro-batch and recomputation that the memory model lets fit, one step is timed by the same
formulas as everywhere else. The global batch is the same for all, so their times compare. What cannot pay is left
out: tensor parallel beyond a node, micro-batches above 8 samples, pipelines combined with ZeRO-2 and -3 (gathers of
every pass), and both recomputation and a smaller micro-batch where neither is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from knowledge.types import Gpu
from tools.memory import MemoryBill, estimate, verdict
from tools.network.alternatives import Options, timed
from tools.network.fabric import Fabric
from tools.network.step import StepTime
from tools.workload import Checkpointing, Job, Sharding, laid_out

MICRO_BATCHES = (8, 4, 2, 1)
LEVELS: tuple[Checkpointing, ...] = ("none", "selective", "full")
MIN_CONTEXT = 1024  # tokens a context rank keeps at least


@dataclass(frozen=True, slots=True)
class Layout:
    """One layout, timed: the job as laid out, its memory and its step."""

    job: Job
    bill: MemoryBill
    step: StepTime

    @property
    def seconds(self) -> float:
        """Seconds of the whole modelled step: compute, bubble, exposed communication and offload."""
        return self.step.total

    @property
    def tokens_per_second(self) -> float:
        """Tokens per second of all GPUs together."""
        return self.job.tokens_per_step / self.seconds

    @property
    def words(self) -> str:
        """The layout in one line, e.g. "TP 2 x DP 4, ZeRO-1"; degrees of 1 are left out."""
        job = self.job
        sizes = (("TP", job.tp), ("PP", job.pp), ("CP", job.cp), ("EP", job.ep), ("DP", job.dp))
        parts = [f"{name} {size}" for name, size in sizes if size > 1]
        return " x ".join(parts or ["one GPU"]) + (f", {SHARDING_WORDS[job.sharding]}" if job.dp * job.cp > 1 else "")


SHARDING_WORDS: dict[Sharding, str] = {
    "none": "replicated", "ddp": "DDP", "zero1": "ZeRO-1", "zero2": "ZeRO-2", "zero3": "ZeRO-3", "fsdp": "FSDP",
    "hsdp": "hybrid sharding (HSDP)",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the search found: the best of each layout, fastest first; ``smallest`` needs least memory."""

    layouts: tuple[Layout, ...]
    tried: int
    fitting: int
    smallest: Layout | None


def search(job: Job, gpu: Gpu, fabric: Fabric, samples: int, options: Options | None = None) -> Outcome:
    """Every layout of ``job.n_gpus`` for a global batch of ``samples`` sequences; no layouts, and ``smallest``, where
    none fits. Within 2 % of the fastest, the one with fewest kinds of parallelism leads.
    """
    options = options or Options("user")
    best: dict[tuple[int, int, int, int, str], Layout] = {}
    tried = fitting = 0
    smallest: tuple[float, Job, MemoryBill] | None = None
    for shape in _splits(job, fabric, samples):
        for sharding in _shardings(shape, fabric):
            candidate = laid_out(shape, sharding=sharding)
            for laid in _passes(candidate, samples):
                tried += 1
                bill = estimate(laid)
                if smallest is None or bill.peak_bytes < smallest[0]:
                    smallest = (bill.peak_bytes, laid, bill)
                if verdict(bill, gpu) != "fits":
                    continue
                fitting += 1
                found = timed_layout(laid, bill, gpu, fabric, options)
                key = (laid.tp, laid.pp, laid.cp, laid.ep, sharding)
                if key not in best or found.seconds < best[key].seconds:
                    best[key] = found
    ranked = sorted(best.values(), key=lambda found: (found.seconds, found.bill.peak_bytes))
    ranked = _simple_first(ranked)
    least = timed_layout(smallest[1], smallest[2], gpu, fabric, options) if smallest else None
    return Outcome(tuple(ranked), tried, fitting, least)


SAME = 1.02  # two layouts this close are equal for any model of a step: the one with fewer kinds of parallelism leads


def _simple_first(ranked: list[Layout]) -> list[Layout]:
    if not ranked:
        return ranked
    near = [found for found in ranked if found.seconds <= SAME * ranked[0].seconds]
    lead = min(near, key=lambda found: sum(size > 1 for size in (found.job.tp, found.job.pp, found.job.cp)))
    return [lead, *(found for found in ranked if found is not lead)]


def timed_layout(job: Job, bill: MemoryBill, gpu: Gpu, fabric: Fabric, options: Options) -> Layout:
    """The layout that ``job`` has, with its memory per GPU as given and its modelled step in seconds."""
    return Layout(job, bill, timed(job, gpu, fabric, options))


def common_default(job: Job, gpu: Gpu, fabric: Fabric, samples: int, options: Options) -> Layout:
    """What most people start with: FSDP over every GPU with full recomputation and the largest micro-batch that fits
    (DDP for adapters on a base that fits one card).
    """
    plain = laid_out(job, tp=1, pp=1, cp=1, ep=1, sharding="fsdp", checkpointing="full")
    if job.is_adapter and verdict(estimate(replace(plain, sharding="ddp", micro_batch=1, grad_accum=1)), gpu) == "fits":
        plain = replace(plain, sharding="ddp")
    each = max(1, samples // plain.dp)
    for size in MICRO_BATCHES:
        if each % size and size > 1:
            continue
        laid = replace(plain, micro_batch=size, grad_accum=max(1, each // size))
        bill = estimate(laid)
        if size == 1 or verdict(bill, gpu) == "fits":
            break
    return timed_layout(laid, bill, gpu, fabric, options)


def _splits(job: Job, fabric: Fabric, samples: int) -> Iterator[Job]:
    """Tensor x pipeline x context x expert degrees that divide GPUs, model and batch."""
    arch, n = job.arch, job.n_gpus
    if job.method == "qlora":  # quantised bases run replicated or under FSDP only (bitsandbytes, PEFT)
        yield replace(job, tp=1, pp=1, cp=1, ep=1)
        return
    widest = min(fabric.gpus_per_node, 16, n)
    if job.is_adapter and fabric.intra_kind in ("pcie", "pcie-host", "none"):
        widest = 1  # adapter stacks for such cards replicate or shard, none splits layers
    for tp in _degrees(widest):
        if n % tp or (arch.n_heads and arch.n_heads % tp):
            continue
        for pp in _degrees(min(n // tp, arch.n_layers or 1, 64)):
            if n % (tp * pp) or (job.is_adapter and pp > 1 and tp == 1 and n <= fabric.gpus_per_node):
                continue
            rest = n // (tp * pp)
            for cp in _contexts(job, rest, samples):
                dp = rest // cp
                if samples % dp or samples < dp:
                    continue
                for ep in _experts(job, tp * cp * dp):
                    yield replace(job, tp=tp, pp=pp, cp=cp, ep=ep)


def _degrees(limit: int) -> list[int]:
    return [2**power for power in range(limit.bit_length()) if 2**power <= limit]


def _contexts(job: Job, rest: int, samples: int) -> list[int]:
    """Context parallel only where sequences are long or the batch has too few of them."""
    useful = [cp for cp in _degrees(min(rest, max(1, job.seq_len // MIN_CONTEXT), 64)) if rest % cp == 0]
    return [cp for cp in useful if cp == 1 or job.seq_len >= 16384 or rest // (cp // 2) > samples]


def _experts(job: Job, ranks: int) -> list[int]:
    if job.arch.moe is None:
        return [1]
    return [ep for ep in _degrees(min(ranks, job.arch.moe.n_experts, 256))
            if job.arch.moe.n_experts % ep == 0 and ranks % ep == 0]  # fmt: skip


def _shardings(job: Job, fabric: Fabric) -> list[Sharding]:
    if job.dp * job.cp == 1:
        return ["none"]
    if job.pp > 1 or (job.tp > 1 and not job.is_adapter and job.arch.moe is not None):
        return ["ddp"] if job.is_adapter else ["zero1"]
    hybrid: list[Sharding] = ["hsdp"] if fabric.nodes(job.n_gpus) > 1 and job.tp == 1 else []
    return ["ddp", "zero3", *hybrid] if job.is_adapter else ["zero1", "zero3", *hybrid]


def _passes(job: Job, samples: int) -> Iterator[Job]:
    """Micro-batch and recomputation: for each level of recomputation, micro-batches that divide the batch."""
    each = samples // job.dp
    for checkpointing in LEVELS:
        for size in MICRO_BATCHES:
            if each % size == 0 and size * job.seq_len <= 131072 * job.cp:
                yield replace(job, checkpointing=checkpointing, micro_batch=size, grad_accum=each // size)
