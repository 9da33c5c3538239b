"""Cloud instance types and interconnects by name."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from knowledge.names import find
from knowledge.store import connection
from knowledge.types import Instance, Link, Match


def find_instance(name: str, field: str = "instance") -> Match[Instance]:
    """The machine type that people call ``name`` ("p5.48xlarge", "a3-highgpu-8g"). Raises UnknownName
    with the nearest.
    """
    found = find("instances", name, field, "Give the provider's exact instance type, or the GPU and count.")
    row = connection().execute("select record from instances where id = ?", (found.id,)).fetchone()
    return Match(instance(json.loads(row["record"])), name, found.note, found.alternatives)


def find_link(name: str, field: str = "link") -> Match[Link]:
    """The interconnect that people call ``name`` ("NDR", "100GbE", "NVLink 4", "EFA v2"). Raises UnknownName with the
    nearest.
    """
    found = find("links", name, field, "Name it (NVLink-4, NDR, 100GbE) or give a rate such as 50 GB/s.")
    row = connection().execute("select record from links where id = ?", (found.id,)).fetchone()
    return Match(link(json.loads(row["record"])), name, found.note, found.alternatives)


@lru_cache(maxsize=1)
def all_instances() -> tuple[Instance, ...]:
    """Every machine type held, in file order; read once and cached."""
    rows = connection().execute("select record from instances order by rowid")
    return tuple(instance(json.loads(row["record"])) for row in rows)


@lru_cache(maxsize=1)
def all_links() -> tuple[Link, ...]:
    """Every interconnect held, in file order; read once and cached."""
    return tuple(link(json.loads(row["record"])) for row in connection().execute("select record from links"))


def instance(row: dict[str, Any]) -> Instance:
    """A typed machine from one record of ``data/instances.json``; rates in bytes/s a GPU and one direction, memory in
    bytes, None for what is not held.
    """
    intra, inter = row.get("intra_node") or {}, row.get("inter_node") or {}
    return Instance(
        provider=row["provider"],
        instance_type=row["instance_type"],
        gpu_id=row["gpu_id"],
        n_gpus=row["gpu_count"],
        intra_kind=intra.get("kind"),
        intra_bytes_per_s=_giga(intra.get("gbs_per_direction_per_gpu")),
        inter_kind=inter.get("kind"),
        inter_bytes_per_s_per_gpu=_giga(inter.get("gb_s_per_gpu")),
        vcpus=row.get("vcpu"),
        ram_bytes=row["ram_gib"] * 2.0**30 if row.get("ram_gib") else None,
        local_nvme_bytes=row["local_nvme_tb"] * 1e12 if row.get("local_nvme_tb") else None,
        source=row.get("source", ""),
        as_of=row.get("as_of", "2026-11-30"),
        notes=row.get("notes"),
        aliases=tuple(row.get("aliases", ())),
        source_ids=tuple(row.get("sources", ())),
    )


def link(row: dict[str, Any]) -> Link:
    """A typed interconnect from one record of ``data/links.json``; rates in bytes/s, None for what is not held."""
    return Link(
        id=row["id"],
        kind=row["kind"],
        bytes_per_s=_giga(row.get("gb_s_per_direction")),
        bytes_per_s_bidirectional=_giga(row.get("gb_s_bidirectional_total")),
        source=row.get("source", ""),
        as_of=row.get("as_of", "2026-11-30"),
        notes=row.get("notes") if isinstance(row.get("notes"), str) else None,
        aliases=tuple(row.get("aliases", ())),
        source_ids=tuple(row.get("sources", ())),
    )


def _giga(value: float | None) -> float | None:
    return value * 1e9 if value else None
