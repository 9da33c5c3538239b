"""A tool's Vega-Lite chart as Slack's data_visualization block, where its shape allows it. Pure."""

from __future__ import annotations

import math
from typing import Any

from integrations.slack.escape import plain

TITLE, LABEL, AXIS = 50, 20, 50
MAX_CATEGORIES, MAX_SERIES = 20, 6


def native_chart(spec: dict[str, Any]) -> dict[str, Any] | None:
    """The block for a single-mark bar, line or area chart of inline values; None for anything else."""
    mark = spec.get("mark")
    kind = mark.get("type") if isinstance(mark, dict) else mark
    rows, encoding = spec.get("data", {}).get("values"), spec.get("encoding", {})
    if kind not in ("bar", "line", "area") or not isinstance(rows, list) or not rows:
        return None
    channels = [encoding.get("x") or {}, encoding.get("y") or {}]
    number = next((one for one in channels if one.get("type") == "quantitative" and "field" in one), None)
    other = next((one for one in channels if one is not number and "field" in one), None)
    if number is None or other is None:
        return None
    colour = (encoding.get("color") or {}).get("field")
    series: dict[str, dict[str, float]] = {}
    labels = _labels([str(row.get(other["field"], "")) for row in rows])
    categories: list[str] = []
    for row in rows:
        value, label = row.get(number["field"]), labels[str(row.get(other["field"], ""))]
        if not isinstance(value, (int, float)) or not math.isfinite(value):
            continue
        if label not in categories:
            categories.append(label)
        series.setdefault(plain(str(row.get(colour, "")) if colour else _axis(number), LABEL), {})[label] = value
    categories, named = categories[:MAX_CATEGORIES], list(series.items())[:MAX_SERIES]
    data = [
        {"name": name or "value", "data": [{"label": label, "value": values.get(label, 0)} for label in categories]}
        for name, values in named
    ]
    if not data or not categories:
        return None
    title = spec.get("title")
    title = title.get("text", "") if isinstance(title, dict) else title or "Chart"
    return {
        "type": "data_visualization",
        "title": plain(str(title), TITLE),
        "chart": {
            "type": kind,
            "series": data,
            "axis_config": {"categories": categories, "y_label": plain(_axis(number), AXIS)},
        },
    }


def _labels(names: list[str]) -> dict[str, str]:
    """A short label for each name; names that would be cut to the same one are numbered."""
    found: dict[str, str] = {}
    for name in names:
        if name not in found:
            label = plain(name, LABEL) or "–"
            taken = sum(label == other or other.startswith(f"{label[: LABEL - 4]} #") for other in found.values())
            found[name] = f"{label[: LABEL - 4]} #{taken + 1}" if taken else label
    return found


def _axis(channel: dict[str, Any]) -> str:
    return str(channel.get("title") or channel["field"])
