"""Bytes that a training step moves: which collective, over which GPUs, how large, how often, hidden under what.

Rank order is Megatron's: tensor innermost (inside the node while it fits), then context, data, pipeline; expert groups
are consecutive GPUs of a stage. Volumes per GPU and step, with W weights in bytes, G gradients, m micro-batches:

- DDP: all-reduce G once (accumulation defers it). ZeRO-1: reduce-scatter G and all-gather W once (Rajbhandari et al.
  2020, arXiv:1910.02054, section 7). ZeRO-2: reduce-scatter each micro-batch, all-gather once.
- ZeRO-3 and FSDP: all-gather W forward and again backward, reduce-scatter G, each micro-batch: 3/2 of DDP for m = 1.
- HSDP: the same inside a node, and one all-reduce of the shard between nodes.
- LoRA: gradients of the adapters only; a frozen base is gathered but never reduced.
- TP: 2 all-reduces of b·s·h a layer forward, 2 backward, 2 more with full recomputation (Shoeybi et al. 2019,
  arXiv:1909.08053); sequence parallelism splits each into all-gather + reduce-scatter: same bytes (Korthikanti 2022).
- CP ring: keys and values of every other rank pass by, twice more backward (Liu et al. 2023, arXiv:2310.01889);
  all-to-all (Ulysses, arXiv:2309.14509): q, k, v and output change hands once each way.
- PP: activations of a micro-batch forward, gradients backward, at each stage boundary.
- EP: dispatch and combine of every routed token, forward and backward (Lepikhin et al. 2020, arXiv:2006.16668).

Not modelled: embedding and head exchanges of pipelines, optimizer norms, expert imbalance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from knowledge.types import Architecture
from tools.memory.shapes import adapter_weights, shape_of
from tools.network.collectives import Op, wire_bytes
from tools.network.fabric import Fabric
from tools.workload import Job

Axis = Literal["data", "tensor", "context", "pipeline", "expert"]
Phase = Literal["forward", "backward", "step", "none"]
CpKind = Literal["ring", "all_to_all"]
Compression = Literal["none", "bf16", "int8", "powersgd", "diloco"]

STORED_BYTES: dict[str, float] = {
    "fp32": 4.0,
    "bf16_mixed": 2.0,
    "fp16_mixed": 2.0,
    "int8": 1.0,
    "nf4": 0.516,
    "fp4": 0.516,
    "int4": 0.516,
    "mxfp4": 0.531,
}  # fmt: skip  4 bits plus block scales with double quantisation (QLoRA, arXiv:2305.14314: 0.127 bits a parameter)
_FP8_GATHERS = ("nemo", "megatron", "torchtitan")
_FP32_GRADIENTS = ("torchtitan", "megatron")  # their defaults reduce gradients in fp32
DDP_BUCKET = 25 * 2.0**20  # PyTorch DDP's bucket_cap_mb
BIG_BUCKET = 200 * 2.0**20  # Megatron and DeepSpeed buckets are hundreds of MB
# What is left of the gradient bytes: halves or quarters of fp32, rank-4 PowerSGD (Vogels 2019: about 100x on
# square layers, 1.5 % kept here with its second pass), DiLoCo syncs once in 500 steps (arXiv:2311.08105).
_KEPT: dict[str, float] = {"none": 1.0, "powersgd": 0.015, "diloco": 1 / 500}


@dataclass(frozen=True, slots=True)
class Traffic:
    """One kind of call in a step; ``payload`` is the whole tensor for gathers and reductions, bytes a call."""

    axis: Axis
    what: str
    op: Op
    payload: float
    members: int
    per_node: int
    calls: float
    phase: Phase

    def wire(self) -> tuple[float, float]:
        """Bytes a GPU sends a step on its link inside the node and between nodes."""
        inside, outside = wire_bytes(self.op, self.payload, self.members, self.per_node)
        return inside * self.calls, outside * self.calls


def traffic(
    job: Job,
    fabric: Fabric,
    sequence_parallel: bool = True,
    cp_kind: CpKind = "ring",
    compression: Compression = "none",
) -> list[Traffic]:
    """Everything that one GPU exchanges in one optimizer step: bytes a call, calls a step. Of ``fabric`` only the size
    of a node counts, since it decides which link a call takes. Formulas and papers: the module's docstring.
    """
    return list(_traffic(job, fabric.gpus_per_node, sequence_parallel, cp_kind, compression))


@lru_cache(maxsize=1024)  # the same over every link, and a comparison of links asks for many
def _traffic(
    job: Job, node: int, sequence_parallel: bool, cp_kind: CpKind, compression: Compression
) -> tuple[Traffic, ...]:
    found: list[Traffic] = []
    recompute = job.task == "train" and job.checkpointing == "full"
    if job.tp > 1:
        found += _tensor(job, node, recompute, sequence_parallel)
    if job.cp > 1:
        found += _context(job, node, recompute, cp_kind)
    if job.pp > 1:
        found += _pipeline(job, node, sequence_parallel)
    if job.ep > 1 and job.arch.moe is not None:
        found += _expert(job, node, recompute)
    if job.task == "train" and job.dp * job.cp > 1:
        found += _data(job, node, compression)
    return tuple(found)


def split_params(arch: Architecture) -> tuple[float, float]:
    """(weights that every rank of a stage needs, routed experts' weights), counts over the whole model."""
    routed = float(shape_of(arch).routed)
    return arch.total_params - routed, routed


def adapter_params(job: Job) -> float:
    """Adapter weights that are exchanged; 0 where the layers' shapes are not published."""
    return adapter_weights(job.arch, job.lora_rank, job.lora_targets)


def weight_bytes(job: Job) -> float:
    """Bytes of one stored or gathered weight; stacks that train in fp8 gather fp8."""
    if job.precision == "fp8" and job.framework in _FP8_GATHERS:
        return 1.0
    return STORED_BYTES.get(job.precision, 2.0)


def gradient_bytes(job: Job) -> float:
    """Bytes of one gradient entry as it is reduced: 4 where the stack reduces in fp32 (torchtitan and Megatron by
    default, mixed precision under DDP) or trains in it, else 2.
    """
    if job.precision in ("fp32", "bf16_mixed", "fp16_mixed") and job.sharding in ("ddp", "none"):
        return 4.0
    return 4.0 if job.framework in _FP32_GRADIENTS or job.precision == "fp32" else 2.0


def _hidden_bytes(job: Job) -> float:
    """One micro-batch's hidden state on one context rank, bf16."""
    width = 4.0 if job.precision == "fp32" else 2.0
    return job.tokens_per_micro_batch / job.cp * job.arch.hidden_size * width


def _tensor(job: Job, node: int, recompute: bool, sequence_parallel: bool) -> list[Traffic]:
    layers, size = job.arch.n_layers / job.pp, _hidden_bytes(job)
    near = min(job.tp, node)
    forward = 2.0 * layers * job.grad_accum
    passes: list[tuple[str, float, Phase]] = [("activations forward", forward, "forward")]
    if job.task == "train":
        passes.append(("activations backward", forward * (2.0 if recompute else 1.0), "backward"))
    if not sequence_parallel:
        return [
            Traffic("tensor", what, "all_reduce", size, job.tp, near, calls, phase) for what, calls, phase in passes
        ]
    ops: tuple[Op, Op] = ("all_gather", "reduce_scatter")
    return [
        Traffic("tensor", what, op, size, job.tp, near, calls, phase) for what, calls, phase in passes for op in ops
    ]


def _context(job: Job, node: int, recompute: bool, kind: CpKind) -> list[Traffic]:
    arch = job.arch
    near = min(job.cp, max(1, node // job.tp))
    layers = arch.n_layers / job.pp * job.grad_accum
    rows = job.tokens_per_micro_batch / job.cp * 2.0 / job.tp
    head = arch.head_dim or arch.hidden_size
    kv_width = (arch.mla.kv_lora_rank + arch.mla.qk_rope_head_dim) if arch.mla else 2 * arch.n_kv_heads * head
    train = job.task == "train"
    if kind == "ring":
        block = rows * kv_width
        out = [
            Traffic("context", "keys and values forward", "send", block, job.cp, near, layers * (job.cp - 1), "forward")
        ]
        if train:
            again = 3.0 if recompute else 2.0  # keys, values and their gradients; the forward once more when recomputed
            calls = layers * (job.cp - 1) * again
            out.append(Traffic("context", "keys and values backward", "send", block, job.cp, near, calls, "backward"))
        return out
    moved = rows * (2 * arch.n_heads * head + 2 * arch.n_kv_heads * head)
    out = [Traffic("context", "heads forward", "all_to_all", moved / 4, job.cp, near, 4 * layers, "forward")]
    if train:
        calls = 4 * layers * (2.0 if recompute else 1.0)
        out.append(Traffic("context", "heads backward", "all_to_all", moved / 4, job.cp, near, calls, "backward"))
    return out


def _pipeline(job: Job, node: int, sequence_parallel: bool) -> list[Traffic]:
    size = _hidden_bytes(job) / (job.tp if sequence_parallel else 1)
    stage = job.n_gpus // job.pp
    near = 1 if stage >= node else 2
    out = [Traffic("pipeline", "activations to the next stage", "send", size, 2, near, job.grad_accum, "forward")]
    if job.task == "train":
        out.append(
            Traffic("pipeline", "gradients to the stage before", "send", size, 2, near, job.grad_accum, "backward")
        )
    return out


def _expert(job: Job, node: int, recompute: bool) -> list[Traffic]:
    arch, moe = job.arch, job.arch.moe
    assert moe is not None
    layers = max(0, arch.n_layers - moe.first_dense_layers) / max(1, moe.every) / job.pp * job.grad_accum
    tokens = job.tokens_per_micro_batch / job.cp / job.tp
    payload = tokens * moe.experts_per_token * arch.hidden_size * 2.0
    near = min(job.ep, node)
    out = [
        Traffic("expert", "dispatch and combine forward", "all_to_all", payload, job.ep, near, 2 * layers, "forward")
    ]
    if job.task == "train":
        calls = 2 * layers * (2.0 if recompute else 1.0)
        out.append(
            Traffic("expert", "dispatch and combine backward", "all_to_all", payload, job.ep, near, calls, "backward")
        )
    return out


def _data(job: Job, node: int, compression: Compression) -> list[Traffic]:
    dense, routed = split_params(job.arch)
    ranks = job.dp * job.cp
    near = min(ranks, max(1, node // job.tp))
    shares = [(dense / (job.tp * job.pp), ranks, near, "")]
    if routed:
        ep = max(1, job.ep)
        expert_ranks = max(1, ranks * job.tp // ep)
        shares.append((routed / (job.pp * ep), expert_ranks, min(expert_ranks, max(1, node // ep)), " of experts"))
    if job.is_adapter:
        share = adapter_params(job) / (job.tp * job.pp)
        return _frozen_base(job, shares) + _reduced(job, share, ranks, near, " of adapters", compression, adapters=True)
    out: list[Traffic] = []
    for share, group, local, label in shares:
        if group > 1:
            out += _reduced(job, share, group, local, label, compression)
    return out


def _frozen_base(job: Job, shares: list[tuple[float, int, int, str]]) -> list[Traffic]:
    """Gathers of a sharded base that is never reduced."""
    if job.sharding not in ("zero3", "fsdp", "hsdp"):
        return []
    out = []
    for share, group, local, label in shares:
        if group > 1:
            members = local if job.sharding == "hsdp" and local > 1 else group
            out += _gathers(job, share, members, local, label)
    return out


def _gathers(job: Job, share: float, group: int, local: int, label: str) -> list[Traffic]:
    units = max(1.0, job.arch.n_layers / job.pp)
    passes = 1.0 if job.pp > 1 else float(job.grad_accum)  # pipelined FSDP keeps weights gathered through the step
    size = share * weight_bytes(job) / units
    names: tuple[tuple[str, Phase], ...] = (("forward", "forward"), ("backward", "backward"))
    return [
        Traffic("data", f"weights{label} {word}", "all_gather", size, group, local, units * passes, phase)
        for word, phase in names
    ]


def _reduced(
    job: Job, share: float, group: int, local: int, label: str, compression: Compression, adapters: bool = False
) -> list[Traffic]:
    """Gradients, and the weights that come back, of ``share`` parameters over ``group`` ranks."""
    width = {"bf16": 2.0, "int8": 1.0}.get(compression, gradient_bytes(job))
    gradients = share * width * _KEPT.get(compression, 1.0)
    if gradients <= 0:  # adapters on a model whose layer shapes are not published
        return []
    units = max(1.0, job.arch.n_layers / job.pp)
    kind = job.sharding
    if kind in ("none", "ddp") or (adapters and kind not in ("zero3", "fsdp", "hsdp")):
        bucket = min(
            gradients, DDP_BUCKET if job.framework in ("hf", "trl", "axolotl", "llama-factory") else BIG_BUCKET
        )
        return [
            Traffic("data", "gradients" + label, "all_reduce", bucket, group, local, gradients / bucket, "backward")
        ]
    each = float(job.grad_accum)
    if kind in ("zero1", "zero2"):
        big = max(BIG_BUCKET, 2e6 * group)  # Megatron grows buckets with the group: max(40M, 1M x ranks) entries
        bucket = min(gradients, big)
        reduces = gradients / bucket * (each if kind == "zero2" and job.pp == 1 else 1.0)
        weights = share * weight_bytes(job)
        chunk = min(weights, big)
        return [
            Traffic("data", "gradients" + label, "reduce_scatter", bucket, group, local, reduces, "backward"),
            Traffic("data", f"updated weights{label}", "all_gather", chunk, group, local, weights / chunk, "step"),
        ]
    passes = 1.0 if job.pp > 1 else each
    size = gradients / units
    inner = local if kind == "hsdp" and 1 < local < group else group
    out = [] if adapters else _gathers(job, share, inner, local, label)
    out.append(Traffic("data", "gradients" + label, "reduce_scatter", size, inner, local, units * passes, "backward"))
    if inner < group:
        shard = size / inner
        across = group // inner
        out.append(
            Traffic(
                "data", f"gradients{label} between replicas", "all_reduce", shard, across, 1, units * passes, "backward"
            )
        )
    return out
