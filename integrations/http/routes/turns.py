"""``/v1/turns/{turn_id}``: taking up the stream of a question after a cut, and stopping one that nobody wants any more.

A turn begun with ``keep_seconds`` goes on for a while without its reader. The process that works on it has its events;
any other, or a later one, has what is stored: it waits for the answer there and sends that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Header
from fastapi.responses import Response

from advisor.answer import Answer
from advisor.events import Done, Event, Text
from advisor.store import StoredTurn
from integrations.http.auth import Asker
from integrations.http.openapi import error_responses
from integrations.http.problems import ServiceProblem, not_found
from integrations.http.routes.ask import as_sse
from integrations.http.service import Here, Service
from integrations.http.streams import EventStream

router = APIRouter(tags=["ask"])
LOOK_SECONDS = 0.5  # how often the store is asked for an answer that another process works on


@router.get(
    "/v1/turns/{turn_id}/events",
    summary="Go on with a stream that was cut",
    responses={
        200: {
            "description": "The events after the one that `last-event-id` names, the last one `done`, `error` or "
            "`shutdown`.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        **error_responses(404, 503),
    },
)
async def resume(
    turn_id: str,
    here: Here,
    caller: Asker,
    last_event_id: Annotated[str, Header(description="Number of the last event that arrived; none: all.")] = "",
) -> Response:
    """For turns begun with `keep_seconds`; an answered one is sent from the store, as one `text` and `done`."""
    after = int(last_event_id) if last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 7 else 0
    followed = here.turns.kept(caller.owner, turn_id)
    if followed is not None:
        numbered = followed.follow(min(after, len(followed.events)))
    else:
        await _look(here, caller.owner, turn_id)  # what cannot be had is a status and not a stream
        numbered = _stored(here, caller.owner, turn_id, after)
    return EventStream(as_sse(numbered, here.settings.ping_seconds, after), here.settings.reader_seconds)


@router.delete(
    "/v1/turns/{turn_id}",
    summary="Stop a question",
    status_code=204,
    responses=error_responses(404),
)
async def stop(turn_id: str, here: Here, caller: Asker) -> Response:
    """Ends a turn begun with `keep_seconds` at once; what it found so far is kept."""
    followed = here.turns.kept(caller.owner, turn_id)
    if followed is None:
        raise not_found("turn")
    followed.end()
    return Response(status_code=204)


async def _stored(here: Service, owner: str, turn_id: str, after: int) -> AsyncGenerator[tuple[int, Event], None]:
    """What the store has of the turn, once it is answered."""
    try:
        while (answer := (await _look(here, owner, turn_id)).answer) is None:
            await asyncio.sleep(LOOK_SECONDS)
    except ServiceProblem as gone:
        raise gone.problem from None
    whole = Answer.model_validate(answer)
    yield after + 1, Text(text=whole.answer, replace=True)
    yield after + 2, Done(answer=whole)


async def _look(here: Service, owner: str, turn_id: str) -> StoredTurn:
    """The turn as it is stored. Raises ServiceProblem when there is none, or none that will ever be answered."""
    turn = await asyncio.to_thread(here.desk.store.turn, owner, turn_id)
    if turn is None:
        raise not_found("turn")
    if turn.answer is None and _age_seconds(turn) > here.desk.settings.turn_seconds + LATE_SECONDS:
        words = "This question was not answered: the server that worked on it is gone."
        raise ServiceProblem(404, "not_answered", words, hint="Ask it again.")
    return turn


LATE_SECONDS = 15.0  # what the last model of the ladder may take beyond the turn's time, and some


def _age_seconds(turn: StoredTurn) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(turn.created_at)).total_seconds()
