"""What runs on what: typed reads of ``data/compatibility.yaml`` (chips, drivers, CUDA, PyTorch, libraries, formats)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

DATA = Path(__file__).parent / "data" / "compatibility.yaml"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a compatibility fact comes from; ``basis`` is read or recalled."""

    id: str
    title: str
    url: str
    as_of: str
    basis: str


@dataclass(frozen=True, slots=True)
class Chip:
    """An architecture and the first versions that know it; ``*_last`` are the last that still do."""

    name: str
    cuda: str | None
    cuda_last: str | None
    driver: str | None
    rocm: str | None
    torch: str
    torch_last_cuda: str | None
    origin: Origin


@dataclass(frozen=True, slots=True)
class CudaRelease:
    """A CUDA version with its own driver and the oldest of its major family that still runs it."""

    version: str
    native: str
    minimum: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class TorchRelease:
    """A PyTorch release: CUDA versions of its wheels, the one on PyPI, its ROCm."""

    version: str
    cuda: tuple[str, ...]
    pypi: str
    rocm: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Capability:
    """A number format, attention kernel or library and the chips that have it."""

    name: str
    words: str
    nvidia: str | None
    nvidia_last: str | None
    amd: tuple[str, ...]
    apple: bool
    partial: tuple[str, ...]
    cuda: str | None
    torch: str | None
    instead: str | None
    note: str | None
    origin: Origin


def version(text: str) -> tuple[int, ...]:
    """The first four numbers of a version, for comparing: "535.104.05" is (535, 104, 5). () where there is none."""
    return tuple(int(part) for part in re.findall(r"\d+", text)[:4])


def chip(capability: str | None) -> Chip | None:
    """The architecture of a compute capability or AMD target, e.g. sm_120 or gfx942; None for None and for one not
    held.
    """
    for row in _data()["architectures"]:
        if capability and capability.startswith(row["match"]):
            return Chip(
                row["name"], row.get("cuda"), row.get("cuda_last"), row.get("driver"), row.get("rocm"), row["torch"],
                row.get("torch_last_cuda"), _origin(row),
            )  # fmt: skip
    return None


def cuda_releases() -> list[CudaRelease]:
    """CUDA versions held, oldest first, with the drivers that each needs."""
    return [CudaRelease(row["version"], row["native"], row["minimum"], _origin(row)) for row in _data()["cuda"]]


def torch_releases() -> list[TorchRelease]:
    """PyTorch releases held, oldest first, with the CUDA and ROCm that their wheels are built for."""
    return [
        TorchRelease(row["version"], tuple(row["cuda"]), row["pypi"], row["rocm"], _origin(row))
        for row in _data()["torch"]
    ]


def wheel_capabilities(torch: str, cuda: str) -> tuple[str, str, Origin]:
    """Lowest and highest compute capability with kernels in this wheel, "major.minor", and the source; the recalled 5.0
    to 9.0 for a wheel not held.
    """
    for row in _data()["wheel_capabilities"]:
        same = cuda == row["cuda"] or cuda.startswith(row["cuda"] + ".")
        if same and version(torch) >= version(row.get("torch_from", "0")):
            return row["lowest"], row["highest"], _origin(row)
    return "5.0", "9.0", _origin({"source": "recalled"})


def capabilities(kind: str) -> dict[str, Capability]:
    """Rows of ``precision``, ``attention`` or ``libraries`` by name. Raises KeyError for another kind."""
    return {
        row["name"]: Capability(
            row["name"], row.get("words", row["name"]), row.get("nvidia") or None, row.get("nvidia_last"),
            tuple(row.get("amd", ())), bool(row.get("apple")), tuple(row.get("partial", ())), row.get("cuda"),
            row.get("torch"), row.get("instead"), row.get("note"), _origin(row),
        )
        for row in _data()[kind]
    }  # fmt: skip


def _origin(row: dict[str, Any]) -> Origin:
    source = _data()["sources"][row["source"]]
    basis = row.get("basis", "read")
    return Origin(row["source"], source["title"], source["url"], source["as_of"], basis)


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    return data
