"""What else one could set, with the effect computed: the largest savings, and the nearest setting that fits a card."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tools.memory.bill import BORDERLINE, MemoryBill
from tools.memory.estimate import estimate
from tools.workload import Job, Precision

Estimator = Callable[[Job], MemoryBill]
Changes = dict[str, Any]  # fields of a job with their new values


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
        """The change in words with its number, to be put into a sentence; its effect is in ``bill``."""
        return self.words.format(value=self.value)


def largest_savings(job: Job, now: MemoryBill, count: int = 3, estimator: Estimator = estimate) -> list[Knob]:
    """The ``count`` single changes that lower the peak most, one of each family, each saving at least 2 %."""
    best: dict[str, Knob] = {}
    for knob in _settings(job, estimator):
        if knob.bill.peak_bytes > 0.98 * now.peak_bytes:
            continue
        if knob.family not in best or knob.bill.peak_bytes < best[knob.family].bill.peak_bytes:
            best[knob.family] = knob
    return sorted(best.values(), key=lambda knob: knob.bill.peak_bytes)[:count]


def nearest_that_fits(job: Job, usable_bytes: float, estimator: Estimator = estimate) -> list[Knob]:
    """The least intrusive chain of changes after which the job fits the same GPUs; empty if none of them does.

    Settings that keep the result the same come first (checkpointing, fused loss, micro-batch), then the optimizer's
    precision, then LoRA and QLoRA.
    """
    limit = usable_bytes * (1 - BORDERLINE)
    for knob in _settings(job, estimator, _HARMLESS):
        if knob.bill.peak_bytes <= limit:
            return [knob]
    chain, current, bill = [], job, estimator(job)
    for family in _HARMLESS:
        for knob in _settings(current, estimator, (family,)):
            if knob.bill.peak_bytes < 0.98 * bill.peak_bytes:
                chain.append(knob)
                current, bill = knob.job, knob.bill
                break
        if chain and bill.peak_bytes <= limit:
            return chain
    for families in (("precision", "optimizer"), ("method",)):
        for start, changes in ((job, []), (current, chain)):
            for knob in _settings(start, estimator, families):
                if knob.bill.peak_bytes <= limit:
                    return [*changes, knob]
    return []


def fewest_gpus_that_fit(job: Job, usable_bytes: float, estimator: Estimator = estimate) -> Knob | None:
    """The smallest power of two of GPUs, above those given, over which FSDP makes the job fit."""
    n_gpus = 2
    while n_gpus <= MOST_GPUS:
        if n_gpus > job.n_gpus and n_gpus % (job.tp * job.pp * job.cp) == 0:
            more = replace(job, **_shard(job, n_gpus))
            bill = estimator(more)
            if bill.peak_bytes <= usable_bytes * (1 - BORDERLINE):
                return Knob("gpus", "shard over {value} GPUs with FSDP", "n_gpus", n_gpus, more, bill)
        n_gpus *= 2
    return None


MOST_GPUS = 1024
_HARMLESS = ("checkpointing", "loss", "attention", "batch")


def _shard(job: Job, n_gpus: int) -> Changes:
    return {"n_gpus": n_gpus, "sharding": job.sharding if job.sharding in ("zero3", "fsdp", "hsdp") else "fsdp"}


def _settings(job: Job, estimator: Estimator, families: tuple[str, ...] = ()) -> Iterator[Knob]:
    """The changes of these families (all, if none is named), each computed only when it is looked at."""
    for family, words, argument, value, changes in _changes(job):
        if not families or family in families:
            changed = replace(job, **changes)
            yield Knob(family, words, argument, value, changed, estimator(changed))


def _changes(job: Job) -> Iterator[tuple[str, str, str, object, Changes]]:
    if job.task == "inference":
        yield from _serving(job)
        return
    if job.checkpointing != "full":
        words = "turn on full activation checkpointing"
        yield "checkpointing", words, "activation_checkpointing", "full", {"checkpointing": "full"}
    if not job.fused_loss and job.arch.vocab_size:
        yield "loss", "use a fused (Liger) cross-entropy", "fused_loss", True, {"fused_loss": True}
    if job.attention == "eager":
        yield "attention", "use flash attention", "attention", "flash", {"attention": "flash"}
    if job.micro_batch > 1:
        yield "batch", "cut the micro-batch to {value}", "micro_batch", 1, {"micro_batch": 1}
    if job.seq_len > 512:
        half = max(512, job.seq_len // 2)
        yield "length", "halve the sequence length to {value}", "seq_len", half, {"seq_len": half}
    if not job.is_adapter:
        if job.precision in ("bf16_mixed", "fp16_mixed", "fp32"):
            yield "precision", "keep weights in pure bf16", "precision", "bf16", {"precision": "bf16"}
        if job.optimizer in ("adamw", "paged_adamw"):
            yield "optimizer", "use 8-bit AdamW", "optimizer", "adamw_8bit", {"optimizer": "adamw_8bit"}
        if job.method in ("full", "continued_pretrain", "dpo", "orpo", "kto", "grpo", "ppo", "reward"):
            yield "method", "train LoRA adapters instead", "method", "lora", _lora(job, "lora")
            yield "method", "train QLoRA adapters instead", "method", "qlora", _lora(job, "qlora")
    elif job.method in ("lora", "dora"):
        yield "method", "quantise the frozen base (QLoRA)", "method", "qlora", _lora(job, "qlora")
    if job.tp == job.pp == job.cp == 1:
        more = 2 if job.n_gpus == 1 else (job.n_gpus if job.sharding in ("none", "ddp") else 2 * job.n_gpus)
        yield "gpus", "shard over {value} GPUs with FSDP", "n_gpus", more, _shard(job, more)
    if job.offload == "none" and not job.is_adapter:
        words = "keep optimizer states in host memory"
        yield "offload", words, "cpu_offload", "optimizer", {"offload": "optimizer"}


def _lora(job: Job, method: str) -> Changes:
    precision: Precision = "nf4" if method == "qlora" else "bf16"
    changes: Changes = {"precision": precision, "lora_targets": ("all-linear",)}
    if job.method in ("dpo", "orpo", "kto", "grpo", "ppo", "reward"):
        return changes | {"adapter": True}
    return changes | {"method": method}


def _serving(job: Job) -> Iterator[tuple[str, str, str, object, Changes]]:
    if job.precision in ("bf16", "fp16", "fp32", "bf16_mixed", "fp16_mixed"):
        yield "precision", "serve fp8 weights", "precision", "fp8", {"precision": "fp8"}
        yield "precision", "serve 4-bit weights", "precision", "int4", {"precision": "int4"}
    if job.micro_batch > 1:
        half = job.micro_batch // 2
        yield "batch", "halve the batch to {value}", "micro_batch", half, {"micro_batch": half}
    if job.seq_len > 512:
        half = job.seq_len // 2
        yield "length", "halve the context to {value}", "seq_len", half, {"seq_len": half}
    tp = 2 * job.tp
    if job.arch.n_heads and job.arch.n_heads % tp == 0:
        yield "gpus", "split over {value} GPUs", "tp", tp, {"tp": tp, "n_gpus": max(tp, job.n_gpus)}
