"""Communication of a training step beside its compute: what hides, what is left exposed, on which link.

Traffic of the data-parallel groups runs beside compute: weights gathered for the forward pass hide under forward
compute, gradients under backward compute, each up to a calibrated share; without gradient accumulation the last
bucket and the first layer's weights never hide. Tensor, context (beyond attention) and expert traffic sits between
the layers that need it, so it is exposed save for what pipelined kernels hide. Waiting for the slowest of many nodes
grows with their logarithm. What hides still slows compute a little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from knowledge.types import Gpu
from tools.network import constants as fit
from tools.network.collectives import collective_seconds
from tools.network.fabric import Fabric
from tools.network.volumes import Axis, Compression, CpKind, Traffic, traffic
from tools.workload import Job

PIPELINED_KERNELS = ("megatron", "nemo", "torchtitan", "maxtext")


@dataclass(frozen=True, slots=True)
class Ways:
    """How a stack communicates: what a comparison of links and schedules varies."""

    sequence_parallel: bool = True
    cp_kind: CpKind = "ring"
    compression: Compression = "none"
    overlap: bool = True  # False: it communicates after computing


AS_USUAL = Ways()


@dataclass(frozen=True, slots=True)
class LinkUse:
    """One row of the bill: what, over which link, how many bytes a GPU sends a step, how long, how much of it shows."""

    axis: Axis
    what: str
    op: str
    members: int
    intra_bytes: float
    inter_bytes: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Communication:
    """The communication of one optimizer step of one GPU."""

    uses: tuple[LinkUse, ...]
    total_seconds: float
    exposed_seconds: float  # on top of compute, stragglers and contention included
    intra_bytes: float
    inter_bytes: float
    by_axis: dict[str, float]  # exposed seconds: data, tensor, context, expert, pipeline, waiting, contention

    def efficiency(self, compute_seconds: float) -> float:
        """Compute over compute and exposed communication: the share (0 to 1) of the GPUs' speed that is kept; 0 without
        compute.
        """
        return compute_seconds / (compute_seconds + self.exposed_seconds) if compute_seconds > 0 else 0.0


def communication(job: Job, gpu: Gpu, fabric: Fabric, compute_seconds: float, ways: Ways = AS_USUAL) -> Communication:
    """Bytes and seconds that one GPU's step moves, and what of it is not hidden under ``compute_seconds`` of busy time.
    Overlap, stragglers and contention are fitted constants; volumes by ``traffic``.
    """
    items = traffic(job, fabric, ways.sequence_parallel, ways.cp_kind, ways.compression)
    uses = tuple(_use(item, fabric) for item in items)
    exposed = _exposed(job, fabric, items, [use.seconds for use in uses], compute_seconds, ways.overlap)
    return Communication(
        uses=uses,
        total_seconds=sum(use.seconds for use in uses),
        exposed_seconds=sum(exposed.values()),
        intra_bytes=sum(use.intra_bytes for use in uses),
        inter_bytes=sum(use.inter_bytes for use in uses),
        by_axis=exposed,
    )


def exposed_by_axis(job: Job, fabric: Fabric, compute_seconds: float, ways: Ways = AS_USUAL) -> dict[str, float]:
    """Exposed seconds by axis, ``communication(...).by_axis`` alone, for searches that time many layouts."""
    items = traffic(job, fabric, ways.sequence_parallel, ways.cp_kind, ways.compression)
    return _exposed(job, fabric, items, [_seconds(item, fabric) for item in items], compute_seconds, ways.overlap)


def pipeline_bubble(job: Job, interleave: int = 1) -> float:
    """Idle over busy time of a 1F1B schedule: (stages - 1) / (micro-batches x interleave) (Narayanan et al. 2021,
    arXiv:2104.04473, section 2.2).
    """
    return (job.pp - 1) / (max(1, job.grad_accum) * max(1, interleave))


def _use(item: Traffic, fabric: Fabric) -> LinkUse:
    inside, outside = item.wire()
    return LinkUse(item.axis, item.what, item.op, item.members, inside, outside, _seconds(item, fabric))


def _seconds(item: Traffic, fabric: Fabric) -> float:
    return item.calls * collective_seconds(item.op, item.payload, item.members, item.per_node, fabric)


def _exposed(
    job: Job, fabric: Fabric, items: list[Traffic], times: list[float], compute: float, overlap: bool
) -> dict[str, float]:
    backward_share = 0.0 if job.task == "inference" else (0.75 if job.checkpointing == "full" else 2 / 3)
    if job.is_adapter:  # no weight gradients of the base: backward costs as much as forward, plus recomputation
        backward_share = 2 / 3 if job.checkpointing == "full" else 0.5
    windows = {"forward": compute * (1 - backward_share), "backward": compute * backward_share}
    data = {"forward": 0.0, "backward": 0.0, "step": 0.0}
    unhidden = 0.0
    by_axis = dict.fromkeys(("tensor", "context", "expert", "pipeline"), 0.0)
    for item, seconds in zip(items, times, strict=True):
        if item.axis == "data":
            data[item.phase] += seconds
            if item.calls >= 1:  # the first gather and the last reduction of a step have nothing to hide under
                unhidden += seconds / item.calls
        elif item.axis == "tensor" and job.framework in PIPELINED_KERNELS:
            by_axis["tensor"] += seconds * (1 - fit.TENSOR_OVERLAP)
        elif item.axis == "context":
            by_axis["context"] += max(0.0, seconds - fit.CONTEXT_OVERLAP * windows[item.phase])
        else:
            by_axis[item.axis] += seconds
    # Gradients that are reduced once a step hide in the last micro-batch's backward pass, or the last of a pipeline's
    # stages; updated weights in the first ones' forward pass.
    ends = min(1.0, job.pp / max(1, job.grad_accum))
    if job.sharding in ("none", "ddp", "zero1") or job.pp > 1:
        windows["backward"] *= ends
    if data["step"]:
        windows["forward"] *= ends
    data["forward"] += data["step"]
    shown = hidden = 0.0
    for phase in ("forward", "backward"):
        room = fit.OVERLAP * windows[phase] if overlap else 0.0
        shown += max(0.0, data[phase] - room)
        hidden += min(data[phase], room)
    nodes = fabric.nodes(job.n_gpus)
    by_axis["data"] = max(shown, min(unhidden, sum(data.values())))
    by_axis["contention"] = fit.CONTENTION * hidden
    by_axis["fixed"] = fit.STEP_SECONDS if job.n_gpus > 1 else 0.0
    by_axis["waiting"] = fit.STRAGGLER_PER_DOUBLING * math.log2(nodes) * compute if nodes > 1 else 0.0
    return by_axis
