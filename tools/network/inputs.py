"""Arguments that the tools about clusters share, and their reading: which job on which GPUs over which links."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pydantic import Field, field_validator

from knowledge.gpus import find_gpu, load_gpu
from knowledge.instances import find_instance
from knowledge.types import Gpu, Instance
from tools.errors import MissingValue
from tools.memory import estimate, verdict
from tools.network.fabric import Fabric, default_node_size, fabric_for
from tools.registry import parse_input
from tools.result import Assumption
from tools.throughput import SoftwareClass, software_of
from tools.usual_batch import at_usual_batch
from tools.workload import Job, WorkloadInput, resolve

DEFAULT_GPU = "H100-SXM5"
MICRO_BATCHES = (8, 4, 2)  # tried from large to small when none is given


class ClusterInput(WorkloadInput):
    """A workload and the machines it runs on."""

    gpu: str | None = Field(default=None, description="Card, e.g. 'H100', 'RTX 3090'; default the instance's or H100.")
    gpus_per_node: int | None = Field(
        default=None, ge=1, le=1024, description="GPUs a machine; default by GPU, often 8."
    )
    intra_link: str | None = Field(
        default=None, description="Link inside a node: NVLink, 'NVLink bridge', 'PCIe 4.0', or a rate a GPU, one way."
    )
    inter_link: str | None = Field(
        default=None,
        description="Network between nodes: NDR, 25GbE, 'RoCE 400', EFA, or a rate ('3200 Gb/s per node', '50 GB/s').",
    )
    instance: str | None = Field(default=None, description="Cloud machine, e.g. p5.48xlarge, a3-highgpu-8g.")
    nics_per_node: int | None = Field(default=None, ge=1, le=64, description="Ports of inter_link that a node has.")
    software: SoftwareClass | None = Field(
        default=None, description="Whose stack: tuned (vendor recipe), benchmark (published set-up), user (default)."
    )

    @field_validator("intra_link", "inter_link", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        return f"{value:g} Gb/s" if isinstance(value, (int, float)) and not isinstance(value, bool) else value


OWN_FIELDS = frozenset(ClusterInput.model_fields) - frozenset(WorkloadInput.model_fields)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A job, its GPUs, their links, and what was assumed about all three."""

    job: Job
    gpu: Gpu
    fabric: Fabric
    software: SoftwareClass
    assumptions: tuple[Assumption, ...]


def read_cluster(given: ClusterInput, extra: frozenset[str] = frozenset(), choose: bool = True) -> Cluster:
    """The job on its cluster; ``choose`` picks an unstated sharding of adapters, an unstated micro-batch, and for a
    pipeline, which needs several, passes a step that make up the usual global batch.
    """
    machine = _instance(given.instance)
    gpu, assumed = _gpu(given.gpu, machine)
    fields = given.model_dump(exclude_unset=True, exclude=set(OWN_FIELDS | extra))
    if given.n_gpus is None:
        count = _count(given, gpu, machine)
        shards = given.tp * given.pp * given.cp
        fields["n_gpus"] = -(-count // shards) * shards
        assumed.append(
            Assumption(name="n_gpus", value=fields["n_gpus"], unit="GPUs", why="no count was given", argument="n_gpus")
        )
    workload = parse_input(WorkloadInput, fields)
    assert isinstance(workload, WorkloadInput)
    job = resolve(workload)
    fabric, links = fabric_for(
        gpu, job.n_gpus, given.gpus_per_node, given.intra_link, given.inter_link,
        f"{machine.provider} {machine.instance_type}" if machine else None, given.nics_per_node,
    )  # fmt: skip
    notes = [*job.assumptions, *assumed, *links]
    if choose:
        job, notes = _chosen(given, job, gpu, notes)
        if job.pp > 1:
            job, batched = at_usual_batch(job, given.grad_accum)
            notes += batched
        elif given.grad_accum is None and job.n_gpus > 1:
            why = "one pass a step, the hardest case for the links; more passes a step exchange gradients less often"
            notes.append(Assumption(name="grad_accum", value=1, why=why, argument="grad_accum"))
    return Cluster(job, gpu, fabric, software_of(given.framework, given.software), tuple(notes))


def read_links(given: ClusterInput) -> tuple[Gpu, Fabric, int, list[Assumption]]:
    """The card, its links and how many GPUs, for a test that runs no model. Raises InputProblem for names not held and
    counts that do not fill the machines.
    """
    machine = _instance(given.instance)
    gpu, assumed = _gpu(given.gpu, machine)
    count = given.n_gpus or _count(given, gpu, machine)
    if given.n_gpus is None:
        assumed.append(Assumption(name="n_gpus", value=count, unit="GPUs", why="no count was given", argument="n_gpus"))
    fabric, links = fabric_for(
        gpu, count, given.gpus_per_node, given.intra_link, given.inter_link,
        f"{machine.provider} {machine.instance_type}" if machine else None, given.nics_per_node,
    )  # fmt: skip
    return gpu, fabric, count, [*assumed, *links]


def _instance(name: str | None) -> Instance | None:
    return find_instance(name).value if name else None


def _gpu(name: str | None, machine: Instance | None) -> tuple[Gpu, list[Assumption]]:
    if name:
        match = find_gpu(name)
        noted = [Assumption(name="gpu", value=match.value.id, why=match.note, argument="gpu")] if match.note else []
        return match.value, noted
    if machine is not None:
        if not machine.gpu_id:
            raise MissingValue(
                "missing_argument", f"{machine.provider} rents many cards: which one?", field="gpu", candidates=["H100"]
            )
        return load_gpu(machine.gpu_id), []
    why = "no GPU was named; the card most training runs rent"
    return load_gpu(DEFAULT_GPU), [Assumption(name="gpu", value=DEFAULT_GPU, why=why, argument="gpu")]


def _count(given: ClusterInput, gpu: Gpu, machine: Instance | None) -> int:
    node = given.gpus_per_node or (machine.n_gpus if machine else min(8, default_node_size(gpu)))
    if given.intra_link and not given.inter_link:
        return max(2, node)
    return 2 * node


def _chosen(given: ClusterInput, job: Job, gpu: Gpu, notes: list[Assumption]) -> tuple[Job, list[Assumption]]:
    changes: dict[str, Any] = {}
    if given.sharding is None and job.is_adapter and job.dp > 1:
        plain = replace(job, sharding="ddp")
        if verdict(estimate(plain), gpu) == "fits":
            job = plain
            changes["sharding"] = ("ddp", f"the frozen base fits one {gpu.id}: only adapters need exchanging")
    if given.micro_batch is None and job.task == "train":
        for size in MICRO_BATCHES:
            larger = replace(job, micro_batch=size)
            if verdict(estimate(larger), gpu) == "fits":
                job = larger
                changes["micro_batch"] = (size, f"the largest tried (up to {MICRO_BATCHES[0]}) that fits {gpu.id}")
                break
    kept = [note for note in notes if note.name not in changes]
    kept += [Assumption(name=name, value=value, why=why, argument=name) for name, (value, why) in changes.items()]
    return job, kept
