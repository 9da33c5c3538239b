"""Conversations kept: what was asked, answered and called, by principal (user or tenant).

``Conversations`` is the interface, ``SqlConversations`` the one implementation, on SQLite or PostgreSQL. A question is
written down before work on it begins, so a crash loses no question; a finished turn is one transaction. The principal
is in every statement: what belongs to somebody else is as if it did not exist.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from advisor.answer import Answer
from advisor.database import Database, Row, SqliteDatabase, open_database
from advisor.llm.protocol import Message, ToolCall

LOCAL = "local"  # the principal of the command line
Now = Callable[[], datetime]


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


@dataclass(frozen=True, slots=True)
class Recalled:
    """The stored conversation that a transcript ends in; ``latest`` when nothing was asked after it."""

    conversation_id: str
    latest: bool
    history: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Rated:
    """A turn somebody gave an opinion on, with the questions before it, oldest first."""

    turn_id: str
    rating: int
    comment: str
    created_at: str
    questions: tuple[str, ...]
    answer: dict[str, Any] | None


class Conversations(Protocol):
    """What a store of conversations does. A conversation of another principal is as if it did not exist."""

    def begin(self, principal: str, conversation_id: str | None, question: str) -> Opened:
        """Write the question down; an unknown conversation id starts a conversation of that id."""
        ...

    def finish(self, principal: str, opened: Opened, answer: Answer, messages: Sequence[Message]) -> None:
        """Keep the answer and the messages of the turn (assistant and tool), in one transaction."""
        ...

    def recent(self, principal: str, limit: int = 50, before: str | None = None) -> list[Summary]:
        """The principal's conversations, newest first; ``before``: only those last used before this time."""
        ...

    def turns(self, principal: str, conversation_id: str) -> list[StoredTurn] | None:
        """The turns of a conversation in order; None when there is none of that id."""
        ...

    def turn(self, principal: str, turn_id: str) -> StoredTurn | None:
        """One turn; None when there is none of that id."""
        ...

    def delete(self, principal: str, conversation_id: str) -> bool:
        """Forget a conversation; whether there was one."""
        ...

    def add_feedback(self, principal: str, turn_id: str, rating: int, comment: str = "") -> bool:
        """Keep what a user thought of a turn (-1, 0 or 1; the last word counts); whether there is such a turn."""
        ...

    def rated(self, principal: str | None, rating: int | None = None, limit: int = 100) -> list[Rated]:
        """Turns with feedback, newest first; principal None is the operator's view of all."""
        ...

    def remember(self, principal: str, digest: str, conversation_id: str, turn_id: str) -> None:
        """Note that the transcript of this digest ends in this turn."""
        ...

    def recall(self, principal: str, digest: str) -> Recalled | None:
        """What was noted of a transcript."""
        ...

    def ping(self) -> None:
        """Raise when the store cannot be written."""
        ...


class SqlConversations:
    """Conversations in a database."""

    def __init__(self, database: Database, now: Now = lambda: datetime.now(UTC)) -> None:
        self.database = database
        self._now = now

    def begin(self, principal: str, conversation_id: str | None, question: str) -> Opened:
        """See ``Conversations.begin``."""
        conversation, turn, now = conversation_id or new_id("c"), new_id("t"), self._stamp()
        key = (principal, conversation)
        with self.database.writing() as db:
            # This row's lock keeps two turns of one conversation from taking the same number.
            db.execute(
                "insert into conversations (principal, id, title, created_at, updated_at) values (?, ?, ?, ?, ?)"
                " on conflict (principal, id) do update set updated_at = excluded.updated_at",
                (*key, _title(question), now, now),
            )
            row = db.execute("select tool_calls from conversations where principal = ? and id = ?", key).fetchone()
            last = db.execute(
                "select coalesce(max(number), 0) from turns where principal = ? and conversation_id = ?", key
            ).fetchone()
            assert row is not None
            assert last is not None
            number = last[0] + 1
            db.execute(
                "insert into turns (id, principal, conversation_id, number, question, status, created_at)"
                " values (?, ?, ?, ?, ?, 'running', ?)",
                (turn, *key, number, question, now),
            )
        history = self._history(principal, conversation, number - 1) if number > 1 else ()
        return Opened(conversation, turn, history, row[0])

    def finish(self, principal: str, opened: Opened, answer: Answer, messages: Sequence[Message]) -> None:
        """See ``Conversations.finish``."""
        now = self._stamp()
        with self.database.writing() as db:
            kept = db.execute(
                "update turns set status = ?, model = ?, answer = ?, finished_at = ? where id = ? and principal = ?",
                (answer.status, answer.model, answer.as_text(), now, opened.turn_id, principal),
            )
            if not kept.rowcount:
                return  # the conversation was deleted meanwhile, and stays so
            for number, message in enumerate(messages):
                db.execute(
                    "insert into messages (turn_id, number, message) values (?, ?, ?)",
                    (opened.turn_id, number, _dump(_message_out(message))),
                )
            db.execute(
                "update conversations set tool_calls = tool_calls + ?, updated_at = ? where principal = ? and id = ?",
                (sum(message.role == "tool" for message in messages), now, principal, opened.conversation_id),
            )

    def recent(self, principal: str, limit: int = 50, before: str | None = None) -> list[Summary]:
        """See ``Conversations.recent``."""
        rows = self.database.read(
            "select c.id, c.title, count(t.id), c.updated_at from conversations c"
            " left join turns t on t.principal = c.principal and t.conversation_id = c.id"
            " where c.principal = ? and c.updated_at < ? group by c.principal, c.id"
            " order by c.updated_at desc, c.created_at desc, c.id limit ?",
            (principal, before or "9", limit),
        )
        return [Summary(*row) for row in rows]

    def turns(self, principal: str, conversation_id: str) -> list[StoredTurn] | None:
        """See ``Conversations.turns``."""
        rows = self.database.read(
            "select id, question, status, model, created_at, answer from turns"
            " where principal = ? and conversation_id = ? order by number",
            (principal, conversation_id),
        )
        return [_stored_turn(row) for row in rows] or None

    def turn(self, principal: str, turn_id: str) -> StoredTurn | None:
        """See ``Conversations.turn``."""
        rows = self.database.read(
            "select id, question, status, model, created_at, answer from turns where principal = ? and id = ?",
            (principal, turn_id),
        )
        return _stored_turn(rows[0]) if rows else None

    def delete(self, principal: str, conversation_id: str) -> bool:
        """See ``Conversations.delete``."""
        with self.database.writing() as db:
            done = db.execute("delete from conversations where principal = ? and id = ?", (principal, conversation_id))
            return done.rowcount > 0

    def add_feedback(self, principal: str, turn_id: str, rating: int, comment: str = "") -> bool:
        """See ``Conversations.add_feedback``."""
        with self.database.writing() as db:
            found = db.execute("select id from turns where id = ? and principal = ?", (turn_id, principal)).fetchone()
            if found is None:
                return False
            db.execute(
                "insert into feedback (turn_id, principal, rating, comment, created_at) values (?, ?, ?, ?, ?)"
                " on conflict (turn_id, principal) do update set rating = excluded.rating,"
                " comment = excluded.comment, created_at = excluded.created_at",
                (turn_id, principal, rating, comment, self._stamp()),
            )
            return True

    def rated(self, principal: str | None, rating: int | None = None, limit: int = 100) -> list[Rated]:
        """See ``Conversations.rated``."""
        wanted = [("f.principal = ?", principal), ("f.rating = ?", rating)]
        used = [(words, value) for words, value in wanted if value is not None]
        where = " where " + " and ".join(words for words, _value in used) if used else ""
        rows = self.database.read(
            "select f.turn_id, f.rating, f.comment, f.created_at, t.answer, t.principal, t.conversation_id, t.number"
            f" from feedback f join turns t on t.id = f.turn_id{where} order by f.created_at desc, f.turn_id limit ?",
            (*(value for _words, value in used), limit),
        )
        return [
            Rated(turn, score, comment, at, self._questions(*place), json.loads(answer) if answer else None)
            for turn, score, comment, at, answer, *place in rows
        ]

    def remember(self, principal: str, digest: str, conversation_id: str, turn_id: str) -> None:
        """See ``Conversations.remember``."""
        with self.database.writing() as db:
            key = (principal, conversation_id)
            if db.execute("select id from conversations where principal = ? and id = ?", key).fetchone():
                db.execute(
                    "insert into transcripts (principal, digest, conversation_id, turn_id) values (?, ?, ?, ?)"
                    " on conflict (principal, digest) do update set conversation_id = excluded.conversation_id,"
                    " turn_id = excluded.turn_id",
                    (principal, digest, conversation_id, turn_id),
                )

    def recall(self, principal: str, digest: str) -> Recalled | None:
        """See ``Conversations.recall``."""
        rows = self.database.read(
            "select r.conversation_id, t.number, (select max(number) from turns n where n.principal = t.principal"
            " and n.conversation_id = t.conversation_id) from transcripts r join turns t on t.id = r.turn_id"
            " where r.principal = ? and r.digest = ? and t.principal = r.principal",
            (principal, digest),
        )
        if not rows:
            return None
        conversation, number, last = rows[0]
        return Recalled(conversation, number == last, self._history(principal, conversation, number))

    def ping(self) -> None:
        """See ``Conversations.ping``."""
        with self.database.writing() as db:
            db.execute("update conversations set title = title where principal = ''")

    def _history(self, principal: str, conversation: str, last: int) -> tuple[Message, ...]:
        rows = self.database.read(
            "select t.id, t.question, m.message from turns t left join messages m on m.turn_id = t.id"
            " where t.principal = ? and t.conversation_id = ? and t.number <= ? and t.answer is not null"
            " order by t.number, m.number",
            (principal, conversation, last),
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

    def _questions(self, principal: str, conversation: str, last: int) -> tuple[str, ...]:
        rows = self.database.read(
            "select question from turns where principal = ? and conversation_id = ? and number <= ? order by number",
            (principal, conversation, last),
        )
        return tuple(question for (question,) in rows)

    def _stamp(self) -> str:
        return self._now().isoformat(timespec="milliseconds")


class SqliteConversations(SqlConversations):
    """Conversations in one SQLite file on local disk, or ``:memory:``."""

    def __init__(self, path: Path | str, now: Now = lambda: datetime.now(UTC)) -> None:
        super().__init__(SqliteDatabase(str(path)), now)


def open_store(place: str | Path) -> SqlConversations:
    """The store at a file path or URL, brought to the newest schema. Raises as ``open_database`` does."""
    return SqlConversations(open_database(place))


def new_id(prefix: str) -> str:
    """An id that cannot be guessed: ``prefix``, an underscore and 20 hex digits (80 random bits)."""
    return f"{prefix}_{secrets.token_hex(10)}"


def _stored_turn(row: Row) -> StoredTurn:
    turn, question, status, model, created, answer = row
    return StoredTurn(turn, question, status, model, created, json.loads(answer) if answer else None)


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
