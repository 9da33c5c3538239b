"""A model that keeps failing is left alone for a moment, by a clock that nobody can set back."""

from __future__ import annotations

import time
from importlib.util import find_spec

import pytest

from advisor.llm import breaker
from advisor.llm.breaker import COOLDOWN_SECONDS, FAILURES, WINDOW_SECONDS, Breaker
from advisor.llm.protocol import ModelFailed
from tests.advisor import fake_provider as fake
from tests.faults.conftest import Play

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.timeout(600)]  # litellm is slow to import


class Clock:
    """Both clocks of the process: one that runs, and one that may be set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(breaker, "time", found)
    return found


def is_open(one: Breaker) -> bool:
    try:
        one.check()
    except ModelFailed as failure:
        return failure.free  # nobody pays for a call that is not made
    return False


def test_it_opens_after_five_failures_in_half_a_minute(clock: Clock) -> None:
    one = Breaker()
    for _ in range(FAILURES - 1):
        one.failed()
        clock.now += WINDOW_SECONDS / FAILURES - 0.1
    assert not is_open(one)
    one.failed()
    assert is_open(one)


def test_failures_far_apart_do_not_open_it(clock: Clock) -> None:
    one = Breaker()
    for _ in range(20):
        one.failed()
        clock.now += WINDOW_SECONDS / (FAILURES - 1) + 0.1
    assert not is_open(one)


def test_after_the_pause_one_call_looks_and_the_rest_wait_for_it(clock: Clock) -> None:
    one = Breaker()
    for _ in range(FAILURES):
        one.failed()
    clock.now += COOLDOWN_SECONDS + 0.1
    assert not is_open(one)  # the one that looks
    assert is_open(one)
    one.failed()
    clock.now += COOLDOWN_SECONDS - 0.1
    assert is_open(one)
    clock.now += 0.2
    assert not is_open(one)
    one.worked()
    assert not is_open(one)
    assert not is_open(one)


@pytest.mark.parametrize("hours", [-1, 1])
def test_setting_the_wall_clock_neither_opens_nor_closes_it(monkeypatch: pytest.MonkeyPatch, hours: int) -> None:
    one = Breaker()
    for _ in range(FAILURES):
        one.failed()
    really = time.time
    monkeypatch.setattr(time, "time", lambda: really() + hours * 3600)
    assert is_open(one)
    fresh = Breaker()
    fresh.failed()
    assert not is_open(fresh)


@pytest.mark.skipif(find_spec("litellm") is None, reason="the llm extra is not installed")
def test_while_it_is_open_the_provider_is_not_asked_and_nobody_pays(play: Play) -> None:
    for number in range(1, FAILURES + 1):
        assert play(fake.status(500), retries=0).failures == number
    played = play(fake.text("never asked"))
    assert (played.attempts, played.tokens) == (0, 0)
    assert (played.answer.model, played.answer.degraded) == ("planner", True)
    assert "45.3 GB" in played.answer.answer
