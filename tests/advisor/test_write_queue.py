"""The queue before SQLite's own lock: one at a time, among threads and processes, and no reason to wait for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from advisor.database import SqliteDatabase
from advisor.write_queue import LONGEST_SECONDS, WriteQueue

HOLD = """
import sys, time
from advisor.write_queue import WriteQueue
with WriteQueue(sys.argv[1]).turn():
    print("held", flush=True)
    time.sleep(30)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has its turn and keeps it."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path / "a.db")], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_threads_have_their_turns_one_at_a_time(tmp_path: Path) -> None:
    queue, inside, most = WriteQueue(str(tmp_path / "a.db")), 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(50):
            with queue.turn():
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    queue.close()
    assert most == 1


def test_a_process_that_does_not_go_on_is_waited_for_half_a_second(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    os.kill(holder.pid, signal.SIGSTOP)
    database = SqliteDatabase(str(tmp_path / "a.db"))
    begun = time.monotonic()
    with database.writing() as db:
        db.execute("select 1")
    took = time.monotonic() - begun
    database.close()
    assert LONGEST_SECONDS <= took < LONGEST_SECONDS + 1.0


def test_a_process_that_is_killed_is_not_waited_for(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()
    queue = WriteQueue(str(tmp_path / "a.db"))
    begun = time.monotonic()
    with queue.turn():
        pass
    queue.close()
    assert time.monotonic() - begun < LONGEST_SECONDS


def test_where_no_queue_can_be_made_there_is_none(tmp_path: Path) -> None:
    queue = WriteQueue(str(tmp_path / "nowhere" / "a.db"))
    with queue.turn():
        pass
    queue.close()
    assert not list(tmp_path.iterdir())
