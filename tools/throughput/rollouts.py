"""Generation inside PPO and GRPO: how long a step's completions take to be written, before any of them is trained on.

The same cards hold trainer and engine in turn (a "colocated" vLLM or SGLang, as TRL, verl and NeMo RL run it). A copy
of the engine spans g cards, the fewest whose share of memory holds the bf16 weights with as much again for the cache.

    prefill = prompts (once a group, their cache is shared) x 2N FLOPs / (cards x peak x ENGINE_MFU)
    decode  = passes x seconds a pass; a pass writes one token for each of B sequences:
              max( (weights touched + B x cache at mean length) / bandwidth, 2N·B / compute ) / g
              + 2 all-reduces a layer over g cards + launch, sampling and scheduling
    passes  = max( longest completion, sequences of a copy x mean length / sequences that fit in its cache )
    switch  = weights from the trainer's shards to the engine, over the slowest link, and waking it

Bandwidth-bound decoding: Pope et al. 2022, arXiv:2211.05102. Nothing here is fitted to a rollout measurement:
``evals/data/rollout_steps.csv`` holds published step times, and a test compares. Not modelled: speculative decoding,
tools and environments called in between, a judge model on other cards, asynchronous engines.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from knowledge.types import Gpu
from tools.memory.inference import cache_bytes
from tools.memory.shapes import shape_of
from tools.network.collectives import collective_seconds
from tools.network.fabric import Fabric
from tools.throughput import constants
from tools.throughput.efficiency import chip, peak_flops
from tools.throughput.flops import sparse
from tools.workload import Job

ENGINE_MEMORY_SHARE = 0.5  # of a card for weights and cache while trainer states wait: verl's default, TRL's is lower
ENGINE_MFU = 0.4  # of the 16-bit peak in prefill and in large decode batches
PASS_SECONDS = 3e-3  # scheduling and launch of a pass under CUDA graphs
SEQUENCE_SECONDS = 10e-6  # sampling and bookkeeping of one sequence a pass
SWITCH_SECONDS = 9.0  # three hand-overs a step of about 3 s: to the engine, to scoring, to training (states moved)
SWITCH_RATE_SHARE = 0.5  # of the link while weights are regrouped
LONGEST_OVER_MEAN = 2.0  # answers differ in length, and a synchronous step waits for the longest
# How far either way generation may be off, 9 times in 10: engine, lengths and batch are all assumed, and engines differ
# most in how they run experts.
FACTOR, SPARSE_FACTOR = 2.0, 3.0


@dataclass(frozen=True, slots=True)
class Rollouts:
    """Generation of one step, seconds."""

    prefill: float
    decode: float
    switch: float
    engine_gpus: int  # cards of a copy
    concurrent: float  # sequences that a copy writes at once, mean
    passes: float

    @property
    def seconds(self) -> float:
        """Seconds of a step's generation: prefill, decoding and switching between trainer and engine."""
        return self.prefill + self.decode + self.switch


def generates(job: Job) -> bool:
    """Whether the method writes completions before it trains on them."""
    return job.task == "train" and job.method in ("grpo", "ppo")


def uncertainty(job: Job) -> float:
    """The 90 % interval of generation as a factor either way: 2, and 3 for mixtures of experts. Assumed, not fitted."""
    return SPARSE_FACTOR if sparse(job.arch) else FACTOR


def rollouts(job: Job, gpu: Gpu, fabric: Fabric | None, longest: float | None = None) -> Rollouts:
    """Seconds to write the completions of one optimizer step: ``tokens_per_step / seq_len`` sequences. Formula and
    paper: the module's docstring.

    ``longest``: tokens of the longest completion, else twice the mean. Without a fabric, weights move in no time.
    """
    arch, shape = job.arch, shape_of(job.arch)
    answer = float(min(job.response_tokens, job.seq_len - 1) or 1)
    prompt = job.seq_len - answer
    longest = LONGEST_OVER_MEAN * answer if longest is None else longest
    sequences = job.tokens_per_step / job.seq_len
    weights = 2.0 * arch.total_params
    room = ENGINE_MEMORY_SHARE * gpu.usable_bytes
    span = 1
    while span < job.n_gpus and 2.0 * weights > span * room:
        span *= 2
    span = min(span, job.n_gpus)
    copies = max(1, job.n_gpus // span)
    each = sequences / copies
    per_token = cache_bytes(replace(job, micro_batch=1), shape) / job.seq_len
    fitting = max(1.0, (span * room - weights) / (per_token * job.seq_len)) if per_token else each
    passes = max(longest, each * answer / fitting)
    concurrent = each * answer / passes

    touched = weights
    if arch.moe is not None and shape.routed:  # experts that none of the batch visits stay unread
        unread = (1.0 - arch.moe.experts_per_token / arch.moe.n_experts) ** concurrent
        touched -= 2.0 * shape.routed * unread
    bandwidth = (gpu.bandwidth_bytes_per_s or 100e9) * constants.SCALARS["memory"]
    compute = peak_flops(gpu, 16) * ENGINE_MFU
    experts = constants.EXPERT.get(chip(gpu), constants.EXPERT["other"]) if arch.moe is not None else 1.0
    read = (touched / experts + concurrent * per_token * (prompt + answer / 2)) / bandwidth
    multiply = 2.0 * arch.active_params * concurrent / (compute * experts)
    talk = 0.0
    if span > 1 and fabric is not None:
        size = concurrent * arch.hidden_size * 2.0
        near = min(span, fabric.gpus_per_node)
        talk = 2.0 * max(1, arch.n_layers) * collective_seconds("all_reduce", size, span, near, fabric)
    one = max(read, multiply) / span + talk + PASS_SECONDS + SEQUENCE_SECONDS * concurrent

    prompts = sequences / max(1, job.group_size)
    return Rollouts(
        prefill=prompts * prompt * 2.0 * arch.active_params / (job.n_gpus * compute),
        decode=passes * one,
        switch=SWITCH_SECONDS + _regroup(job, weights / span, fabric),
        engine_gpus=span,
        concurrent=concurrent,
        passes=passes,
    )


def _regroup(job: Job, share_bytes: float, fabric: Fabric | None) -> float:
    """Seconds until every copy has its part of the new weights, from trainers that hold them in shards."""
    if fabric is None or job.n_gpus == 1:
        return 0.0
    inside = fabric.nodes(job.n_gpus) == 1
    rate = fabric.intra_bytes_per_s if inside else min(fabric.intra_bytes_per_s, fabric.inter_bytes_per_s)
    return share_bytes / (rate * SWITCH_RATE_SHARE) if rate else 0.0
