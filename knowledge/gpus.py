"""GPUs and other accelerators by name."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from typing import Any

from knowledge.names import find
from knowledge.store import connection
from knowledge.types import Gpu, Match

# Share of the device's memory that a process can allocate: an 80 GiB card reports 79.1-79.3 GiB after the driver's
# reserve (H100 and A100 as seen in PyTorch out-of-memory messages), 24 GiB cards 23.5-23.7.
USABLE_SHARE = 0.985
# Bytes per second and lane, one direction, after line coding (PCI-SIG base specifications 3.0 to 6.0).
PCIE_LANE_BYTES_PER_S = {2.0: 0.5e9, 3.0: 0.985e9, 4.0: 1.969e9, 5.0: 3.938e9, 6.0: 7.563e9}


def find_gpu(name: str, field: str = "gpu") -> Match[Gpu]:
    """The GPU that people call ``name``, with a note where it was a guess. Raises UnknownName with the nearest known
    ones, BadValue where the memory said is none that this card is sold with.
    """
    found = find("gpus", name, field, "Name the card and its memory, e.g. 'H100 SXM' or 'A100 80GB'.")
    card = load_gpu(found.id)
    if found.memory_gb is not None:
        size = int(found.memory_gb * 2**30)
        usable = int(size * card.usable_bytes / card.memory_bytes)
        card = replace(card, marketed_memory_gb=found.memory_gb, memory_bytes=size, usable_bytes=usable)
    return Match(card, name, found.note, found.alternatives)


@lru_cache(maxsize=256)
def load_gpu(gpu_id: str) -> Gpu:
    """The GPU with exactly this id, or an id with a memory that it is also sold with ("Apple-M3-Ultra 256GB").

    As ``find_gpu`` gives it; raises UnknownName for any other.
    """
    row = connection().execute("select record from gpus where id = ?", (gpu_id,)).fetchone()
    return gpu(json.loads(row["record"])) if row else find_gpu(gpu_id).value


@lru_cache(maxsize=1)
def all_gpus() -> tuple[Gpu, ...]:
    """Every accelerator held, in file order; read once and cached."""
    rows = connection().execute("select record from gpus order by rowid")
    return tuple(gpu(json.loads(row["record"])) for row in rows)


def gpu(row: dict[str, Any]) -> Gpu:
    """A typed GPU from one record of ``data/gpus.json``: TFLOP/s, GB/s and GiB become FLOP/s, bytes/s and bytes. A rate
    that is not held is None; ``usable_bytes`` is 98.5 % of the memory (seen in PyTorch's out-of-memory messages).
    """
    rates = row["tflops_dense"]
    nvlink, pcie = row.get("nvlink") or {}, row.get("pcie") or {}
    memory_bytes = int((row.get("memory_gib") or row["memory_gb"]) * 2**30)
    lane = PCIE_LANE_BYTES_PER_S.get(float(pcie["gen"])) if pcie.get("gen") else None
    names = ("fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8")
    per_direction = nvlink.get("gbs_per_direction")
    scale_up = row.get("scale_up_link") or {}
    return Gpu(
        id=row["id"],
        vendor=row["vendor"],
        architecture=row["architecture"],
        marketed_memory_gb=row["memory_gb"],
        memory_bytes=memory_bytes,
        usable_bytes=int(memory_bytes * USABLE_SHARE),
        memory_type=row.get("memory_type") or "",
        bandwidth_bytes_per_s=(row.get("bandwidth_gbs") or 0) * 1e9,
        dense_flops={name: (rates[name] * 1e12 if rates.get(name) else None) for name in names},
        nvlink_generation=nvlink.get("generation"),
        nvlink_bytes_per_s=per_direction * 1e9 if per_direction else None,
        nvlink_note=nvlink.get("note"),
        pcie_generation=pcie.get("gen"),
        pcie_bytes_per_s=lane * pcie.get("lanes", 16) if lane else None,
        tdp_watts=row.get("tdp_w"),
        form=row.get("form") or "",
        tier=row.get("tier") or "",
        compute_capability=row.get("compute_capability_or_arch"),
        min_toolkit=row.get("min_cuda_or_rocm"),
        release_year=row.get("release_year"),
        source=row.get("source", ""),
        as_of=row.get("as_of", "2026-11-30"),
        notes=row.get("notes"),
        aliases=tuple(row.get("aliases", ())),
        scale_up_kind=scale_up.get("kind"),
        scale_up_bytes_per_s=_one_direction(scale_up),
        source_ids=tuple(row.get("sources", ())),
    )


def _one_direction(link: dict[str, Any]) -> float | None:
    """Bytes/s one way; sheets give one direction, both together, or both together in Gbit (TPU ICI)."""
    if link.get("gbs_per_direction"):
        return float(link["gbs_per_direction"]) * 1e9
    both = link.get("gbs_bidirectional_total") or link.get("gbit_per_chip", 0) / 8
    return float(both) / 2 * 1e9 or None
