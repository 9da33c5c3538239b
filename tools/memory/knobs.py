"""What else one could set, with the effect computed: the largest savings, and the nearest setting that fits a card."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tools.memory.bill import BORDERLINE, MemoryBill
from tools.memory.estimate import estimate
from tools.workload import Job, Precision

Estimator = Callable[[Job], MemoryBill]


@dataclass(frozen=True, slots=True)
class Knob:
    """One change: words ({value} for its number), the argument that does it, the job after it and its bill."""

    family: str
    words: str
    argument: str
    value: object
    job: Job
    bill: MemoryBill

    @property
    def said(self) -> str:
        """The change with its number in the words."""
        return self.words.format(value=self.value)


def largest_savings(job: Job, now: MemoryBill, count: int = 3, estimator: Estimator = estimate) -> list[Knob]:
    """The ``count`` single changes that lower the peak most, one of each family, each saving at least 2 %."""
    best: dict[str, Knob] = {}
    for family, words, argument, value, changed in _changes(job):
        knob = Knob(family, words, argument, value, changed, estimator(changed))
        if knob.bill.peak_bytes > 0.98 * now.peak_bytes:
            continue
        if family not in best or knob.bill.peak_bytes < best[family].bill.peak_bytes:
            best[family] = knob
    return sorted(best.values(), key=lambda knob: knob.bill.peak_bytes)[:count]


def nearest_that_fits(job: Job, usable_bytes: float, estimator: Estimator = estimate) -> list[Knob]:
    """The least intrusive chain of changes after which the job fits the same GPUs; empty if none of them does.

    Settings that keep the result the same come first (checkpointing, fused loss, micro-batch), then the optimizer's
    precision, then LoRA and QLoRA.
    """
    limit = usable_bytes * (1 - BORDERLINE)
    for knob in _settings(job, estimator):
        if knob.family in _HARMLESS and knob.bill.peak_bytes <= limit:
            return [knob]
    chain, current, bill = [], job, estimator(job)
    for family in _HARMLESS:
        for knob in _settings(current, estimator):
            if knob.family == family and knob.bill.peak_bytes < 0.98 * bill.peak_bytes:
                chain.append(knob)
                current, bill = knob.job, knob.bill
                break
        if chain and bill.peak_bytes <= limit:
            return chain
    for families in (("precision", "optimizer"), ("method",)):
        for start, changes in ((job, []), (current, chain)):
            for knob in _settings(start, estimator):
                if knob.family in families and knob.bill.peak_bytes <= limit:
                    return [*changes, knob]
    return []


def fewest_gpus_that_fit(job: Job, usable_bytes: float, estimator: Estimator = estimate) -> Knob | None:
    """The smallest power of two of GPUs, above those given, over which FSDP makes the job fit."""
    n_gpus = 2
    while n_gpus <= MOST_GPUS:
        if n_gpus > job.n_gpus and n_gpus % (job.tp * job.pp * job.cp) == 0:
            more = _shard(job, n_gpus)
            bill = estimator(more)
            if bill.peak_bytes <= usable_bytes * (1 - BORDERLINE):
                return Knob("gpus", "shard over {value} GPUs with FSDP", "n_gpus", n_gpus, more, bill)
        n_gpus *= 2
    return None


MOST_GPUS = 1024
_HARMLESS = ("checkpointing", "loss", "attention", "batch")


def _shard(job: Job, n_gpus: int) -> Job:
    sharding = job.sharding if job.sharding in ("zero3", "fsdp", "hsdp") else "fsdp"
    return replace(job, n_gpus=n_gpus, sharding=sharding)


def _settings(job: Job, estimator: Estimator) -> list[Knob]:
    return [Knob(f, w, a, v, changed, estimator(changed)) for f, w, a, v, changed in _changes(job)]


def _changes(job: Job) -> Iterator[tuple[str, str, str, object, Job]]:
    if job.task == "inference":
        yield from _serving(job)
        return
    if job.checkpointing != "full":
        yield (
            "checkpointing", "turn on full activation checkpointing", "activation_checkpointing", "full",
            replace(job, checkpointing="full"),
        )  # fmt: skip
    if not job.fused_loss and job.arch.vocab_size:
        yield "loss", "use a fused (Liger) cross-entropy", "fused_loss", True, replace(job, fused_loss=True)
    if job.attention == "eager":
        yield "attention", "use flash attention", "attention", "flash", replace(job, attention="flash")
    if job.micro_batch > 1:
        yield "batch", "cut the micro-batch to {value}", "micro_batch", 1, replace(job, micro_batch=1)
    if job.seq_len > 512:
        half = max(512, job.seq_len // 2)
        yield "length", "halve the sequence length to {value}", "seq_len", half, replace(job, seq_len=half)
    if not job.is_adapter:
        if job.precision in ("bf16_mixed", "fp16_mixed", "fp32"):
            yield "precision", "keep weights in pure bf16", "precision", "bf16", replace(job, precision="bf16")
        if job.optimizer in ("adamw", "paged_adamw"):
            yield "optimizer", "use 8-bit AdamW", "optimizer", "adamw_8bit", replace(job, optimizer="adamw_8bit")
        if job.method in ("full", "continued_pretrain", "dpo", "orpo", "kto", "grpo", "ppo", "reward"):
            yield "method", "train LoRA adapters instead", "method", "lora", _lora(job, "lora")
            yield "method", "train QLoRA adapters instead", "method", "qlora", _lora(job, "qlora")
    elif job.method in ("lora", "dora"):
        yield "method", "quantise the frozen base (QLoRA)", "method", "qlora", _lora(job, "qlora")
    if job.tp == job.pp == job.cp == 1:
        more = 2 if job.n_gpus == 1 else (job.n_gpus if job.sharding in ("none", "ddp") else 2 * job.n_gpus)
        yield "gpus", "shard over {value} GPUs with FSDP", "n_gpus", more, _shard(job, more)
    if job.offload == "none" and not job.is_adapter:
        yield (
            "offload", "keep optimizer states in host memory", "cpu_offload", "optimizer",
            replace(job, offload="optimizer"),
        )  # fmt: skip


def _lora(job: Job, method: str) -> Job:
    precision: Precision = "nf4" if method == "qlora" else "bf16"
    if job.method in ("dpo", "orpo", "kto", "grpo", "ppo", "reward"):
        return replace(job, adapter=True, precision=precision, lora_targets=("all-linear",))
    return replace(job, method=method, precision=precision, lora_targets=("all-linear",))  # type: ignore[arg-type]


def _serving(job: Job) -> Iterator[tuple[str, str, str, object, Job]]:
    if job.precision in ("bf16", "fp16", "fp32", "bf16_mixed", "fp16_mixed"):
        yield "precision", "serve fp8 weights", "precision", "fp8", replace(job, precision="fp8")
        yield "precision", "serve 4-bit weights", "precision", "int4", replace(job, precision="int4")
    if job.micro_batch > 1:
        half = job.micro_batch // 2
        yield "batch", "halve the batch to {value}", "micro_batch", half, replace(job, micro_batch=half)
    if job.seq_len > 512:
        half = job.seq_len // 2
        yield "length", "halve the context to {value}", "seq_len", half, replace(job, seq_len=half)
    tp = 2 * job.tp
    if job.arch.n_heads and job.arch.n_heads % tp == 0:
        yield "gpus", "split over {value} GPUs", "tp", tp, replace(job, tp=tp, n_gpus=max(tp, job.n_gpus))
