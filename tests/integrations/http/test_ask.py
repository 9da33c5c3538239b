"""``POST /v1/ask``: the contract's answer as JSON, the same turn as typed events, refusals in one shape."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from advisor import database
from advisor.llm.protocol import ModelFailed
from tests.advisor.conftest import Scripted, calls, says
from tests.integrations.http.conftest import Serve

CONTRACT = {
    "conversation_id", "turn_id", "status", "answer", "model", "degraded", "tool_calls", "facts", "assumptions",
    "citations", "warnings", "charts", "suggestions", "grounding",
}  # fmt: skip
ASK = {"question": "how much memory does 7B need?"}
STREAM = {"accept": "text/event-stream"}


def weighing(turns: int = 1) -> Scripted:
    moves = []
    for number in range(1, turns + 1):
        moves += [calls(("toy_memory", {"model": "7B"})), says(f"It needs [[t{number}.peak_per_gpu]] a GPU.")]
    return Scripted(*moves)


def events_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


def test_an_answer_has_the_shape_of_the_contract(serve: Serve) -> None:
    got = serve(weighing()).client.post("/v1/ask", json=ASK)
    assert got.status_code == 200
    answer = got.json()
    assert set(answer) == CONTRACT
    assert answer["status"] == "answered"
    assert answer["answer"].startswith("It needs 45.3 GB a GPU.")
    assert answer["tool_calls"][0]["result"]["facts"][0]["value"] == 45.3e9


def test_a_question_goes_on_with_its_conversation(serve: Serve) -> None:
    model = weighing(2)
    client = serve(model).client
    first = client.post("/v1/ask", json={**ASK, "conversation_id": "mine-1"}).json()
    second = client.post("/v1/ask", json={"question": "and now?", "conversation_id": "mine-1"}).json()
    assert first["conversation_id"] == second["conversation_id"] == "mine-1"
    assert ASK["question"] in [message.content for message in model.requests[-1].messages]


def test_events_come_in_order_and_end_with_the_same_answer(serve: Serve) -> None:
    got = serve(weighing()).client.post("/v1/ask", json=ASK, headers=STREAM)
    assert got.headers["content-type"].startswith("text/event-stream")
    assert got.headers["x-accel-buffering"] == "no"
    events = events_of(got.text)
    kinds = [event["type"] for event in events]
    assert kinds[0] == "started"
    assert kinds[-1] == "done"
    assert kinds.index("tool_started") < kinds.index("tool_finished") < kinds.index("facts") < kinds.index("text")
    assert all(event["v"] == 1 for event in events)
    shown = ""
    for event in events:
        if event["type"] == "text":
            shown = event["text"] if event["replace"] else shown + event["text"]
    assert shown == events[-1]["answer"]["answer"]
    assert set(events[-1]["answer"]) == CONTRACT


def test_a_silent_stream_says_that_it_lives(serve: Serve) -> None:
    model = Scripted(calls(("toy_price", {"gpu": "H100", "seconds": 0.5})), says("[[t1.usd_per_gpu_hour]]"))
    got = serve(model, ping_seconds=0.1).client.post("/v1/ask", json=ASK, headers=STREAM)
    assert got.text.count(": ping\n") >= 2
    assert events_of(got.text)[-1]["type"] == "done"


REFUSED = {
    "empty question": ({"question": " "}, 422, "empty_question", "question"),
    "no question": ({}, 422, "missing_argument", "question"),
    "unknown argument": ({"question": "x?", "modle": "a"}, 422, "unknown_argument", "modle"),
    "bad conversation": ({"question": "x?", "conversation_id": "../etc"}, 422, "bad_value", "conversation_id"),
    "a model of nobody's choosing": ({"question": "x?", "model": "openai/o9"}, 422, "unknown_model", "model"),
    "too long": ({"question": "x" * 33_000}, 422, "question_too_long", "question"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_refusal_names_the_field_in_the_one_shape(serve: Serve, case: str, accept: str) -> None:
    body, status, code, field = REFUSED[case]
    got = serve(weighing()).client.post("/v1/ask", json=body, headers={"accept": accept})
    error = got.json()["error"]
    assert (got.status_code, error["code"], error["field"]) == (status, code, field)
    assert set(error) == {"code", "message", "field", "hint", "candidates"}
    assert got.headers["x-request-id"]


@pytest.mark.parametrize(
    ("content", "kind", "status", "code"),
    [
        (b'{"question": "x"}', "text/plain", 415, "unsupported_media_type"),
        (b"question=x", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
        (b'{"question": ', "application/json", 422, "bad_json"),
        (b'{"question": "a", "question": "b"}', "application/json", 422, "repeated_key"),
        (b'{"question": NaN}', "application/json", 422, "not_finite"),
        (b"[1]", "application/json", 422, "not_an_object"),
        (b'{"question": "\xff"}', "application/json", 422, "bad_json"),
        (b"[" * 100_000, "application/json", 422, "bad_json"),
        (b'{"question": "' + b"x" * 2_000_000 + b'"}', "application/json", 413, "too_large"),
    ],
)
def test_a_body_that_is_not_ours_is_refused(serve: Serve, content: bytes, kind: str, status: int, code: str) -> None:
    got = serve(weighing()).client.post("/v1/ask", content=content, headers={"content-type": kind})
    assert (got.status_code, got.json()["error"]["code"]) == (status, code)


def test_a_body_without_a_length_is_cut_at_the_limit(serve: Serve) -> None:
    def endless() -> Any:
        for _ in range(64):
            yield b"x" * 65_536

    client = serve(weighing()).client
    try:
        got = client.post("/v1/ask", content=endless(), headers={"content-type": "application/json"})
        assert got.status_code == 413
    except httpx.WriteError:
        pass  # the server hung up while we were still sending, which is as good
    assert client.get("/livez").status_code == 200


def test_a_failing_model_is_followed_by_the_next_and_the_answer_says_so(serve: Serve) -> None:
    broken = Scripted(ModelFailed("unavailable", "down"), name="prov/one")
    spare = weighing()
    answer = serve(broken, spare).client.post("/v1/ask", json=ASK).json()
    assert answer["degraded"] is True
    assert answer["model"] == "scripted"
    assert "prov/one could not answer" in answer["answer"]


def test_a_fault_of_ours_gives_its_id_and_nothing_else(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    live = serve(weighing())

    def broken(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(live.service.desk.store, "begin", broken)
    got = live.client.post("/v1/ask", json=ASK, headers={"x-request-id": "abc-1"})
    assert got.status_code == 500
    assert "abc-1" in got.json()["error"]["message"]
    assert "secret" not in got.text


def test_a_database_that_is_away_is_no_fault_of_the_program(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    live = serve(weighing())
    with closing(sqlite3.connect(tmp_path / "advisor.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        got = live.client.post("/v1/ask", json=ASK)
        assert (got.status_code, got.json()["error"]["code"]) == (503, "store_unavailable")
        assert got.headers["retry-after"] == "5"
        assert live.client.get("/readyz").status_code == 503
        assert live.client.get("/livez").status_code == 200
        other.execute("rollback")
    assert live.client.post("/v1/ask", json=ASK).status_code == 200


def test_a_stream_that_breaks_still_has_a_last_word(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    live = serve(weighing())

    def broken(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(live.service.metrics, "turn", broken)
    got = live.client.post("/v1/ask", json=ASK, headers=STREAM)
    assert events_of(got.text)[-1]["error"]["code"] == "internal"
    assert "secret" not in got.text


def test_what_does_not_exist_says_so(serve: Serve) -> None:
    client = serve().client
    assert client.get("/v2/ask").json()["error"]["code"] == "not_found"
    wrong = client.get("/v1/ask")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "method_not_allowed")
