"""``/v1/models`` and ``/v1/chat/completions``: the OpenAI wire format, for clients that speak nothing else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from advisor.answer import Answer
from advisor.events import Done, Event
from advisor.store import new_id
from integrations.http.auth import Asker, Caller
from integrations.http.bodies import read_model
from integrations.http.chores import chore_reply
from integrations.http.follow import ShuttingDown
from integrations.http.openapi import body_of, error_responses
from integrations.http.problems import ServiceProblem, openai_error
from integrations.http.routes.ask import started, stream_fault, unless_gone, with_pings
from integrations.http.service import Here, Service
from integrations.http.streams import PING, EventStream, sse
from integrations.http.transcripts import Continued, Said, Transcript
from integrations.http.turns import Ask

router = APIRouter(tags=["OpenAI wire format"])
BEGUN = int(time.time())
DONE = b"data: [DONE]\n\n"
# Tokens that the caller pays for: none. What a provider's model used is charged to the caller's budget here.
USAGE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
# Refused rather than ignored: an answer that silently did not do them would mislead the client.
_UNSUPPORTED = {
    "tools": "This server runs its own tools and cannot call yours.",
    "functions": "This server runs its own tools and cannot call yours.",
    "audio": "Answers are text.",
    "response_format": "Answers are Markdown; POST /v1/ask and /v1/tools give JSON.",
}


class Part(BaseModel):
    """A piece of a message."""

    model_config = ConfigDict(extra="allow")

    type: str
    text: str | None = None


class ChatMessage(BaseModel):
    """A message of the conversation."""

    model_config = ConfigDict(extra="allow")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None


class StreamOptions(BaseModel):
    """What a stream carries besides text."""

    model_config = ConfigDict(extra="allow")

    include_usage: bool = False


class ChatBody(BaseModel):
    """A request for the next answer. Sampling settings are taken and have no effect: numbers come from tools."""

    model_config = ConfigDict(extra="allow")

    model: str = Field(description="One of GET /v1/models.")
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=2000)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = Field(default=1, ge=1, le=1)


class ModelCard(BaseModel):
    """A model that may be named."""

    id: str
    object: Literal["model"] = "model"
    created: int = BEGUN
    owned_by: str


class ModelList(BaseModel):
    """The models."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


@router.get("/v1/models", summary="List the models", response_model=ModelList, responses=error_responses())
async def models(here: Here, caller: Asker) -> ModelList:
    """The models that answers may be made with; `planner` is built in and needs no provider."""
    return ModelList(data=[_card(name) for name in here.models])


@router.get("/v1/models/{model:path}", summary="One model", response_model=ModelCard, responses=error_responses(404))
async def model(model: str, here: Here, caller: Asker) -> ModelCard:
    """One of them."""
    if model not in here.models:
        raise _unknown_model(model, here)
    return _card(model)


@router.post(
    "/v1/chat/completions",
    summary="Answer the last message",
    openapi_extra=body_of(ChatBody),
    responses=error_responses(404, 413, 415, 429, 503),
)
async def chat(request: Request, here: Here, caller: Asker) -> Response:
    """Works with clients of the OpenAI API as they are; the answer is the same as that of `POST /v1/ask`."""
    body = await read_model(request, ChatBody)
    if body.model not in here.models:
        raise _unknown_model(body.model, here)
    _refuse_unsupported(body)
    said = _said(body)
    frame = _Frame(body.model)
    with_usage = bool(body.stream_options and body.stream_options.include_usage)
    chore = chore_reply(said[-1][1])
    if chore is not None:
        return _whole(frame, chore, body.stream, with_usage)
    transcript = await asyncio.to_thread(Transcript.recall, here.desk.store, caller.owner, said)
    turn = _turn(here, caller, transcript, body.model)
    if body.stream:
        events = await started(here.turns.events(turn))
        return EventStream(_chunks(events, here, caller, transcript, frame, with_usage), here.settings.reader_seconds)
    answer = await unless_gone(request, here.turns.answer(turn))
    if answer is None:
        return Response(status_code=499)
    await _remember(here, caller, transcript, answer)
    return JSONResponse(frame.completion(answer.answer))


def _turn(here: Service, caller: Caller, transcript: Transcript, model: str) -> Ask:
    turn = here.ask(caller, "openai", transcript.question, transcript.conversation_id, model)
    store = Continued(here.desk.store, transcript)
    return replace(turn, desk=replace(here.desk, store=store))


async def _chunks(
    events: AsyncIterator[Event],
    here: Service,
    caller: Caller,
    transcript: Transcript,
    frame: _Frame,
    with_usage: bool,
) -> AsyncIterator[bytes]:
    """The answer as chunks. What was sent cannot be taken back, so a corrected answer follows below a line."""
    yield sse(frame.chunk({"role": "assistant", "content": ""}))
    sent = pending = ""
    replaced = False
    try:
        async for event in with_pings(events, here.settings.ping_seconds):
            if event is None:
                yield PING
            elif event.type == "text":
                pending = event.text if event.replace else pending + event.text
                replaced = replaced or (event.replace and bool(sent))
                if not replaced:
                    yield sse(frame.chunk({"content": pending[len(sent) :]}))
                    sent = pending
            elif isinstance(event, Done):
                rest = _rest(sent, event.answer.answer)
                if rest:
                    yield sse(frame.chunk({"content": rest}))
                await _remember(here, caller, transcript, event.answer, sent + rest)
        yield sse(frame.chunk({}, "stop"))
        if with_usage:
            yield sse({**frame.chunk({}), "choices": [], "usage": USAGE})
    except ShuttingDown:
        words = {"code": "shutting_down", "message": "The server stopped before the answer was ready."}
        yield sse({"error": openai_error(503, words)})
    except Exception as error:
        yield sse({"error": openai_error(500, stream_fault(error))})
    yield DONE


def _rest(sent: str, answer: str) -> str:
    """What is still to be sent so that the reader holds the answer."""
    if answer.startswith(sent):
        return answer[len(sent) :]
    return f"\n\n---\n\nCorrected answer:\n\n{answer}"


async def _remember(
    here: Service, caller: Caller, transcript: Transcript, answer: Answer, shown: str | None = None
) -> None:
    text = answer.answer if shown is None else shown
    place = (answer.conversation_id, answer.turn_id)
    await asyncio.to_thread(transcript.remember, here.desk.store, caller.owner, text, *place)


def _whole(frame: _Frame, text: str, stream: bool | None, with_usage: bool) -> Response:
    """A reply that needs no turn."""
    if not stream:
        return JSONResponse(frame.completion(text))

    async def pieces() -> AsyncIterator[bytes]:
        yield sse(frame.chunk({"role": "assistant", "content": text}))
        yield sse(frame.chunk({}, "stop"))
        if with_usage:
            yield sse({**frame.chunk({}), "choices": [], "usage": USAGE})
        yield DONE

    return EventStream(pieces())


class _Frame:
    """What goes around each piece of one completion."""

    def __init__(self, model: str) -> None:
        self._base = {"id": new_id("chatcmpl"), "created": int(time.time()), "model": model}

    def chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return {**self._base, "object": "chat.completion.chunk", "choices": [choice]}

    def completion(self, text: str) -> dict[str, Any]:
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return {**self._base, "object": "chat.completion", "choices": [choice], "usage": USAGE}


def _said(body: ChatBody) -> list[Said]:
    """What was said, as text; system prompts of clients are not for this server. The last word must be a user's."""
    found: list[Said] = []
    for number, message in enumerate(body.messages):
        if message.role in ("user", "assistant"):
            found.append((message.role, _text(message, number)))
        elif message.role in ("tool", "function"):
            raise ServiceProblem(400, "unsupported_parameter", _UNSUPPORTED["tools"], field=f"messages[{number}].role")
    if not found or found[-1][0] != "user":
        raise ServiceProblem(400, "bad_value", "The last message must be the user's.", field="messages")
    return found


def _text(message: ChatMessage, number: int) -> str:
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    for part in message.content:
        if part.type not in ("text", "input_text", "refusal"):
            raise ServiceProblem(
                400, "unsupported_parameter", f"Only text is read, not {part.type[:40]!r}.",
                field=f"messages[{number}].content", hint="Paste logs and configurations as text.",
            )  # fmt: skip
    return "\n".join(part.text or "" for part in message.content)


def _refuse_unsupported(body: ChatBody) -> None:
    for name, words in _UNSUPPORTED.items():
        value = (body.model_extra or {}).get(name)
        plain = name == "response_format" and isinstance(value, dict) and value.get("type") == "text"
        if value and not plain:
            raise ServiceProblem(400, "unsupported_parameter", words, field=name, hint=f"Leave {name!r} out.")


def _unknown_model(name: str, here: Service) -> ServiceProblem:
    words = f"There is no model named {name[:80]!r} here."
    return ServiceProblem(404, "model_not_found", words, field="model", hint=f"There is: {', '.join(here.models)}.")


def _card(name: str) -> ModelCard:
    return ModelCard(id=name, owned_by="advisor" if name == "planner" else name.partition("/")[0])
