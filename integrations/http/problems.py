"""Errors over HTTP: one shape for all routes, the OpenAI shape on the OpenAI routes only.

{"error": {"code", "message", "field", "hint", "candidates"}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from tools.errors import InputProblem

OPENAI_PATHS = ("/v1/models", "/v1/chat/")


class ServiceProblem(Exception):
    """A refusal of the service itself, rather than of a tool: no key, over the limit, too large, not found."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        field: str | None = None,
        hint: str | None = None,
        candidates: list[str] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.problem = InputProblem(code, message, field=field, hint=hint, candidates=candidates)
        self.headers: dict[str, str] = {}
        if retry_after is not None:
            self.headers["retry-after"] = str(max(1, round(retry_after)))
        if status == 401:
            self.headers["www-authenticate"] = 'Bearer realm="advisor"'


def not_found(what: str) -> ServiceProblem:
    """The same answer for what does not exist and for what belongs to somebody else."""
    return ServiceProblem(404, "not_found", f"There is no such {what}.")


def error_response(
    path: str, status: int, error: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """An error in the shape that callers of ``path`` expect: OpenAI's under its routes, else {"error": ...} with the
    keys of ``InputProblem.as_dict``.
    """
    body: dict[str, Any] = {"error": dict(error)}
    if path.startswith(OPENAI_PATHS):
        body = {"error": openai_error(status, error)}
    return JSONResponse(body, status, dict(headers or {}))


def openai_error(status: int, error: Mapping[str, Any]) -> dict[str, Any]:
    """The error object of the OpenAI wire format: message (with the hint), type by the status, param and code.
    ``error`` needs the keys message and code.
    """
    kind = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
    message = " ".join(part for part in (error["message"], error.get("hint")) if part)
    name = kind.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"message": message, "type": name, "param": error.get("field"), "code": error["code"]}


def install(app: FastAPI) -> None:
    """Make every refusal take the one shape. Faults (anything else) are the frame's, which knows the request's id."""

    @app.exception_handler(InputProblem)
    async def _input(request: Request, problem: InputProblem) -> JSONResponse:
        status = 422 if not request.scope["path"].startswith(OPENAI_PATHS) else 400
        return error_response(request.scope["path"], status, problem.as_dict())

    @app.exception_handler(ServiceProblem)
    async def _service(request: Request, problem: ServiceProblem) -> JSONResponse:
        return error_response(request.scope["path"], problem.status, problem.problem.as_dict(), problem.headers)

    @app.exception_handler(RequestValidationError)
    async def _parameters(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        field = str(first["loc"][-1])
        problem = InputProblem("bad_value", f"{field!r}: {first['msg']}.", field=field)
        return error_response(request.scope["path"], 422, problem.as_dict())

    @app.exception_handler(HTTPException)
    async def _framework(request: Request, error: HTTPException) -> JSONResponse:
        words = {404: ("not_found", "There is no such route."), 405: ("method_not_allowed", "Not with this method.")}
        code, message = words.get(error.status_code, ("refused", str(error.detail)))
        problem = InputProblem(code, message, hint="/docs lists the routes.")
        return error_response(request.scope["path"], error.status_code, problem.as_dict(), error.headers)
