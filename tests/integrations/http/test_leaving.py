"""A caller that goes away stops the turn within a second; a full or stopping server refuses at once."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from advisor.llm.protocol import ModelEvent, ModelRequest, TextDelta
from tests.advisor.conftest import Scripted, says
from tests.integrations.http.conftest import Live, Serve
from tests.integrations.http.test_ask import ASK, STREAM, events_of

JSON = {"content-type": "application/json"}


class Silent:
    """A provider's model that says ``first`` and then nothing, until told that nobody waits."""

    name = "prov/silent"

    def __init__(self, *first: str) -> None:
        self.first = first
        self.asked = threading.Semaphore(0)
        self.hung_up = threading.Event()

    def reply(self, request: ModelRequest) -> Iterator[ModelEvent]:
        try:
            for piece in self.first:
                yield TextDelta(piece)
            self.asked.release()
            until = time.monotonic() + 15
            while not request.stopped() and time.monotonic() < until:
                time.sleep(0.02)
        finally:
            if request.stopped():
                self.hung_up.set()


def leave_during(live: Live, headers: dict[str, str], wait: Callable[[], object]) -> None:
    """Send the question on a bare socket, and close it once ``wait`` returns."""
    body = b'{"question": "how much?"}'
    lines = {"host": "127.0.0.1", **JSON, **headers, "content-length": str(len(body))}
    head = "POST /v1/ask HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items()) + "\r\n"
    with socket.create_connection(("127.0.0.1", live.port)) as connection:
        connection.sendall(head.encode() + body)
        wait()


def settles(condition: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


@pytest.mark.parametrize("headers", [{}, STREAM], ids=["json", "stream"])
@pytest.mark.parametrize("first", [(), ("A first paragraph.\n\n", "And")], ids=["before a word", "midway"])
def test_leaving_hangs_up_on_the_provider_within_a_second(
    serve: Serve, headers: dict[str, str], first: tuple[str, ...]
) -> None:
    model = Silent(*first)
    live = serve(model)
    leave_during(live, headers, model.asked.acquire)
    assert model.hung_up.wait(1.0)
    assert settles(lambda: live.service.turns.running == 0, 1.0)


def test_a_turn_that_was_left_is_kept_as_stopped(serve: Serve) -> None:
    model = Silent()
    live = serve(model)
    leave_during(live, {}, model.asked.acquire)
    (only,) = live.service.desk.store.recent("local")

    def stopped() -> bool:
        turns = live.service.desk.store.turns("local", only.id) or []
        return [turn.status for turn in turns] == ["failed"]

    assert settles(stopped, 1.5)


def test_leaving_the_queue_leaves_no_trace(serve: Serve) -> None:
    model = Silent()
    live = serve(model, turns=1, waiting_turns=4)
    with httpx.Client(base_url=live.url) as busy, busy.stream("POST", "/v1/ask", json=ASK, headers=STREAM):
        model.asked.acquire()
        leave_during(live, {}, lambda: settles(lambda: live.service.turns.running == 2, 2.0))
        assert settles(lambda: live.service.turns.running == 1, 1.0)
    assert len(live.service.desk.store.recent("local")) == 1


def test_more_than_may_wait_is_refused_at_once_with_a_time_to_come_back(serve: Serve) -> None:
    model = Silent()
    live = serve(model, turns=1, waiting_turns=0)
    with httpx.Client(base_url=live.url) as busy, busy.stream("POST", "/v1/ask", json=ASK, headers=STREAM):
        model.asked.acquire()
        begun = time.monotonic()
        got = live.client.post("/v1/ask", json=ASK)
        assert time.monotonic() - begun < 0.5
    assert (got.status_code, got.json()["error"]["code"]) == (503, "busy")
    assert int(got.headers["retry-after"]) >= 1


def test_one_caller_cannot_take_every_place(serve: Serve) -> None:
    model = Silent()
    live = serve(model, turns=8, turns_per_caller=1)
    with httpx.Client(base_url=live.url) as busy, busy.stream("POST", "/v1/ask", json=ASK, headers=STREAM):
        model.asked.acquire()
        got = live.client.post("/v1/ask", json=ASK)
    assert (got.status_code, got.json()["error"]["code"]) == (429, "too_many_turns")


def test_a_stopping_server_finishes_what_it_can_and_tells_the_rest(serve: Serve) -> None:
    from integrations.http.drain import begin_drain

    model = Silent()
    live = serve(model, drain_seconds=0.5)
    found: list[str] = []

    def listen() -> None:
        found.append(httpx.post(live.url + "/v1/ask", json=ASK, headers=STREAM, timeout=20).text)

    reader = threading.Thread(target=listen)
    reader.start()
    model.asked.acquire()
    loop = live.server.servers[0].get_loop()
    loop.call_soon_threadsafe(begin_drain, live.service)
    assert settles(lambda: live.service.turns.draining, 1.0)
    assert live.client.get("/readyz").status_code == 503
    assert live.client.get("/livez").status_code == 200
    refused = live.client.post("/v1/ask", json=ASK)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "shutting_down")
    reader.join(3)
    assert events_of(found[0])[-1]["type"] == "shutdown"
    assert model.hung_up.wait(1.0)


def test_a_short_answer_still_comes_while_stopping(serve: Serve) -> None:
    from integrations.http.drain import begin_drain

    gate = threading.Event()

    def late(request: ModelRequest) -> list[ModelEvent]:
        gate.wait(5)
        return says("Here I am.")

    live = serve(Scripted(late), drain_seconds=5)
    found: list[httpx.Response] = []
    reader = threading.Thread(target=lambda: found.append(httpx.post(live.url + "/v1/ask", json=ASK, timeout=20)))
    reader.start()
    assert settles(lambda: live.service.turns.running == 1, 2.0)
    live.server.servers[0].get_loop().call_soon_threadsafe(begin_drain, live.service)
    assert settles(lambda: live.service.turns.draining, 1.0)
    gate.set()
    reader.join(5)
    assert found[0].json()["answer"].startswith("Here I am.")
