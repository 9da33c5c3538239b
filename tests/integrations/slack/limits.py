"""Block Kit's limits as Slack's reference states them; the fake server refuses what breaks one."""

from __future__ import annotations

from typing import Any

KNOWN = {
    "section", "context", "actions", "header", "divider", "table", "markdown", "context_actions", "data_visualization",
    "input",
}  # fmt: skip


def problems(blocks: list[dict[str, Any]], most: int = 50) -> list[str]:
    """What Slack would refuse in these blocks."""
    found = [] if len(blocks) <= most else [f"{len(blocks)} blocks"]
    if sum(block.get("type") == "table" for block in blocks) > 1:
        found.append("only_one_table_allowed")
    if sum(block.get("type") == "data_visualization" for block in blocks) > 2:
        found.append("more than two charts")
    if sum(len(block.get("text", "")) for block in blocks if block.get("type") == "markdown") > 12_000:
        found.append("markdown over 12,000 characters")
    for block in blocks:
        kind = block.get("type")
        if kind not in KNOWN:
            found.append(f"unknown block {kind}")
        elif kind == "section":
            found += _text(block["text"], 3000)
        elif kind == "header":
            found += _text(block["text"], 150)
        elif kind == "context":
            found += [issue for one in block["elements"] for issue in _text(one, 2000)]
        elif kind == "actions":
            found += _buttons(block["elements"])
        elif kind == "table":
            found += _table(block)
        elif kind == "data_visualization":
            found += _chart(block)
        elif kind == "markdown" and not block["text"]:
            found.append("empty markdown")
    return found


def _text(text: dict[str, Any], most: int) -> list[str]:
    words = text.get("text", "")
    return [] if 0 < len(words) <= most else [f"text of {len(words)} characters (limit {most})"]


def _buttons(elements: list[dict[str, Any]]) -> list[str]:
    found = [] if 0 < len(elements) <= 25 else ["too many elements"]
    ids = [one["action_id"] for one in elements]
    if len(set(ids)) != len(ids):
        found.append("action_id twice")
    for one in elements:
        found += _text(one["text"], 75)
        if len(one.get("value", "")) > 2000:
            found.append("button value too long")
    return found


def _table(block: dict[str, Any]) -> list[str]:
    rows = block["rows"]
    found = [] if 0 < len(rows) <= 100 else ["table rows"]
    if any(not 0 < len(row) <= 20 for row in rows) or len({len(row) for row in rows}) != 1:
        found.append("table columns")
    if len(block.get("column_settings", [])) > 20:
        found.append("column settings")
    found += ["empty cell" for row in rows for cell in row if not cell["text"]]
    return found


def _chart(block: dict[str, Any]) -> list[str]:
    chart = block["chart"]
    found = [] if 0 < len(block["title"]) <= 50 else ["chart title"]
    if chart["type"] not in ("bar", "line", "area", "pie"):
        found.append("chart type")
    series, categories = chart["series"], chart["axis_config"]["categories"]
    if not 0 < len(series) <= 6:
        found.append("chart series")
    if any(not 0 < len(label) <= 20 for label in categories):
        found.append("chart label")
    for one in series:
        if not 0 < len(one["name"]) <= 20 or {point["label"] for point in one["data"]} - set(categories):
            found.append("chart points")
    return found
