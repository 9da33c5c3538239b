"""Conversations and feedback over HTTP, and that nobody reaches what is anothers, whatever the route."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.advisor.conftest import Scripted, says
from tests.integrations.http.conftest import Live, Serve
from tests.integrations.http.test_ask import ASK, weighing

ANN, BOB = "key-of-ann-0123456789", "key-of-bob-0123456789"
KEYS = f"ann:{ANN},bob:{BOB}"


def as_(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def test_a_conversation_is_listed_read_exported_and_deleted(serve: Serve) -> None:
    client = serve(weighing(2)).client
    answer = client.post("/v1/ask", json=ASK).json()
    path = f"/v1/conversations/{answer['conversation_id']}"
    client.post("/v1/ask", json={"question": "and <b>now</b>?", "conversation_id": answer["conversation_id"]})
    (card,) = client.get("/v1/conversations").json()["conversations"]
    assert (card["id"], card["turns"], card["title"]) == (answer["conversation_id"], 2, ASK["question"])
    turns = client.get(path).json()["turns"]
    assert turns[0]["answer"] == answer
    exported = client.get(path + "/export", params={"format": "json"})
    assert exported.json()["turns"] == turns
    assert "attachment" in exported.headers["content-disposition"]
    text = client.get(path + "/export", params={"format": "markdown"}).text
    assert text.startswith(f"> {ASK['question']}\n\n{answer['answer']}")
    assert client.delete(path).status_code == 204
    gone = client.get(path)
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "not_found")
    assert client.delete(path).status_code == 404


def test_the_list_goes_on_page_by_page(serve: Serve) -> None:
    client = serve(Scripted(*[says("Fine.") for _ in range(3)])).client
    for number in range(3):
        client.post("/v1/ask", json={"question": f"question {number}?"})
    first = client.get("/v1/conversations", params={"limit": 2}).json()
    rest = client.get("/v1/conversations", params={"limit": 2, "before": first["next"]}).json()
    titles = [card["title"] for card in first["conversations"] + rest["conversations"]]
    assert titles == ["question 2?", "question 1?", "question 0?"]
    assert rest["next"] is None


def test_a_bad_answer_becomes_a_case_that_can_be_asked_again(serve: Serve) -> None:
    client = serve(weighing(2)).client
    first = client.post("/v1/ask", json=ASK).json()
    answer = client.post("/v1/ask", json={"question": "and now?", "conversation_id": first["conversation_id"]}).json()
    body = {"turn_id": answer["turn_id"], "rating": -1, "comment": "too\x1b[2J high\x00"}
    assert client.post("/v1/feedback", json=body).status_code == 204
    (case,) = client.get("/v1/feedback", params={"rating": -1}).json()["feedback"]
    assert case["turns"] == [ASK["question"], "and now?"]
    assert case["comment"] == "too high"
    assert case["tool_calls"] == [{"name": "toy_memory", "arguments": {"model": "7B"}}]
    assert client.get("/v1/feedback", params={"rating": 1}).json()["feedback"] == []


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"turn_id": "t_none", "rating": 1}, 404, None),
        ({"turn_id": "t", "rating": 5}, 422, "rating"),
        ({"rating": 1}, 422, "turn_id"),
        ({"turn_id": "t", "rating": 1, "comment": "x" * 5000}, 422, "comment"),
    ],
)
def test_feedback_that_makes_no_sense_is_refused(serve: Serve, body: dict[str, Any], status: int, field: str) -> None:
    got = serve().client.post("/v1/feedback", json=body)
    assert (got.status_code, got.json()["error"]["field"]) == (status, field)


def requests_for(document: dict[str, Any], answer: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """One request for every route of the document that is not for everybody, aimed at ann's conversation."""
    bodies: dict[str, Any] = {
        "/v1/ask": {"question": "x?"},
        "/v1/feedback": {"turn_id": answer["turn_id"], "rating": 1},
        "/v1/chat/completions": {"model": "scripted", "messages": [{"role": "user", "content": "x?"}]},
    }
    found = []
    for path, methods in document["paths"].items():
        if path in ("/livez", "/readyz", "/"):
            continue
        for method in methods:
            body = bodies.get(path, {"model": "7B"} if path.startswith("/v1/tools/") else None)
            target = path.replace("{conversation_id}", answer["conversation_id"]).replace("{model}", "scripted")
            target = target.replace("{turn_id}", answer["turn_id"])
            found.append((method.upper(), target, {"json": body} if body is not None and method == "post" else {}))
    return found


def ask_all(live: Live, key: str | None, answer: dict[str, Any]) -> list[tuple[str, str, httpx.Response]]:
    headers = as_(key) if key else {}
    document = live.client.get("/openapi.json").json()
    found = []
    for method, path, extra in requests_for(document, answer):
        assert "{" not in path, f"a new route needs its line in this test: {path}"
        found.append((method, path, live.client.request(method, path, headers=headers, **extra)))
    return found


def test_no_route_lets_in_who_has_no_key_or_a_revoked_one(serve: Serve) -> None:
    live = serve(weighing(1), api_keys=KEYS)
    answer = live.client.post("/v1/ask", json=ASK, headers=as_(ANN)).json()
    revoked = live.service.accounts.create_key("ann")
    live.service.accounts.revoke_key(live.service.accounts.all_keys()[0].id)
    for key in (None, revoked, "nonsense"):
        for method, path, got in ask_all(live, key, answer):
            assert got.status_code == 401, (method, path, got.status_code)


def test_no_route_shows_or_changes_what_is_anothers(serve: Serve) -> None:
    model = Scripted(*weighing(1).moves, *[says("Fine.") for _ in range(9)])
    live = serve(model, api_keys=KEYS)
    secret = "how much memory does our secret project need?"
    answer = live.client.post("/v1/ask", json={"question": secret}, headers=as_(ANN)).json()
    before = live.client.get(f"/v1/conversations/{answer['conversation_id']}", headers=as_(ANN)).json()
    for method, path, got in ask_all(live, BOB, answer):
        assert "secret project" not in got.text, (method, path)
        for known, none in ((answer["conversation_id"], "c_none"), (answer["turn_id"], "t_none")):
            if known in path:
                assert got.status_code == 404, (method, path)
                missing = live.client.request(method, path.replace(known, none), headers=as_(BOB))
                assert got.json() == missing.json()  # nothing tells a foreign one from none
    same_id = {"question": "and now?", "conversation_id": answer["conversation_id"]}
    assert live.client.post("/v1/ask", json=same_id, headers=as_(BOB)).status_code == 200
    assert "secret project" not in json.dumps([request.messages for request in model.requests[2:]], default=str)
    assert live.client.get(f"/v1/conversations/{answer['conversation_id']}", headers=as_(ANN)).json() == before
