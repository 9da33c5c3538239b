"""The peak of one training step: the largest of its phases, on the fullest GPU.

    forward end   states + kept activations + logits
    loss          states + kept activations + the loss's backward
    backward      states + kept activations + one block recomputed and its gradients' working set
    step          states + all gradients + the optimizer's temporary

never their sum: activations are gone when the optimizer steps, and the loss is gone when the first block's backward
starts. Sharded weights add the blocks gathered for use.
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.memory import overhead
from tools.memory.activations import block_cost
from tools.memory.bill import MemoryBill
from tools.memory.inference import estimate_inference
from tools.memory.loss import LossCost, loss_cost
from tools.memory.recipe import QUANT_BYTES, Recipe, recipe_for
from tools.memory.shapes import Shape, shape_of
from tools.memory.states import Cut, States, cut_of, states_of
from tools.workload import Job


@dataclass(frozen=True, slots=True)
class _Peak:
    total: float
    phase: str
    parts: dict[str, float]
    phases: dict[str, float]
    heights: dict[str, float]


def estimate(job: Job, recipe: Recipe | None = None) -> MemoryBill:
    """The memory bill of a job; ``recipe`` overrides the framework's conventions."""
    if job.task == "inference":
        return estimate_inference(job)
    if recipe is None:
        recipe = recipe_for(job)
    shape, cut = shape_of(job.arch), cut_of(job)
    first = _stage(job, shape, recipe, cut, True, job.pp == 1)
    peak = first
    if job.pp > 1:
        last = _stage(job, shape, recipe, cut, False, True)
        peak = last if last.total > first.total else first
    return _bill(job, shape, recipe, peak)


def _stage(job: Job, shape: Shape, recipe: Recipe, cut: Cut, first: bool, last: bool) -> _Peak:
    adapter = job.is_adapter
    states = states_of(job, shape, recipe, cut, first, last)
    block = block_cost(
        job.arch, recipe, job.lora_targets if adapter else (), not adapter, job.checkpointing, job.attention,
        job.lora_rank, job.tp,
    )  # fmt: skip
    seq = job.seq_len / job.cp
    tokens = job.micro_batch * seq
    loss = loss_cost(shape, recipe, tokens, job.tp, not adapter) if last else LossCost(0.0, 0.0, 0.0)
    layers = -(-shape.layers // job.pp)
    flights = 1
    if job.pp > 1:
        flights = min(job.pp, job.grad_accum if job.grad_accum > 1 else job.pp) if first else 1
    kept = tokens * (block.kept + block.kept_square * job.seq_len) * layers * flights
    if last:
        kept += tokens * (_final_norm(shape, recipe, not adapter) / job.tp)
    if recipe.explicit_mask:
        kept += tokens * job.seq_len
    recompute = job.checkpointing != "none"
    working = tokens * max(
        block.mlp_height + block.mlp_height_square * job.seq_len,
        block.attention_height + block.attention_height_square * job.seq_len,
    )
    # The block that goes backward first is already among the kept ones, by what checkpointing kept of it.
    working -= tokens * (block.kept + block.kept_square * job.seq_len)
    if job.checkpointing == "full":
        working += tokens * recipe.residual * shape.hidden / job.tp
    working = max(0.0, working)
    if job.checkpointing == "full":
        working += tokens * recipe.extra_inputs * recipe.compute * shape.hidden / job.tp * layers
    gather, root, unit_grads, root_grads = _gathered(job, shape, recipe, states, cut, first, last)
    grads_live = states.grads if recipe.grads_persist or job.grad_accum > 1 else 0.0
    casts = 2.0 * states.local_params if recipe.autocast and not recipe.quant else 0.0
    fixed = states.weights + states.adapters + states.optimizer + recipe.bucket
    base = fixed + root + casts + grads_live
    head_grads = root_grads if not grads_live else 0.0
    dequantised = 2.0 * _widest(shape) / job.tp if recipe.quant else 0.0
    moments = {
        "forward": base + kept + loss.forward,
        "loss": base + kept + loss.backward,
        "backward": base + kept + gather + unit_grads + working + head_grads + dequantised,
        "backward end": base + dequantised + gather + unit_grads + working + max(0.0, states.grads - grads_live) + kept / layers,
        "step": fixed + states.grads + states.step_temp,
    }
    phase = max(moments, key=lambda name: moments[name])
    parts = {
        "weights": states.weights,
        "adapters": states.adapters,
        "gradients": grads_live,
        "optimizer_states": states.optimizer,
        "activations": 0.0,
        "logits": 0.0,
        "gather_buffers": recipe.bucket,
        "weight_casts": casts,
        "dequantised": 0.0,
        "optimizer_temporary": 0.0,
    }
    if phase == "step":
        parts["gradients"], parts["optimizer_temporary"], parts["weight_casts"] = states.grads, states.step_temp, 0.0
    elif phase == "backward":
        parts["gradients"] += head_grads
        parts["gather_buffers"] += root + gather + unit_grads
        parts["activations"] = kept + working
    elif phase == "backward end":
        parts["gradients"] = max(states.grads, grads_live)
        parts["gather_buffers"] += root + gather + unit_grads
        parts["activations"] = working + kept / layers
    else:
        parts["gather_buffers"] += root
        parts["activations"] = kept
        parts["logits"] = loss.forward if phase == "forward" else loss.backward
    if phase.startswith("backward"):
        parts["dequantised"] = dequantised
    heights = {"activations": kept + working, "logits": max(loss.forward, loss.backward)}
    return _Peak(moments[phase], phase, parts, moments, heights)


def _final_norm(shape: Shape, recipe: Recipe, trained: bool) -> float:
    h, r, c = shape.hidden, recipe.residual, recipe.compute
    norm = r * h if recipe.fused_norm or not shape.rms else (4 + (c if trained else 0)) * h
    return norm + (c * h if trained else 0.0)  # a frozen head does not keep its input


def _gathered(
    job: Job, shape: Shape, recipe: Recipe, states: States, cut: Cut, first: bool, last: bool
) -> tuple[float, float, float, float]:
    """Gathered blocks, gathered root, a block's unsharded gradients, and the head's gradients alive with them."""
    block = (shape.block - shape.experts_block * (1 - 1 / job.ep)) / job.tp
    outside = (shape.embed * first + (shape.head * last)) / job.tp
    head = (shape.head or shape.embed) * last / job.tp
    trained = not job.is_adapter
    if cut.weights == 1:
        return 0.0, 0.0, 0.0, recipe.grad * head if trained else 0.0
    per = recipe.gather
    if recipe.quant:
        per = _quantised_share(shape, recipe)
    gather = per * block * recipe.gathered_units
    root = recipe.gather * outside if recipe.root_unsharded else 0.0
    unit_grads = recipe.gather * block if trained else 0.0
    if recipe.flat_frozen_grads:
        unit_grads += 2.0 * states.local_params
    root_grads = recipe.gather * head if trained else 0.0
    return gather, root, unit_grads, root_grads


def _widest(shape: Shape) -> int:
    """Entries of the largest linear layer: what 4-bit kernels unpack at once for a matrix product."""
    return max((linear.inputs * linear.outputs for linear in shape.linears), default=0)


def _quantised_share(shape: Shape, recipe: Recipe) -> float:
    return QUANT_BYTES[recipe.quant or "nf4"]


def _bill(job: Job, shape: Shape, recipe: Recipe, peak: _Peak) -> MemoryBill:
    live = peak.total + overhead.LIVE_FIXED_BYTES
    reserved = live * (1 + overhead.RESERVED_SHARE) + overhead.RESERVED_FIXED_BYTES
    context = overhead.CONTEXT_BYTES + (overhead.NCCL_BYTES if job.n_gpus > 1 else 0.0)
    card = reserved + context
    components = {name: value for name, value in peak.parts.items() if value or name in _ALWAYS}
    components["overhead"] = card - sum(components.values())
    return MemoryBill(
        peak_bytes=card, low_bytes=card * overhead.CARD_LOW, high_bytes=card * overhead.CARD_HIGH, live_bytes=live,
        reserved_bytes=reserved, components=components, phase=peak.phase, phases=peak.phases, host_ram_bytes=0.0,
        live_low=live * overhead.LIVE_LOW, live_high=live * overhead.LIVE_HIGH, convention=recipe.convention,
        states_bytes_per_param=recipe.weight + recipe.grad + recipe.master + 2 * recipe.state, heights=peak.heights,
    )  # fmt: skip


_ALWAYS = frozenset({"weights", "gradients", "optimizer_states", "activations", "logits"})
