"""``POST /slack/events`` on the server's app: Slack's signature is checked before bolt sees a byte."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response
from slack_bolt.adapter.fastapi.async_handler import AsyncSlackRequestHandler
from slack_sdk.signature import SignatureVerifier

from integrations.http.problems import ServiceProblem
from integrations.http.service import Service
from integrations.slack.app import build_bot
from integrations.slack.settings import Credentials, SlackSettings

_TIMESTAMP = re.compile(r"\d{10}")
_SIGNATURE = re.compile(r"v0=[0-9a-f]{64}")
MAX_SKEW_SECONDS = 300.0  # Slack's own advice against replays


def signed(headers: dict[str, str], body: bytes, secret: str, now: float) -> bool:
    """Whether Slack signed this body within the last minutes. Malformed headers are simply not signed."""
    stamp, signature = headers.get("x-slack-request-timestamp", ""), headers.get("x-slack-signature", "")
    if not _TIMESTAMP.fullmatch(stamp) or not _SIGNATURE.fullmatch(signature):
        return False
    if abs(now - int(stamp)) > MAX_SKEW_SECONDS:
        return False
    with suppress(UnicodeDecodeError):
        return SignatureVerifier(secret).is_valid(body.decode(), stamp, signature)
    return False


@asynccontextmanager
async def slack_events(
    app: FastAPI, service: Service, tokens: Credentials, settings: SlackSettings
) -> AsyncIterator[None]:
    """While this lasts, the app takes Slack's events and a worker answers them."""
    bot = await build_bot(service, tokens, settings)
    handler = AsyncSlackRequestHandler(bot.app)
    secret = tokens.signing_secret.get_secret_value() if tokens.signing_secret else ""
    router = APIRouter(include_in_schema=False)

    @router.post("/slack/events")
    async def events(request: Request) -> Response:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in request.headers.raw}
        if not signed(headers, await request.body(), secret, time.time()):
            raise ServiceProblem(401, "bad_signature", "This does not come from Slack, or is too old.")
        response: Response = await handler.handle(request)
        return response

    app.include_router(router)
    working = asyncio.create_task(bot.worker.run())
    try:
        yield
    finally:
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working
