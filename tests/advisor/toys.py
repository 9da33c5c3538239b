"""Small tools with known facts, for tests of what stands around tools."""

from __future__ import annotations

import time

from pydantic import BaseModel, ConfigDict, Field

from tools.registry import ToolSpec
from tools.result import Assumption, Column, Fact, SourceRef, Table, ToolResult, Warn


class MemoryInput(BaseModel):
    model_config = ConfigDict(extra="forbid")

    model: str = Field(description="A model.")
    gpu: str = "H100-SXM-80GB"
    n_gpus: int = Field(default=1, ge=1)


def toy_memory(given: MemoryInput) -> ToolResult:
    """Memory of a model, made up."""
    return ToolResult(
        facts=[
            Fact(
                id="peak_per_gpu", name="peak_per_gpu", value=45.3e9, unit="B", low=41.2e9, high=49.8e9,
                about=[given.model, given.gpu], basis="weights 35.3e9 + states 10e9",
            ),
            Fact(id="headroom", name="headroom", value=43.4, unit="%", about=[given.gpu]),
        ],
        assumptions=[Assumption(name="seq_len", value=2048, unit="tokens", why="common length", argument="seq_len")],
        sources=[SourceRef(id="toy", title="Toy handbook", as_of="2026-11-30")],
        warnings=[Warn(code="close", text="Only [[headroom]] is left.")],
        tables=[
            Table(
                id="bill", title="The bill", columns=[Column(key="part", label="Part"),
                Column(key="bytes", label="Bytes", unit="B")], rows=[["weights", 35.3e9], ["states", 10.0e9]],
            )
        ],
        charts=[{"mark": "bar", "data": {"values": [1, 2]}}],
        verdict="Yes: [[peak_per_gpu]] of 80 GB.",
        next_steps=["With a shorter sequence it is less than [[peak_per_gpu|GiB]]."],
        suggestions=["And on two H100?"],
    )  # fmt: skip


class PriceInput(BaseModel):
    model_config = ConfigDict(extra="forbid")

    gpu: str
    seconds: float = 0.0


def toy_price(given: PriceInput) -> ToolResult:
    """A price, made up."""
    time.sleep(given.seconds)
    if given.gpu == "boom":
        raise RuntimeError("a bug with a secret sk-123")
    return ToolResult(
        facts=[
            Fact(
                id="usd_per_gpu_hour", name="usd_per_gpu_hour", value=2.4, unit="USD/GPU-h", kind="price",
                as_of="2026-08-21", about=[given.gpu, "lambda"],
            )
        ],
        sources=[SourceRef(id="book", title="Price book", as_of="2026-08-21")],
        verdict="The cheapest is [[usd_per_gpu_hour]].",
    )  # fmt: skip


SPECS = (
    ToolSpec("toy_memory", toy_memory, MemoryInput, ToolResult, "Memory of a model, made up.", "", ({"model": "7B"},)),
    ToolSpec("toy_price", toy_price, PriceInput, ToolResult, "A price, made up.", ""),
)
