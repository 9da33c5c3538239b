"""Around every request: its id, the body limit, security headers, figures, one log line, and a fault's plain answer.

Plain ASGI, since a middleware that wraps the response object hides from a route that its caller has gone.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
import time
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from advisor.database import StoreUnavailable
from integrations.http.balance import Balance
from integrations.http.metrics import Metrics
from integrations.http.problems import OPENAI_PATHS, openai_error
from integrations.http.tracing import end_request, request_span
from tools.errors import InputProblem

log = logging.getLogger("advisor.http")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
# Nothing may load from, or send to, anywhere else; pages carry no inline script.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
BODY_SECONDS = 30.0  # a caller who sends byte by byte does not hold a connection for ever
_QUIET = frozenset({"/livez", "/readyz", "/metrics"})


class Frame:
    """The outermost layer of the app."""

    def __init__(self, app: ASGIApp, metrics: Metrics, body_bytes: int, balance: Balance | None = None) -> None:
        self._app, self._metrics, self._body_bytes = app, metrics, body_bytes
        self._balance = balance or Balance()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode()), *_HEADERS]
                if self._balance.too_many():
                    message["headers"].append((b"connection", b"close"))
            await send(message)

        with request_span(scope["method"], Headers(scope=scope)) as span:
            self._balance.begin()
            try:
                await self._guarded(scope, receive, sending, lambda: status, request_id)
            finally:
                self._balance.end()
                end_request(span, scope["method"], route_of(scope), status)
                self._account(scope, status, time.perf_counter() - begun, request_id)

    async def _guarded(
        self, scope: Scope, receive: Receive, sending: Send, status: Callable[[], int], request_id: str
    ) -> None:
        """The app itself; what goes wrong in it is answered here if nothing was answered yet."""
        try:
            await self._app(scope, _Limited(receive, scope, self._body_bytes), sending)
        except TooLarge:
            if not status():
                words = f"The body is larger than {self._body_bytes:,} bytes."
                await _refuse(sending, scope, 413, InputProblem("too_large", words, hint="Send less at once."))
        except TooSlow:
            if not status():
                words = f"The body did not arrive within {BODY_SECONDS:g} s."
                await _refuse(sending, scope, 408, InputProblem("too_slow", words, hint="Send it again."))
        except StoreUnavailable:
            log.exception("the database is not available", extra={"request_id": request_id})
            if not status():
                words = "The database is not available just now; ask again in a moment."
                await _refuse(sending, scope, 503, InputProblem("store_unavailable", words))
        except Exception:
            log.exception("request failed", extra={"request_id": request_id})
            if not status():
                words = f"Something went wrong on our side; it is logged as request {request_id}."
                await _refuse(sending, scope, 500, InputProblem("internal", words))

    def _account(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        route = route_of(scope)
        method = scope["method"] if scope["method"] in ("GET", "POST", "DELETE", "HEAD", "OPTIONS") else "other"
        self._metrics.requests.labels(route, method, str(status)).inc()
        self._metrics.request_seconds.labels(route).observe(seconds)
        if log.isEnabledFor(logging.INFO) and route not in _QUIET:
            fields = {
                "request_id": request_id,
                "method": method,
                "route": route,
                "status": status,
                "milliseconds": round(seconds * 1e3, 1),
                **scope.get("state", {}).get("log", {}),
            }
            log.info("request", extra=fields)


class TooLarge(Exception):
    """The body passed the limit."""


class TooSlow(Exception):
    """The body did not arrive in time."""


class _Limited:
    """``receive`` that counts the body's bytes, whatever its declared length, and the seconds that it takes."""

    def __init__(self, receive: Receive, scope: Scope, most: int) -> None:
        self._receive, self._left = receive, most
        self._whole = False
        self._until = asyncio.get_running_loop().time() + BODY_SECONDS
        length = dict(scope["headers"]).get(b"content-length", b"0")
        self._refused = length.isdigit() and int(length[:20]) > most

    async def __call__(self) -> Message:
        if self._refused:
            raise TooLarge
        if self._whole:  # what comes now is the caller's leaving
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            raise TooSlow from None
        if message["type"] == "http.request":
            self._whole = not message.get("more_body", False)
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                raise TooLarge
        return message


def route_of(scope: Scope) -> str:
    """The route's template, e.g. /v1/conversations/{conversation_id}, so that a label or log line holds no id."""
    path = getattr(scope.get("route"), "path", None)
    if path is not None:
        return str(path)
    return "/mcp" if scope["path"].startswith("/mcp") else "unmatched"


def _request_id(scope: Scope) -> str:
    """The caller's id where it is harmless text, else a new one."""
    given = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
    return given if _REQUEST_ID.fullmatch(given) else f"r_{secrets.token_hex(8)}"


async def _refuse(send: Send, scope: Scope, status: int, problem: InputProblem) -> None:
    error = problem.as_dict()
    if scope["path"].startswith(OPENAI_PATHS):
        error = openai_error(status, error)
    body = json.dumps({"error": error}, ensure_ascii=False).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status in (408, 413):
        headers.append((b"connection", b"close"))
    if status == 503:
        headers.append((b"retry-after", b"5"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
