"""Seeded faults: each takes one safeguard away, and the tests it names must then fail.

    python -m tests.faults.mutations           all of them, one pytest run a fault
    python -m tests.faults.mutations NAME...   some

``test_mutations.py`` does the same among the slow tests. The fault is planted in every Python process of the run, those
that a test starts included: ``seeded/sitecustomize.py`` and ``conftest.py`` do it where FAULTS_SEED names one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from evals.mutations import Mutation

ROOT = Path(__file__).parents[2]
HERE = "tests/faults"
ROW = "test_provider.py::test_a_fault_of_the_provider_ends_in_a_right_answer_in_time"


def _becomes(value: Any) -> Callable[[Any], Any]:
    return lambda _sound: value


def _judged(change: Callable[[Any, float | None], tuple[Any, float | None]]) -> Callable[[Any], Any]:
    """The judgement of a provider's error, changed."""
    return lambda judge: lambda name, error, attempt: change(*judge(name, error, attempt))


def _blocking_put(_sound: Any) -> Any:
    def _offer(chunks: Any, item: Any, left: Any) -> bool:
        chunks.put(item)
        return not left.is_set()

    return _offer


def _careless_writing(_sound: Any) -> Any:
    """COMMIT outside the guard, ROLLBACK whether or not there is something to roll back."""

    @contextmanager
    def writing(self: Any) -> Iterator[Any]:
        from advisor.database import _SQLITE_LOST, _told_apart

        with _told_apart(*_SQLITE_LOST):
            db = self._connection()
            db.execute("begin immediate")
            try:
                yield db
            except BaseException:
                db.execute("rollback")
                raise
            db.execute("commit")

    return writing


def _no_transaction(_sound: Any) -> Any:
    @contextmanager
    def writing(self: Any) -> Iterator[Any]:
        yield self._connection()

    return writing


def _no_transaction_in_steps(_sound: Any) -> Any:
    def migrate(db: Any, steps: Any = ()) -> None:
        from advisor import schema

        steps = steps or schema.MIGRATIONS
        while (version := schema._sqlite_version(db, steps)) < len(steps):
            db.execute(f"pragma user_version = {version + 1}")
            for statement in schema._statements(steps[version]):
                db.execute(statement)

    return migrate


def _kept_for_anybody(_sound: Any) -> Any:
    def kept(self: Any, _principal: str, turn_id: str) -> Any:
        return next((one for (_owner, turn), one in self._kept.items() if turn == turn_id), None)

    return kept


def _from_the_start(follow: Any) -> Any:
    return lambda self, after=0: follow(self, 0)


def _place_until_read(begin: Any) -> Any:
    """A turn's place is held until its readers have gone, not until it is answered."""

    def held(self: Any, ask: Any, *arguments: Any, **named: Any) -> Any:
        followed = begin(self, ask, *arguments, **named)
        self._callers[ask.principal] += 1
        left = followed._left

        def release() -> None:
            left()
            self._callers[ask.principal] -= 1

        followed._left = release
        return followed

    return held


@contextmanager
def _as_it_comes(*_lost: type[Exception]) -> Iterator[None]:
    yield


def _wall(_sound: Any) -> Any:
    return SimpleNamespace(monotonic=lambda: time.time())


def _endless_patience(sound: Any) -> Any:
    return lambda self, pieces, _seconds=0.0: sound(self, pieces, 1e6)


FAULTS: tuple[Mutation, ...] = (
    # The provider
    Mutation(
        "an outage is charged",
        "refused calls stay charged in full",
        ("advisor.llm.client:was_refused",),
        _becomes(lambda _error: False),
        ("test_provider.py::test_a_provider_that_is_not_there_costs_neither_time_nor_money",),
    ),
    Mutation(
        "a cut is free",
        "a call that may have been billed is not charged",
        ("advisor.llm.client:was_refused",),
        _becomes(lambda _error: True),
        (f"{ROW}[reset-at-once]",),
    ),
    Mutation(
        "a reader blocks",
        "the queue is filled whether or not it is emptied",
        ("advisor.llm.client:_offer",),
        _blocking_put,
        ("test_hanging_up.py::test_a_flood_that_nobody_takes_holds_no_thread",),
    ),
    Mutation(
        "nobody hangs up",
        "connections are left to their timeouts",
        ("advisor.llm.client:_hang_up_on",),
        _becomes(lambda _reader: None),
        ("test_hanging_up.py",),
    ),
    Mutation(
        "any bill",
        "tokens as a provider says them",
        ("advisor.llm.client:_count",),
        _becomes(lambda tokens: tokens),
        (f"{ROW}[a-bill-below-nothing]",),
    ),
    Mutation(
        "dates are unknown",
        "Retry-After is a number or nothing",
        ("advisor.llm.provider_errors:parsedate_to_datetime",),
        _becomes(lambda _text: int("no")),
        (f"{ROW}[429-come-back-at-a-date-far-off]",),
    ),
    Mutation(
        "any character",
        "surrogates and NUL pass in a text",
        ("advisor.llm.client:readable", "advisor.turn:clean"),  # either is enough
        _becomes(lambda text: text),
        (f"{ROW}[lone-surrogates-and-NUL]",),
    ),
    Mutation(
        "any character in a call",
        "surrogates and NUL pass in a call's arguments",
        ("advisor.llm.stream:_all_readable",),
        _becomes(lambda value: value),
        (f"{ROW}[lone-surrogates-and-NUL-in-a-call]",),
    ),
    Mutation(
        "lost replies are free",
        "only the last attempt is charged",
        ("advisor.llm.client:_with_lost",),
        _becomes(lambda event, _lost: event),
        (f"{ROW}[a-lost-call]",),
    ),
    Mutation(
        "a refusal is tried again",
        "401 as if it were 500",
        ("advisor.llm.client:judge",),
        _judged(lambda failure, _wait: (failure, 0.01)),
        (f"{ROW}[401]",),
    ),
    Mutation(
        "no retries",
        "an error that passes is not waited for",
        ("advisor.llm.client:judge",),
        _judged(lambda failure, _wait: (failure, None)),
        (f"{ROW}[500-twice]",),
    ),
    Mutation(
        "a wait of any length",
        "the deadline is no bound for Retry-After",
        ("advisor.llm.provider_errors:_pause",),
        _becomes(lambda _error, _attempt: 0.01),
        (f"{ROW}[429-come-back-in-ten-minutes]",),
    ),
    Mutation(
        "a breaker by the wall clock",
        "it opens and closes when the clock is set",
        ("advisor.llm.breaker:time",),
        _wall,
        ("test_breaker.py::test_setting_the_wall_clock_neither_opens_nor_closes_it",),
    ),
    Mutation(
        "a breaker that never opens",
        "every call waits anew",
        ("advisor.llm.breaker:Breaker.failed",),
        _becomes(lambda self: None),
        ("test_breaker.py",),
    ),
    Mutation(
        "no last rung",
        "without providers no answer",
        ("advisor.turn:ladder",),
        _becomes(lambda asked, settings: (asked or settings.model, *settings.fallback_models)),
        ("test_outage.py",),
    ),
    # What is stored
    Mutation(
        "a careless transaction",
        "COMMIT and ROLLBACK as if they could not fail",
        ("advisor.database:SqliteDatabase.writing",),
        _careless_writing,
        ("test_storage.py",),
    ),
    Mutation(
        "no transaction",
        "each statement by itself",
        ("advisor.database:SqliteDatabase.writing",),
        _no_transaction,
        ("test_killed.py::test_killed_at_every_statement_of_a_turn_nothing_acknowledged_is_lost",),
    ),
    Mutation(
        "steps in pieces",
        "a migration is no transaction",
        ("advisor.database:migrate_sqlite",),
        _no_transaction_in_steps,
        ("test_killed.py::test_killed_in_a_migration_the_next_start_finishes_it",),
    ),
    Mutation(
        "every fault is ours",
        "a file that cannot be used is a bug",
        ("advisor.database:_is_away",),
        _becomes(lambda _error: False),
        ("test_storage.py",),
    ),
    Mutation(
        "knowledge unlooked at",
        "a damaged file is found by the first question",
        ("knowledge.store:_opened",),
        _becomes(lambda path: __import__("sqlite3").connect(path)),
        ("test_storage.py",),
    ),
    Mutation(
        "rates for ever",
        "a clock set back shuts callers out",
        ("advisor.accounts:LONGEST_SECONDS",),
        _becomes(1e12),
        ("test_clocks.py::test_a_rate_lets_a_minutes_worth_through_after_the_clock_was_set",),
    ),
    Mutation(
        "leases for ever",
        "a clock set back keeps a dead process's job",
        ("integrations.slack.ledger:CLOCK_SECONDS",),
        _becomes(1e12),
        ("test_clocks.py::test_a_job_of_a_dead_process_is_taken_over_after_the_clock_was_set",),
    ),
    # The server
    Mutation(
        "a cut stops the turn",
        "nothing is kept for who comes back",
        ("integrations.http.follow:Followed._left",),
        _becomes(lambda self: self.end()),
        ("test_resume.py::test_the_rest_of_a_running_turn_comes_to_who_takes_it_up",),
    ),
    Mutation(
        "from the start again",
        "events are shown twice",
        ("integrations.http.follow:Followed.follow",),
        _from_the_start,
        ("test_resume.py::test_numbers_go_on_and_any_place_may_be_named",),
    ),
    Mutation(
        "anybody's turn",
        "an id is enough",
        ("integrations.http.turns:Turns.kept",),
        _kept_for_anybody,
        ("test_resume.py::test_nobody_elses_turn_can_be_taken_up_or_stopped",),
    ),
    Mutation(
        "readers hold places",
        "who reads nothing shuts others out",
        ("integrations.http.turns:Turns.begin",),
        _place_until_read,
        ("test_slow_readers.py::test_who_reads_nothing_takes_no_place_from_others",),
    ),
    Mutation(
        "endless patience",
        "a reader may take nothing for ever",
        ("integrations.http.streams:EventStream.__init__",),
        _endless_patience,
        ("test_slow_readers.py::test_who_takes_nothing_for_too_long_is_left",),
    ),
    Mutation(
        "told once is enough",
        "a second signal changes nothing",
        ("integrations.http.drain:AGAIN_SECONDS",),
        _becomes(2.0**40),
        ("test_stopping.py::test_told_twice_it_ends_at_once",),
    ),
    Mutation(
        "no last word",
        "streams end without saying why",
        ("integrations.http.turns:Turns.end_all",),
        _becomes(lambda self: None),
        ("test_stopping.py::test_twenty_streams_get_a_last_word_and_the_process_ends_in_time",),
    ),
    Mutation(
        "a lost connection is a bug",
        "500 while the database is away",
        ("advisor.database:_told_apart",),
        _becomes(_as_it_comes),
        ("test_postgres_restart.py",),
    ),
)
# These wait for seconds or start servers; the others take part in the ordinary run.
SLOW = ("told once is enough", "no last word", "a lost connection is a bug")


def plant(name: str) -> None:
    """Put this fault into the running program, for good."""
    fault = next(fault for fault in FAULTS if fault.name == name)
    for place in fault.places:
        module, _, path = place.partition(":")
        owner: Any = import_module(module)
        *way, last = path.split(".")
        for part in way:
            owner = getattr(owner, part)
        setattr(owner, last, fault.change(getattr(owner, last)))


def noticed(fault: Mutation) -> bool:
    """Whether a guard of this fault fails while it is in the program."""
    guards = [f"{HERE}/{guard}" for guard in fault.cases]
    environment = {**os.environ, "FAULTS_SEED": fault.name, "PYTHONPATH": f"{ROOT}:{ROOT / HERE / 'seeded'}"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *guards]
    if fault.name not in SLOW:
        command += ["-m", "not slow"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    return done.returncode == 1 and re.search("^(FAILED|ERROR) ", done.stdout, re.MULTILINE) is not None


def main() -> None:
    """Plant each in turn; exit 1 when one is not noticed."""
    wanted = sys.argv[1:]
    unnoticed = []
    for fault in FAULTS:
        if not wanted or fault.name in wanted:
            seen = noticed(fault)
            print(f"{'noticed' if seen else 'NOT NOTICED':12} {fault.name}: {fault.about}", flush=True)
            unnoticed += [] if seen else [fault.name]
    sys.exit(1 if unnoticed else 0)


if __name__ == "__main__":
    main()
