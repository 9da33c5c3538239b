"""The OpenAI wire format, through the official client against the running server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from advisor.llm.protocol import Message, ModelRequest
from integrations.http.chores import chore_reply
from tests.advisor.conftest import Scripted, calls, says
from tests.integrations.http.conftest import Live, Serve
from tests.integrations.http.test_ask import weighing
from tests.integrations.http.test_leaving import Silent

ASK: list[Any] = [{"role": "user", "content": "how much memory does 7B need?"}]
Connect = Any


@pytest.fixture
def connect() -> Iterator[Connect]:
    opened: list[openai.OpenAI] = []

    def start(live: Live, key: str = "none") -> openai.OpenAI:
        opened.append(openai.OpenAI(base_url=live.url + "/v1", api_key=key, max_retries=0, timeout=20))
        return opened[-1]

    yield start
    for client in opened:
        client.close()


def test_the_models_are_listed_and_one_can_be_asked_for(serve: Serve, connect: Connect) -> None:
    client = connect(serve(weighing(), Scripted(name="prov/two")))
    assert [model.id for model in client.models.list()] == ["scripted", "prov/two", "planner"]
    assert client.models.retrieve("prov/two").owned_by == "prov"
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("gpt-9")
    assert caught.value.code == "model_not_found"


def test_a_completion_is_the_checked_answer(serve: Serve, connect: Connect) -> None:
    got = connect(serve(weighing())).chat.completions.create(
        model="scripted", messages=[{"role": "system", "content": "Be a pirate."}, *ASK], temperature=0.3
    )
    (choice,) = got.choices
    assert choice.finish_reason == "stop"
    assert (choice.message.content or "").startswith("It needs 45.3 GB a GPU.")
    assert got.model == "scripted"
    assert got.usage is not None


def test_a_stream_says_the_same_piece_by_piece(serve: Serve, connect: Connect) -> None:
    model = Scripted(
        calls(("toy_memory", {"model": "7B"})),
        says("It needs [[t1.peak_per_gpu]].\n\n", "That is [[t1.headroom]] free."),
    )
    live = serve(model)
    with connect(live).chat.completions.create(
        model="scripted", messages=ASK, stream=True, stream_options={"include_usage": True}
    ) as stream:
        chunks = list(stream)
    assert chunks[0].choices[0].delta.role == "assistant"
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert len(pieces) > 1
    (conversation,) = live.service.desk.store.recent("local")
    (turn,) = live.service.desk.store.turns("local", conversation.id) or []
    assert turn.answer is not None
    assert "".join(pieces) == turn.answer["answer"]
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage is not None
    assert len({chunk.id for chunk in chunks}) == 1


def test_a_corrected_answer_follows_what_cannot_be_taken_back(serve: Serve, connect: Connect) -> None:
    """The first paragraph holds and is sent; the second invents a number, so the whole is written again."""
    model = Scripted(
        calls(("toy_memory", {"model": "7B"})),
        says("It needs [[t1.peak_per_gpu]].\n\n", "It costs 7777 USD.\n\n"),
        says("Just [[t1.peak_per_gpu]]."),
    )
    with connect(serve(model)).chat.completions.create(model="scripted", messages=ASK, stream=True) as stream:
        text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    assert "7777" not in text
    assert text.startswith("It needs 45.3 GB.")
    assert "Corrected answer:\n\nJust 45.3 GB." in text


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_goes_on_with_what_the_tools_found(serve: Serve, connect: Connect, stream: bool) -> None:
    model = weighing(2)
    live = serve(model)
    client = connect(live)
    first = client.chat.completions.create(model="scripted", messages=ASK, stream=stream)
    text = (
        "".join(chunk.choices[0].delta.content or "" for chunk in first if chunk.choices)
        if stream
        else first.choices[0].message.content
    )
    said = [*ASK, {"role": "assistant", "content": text + "\n"}, {"role": "user", "content": "and on two?"}]
    client.chat.completions.create(model="scripted", messages=said)
    (conversation,) = live.service.desk.store.recent("local")
    assert conversation.turns == 2
    assert [message.role for message in spoken(model.requests[-2])] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]


def spoken(request: ModelRequest) -> tuple[Message, ...]:
    return tuple(message for message in request.messages if message.role != "system")


def test_asking_again_from_the_middle_begins_a_conversation_of_its_own(serve: Serve, connect: Connect) -> None:
    live = serve(weighing(1), Scripted())
    client = connect(live)
    text = client.chat.completions.create(model="scripted", messages=ASK).choices[0].message.content
    middle = [*ASK, {"role": "assistant", "content": text}]
    model = Scripted(says("Fine."), says("Fine."))
    object.__setattr__(live.service.desk, "open_model", lambda _name: model)
    for question in ("and on two?", "and on four?"):
        client.chat.completions.create(model="scripted", messages=[*middle, {"role": "user", "content": question}])
    asked = [[message.content for message in request.messages if message.role == "user"] for request in model.requests]
    assert asked == [[ASK[0]["content"], "and on two?"], [ASK[0]["content"], "and on four?"]]
    assert sorted(item.turns for item in live.service.desk.store.recent("local")) == [1, 2]


def test_a_conversation_begun_elsewhere_is_taken_as_sent(serve: Serve, connect: Connect) -> None:
    model = weighing()
    said = [
        *ASK,
        {"role": "assistant", "content": "About 40."},
        {"role": "user", "content": [{"type": "text", "text": "sure?"}]},
    ]
    connect(serve(model)).chat.completions.create(model="scripted", messages=said)
    assert spoken(model.requests[0]) == (
        Message("user", ASK[0]["content"]), Message("assistant", "About 40."), Message("user", "sure?")
    )  # fmt: skip


@pytest.mark.parametrize(
    ("extra", "param"),
    [
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}, "tools"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"messages": [{"role": "tool", "tool_call_id": "1", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "messages"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "messages[0].content",
        ),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": ""}]}, "question"),
        ({"n": 2}, "n"),
    ],
)
def test_what_it_cannot_do_is_said_in_the_clients_own_shape(
    serve: Serve, connect: Connect, extra: dict[str, Any], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        connect(serve(weighing())).chat.completions.create(**{"model": "scripted", "messages": ASK, **extra})
    body: Any = caught.value.body
    assert body["param"] == param
    assert set(body) == {"message", "type", "param", "code"}


def test_a_wrong_key_and_a_full_server_raise_the_clients_own_errors(serve: Serve, connect: Connect) -> None:
    live = serve(weighing(), api_keys="a-key-of-some-length")
    with pytest.raises(openai.AuthenticationError):
        connect(live, "wrong").chat.completions.create(model="scripted", messages=ASK)
    connect(live, "a-key-of-some-length").chat.completions.create(model="scripted", messages=ASK)
    live.service.turns.refuse_new()
    with pytest.raises(openai.InternalServerError) as caught:
        connect(live, "a-key-of-some-length").chat.completions.create(model="scripted", messages=ASK)
    assert caught.value.code == "shutting_down"


def test_closing_the_stream_stops_the_turn(serve: Serve, connect: Connect) -> None:
    model = Silent("A first paragraph.\n\n", "And")
    live = serve(model)
    with connect(live).chat.completions.create(model="prov/silent", messages=ASK, stream=True) as stream:
        next(iter(stream))
        model.asked.acquire()
    assert model.hung_up.wait(1.0)


TITLE = """### Task:
Generate a concise, 3-5 word title with an emoji summarizing the chat history.
### Guidelines:
- The title should clearly represent the main theme.
### Output:
JSON format: { "title": "your concise title here" }
### Chat History:
<chat_history>
USER: What GPU do I need for QLoRA of a 70B model with long context and several adapters at once?
ASSISTANT: One H100.
</chat_history>"""
TAGS = TITLE.replace(
    "Generate a concise, 3-5 word title with an emoji summarizing", "Generate 1-3 broad tags categorizing"
)
FOLLOW = "### Task:\nSuggest 3-5 relevant follow-up questions or prompts.\n### Guidelines:\n### Chat History:\nUSER: x"


def test_side_jobs_are_answered_without_a_turn(serve: Serve, connect: Connect) -> None:
    live = serve(weighing())
    client = connect(live)

    def reply(prompt: str) -> Any:
        got = client.chat.completions.create(model="scripted", messages=[{"role": "user", "content": prompt}])
        return json.loads(got.choices[0].message.content)

    assert reply(TITLE) == {"title": "What GPU do I need for QLoRA of a 70B model…"}
    assert reply(TAGS) == {"tags": ["GPU", "QLoRA", "70B"]}
    assert reply(FOLLOW) == {"follow_ups": []}
    assert live.service.desk.store.recent("local") == []


def test_a_title_asked_for_in_words_is_words() -> None:
    prompt = (
        "Provide a concise, 5-word-or-less title for the conversation, using title case.\nUser: does 7B fit on a 4090?"
    )
    assert chore_reply(prompt) == "does 7B fit on a 4090"


@pytest.mark.parametrize(
    "question",
    [
        "what title should my conversation with the CFO about GPU spend have?",
        "how many H100 for a 70B chat model?",
        "task: size a cluster",
        "name a GPU for a 7B chat model",
    ],
)
def test_a_persons_question_is_not_taken_for_a_side_job(question: str) -> None:
    assert chore_reply(question) is None
