"""``/v1/conversations`` and ``/v1/feedback``: what was asked, for who asked it; what they thought of the answers."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from advisor.question import clean
from advisor.store import Rated, StoredTurn
from integrations.http.auth import Critic, Reader
from integrations.http.bodies import read_model
from integrations.http.openapi import body_of, error_responses
from integrations.http.problems import not_found
from integrations.http.service import Here, Service

router = APIRouter()


class ConversationCard(BaseModel):
    """A conversation in the list."""

    id: str
    title: str
    turns: int
    updated_at: str


class ConversationList(BaseModel):
    """Conversations, newest first; ``next`` is the `before` of the next page."""

    conversations: list[ConversationCard]
    next: str | None = None


class TurnRecord(BaseModel):
    """A question and its answer; none while it is worked on."""

    turn_id: str
    question: str
    status: str
    model: str
    created_at: str
    answer: dict[str, Any] | None


class ConversationRecord(BaseModel):
    """A conversation, oldest turn first."""

    id: str
    turns: list[TurnRecord]


class FeedbackBody(BaseModel):
    """What somebody thought of an answer; the last word on a turn counts."""

    model_config = ConfigDict(extra="forbid")

    turn_id: str = Field(min_length=1, max_length=64, description="The answer's `turn_id`.")
    rating: Literal[-1, 0, 1] = Field(description="-1 bad, 1 good, 0 withdraws an opinion.")
    comment: str = Field(default="", max_length=4000, description="What was wrong, or right.")


class FeedbackList(BaseModel):
    """Rated turns, newest first, in the form of an eval case: the turns as typed, the calls made, what was said."""

    feedback: list[dict[str, Any]]


Limit = Annotated[int, Query(ge=1, le=200, description="At most so many.")]


@router.get(
    "/v1/conversations",
    tags=["conversations"],
    summary="List your conversations",
    response_model=ConversationList,
    responses=error_responses(),
)
async def list_conversations(
    here: Here, caller: Reader, limit: Limit = 50, before: Annotated[str | None, Query(max_length=40)] = None
) -> ConversationList:
    """Newest first, page by page."""
    found = await asyncio.to_thread(here.desk.store.recent, caller.owner, limit, before)
    cards = [
        ConversationCard(id=item.id, title=item.title, turns=item.turns, updated_at=item.updated_at) for item in found
    ]
    return ConversationList(conversations=cards, next=cards[-1].updated_at if len(cards) == limit else None)


@router.get(
    "/v1/conversations/{conversation_id}",
    tags=["conversations"],
    summary="Read a conversation",
    response_model=ConversationRecord,
    responses=error_responses(404),
)
async def read_conversation(conversation_id: str, here: Here, caller: Reader) -> JSONResponse:
    """Every turn with its whole answer."""
    turns = await _turns(here, caller.owner, conversation_id)
    return JSONResponse({"id": conversation_id, "turns": [_record(turn) for turn in turns]})


@router.get(
    "/v1/conversations/{conversation_id}/export",
    tags=["conversations"],
    summary="Export a conversation",
    responses={
        200: {"content": {"text/markdown": {"schema": {"type": "string"}}}, "description": "The file."},
        **error_responses(404),
    },
)
async def export_conversation(
    conversation_id: str, here: Here, caller: Reader, format: Literal["json", "markdown"] = "json"
) -> Response:
    """As a file: JSON with everything, or Markdown to read and share."""
    turns = await _turns(here, caller.owner, conversation_id)
    if format == "json":
        response: Response = JSONResponse({"id": conversation_id, "turns": [_record(turn) for turn in turns]})
    else:
        response = Response(_markdown(turns), media_type="text/markdown")
    suffix = "json" if format == "json" else "md"
    response.headers["content-disposition"] = f'attachment; filename="conversation.{suffix}"'
    return response


@router.delete(
    "/v1/conversations/{conversation_id}",
    tags=["conversations"],
    summary="Delete a conversation",
    status_code=204,
    responses=error_responses(404),
)
async def delete_conversation(conversation_id: str, here: Here, caller: Reader) -> Response:
    """With all its turns and the feedback on them."""
    if not await asyncio.to_thread(here.desk.store.delete, caller.owner, conversation_id):
        raise not_found("conversation")
    return Response(status_code=204)


@router.post(
    "/v1/feedback",
    tags=["feedback"],
    summary="Say what you think of an answer",
    status_code=204,
    openapi_extra=body_of(FeedbackBody),
    responses=error_responses(404, 413, 415),
)
async def give_feedback(request: Request, here: Here, caller: Critic) -> Response:
    """Kept with the turn: a bad answer can become a test case."""
    body = await read_model(request, FeedbackBody)
    store = here.desk.store
    if not await asyncio.to_thread(store.add_feedback, caller.owner, body.turn_id, body.rating, clean(body.comment)):
        raise not_found("turn")
    return Response(status_code=204)


@router.get(
    "/v1/feedback",
    tags=["feedback"],
    summary="List your feedback as eval cases",
    response_model=FeedbackList,
    responses=error_responses(),
)
async def list_feedback(
    here: Here, caller: Critic, rating: Annotated[int | None, Query(ge=-1, le=1)] = None, limit: Limit = 100
) -> JSONResponse:
    """Each with the questions that led to it; `advisor feedback` shows those of all callers."""
    found = await asyncio.to_thread(here.desk.store.rated, caller.owner, rating, limit)
    return JSONResponse({"feedback": [eval_case(item) for item in found]})


def eval_case(item: Rated) -> dict[str, Any]:
    """A rated turn in the form that `advisor eval questions` reads, with what was answered beside it."""
    answer = item.answer or {}
    return {
        "id": item.turn_id,
        "turns": list(item.questions),
        "rating": item.rating,
        "comment": item.comment,
        "created_at": item.created_at,
        "model": answer.get("model"),
        "status": answer.get("status"),
        "answer": answer.get("answer"),
        "tool_calls": [{"name": call["name"], "arguments": call["arguments"]} for call in answer.get("tool_calls", ())],
    }


async def _turns(here: Service, owner: str, conversation_id: str) -> list[StoredTurn]:
    found = await asyncio.to_thread(here.desk.store.turns, owner, conversation_id)
    if found is None:
        raise not_found("conversation")
    return found


def _record(turn: StoredTurn) -> dict[str, Any]:
    return TurnRecord(
        turn_id=turn.id,
        question=turn.question,
        status=turn.status,
        model=turn.model,
        created_at=turn.created_at,
        answer=turn.answer,
    ).model_dump(mode="json")


def _markdown(turns: list[StoredTurn]) -> str:
    parts = []
    for turn in turns:
        question = "\n".join(f"> {line}" for line in turn.question.splitlines())
        answer = turn.answer["answer"] if turn.answer else "(not answered)"
        parts.append(f"{question}\n\n{answer}\n\n*{turn.model or 'no model'}, {turn.created_at}*")
    return "\n\n---\n\n".join(parts) + "\n"
