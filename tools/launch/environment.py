"""Environment variables of a launch: rendezvous, allocator, and what NCCL needs to know about the links."""

from __future__ import annotations

from tools.launch.target import PORT, Target


def environment(target: Target) -> dict[str, str]:
    """Variables by name; several nodes need MASTER_ADDR, the links decide the rest."""
    job, fabric = target.job, target.fabric
    found = {"OMP_NUM_THREADS": "8", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    if target.gpu.vendor == "AMD":
        found["PYTORCH_HIP_ALLOC_CONF"] = found.pop("PYTORCH_CUDA_ALLOC_CONF")
    if job.n_gpus == 1:
        return found
    found["NCCL_DEBUG"] = "WARN"
    if fabric.intra_kind == "pcie-host":
        found["NCCL_P2P_DISABLE"] = "1"  # GeForce drivers allow no peer-to-peer over PCIe; some report that they do
    if target.nodes == 1:
        return found
    found |= {"MASTER_ADDR": "NODE0_ADDRESS", "MASTER_PORT": str(PORT)}
    found["TORCH_NCCL_TRACE_BUFFER_SIZE"] = "2000"  # a stalled rank then names its last collectives
    if fabric.inter_kind == "ethernet":
        found |= {"NCCL_SOCKET_IFNAME": "eth0", "NCCL_IB_DISABLE": "1"}
    elif fabric.inter_kind in ("infiniband", "roce"):
        found |= {"NCCL_IB_HCA": "mlx5", "NCCL_SOCKET_IFNAME": "eth0"}
        if fabric.inter_kind == "roce":
            found["NCCL_IB_GID_INDEX"] = "3"  # RoCE v2 on most switches; show_gids prints the card's
    elif fabric.inter_kind == "efa":
        found |= {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1"}  # needs the aws-ofi-nccl plugin in the image
    elif fabric.inter_kind == "gcp-tcp":
        found["LD_LIBRARY_PATH"] = "/usr/local/nvidia/lib64"  # where GKE and the VM images put the TCPX plugin
    return found


def exports(target: Target, leave_out: tuple[str, ...] = ()) -> str:
    """The variables as ``export NAME=value`` lines of a shell, without those named in ``leave_out``; NODE0_ADDRESS is
    to fill in.
    """
    return "\n".join(f"export {name}={value}" for name, value in environment(target).items() if name not in leave_out)
