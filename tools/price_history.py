"""How a card's price moved: like compared with like, and a chart of the monthly medians. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from knowledge.types import Offer
from tools.prices import CLASS_WORDS, FIRM, summary
from tools.result import Fact


@dataclass(slots=True)
class Moved:
    """Facts, a chart, and the sentence about them."""

    facts: list[Fact] = field(default_factory=list)
    chart: dict[str, Any] | None = None
    compared: int = 0

    def sentence(self, subject: str) -> str:
        """The change in one sentence; says when there is nothing to compare."""
        if not self.compared:
            return f"No provider's {subject} price was seen twice in that time, so no change can be told."
        span = self.facts[0].basis.rpartition("; ")[2]
        if self.compared == 1:
            return f"{subject} moved by [[price_change]] at the one provider seen more than once, {span}."
        each = "[[price_change|range]] from one to another"
        return (
            f"{subject} moved by [[price_change]] in the median of the [[providers_compared]] providers seen more than"
            f" once, {span} ({each})."
        )


def moved(history: Sequence[Offer]) -> Moved:
    """The median change of on-demand prices since the start of ``history``.

    Each provider is compared with itself (its first month against its last, median of each), because the providers
    seen change from month to month and a plain median would move with them.
    """
    rows = [row for row in history if row.billing in FIRM]
    out = Moved(chart=_chart(rows) if rows else None)
    changes = []
    starts, ends = [], []
    for provider in sorted({row.provider for row in rows}):
        months: dict[str, list[float]] = defaultdict(list)
        for row in rows:
            if row.provider == provider and row.provider_class != "marketplace":
                months[row.observed[:7]].append(row.usd_per_gpu_hour)
        if len(months) >= 2:
            first, last = min(months), max(months)
            changes.append(100 * (median(months[last]) / median(months[first]) - 1))
            starts.append(first)
            ends.append(last)
    if changes:
        about = sorted({row.gpu_id for row in rows})
        span = f"between {min(starts)} and {max(ends)}"
        out.compared = len(changes)
        out.facts = [
            Fact(
                id="price_change",
                name="price_change",
                value=median(changes),
                unit="%",
                low=min(changes),
                high=max(changes),
                kind="exact",
                label="change of on-demand prices, same providers",
                basis=f"each provider's last month over its first, median; {span}",
                as_of=max(row.observed for row in rows),
                about=about,
            ),
            Fact(
                id="providers_compared",
                name="providers_compared",
                value=len(changes),
                kind="exact",
                label="providers seen in two months or more",
                basis="counted in the price book",
                about=about,
            ),
        ]
    return out


def _chart(rows: Sequence[Offer]) -> dict[str, Any]:
    """Monthly medians by class with every observation behind them."""
    cells: dict[tuple[str, str], list[Offer]] = defaultdict(list)
    for row in rows:
        cells[(row.observed[:7], row.provider_class)].append(row)
    line = []
    for (month, kind), found in sorted(cells.items()):
        middle = summary(found)
        if middle:
            line.append({"month": month, "class": CLASS_WORDS[kind], "usd": round(middle.usd_per_gpu_hour, 4)})
    points = [
        {"seen": row.observed, "class": CLASS_WORDS[row.provider_class], "usd": row.usd_per_gpu_hour,
         "provider": row.provider} for row in rows
    ]  # fmt: skip
    y = {"field": "usd", "type": "quantitative", "title": "USD per GPU-hour, on demand", "scale": {"zero": True}}
    color = {"field": "class", "type": "nominal", "title": "class"}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": "On-demand price over time: monthly median by class, and each observation",
        "layer": [
            {
                "data": {"values": points},
                "mark": {"type": "point", "opacity": 0.35},
                "encoding": {"x": {"field": "seen", "type": "temporal", "title": None}, "y": y, "color": color,
                             "tooltip": [{"field": name} for name in ("provider", "usd", "seen")]},
            },
            {
                "data": {"values": line},
                "mark": {"type": "line", "point": True},
                "encoding": {"x": {"field": "month", "type": "temporal"}, "y": y, "color": color},
            },
        ],
    }  # fmt: skip
