"""The same job over other links: a ladder from cheap to dear, and the first rung that keeps the speed asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from knowledge.types import Gpu
from tools.network.fabric import Fabric, IntraKind, fabric_for
from tools.network.model import AS_USUAL, Ways
from tools.network.step import StepTime, step_time
from tools.throughput import SoftwareClass
from tools.workload import Job

# Cheap to dear: one shared port a node, then one port a GPU. InfiniBand first at each rate; RoCE and EFA of the same
# rate stand beside it.
BETWEEN_NODES = (
    ("10GbE", "10GbE, one port a node"),
    ("25GbE", "25GbE, one port a node"),
    ("100GbE", "100GbE, one port a node"),
    ("2x100GbE", "2 x 100GbE a node"),
    ("RoCE 100 per GPU", "RoCE 100 Gbit/s a GPU"),
    ("RoCE 200 per GPU", "RoCE 200 Gbit/s a GPU"),
    ("HDR", "InfiniBand HDR, 200 Gbit/s a GPU"),
    ("RoCE 400 per GPU", "RoCE 400 Gbit/s a GPU"),
    ("NDR", "InfiniBand NDR, 400 Gbit/s a GPU"),
    ("XDR", "InfiniBand XDR, 800 Gbit/s a GPU"),
)
NEEDS_RDMA_FROM = 4  # rungs from here up are RDMA fabrics with a port a GPU
UNLIMITED = 1e15


@dataclass(frozen=True, slots=True)
class Options:
    """Whose stack, and how it communicates; the same for every link compared."""

    software: SoftwareClass | None = None
    ways: Ways = AS_USUAL


@dataclass(frozen=True, slots=True)
class Rung:
    """One link, what the job does over it, and the share of an unlimited link's speed that it keeps."""

    name: str
    fabric: Fabric
    step: StepTime
    kept: float
    rdma: bool


def timed(job: Job, gpu: Gpu, fabric: Fabric, options: Options) -> StepTime:
    """Seconds of one step of the job over ``fabric``, by cause; modelled by ``tools.throughput.model``."""
    return step_time(job, gpu, fabric, options.software, options.ways)


def kept_share(job: Job, gpu: Gpu, fabric: Fabric, options: Options, inside: bool) -> float:
    """Speed over ``fabric`` relative to the same machines with an unlimited link (``inside`` or between
    nodes), 0 to 1.
    """
    return _ideal(job, gpu, fabric, options, inside).total / timed(job, gpu, fabric, options).total


def _ideal(job: Job, gpu: Gpu, fabric: Fabric, options: Options, inside: bool) -> StepTime:
    if inside:
        unlimited = replace(fabric, intra_kind="nvswitch", intra_bytes_per_s=UNLIMITED)
    else:
        unlimited = replace(fabric, inter_kind="infiniband", inter_bytes_per_s=UNLIMITED)
    return timed(job, gpu, unlimited, options)


def ladder(job: Job, gpu: Gpu, fabric: Fabric, options: Options) -> list[Rung]:
    """The job over every usual link: between nodes where there are several, else inside the one."""
    if fabric.nodes(job.n_gpus) == 1:
        return _inside(job, gpu, fabric, options)
    ideal = _ideal(job, gpu, fabric, options, inside=False).total  # the same beside every rung
    rungs = []
    for place, (asked, words) in enumerate(BETWEEN_NODES):
        found = fabric_for(gpu, job.n_gpus, fabric.gpus_per_node, inter_link=asked)[0]
        other = replace(
            fabric, inter_kind=found.inter_kind, inter_bytes_per_s=found.inter_bytes_per_s, inter_name=words
        )
        step = timed(job, gpu, other, options)
        rungs.append(Rung(words, other, step, ideal / step.total, place >= NEEDS_RDMA_FROM))
    return rungs


def cheapest(rungs: list[Rung], keep: float) -> Rung | None:
    """The first rung that keeps at least ``keep`` (0 to 1) of an unlimited link's speed; None where none does."""
    return next((rung for rung in rungs if rung.kept >= keep), None)


def _inside(job: Job, gpu: Gpu, fabric: Fabric, options: Options) -> list[Rung]:
    kinds: list[tuple[str, IntraKind, float]] = [
        ("PCIe 3.0 x16", "pcie", 15.76e9), ("PCIe 4.0 x16", "pcie", 31.5e9), ("PCIe 5.0 x16", "pcie", 63e9),
    ]  # fmt: skip
    if gpu.tier == "consumer":
        kinds = [(f"{name}, through host memory", "pcie-host", rate) for name, _kind, rate in kinds]
    own = gpu.pcie_bytes_per_s or 64e9
    kinds = [kind for kind in kinds if kind[2] <= own * 1.01]
    if gpu.nvlink_bytes_per_s and gpu.nvlink_note and job.n_gpus <= 2:
        kinds.append((f"NVLink {gpu.nvlink_generation} bridge", "nvlink-bridge", gpu.nvlink_bytes_per_s))
    elif gpu.nvlink_bytes_per_s and not gpu.nvlink_note:
        kinds.append((f"NVLink {gpu.nvlink_generation} + NVSwitch", "nvswitch", gpu.nvlink_bytes_per_s))
    elif gpu.scale_up_bytes_per_s:
        kinds.append((gpu.scale_up_kind or "scale-up link", fabric.intra_kind, gpu.scale_up_bytes_per_s))
    ideal = _ideal(job, gpu, fabric, options, inside=True).total
    rungs = []
    for name, kind, rate in kinds:
        other = replace(fabric, intra_kind=kind, intra_bytes_per_s=rate, intra_name=name)
        step = timed(job, gpu, other, options)
        rungs.append(Rung(name, other, step, ideal / step.total, "NVLink" in name))
    return rungs
