"""``/docs``: the routes for people, made from the OpenAPI document, with nothing loaded from elsewhere."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, select_autoescape
from markdown_it import MarkdownIt
from markupsafe import Markup

router = APIRouter(include_in_schema=False)
PAGES = Path(__file__).parent.parent / "pages"


@router.get("/docs")
def docs(request: Request) -> Response:
    """Every route with its arguments, units, defaults and an example to paste."""
    document = request.app.openapi()
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if not path.endswith("/batch"):
                shown = _shown(document, path, method, operation)
                groups.setdefault(operation.get("tags", ["other"])[0], []).append(shown)
    page = _pages().get_template("docs.html").render(about=document["info"], groups=groups)
    return HTMLResponse(page)


@router.get("/docs/docs.css")
def style() -> Response:
    """The page's style sheet."""
    return FileResponse(PAGES / "docs.css", media_type="text/css")


def _shown(document: dict[str, Any], path: str, method: str, operation: dict[str, Any]) -> dict[str, Any]:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    example = next((item["value"] for item in body.get("examples", {}).values()), None)
    return {
        "id": operation["operationId"],
        "method": method.upper(),
        "path": path,
        "summary": operation.get("summary", ""),
        "description": _html(operation.get("description", "")),
        "arguments": [*_parameters(operation), *_fields(document, body.get("schema", {}))],
        "example": json.dumps(example, ensure_ascii=False) if example is not None else None,
    }


def _parameters(operation: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        _argument(item["name"], item["schema"], item.get("required", False), item.get("description", ""))
        for item in operation.get("parameters", [])
    ]


def _fields(document: dict[str, Any], schema: dict[str, Any]) -> list[dict[str, Any]]:
    found = _resolved(document, schema)
    return [
        _argument(name, field, name in found.get("required", []), field.get("description", ""))
        for name, field in found.get("properties", {}).items()
    ]


def _argument(name: str, schema: dict[str, Any], required: bool, about: str) -> dict[str, Any]:
    default = schema.get("default")
    return {
        "name": name,
        "kind": _kind(schema),
        "unit": schema.get("unit", ""),
        "default": "needed" if required else ("" if default is None else json.dumps(default, ensure_ascii=False)),
        "about": about,
    }


def _kind(schema: dict[str, Any]) -> str:
    """The type in words: ``number``, ``one of full, lora, qlora``, ``text or object``."""
    if "enum" in schema:
        return "one of " + ", ".join(str(value) for value in schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    if "anyOf" in schema:
        kinds = [_kind(part) for part in schema["anyOf"] if part.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    kind = str(schema.get("type", "object" if "$ref" in schema else "any"))
    return {"string": "text", "integer": "whole number", "boolean": "true or false"}.get(kind, kind)


def _resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = document["components"]["schemas"][name] if name else schema
    return found


@lru_cache(maxsize=1)
def _pages() -> Environment:
    return Environment(loader=FileSystemLoader(PAGES), autoescape=select_autoescape(["html"]))


def _html(text: str) -> Markup:
    return Markup(MarkdownIt("commonmark", {"html": False}).render(text))
