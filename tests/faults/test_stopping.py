"""Told to stop with twenty streams open: each reader gets a last word, the process ends in time with code 0.

A server that waits for its streams hangs until it is killed (python-sdk 514); one that does not cuts answers in half.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from tests.advisor.fake_provider import Handler, Provider
from tests.faults import moves
from tests.faults.conftest import settles
from tests.integrations.http.test_ask import STREAM, events_of
from tests.integrations.http.test_process import Process, serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),  # litellm is imported in each server, which takes long on a busy machine
    pytest.mark.skipif(find_spec("litellm") is None, reason="the llm extra is not installed"),
]
STREAMS = 20
TERMINAL = {"done", "error", "shutdown"}


@pytest.fixture
def provider() -> Iterator[Provider]:
    """One that begins to answer and then falls silent for longer than anybody waits here."""
    found = Provider(moves.begins("One moment.\n\n", then=_silent_for_long))
    yield found
    found.close()


def _silent_for_long(handler: Handler) -> None:
    handler.connection.settimeout(120)
    with contextlib.suppress(OSError):
        handler.connection.recv(1)


class Reader:
    """A client of one stream."""

    def __init__(self, url: str, number: int) -> None:
        self.text, self.fault = "", ""
        self._url, self._number = url, number
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        body = {"question": "what GPU for a 7B?", "conversation_id": f"c{self._number}"}
        try:
            with httpx.stream("POST", f"{self._url}/v1/ask", json=body, headers=STREAM, timeout=120) as got:
                for piece in got.iter_text():
                    self.text += piece
        except httpx.HTTPError as error:
            self.fault = type(error).__name__

    @property
    def begun(self) -> bool:
        return "One moment" in self.text

    def last(self) -> str:
        self._thread.join(20)
        return str(events_of(self.text)[-1]["type"])


def start(tmp_path: Path, provider: Provider, **settings: str) -> tuple[Process, list[Reader]]:
    """A server with twenty streams under way."""
    server = Process(
        str(tmp_path / "a.db"),
        ADVISOR_MODEL="openai/scripted",
        OPENAI_API_KEY="none",
        OPENAI_API_BASE=provider.url,
        ADVISOR_TURNS_PER_CALLER="64",
        ADVISOR_FIRST_TOKEN_SECONDS="100",
        ADVISOR_IDLE_SECONDS="100",
        ADVISOR_TURN_SECONDS="300",
        **settings,
    )
    readers = [Reader(str(server.client.base_url).rstrip("/"), number) for number in range(STREAMS)]
    assert settles(lambda: all(reader.begun for reader in readers), 60), [reader.text[-200:] for reader in readers]
    return server, readers


def test_twenty_streams_get_a_last_word_and_the_process_ends_in_time(tmp_path: Path, provider: Provider) -> None:
    server, readers = start(tmp_path, provider, ADVISOR_DRAIN_SECONDS="3")
    try:
        begun = time.monotonic()
        assert server.stop(15.0) == 0
        assert 2.5 < time.monotonic() - begun < 15
        assert [reader.last() for reader in readers] == ["shutdown"] * STREAMS
        assert [reader.fault for reader in readers] == [""] * STREAMS
        assert "Traceback" not in "".join(server.lines)
        assert settles(lambda: provider.open == 0, 5)
    finally:
        server.close()


def test_told_twice_it_ends_at_once(tmp_path: Path, provider: Provider) -> None:
    server, _readers = start(tmp_path, provider, ADVISOR_DRAIN_SECONDS="60")
    try:
        server.process.send_signal(signal.SIGTERM)
        assert settles(lambda: any("stopping" in line for line in server.lines), 5)
        time.sleep(1.5)  # what comes within a second may be the same word by another way
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(10) == 128 + signal.SIGTERM
        assert time.monotonic() - begun < 3
    finally:
        server.close()


def test_streams_that_nobody_reads_do_not_hold_the_end_up(tmp_path: Path, provider: Provider) -> None:
    """Clients that ask and then read nothing: the last word cannot be delivered, and is not waited for."""
    import socket

    with serving(str(tmp_path / "a.db"), ADVISOR_DRAIN_SECONDS="1") as server:
        body = b'{"question": "what GPU for 70B QLoRA?"}'
        head = (
            b"POST /v1/ask HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            b"accept: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(body)
        )
        silent = []
        for _ in range(STREAMS):
            one = socket.socket()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            one.connect(("127.0.0.1", server.port))
            one.sendall(head + body)
            silent.append(one)
        time.sleep(2.0)
        assert server.stop(15.0) == 0
        for one in silent:
            one.close()
