"""Accuracy plots as inline SVG: predicted against measured, with the interval, from the accuracy benches' rows."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
    """The packaged measurements against our predictions, and the recorded run of what others predict."""
    return scatter("memory per GPU", memory_points()) + scatter("tokens/s per GPU", throughput_points()) + peers_table()


def memory_points() -> list[Point]:
    """Published memory of sound rows, each in the unit it was measured in, bounds left out; grouped by method."""
    from evals.accuracy_memory import flags, outcomes_of, read_csv

    outcomes = outcomes_of(read_csv(None, "measured_memory.csv"), flags())
    return [
        Point(one.measured, one.predicted, one.low, one.high, one.method)
        for one in outcomes
        if one.status == "ok" and one.flag == "use" and not one.is_bound
    ]


def throughput_points() -> list[Point]:
    """Published speeds in tokens/s a GPU; grouped by card."""
    from evals.accuracy_throughput import DATA, outcome, read_rows

    return [
        Point(
            one.measured or 0.0, one.predicted or 0.0, one.low or 0.0, one.high or 0.0, (one.row or {}).get("gpu", "")
        )
        for one in map(outcome, read_rows(DATA))
        if one.scored and one.unit == "tokens/s/GPU"
    ]


def peers_table() -> str:
    """What others predict for the same rows, as recorded by ``python -m evals.peers``."""
    file = Path(__file__).parent / "data" / "peers.json"
    if not file.exists():
        return ""
    lines = [line for line in json.loads(file.read_text(encoding="utf-8")) if "missing" not in line]
    rows = "".join(
        f"<tr><td>{html.escape(line['peer'])}</td><td>{line['covered_pct']} %</td><td>{line['median_error_pct']} %</td>"
        f"<td>{line['p90_error_pct']} %</td><td>{line['our_median_on_the_same_rows_pct']} %</td></tr>"
        for line in lines
    )
    return (
        "<h3>Memory: others on the same rows</h3><table><tr><th>tool</th><th>rows it can express</th>"
        f"<th>median error</th><th>90th</th><th>ours on those rows</th></tr>{rows}</table>"
        "<p>Our few overhead constants were fitted on these rows; no other tool saw them.</p>"
    )


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
