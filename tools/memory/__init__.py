"""The memory model: from a job to the bytes that each GPU must hold, by component and by phase of the step."""

from __future__ import annotations

from tools.memory.bill import MemoryBill, Verdict, verdict, verdict_bytes
from tools.memory.estimate import estimate
from tools.memory.profiles import recipe_for
from tools.memory.recipe import Recipe

__all__ = ["MemoryBill", "Recipe", "Verdict", "estimate", "recipe_for", "verdict", "verdict_bytes"]
