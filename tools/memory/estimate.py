"""The estimate: the fullest pipeline stage's largest phase, what the allocator and the driver add, the host's share."""

from __future__ import annotations

from tools.memory import overhead
from tools.memory.bill import MemoryBill
from tools.memory.inference import estimate_inference
from tools.memory.phases import Peak, stage_peak
from tools.memory.profiles import recipe_for
from tools.memory.recipe import Recipe
from tools.memory.shapes import Shape, shape_of
from tools.memory.states import cut_of, host_bytes
from tools.workload import Job


def estimate(job: Job, recipe: Recipe | None = None) -> MemoryBill:
    """The memory bill of a job; ``recipe`` overrides the framework's conventions."""
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
    return MemoryBill(
        peak_bytes=card, low_bytes=card * overhead.CARD_LOW, high_bytes=card * overhead.CARD_HIGH, live_bytes=live,
        reserved_bytes=reserved, components=components, phase=peak.phase, phases=peak.phases,
        host_ram_bytes=host_bytes(job, shape), live_low=live * overhead.LIVE_LOW, live_high=live * overhead.LIVE_HIGH,
        convention=recipe.convention, heights=peak.heights,
        states_bytes_per_param=recipe.weight + recipe.grad + recipe.master + 2 * recipe.state,
    )  # fmt: skip


_ALWAYS = frozenset({"weights", "gradients", "optimizer_states", "activations", "logits"})
