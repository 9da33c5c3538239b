"""The phases of one training step on one pipeline stage's GPU, each the sum of what is alive then.

    forward        states + kept activations + logits
    loss           states + kept activations + the loss's backward
    backward       states + kept activations + one block recomputed with its working set
    backward end   states + all gradients + the last block's working set
    step           states + all gradients + the optimizer's temporary
    generation     states + the key-value cache (GRPO, PPO)

The peak is the largest of them, never their sum: activations are gone when the optimizer steps, and the loss is gone
when the first block goes backward. Sharded weights add the blocks gathered for use, frozen models of DPO, GRPO and PPO
stay throughout.
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.memory.activations import BlockCost, block_cost
from tools.memory.loss import LossCost, loss_cost
from tools.memory.methods import Extras, extras_of, generation_bytes
from tools.memory.recipe import QUANT_BYTES, Recipe
from tools.memory.shapes import Shape
from tools.memory.states import Cut, States, stage_layers, states_of
from tools.workload import Job

DECODER = 1.5  # a decoder block with cross-attention keeps about half as much again as an encoder block
ASR_FRAMES = 1500  # Whisper's encoder sees 30 s of audio as 1,500 positions (Radford et al. 2022, section 2.2)


@dataclass(frozen=True, slots=True)
class Peak:
    """The largest phase of a stage, its parts, and every phase's bytes."""

    total: float
    phase: str
    parts: dict[str, float]
    phases: dict[str, float]
    heights: dict[str, float]


def stage_peak(job: Job, shape: Shape, recipe: Recipe, cut: Cut, first: bool, last: bool) -> Peak:
    """The phases, in bytes on one GPU, of the first, the last or (both true) the only pipeline stage, and the parts of
    the largest. A pipeline's stages between are smaller than its ends.
    """
    adapter, extras = job.is_adapter, extras_of(job)
    states = states_of(job, shape, recipe, cut, first, last)
    block = block_cost(
        job.arch, recipe, job.lora_targets if adapter else (), not adapter, job.checkpointing, job.attention,
        job.lora_rank, job.tp,
    )  # fmt: skip
    tokens = job.micro_batch * extras.sequences * job.seq_len / job.cp
    kept, working, bottom = _activations(job, shape, recipe, block, tokens, first, last)
    loss = _loss(job, shape, recipe, extras, tokens, last)
    buffers = _gathered(job, shape, recipe, states, cut, first, last)
    reference = extras.frozen_models * 2.0 * states.local_params / cut.weights if not adapter else 0.0
    twin = extras.trained_models
    early_grads = twin * states.grads if recipe.grads_persist or job.grad_accum > 1 else 0.0
    all_grads = twin * states.grads
    # DistributedDataParallel keeps its buckets beside the gradients they are copied from.
    bucket = recipe.bucket + (all_grads if job.sharding == "ddp" and job.n_gpus > 1 else 0.0)
    fixed = twin * (states.weights + states.optimizer) + states.adapters + bucket + reference
    base = fixed + buffers.root + early_grads
    head_grads = buffers.head_grads if not early_grads else 0.0
    # Autocast caches every cast until the forward pass ends; the graph keeps them until backward has used them, unless
    # blocks are recomputed.
    late_casts = buffers.casts if job.checkpointing == "none" else buffers.block_casts
    going_back = base + buffers.blocks + buffers.block_grads + buffers.dequantised + working
    phases = {
        "forward": base + buffers.casts + kept + loss.forward,
        "loss": base + late_casts + kept + loss.backward,
        "backward": going_back + late_casts + kept + head_grads,
        "backward end": going_back + buffers.block_casts + bottom + max(0.0, all_grads - early_grads),
        "step": fixed + all_grads + twin * states.step_temp,
    }
    if extras.generates:
        phases["generation"] = fixed + buffers.root + buffers.blocks + generation_bytes(job, shape, extras)
    phase = max(phases, key=phases.__getitem__)
    parts = {
        "weights": twin * states.weights,
        "adapters": states.adapters,
        "reference_model": reference,
        "gradients": early_grads,
        "optimizer_states": twin * states.optimizer,
        "activations": kept,
        "logits": 0.0,
        "kv_cache": 0.0,
        "gather_buffers": bucket + buffers.root,
        "weight_casts": late_casts,
        "dequantised": 0.0,
        "optimizer_temporary": 0.0,
    }
    parts |= _of_phase(phase, job, shape, extras, buffers, loss, bucket)
    if phase == "step":
        parts |= {"gradients": all_grads, "optimizer_temporary": twin * states.step_temp}
    elif phase == "backward":
        parts |= {"gradients": early_grads + head_grads, "activations": kept + working}
    elif phase == "backward end":
        parts |= {"gradients": max(all_grads, early_grads), "activations": bottom + working}
    heights = {"activations": kept + working, "logits": max(loss.forward, loss.backward)}
    return Peak(phases[phase], phase, parts, phases, heights)


def _of_phase(
    phase: str, job: Job, shape: Shape, extras: Extras, buffers: _Buffers, loss: LossCost, bucket: float
) -> dict[str, float]:
    """Parts that belong to one phase whatever the states are."""
    if phase == "forward":
        return {"logits": loss.forward, "weight_casts": buffers.casts}
    if phase == "loss":
        return {"logits": loss.backward}
    if phase == "step":
        return {"activations": 0.0, "weight_casts": 0.0, "gather_buffers": bucket}
    gathered = bucket + buffers.root + buffers.blocks
    if phase == "generation":
        cache = generation_bytes(job, shape, extras)
        return {
            "activations": 0.0, "gradients": 0.0, "weight_casts": 0.0, "kv_cache": cache, "gather_buffers": gathered,
        }  # fmt: skip
    found = {"gather_buffers": gathered + buffers.block_grads, "dequantised": buffers.dequantised}
    return found | ({"weight_casts": buffers.block_casts} if phase == "backward end" else {})


def _activations(
    job: Job, shape: Shape, recipe: Recipe, block: BlockCost, tokens: float, first: bool, last: bool
) -> tuple[float, float, float]:
    """What all blocks keep, what the block going backward needs beyond its share of that, and that share."""
    dense, experts = stage_layers(shape, job, first)
    square = block.kept_square * job.seq_len
    per_token = dense * (block.kept_dense + square) + experts * (block.kept_experts + square)
    flights = 1
    if job.pp > 1 and first:  # 1F1B: the first stage holds as many micro-batches as there are stages
        flights = min(job.pp, job.grad_accum) if job.grad_accum > 1 else job.pp
    count = tokens
    if job.arch.modality == "asr":
        count = job.micro_batch * (ASR_FRAMES + DECODER * job.seq_len)
    elif job.arch.family == "t5":
        count = tokens * (1 + DECODER)
    kept = count * per_token * flights
    if last:
        kept += tokens * _final_norm(shape, recipe, not job.is_adapter) / job.tp
        if not recipe.tp_regather:
            kept += tokens * recipe.compute * shape.hidden * (1 - 1 / job.tp)  # the head's input, gathered
    if recipe.explicit_mask:
        kept += tokens * job.seq_len
    height = max(
        block.mlp_height + block.mlp_height_square * job.seq_len,
        block.attention_height + block.attention_height_square * job.seq_len,
    )
    # Of the block that goes backward first, part is already among the kept ones; under full checkpointing its input is
    # beside what it recomputes.
    block_input = recipe.residual * shape.hidden / job.tp
    on_host = recipe.inputs_on_host and job.checkpointing == "full"
    if on_host:
        height += block_input  # fetched back
    already = 0.0 if job.checkpointing == "full" else (block.kept_experts if experts else block.kept_dense) + square
    working = count * max(0.0, height - already)
    if job.checkpointing == "full":
        working += tokens * recipe.extra_inputs * recipe.compute * shape.hidden / job.tp * (dense + experts)
    return kept, working, count * (already + (0.0 if on_host else block_input))


def _final_norm(shape: Shape, recipe: Recipe, trained: bool) -> float:
    h, r, c = shape.hidden, recipe.residual, recipe.compute
    norm = r * h if recipe.fused_norm or not shape.rms else (4 + (c if trained else 0)) * h
    return norm + (c * h if trained else 0.0)  # a frozen head does not keep its input


def _loss(job: Job, shape: Shape, recipe: Recipe, extras: Extras, tokens: float, last: bool) -> LossCost:
    if not last or not extras.has_logits or (job.arch.modality in ("encoder", "diffusion") and job.arch.family != "t5"):
        return LossCost(0.0, 0.0, 0.0)
    return loss_cost(shape, recipe, tokens, job.tp, not job.is_adapter, extras.no_grad_passes)


@dataclass(frozen=True, slots=True)
class _Buffers:
    blocks: float = 0.0  # gathered blocks
    root: float = 0.0  # gathered embeddings, head and final norm
    block_grads: float = 0.0  # a block's gradients before they are reduced and cut
    head_grads: float = 0.0
    casts: float = 0.0  # bf16 copies that autocast keeps of fp32 weights
    block_casts: float = 0.0  # those of the head and of one block
    dequantised: float = 0.0


def _gathered(job: Job, shape: Shape, recipe: Recipe, states: States, cut: Cut, first: bool, last: bool) -> _Buffers:
    trained = not job.is_adapter
    head = (shape.head or shape.embed) * last / job.tp
    autocast = recipe.autocast and not recipe.quant
    casts = 2.0 * states.local_params if autocast else 0.0
    block_casts = min(casts, 2.0 * (shape.block / job.tp + head)) if autocast else 0.0
    dequantised = 2.0 * shape.widest / job.tp if recipe.quant else 0.0
    if cut.weights == 1:
        widest = shape.widest * (2 if recipe.wgrad and shape.gated else 1) / job.tp  # Megatron fuses gate and up
        own = (recipe.wgrad or recipe.grad) * widest if trained else 0.0
        return _Buffers(
            block_grads=own,
            head_grads=recipe.grad * head if trained else 0.0,
            casts=casts,
            block_casts=block_casts,
            dequantised=dequantised,
        )
    block = (shape.block - shape.experts_block * (1 - 1 / job.ep)) / job.tp
    per = QUANT_BYTES[recipe.quant] if recipe.quant else recipe.gather
    outside = (shape.embed * first + shape.head * last) / job.tp
    root = recipe.gather * outside if recipe.root_unsharded else 0.0
    blocks = per * block * recipe.gathered_units
    if not recipe.reshard or job.pp > 1:
        blocks = 0.0
        root = recipe.gather * states.local_params
    if recipe.live_params:
        blocks = per * min(recipe.live_params, states.local_params)
    grads = recipe.gather * block if trained else 0.0
    if trained and job.pp > 1:
        # FSDP under a pipeline keeps its stage gathered, and the gradients whole until the last micro-batch.
        grads = recipe.grad * states.local_params
    if recipe.flat_frozen_grads:
        grads += 2.0 * states.local_params
    head_grads = recipe.gather * head if trained else 0.0
    return _Buffers(blocks, root, grads, head_grads, casts, block_casts, dequantised)
