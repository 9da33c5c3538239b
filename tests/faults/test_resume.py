"""A stream that was cut goes on where it broke off: nothing asked twice, nothing shown twice, by nobody else."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from advisor.llm.protocol import Finish, ModelEvent, ModelFailed, ModelRequest, TextDelta
from advisor.store import SqlConversations
from integrations.http import turns
from integrations.http.drain import begin_drain
from tests.advisor.conftest import Scripted, says
from tests.faults.conftest import settles
from tests.integrations.http.conftest import Live, Serve, _toy_tools, serve  # noqa: F401  fixtures
from tests.integrations.http.test_ask import ASK, STREAM, events_of, weighing
from tests.integrations.http.test_leaving import Silent

KEPT = {**ASK, "keep_seconds": 20}


class Gated:
    """A model that says a paragraph, waits for ``gate``, and says another."""

    name = "prov/gated"

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.asked = 0
        self.left = False

    def reply(self, request: ModelRequest) -> Iterator[ModelEvent]:
        self.asked += 1
        yield TextDelta("First words.\n\n")
        while not self.gate.wait(0.02):
            if request.stopped():
                self.left = True
                raise ModelFailed("stopped", "Nobody waits.")
        yield TextDelta("Last words.")
        yield Finish()


def cut(live: Live, body: dict[str, Any], after: str) -> tuple[str, int, list[dict[str, Any]]]:
    """Ask, read as far as an event of this type, and hang up: the turn's id, the last number, the events read."""
    found: list[dict[str, Any]] = []
    numbers: list[int] = []
    with (
        httpx.Client(base_url=live.url, timeout=20) as client,
        client.stream("POST", "/v1/ask", json=body, headers=STREAM) as got,
    ):
        for line in got.iter_lines():
            numbers += [int(line[4:])] if line.startswith("id: ") else []
            found += events_of(line)
            if found and found[-1]["type"] == after and line.startswith("data: "):
                break
    return found[0]["turn_id"], numbers[-1], found


def resume(live: Live, turn: str, last: int | str) -> httpx.Response:
    return live.client.get(f"/v1/turns/{turn}/events", headers={"last-event-id": str(last)})


def test_the_rest_of_a_running_turn_comes_to_who_takes_it_up(serve: Serve) -> None:  # noqa: F811
    model = Gated()
    live = serve(model)
    turn, last, before = cut(live, KEPT, "text")
    time.sleep(0.3)
    threading.Timer(0.2, model.gate.set).start()
    rest = events_of(resume(live, turn, last).text)
    assert model.asked == 1
    assert rest[-1]["type"] == "done"
    said = "".join(event["text"] for event in [*before, *rest] if event["type"] == "text")
    assert said == rest[-1]["answer"]["answer"]
    assert said.startswith("First words.\n\nLast words.")
    kinds = [event["type"] for event in [*before, *rest]]
    assert kinds.count("started") == kinds.count("done") == 1
    assert len(live.service.desk.store.turns("local", rest[-1]["answer"]["conversation_id"]) or []) == 1


def test_numbers_go_on_and_any_place_may_be_named(serve: Serve) -> None:  # noqa: F811
    live = serve(weighing())
    got = live.client.post("/v1/ask", json=KEPT, headers=STREAM)
    whole = events_of(got.text)
    turn = whole[0]["turn_id"]
    for last in range(len(whole) + 1):
        again = resume(live, turn, last)
        assert events_of(again.text) == whole[last:]
        ids = [int(line[4:]) for line in again.text.splitlines() if line.startswith("id: ")]
        assert ids == list(range(last + 1, len(whole) + 1))
    for odd in ("", "-1", "x", "99999999999", "٣"):
        assert events_of(resume(live, turn, odd.encode()).text)[-1]["type"] == "done"  # type: ignore[arg-type]


def test_without_being_asked_to_keep_it_a_turn_stops_with_its_reader(serve: Serve) -> None:  # noqa: F811
    model = Gated()
    live = serve(model)
    turn, last, _before = cut(live, ASK, "text")
    assert settles(lambda: model.left)
    assert settles(lambda: live.service.turns.running == 0)
    assert events_of(resume(live, turn, last).text)[-1]["answer"]["status"] == "failed"  # as it was stored


def test_a_kept_turn_that_nobody_takes_up_stops_when_its_time_is_over(serve: Serve) -> None:  # noqa: F811
    model = Gated()
    live = serve(model)
    cut(live, {**KEPT, "keep_seconds": 0.5}, "text")
    time.sleep(0.2)
    assert not model.left
    assert settles(lambda: model.left, 3)
    assert settles(lambda: live.service.turns.running == 0, 3)


def test_a_kept_turn_is_stopped_on_request(serve: Serve) -> None:  # noqa: F811
    model = Gated()
    live = serve(model)
    turn, _last, _before = cut(live, KEPT, "text")
    assert live.client.delete(f"/v1/turns/{turn}").status_code == 204
    assert settles(lambda: model.left)
    assert live.client.delete("/v1/turns/t_none").status_code == 404


def test_an_answered_turn_is_sent_from_the_store_by_any_process(serve: Serve) -> None:  # noqa: F811
    one, two = serve(weighing()), serve(Scripted())
    turn, last, _before = cut(one, KEPT, "done")
    rest = events_of(resume(two, turn, last - 2).text)
    assert [event["type"] for event in rest] == ["text", "done"]
    assert rest[0]["replace"]
    assert rest[0]["text"] == rest[1]["answer"]["answer"]


def test_a_turn_that_another_process_works_on_is_waited_for(serve: Serve) -> None:  # noqa: F811
    model = Gated()
    one, two = serve(model), serve(Scripted(), ping_seconds=0.1)
    turn, last, _before = cut(one, KEPT, "text")
    threading.Timer(0.6, model.gate.set).start()
    got = resume(two, turn, last).text
    assert ": ping" in got
    assert events_of(got)[-1]["answer"]["answer"].startswith("First words.\n\nLast words.")


def test_a_turn_whose_process_died_is_said_to_be_lost(serve: Serve) -> None:  # noqa: F811
    live = serve(weighing())
    store = live.service.desk.store
    assert isinstance(store, SqlConversations)
    long_ago = datetime.now(UTC) - timedelta(seconds=live.service.desk.settings.turn_seconds + 60)
    opened = SqlConversations(store.database, lambda: long_ago).begin("local", None, "lost?")
    got = resume(live, opened.turn_id, 1)
    assert (got.status_code, got.json()["error"]["code"]) == (404, "not_answered")


def test_nobody_elses_turn_can_be_taken_up_or_stopped(serve: Serve) -> None:  # noqa: F811
    live = serve(weighing(), api_keys="ann:key-of-ann-1234567,bob:key-of-bob-1234567")
    ann, bob = ({"authorization": f"Bearer key-of-{name}-1234567"} for name in ("ann", "bob"))
    got = live.client.post("/v1/ask", json=KEPT, headers={**STREAM, **ann})
    turn = events_of(got.text)[0]["turn_id"]
    for method, path in (("GET", f"/v1/turns/{turn}/events"), ("DELETE", f"/v1/turns/{turn}")):
        assert live.client.request(method, path, headers=bob).status_code == 404
        assert live.client.request(method, path).status_code == 401
    live.service.turns._kept.clear()  # so that the store is asked
    assert live.client.get(f"/v1/turns/{turn}/events", headers=bob).status_code == 404
    assert live.client.get(f"/v1/turns/{turn}/events", headers=ann).status_code == 200


def test_only_so_many_turns_are_kept(serve: Serve, monkeypatch: Any) -> None:  # noqa: F811
    monkeypatch.setattr(turns, "MOST_KEPT", 3)
    live = serve(Scripted(*[says("Plain.") for _ in range(8)]))
    for _ in range(8):
        live.client.post("/v1/ask", json=KEPT, headers=STREAM)
    assert len(live.service.turns._kept) == 3


def test_a_stopping_server_tells_those_who_took_a_turn_up_too(serve: Serve) -> None:  # noqa: F811
    model = Silent("A first paragraph.\n\n", "And")
    live = serve(model, drain_seconds=0.3)
    turn, last, _before = cut(live, KEPT, "text")
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(resume(live, turn, last).text))
    reader.start()
    time.sleep(0.3)
    live.server.servers[0].get_loop().call_soon_threadsafe(begin_drain, live.service)
    reader.join(5)
    assert events_of(found[0])[-1]["type"] == "shutdown"
