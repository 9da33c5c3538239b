"""SIGKILL at every statement: what was acknowledged is there, what was not is whole or absent, the file is sound.

A kill after a fixed sleep mostly hits a process that does nothing (cli-printing-press 4206); here the process says
which statement it is about to run, and is killed there, or while it races on.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from advisor import schema
from advisor.database import SqliteDatabase
from advisor.schema import migrate_sqlite
from tests.faults.kill_cycles import TOKENS

ROUND = 24  # statements of one round of work: reserve, begin, finish, settle
CYCLES = 200


class Killer:
    """The process that forks those to be killed."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.kill_cycles", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.kept: list[str] = []
        self.begun: list[str] = []
        self.places: list[str] = []

    def kill(self, work: str, at: int, race: bool = False) -> bool:
        """Kill a child before its statement of this number; False when it had fewer."""
        assert self._process.stdin is not None
        print(json.dumps({"work": work, "at": at, "race": race}), file=self._process.stdin, flush=True)
        pid, hit = 0, False
        for said in self._said():
            pid = said.get("pid", pid)
            self.kept += [said["kept"]] if "kept" in said else []
            self.begun += [said["begun"]] if "begun" in said else []
            if "at" in said:
                hit = True
                self.places.append(said["at"])
                os.kill(pid, signal.SIGKILL)
            if "gone" in said:
                assert not hit or os.WTERMSIG(said["gone"]) == signal.SIGKILL
                return hit
        raise AssertionError("the killer died")

    def _said(self) -> Iterator[dict[str, Any]]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            yield json.loads(line)

    def close(self) -> None:
        self._process.stdin.close()  # type: ignore[union-attr]
        self._process.wait(10)
        self._process.stdout.close()  # type: ignore[union-attr]


@pytest.fixture
def killer(tmp_path: Path) -> Iterator[Killer]:
    found = Killer(tmp_path / "killed.db")
    yield found
    found.close()


def test_killed_at_every_statement_of_a_turn_nothing_acknowledged_is_lost(killer: Killer, tmp_path: Path) -> None:
    """One kill at each statement of a turn's life, on a file that has the newest schema already."""
    SqliteDatabase(str(tmp_path / "killed.db")).close()
    for number in range(1, ROUND + 1):
        assert killer.kill("turns", number + CONNECTING)
        check(killer, tmp_path / "killed.db")
    hit = " ".join(killer.places).lower()
    assert all(word in hit for word in ("begin immediate", "commit", "insert into turns", "insert into messages"))


@pytest.mark.slow
def test_two_hundred_kills_lose_nothing_that_was_acknowledged(killer: Killer, tmp_path: Path) -> None:
    """Every other one while the process races on; later kills in a life find several turns behind them."""
    SqliteDatabase(str(tmp_path / "killed.db")).close()
    for cycle in range(CYCLES):
        assert killer.kill("turns", CONNECTING + 1 + (cycle * 7) % (3 * ROUND), race=bool(cycle % 2))
        check(killer, tmp_path / "killed.db")
    assert len(killer.places) == CYCLES
    assert len([turn for turn in killer.kept if turn.startswith("t_")]) >= CYCLES // 2


def test_killed_in_a_migration_the_next_start_finishes_it(killer: Killer, tmp_path: Path) -> None:
    """At every statement of every step, from nothing to the newest schema."""
    path = tmp_path / "killed.db"
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        migrate_sqlite(fresh)
        wanted = fresh.execute("select name, sql from sqlite_master order by name").fetchall()
    number, killed = 0, 0
    while True:
        for file in tmp_path.glob("killed.db*"):
            file.unlink()
        number += 1
        if not killer.kill("migrate", number):
            break
        killed += 1
        with closing(sqlite3.connect(path)) as db:  # nothing of a step, or all of it
            (version,) = db.execute("pragma user_version").fetchone()
            tables = db.execute("select count(*) from sqlite_master where type = 'table'").fetchone()[0]
            assert tables == sum(step.count("create table") for step in schema.MIGRATIONS[:version])
        with closing(SqliteDatabase(str(path))) as found:
            assert found.read("select name, sql from sqlite_master order by name") == wanted
            assert found.read("pragma integrity_check") == [("ok",)]
    assert killed > 20


CONNECTING = 4  # statements before the work begins: three pragmas and a look at the schema's version


def check(killer: Killer, path: Path) -> None:
    """What must hold after any kill."""
    with closing(SqliteDatabase(str(path))) as found:
        assert found.read("pragma integrity_check") == [("ok",)]
        assert found.read("pragma foreign_key_check") == []
        rows = found.read(
            "select t.id, t.number, t.status, t.answer is not null, (select count(*) from messages m where"
            " m.turn_id = t.id) from turns t order by t.number"
        )
        kept = {turn for turn in killer.kept if turn.startswith("t_")}
        assert kept <= {turn for turn, _number, status, *_ in rows if status == "answered"}
        assert [number for _turn, number, *_ in rows] == list(range(1, len(rows) + 1))  # none twice, none missing
        for turn, _number, status, answered, messages in rows:
            assert (status, answered, messages) in (("answered", 1, 2), ("running", 0, 0)), turn
        calls = found.read("select coalesce(sum(tool_calls), 0) from conversations")[0][0]
        assert calls == sum(status == "answered" for _turn, _number, status, *_ in rows)
        _check_budget(killer, found)
        # The file alone, without its log, is the whole database once that is written back.
        assert found.read("pragma wal_checkpoint(truncate)")[0][0] == 0


def _check_budget(killer: Killer, found: SqliteDatabase) -> None:
    """Charged at least what was acknowledged, and no more than was begun."""
    spent = found.read("select coalesce(sum(tokens), 0) from spending")[0][0]
    held = found.read("select count(*) from reservations")[0][0]
    reserved, settled = killer.begun.count("reserve"), killer.begun.count("settle")
    assert spent <= 2 * TOKENS * reserved - TOKENS * killer.kept.count("settle")
    assert spent >= 2 * TOKENS * killer.kept.count("reserve") - TOKENS * settled
    assert killer.kept.count("reserve") - settled <= held <= reserved - killer.kept.count("settle")
