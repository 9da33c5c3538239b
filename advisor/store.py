"""Conversations kept: what was asked, answered and called, by principal (user or tenant).

``Conversations`` is the interface; ``SqliteConversations`` the default behind it. A question is written down before
work on it begins, so a crash loses no question; a finished turn is one transaction. Every write transaction is
BEGIN IMMEDIATE, since a deferred one that turns into a write fails at once under contention whatever the timeout.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from advisor.llm.protocol import Message, ToolCall

LOCAL = "local"  # the principal of the command line


@dataclass(frozen=True, slots=True)
class Summary:
    """A conversation in a list."""

    id: str
    title: str
    turns: int
    updated_at: str


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A turn as kept; ``answer`` is the ``ask --json`` object, None while it runs or after a crash."""

    id: str
    question: str
    status: str
    model: str
    created_at: str
    answer: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Opened:
    """A turn just begun, with what the models are shown of the conversation so far."""

    conversation_id: str
    turn_id: str
    history: tuple[Message, ...]
    tool_calls_before: int


class Conversations(Protocol):
    """What a store of conversations does. A conversation of another principal is as if it did not exist."""

    def begin(self, principal: str, conversation_id: str | None, question: str) -> Opened:
        """Write the question down; an unknown conversation id starts a conversation of that id."""
        ...

    def finish(self, principal: str, opened: Opened, answer: dict[str, Any], messages: Sequence[Message]) -> None:
        """Keep the answer and the messages of the turn (assistant and tool), in one transaction."""
        ...

    def recent(self, principal: str, limit: int = 50) -> list[Summary]:
        """The principal's conversations, newest first."""
        ...

    def turns(self, principal: str, conversation_id: str) -> list[StoredTurn] | None:
        """The turns of a conversation in order; None when there is none of that id."""
        ...

    def delete(self, principal: str, conversation_id: str) -> bool:
        """Forget a conversation; whether there was one."""
        ...

    def add_feedback(self, principal: str, turn_id: str, rating: int, comment: str = "") -> bool:
        """Keep what a user thought of a turn (rating -1, 0 or 1); whether there is such a turn."""
        ...

    def ping(self) -> None:
        """Raise when the store cannot be written."""
        ...


# Numbered, forward only, never edited once released.
MIGRATIONS: tuple[str, ...] = (
    """
    create table conversations (
        principal text not null, id text not null, title text not null, created_at text not null,
        updated_at text not null, tool_calls integer not null default 0, primary key (principal, id)
    ) strict;
    create table turns (
        id text primary key, principal text not null, conversation_id text not null, number integer not null,
        question text not null, status text not null, model text not null default '', answer text,
        created_at text not null, finished_at text,
        foreign key (principal, conversation_id) references conversations (principal, id) on delete cascade
    ) strict;
    create unique index turns_in_order on turns (principal, conversation_id, number);
    create table messages (
        turn_id text not null references turns (id) on delete cascade, number integer not null,
        message text not null, primary key (turn_id, number)
    ) strict;
    create table feedback (
        turn_id text not null references turns (id) on delete cascade, principal text not null,
        rating integer not null, comment text not null, created_at text not null, primary key (turn_id, principal)
    ) strict;
    """,
)


class SqliteConversations:
    """Conversations in one SQLite file on local disk; safe for several threads and processes."""

    def __init__(self, path: Path | str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._path = str(path)
        self._now = now
        self._local = threading.local()
        self._shared: sqlite3.Connection | None = None
        self._lock = threading.RLock()
        if self._path == ":memory:":
            self._shared = self._connect()
        else:
            Path(self._path).parent.mkdir(parents=True, exist_ok=True)
        migrate(self._connection())

    def begin(self, principal: str, conversation_id: str | None, question: str) -> Opened:
        """See ``Conversations.begin``."""
        conversation, turn, now = conversation_id or new_id("c"), new_id("t"), self._stamp()
        with self._writing() as db:
            db.execute(
                "insert into conversations (principal, id, title, created_at, updated_at) values (?, ?, ?, ?, ?)"
                " on conflict do update set updated_at = excluded.updated_at",
                (principal, conversation, _title(question), now, now),
            )
            key = (principal, conversation)
            (before,) = db.execute(
                "select tool_calls from conversations where principal = ? and id = ?", key
            ).fetchone()
            (number,) = db.execute(
                "select coalesce(max(number), 0) + 1 from turns where principal = ? and conversation_id = ?", key
            ).fetchone()
            history = self._history(db, principal, conversation) if number > 1 else ()
            db.execute(
                "insert into turns (id, principal, conversation_id, number, question, status, created_at)"
                " values (?, ?, ?, ?, ?, 'running', ?)",
                (turn, *key, number, question, now),
            )
        return Opened(conversation, turn, history, before)

    def finish(self, principal: str, opened: Opened, answer: dict[str, Any], messages: Sequence[Message]) -> None:
        """See ``Conversations.finish``."""
        now = self._stamp()
        with self._writing() as db:
            db.execute(
                "update turns set status = ?, model = ?, answer = ?, finished_at = ? where id = ? and principal = ?",
                (answer["status"], answer["model"], _dump(answer), now, opened.turn_id, principal),
            )
            db.executemany(
                "insert into messages (turn_id, number, message) select ?, ?, ? where exists"
                " (select 1 from turns where id = ?)",
                [
                    (opened.turn_id, number, _dump(_message_out(message)), opened.turn_id)
                    for number, message in enumerate(messages)
                ],
            )
            db.execute(
                "update conversations set tool_calls = tool_calls + ?, updated_at = ? where principal = ? and id = ?",
                (sum(message.role == "tool" for message in messages), now, principal, opened.conversation_id),
            )

    def recent(self, principal: str, limit: int = 50) -> list[Summary]:
        """See ``Conversations.recent``."""
        rows = self._connection().execute(
            "select c.id, c.title, count(t.id), c.updated_at from conversations c"
            " left join turns t on t.principal = c.principal and t.conversation_id = c.id"
            " where c.principal = ? group by c.id order by c.updated_at desc, c.rowid desc limit ?",
            (principal, limit),
        )
        return [Summary(*row) for row in rows]

    def turns(self, principal: str, conversation_id: str) -> list[StoredTurn] | None:
        """See ``Conversations.turns``."""
        rows = (
            self._connection()
            .execute(
                "select id, question, status, model, created_at, answer from turns"
                " where principal = ? and conversation_id = ? order by number",
                (principal, conversation_id),
            )
            .fetchall()
        )
        return [
            StoredTurn(turn, question, status, model, created, json.loads(answer) if answer else None)
            for turn, question, status, model, created, answer in rows
        ] or None

    def delete(self, principal: str, conversation_id: str) -> bool:
        """See ``Conversations.delete``."""
        with self._writing() as db:
            done = db.execute("delete from conversations where principal = ? and id = ?", (principal, conversation_id))
            return done.rowcount > 0

    def add_feedback(self, principal: str, turn_id: str, rating: int, comment: str = "") -> bool:
        """See ``Conversations.add_feedback``."""
        with self._writing() as db:
            done = db.execute(
                "insert into feedback (turn_id, principal, rating, comment, created_at)"
                " select id, principal, ?, ?, ? from turns where id = ? and principal = ?"
                " on conflict do update set rating = excluded.rating, comment = excluded.comment",
                (rating, comment, self._stamp(), turn_id, principal),
            )
            return done.rowcount > 0

    def ping(self) -> None:
        """See ``Conversations.ping``."""
        with self._writing() as db:
            db.execute("update conversations set title = title where principal = ''")

    def _history(self, db: sqlite3.Connection, principal: str, conversation: str) -> tuple[Message, ...]:
        rows = db.execute(
            "select t.id, t.question, m.message from turns t left join messages m on m.turn_id = t.id"
            " where t.principal = ? and t.conversation_id = ? and t.answer is not null order by t.number, m.number",
            (principal, conversation),
        )
        found: list[Message] = []
        current = None
        for turn, question, message in rows:
            if turn != current:
                found.append(Message("user", question))
                current = turn
            if message:
                found.append(_message_in(json.loads(message)))
        return tuple(found)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        db = self._connection()
        with self._lock if self._shared else _NoLock():
            db.execute("begin immediate")
            try:
                yield db
            except BaseException:
                db.execute("rollback")
                raise
            db.execute("commit")

    def _connection(self) -> sqlite3.Connection:
        if self._shared:
            return self._shared
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = self._local.connection = self._connect()
        return found

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, timeout=5.0, isolation_level=None, check_same_thread=False)
        # WAL lets readers pass a writer; NORMAL may lose the last turns when power fails, never when a process dies.
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = normal")
        db.execute("pragma foreign_keys = on")
        return db

    def _stamp(self) -> str:
        return self._now().isoformat(timespec="milliseconds")


class StoreTooNew(Exception):
    """The file was written by a newer release; starting would guess at its meaning."""


def migrate(db: sqlite3.Connection, steps: Sequence[str] = MIGRATIONS) -> None:
    """Bring the file to the newest schema, one transaction a step; several processes may start at once."""
    while True:
        (version,) = db.execute("pragma user_version").fetchone()
        if version > len(steps):
            raise StoreTooNew(f"The database has schema {version}; this release knows {len(steps)}.")
        if version == len(steps):
            return
        db.execute("begin immediate")
        try:
            (version,) = db.execute("pragma user_version").fetchone()  # another process may have been faster
            if version < len(steps):
                for statement in steps[version].split(";"):
                    if statement.strip():
                        db.execute(statement)
                db.execute(f"pragma user_version = {version + 1}")
        except BaseException:
            db.execute("rollback")
            raise
        db.execute("commit")


def new_id(prefix: str) -> str:
    """An id that cannot be guessed."""
    return f"{prefix}_{secrets.token_hex(10)}"


class _NoLock:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


def _title(question: str) -> str:
    line = " ".join(question.split())
    return line if len(line) <= 80 else line[:79] + "…"


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _message_out(message: Message) -> dict[str, Any]:
    data: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        data["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        data |= {"tool_call_id": message.tool_call_id, "name": message.name}
    return data


def _message_in(data: dict[str, Any]) -> Message:
    calls = tuple(ToolCall(call["id"], call["name"], call["arguments"]) for call in data.get("tool_calls", ()))
    return Message(data["role"], data["content"], calls, data.get("tool_call_id"), data.get("name"))
