"""A bus bandwidth that nccl-tests printed against what the cluster's links should give: fine, or which part fails.

Expected is ``tools.network.collectives.bus_bandwidth`` at the message size of the test; its range is what published
sweeps leave (evals/notes/network.md), and reaches down to a ring's half where two
nodes all-reduce, since NCCL takes ring or tree by its own tuning. Not seen: other jobs on the network, over-subscribed
switches, failed cables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from knowledge.types import Gpu
from tools.network.collectives import Op, bus_bandwidth
from tools.network.fabric import Fabric
from tools.result import Fact, SourceRef, ToolResult

SPREAD = 1.3  # either way: published sweeps of large messages lie at 0.81 to 1.28 of the modelled value
ONE_PORT = 1.5  # ports' worth up to which one port, or none, is likely all that is used
Judgement = Literal["below", "within", "above"]
_PERFORMANCE = SourceRef(
    id="nccl-tests-performance", title="nccl-tests: performance definitions of algbw and busbw", as_of="2026-08-01",
    url="https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md",
)  # fmt: skip
_OPS: dict[Op, str] = {
    "all_reduce": "all-reduce", "all_gather": "all-gather", "reduce_scatter": "reduce-scatter",
    "all_to_all": "all-to-all", "send": "send",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Test:
    """What was run: ``seen`` in bytes/s as printed, ``message`` in bytes, ``ports`` of a node."""

    op: Op
    seen: float
    message: float
    n_gpus: int
    ports: int


def expected_range(test: Test, fabric: Fabric) -> tuple[float, float, float]:
    """(low, expected, high) bus bandwidth of the test on these links, bytes/s."""
    per_node = min(fabric.gpus_per_node, test.n_gpus)
    middle = bus_bandwidth(test.op, test.message, test.n_gpus, per_node, fabric)
    ring = 0.5 if test.op == "all_reduce" and fabric.nodes(test.n_gpus) == 2 else 1.0
    return middle * ring / SPREAD, middle, middle * SPREAD


def say_busbw(result: ToolResult, test: Test, gpu: Gpu, fabric: Fabric) -> Judgement:
    """Write verdict, facts and what to look at; returns below, within or above."""
    low, middle, high = expected_range(test, fabric)
    nodes, about = fabric.nodes(test.n_gpus), [gpu.id]
    judgement: Judgement = "below" if test.seen < low else "above" if test.seen > high else "within"
    rate = fabric.inter_bytes_per_s if nodes > 1 else fabric.intra_bytes_per_s
    link = fabric.inter_name if nodes > 1 else fabric.intra_name
    result.facts += [
        Fact(id="measured_busbw", name="measured_busbw", value=test.seen, unit="B/s", kind="quoted", about=about,
             label="bus bandwidth measured"),
        Fact(id="expected_busbw", name="expected_busbw", value=middle, low=low, high=high, unit="B/s", about=about,
             label="bus bandwidth expected", basis=f"{_OPS[test.op]} over {test.n_gpus} GPUs, {link}"),
        Fact(id="of_expected", name="of_expected", value=test.seen / middle * 100, unit="%", about=about,
             label="of what is expected"),
        Fact(id="link_rate", name="link_rate", value=rate, unit="B/s", kind="exact", about=about,
             label="nominal rate of the link, a GPU, one way", basis=link),
        Fact(id="message", name="message", value=test.message, unit="B", kind="exact", label="message of the test"),
    ]  # fmt: skip
    if nodes > 1:
        result.facts.append(
            Fact(id="n_nodes", name="n_nodes", value=nodes, unit="nodes", kind="exact", label="machines")
        )
    machines = "[[n_nodes]]" if nodes > 1 else "one machine"
    where = f"over {test.n_gpus}× {gpu.id} in {machines} ({link})"
    expected = f"[[expected_busbw]] ([[expected_busbw|range]]) of an {_OPS[test.op]} {where}"
    opening = {
        "within": "Yes, [[measured_busbw]] of bus bandwidth is what these links give: expect",
        "below": "No, [[measured_busbw]] of bus bandwidth is low, [[of_expected]] of what to expect:",
        "above": "[[measured_busbw]] of bus bandwidth is more than I expect, which is",
    }[judgement]
    result.verdict = f"{opening} {expected}."
    if judgement == "below":
        result.next_steps = _look(result, test, fabric, nodes, middle)
    elif judgement == "within" and test.seen < middle / SPREAD:
        result.next_steps = [
            "It is a ring's rate over two machines; a tree reaches [[expected_busbw]]. NCCL_DEBUG=INFO says which was "
            "taken; NCCL_ALGO=Tree (NVLSTree from Hopper on) tries the other. A link at half its rate looks the same."
        ]
    elif judgement == "above":
        result.next_steps = ["Check that the link and the ports are as assumed below, and that it is busbw, not algbw."]
    result.sources.append(_PERFORMANCE)
    result.suggestions = ["Do I need InfiniBand for this job?", "What is bus bandwidth?"]
    return judgement


def _look(result: ToolResult, test: Test, fabric: Fabric, nodes: int, middle: float) -> list[str]:
    """Where to look, the likeliest first."""
    steps = []
    if nodes > 1:
        worth = test.ports * test.seen / middle
        result.facts.append(
            Fact(id="ports_worth", name="ports_worth", value=worth, label="ports that would carry this",
                 basis=f"{test.ports} ports a machine x measured over expected")
        )  # fmt: skip
        all_ports = "of the ports that a machine has" if test.ports > 1 else "of a machine's port"
        likely = ": NCCL likely uses a single port, or sockets" if worth < ONE_PORT and test.ports > 1 else ""
        steps.append(f"That is what [[ports_worth]] {all_ports} would carry{likely}.")
        steps.append(
            "Run with NCCL_DEBUG=INFO: NET/IB or the provider's plugin must be chosen, not NET/Socket, with every port "
            "listed (NCCL_IB_HCA names them), and GDRDMA beside each channel, else bytes go through host memory."
        )
        steps.append("Test one machine alone, then two, then all: the step that drops is the part that fails.")
        if fabric.inter_kind == "roce":
            steps.append(
                "On RoCE check priority flow control, the GID index (NCCL_IB_GID_INDEX) and the MTU on every switch."
            )
    else:
        steps.append(
            "nvidia-smi topo -m shows how each pair is joined: NV means NVLink, PHB and SYS cross the host; "
            "NCCL_P2P_DISABLE or PCIe access control (ACS) also force the host's way."
        )
    steps.append("Use messages of 1 GB and more: smaller ones show latency, not bandwidth.")
    return steps
