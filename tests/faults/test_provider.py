"""A provider that misbehaves in every way we could think of: a right answer comes in time, and costs no more.

Each row says who answers, how often the provider was asked, what was charged and whether its breaker counts it. Traps
measured in litellm: a dripping stream never times out (litellm 26939), retries multiply (2620, 19985), tool calls are
repeated or vanish (20480, 36262), keys come back in errors (8075).
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from importlib.util import find_spec

import pytest

from tests.advisor import fake_provider as fake
from tests.faults import moves
from tests.faults.conftest import NAME, USD_PER_INPUT, USD_PER_OUTPUT, Play, Played, shown
from tests.faults.moves import call_delta, delta, events, usage, whole

pytestmark = [
    pytest.mark.timeout(600),  # the first of them imports litellm, which takes long on a busy machine
    pytest.mark.skipif(find_spec("litellm") is None, reason="the llm extra is not installed"),
    pytest.mark.filterwarnings("default"),  # litellm's own deprecations are not ours to fail on
]

ARGUMENTS = '{"model": "7B"}'
CALL = events(call_delta("toy_memory", ARGUMENTS), delta(finish="tool_calls"), usage())
TEXT = events(delta("It needs [[t1.peak_per_gpu]] "), delta("on the H100."), delta(finish="stop"), usage())
SECOND = events(delta("It needs [[t2.peak_per_gpu]]."), delta(finish="stop"), usage())
STEP_TOKENS = 1050  # what CALL, TEXT and SECOND each report
GOOD = "It needs 45.3 GB"


@dataclass(frozen=True)
class Row:
    """One fault and what must come of it."""

    moves: tuple[fake.Move, ...]
    attempts: int
    why: str = ""  # the reason that the answer gives when the planner had to answer; empty: the model answers itself
    reported: int = 0  # steps whose cost is known and charged
    reserved: int = 0  # calls that may have cost something unknown: charged in full
    breaker: int = 0
    waits: int = 0
    charged: bool = True  # False: ``also`` looks at the bill
    settings: dict[str, object] = field(default_factory=dict)
    also: Callable[[Played], bool] = lambda _played: True


def _status(code: int, why: str, attempts: int = 1, breaker: int = 0, **headers: str) -> Row:
    refused = fake.status(code, {name.replace("_", "-"): value for name, value in headers.items()})
    return Row((refused,), attempts, why, waits=attempts - 1, breaker=breaker)


QUICK = {"first_token_seconds": 1.0, "idle_seconds": 0.6}  # so that a silence is seen to end without waiting for it
MOST_SECONDS = 6.0  # below what any other deadline gives, above what a busy machine needs for a turn
NOT_ACCEPTED = "its name or key is not accepted"
ROWS: dict[str, Row] = {
    "nothing wrong": Row((CALL, TEXT), 2, reported=2),
    # Statuses
    "500 twice": Row((fake.status(500), fake.status(500), CALL, TEXT), 4, reported=2, waits=2),
    "500 always": _status(500, "unavailable", 3, breaker=1),
    "502 as a page": Row((whole(502, b"<html>Bad gateway</html>", "text/html"),), 3, "unavailable", breaker=1, waits=2),
    "503 once in the second step": Row((CALL, fake.status(503), TEXT), 3, reported=2, waits=1),
    "529 overloaded": _status(529, "unavailable", 3, breaker=1),
    "408": _status(408, "no reply in time", 3, breaker=1),
    "429 come back in a second": Row(
        (fake.status(429, {"retry-after": "1"}), CALL, TEXT),
        3,
        reported=2,
        waits=1,
        also=lambda played: played.waits == [1.0],
    ),
    "429 come back in ten minutes": _status(429, "rate limited", 1, breaker=1, retry_after="600"),
    "429 come back at a date far off": _status(
        429, "rate limited", 1, breaker=1, retry_after=formatdate(4e9, usegmt=True)
    ),
    "429 come back never": _status(429, "rate limited", 1, breaker=1, retry_after="inf"),
    "429 come back in a nonsense": _status(429, "rate limited", 3, breaker=1, retry_after="soon"),
    "429 come back in the past": _status(429, "rate limited", 3, breaker=1, retry_after="-3"),
    "400": _status(400, "no usable reply"),
    "401": _status(401, NOT_ACCEPTED),
    "403": _status(403, NOT_ACCEPTED),
    "404": _status(404, NOT_ACCEPTED),
    "422": _status(422, "no usable reply"),
    # Silence
    "accepted, then silence": Row((moves.stall,), 1, "no reply in time", reserved=1, breaker=1, settings=QUICK),
    "headers, then silence": Row((moves.headers_only,), 1, "no reply in time", reserved=1, breaker=1, settings=QUICK),
    "a word, then silence": Row(
        (moves.begins("It needs "),), 1, "no reply in time", reserved=1, breaker=1, settings=QUICK
    ),
    "only signs of life": Row((moves.only_comments,), 1, "no reply in time", reserved=1, breaker=1, settings=QUICK),
    "a drip without end": Row(
        (moves.drip,), 1, "no reply in time", reserved=1, breaker=1, settings={**QUICK, "turn_seconds": 1.5}
    ),
    "silence in the second step": Row(
        (CALL, moves.stall), 2, "no reply in time", reported=1, reserved=1, breaker=1, settings=QUICK
    ),
    # Connections
    "reset at once": Row((moves.reset,), 3, "unavailable", breaker=1, waits=2, reserved=1),
    "reset once": Row((moves.reset, CALL, TEXT), 3, reported=2, waits=1),
    "not HTTP": Row((moves.nonsense,), 3, "unavailable", breaker=1, waits=2, reserved=1),
    "reset after a word": Row((moves.begins("It", then=moves.reset),), 1, "unavailable", breaker=1, reserved=1),
    "cut politely": Row((CALL, fake.cut_politely), 2, "unavailable", breaker=1, reported=1, reserved=1),
    "a body shorter than promised": Row((moves.short_body,), 3, "unavailable", breaker=1, waits=2, reserved=1),
    # Bodies
    "invalid UTF-8": Row(
        (CALL, events(b'{"choices": [{"delta": {"content": "\xff\xfe"}}]}')),
        4,
        "unavailable",
        reported=1,
        reserved=1,
        breaker=1,
        waits=2,
    ),
    "truncated JSON": Row(
        (CALL, events(b'{"id": "x", "choices": [{"del')), 4, "unavailable", reported=1, reserved=1, breaker=1, waits=2
    ),
    "JSON that is no chunk": Row(
        (CALL, events([1, 2], "x", None)), 4, "unavailable", reported=1, reserved=1, breaker=1, waits=2
    ),
    "an error in the stream": Row(
        (CALL, events({"error": {"message": "sk-canary-123", "code": 500}})),
        4,
        "unavailable",
        reported=1,
        reserved=1,
        breaker=1,
        waits=2,
    ),
    "200 with an error body": Row(
        (whole(200, b'{"error": {"message": "sk-canary-123"}}'),), 2, "no usable reply", reserved=1
    ),
    "a login page": Row(
        (whole(200, b"<html>Log in</html>", "text/html"),), 4, "unavailable", reserved=1, waits=2, breaker=1
    ),
    "an empty body": Row((whole(200, b""),), 4, "unavailable", reserved=1, waits=2, breaker=1),
    "the wrong content type": Row(
        (CALL, events(delta("[[t1.peak_per_gpu]]."), delta(finish="stop"), usage(), kind="text/plain")), 2, reported=2
    ),
    "CRLF": Row(
        (CALL, events(delta("[[t1.peak_per_gpu]]."), delta(finish="stop"), usage(), separator=b"\r\n\r\n")),
        2,
        reported=2,
    ),
    # Replies
    "empty content": Row((fake.text(""),), 2, "no usable reply", reserved=1),
    "a lost call": Row(
        (fake.lost_call, fake.tools(("toy_memory", ARGUMENTS)), TEXT),
        3,
        charged=False,
        also=lambda played: played.tokens > STEP_TOKENS + 18,
    ),
    "cut by length": Row(
        (CALL, events(delta("It needs [[t1.peak_per_gpu]].\n\nAnd so"), delta(finish="length"), usage())),
        2,
        reported=2,
        also=lambda played: "And so" not in played.answer.answer,
    ),
    "all cut by length": Row(
        (CALL, events(delta("It needs "), delta(finish="length"), usage())), 2, "no usable reply", reported=2
    ),
    "stopped by a filter": Row(
        (CALL, events(delta("It needs "), delta(finish="content_filter"), usage())),
        2,
        "it was not allowed to",
        reported=1,
        reserved=1,
    ),
    "10 MB of text in small pieces": Row((CALL, moves.flood(5000, 2000)), 2, "no usable reply", reported=1, reserved=1),
    "10 MB of text at once": Row((CALL, moves.flood(1, 10_000_000)), 2, "no usable reply", reported=1, reserved=1),
    "lone surrogates and NUL": Row(
        (
            CALL,
            events(
                b'{"choices": [{"index": 0, "delta": {"content": "[[t1.peak_per_gpu]]\\ud800 ok\\u0000."}}]}',
                delta(finish="stop"),
                usage(),
            ),
        ),
        2,
        reported=2,
        also=lambda played: played.answer.answer.startswith("45.3 GB ok."),
    ),
    # Tool calls
    "lone surrogates and NUL in a call": Row(
        (
            events(
                call_delta("toy_memory", r'{"model": "7B\u0000\ud800"}'),
                delta(finish="tool_calls"),
                usage(),
            ),
            TEXT,
        ),
        2,
        reported=2,
        also=lambda played: [call.arguments["model"] for call in played.answer.tool_calls] == ["7B"],
    ),
    "a call repeated as a summary": Row(
        (
            events(
                call_delta("toy_memory", ARGUMENTS),
                call_delta("toy_memory", ARGUMENTS),
                delta(finish="tool_calls"),
                usage(),
            ),
            TEXT,
        ),
        2,
        reported=2,
        also=lambda played: len(played.answer.tool_calls) == 1,
    ),
    "an unknown tool": Row(
        (events(call_delta("no_such_tool", "{}"), delta(finish="tool_calls"), usage()), CALL, SECOND), 3, reported=3
    ),
    "an argument left out": Row(
        (events(call_delta("toy_memory", "{}"), delta(finish="tool_calls"), usage()), CALL, SECOND), 3, reported=3
    ),
    "a number as text": Row(
        (events(call_delta("toy_memory", '{"model": "7B", "n_gpus": "2"}'), delta(finish="tool_calls"), usage()), TEXT),
        2,
        reported=2,
    ),
    "arguments that never end": Row(
        (
            events(
                call_delta("toy_memory", '{"model": "'),
                *[call_delta("", "x" * 100_000)] * 20,
                delta(finish="tool_calls"),
                usage(),
            ),
            CALL,
            SECOND,
        ),
        3,
        reported=3,
    ),
    "three hundred calls at once": Row(
        (
            events(
                *(
                    call_delta("toy_memory", json.dumps({"model": f"{number}B"}), f"c{number}", number)
                    for number in range(1, 301)
                ),
                delta(finish="tool_calls"),
                usage(),
            ),
            TEXT,
        ),
        2,
        reported=2,
        also=lambda played: len(played.answer.tool_calls) <= 16,
    ),
    # The bill
    "a bill below nothing": Row(
        (CALL, events(delta("[[t1.peak_per_gpu]]."), delta(finish="stop"), usage(prompt_tokens=-(10**9)))),
        2,
        charged=False,
        also=lambda played: played.tokens == STEP_TOKENS + 50,
    ),
    "no bill at all": Row(
        (CALL, events(delta("[[t1.peak_per_gpu]]."), delta(finish="stop"))),
        2,
        charged=False,
        also=lambda played: played.tokens > STEP_TOKENS,
    ),
}


@pytest.mark.parametrize("name", ROWS, ids=lambda name: name.replace(" ", "-"))
def test_a_fault_of_the_provider_ends_in_a_right_answer_in_time(play: Play, name: str) -> None:
    row = ROWS[name]
    played = play(*row.moves, **row.settings)
    assert played.seconds < MOST_SECONDS
    _check_answer(row, played)
    assert played.attempts == row.attempts
    assert len(played.waits) == row.waits
    assert played.failures == row.breaker
    _check_bill(row, played)
    assert row.also(played)


def _check_answer(row: Row, played: Played) -> None:
    answer = played.answer
    assert answer.status == "answered"
    assert answer.grounding.numbers == answer.grounding.grounded
    assert "45.3 GB" in answer.answer
    assert "canary" not in shown(played)
    assert (answer.model, answer.degraded) == (("planner", True) if row.why else (NAME, False))
    if row.why and row.why != "*":
        assert f"({row.why})" in answer.answer


def _check_bill(row: Row, played: Played) -> None:
    """Reported steps at what they cost, others at the most that they can: nothing for free, nothing twice."""
    assert bool(played.reserved) == bool(row.reserved)
    if row.charged:
        assert played.tokens == row.reported * STEP_TOKENS + played.reserved


def test_a_provider_that_is_not_there_costs_neither_time_nor_money(play: Play) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    played = play(fake.text("never asked"), address=f"http://127.0.0.1:{port}/v1")
    assert (played.attempts, played.answer.model, played.answer.degraded) == (0, "planner", True)
    assert len(played.waits) == 2
    assert (played.tokens, played.usd) == (0, 0)
    assert played.seconds < 3


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_jumps_during_the_call_changes_nothing(
    play: Play, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    really = time.time
    shift = [0.0]
    monkeypatch.setattr(time, "time", lambda: really() + shift[0])

    def jump(handler: fake.Handler) -> None:
        handler.start_stream()
        handler.chunk({"role": "assistant", "content": "It needs "})
        shift[0] = hours * 3600.0
        for piece in ("[[t1.peak_per_gpu]] ", "all the same."):
            handler.chunk({"content": piece})
        handler.chunk({}, "stop")
        handler.end_stream()

    played = play(CALL, jump)
    assert (played.answer.model, played.answer.degraded) == (NAME, False)
    assert played.seconds < 4


def test_a_turn_costs_what_the_provider_said_to_the_cent(play: Play) -> None:
    played = play(CALL, TEXT)
    assert played.usd == pytest.approx(2 * (1000 * USD_PER_INPUT + 50 * USD_PER_OUTPUT), rel=1e-9)
