"""What to ask a provider about its fabric before signing, with the figure that this job needs."""

from __future__ import annotations

from tools.network.alternatives import Rung
from tools.network.inputs import Cluster
from tools.result import Column, Table

_ASK = (
    ("Which network between GPU nodes, how many ports a node, what rate a port?",
     "The rate a GPU decides, not the sheet's sum of both directions or of front-end ports."),
    ("Is GPUDirect RDMA on, and shown by nccl-tests?",
     "Without it bytes cross host memory, at a fraction of the port's rate."),
    ("Is the fabric rail-optimised and non-blocking, or oversubscribed, and by how much?",
     "1:2 oversubscription halves what all-to-all and large rings reach."),
    ("What do all_reduce_perf and alltoall_perf give at 1 GiB and at 16 MiB over our node count?",
     "Small messages reach a fraction of the large ones' rate; ask for both."),
    ("Are our nodes placed in one block, island or NVLink domain, and does that hold after a replacement?",
     "Hops between blocks add latency and share uplinks."),
    ("Is the storage and data-loading traffic on its own network?",
     "Checkpoints on the same ports stall the step."),
    ("Who monitors links (flaps, bit errors) and how fast is a bad node replaced?",
     "One slow link paces every GPU of a synchronous step."),
    ("Which NCCL, driver and firmware versions, and which NCCL settings do you recommend?",
     "Wrong interface, missing plugin (EFA, TCPX) or disabled peer-to-peer are the usual causes of a slow start."),
)  # fmt: skip


def question_table(cluster: Cluster, best: Rung | None) -> Table:
    """The checklist; the first three rows carry bytes/s a GPU and direction that the job needs, empty where ``best`` is
    None since no link suffices.
    """
    rate = best.fabric.inter_bytes_per_s if best else None
    needs: list[float | None] = [rate, rate, rate, None, None, None, None, None]
    rows: list[list[float | int | str | bool | None]] = [
        [ask, why, need] for (ask, why), need in zip(_ASK, needs, strict=True)
    ]
    return Table(
        id="fabric_questions",
        title=f"Questions to ask a provider of {cluster.gpu.id} nodes",
        columns=[
            Column(key="ask", label="ask"), Column(key="why", label="why it matters"),
            Column(key="need", label="this job needs, a GPU and direction", unit="B/s"),
        ],
        rows=rows,
    )  # fmt: skip
