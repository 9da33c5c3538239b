"""The tables of what is stored, as numbered steps that only go forward; a released step is never edited.

Written in SQLite's types; PostgreSQL's take their place there. Each step is one transaction, and several processes
may start at once: whoever comes second finds the step done.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from typing import Any

from tools.errors import InputProblem

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
    # Transcripts: which stored turn ends a conversation that a client sends whole each time (the OpenAI format).
    # The rest: keys, request rates, what language models cost by day, and what is set aside for calls in flight.
    """
    create table transcripts (
        principal text not null, digest text not null, conversation_id text not null, turn_id text not null,
        primary key (principal, digest),
        foreign key (principal, conversation_id) references conversations (principal, id) on delete cascade
    ) strict;
    create index transcripts_by_conversation on transcripts (principal, conversation_id);
    create index conversations_by_time on conversations (principal, updated_at);
    create table api_keys (
        id text primary key, digest text not null, owner text not null, name text not null, scopes text not null,
        requests_per_minute integer, tokens_per_day integer, usd_per_day real,
        created_at text not null, last_used_at text, revoked_at text
    ) strict;
    create table rates (subject text primary key, free_at real not null) strict;
    create table spending (
        subject text not null, day text not null, tokens integer not null default 0, usd real not null default 0,
        primary key (subject, day)
    ) strict;
    create table reservations (
        id text primary key, subjects text not null, day text not null, tokens integer not null, usd real not null,
        expires_at real not null
    ) strict;
    """,
    # Slack: each delivery once, each question as a job that one process at a time works on, and the message that
    # shows its answer: sending says that a post may or may not have reached Slack.
    """
    create table slack_deliveries (event_id text primary key, job_id text not null, seen_at real not null) strict;
    create table slack_jobs (
        id text primary key, team text not null, channel text not null, thread text not null, asked_at text not null,
        person text not null, question text not null, state text not null, owner text not null default '',
        lease_until real not null default 0, attempts integer not null default 0, post text not null default 'none',
        answer_ts text not null default '', turn_id text not null default '', created_at real not null
    ) strict;
    create index slack_jobs_open on slack_jobs (state, created_at);
    create index slack_jobs_by_thread on slack_jobs (team, channel, thread);
    """,
)
_POSTGRES = ((r"\) strict\b", ")"), (r"\binteger\b", "bigint"), (r"\breal\b", "double precision"))


class StoreTooNew(InputProblem):
    """The database was written by a newer release; starting would guess at its meaning."""


def migrate_sqlite(db: sqlite3.Connection, steps: Sequence[str] = MIGRATIONS) -> None:
    """Bring the file to the newest schema, each step in a transaction of its own. Raises StoreTooNew for one of a newer
    release, sqlite3.Error where a step fails, which is undone.
    """
    while (version := _sqlite_version(db, steps)) < len(steps):
        db.execute("begin immediate")
        try:
            if _sqlite_version(db, steps) == version:  # else another process was faster
                for statement in _statements(steps[version]):
                    db.execute(statement)
                db.execute(f"pragma user_version = {version + 1}")
            db.execute("commit")
        except BaseException:
            if db.in_transaction:
                db.execute("rollback")
            raise


def migrate_postgres(connection: Any, steps: Sequence[str] = MIGRATIONS) -> None:
    """Bring the database to the newest schema; one process at a time, by an advisory lock. Raises StoreTooNew for one
    of a newer release, psycopg.Error where a step fails, which is undone.
    """
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(7245001)")
        connection.execute("create table if not exists schema_version (version bigint not null)")
    while True:
        with connection.transaction():
            connection.execute("select pg_advisory_xact_lock(7245001)")
            row = connection.execute("select max(version) from schema_version").fetchone()
            version = _known(row[0] or 0, steps)
            if version == len(steps):
                return
            for statement in _statements(steps[version]):
                for pattern, instead in _POSTGRES:
                    statement = re.sub(pattern, instead, statement)
                connection.execute(statement)
            connection.execute("insert into schema_version values (%s)", (version + 1,))


def _sqlite_version(db: sqlite3.Connection, steps: Sequence[str]) -> int:
    (version,) = db.execute("pragma user_version").fetchone()
    return _known(version, steps)


def _known(version: int, steps: Sequence[str]) -> int:
    if version > len(steps):
        raise StoreTooNew(
            "database_too_new",
            f"The database was written by a newer release: it has schema {version}, this one knows {len(steps)}.",
            field="ADVISOR_DATABASE_URL",
            hint="Install the newer release, or set ADVISOR_DATABASE_URL to another database.",
        )
    return version


def _statements(step: str) -> list[str]:
    return [statement.strip() for statement in step.split(";") if statement.strip()]
