"""Calling tools with JSON typed by people or scripts: strict parsing, one line of result a line of input."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from typing import Any

from advisor.answer import finite
from knowledge.foreign import Refused, read_json
from tools.errors import BadValue, InputProblem
from tools.registry import ToolSpec
from tools.result import ToolResult

MAX_JSON_CHARS = 1_000_000
log = logging.getLogger("advisor")


def parse_arguments(text: str) -> dict[str, Any]:
    """One JSON object. Raises BadValue for anything else, NaN, infinities and repeated keys included."""
    if len(text) > MAX_JSON_CHARS:
        raise BadValue("json_too_long", f"The JSON has {len(text):,} characters.", field="arguments")
    try:
        value = read_json(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BadValue(
            "bad_json",
            f"The arguments are not valid JSON ({where}: {error.msg.lower()}).",
            field="arguments",
            hint='Write them like {"model": "llama-3.1-8b", "n_gpus": 2}.',
        ) from None
    except Refused as refused:
        code = "bad_json" if refused.code == "too_deep" else refused.code
        field = refused.name if refused.code == "repeated_key" else "arguments"
        raise BadValue(code, refused.message, field=field) from None
    except ValueError:
        raise BadValue("bad_json", "The arguments hold a number that is too long.", field="arguments") from None
    if not isinstance(value, dict):
        raise BadValue(
            "not_an_object",
            "The arguments must be one JSON object.",
            field="arguments",
            hint='Write them like {"model": "llama-3.1-8b", "n_gpus": 2}.',
        )
    return value


def run_tool(spec: ToolSpec, arguments: dict[str, Any]) -> ToolResult:
    """The tool's result. Raises InputProblem, also (BadValue, logged) for a fault inside the tool, so that a caller
    sees one shape.
    """
    try:
        return spec.call(arguments)
    except InputProblem:
        raise
    except Exception:
        log.exception("tool %s failed", spec.name)
        raise BadValue(
            "tool_failed", f"{spec.name} failed on this input.", hint="Try other values; this is a fault of ours."
        ) from None


def run_batch(spec: ToolSpec, lines: Iterable[str]) -> Iterator[str]:
    """A JSON line for every line that is not blank: the result, or an error object for a bad one; in order."""
    for line in lines:
        if not line.strip():
            continue
        try:
            data: dict[str, Any] = run_tool(spec, parse_arguments(line)).model_dump(mode="json")
        except InputProblem as problem:
            data = {"error": problem.as_dict()}
        yield json.dumps(finite(data), ensure_ascii=False, separators=(",", ":"))
