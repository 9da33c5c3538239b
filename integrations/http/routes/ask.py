"""``POST /v1/ask``: a question in; the whole answer as JSON, or its events as they happen."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from advisor.answer import Answer
from advisor.events import Done, Event, Started
from integrations.http.auth import Asker
from integrations.http.bodies import read_model
from integrations.http.follow import ShuttingDown
from integrations.http.openapi import body_of, error_responses
from integrations.http.problems import ServiceProblem
from integrations.http.service import Here
from integrations.http.streams import PING, EventStream, disconnected, sse
from tools.errors import InputProblem

log = logging.getLogger("advisor.http")
router = APIRouter(tags=["ask"])
T = TypeVar("T")


class AskBody(BaseModel):
    """A question."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(description="The question in plain words.", examples=["what GPU for 70B QLoRA?"])
    conversation_id: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9._:-]{1,128}$",
        description="Goes on with this conversation; of your own making or from an earlier answer.",
    )
    model: str | None = Field(default=None, description="One of GET /v1/models; else the server's own choice.")
    keep_seconds: float = Field(
        default=0.0,
        ge=0,
        le=60,
        description="How long a turn goes on when its stream is cut; until then GET /v1/turns/{turn_id}/events goes on "
        "with it. 0: a caller that leaves stops its turn.",
    )


@router.post(
    "/v1/ask",
    summary="Answer a question",
    response_model=Answer,
    openapi_extra=body_of(AskBody),
    responses={
        200: {
            "description": "The answer; with `accept: text/event-stream` its events, the last one `done`, `error` or "
            "`shutdown`.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        **error_responses(413, 415, 429, 503),
    },
)
async def ask(request: Request, here: Here, caller: Asker) -> Response:
    """Every number in the answer comes from a tool, with its unit, range, assumptions, source and date."""
    body = await read_model(request, AskBody)
    turn = here.ask(caller, "http", body.question, body.conversation_id, body.model)
    if "text/event-stream" in request.headers.get("accept", ""):
        followed = here.turns.begin(turn, keep_seconds=body.keep_seconds)
        numbered = await started(followed.follow())
        if body.keep_seconds and isinstance(first := followed.events[0], Started):
            most = here.desk.settings.turn_seconds + body.keep_seconds
            here.turns.keep(caller.owner, first.turn_id, followed, most)
        return EventStream(as_sse(numbered, here.settings.ping_seconds), here.settings.reader_seconds)
    answer = await unless_gone(request, here.turns.answer(turn))
    if answer is None:
        return Response(status_code=499)
    return Response(answer.as_text(), media_type="application/json")


async def started(events: AsyncIterator[T]) -> AsyncIterator[T]:
    """``events`` with the first one already here, so that a refusal is a status and not a stream."""
    first = await anext(events)

    async def whole() -> AsyncIterator[T]:
        try:
            yield first
            async for event in events:
                yield event
        finally:
            await events.aclose()  # type: ignore[attr-defined]

    return whole()


async def unless_gone(request: Request, work: Any) -> Answer | None:
    """The answer; None, with the turn stopped, when the caller has gone meanwhile. Raises ServiceProblem 503 where the
    server stops first, and what ``work`` raises.
    """
    working = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(disconnected(request.receive))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            return None
        answer: Answer = working.result()
        return answer
    except ShuttingDown:
        words = "The server stopped before the answer was ready."
        raise ServiceProblem(503, "shutting_down", words, retry_after=5) from None
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)


async def as_sse(events: AsyncIterator[tuple[int, Event]], ping_seconds: float, after: int = 0) -> AsyncIterator[bytes]:
    """The numbered events on the wire; pings while there is nothing to say; always one last word."""
    number = after
    conversation = None
    try:
        async for numbered in with_pings(events, ping_seconds):
            if numbered is None:
                yield PING
                continue
            number, event = numbered
            conversation = getattr(event, "conversation_id", conversation)
            yield sse(_data(event), event.type, number)
    except ShuttingDown:
        yield sse({"v": 1, "type": "shutdown", "conversation_id": conversation}, "shutdown", number + 1)
    except Exception as error:
        yield sse({"v": 1, "type": "error", "error": stream_fault(error)}, "error", number + 1)


def stream_fault(error: Exception) -> dict[str, Any]:
    """What ends a stream that cannot go on; the status was sent long ago."""
    if isinstance(error, InputProblem):
        return error.as_dict()
    log.error("a stream broke", exc_info=error)
    return InputProblem("internal", "Something went wrong on our side; it is logged.").as_dict()


async def with_pings(events: AsyncIterator[T], seconds: float) -> AsyncIterator[T | None]:
    """The events as they come, and None whenever none came for ``seconds``, so that a proxy keeps the connection. What
    the source raises is raised; the source is closed when the reader leaves.
    """
    upcoming: asyncio.Future[T] = asyncio.ensure_future(_next(events))
    try:
        while True:
            done, _ = await asyncio.wait({upcoming}, timeout=seconds)
            if not done:
                yield None
                continue
            try:
                event = upcoming.result()
            except StopAsyncIteration:
                return
            yield event
            upcoming = asyncio.ensure_future(_next(events))
    finally:
        upcoming.cancel()
        await asyncio.gather(upcoming, return_exceptions=True)
        await events.aclose()  # type: ignore[attr-defined]


async def _next(events: AsyncIterator[T]) -> T:
    return await anext(events)


def _data(event: Event) -> str:
    if isinstance(event, Done):  # the answer's text is there already, as it was kept
        return f'{{"v":{event.v},"type":"done","answer":{event.answer.as_text()}}}'
    return event.model_dump_json()
