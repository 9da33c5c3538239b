"""The time of one step, whole: compute, pipeline bubble and exposed communication, from one formula each.

Compute comes from ``tools.throughput``, what a schedule leaves idle and what links leave exposed from here.
"""

from __future__ import annotations

from dataclasses import dataclass

from knowledge.types import Gpu
from tools.network.fabric import Fabric
from tools.network.model import Communication, communication, pipeline_bubble
from tools.network.volumes import Compression, CpKind
from tools.throughput import SoftwareClass, compute_seconds, software_of
from tools.workload import Job

INTERLEAVE = {"megatron": 6, "nemo": 6}  # virtual stages a GPU that these stacks' published recipes use


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one optimizer step."""

    compute: float
    bubble: float
    communication: Communication

    @property
    def exposed(self) -> float:
        """Communication that nothing hides."""
        return self.communication.exposed_seconds

    @property
    def total(self) -> float:
        """The whole step."""
        return self.compute + self.bubble + self.exposed

    @property
    def efficiency(self) -> float:
        """Share of a lone GPU's speed that each GPU keeps: compute over the whole step."""
        return self.compute / self.total


def step_time(
    job: Job,
    gpu: Gpu,
    fabric: Fabric,
    software: SoftwareClass | None = None,
    sequence_parallel: bool = True,
    cp_kind: CpKind = "ring",
    compression: Compression = "none",
    interleave: int | None = None,
    overlap: bool = True,
) -> StepTime:
    """The modelled step of ``job`` on this fabric."""
    compute = compute_seconds(job, gpu, software_of(job.framework, software))
    virtual = interleave or min(INTERLEAVE.get(job.framework, 1), max(1, job.arch.n_layers // max(1, job.pp)))
    bubble = compute * pipeline_bubble(job, virtual)
    moved = communication(job, gpu, fabric, compute, sequence_parallel, cp_kind, compression, overlap)
    return StepTime(compute, bubble, moved)
