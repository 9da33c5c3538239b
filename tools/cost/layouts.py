"""Ways to lay a job over n GPUs, and for each card the fastest one whose memory fits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from knowledge.gpus import load_gpu
from knowledge.types import Gpu
from tools.memory import MemoryBill, Verdict, estimate, verdict
from tools.memory.profiles import recipe_for
from tools.network.fabric import Fabric, fabric_for
from tools.throughput import SoftwareClass, Throughput, estimate_throughput
from tools.throughput.model import tokens_per_second_at_most
from tools.usual_batch import usual_batch_tokens
from tools.workload import Checkpointing, Job, Sharding, WorkloadInput, laid_out

MICRO_BATCHES = (1, 4, 16)
_SAME_STATES = ("fp8", "fp16_mixed")  # as bf16_mixed
CLOSE = 0.97  # of what a layout could reach at most: nearer, choosing is below any model's error


@dataclass(frozen=True, slots=True)
class Freedom:
    """Which choices the user left open, so that the search may make them."""

    micro_batch: bool
    checkpointing: bool
    layout: bool
    batch_tokens: float
    grad_accum: int | None = None  # passes a step as told

    @staticmethod
    def of(given: WorkloadInput, job: Job) -> Freedom:
        """What ``given`` left open: the layout only where neither a parallel degree above 1 nor a sharding was named.
        ``batch_tokens`` is the method's usual global batch, tokens a step.
        """
        fixed = given.tp * given.pp * given.cp > 1 or given.sharding is not None
        return Freedom(
            micro_batch=given.micro_batch is None,
            checkpointing=given.activation_checkpointing is None,
            layout=not fixed,
            batch_tokens=usual_batch_tokens(job),
            grad_accum=given.grad_accum,
        )


@dataclass(frozen=True, slots=True)
class SetUp:
    """One card and count with the layout chosen for it."""

    gpu: Gpu
    n_gpus: int
    machines: int
    job: Job
    need: MemoryBill
    fit: Verdict
    speed: Throughput

    @property
    def layout(self) -> str:
        """The layout for people, e.g. "FSDP, TP2, micro-batch 4, full checkpointing"."""
        return layout_words(self.job)


def layout_words(job: Job) -> str:
    """For people, e.g. "FSDP, TP2, micro-batch 4, full checkpointing"; degrees of 1, one GPU's sharding and
    checkpointing of none are left out.
    """
    parts = []
    if job.n_gpus > 1:
        parts.append({"fsdp": "FSDP", "zero1": "ZeRO-1", "ddp": "DDP"}.get(job.sharding, job.sharding))
        parts += [
            f"{name}{size}" for name, size in (("TP", job.tp), ("PP", job.pp), ("CP", job.cp), ("EP", job.ep))
            if size > 1
        ]  # fmt: skip
    parts.append(f"micro-batch {job.micro_batch}")
    if job.checkpointing != "none":
        parts.append(f"{job.checkpointing} checkpointing")
    return ", ".join(parts)


@lru_cache(maxsize=4096)
def best_set_up(
    job: Job, gpu_id: str, n_gpus: int, per_machine: int, free: Freedom, software: SoftwareClass
) -> tuple[SetUp | None, MemoryBill]:
    """The fastest layout that fits with headroom (else a borderline one), None where none fits, and the smallest need
    seen otherwise. Kept, since what is asked next about a job (on spot, at this provider, within this budget) needs the
    same ones.
    """
    gpu = load_gpu(gpu_id)
    fitting: dict[Verdict, list[tuple[float, Job, MemoryBill]]] = {"fits": [], "borderline": []}
    smallest: MemoryBill | None = None
    roomy: Job | None = None
    for option, need in _sized(job, n_gpus, min(per_machine, n_gpus), free):
        if smallest is None or need.peak_bytes < smallest.peak_bytes:
            smallest = need
        kind = verdict(need, gpu)
        # The same layout without recomputation comes just before: where it fits, recomputing can only be slower.
        dearer = option.checkpointing == "full" and roomy is not None and _same_but_saving(option, roomy)
        if kind == "fits":
            roomy = option
        if kind in fitting and not dearer:
            fitting[kind].append((tokens_per_second_at_most(option, gpu, software), option, need))
    for kind, found in fitting.items():
        if found:
            machines = -(-n_gpus // per_machine)
            chosen = _fastest(found, gpu, _fabric(gpu.id, n_gpus, per_machine), software, kind, machines)
            return chosen, smallest or estimate(job)
    return None, smallest or estimate(job)


def _fastest(
    found: list[tuple[float, Job, MemoryBill]],
    gpu: Gpu,
    fabric: Fabric,
    software: SoftwareClass,
    kind: Verdict,
    machines: int,
) -> SetUp:
    """Best first by the bound without communication; once a modelled speed is close to the next bound, none wins."""
    best: SetUp | None = None
    for bound, option, need in sorted(found, key=lambda one: -one[0]):
        if best is not None and best.speed.tokens_per_second >= CLOSE * bound:
            break
        speed = estimate_throughput(option, gpu, fabric, software)
        if best is None or speed.tokens_per_second > best.speed.tokens_per_second:
            best = SetUp(gpu, option.n_gpus, machines, option, need, kind, speed)
    assert best is not None
    return best


def _same_but_saving(job: Job, other: Job) -> bool:
    layout, same = (job.sharding, job.tp, job.pp), (other.sharding, other.tp, other.pp)
    return layout == same and job.micro_batch == other.micro_batch and other.checkpointing == "none"


@lru_cache(maxsize=2048)
def _sized(job: Job, n_gpus: int, per_machine: int, free: Freedom) -> tuple[tuple[Job, MemoryBill], ...]:
    """The options with their memory, which is the same for every card of this count and so is computed once."""
    options = _options(job, n_gpus, per_machine, free)
    if job.precision not in _SAME_STATES:
        return tuple((option, _need(option)) for option in options)
    # FP8 products keep weights and states as bf16 has them: where the stack allocates the same, the sum is made once.
    twins = _options(replace(job, precision="bf16_mixed"), n_gpus, per_machine, free)
    pairs = zip(options, twins, strict=True)
    return tuple((one, _need(twin if recipe_for(twin) == recipe_for(one) else one)) for one, twin in pairs)


@lru_cache(maxsize=8192)
def _need(job: Job) -> MemoryBill:
    return estimate(job)


@lru_cache(maxsize=2048)
def _options(job: Job, n_gpus: int, per_machine: int, free: Freedom) -> tuple[Job, ...]:
    batches = MICRO_BATCHES if free.micro_batch else (job.micro_batch,)
    saving: tuple[Checkpointing, ...] = ("none", "full") if free.checkpointing else (job.checkpointing,)
    found = []
    for sharding, tp, pp in _shapes(job, n_gpus, per_machine, free):
        replicas = n_gpus // (tp * pp * job.cp)
        for batch in batches:
            tokens = replicas * batch * job.seq_len
            accumulate = int(free.batch_tokens // tokens) if free.grad_accum is None else free.grad_accum
            if accumulate < 1 and (batch > 1 or replicas > 1) and batch != batches[0]:
                continue
            if tokens > 2 * free.batch_tokens and replicas > 1:
                continue
            for kind in saving:
                found.append(
                    laid_out(
                        job, n_gpus=n_gpus, sharding=sharding, tp=tp, pp=pp, micro_batch=batch, checkpointing=kind,
                        grad_accum=max(1, accumulate),
                    )
                )  # fmt: skip
    return tuple(found)


def _shapes(job: Job, n_gpus: int, per_machine: int, free: Freedom) -> list[tuple[Sharding, int, int]]:
    if not free.layout:
        return [(job.sharding, job.tp, job.pp)] if n_gpus % (job.tp * job.pp * job.cp) == 0 else []
    if n_gpus == 1:
        return [("none", 1, 1)]
    shapes: list[tuple[Sharding, int, int]] = [("ddp", 1, 1), ("fsdp", 1, 1)]
    heads, layers = job.arch.n_heads or 1, job.arch.n_layers or 1
    width = min(8, per_machine)
    if n_gpus > 8 and width > 1 and heads % width == 0:
        shapes.append(("zero1", width, 1))
        for stages in (4, 8, 16):
            if n_gpus % (width * stages) == 0 and layers >= 2 * stages:
                shapes.append(("zero1", width, stages))
    return shapes


@lru_cache(maxsize=4096)
def _fabric(gpu_id: str, n_gpus: int, per_machine: int) -> Fabric:
    return fabric_for(load_gpu(gpu_id), n_gpus, gpus_per_node=per_machine if n_gpus % per_machine == 0 else None)[0]
