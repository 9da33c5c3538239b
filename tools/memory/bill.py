"""The bill: what the estimate returns, and whether it fits a card."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from knowledge.types import Gpu

Verdict = Literal["fits", "borderline", "does_not_fit"]
BORDERLINE = 0.10  # predictions this close to capacity are too close to call for any model of caching allocators


@dataclass(frozen=True, slots=True)
class MemoryBill:
    """Bytes per GPU, of the fullest one. ``components`` sum to ``peak_bytes``: what the card must hold.

    ``live_bytes`` are the tensors at the peak (torch max_memory_allocated), ``reserved_bytes`` what the caching
    allocator holds for them, ``peak_bytes`` that and the CUDA context with its libraries. ``phase`` names the moment
    of the peak: forward, loss, backward or step.
    """

    peak_bytes: float
    low_bytes: float
    high_bytes: float
    live_bytes: float
    reserved_bytes: float
    components: dict[str, float]
    phase: str
    phases: dict[str, float]
    host_ram_bytes: float
    live_low: float
    live_high: float
    convention: str = ""
    states_bytes_per_param: float = 0.0
    heights: dict[str, float] = field(default_factory=dict)  # activations and logits in their own worst phase
    notes: tuple[str, ...] = field(default=())


def verdict(bill: MemoryBill, gpu: Gpu) -> Verdict:
    """Whether the job fits the card's usable memory; within 10 % of it no model can say, so 'borderline'."""
    return verdict_bytes(bill.peak_bytes, gpu.usable_bytes)


def verdict_bytes(peak_bytes: float, usable_bytes: float) -> Verdict:
    """The same for any two byte counts of one GPU; ``usable_bytes`` must be above 0."""
    ratio = peak_bytes / usable_bytes
    if ratio <= 1 - BORDERLINE:
        return "fits"
    return "borderline" if ratio <= 1 + BORDERLINE else "does_not_fit"
