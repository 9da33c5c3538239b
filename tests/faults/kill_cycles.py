"""Processes to be killed at a chosen statement: one that has imported everything forks a child for each.

Run as a module with a database's path. Each line on standard input is one JSON job ``{"work": "turns"|"migrate",
"at": N, "race": bool}``: a child does the work and, before its Nth statement, says ``{"at": "SQL"}`` and, unless it is
to race, stands still until it is killed. What is acknowledged is said as ``{"kept": ID}``, what is only begun as
``{"begun": ID}``. When the child is gone, ``{"gone": STATUS}`` follows.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from advisor import schema
from advisor.accounts import Accounts, Budget
from advisor.answer import Answer
from advisor.database import SqliteDatabase
from advisor.llm.protocol import Message
from advisor.store import SqlConversations

TOKENS = 7
MESSAGES = [Message("assistant", "45 GB"), Message("tool", "{}", tool_call_id="x", name="t")]


def main() -> None:
    path = sys.argv[1]
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if not child:
            try:
                _work(path, job)
            finally:
                os._exit(0)
        say(pid=child)
        _, status = os.waitpid(child, 0)
        say(gone=status)


def say(**what: Any) -> None:
    os.write(1, (json.dumps(what) + "\n").encode())


class Watched(SqliteDatabase):
    """Says that a statement is about to run, and waits there to be killed."""

    def __init__(self, path: str, at: int, race: bool) -> None:
        self._left, self._race = at, race
        super().__init__(path)

    def _connect(self) -> Any:
        db = super()._connect()
        db.set_trace_callback(self._before)
        return db

    def _before(self, sql: str) -> None:
        self._left -= 1
        if self._left == 0:
            say(at=" ".join(sql.split())[:60])
            while not self._race:
                time.sleep(60)


def _work(path: str, job: dict[str, Any]) -> None:
    database = Watched(path, job["at"], job["race"])
    if job["work"] == "migrate":
        return
    store, accounts = SqlConversations(database), Accounts(database)
    budgets = [Budget("ann", 10**9, None)]
    while True:
        say(begun="reserve")
        reservation = accounts.reserve(budgets, 2 * TOKENS, 0.0)
        say(kept="reserve")
        opened = store.begin("ann", "c", "q?")
        say(begun=opened.turn_id)
        answer = Answer(conversation_id="c", turn_id=opened.turn_id, status="answered", model="m", answer="45 GB")
        store.finish("ann", opened, answer, MESSAGES)
        say(kept=opened.turn_id)
        say(begun="settle")
        accounts.settle(reservation, TOKENS, 0.0)
        say(kept="settle")


def statements() -> int:
    """How many statements a migration from nothing takes, BEGIN and COMMIT included."""
    return sum(len(step.split(";")) + 3 for step in schema.MIGRATIONS)


if __name__ == "__main__":
    main()
