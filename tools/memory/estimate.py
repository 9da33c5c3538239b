"""The estimate: the fullest pipeline stage's largest phase, what the allocator and the driver add, the host's share."""

from __future__ import annotations

from tools.memory import overhead
from tools.memory.bill import MemoryBill
from tools.memory.inference import estimate_inference
from tools.memory.phases import Peak, stage_peak
from tools.memory.profiles import recipe_for
from tools.memory.recipe import Recipe
from tools.memory.shapes import Shape, shape_of
from tools.memory.states import cut_of, host_bytes, moment_bytes
from tools.workload import Job


def estimate(job: Job, recipe: Recipe | None = None) -> MemoryBill:
    """The memory bill of a job, bytes on its fullest GPU (first or last pipeline stage); ``recipe`` overrides the
    framework's conventions. Low and high are a 90 % interval, wider for frameworks without measurements.
    """
    if job.task == "inference":
        return estimate_inference(job)
    if recipe is None:
        recipe = recipe_for(job)
    shape, cut = shape_of(job.arch), cut_of(job)
    peak = stage_peak(job, shape, recipe, cut, True, job.pp == 1)
    if job.pp > 1:
        last = stage_peak(job, shape, recipe, cut, False, True)
        peak = last if last.total > peak.total else peak
    return _bill(job, shape, recipe, peak)


def _bill(job: Job, shape: Shape, recipe: Recipe, peak: Peak) -> MemoryBill:
    live = peak.total + overhead.LIVE_FIXED_BYTES
    reserved = overhead.reserved_bytes(live, job.n_gpus)
    card = reserved + overhead.context_bytes(job.n_gpus)
    components = {name: value for name, value in peak.parts.items() if value or name in _ALWAYS}
    components["overhead"] = card - sum(components.values())
    low, high = card * overhead.CARD_LOW, card * overhead.CARD_HIGH
    live_low, live_high = live * overhead.LIVE_LOW, live * overhead.LIVE_HIGH
    if job.framework not in overhead.MEASURED_FRAMEWORKS:
        low, high = overhead.loose_interval(card, low, high)
        live_low, live_high = overhead.loose_interval(live, live_low, live_high)
    return MemoryBill(
        peak_bytes=card, low_bytes=low, high_bytes=high, live_bytes=live, reserved_bytes=reserved,
        components=components, phase=peak.phase, phases=peak.phases, host_ram_bytes=host_bytes(job, shape),
        live_low=live_low, live_high=live_high, convention=recipe.convention, heights=peak.heights,
        notes=_notes(job, shape),
        states_bytes_per_param=recipe.weight + recipe.grad + recipe.master
        + moment_bytes(job.optimizer, recipe.state, shape),
    )  # fmt: skip


def _notes(job: Job, shape: Shape) -> tuple[str, ...]:
    """What the figure leaves out or takes on, for this kind of model and method."""
    notes = [_MODALITY_NOTES[job.arch.modality]] if job.arch.modality in _MODALITY_NOTES else []
    if job.arch.modality == "diffusion" and not job.arch.hidden_size:
        notes = [
            "Weights, gradients and states only: the convolution shapes of this model are not held, so its activations "
            "are not modelled. They usually add several GB at 1024 x 1024 pixels, less with checkpointing."
        ]
    if job.arch.family == "t5":
        notes = ["Encoder and decoder are both counted with the sequence length."]
    if job.offload != "none":
        notes.append(
            "Host memory is that of training; while loading, each process may hold a copy of the weights of its own "
            "unless they are created on the meta device."
        )
    if job.method in _METHOD_NOTES:
        notes.append(_METHOD_NOTES[job.method] if not job.adapter else _ADAPTER_REFERENCE)
    if job.method == "qlora" and job.framework == "hf":
        notes.append(
            "peft's prepare_model_for_kbit_training (TRL's default) keeps embeddings, head and the residual stream in "
            "fp32: ask with framework=trl for that."
        )
    if job.is_adapter and shape.routed and not any("expert" in name or name in _MLP_NAMES for name in job.lora_targets):
        notes.append(
            "Adapters on attention and shared layers only; name gate_proj, up_proj, down_proj to adapt experts."
        )
    return tuple(notes)


_MLP_NAMES = frozenset({"gate_proj", "up_proj", "down_proj", "w1", "w2", "w3", "experts"})
_MODALITY_NOTES = {
    "vision-language": "Image tokens count in the sequence length; the vision tower's activations are not modelled.",
    "asr": "The encoder is counted with 1,500 audio positions a sample, the decoder with the sequence length.",
    "encoder": "A small task head is assumed, no vocabulary logits.",
    "diffusion": "Transformer blocks over seq_len latent tokens (1024 x 1024 pixels: 4,096 and the text); all parts of "
    "the pipeline are loaded, text encoders included.",
}
_METHOD_NOTES = {
    "dpo": "Chosen and rejected answers go through together: twice the tokens; a frozen reference model is loaded.",
    "kto": "A frozen reference model is loaded.",
    "grpo": "A frozen reference model is loaded (none is needed with beta=0); the cache of generation is counted, a "
    "colocated vLLM server's share is not.",
    "ppo": "Policy and value model are trained, reference and reward model are frozen, all of this size.",
}
_ADAPTER_REFERENCE = "The frozen base without its adapters serves as the reference: no second copy is loaded."
_ALWAYS = frozenset({"weights", "gradients", "optimizer_states", "activations", "logits"})
