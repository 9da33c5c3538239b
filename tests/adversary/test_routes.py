"""Every route, asked by everybody: the owner, a colleague, another firm, a revoked key, no key.

The routes are read from the OpenAPI document and from the app itself (which has routes that the document leaves out);
each needs its row in ``ROWS``. What is somebody's own is for others as if it were not there, in the same words.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import httpx
import pytest
from fastapi import FastAPI

from advisor.llm.protocol import ModelEvent, ModelRequest
from integrations.http import auth
from tests.advisor.conftest import Scripted, calls, says
from tests.integrations.http.conftest import Live, Serve, _toy_tools  # noqa: F401
from tools.registry import all_tools

SECRET = "how much memory does our project Nightingale need?"
OWNER, COLLEAGUE, STRANGER = "acme/ann", "acme/bob", "rival/eve"
MCP = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@dataclass(frozen=True)
class Row:
    """How a route is asked, and what it shows to whom.

    public: anybody; callers: whoever has a key, each their own; owned: names one thing, which is its owner's alone.
    """

    access: Literal["public", "callers", "owned"]
    body: Any = None
    ok: int = 200
    names: str = ""  # of an owned thing that is named in the body: the field


ROWS: dict[str, Row] = {
    "POST /v1/ask": Row("callers", {"question": "x?"}),
    "POST /v1/chat/completions": Row("callers", {"model": "scripted", "messages": [{"role": "user", "content": "x?"}]}),
    "GET /v1/models": Row("callers"),
    "GET /v1/models/{model}": Row("callers"),
    "GET /v1/tools": Row("callers"),
    "POST /v1/tools/{name}": Row("callers", {"model": "7B"}),
    "POST /v1/tools/{name}/batch": Row("callers", {"items": [{"model": "7B"}]}),
    "POST /web/tools/{name}": Row("callers", {"model": "7B"}),
    "POST /web/shown": Row("callers", {"facts": []}),
    "POST /mcp": Row("callers", MCP),
    "GET /v1/conversations": Row("callers"),
    "GET /v1/feedback": Row("callers"),
    "POST /v1/feedback": Row("owned", {"turn_id": "{turn}", "rating": 1}, ok=204, names="turn_id"),
    "GET /v1/conversations/{conversation_id}": Row("owned"),
    "GET /v1/conversations/{conversation_id}/export": Row("owned"),
    "DELETE /v1/conversations/{conversation_id}": Row("owned", ok=204),
    "GET /v1/turns/{turn_id}/events": Row("owned"),
    "DELETE /v1/turns/{turn_id}": Row("owned", ok=404),  # an answered turn has nothing left to stop, for its owner too
    "GET /livez": Row("public"),
    "GET /readyz": Row("public"),
    "GET /metrics": Row("public"),  # figures alone; ADVISOR_METRICS_TOKEN closes it
    "GET /openapi.json": Row("public"),
    "GET /docs": Row("public"),
    "GET /docs/docs.css": Row("public"),
    # The page is a shell for everybody; what it shows it asks for with the caller's key.
    "GET /": Row("public"),
    "GET /c/{conversation_id}": Row("public"),
    "GET /tools": Row("public"),
    "GET /tools/{name}": Row("public"),
    "GET /compare": Row("public"),
    "GET /static": Row("public"),
}


@dataclass
class Site:
    """A server on which the owner has asked one question."""

    live: Live
    keys: dict[str, str]
    answer: dict[str, Any]
    model: Scripted

    def ask(self, route: str, who: str, conversation: str = "", turn: str = "") -> httpx.Response:
        method, _, path = route.partition(" ")
        row = ROWS[route]
        here = conversation or self.answer["conversation_id"]
        filled = path.replace("{conversation_id}", here).replace("{model}", "scripted").replace("{name}", "toy_memory")
        filled = filled.replace("{turn_id}", turn or self.answer["turn_id"])
        filled = "/static/app.js" if filled == "/static" else filled
        body = row.body
        if row.names:
            body = {**body, row.names: turn or self.answer["turn_id"]}
        headers = {"accept": "application/json, text/event-stream"} if path == "/mcp" else {}
        if self.keys.get(who):
            headers["authorization"] = f"Bearer {self.keys[who]}"
        extra = {"json": body} if body is not None else {}
        return self.live.client.request(method, filled, headers=headers, **extra)


@pytest.fixture
def site(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(auth, "REMEMBERED_SECONDS", 0.0)
    first = [calls(("toy_memory", {"model": "7B"})), says("It needs [[t1.peak_per_gpu]].")]
    model = Scripted(*first, *[says("Fine.") for _ in range(40)])
    live = serve(model, auth="required", api_keys="operator:a-key-that-nobody-uses")
    accounts = live.service.accounts
    keys = {who: accounts.create_key(who) for who in (OWNER, COLLEAGUE, STRANGER)}
    keys["revoked"] = accounts.create_key(OWNER)
    found = accounts.find_key(keys["revoked"])
    assert found is not None
    accounts.revoke_key(found.id)
    keys["nobody"] = ""
    headers = {"authorization": f"Bearer {keys[OWNER]}"}
    answer = live.client.post("/v1/ask", json={"question": SECRET}, headers=headers).json()
    assert answer["status"] == "answered"
    return Site(live, keys, answer, model)


def test_every_route_has_a_row(site: Site) -> None:
    missing = sorted(set(routes(site.live.app)) - set(ROWS))
    assert not missing, f"new routes need a row in ROWS, which says who may ask them: {missing}"
    assert not sorted(set(ROWS) - set(routes(site.live.app))), "rows for routes that are gone"


def test_a_route_without_a_row_would_be_found(site: Site) -> None:
    @site.live.app.get("/v1/everything")
    def everything() -> dict[str, str]:
        return {}

    assert set(routes(site.live.app)) - set(ROWS) == {"GET /v1/everything"}


@pytest.mark.parametrize("who", ["revoked", "nobody"])
def test_without_a_key_that_works_nothing_but_the_public_routes_answers(site: Site, who: str) -> None:
    for route, row in ROWS.items():
        got = site.ask(route, who)
        wanted = row.ok if row.access == "public" else 401
        assert got.status_code == wanted, (route, got.status_code)
        assert "Nightingale" not in got.text, route


@pytest.mark.parametrize("who", [COLLEAGUE, STRANGER])
def test_what_is_anothers_is_as_if_it_were_not_there(site: Site, who: str) -> None:
    for route, row in ROWS.items():
        got = site.ask(route, who)
        assert "Nightingale" not in got.text, route
        assert site.answer["conversation_id"] not in got.text, route
        if row.access != "owned":
            assert got.status_code == row.ok, (route, got.status_code, got.text[:200])
            continue
        missing = site.ask(route, who, conversation="c_none", turn="t_none")
        assert (got.status_code, got.content) == (404, missing.content), route
        assert missing.status_code == 404
        hidden = {"x-request-id", "date"}
        assert {name: value for name, value in got.headers.items() if name not in hidden} == {
            name: value for name, value in missing.headers.items() if name not in hidden
        }
    # A conversation is gone on with by its id; with another's id a new one of one's own begins.
    headers = {"authorization": f"Bearer {site.keys[who]}"}
    body = {"question": "and now?", "conversation_id": site.answer["conversation_id"]}
    assert site.live.client.post("/v1/ask", json=body, headers=headers).status_code == 200
    seen = json.dumps([request.messages for request in site.model.requests[2:]], default=str)
    assert "Nightingale" not in seen


def test_a_running_turn_is_read_and_stopped_by_its_owner_alone(serve: Serve) -> None:
    """Others cannot tell it from one that never was, and it goes on whatever they try."""
    go = threading.Event()

    def waits(request: ModelRequest) -> list[ModelEvent]:
        assert go.wait(20)
        return says("It is fine.")

    live = serve(Scripted(waits), api_keys=f"{OWNER}:{'a' * 20},{STRANGER}:{'b' * 20}", auth="required")
    mine, theirs = ({"authorization": f"Bearer {letter * 20}"} for letter in "ab")
    body = {"question": SECRET, "keep_seconds": 20}
    streamed = {**mine, "accept": "text/event-stream"}
    with live.client.stream("POST", "/v1/ask", json=body, headers=streamed) as opened:
        first = next(line for line in opened.iter_lines() if line.startswith("data: "))
    path = f"/v1/turns/{json.loads(first[6:])['turn_id']}"
    for method, end in (("GET", "/events"), ("DELETE", "")):
        got = live.client.request(method, path + end, headers=theirs)
        missing = live.client.request(method, "/v1/turns/t_none" + end, headers=theirs)
        assert (got.status_code, got.content) == (404, missing.content)
    go.set()
    read = live.client.get(f"{path}/events", headers=mine)
    assert read.status_code == 200
    assert "It is fine." in read.text


def test_the_owner_reaches_it_all(site: Site) -> None:
    last = "DELETE /v1/conversations/{conversation_id}"
    for route in (*(route for route in ROWS if route != last), last):
        got = site.ask(route, OWNER)
        assert got.status_code == ROWS[route].ok, (route, got.status_code, got.text[:200])
        if route == "GET /v1/conversations":
            assert "Nightingale" in got.text
    assert site.ask(last, OWNER).status_code == 404


def test_a_key_does_what_its_scopes_say_and_no_more(site: Site) -> None:
    """A key of one scope is refused by each route of another, and by none of its own."""
    of = {
        "ask": ["POST /v1/ask", "POST /v1/chat/completions", "GET /v1/models", "GET /v1/models/{model}",
                "GET /v1/turns/{turn_id}/events", "DELETE /v1/turns/{turn_id}"],
        "tools": ["GET /v1/tools", "POST /v1/tools/{name}", "POST /v1/tools/{name}/batch", "POST /mcp",
                  "POST /web/tools/{name}", "POST /web/shown"],
        "feedback": ["GET /v1/feedback", "POST /v1/feedback"],
        "conversations": [route for route in ROWS if "/v1/conversations" in route],
    }  # fmt: skip
    assert sorted(route for group in of.values() for route in group) == sorted(
        route for route, row in ROWS.items() if row.access != "public"
    )
    for scope in of:
        site.keys[scope] = site.live.service.accounts.create_key(OWNER, scopes=[scope])
        for other, group in of.items():
            for route in group:
                if route.startswith("DELETE /v1"):
                    continue  # it would take away what the others are tried on
                got = site.ask(route, scope).status_code
                assert got == (ROWS[route].ok if other == scope else 403), (scope, route)


def routes(app: FastAPI) -> list[str]:
    """Every "METHOD /path" of the app, whether or not the document names it; a tool's own routes as one."""
    tools = {f"/v1/tools/{name}" for name in all_tools()}
    found = []
    for path, methods in app.openapi()["paths"].items():
        base = path.removesuffix("/batch")
        template = path.replace(base, "/v1/tools/{name}") if base in tools else path
        found += [f"{method.upper()} {template}" for method in methods]
    for path, methods in _of(app.routes):
        found += [f"{method} {path}" for method in methods - {"HEAD", "OPTIONS"}]
    return sorted({one.replace(":path}", "}") for one in found})


def _of(given: Iterable[Any]) -> Iterable[tuple[str, set[str]]]:
    for route in given:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from _of(inner.routes)
        else:
            yield route.path, set(getattr(route, "methods", None) or {"GET"})
