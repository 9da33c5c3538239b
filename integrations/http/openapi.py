"""The OpenAPI document: bodies and results of tools taken from the registry, with their units and examples."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from advisor import __doc__ as about
from tools.registry import ToolSpec, all_tools

REF = "#/components/schemas/{model}"
JSON = "application/json"
_bodies: list[type[BaseModel]] = []  # of routes that read their body themselves
_DESCRIPTIONS = {
    400: "The body is not a JSON object, or a parameter is not supported.",
    401: "No key, or one that is not valid.",
    403: "The key does not allow this.",
    404: "There is no such thing, or it is not yours.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    422: "What is wrong, in which field, and the nearest valid values.",
    429: "Over a limit; Retry-After says when to come back.",
    503: "Busy or stopping; Retry-After says when to come back.",
}


class Problem(BaseModel):
    """What is wrong and what to do about it."""

    code: str
    message: str
    field: str | None = None
    hint: str | None = None
    candidates: list[str] = []


class Refusal(BaseModel):
    """The one shape of an error."""

    error: Problem


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """The ``openapi_extra`` of a route that reads its body itself; the model's schema is added to the document's
    components as a side effect.
    """
    _bodies.append(model)
    schema = {"$ref": REF.format(model=model.__name__)}
    return {"requestBody": {"required": True, "content": {JSON: {"schema": schema}}}}


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route that may refuse with these statuses; 400, 401, 403 and 422 are always among them."""
    return {
        status: {"model": Refusal, "description": _DESCRIPTIONS[status]}
        for status in sorted({*statuses, 400, 401, 403, 422})
    }


def install(app: FastAPI) -> None:
    """Let the app describe itself so; made once, when first asked for."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    found = get_openapi(
        title="Training-infrastructure advisor",
        version=app.version,
        description=(about or "").strip(),
        routes=app.routes,
    )
    specs = all_tools().values()
    models = [*_bodies, *(model for spec in specs for model in (spec.input_model, spec.output_model))]
    mode: Literal["validation"] = "validation"
    used = [(model, mode) for model in dict.fromkeys(models)]
    names, definitions = models_json_schema(used, ref_template=REF)
    schemas = found.setdefault("components", {}).setdefault("schemas", {})
    for name, schema in definitions.get("$defs", {}).items():
        schemas.setdefault(name, schema)
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for spec in specs:
        argument, result = names[spec.input_model, mode], names[spec.output_model, mode]
        found["paths"][f"/v1/tools/{spec.name}"] = {"post": _call(spec, argument, result)}
        found["paths"][f"/v1/tools/{spec.name}/batch"] = {"post": _batch(spec, argument, result)}
    found["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    found["security"] = [{}, {"key": []}]
    return found


def _call(spec: ToolSpec, argument: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": argument}
    if spec.examples:
        body["examples"] = {f"example {number}": {"value": value} for number, value in enumerate(spec.examples, 1)}
    return {
        "tags": ["tools"],
        "operationId": spec.name,
        "summary": spec.summary,
        "description": spec.description,
        "requestBody": {"required": True, "content": {JSON: body}},
        "responses": _responses("The result.", result),
    }


def _batch(spec: ToolSpec, argument: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    refusal = {"$ref": REF.format(model="Refusal")}
    items = {"type": "array", "items": argument}
    results = {"type": "array", "items": {"anyOf": [refusal, result]}}
    body = {"type": "object", "properties": {"items": items}, "required": ["items"]}
    answer = {"type": "object", "properties": {"results": results}, "required": ["results"]}
    return {
        "tags": ["tools"],
        "operationId": f"{spec.name}_batch",
        "summary": f"Many calls of {spec.name}",
        "description": "Results in the order of the items; a bad item gives an error object and stops nothing. "
        "`application/x-ndjson`, one object a line, is taken and given too.",
        "requestBody": {"required": True, "content": {JSON: {"schema": body}}},
        "responses": _responses("The results.", answer),
    }


def _responses(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    refusals = {
        str(status): {
            "description": words,
            "content": {JSON: {"schema": {"$ref": REF.format(model="Refusal")}}},
        }
        for status, words in _DESCRIPTIONS.items()
        if status != 404
    }
    return {"200": {"description": description, "content": {JSON: {"schema": schema}}}, **refusals}
