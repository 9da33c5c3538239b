"""What preference and reinforcement methods add: more sequences a sample, frozen models beside, logits kept, a cache.

DPO      chosen and rejected together, a frozen reference model (Rafailov et al. 2023)
ORPO     chosen and rejected, no reference (Hong et al. 2024); SimPO likewise
KTO      one completion and a mismatched one for the KL estimate, a reference (Ethayarajh et al. 2024)
reward   chosen and rejected through a scalar head: no logits at all
GRPO     a reference (when beta > 0) and the generation's key-value cache; no value model (Shao et al. 2024)
PPO      policy and value model trained, reference and reward model frozen, a generation cache (Ouyang et al. 2022)
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.memory.inference import cache_bytes
from tools.memory.shapes import Shape
from tools.workload import Job


@dataclass(frozen=True, slots=True)
class Extras:
    """Factors and bytes that a method adds on one GPU."""

    sequences: float = 1.0  # sequences through the trained model for each sample of the micro-batch
    frozen_models: float = 0.0  # whole frozen models beside the trained one
    trained_models: float = 1.0
    no_grad_passes: float = 0.0  # passes whose logits may stay alive
    has_logits: bool = True
    generates: bool = False


_EXTRAS: dict[str, Extras] = {
    "dpo": Extras(sequences=2, frozen_models=1, no_grad_passes=1),
    "orpo": Extras(sequences=2),
    "kto": Extras(sequences=1, frozen_models=1, no_grad_passes=3),
    "reward": Extras(sequences=2, has_logits=False),
    "grpo": Extras(frozen_models=1, no_grad_passes=1, generates=True),
    "ppo": Extras(frozen_models=2, trained_models=2, no_grad_passes=1, generates=True),
}
_NONE = Extras()


def extras_of(job: Job) -> Extras:
    """The method's extras; adapters need no second copy of the base as reference (switching them off gives it)."""
    return _EXTRAS.get(job.method, _NONE)


def generation_bytes(job: Job, shape: Shape, extras: Extras) -> float:
    """Bytes on one GPU of the key-value cache while a group's completions are generated, cut over the tensor-parallel
    group; training waits then. 0 for methods that generate nothing.
    """
    if not extras.generates:
        return 0.0
    group = max(job.micro_batch, job.group_size) / max(1, job.micro_batch)
    return cache_bytes(job, shape) * group / job.tp
