"""What the page needs beside the API: numbers printed by the one renderer, so that no formatting is done twice.

``POST /web/tools/{name}`` runs a tool without any model and gives its result with the text and the printed facts;
``POST /web/shown`` prints the facts of an answer.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from advisor.answer import finite
from advisor.render import Sources, compose, render
from integrations.http.auth import Toolsmith
from integrations.http.bodies import read_model, read_object
from integrations.http.metrics import Metrics
from integrations.http.routes.tools import tool_of
from integrations.http.service import Here
from tools.registry import ToolSpec
from tools.result import ToolResult
from tools.units import UNITS, format_range, format_value

router = APIRouter(include_in_schema=False)
MAX_FACTS = 2000


class Printable(BaseModel):
    """The part of a fact that is printed; what else it holds is of no use here."""

    model_config = ConfigDict(extra="ignore")

    id: str = Field(max_length=300)
    value: float | int | str | bool | None
    unit: str = ""
    low: float | None = None
    high: float | None = None


class PrintBody(BaseModel):
    """Facts to print."""

    facts: list[Printable] = Field(max_length=MAX_FACTS)


@router.post("/web/shown")
async def shown(request: Request, caller: Toolsmith) -> dict[str, dict[str, str]]:
    """Each fact's value and range as people read them, by fact id."""
    body = await read_model(request, PrintBody)
    return {fact.id: printed(fact.value, fact.unit, fact.low, fact.high) for fact in body.facts}


@router.post("/web/tools/{name}")
async def recompute(name: str, request: Request, here: Here, caller: Toolsmith) -> dict[str, Any]:
    """A tool's result with its words; nothing of it passes a model."""
    spec = tool_of(name)
    arguments = await read_object(request)
    return await asyncio.to_thread(presented, spec, arguments, here.metrics)


def presented(spec: ToolSpec, arguments: dict[str, Any], metrics: Metrics) -> dict[str, Any]:
    """Result, markdown and printed facts of one call. Raises InputProblem."""
    begun = time.perf_counter()
    outcome = "error"
    try:
        result = spec.call(arguments)
        outcome = "ok"
    finally:
        metrics.tool(spec.name, "web", outcome, time.perf_counter() - begun)
    milliseconds = (time.perf_counter() - begun) * 1e3
    data: dict[str, Any] = finite(result.model_dump(mode="json"))
    return {
        "tool": spec.name,
        "arguments": arguments,
        "result": data,
        "markdown": words(result),
        "shown": {fact.id: printed(fact.value, fact.unit, fact.low, fact.high) for fact in result.facts},
        "milliseconds": round(milliseconds, 2),
    }


def words(result: ToolResult) -> str:
    """Verdict, tables, next knobs and warnings of a result, as markdown."""
    sources = Sources()
    sources.add("r", result)
    payload = {
        "verdict": result.verdict,
        "facts": [{"id": fact.id, "name": fact.name, "label": fact.label} for fact in result.facts],
        "tables": [{"id": f"table:{table.id}"} for table in result.tables],
        "next_steps": result.next_steps,
        "warnings": [warn.text for warn in result.warnings],
    }
    return render(compose([payload]), sources).text


def printed(value: Any, unit: str, low: float | None, high: float | None) -> dict[str, str]:
    """{"value": words} and, with both ends given, {"range": words}; numbers are in ``unit``, and a unit not in the
    closed list is printed without one.
    """
    known = unit if unit in UNITS else ""
    both = {"value": format_value(value, known)}
    if low is not None and high is not None:
        both["range"] = format_range(low, high, known)
    return both
