"""Accuracy plots as inline SVG: predicted against measured, with the interval, from the accuracy benches' rows."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

BENCHES = {"memory": "evals.accuracy_memory", "throughput": "evals.accuracy_throughput"}
_SIZE, _MARGIN = 420, 52


@dataclass(frozen=True, slots=True)
class Point:
    """A measured value with its prediction; ``group`` is what errors are shown by, e.g. the method or the GPU."""

    measured: float
    predicted: float
    low: float
    high: float
    group: str = ""


def accuracy_plots() -> str:
    """A plot for each accuracy bench that can give its points (``points()``); a sentence where none can."""
    parts = []
    for name, module in BENCHES.items():
        if find_spec(module) is None:
            continue
        give: Any = getattr(import_module(module), "points", None)
        if give is not None:
            parts.append(scatter(name, [point if isinstance(point, Point) else Point(**point) for point in give()]))
    return "".join(parts) or "<p>Run <code>advisor eval accuracy</code> for measured rows; none are in this build.</p>"


def scatter(title: str, points: Sequence[Point]) -> str:
    """Predicted against measured on two logarithmic axes, misses of the interval in red, and errors by group."""
    drawn = [point for point in points if point.measured > 0 and point.predicted > 0]
    if not drawn:
        return ""
    values = [value for point in drawn for value in (point.measured, point.predicted)]
    least, most = math.log10(min(values)), math.log10(max(values))
    span = max(most - least, 1e-9)

    def place(value: float) -> float:
        return _MARGIN + (math.log10(value) - least) / span * (_SIZE - 2 * _MARGIN)

    marks = []
    for point in drawn:
        inside = point.low <= point.measured <= point.high
        x, y = place(point.measured), _SIZE - place(point.predicted)
        marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{"#27c" if inside else "#c33"}" opacity=".6"/>')
    covered = sum(point.low <= point.measured <= point.high for point in drawn) / len(drawn)
    errors = sorted(abs(point.predicted / point.measured - 1) for point in drawn)
    end = _SIZE - _MARGIN
    return f"""<figure><svg viewBox="0 0 {_SIZE} {_SIZE}" width="{_SIZE}" role="img" aria-label="{html.escape(title)}">
<line x1="{_MARGIN}" y1="{end}" x2="{end}" y2="{_MARGIN}" stroke="#999"/>
<line x1="{_MARGIN}" y1="{end}" x2="{end}" y2="{end}" stroke="#222"/>
<line x1="{_MARGIN}" y1="{_MARGIN}" x2="{_MARGIN}" y2="{end}" stroke="#222"/>
<text x="{_SIZE / 2}" y="{_SIZE - 14}" text-anchor="middle">measured</text>
<text x="16" y="{_SIZE / 2}" transform="rotate(-90 16 {_SIZE / 2})" text-anchor="middle">predicted</text>
{"".join(marks)}</svg><figcaption>{html.escape(title)}: {len(drawn)} rows, median error
{100 * errors[len(errors) // 2]:.1f} %, {100 * covered:.0f} % inside their interval (red: outside)</figcaption>
{_by_group(drawn)}</figure>"""


def _by_group(points: Sequence[Point]) -> str:
    groups: dict[str, list[float]] = {}
    for point in points:
        groups.setdefault(point.group or "all", []).append(abs(point.predicted / point.measured - 1))
    if len(groups) < 2:
        return ""
    rows = "".join(
        f"<tr><td>{html.escape(group)}</td><td>{len(errors)}</td>"
        f"<td>{100 * sorted(errors)[len(errors) // 2]:.1f} %</td></tr>"
        for group, errors in sorted(groups.items(), key=lambda item: -len(item[1]))
    )
    return f"<table><tr><th>group</th><th>rows</th><th>median error</th></tr>{rows}</table>"
