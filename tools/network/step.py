"""A step in whole seconds by cause: compute, pipeline bubble, exposed communication by axis, offload.

The step is timed by ``tools.throughput.model``, the same that speed and cost come from; this is its view for links and
layouts, with the ways to communicate that they vary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from knowledge.types import Gpu
from tools.network.fabric import Fabric
from tools.network.model import AS_USUAL, Communication, Ways, communication
from tools.throughput import SoftwareClass, software_of
from tools.throughput.efficiency import AXES
from tools.throughput.model import modelled_step
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
        """Seconds of communication that no computation hides."""
        return self.communication.exposed_seconds

    @property
    def total(self) -> float:
        """Seconds of the whole optimizer step."""
        return self.compute + self.bubble + self.exposed + self.offload

    @property
    def efficiency(self) -> float:
        """Share (0 to 1) of a lone GPU's speed that each GPU keeps: compute over the whole step, offload aside."""
        return self.compute / (self.total - self.offload)


def step_time(
    job: Job, gpu: Gpu, fabric: Fabric, software: SoftwareClass | None = None, ways: Ways = AS_USUAL
) -> StepTime:
    """The modelled step of ``job`` on this fabric, in seconds by cause; software not told is that of the job's
    framework. By ``modelled_step``, the only place where a step is timed.
    """
    found = modelled_step(job, gpu, fabric, software_of(job.framework, software), ways=ways)
    tokens = job.tokens_per_step / job.n_gpus
    shown = {axis: seconds * tokens for axis, seconds in zip(AXES, found.exposed, strict=True)}
    moved = communication(job, gpu, fabric, found.parts.compute * tokens, ways)  # bytes and seconds by link
    shown = {axis: seconds for axis, seconds in shown.items() if axis in moved.by_axis}
    return StepTime(
        compute=found.parts.compute * tokens,
        bubble=found.parts.bubble * tokens,
        communication=replace(moved, by_axis=shown, exposed_seconds=sum(shown.values())),
        offload=found.parts.offload * tokens,
    )
