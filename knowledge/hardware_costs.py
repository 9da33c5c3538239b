"""What owning machines costs: dated figures of servers, support, power and resale."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_FILE = Path(__file__).parent / "data" / "hardware_costs.json"


@dataclass(frozen=True, slots=True)
class CostFigure:
    """One figure; grade A: a datasheet or statistic, B: a dated secondary page, C: a single or undated one."""

    what: str
    value: float
    low: float | None
    high: float | None
    gpu_id: str | None
    gpus: int
    as_of: str
    source: str
    grade: str
    note: str


def server_cost(gpu_id: str) -> CostFigure | None:
    """USD of a server with this card (``gpus`` of them, dated), or None where no quote is held."""
    return next((figure for figure in _all() if figure.what == "server" and figure.gpu_id == gpu_id), None)


def node_watts(gpu_id: str) -> CostFigure | None:
    """The most that a server with this card draws, in watts (``gpus`` cards a server); None where no figure is held."""
    return next((figure for figure in _all() if figure.what == "node_watts" and figure.gpu_id == gpu_id), None)


def usual(what: str) -> CostFigure:
    """A figure that holds for any card, e.g. ``pue``, in the unit of its name or note. Raises StopIteration for a name
    that the data file has not.
    """
    return next(figure for figure in _all() if figure.what == what and figure.gpu_id is None)


@lru_cache(maxsize=1)
def _all() -> tuple[CostFigure, ...]:
    rows = json.loads(_FILE.read_text(encoding="utf-8"))
    return tuple(
        CostFigure(
            what=row["what"],
            value=float(row["usd"] if row.get("usd") else row["value"]),
            low=row.get("low"),
            high=row.get("high"),
            gpu_id=row.get("gpu_id"),
            gpus=int(row.get("gpus") or 1),
            as_of=row["as_of"],
            source=row["source"],
            grade=row["grade"],
            note=row.get("note") or "",
        )
        for row in rows
    )
