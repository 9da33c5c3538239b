"""Keys, rates and budgets, on SQLite and on PostgreSQL alike; budgets hold when many ask at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.accounts import Accounts, Budget, Limits, OverBudget
from advisor.database import Database, open_database
from tests.advisor.test_store import at_once
from tests.databases import PLACES, fresh
from tools.errors import BadValue

NOON = 1_796_040_000.0  # 2026-11-30 12:00 UTC


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with fresh(request.param, tmp_path) as found:
        yield found


@pytest.fixture
def database(place: str) -> Iterator[Database]:
    found = open_database(place)
    yield found
    found.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def accounts(database: Database, clock: Clock) -> Accounts:
    return Accounts(database, clock)


def test_a_key_works_until_it_is_revoked_and_is_kept_only_as_a_digest(accounts: Accounts, database: Database) -> None:
    limits = Limits(60, 1000, 0.5)
    text = accounts.create_key("team-a", "portal", ["ask", "tools"], limits)
    found = accounts.find_key(text)
    assert found is not None
    assert (found.owner, found.scopes, found.limits) == ("team-a", ("ask", "tools"), limits)
    secret = text.rpartition("_")[2]
    assert secret not in str(database.read("select * from api_keys"))
    assert accounts.any_keys()
    assert accounts.revoke_key(found.id)
    assert not accounts.revoke_key(found.id)
    assert accounts.find_key(text) is None
    assert not accounts.any_keys()


@pytest.mark.parametrize("change", [lambda key: key[:-1] + "x", lambda key: key + "x", lambda key: "adv_" + key[-43:]])
def test_a_key_that_is_not_quite_right_is_no_key(accounts: Accounts, change: object) -> None:
    text = accounts.create_key("a")
    changed = change(text)  # type: ignore[operator]
    assert changed == text or accounts.find_key(changed) is None
    for junk in ("", "adv_", "adv__", "adv_x", "bearer", "adv_" + "é" * 20 + "_ü", "\x00"):
        assert accounts.find_key(junk.replace("\x00", "")) is None


def test_a_scope_that_does_not_exist_is_refused(accounts: Accounts) -> None:
    with pytest.raises(BadValue, match="scope"):
        accounts.create_key("a", scopes=["everything"])


def test_a_rate_lets_a_minutes_worth_through_and_then_one_at_a_time(accounts: Accounts, clock: Clock) -> None:
    assert [accounts.take("k", 6) for _ in range(6)] == [0.0] * 6
    assert accounts.take("k", 6) == pytest.approx(10.0)
    clock.now += 9
    assert accounts.take("k", 6) == pytest.approx(1.0)
    clock.now += 1
    assert accounts.take("k", 6) == 0.0
    assert accounts.take("k", 6) > 0
    assert accounts.take("another", 6) == 0.0
    clock.now += 3600
    assert [accounts.take("k", 6) for _ in range(6)] == [0.0] * 6


def test_a_budget_for_five_admits_exactly_five_of_64(accounts: Accounts) -> None:
    admitted: list[str] = []
    refused: list[float] = []

    def call(number: int) -> None:
        try:
            admitted.append(accounts.reserve([Budget("k", usd=0.5), Budget("*", usd=100)], 100, 0.1).id)
        except OverBudget as over:
            refused.append(over.seconds)

    at_once(64, call)
    assert len(admitted) == 5
    assert refused == [pytest.approx(43_200)] * 59  # noon to midnight
    assert accounts.spent("k") == (500, pytest.approx(0.5))
    assert accounts.spent("*") == (500, pytest.approx(0.5))  # a refused call was taken from neither


def test_two_processes_share_one_budget(place: str, database: Database) -> None:
    code = (
        "import sys\n"
        "from advisor.accounts import Accounts, Budget, OverBudget\n"
        "from advisor.database import open_database\n"
        "accounts = Accounts(open_database(sys.argv[1]), lambda: 1796040000.0)\n"
        "count = 0\n"
        "for _ in range(40):\n"
        "    try:\n"
        "        accounts.reserve([Budget('k', tokens=50)], 1, 0.0)\n"
        "        count += 1\n"
        "    except OverBudget:\n"
        "        pass\n"
        "print(count)\n"
        "accounts._database.close()\n"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", code, place], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    counts = [int(child.communicate(timeout=60)[0]) for child in children]
    assert sum(counts) == 50
    assert Accounts(database, lambda: NOON).spent("k") == (50, 0.0)


def test_a_call_is_charged_what_it_cost_and_only_once(accounts: Accounts) -> None:
    reserved = accounts.reserve([Budget("k", tokens=1000)], 800, 0.08)
    with pytest.raises(OverBudget):
        accounts.reserve([Budget("k", tokens=1000)], 300, 0.03)
    accounts.settle(reserved, 120, 0.012)
    accounts.settle(reserved, 120, 0.012)
    assert accounts.spent("k") == (120, pytest.approx(0.012))
    accounts.reserve([Budget("k", tokens=1000)], 300, 0.03)


def test_a_call_that_is_never_settled_stays_charged(accounts: Accounts, clock: Clock) -> None:
    reserved = accounts.reserve([Budget("k")], 800, 0.08)
    clock.now += 601
    assert accounts.sweep() == 1
    accounts.settle(reserved, 0, 0.0)
    assert accounts.spent("k") == (800, pytest.approx(0.08))


def test_a_new_day_begins_with_nothing_spent(accounts: Accounts, clock: Clock) -> None:
    late = accounts.reserve([Budget("k", usd=1.0)], 10, 1.0)
    clock.now += 86_400
    assert accounts.spent("k") == (0, 0.0)
    accounts.reserve([Budget("k", usd=1.0)], 10, 1.0)
    accounts.settle(late, 5, 0.5)  # belongs to the day on which it was reserved
    assert accounts.spent("k") == (10, pytest.approx(1.0))
