"""Reading request bodies: JSON objects only, strict, and with the same words for a fault as every other surface."""

from __future__ import annotations

from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel

from advisor.tool_batch import parse_arguments
from integrations.http.problems import ServiceProblem
from tools.errors import BadValue
from tools.registry import parse_input

Body = TypeVar("Body", bound=BaseModel)


async def read_object(request: Request) -> dict[str, Any]:
    """The body as a JSON object; an empty body is an empty object."""
    require_json(request)
    return parse_object(await request.body())


async def read_model(request: Request, model: type[Body]) -> Body:
    """The body as ``model``. Raises InputProblem naming the first field at fault."""
    parsed = parse_input(model, await read_object(request))
    assert isinstance(parsed, model)
    return parsed


def require_json(request: Request, *also: str) -> None:
    """Refuse other content types than JSON and ``also``: any web page can make a browser send a form or plain text to a
    server on loopback. Raises ServiceProblem 415.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/json", *also):
        raise ServiceProblem(
            415, "unsupported_media_type", "Send JSON.", hint="Set the header content-type: application/json."
        )


def parse_object(data: bytes) -> dict[str, Any]:
    """A JSON object without NaN, infinities, repeated names or bottomless nesting; {} for an empty body. Raises
    BadValue for anything else, bytes that are no UTF-8 among it.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise BadValue("bad_json", "The body is not UTF-8.") from None
    return parse_arguments(text) if text.strip() else {}
