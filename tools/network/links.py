"""Reading what people call a link: "NDR400", "25GbE", "3200 Gb/s per node", "NVLink bridge", "PCIe 4.0 x8"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from knowledge.gpus import PCIE_LANE_BYTES_PER_S
from knowledge.instances import all_links, find_link
from knowledge.types import Gpu
from tools.errors import BadValue, InputProblem
from tools.units import parse_rate

# Gbit/s of a four-lane port (InfiniBand Trade Association roadmap).
INFINIBAND_GBIT = {
    "sdr": 10,
    "ddr": 20,
    "qdr": 40,
    "fdr": 56,
    "edr": 100,
    "hdr": 200,
    "ndr": 400,
    "xdr": 800,
    "gdr": 1600,
}
# Ports of 200 Gbit/s and more are sold one a GPU, slower ones one a node (8 x 400G H100 nodes against 25GbE servers).
PORT_PER_GPU_FROM = 25e9
_OTHER = {"slingshot": ("roce", 25e9, "Slingshot-11"), "omni": ("infiniband", 12.5e9, "Omni-Path 100")}
_NO_LINK = ("none", "no", "no nvlink", "no bridge", "without nvlink", "without bridge", "no nvlink bridge")


@dataclass(frozen=True, slots=True)
class IntraLink:
    """A link inside a node: per GPU, one direction."""

    kind: str
    bytes_per_s: float
    name: str


@dataclass(frozen=True, slots=True)
class InterLink:
    """A link between nodes: the share of one GPU, one direction."""

    kind: str
    bytes_per_s: float
    name: str


def parse_intra(asked: str, gpu: Gpu, node: int, own: IntraLink) -> IntraLink:
    """The link inside a node, bytes/s a GPU in one direction, from a name or a rate; ``own`` is what the card has.
    Raises BadValue for a generation or kind of link that the card does not have, and for a rate that cannot be read.
    """
    text = " ".join(asked.casefold().replace("-", " ").replace("_", " ").split())
    pcie = re.search(r"pci\s?e?(?:xpress)?", text)
    if text in _NO_LINK or (pcie and text.startswith("pci")):
        return _parse_pcie(text, gpu)
    if "nvlink" in text or "nvswitch" in text or text in ("sxm", "bridge", "nvl"):
        return _parse_nvlink(text, asked, gpu, own)
    if any(word in text for word in ("infinity", "xgmi", "neuron", "ici")):
        if own.kind not in ("xgmi", "neuronlink", "ici"):
            raise _not_on(asked, gpu, own)
        return own
    return IntraLink(own.kind, _rate(asked, "intra_link"), asked)


def parse_inter(asked: str, gpu: Gpu, node: int, nics: int | None = None) -> tuple[InterLink, tuple[float, str] | None]:
    """The share of one GPU in the link between nodes, and a note where the sharing was assumed.

    InfiniBand, RoCE and EFA names mean one port a GPU; Ethernet below 200 Gbit/s one port a node. "8x200G", "per node"
    and "per GPU" say it outright, and so does ``nics``. Rates are bytes/s in one direction. Raises BadValue for a rate
    that is not above zero and for what is neither a name nor a rate.
    """
    text = " ".join(asked.casefold().replace("-", " ").replace("_", " ").split())
    text, ports, share = _sharing(text)
    ports = nics or ports
    kind, rate, name, usual = _inter_rate(text, asked, gpu)
    if not rate > 0:
        raise BadValue(
            "out_of_range", "A link must carry more than zero bytes per second.", field="inter_link", candidates=["NDR"]
        )
    if share == "gpu":
        return InterLink(kind, rate * (ports or 1), name), None
    if share == "node" or ports:
        return InterLink(kind, rate * (ports or 1) / node, name), None
    if usual == "gpu":
        return InterLink(kind, rate, name), None
    if usual == "node" and node > 1:
        why = f"one {name} port a node, shared by its {node} GPUs"
        return InterLink(kind, rate / node, name), (rate / node, why)
    return InterLink(kind, rate, name), None


@lru_cache(maxsize=256)
def _sharing(text: str) -> tuple[str, int | None, str | None]:
    share = None
    for pattern, word in (
        (r"(?:per|a|/|each)\s*(?:node|host|server|machine)\b", "node"),
        (r"(?:per|a|/|each)\s*gpu\b", "gpu"),
    ):
        text, found = re.subn(pattern, "", text)
        share = word if found else share
    multiple = re.match(r"(\d{1,2})\s*[x×]\s*(?=\D|\d{2,})", text)
    if multiple and "pci" not in text:
        return text[multiple.end() :].strip(), int(multiple[1]), share
    return text.strip(" ,"), None, share


def _inter_rate(text: str, asked: str, gpu: Gpu) -> tuple[str, float, str, str]:
    """Kind, port rate, name, and whether such a port usually serves a GPU or a node."""
    known = _catalogued(asked)
    if known is not None:
        return known
    generation = re.search(r"\b(sdr|ddr|qdr|fdr|edr|hdr|ndr|xdr|gdr)\s*(\d{2,4})?\b", text)
    number = re.search(r"(\d+(?:\.\d+)?)", text)
    if generation:
        gbit = float(generation[2] or INFINIBAND_GBIT[generation[1]])
        label = f"InfiniBand {generation[1].upper()}" + (f" {generation[2]}" if generation[2] else "")
        return "infiniband", gbit * 1e9 / 8, label, "gpu"
    for word, (kind, rate, label) in _OTHER.items():
        if word in text:
            return kind, rate, label, "gpu"
    if "tcpx" in text:
        return "gcp-tcp", 25e9 if "tcpxo" in text else 12.5e9, "GPUDirect-TCPX" + ("O" * ("tcpxo" in text)), "gpu"
    for word, kind, label in (
        ("infiniband", "infiniband", "InfiniBand"),
        ("efa", "efa", "EFA"),
        ("roce", "roce", "RoCE"),
    ):
        if re.search(rf"\b{word}", text) or (word == "infiniband" and re.search(r"\bib\b", text)):
            bare = re.sub(r"infiniband|\bib\b|\befa\b|\broce\b|\bv\d\b", " ", text).strip()
            rate = _gbit(bare, asked) if bare and number else _usual_port(gpu, kind)
            return kind, rate, f"{label} {rate * 8 / 1e9:g} Gbit/s", "gpu"
    ethernet = re.search(r"ethernet|g(?:b|ig)?e\b|\bgige\b|\btcp\b", text)
    rate = 3.125e9 if ethernet and not number else _gbit(re.sub(r"ethernet|\btcp\b", "", text), asked)
    gbit = rate * 8 / 1e9
    wide = rate >= PORT_PER_GPU_FROM
    host = gpu.pcie_bytes_per_s or 64e9
    if not ethernet:
        # A bare rate beyond what one card's host link can carry must be the node's sum ("3200 Gb/s").
        usual = "node" if not wide or rate > 1.6 * host else "gpu"
        return ("roce" if wide else "ethernet"), rate, f"{gbit:g} Gbit/s", usual
    return ("roce" if wide else "ethernet"), rate, f"{gbit:g}GbE", "gpu" if wide else "node"


@lru_cache(maxsize=256)
def _catalogued(asked: str) -> tuple[str, float, str, str] | None:
    """A link by its exact catalogue id ("EFA-v2-p5", "InfiniBand-NDR"); aliases are read by their words."""
    for link in all_links():
        if link.id.casefold() == asked.strip().casefold() and link.bytes_per_s:
            kind = {"gcp": "gcp-tcp" if "TCP" in link.id else "roce"}.get(link.kind, link.kind)
            if kind in ("infiniband", "roce", "efa", "gcp-tcp"):
                return kind, link.bytes_per_s, link.id, "gpu"
    return None


def _usual_port(gpu: Gpu, kind: str) -> float:
    if kind == "efa" and gpu.architecture == "Ampere":
        return float(find_link("EFA-v1-p4d").value.bytes_per_s or 6.25e9)
    if gpu.id.startswith(("B300", "GB300")):
        return 100e9
    if gpu.architecture in ("Volta", "Pascal", "Turing"):
        return 12.5e9
    return 25e9 if (gpu.release_year or 2023) < 2022 else 50e9


def _gbit(text: str, asked: str) -> float:
    """A rate; a bare number or "400G" means Gbit/s, as people say of networks."""
    bare = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(g|t)?(?:b?e|ige?)?", text.strip())
    if bare:
        return float(bare[1]) * (1e12 if bare[2] == "t" else 1e9) / 8
    if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?\s{0,4}[gt]bps?", text.strip()):
        text = text.strip().removesuffix("s").removesuffix("p") + "/s"
        text = text.replace("gb", "Gb").replace("tb", "Tb")
    else:
        text = re.sub(r"(\d\s*[kmgt])b(?=it|/s|ps|$)", r"\1b", _same_case(text, asked))
    return _rate(text, "inter_link")


def _same_case(text: str, asked: str) -> str:
    """``text`` with the letters' case of ``asked``: GB/s and Gb/s differ by eight."""
    at = asked.casefold().find(text)
    return asked[at : at + len(text)] if at >= 0 else text


def _rate(text: str, field: str) -> float:
    try:
        rate = parse_rate(text, field)
    except InputProblem:
        raise BadValue(
            "unknown_link",
            f"I do not know a link called {text[:60]!r}.",
            field=field,
            hint="Name it (NVLink, PCIe 5.0, NDR, 100GbE, EFA) or give a rate such as 50 GB/s or 400 Gb/s.",
            candidates=["NVLink", "PCIe 5.0"] if field == "intra_link" else ["NDR", "HDR", "100GbE", "25GbE"],
        ) from None
    if rate <= 0:
        raise BadValue(
            "out_of_range", "A link must carry more than zero bytes per second.", field=field, candidates=["25 GB/s"]
        )
    return rate


def _parse_pcie(text: str, gpu: Gpu) -> IntraLink:
    generation = re.search(r"(?:gen\s*|v|e\s*)(\d)(?:\.0)?|\b(\d)\.0", text)
    lanes = re.search(r"x\s*(\d{1,2})\b", text)
    own = float(gpu.pcie_generation or 4)
    named = float(generation[1] or generation[2]) if generation else own
    if named not in PCIE_LANE_BYTES_PER_S:
        raise BadValue(
            "unknown_link",
            f"There is no PCIe {named:g} in use.",
            field="intra_link",
            candidates=["PCIe 4.0", "PCIe 5.0"],
        )
    used = min(named, own)  # a gen 4 card in a gen 5 slot runs at gen 4
    width = min(int(lanes[1]) if lanes else 16, 16)
    card = round((gpu.pcie_bytes_per_s or 16e12) / PCIE_LANE_BYTES_PER_S.get(own, 1.969e9))
    width = min(width, card)
    host = gpu.tier == "consumer" and gpu.vendor == "NVIDIA" and "p2p" not in text
    return IntraLink("pcie-host" if host else "pcie", PCIE_LANE_BYTES_PER_S[used] * width, f"PCIe {used:g}.0 x{width}")


def _parse_nvlink(text: str, asked: str, gpu: Gpu, own: IntraLink) -> IntraLink:
    if not gpu.nvlink_bytes_per_s:
        raise _not_on(asked, gpu, own)
    generation = re.search(r"nvlink\s{0,4}(?:v|gen)?\s{0,4}(\d)(?:\.0)?\b", text)
    if generation and int(generation[1]) != gpu.nvlink_generation:
        raise BadValue(
            "wrong_nvlink_generation",
            f"{gpu.id} has NVLink {gpu.nvlink_generation}, not NVLink {generation[1]}.",
            field="intra_link",
            candidates=[f"NVLink-{gpu.nvlink_generation}"],
        )
    if gpu.nvlink_note:
        return IntraLink("nvlink-bridge", gpu.nvlink_bytes_per_s, f"NVLink {gpu.nvlink_generation} bridge")
    return own


def _not_on(asked: str, gpu: Gpu, own: IntraLink) -> BadValue:
    return BadValue(
        "no_such_link",
        f"{gpu.id} has no {asked}.",
        field="intra_link",
        hint=f"Its cards are joined by {own.name}.",
        candidates=[own.name],
    )
