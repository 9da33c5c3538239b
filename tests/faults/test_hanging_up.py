"""A provider's connection is let go of as soon as nobody waits, and half an answer is never taken for a whole one."""

from __future__ import annotations

import gc
import json
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from advisor.llm import breaker, client
from advisor.llm.door import open_model
from advisor.llm.protocol import Finish, Message, Model, ModelFailed, ModelRequest, TextDelta
from advisor.settings import Settings
from tests.advisor.fake_provider import Move, Provider
from tests.faults import moves
from tests.faults.conftest import NAME, close_clients, settles
from tests.faults.moves import delta

pytestmark = [
    pytest.mark.timeout(600),  # the first of them imports litellm, which takes long on a busy machine
    pytest.mark.skipif(find_spec("litellm") is None, reason="the llm extra is not installed"),
    pytest.mark.filterwarnings("default"),
]
WHOLE = "It needs 45 GB, and that is all."


@pytest.fixture
def model(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    """The client itself, with the deadlines of production: what ends in a second does not end by them."""
    monkeypatch.setattr(breaker, "BREAKERS", {})
    monkeypatch.setattr(client, "_sleep", lambda _seconds, _stopped: None)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    for variable in ("OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.setenv(variable, provider.url)
    yield open_model(NAME, Settings())
    close_clients()
    assert settles(lambda: provider.open == 0)


def request(stop: threading.Event | None = None, seconds: float = 60.0) -> ModelRequest:
    stopped = stop.is_set if stop else lambda: False
    return ModelRequest((Message("user", "hello"),), (), time.monotonic() + seconds, stopped=stopped)


PHASES: dict[str, Move] = {
    "before the status line": moves.stall,
    "before the first word": moves.headers_only,
    "midway": moves.begins("It needs "),
}


@pytest.mark.parametrize("phase", PHASES, ids=lambda name: name.replace(" ", "-"))
def test_leaving_closes_the_connection_in_every_phase_long_before_a_read_times_out(
    model: Model, provider: Provider, phase: str
) -> None:
    provider.play(PHASES[phase])
    left = threading.Event()

    def leave() -> None:
        assert settles(lambda: bool(provider.requests), 10)
        time.sleep(0.2)  # the reader is in its read by now
        left.set()

    threading.Thread(target=leave).start()
    with pytest.raises(ModelFailed, match="Nobody waits"):
        list(model.reply(request(left)))
    assert settles(lambda: provider.open == 0, 4.0)
    assert settles(lambda: not _readers(), 4.0)
    assert not breaker.breaker_of(NAME)._failures  # leaving is no fault of the provider


def test_a_flood_that_nobody_takes_holds_no_thread(
    model: Model, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More pieces than the queue between reader and turn holds, and a turn that goes away after the first."""
    monkeypatch.setattr(client, "MOST_WAITING", 3)
    provider.play(moves.flood(500, 20))
    pieces = model.reply(request())
    assert isinstance(next(pieces), TextDelta)
    assert settles(lambda: any("_offer" in _waits(one) for one in _readers()))  # the queue is full
    time.sleep(0.3)
    pieces.close()  # type: ignore[attr-defined]
    assert settles(lambda: not _readers(), 4.0)


def test_the_deadline_holds_whatever_the_server_says_meanwhile(model: Model, provider: Provider) -> None:
    provider.play(moves.drip)
    begun = time.monotonic()
    with pytest.raises(ModelFailed) as failure:
        list(model.reply(request(seconds=0.8)))
    assert failure.value.code == "timeout"
    assert time.monotonic() - begun < 2.5


def test_an_answer_cut_anywhere_is_whole_or_none(model: Model, provider: Provider) -> None:
    """Every 23rd byte here; ``test_an_answer_cut_at_every_byte`` takes them all."""
    _cut_at(model, provider, range(0, len(RESPONSE), 23))


@pytest.mark.slow
def test_an_answer_cut_at_every_byte_is_whole_or_none(model: Model, provider: Provider) -> None:
    _cut_at(model, provider, range(len(RESPONSE) + 1))


def _cut_at(model: Model, provider: Provider, places: range) -> None:
    for place in places:
        breaker.BREAKERS.clear()
        provider.play(moves.first_bytes(place, RESPONSE))
        text, finish = "", None  # type: tuple[str, Finish | ModelFailed | None]
        try:
            for event in model.reply(request()):
                text += event.text if isinstance(event, TextDelta) else ""
                finish = event if isinstance(event, Finish) else finish
        except ModelFailed as failure:
            finish = failure
        cut = getattr(finish, "code", None) == "unavailable" and place < len(RESPONSE)
        assert cut or (text, getattr(finish, "reason", None)) == (WHOLE, "stop"), f"cut at {place}: {finish}"
        assert len(provider.requests) <= 3


def test_a_thread_is_looked_for_while_nothing_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    really, collecting = sys._current_frames, []
    monkeypatch.setattr(sys, "_current_frames", lambda: (collecting.append(gc.isenabled()), really())[1])
    assert client._frame_of(threading.current_thread()) is not None
    assert (collecting, gc.isenabled()) == ([False], True)


def _readers() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith("advisor-")]


def _waits(thread: threading.Thread) -> list[str]:
    """The functions that a thread is in."""
    frame = client._frame_of(thread)
    return [entry.name for entry in traceback.extract_stack(frame)] if frame else []


def _response() -> bytes:
    """A whole streamed reply as it goes over the wire."""
    half = len(WHOLE) // 2
    chunks = [delta(WHOLE[:half]), delta(WHOLE[half:]), delta(finish="stop")]
    lines = [b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n" for chunk in chunks]
    lines.append(b"data: [DONE]\n\n")
    body = b"".join(b"%x\r\n%s\r\n" % (len(line), line) for line in lines) + b"0\r\n\r\n"
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n" + body


RESPONSE = _response()
