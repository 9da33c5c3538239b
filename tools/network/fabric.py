"""The links of a cluster: from a GPU, a count and what people call their network to bytes per second a GPU.

Every rate here is nominal, one direction, per GPU. NVLink sheets give both directions together (H100: 900 GB/s, so
450 each way), PCIe x16 gen 5 is 63 GB/s each way, NDR InfiniBand 400 Gbit/s = 50 GB/s each way. What a collective
reaches of that is ``tools.network.collectives``' business.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from knowledge.gpus import PCIE_LANE_BYTES_PER_S
from knowledge.instances import find_instance
from knowledge.types import Gpu, Instance
from tools.errors import BadValue
from tools.network.links import InterLink, IntraLink, parse_inter, parse_intra
from tools.result import Assumption

IntraKind = Literal[
    "nvswitch", "nvlink-mesh", "nvlink-bridge", "nvlink-rack", "xgmi", "roce-on-card", "neuronlink", "ici", "pcie",
    "pcie-host", "none",
]  # fmt: skip
InterKind = Literal["infiniband", "roce", "efa", "gcp-tcp", "ethernet", "none"]

RACK_GPUS = 72  # GB200 and GB300 NVL72: one NVLink domain of 18 trays with 4 GPUs (NVIDIA NVL72 datasheet)
# Gbit/s of data-centre network a chip between slices (Cloud TPU system tables: v5e 6.4 and v6e 25.6 Tbit/s a pod of
# 256; a v4 or v5p host of 4 chips has 200; v7x as v6e). Recalled.
TPU_DCN_GBIT = {"TPU-v4": 50, "TPU-v5e": 25, "TPU-v5p": 50, "TPU-v6e": 100, "TPU-v7x": 100}
TPU_SLICE = 256  # chips that inter-chip links join before a slower network is needed (TPU v5e and v6e pod size)
# GeForce drivers since Ampere refuse peer-to-peer over PCIe, so bytes go through host memory (NVIDIA/nccl-tests#117).
_NO_PEER_TO_PEER = ("RTX-30", "RTX-40", "RTX-50")
_PRO_CARDS = ("RTX-4000-Ada", "RTX-5000-Ada")


@dataclass(frozen=True, slots=True)
class Fabric:
    """Nominal rates, per GPU and one direction, inside a node (or NVLink domain) and between nodes.

    ``intra_name`` and ``inter_name`` are words for people; ``nics_per_node`` says how many ports share the node's
    rate. ``inter_bytes_per_s`` is already the share of one GPU.
    """

    gpus_per_node: int
    intra_kind: IntraKind
    intra_bytes_per_s: float
    inter_kind: InterKind
    inter_bytes_per_s: float
    intra_name: str = ""
    inter_name: str = ""

    def nodes(self, n_gpus: int) -> int:
        """Nodes (or NVLink domains) that hold ``n_gpus``, rounded up."""
        return math.ceil(n_gpus / self.gpus_per_node)


def fabric_for(
    gpu: Gpu,
    n_gpus: int,
    gpus_per_node: int | None = None,
    intra_link: str | None = None,
    inter_link: str | None = None,
    instance: str | None = None,
    nics_per_node: int | None = None,
) -> tuple[Fabric, list[Assumption]]:
    """The links between ``n_gpus`` of ``gpu``, with one assumption a default.

    A link is a name ("NDR", "25GbE", "NVLink bridge", "PCIe 4.0") or a rate ("400 Gb/s", "50 GB/s per node"). An
    instance type gives all that is not said. Raises InputProblem for names not held and rates that cannot be.
    """
    assumed: list[Assumption] = []
    machine = _machine(gpu, instance)
    node = _node_size(gpu, n_gpus, gpus_per_node, machine, assumed)
    intra = _intra(gpu, node, intra_link, machine, assumed)
    inter = _inter(gpu, node, n_gpus, inter_link, machine, nics_per_node, assumed)
    return (
        Fabric(
            gpus_per_node=node,
            intra_kind=intra.kind,  # type: ignore[arg-type]
            intra_bytes_per_s=intra.bytes_per_s,
            inter_kind=inter.kind,  # type: ignore[arg-type]
            inter_bytes_per_s=inter.bytes_per_s,
            intra_name=intra.name,
            inter_name=inter.name,
        ),
        assumed,
    )


def default_node_size(gpu: Gpu) -> int:
    """GPUs that usually share a node or a domain of fast links: 8, but 1 for single-chip machines, 16 for Trainium, 72
    for an NVL72 rack (NVIDIA's data sheet) and 256 for a TPU pod.
    """
    if gpu.vendor == "Apple" or gpu.id == "GB10" or gpu.id.startswith("GH200"):
        return 1
    if gpu.id.startswith(("GB200", "GB300")):
        return RACK_GPUS
    if gpu.vendor == "Google":
        return TPU_SLICE
    return 16 if gpu.id.startswith("Trainium") else 8


def _machine(gpu: Gpu, instance: str | None) -> Instance | None:
    if not instance:
        return None
    found = find_instance(instance).value
    if found.gpu_id and found.gpu_id != gpu.id:
        raise BadValue(
            "instance_has_another_gpu",
            f"{found.instance_type} holds {found.gpu_id}, not {gpu.id}.",
            field="instance",
            hint="Leave gpu out, or name the machine that has it.",
            candidates=[found.gpu_id],
        )
    return found if found.gpu_id else None


def _node_size(gpu: Gpu, n_gpus: int, asked: int | None, machine: Instance | None, assumed: list[Assumption]) -> int:
    if asked is not None:
        if asked < 1:
            raise BadValue("out_of_range", "A node holds at least one GPU.", field="gpus_per_node", candidates=["8"])
        if n_gpus > asked and n_gpus % asked:
            near = [n_gpus // asked * asked, (n_gpus // asked + 1) * asked]
            raise BadValue(
                "nodes_do_not_divide",
                f"{n_gpus} GPUs do not fill nodes of {asked}.",
                field="n_gpus",
                hint="n_gpus must be a multiple of gpus_per_node.",
                candidates=[str(n) for n in near],
            )
        return min(asked, n_gpus)
    if machine is not None:
        size = RACK_GPUS if "NVL72" in (machine.intra_kind or "") else machine.n_gpus
        return min(size, n_gpus)
    usual = default_node_size(gpu)
    if n_gpus <= usual:
        size = n_gpus
    else:
        size = next((d for d in range(usual, 1, -1) if n_gpus % d == 0), usual)
    if n_gpus > 1:
        why = "one machine" if n_gpus <= usual else f"usual for {gpu.id}"
        assumed.append(Assumption(name="gpus_per_node", value=size, unit="GPUs", why=why, argument="gpus_per_node"))
    return size


def _intra(gpu: Gpu, node: int, asked: str | None, machine: Instance | None, assumed: list[Assumption]) -> IntraLink:
    own = _own_intra(gpu, node)
    if asked is not None:
        link = parse_intra(asked, gpu, node, own)
    elif machine is not None and machine.intra_bytes_per_s:
        link = IntraLink(
            _intra_kind(machine.intra_kind or "", gpu), machine.intra_bytes_per_s, machine.intra_kind or ""
        )
    else:
        link = own
        if node > 1:
            assumed.append(
                Assumption(name="intra_link", value=link.name, why=_why_own(gpu, link), argument="intra_link")
            )
    if link.kind == "nvlink-bridge" and node > _bridge_cards(gpu):
        pcie = _pcie(gpu)
        assumed.append(
            Assumption(
                name="intra_link",
                value=pcie.name,
                why=f"a bridge joins {_bridge_cards(gpu)} cards; a ring over {node} crosses PCIe, its slowest link",
                argument="intra_link",
            )
        )
        return pcie
    return link


def _own_intra(gpu: Gpu, node: int) -> IntraLink:
    """What joins this card to its neighbours when nobody said."""
    if gpu.nvlink_bytes_per_s and not gpu.nvlink_note:
        kind = "nvswitch"
        if gpu.id.startswith(("GB200", "GB300")):
            kind = "nvlink-rack"
        elif gpu.nvlink_generation in (1, 2):
            kind = "nvlink-mesh"  # DGX-1 and cloud V100: a hybrid cube mesh without a switch
        name = f"NVLink {gpu.nvlink_generation}" + {"nvswitch": " + NVSwitch", "nvlink-rack": " rack"}.get(
            kind, " mesh"
        )
        return IntraLink(kind, gpu.nvlink_bytes_per_s, name)
    if gpu.nvlink_bytes_per_s and gpu.id in ("H100-NVL", "H200-NVL") and node <= _bridge_cards(gpu):
        return IntraLink("nvlink-bridge", gpu.nvlink_bytes_per_s, f"NVLink {gpu.nvlink_generation} bridge")
    if gpu.scale_up_bytes_per_s:
        kind = _intra_kind(gpu.scale_up_kind or "", gpu)
        return IntraLink(kind, gpu.scale_up_bytes_per_s, gpu.scale_up_kind or kind)
    return _pcie(gpu)


def _pcie(gpu: Gpu) -> IntraLink:
    if not gpu.pcie_bytes_per_s:
        return IntraLink("none", 1.25e9, "10GbE between machines")
    lanes = round(gpu.pcie_bytes_per_s / PCIE_LANE_BYTES_PER_S[float(gpu.pcie_generation or 4)])
    host = gpu.tier == "consumer" and gpu.id.startswith(_NO_PEER_TO_PEER) and gpu.id not in _PRO_CARDS
    kind = "pcie-host" if host else "pcie"
    return IntraLink(kind, gpu.pcie_bytes_per_s, f"PCIe {gpu.pcie_generation:g}.0 x{lanes}")


def _bridge_cards(gpu: Gpu) -> int:
    return 4 if "four" in (gpu.nvlink_note or "") else 2


def _why_own(gpu: Gpu, link: IntraLink) -> str:
    if link.kind == "pcie-host":
        bridge = " unless a bridge is named" if gpu.nvlink_note else ""
        return f"GeForce drivers allow no peer-to-peer over PCIe: bytes go through host memory{bridge}"
    if link.kind == "pcie" and gpu.nvlink_note:
        return "no bridge named; intra_link 'NVLink bridge' joins a pair"
    return f"what joins {gpu.id} cards in a machine"


def _intra_kind(words: str, gpu: Gpu) -> str:
    text = words.casefold()
    for part, kind in (
        ("nvl72", "nvlink-rack"), ("nvswitch", "nvswitch"), ("bridge", "nvlink-bridge"), ("mesh", "nvlink-mesh"),
        ("infinity", "xgmi"), ("neuron", "neuronlink"), ("ici", "ici"), ("roce", "roce-on-card"),
        ("nvlink", "nvswitch"),
    ):  # fmt: skip
        if part in text and not (part == "mesh" and "infinity" in text):
            return kind
    return _pcie(gpu).kind if gpu.pcie_bytes_per_s else "none"


def _inter(
    gpu: Gpu,
    node: int,
    n_gpus: int,
    asked: str | None,
    machine: Instance | None,
    nics: int | None,
    assumed: list[Assumption],
) -> InterLink:
    if asked is not None:
        link, note = parse_inter(asked, gpu, node, nics)
        if note and n_gpus > node:
            assumed.append(
                Assumption(name="inter_link_share", value=note[0], unit="B/s", why=note[1], argument="inter_link")
            )
        return link
    if machine is not None and machine.inter_bytes_per_s_per_gpu:
        words = machine.inter_kind or ""
        return InterLink(_inter_kind(words), machine.inter_bytes_per_s_per_gpu, words)
    name = usual_inter_link(gpu)
    why = f"usual for clusters of {gpu.id}"
    if machine is not None:
        name, why = "25GbE", f"{machine.instance_type} publishes no GPU network: ordinary Ethernet, one port a node"
    link, _note = parse_inter(name, gpu, node, nics)
    if n_gpus > node:
        assumed.append(Assumption(name="inter_link", value=link.name, why=why, argument="inter_link"))
    return link


def _inter_kind(words: str) -> str:
    text = words.casefold()
    for part, kind in (("infiniband", "infiniband"), ("efa", "efa"), ("tcpx", "gcp-tcp"), ("roce", "roce")):
        if part in text:
            return kind
    return "ethernet"


def usual_inter_link(gpu: Gpu) -> str:
    """The network that clusters of this card usually have: one port a GPU of the card's own year."""
    if gpu.vendor == "Google":
        return f"{TPU_DCN_GBIT.get(gpu.id, 50)} Gb/s per GPU"
    if gpu.id.startswith(("Gaudi", "Trainium")):
        return "RoCE 200"
    if gpu.form.startswith(("SXM", "OAM", "superchip")):
        year = gpu.release_year or 2023
        if gpu.id.startswith(("B300", "GB300")):
            return "XDR"
        if gpu.architecture in ("Volta", "Pascal"):
            return "EDR"
        return "HDR" if year < 2022 and gpu.vendor == "NVIDIA" else "NDR"
    return "100GbE" if gpu.tier == "datacenter" and gpu.vendor != "Apple" else "10GbE"
