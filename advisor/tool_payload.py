"""A tool's result as models read it: compact JSON whose fact ids carry the call's prefix.

    {"tool_call": "t1", "tool": "estimate_vram", "verdict": "… [[t1.peak_per_gpu]] …",
     "facts": [{"id": "t1.peak_per_gpu", "name", "value", "unit", "shown": "45.3 GB", "low", "high", "label", "about",
                "as_of"}],
     "tables": [{"id": "table:t1.bill", "title", "columns", "rows"}], "assumptions", "next_steps", "suggestions",
     "warnings", "sources"}
    {"tool_call": "t1", "tool": "estimate_vram", "error": {"code", "message", "field", "hint", "candidates"}}

Charts, steps and the tool's typed fields stay out: they would only cost tokens. Long lists are cut and say so.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tools.result import Fact, FileText, Table, ToolResult
from tools.units import format_range, format_value

MAX_FACTS = 60
MAX_ROWS = 12
_REFERENCE = re.compile(r"\[\[(?!table:)([^\[\]|]+)")
_TABLE_REFERENCE = re.compile(r"\[\[table:([^\[\]|]+)")


def payload(call: str, tool: str, result: ToolResult) -> dict[str, Any]:
    """What the model reads of ``result``; ``call`` is the prefix, e.g. t1."""
    data: dict[str, Any] = {"tool_call": call, "tool": tool}
    if result.verdict:
        data["verdict"] = prefix_references(call, result.verdict)
    data["facts"] = [_fact(call, fact) for fact in result.facts[:MAX_FACTS]]
    if len(result.facts) > MAX_FACTS:
        data["facts_left_out"] = len(result.facts) - MAX_FACTS
    data["tables"] = [_table(call, table) for table in result.tables]
    data["files"] = [file.model_dump() for file in getattr(result, "files", ()) if isinstance(file, FileText)]
    data["assumptions"] = [
        {"name": item.name, "value": item.value, "unit": item.unit, "why": item.why, "argument": item.argument}
        for item in result.assumptions
    ]
    data["next_steps"] = [prefix_references(call, text) for text in result.next_steps]
    data["suggestions"] = result.suggestions
    data["warnings"] = [prefix_references(call, item.text) for item in result.warnings]
    data["sources"] = [f"{item.title} ({item.as_of})" for item in result.sources]
    return {key: value for key, value in data.items() if value != []}


def error_payload(call: str, tool: str, error: dict[str, Any]) -> dict[str, Any]:
    """What the model reads of the failed call ``call``; keys of the error without a value are left out."""
    return {"tool_call": call, "tool": tool, "error": {key: value for key, value in error.items() if value}}


def dumps(data: dict[str, Any]) -> str:
    """Compact JSON text of a payload; what JSON does not know is written as text."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=str)


def prefix_references(call: str, text: str) -> str:
    """``[[peak_per_gpu]]`` as ``[[t1.peak_per_gpu]]``, tables alike."""
    if "[[" not in text:
        return text
    return _TABLE_REFERENCE.sub(rf"[[table:{call}.\1", _REFERENCE.sub(rf"[[{call}.\1", text))


def _fact(call: str, fact: Fact) -> dict[str, Any]:
    data: dict[str, Any] = {"id": f"{call}.{fact.id}", "name": fact.name, "value": fact.value, "unit": fact.unit}
    data["shown"] = format_value(fact.value, fact.unit)
    if fact.low is not None and fact.high is not None:
        data |= {"low": fact.low, "high": fact.high, "shown_range": format_range(fact.low, fact.high, fact.unit)}
    for key, value in (("label", fact.label), ("about", fact.about), ("as_of", fact.as_of)):
        if value:
            data[key] = value
    return data


def _table(call: str, table: Table) -> dict[str, Any]:
    rows = [
        [format_value(cell, column.unit) for cell, column in zip(row, table.columns, strict=False)]
        for row in table.rows[:MAX_ROWS]
    ]
    data: dict[str, Any] = {
        "id": f"table:{call}.{table.id}",
        "title": table.title,
        "columns": [column.label for column in table.columns],
        "rows": rows,
    }
    if len(table.rows) > MAX_ROWS:
        data["rows_left_out"] = len(table.rows) - MAX_ROWS
    return data
