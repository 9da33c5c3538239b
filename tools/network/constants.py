"""What links reach of their nominal rate and how traffic hides: fitted by ``evals.calibrate_network`` (links) and
``evals.calibrate_scaling`` (hiding and waiting), not by hand.

``RECALLED`` names the entries that no measurement of ours covers: they follow the nearest measured kind.
"""

from __future__ import annotations

# Fraction of the nominal one-way rate that large ring collectives reach inside a node.
INTRA: dict[str, float] = {
    "nvswitch": 0.81, "nvlink-rack": 0.76, "nvlink-mesh": 0.81, "nvlink-bridge": 0.40, "xgmi": 0.75,
    "roce-on-card": 0.75, "neuronlink": 0.60, "ici": 0.80, "pcie": 0.57, "pcie-host": 0.22, "none": 0.60,
}  # fmt: skip
# The same for all-reduce done in the switch (NVLink SHARP, Hopper and later, from 5 GPUs up); the bus-bandwidth
# convention counts ring bytes, so it can pass 1.
IN_SWITCH = 1.10
# Fraction of the nominal port rate between nodes. InfiniBand: 46-48 of 50 GB/s a port and 86 of 100 in a 16-GPU ring
# (NVIDIA/nccl-tests#290, NVIDIA/nccl#1048); RoCE: 600 of 800 Gbit/s called low by NCCL (NVIDIA/nccl#495).
INTER: dict[str, float] = {
    "infiniband": 0.90, "roce": 0.80, "efa": 0.94, "gcp-tcp": 0.70, "ethernet": 0.75, "none": 0.75,
}  # fmt: skip
LAUNCH_SECONDS = 16e-6  # a collective's fixed cost: kernel launch and the first flag
INTRA_HOP_SECONDS = 2.3e-6
# Seconds a hop between nodes: EFA measured; InfiniBand and RoCE between NCCL's own figures for its protocols (4 us for
# LL128, 14 for Simple: src/graph/tuning.cc); TCP recalled.
INTER_HOP_SECONDS: dict[str, float] = {
    "infiniband": 7e-6, "roce": 9e-6, "efa": 55e-6, "gcp-tcp": 60e-6, "ethernet": 60e-6, "none": 60e-6,
}  # fmt: skip
PIPELINE = 1.2  # weight of the pipelining term 2·sqrt(latency·transfer), 2 in theory with ideal segments
RECALLED = ("nvlink-mesh", "roce-on-card", "neuronlink", "ici", "none", "gcp-tcp", "ethernet")

# Share of a phase's compute under which its traffic hides.
OVERLAP = 0.85
# Compute slowed by the traffic that runs beside it (copy kernels take cores and memory bandwidth).
CONTENTION = 0.06
# Waiting for the slowest of many: loss per doubling of nodes, fraction of compute.
STRAGGLER_PER_DOUBLING = 0.014
# Share of tensor-parallel traffic that pipelined kernels hide in stacks that have them (Megatron, NeMo, torchtitan).
TENSOR_OVERLAP = 0.75
# Share of a phase's compute that is attention and so hides context-parallel exchange.
CONTEXT_OVERLAP = 0.25
# Fixed cost of a step beside its kernels: host work, optimizer launches, the loss and norm synchronisations.
STEP_SECONDS = 0.0065
