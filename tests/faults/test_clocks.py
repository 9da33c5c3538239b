"""A wall clock that is set an hour forward or back: nobody is shut out, nothing is done twice, nothing is free.

Durations inside a process are measured by the monotonic clock (``test_breaker``, ``test_provider``); what several
processes share in the database is by the wall clock, and must survive its being set.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from advisor.accounts import Accounts, Budget, OverBudget
from advisor.database import Database, SqliteDatabase, open_database
from advisor.store import SqlConversations
from integrations.slack.http import signed
from integrations.slack.ledger import Ledger, Question
from tests.databases import PLACES, fresh
from tests.integrations.slack.conftest import SECRET, sign

HOUR = 3600.0
LEASE_SECONDS = 30.0
PER_MINUTE = 6


class Clock:
    def __init__(self) -> None:
        self.now = 1_790_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=PLACES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    with fresh(request.param, tmp_path) as place:
        found = open_database(place)
        yield found
        found.close()


def question(ts: str = "1.0") -> Question:
    return Question("T", "C", ts, ts, "U", "how much?")


def minute(accounts: Accounts) -> int:
    """How many requests are let through at once."""
    return sum(accounts.take("ann", PER_MINUTE) == 0.0 for _ in range(3 * PER_MINUTE))


@pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["forward", "back"])
def test_a_rate_lets_a_minutes_worth_through_after_the_clock_was_set(
    database: Database, clock: Clock, jump: float
) -> None:
    accounts = Accounts(database, clock)
    assert minute(accounts) == PER_MINUTE
    clock.now += jump
    assert minute(accounts) == PER_MINUTE  # neither none for an hour nor as many as one likes
    assert 0 < accounts.take("ann", PER_MINUTE) <= 60
    clock.now += 60.0
    assert minute(accounts) == PER_MINUTE


@pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["forward", "back"])
def test_a_job_of_a_dead_process_is_taken_over_after_the_clock_was_set(
    database: Database, clock: Clock, jump: float
) -> None:
    ledger = Ledger(database, LEASE_SECONDS, clock)
    assert ledger.accept("Ev1", question())
    job = ledger.claim("dead")
    assert job is not None
    assert ledger.claim("other") is None
    clock.now += jump + LEASE_SECONDS + 2
    taken = ledger.claim("other")
    assert taken is not None
    assert taken.id == job.id
    assert ledger.claim("third") is None
    assert not ledger.keep(job.id, "dead")  # should it live after all, it hears that the job is no longer its own


def test_a_delivery_is_taken_once_whatever_the_clock_does(database: Database, clock: Clock) -> None:
    ledger = Ledger(database, LEASE_SECONDS, clock)
    assert ledger.accept("Ev1", question())
    for jump in (-HOUR, 2 * HOUR):
        clock.now += jump
        assert not ledger.accept("Ev1", question())
    ledger.sweep()
    assert not ledger.accept("Ev1", question())


def test_a_budget_is_not_spent_twice_within_the_hour_that_comes_twice(database: Database, clock: Clock) -> None:
    accounts = Accounts(database, clock)
    budgets = [Budget("ann", tokens=100)]
    first = accounts.reserve(budgets, 60, 0.0)
    clock.now -= HOUR
    with pytest.raises(OverBudget):
        accounts.reserve(budgets, 60, 0.0)
    accounts.settle(first, 10, 0.0)
    assert accounts.reserve(budgets, 60, 0.0).tokens == 60


def test_a_call_in_flight_while_the_clock_goes_forward_is_never_free(database: Database, clock: Clock) -> None:
    accounts = Accounts(database, clock)
    reservation = accounts.reserve([Budget("ann", tokens=100)], 60, 0.0)
    clock.now += HOUR
    accounts.sweep()
    accounts.settle(reservation, 10, 0.0)
    day_of_call = database.read("select tokens from spending where subject = 'ann' and day = ?", (reservation.day,))
    assert day_of_call[0][0] >= 10


def test_turns_keep_their_order_when_the_clock_goes_back(tmp_path: Path) -> None:
    now = [datetime(2026, 11, 30, 12, tzinfo=UTC)]
    store = SqlConversations(SqliteDatabase(str(tmp_path / "a.db")), lambda: now[0])
    for text in ("first?", "second?"):
        store.begin("ann", "c", text)
        now[0] -= timedelta(hours=1)
    assert [turn.question for turn in store.turns("ann", "c") or []] == ["first?", "second?"]
    store.database.close()


@pytest.mark.parametrize("skew", [0.0, 290.0, -290.0, 310.0, -310.0, HOUR, -HOUR])
def test_slack_is_believed_within_five_minutes_of_our_clock(skew: float) -> None:
    now, body = time.time(), b'{"type": "event_callback"}'
    headers = sign(body, str(int(now + skew)))
    assert signed(headers, body, SECRET, now) is (abs(skew) < 300)
