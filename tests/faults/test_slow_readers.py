"""Clients that read slowly, send slowly or leave: others are served meanwhile, and nothing of them stays behind."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from advisor.llm.protocol import Finish, ModelEvent, ModelRequest, TextDelta
from evals import slow_readers, soak
from integrations.http import frame
from tests.faults.conftest import settles
from tests.integrations.http.conftest import Live, Serve, _toy_tools, serve  # noqa: F401  fixtures
from tests.integrations.http.test_ask import ASK, STREAM, events_of, weighing

PARAGRAPHS = 40
PARAGRAPH = "Plain words without any figure. " * 150 + "\n\n"  # in all more than the buffers on the way hold


class Talker:
    """A model that says much at once."""

    name = "prov/talker"

    def reply(self, request: ModelRequest) -> Iterator[ModelEvent]:
        for _ in range(PARAGRAPHS):
            yield TextDelta(PARAGRAPH)
        yield Finish()


@contextmanager
def reading_nothing(live: Live, count: int) -> Iterator[list[socket.socket]]:
    """So many clients that ask for a stream and take nothing of it."""
    live.server.servers[0].sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    body = b'{"question": "how much?"}'
    head = (
        b"POST /v1/ask HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\naccept: text/event-stream\r\n"
        b"content-length: %d\r\n\r\n" % len(body)
    )
    opened = []
    for _ in range(count):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        one.connect(("127.0.0.1", live.port))
        one.sendall(head + body)
        opened.append(one)
    for one in opened:
        one.settimeout(30)
        one.recv(1, socket.MSG_PEEK)  # its stream has begun; nothing is taken of it
    try:
        yield opened
    finally:
        for one in opened:
            one.close()


def test_who_reads_nothing_takes_no_place_from_others(serve: Serve) -> None:  # noqa: F811
    live = serve(Talker(), turns=2, waiting_turns=1, turns_per_caller=2)
    for _ in range(4):
        with reading_nothing(live, 2):
            assert settles(lambda: live.service.turns.running == 0)
            assert live.client.post("/v1/ask", json=ASK).status_code == 200
    with reading_nothing(live, 1), reading_nothing(live, 1), reading_nothing(live, 1):
        assert settles(lambda: live.service.turns.running == 0)
        assert live.client.post("/v1/ask", json=ASK).status_code == 200


def test_who_takes_nothing_for_too_long_is_left(serve: Serve) -> None:  # noqa: F811
    live = serve(Talker(), reader_seconds=0.4)
    before = tasks(live)
    with reading_nothing(live, 5) as clients:
        assert settles(lambda: tasks(live) > before)
        assert settles(lambda: tasks(live) <= before)
        for one in clients:
            assert b"event: done" not in drained(one)


def test_who_reads_slowly_but_reads_gets_everything(serve: Serve) -> None:  # noqa: F811
    live = serve(Talker(), reader_seconds=1.0)
    with reading_nothing(live, 1) as (client,):
        client.settimeout(5)
        text = b""
        while b"event: done" not in text or not text.endswith(b"0\r\n\r\n"):
            text += client.recv(8192)
            time.sleep(0.005)
    assert text.count(b"event: done") == 1


def test_a_body_that_comes_byte_by_byte_is_refused_in_the_end(
    serve: Serve,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frame, "BODY_SECONDS", 0.3)
    live = serve(weighing())
    with socket.create_connection(("127.0.0.1", live.port)) as one:
        one.settimeout(5)
        one.sendall(b"POST /v1/ask HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n")
        one.sendall(b"content-length: 1000\r\n\r\n{")
        assert one.recv(4096).startswith(b"HTTP/1.1 408")
    assert live.client.post("/v1/ask", json=ASK).status_code == 200


def test_a_mixed_minute_leaves_no_task_no_thread_and_no_socket(serve: Serve) -> None:  # noqa: F811
    """Answers, streams read and cut, faults of callers: a second of each, then all is as before."""
    live = serve(Talker(), turns_per_caller=64)
    live.client.post("/v1/ask", json=ASK)  # what is made once is made
    live.client.close()
    assert settles(lambda: not connections(live))
    before = tasks(live), set(threading.enumerate()), files()
    stop = threading.Event()
    workers = [threading.Thread(target=_mixed, args=(live.url, stop)) for _ in range(4)]
    for worker in workers:
        worker.start()
    time.sleep(2.0)
    stop.set()
    for worker in workers:
        worker.join(20)
        assert not worker.is_alive()
    assert settles(lambda: not connections(live) and live.service.turns.running == 0)
    assert settles(lambda: tasks(live) <= before[0])
    # The pools of threads may have grown to their sizes; nothing else may have come.
    came = [one.name for one in set(threading.enumerate()) - before[1] if "turn" not in one.name]
    assert [name for name in came if not name.startswith(("asyncio_", "uvloop_", "AnyIO"))] == []
    assert files() <= before[2] + 8  # a connection to the database for each of these threads


def _mixed(url: str, stop: threading.Event) -> None:
    while not stop.is_set():
        with httpx.Client(base_url=url, timeout=20) as client:
            assert client.post("/v1/ask", json=ASK).status_code == 200
            assert events_of(client.post("/v1/ask", json=ASK, headers=STREAM).text)[-1]["type"] == "done"
            assert client.post("/v1/ask", json={"question": ""}).status_code == 422
            assert client.get("/nowhere").status_code == 404
            with client.stream("POST", "/v1/ask", json={**ASK, "keep_seconds": 0.1}, headers=STREAM) as got:
                next(got.iter_bytes())


def tasks(live: Live) -> int:
    """Tasks of the server's event loop."""
    return len(asyncio.all_tasks(live.server.servers[0].get_loop()))


def connections(live: Live) -> int:
    return len(live.server.server_state.connections)


def files() -> int:
    return len(os.listdir("/proc/self/fd"))


def drained(one: socket.socket) -> bytes:
    one.settimeout(5)
    text = b""
    while piece := one.recv(65536):
        text += piece
    return text


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_five_hundred_slow_readers_hold_up_nobody() -> None:
    found = slow_readers.measure(readers=500, seconds=20)
    assert found["hung"] == 0
    assert found["failed"] == 0
    assert found["rss_growth_mib"] < 150  # what 500 answers have on the way; nothing of them stays
    assert found["probes"] > 50


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_minute_under_load_leaves_memory_files_and_threads_as_they_were(tmp_path: Path) -> None:
    found = soak.measure(minutes=1.0)
    assert found["requests"] > 500
    assert soak.sound(found), found
