"""Seconds that a collective takes, from its bytes, its group and the links: latency, bandwidth and pipelining.

For a payload P over n GPUs, g of them in each of k nodes, with a the latency and x the transfer time of the slowest
link, a pipeline of equal segments takes at best a + x + 2·sqrt(a·x) (minimising (hops + segments)·(latency + time a
segment) over the number of segments); the weight of the last term is fitted. Transfer times:

- all-reduce inside a node, ring: 2(g-1)/g·P over the link (Patarasuk and Yuan 2009); in the switch where it can.
- all-reduce across nodes: every card of a node brings its port, so 2(n-1)/n·P/g a port for ring and tree; P/g with
  two nodes, where the tree sends each byte once a direction (why two-node bus bandwidth exceeds the ports' sum).
- all-gather and reduce-scatter: half of the ring all-reduce, n-1 hops long. P is the whole tensor.
- all-to-all: P·(g-1)/n inside and P·(n-g)/n through the port; P is what one GPU sends.

Bus bandwidth, as nccl-tests print it, is 2(n-1)/n·P/t for all-reduce: a ring's rate a GPU, not the wire's.
"""

from __future__ import annotations

import math
from typing import Literal

from tools.network import constants as fit
from tools.network.fabric import Fabric

Op = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"]


def collective_seconds(op: Op, payload: float, members: int, per_node: int, fabric: Fabric) -> float:
    """Seconds of one call on ``payload`` bytes (P in the module's docstring, with formulas and papers); ``per_node`` of
    the ``members`` share a node. 0 for one member or no bytes.
    """
    if members <= 1 or payload <= 0:
        return 0.0
    inside, outside = wire_bytes(op, payload, members, per_node)
    nodes = -(-members // per_node)
    latency = latency_seconds(op, members, per_node, nodes, fabric)
    transfer = 0.0
    if inside:
        transfer = inside / intra_rate(fabric, per_node, op, nodes)
    if outside:
        transfer = max(transfer, outside / (fabric.inter_bytes_per_s * fit.INTER[fabric.inter_kind]))
    if op in ("all_gather", "reduce_scatter"):  # the hops of a ring between nodes are its pipeline: nothing to add
        filling = 0.25 * (fit.LAUNCH_SECONDS + (min(per_node, members) - 1) * fit.INTRA_HOP_SECONDS)
        return latency + transfer + fit.PIPELINE * math.sqrt(filling * transfer)
    return latency + transfer + fit.PIPELINE * math.sqrt(latency * transfer)


def wire_bytes(op: Op, payload: float, members: int, per_node: int) -> tuple[float, float]:
    """Bytes that one GPU puts on its link inside the node, and on its port between nodes, in one direction; ``payload``
    in bytes (Patarasuk and Yuan 2009 for the ring; the module's docstring for the rest).
    """
    if members <= 1:
        return 0.0, 0.0
    g = min(per_node, members)
    nodes = -(-members // g)
    if op == "send":
        return (payload, 0.0) if nodes == 1 else (0.0, payload)
    if op == "all_to_all":
        return payload * (g - 1) / members, payload * (members - g) / members
    ring = (2.0 if op == "all_reduce" else 1.0) * (members - 1) / members * payload
    if nodes == 1:
        return ring, 0.0
    if op == "all_reduce" and nodes == 2:
        return (ring if g > 1 else 0.0), payload / g
    return (ring if g > 1 else 0.0), ring / g


def intra_rate(fabric: Fabric, per_node: int, op: Op, nodes: int = 1) -> float:
    """Achieved bytes/s of the link inside a node for a large message."""
    rate = fabric.intra_bytes_per_s
    if fabric.intra_kind == "xgmi":  # a mesh: two GPUs share one of seven links
        rate *= min(1.0, (per_node - 1) / 7)
    if op == "all_reduce" and in_switch(fabric, per_node):
        return rate * fit.IN_SWITCH
    return rate * fit.INTRA[fabric.intra_kind]


def in_switch(fabric: Fabric, per_node: int) -> bool:
    """Whether NVLink SHARP reduces in the switch: Hopper and later (450 GB/s a direction and up), 5 GPUs or more."""
    return fabric.intra_kind in ("nvswitch", "nvlink-rack") and fabric.intra_bytes_per_s >= 400e9 and per_node >= 5


def latency_seconds(op: Op, members: int, per_node: int, nodes: int, fabric: Fabric) -> float:
    """Seconds of launch plus hops, constants fitted: a tree's depth for all-reduce, the whole ring for gathers, one hop
    for a send.
    """
    hop = fit.INTER_HOP_SECONDS[fabric.inter_kind]
    if op == "send":
        return fit.LAUNCH_SECONDS / 2 + (hop if nodes > 1 else fit.INTRA_HOP_SECONDS)
    inside = (min(per_node, members) - 1) * fit.INTRA_HOP_SECONDS
    if op == "all_reduce":
        return fit.LAUNCH_SECONDS + 2 * inside + (2 * math.ceil(math.log2(nodes)) * hop if nodes > 1 else 0.0)
    if op == "all_to_all":
        return fit.LAUNCH_SECONDS + inside + (math.ceil(math.log2(nodes)) * hop if nodes > 1 else 0.0)
    return fit.LAUNCH_SECONDS + (nodes * (inside + hop) if nodes > 1 else inside)


def bus_bandwidth(op: Op, payload: float, members: int, per_node: int, fabric: Fabric) -> float:
    """What nccl-tests would print for this call, bytes/s (2(n-1)/n·P/t for all-reduce; nccl-tests doc/PERFORMANCE.md);
    ``payload`` is P in bytes. ZeroDivisionError for a call that takes no time: one member, or no bytes.
    """
    factor = {"all_reduce": 2.0 * (members - 1) / members, "send": 1.0}.get(op, (members - 1) / members)
    return factor * payload / collective_seconds(op, payload, members, per_node, fabric)
