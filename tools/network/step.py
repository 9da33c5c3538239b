"""The time of one step, whole: compute, pipeline bubble, exposed communication and offload, as one formula.

The same terms and coefficients as ``tools.throughput.estimate_throughput``, so that speed and scaling agree to the
last digit; here with the ways to communicate that a comparison of links and layouts varies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from knowledge.types import Gpu
from tools.network.fabric import Fabric
from tools.network.model import Communication, communication
from tools.network.volumes import Compression, CpKind
from tools.throughput import SoftwareClass, software_of
from tools.throughput.efficiency import AXES, coefficients, compute_bits
from tools.throughput.model import busy, combine
from tools.throughput.terms import work
from tools.workload import Job


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one optimizer step."""

    compute: float
    bubble: float
    communication: Communication
    offload: float = 0.0

    @property
    def exposed(self) -> float:
        """Communication that nothing hides."""
        return self.communication.exposed_seconds

    @property
    def total(self) -> float:
        """The whole step."""
        return self.compute + self.bubble + self.exposed + self.offload

    @property
    def efficiency(self) -> float:
        """Share of a lone GPU's speed that each GPU keeps: compute over the whole step, offload aside."""
        return self.compute / (self.total - self.offload)


def step_time(
    job: Job,
    gpu: Gpu,
    fabric: Fabric,
    software: SoftwareClass | None = None,
    sequence_parallel: bool = True,
    cp_kind: CpKind = "ring",
    compression: Compression = "none",
    overlap: bool = True,
) -> StepTime:
    """The modelled step of ``job`` on this fabric."""
    chosen = software_of(job.framework, software)
    bits = compute_bits(job.precision, gpu, trained_base=job.method != "qlora")
    terms = work(job, gpu)
    rate = coefficients(gpu, job, bits, chosen, fabric.intra_kind.startswith("pcie"))
    tokens = job.tokens_per_step / job.n_gpus
    parts = combine(terms, rate, (0.0,) * len(AXES))
    compute = busy(terms, rate).compute * tokens
    moved = communication(job, gpu, fabric, compute, sequence_parallel, cp_kind, compression, overlap)
    shown = {axis: share * moved.by_axis.get(axis, 0.0) for axis, share in zip(AXES, rate.exposed, strict=True)}
    shown = {axis: seconds for axis, seconds in shown.items() if axis in moved.by_axis}
    return StepTime(
        compute=compute,
        bubble=parts.bubble * tokens,
        communication=replace(moved, by_axis=shown, exposed_seconds=sum(shown.values())),
        offload=parts.offload * tokens,
    )
