"""``check_interconnect``: will this job scale over these links, what would others give, and is InfiniBand needed?"""

from __future__ import annotations

from pydantic import Field, field_validator

from tools.network.alternatives import Options, Rung, cheapest, kept_share, ladder, timed
from tools.network.inputs import Cluster, ClusterInput, read_cluster
from tools.network.interconnect_words import write
from tools.network.model import Ways
from tools.network.step import StepTime
from tools.network.volumes import Compression, CpKind
from tools.registry import tool
from tools.result import ToolResult

_OWN = frozenset({"keep", "compression", "cp_kind", "sequence_parallel"})


class CheckInterconnectInput(ClusterInput):
    """A workload, its machines and their links."""

    keep: float = Field(
        default=0.9, gt=0, le=1, description="Share of an unlimited network's speed that the cheapest link must keep."
    )
    compression: Compression = Field(
        default="none", description="Gradients: bf16, int8, powersgd; diloco: exchanged once in 500 steps."
    )
    cp_kind: CpKind = Field(default="ring", description="Context parallelism by ring or all_to_all (Ulysses).")
    sequence_parallel: bool = Field(default=True, description="With tensor parallelism, as Megatron and torchtitan do.")

    @field_validator("keep", mode="before")
    @classmethod
    def _percent(cls, value: object) -> object:
        if isinstance(value, str) and value.strip().endswith("%"):
            return float(value.strip().rstrip("%")) / 100
        return value / 100 if isinstance(value, (int, float)) and 1 < value <= 100 else value


class CheckInterconnectResult(ToolResult):
    """Whether the links suffice, and the cheapest that does."""

    scaling_efficiency: float = Field(description="Each GPU's speed over that of one GPU with nothing to wait for.")
    speed_kept: float = Field(description="Speed over that with an unlimited link, as a fraction.")
    compute_seconds: float = Field(json_schema_extra={"unit": "s"})
    exposed_seconds: float = Field(json_schema_extra={"unit": "s"})
    intra_bytes_per_step: float = Field(json_schema_extra={"unit": "B"})
    inter_bytes_per_step: float = Field(json_schema_extra={"unit": "B"})
    cheapest_link: str | None = Field(default=None, description="The cheapest usual link that keeps what was asked.")
    infiniband_needed: bool = Field(description="Whether nothing below an RDMA fabric with a port a GPU suffices.")


@tool(
    "check_interconnect",
    examples=[
        {"model": "llama-3.1-70b", "sharding": "zero3", "gpu": "H100", "n_gpus": 16, "inter_link": "25GbE"},
        {"model": "llama-3.1-8b", "method": "lora", "gpu": "RTX 3090", "n_gpus": 2, "intra_link": "NVLink bridge"},
        {"model": "llama-3.1-8b", "instance": "p5.48xlarge", "n_gpus": 64},
    ],
)
def check_interconnect(given: CheckInterconnectInput) -> CheckInterconnectResult:
    """Will a job scale over its links: bytes a step, exposed communication, efficiency, the cheapest link that does.

    Scaling efficiency = compute / (compute + pipeline bubble + exposed communication). Exposed is what does not hide
    under compute; each collective takes latency + bytes / achieved bandwidth + pipelining, ring or tree, over NVLink
    inside and network ports between nodes. Not modelled: other tenants on the fabric, faulty cables, slow storage.
    """
    cluster = read_cluster(given, extra=_OWN)
    ways = Ways(given.sequence_parallel, given.cp_kind, given.compression)
    options = Options(cluster.software, ways)
    job, gpu, fabric = cluster.job, cluster.gpu, cluster.fabric
    step = timed(job, gpu, fabric, options)
    inside = fabric.nodes(job.n_gpus) == 1
    kept = kept_share(job, gpu, fabric, options, inside) if job.n_gpus > 1 else 1.0
    rungs = ladder(job, gpu, fabric, options) if job.n_gpus > 1 else []
    best = cheapest(rungs, given.keep)
    result = _result(cluster, step, kept, best, bool(rungs) and not inside and (best is None or best.rdma))
    write(result, cluster, step, kept, rungs, best, given.keep, options)
    return result


def _result(
    cluster: Cluster, step: StepTime, kept: float, best: Rung | None, infiniband: bool
) -> CheckInterconnectResult:
    return CheckInterconnectResult(
        assumptions=list(cluster.assumptions),
        scaling_efficiency=step.efficiency,
        speed_kept=kept,
        compute_seconds=step.compute,
        exposed_seconds=step.exposed,
        intra_bytes_per_step=step.communication.intra_bytes,
        inter_bytes_per_step=step.communication.inter_bytes,
        cheapest_link=best.name if best else None,
        infiniband_needed=infiniband,
    )
