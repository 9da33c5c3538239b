"""What must survive a crash: which deliveries were seen, which questions are open, which message answers each.

A delivery and its job are written in one transaction before Slack gets its 200, so that a redelivery finds them. A
job is leased to one process; when its lease runs out another takes over and looks at ``post`` to know what Slack may
have been sent: ``none`` nothing, ``sending`` perhaps, ``sent`` the message ``answer_ts``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from advisor.database import Database

KEEP_SECONDS = 7 * 86400.0  # Slack redelivers within minutes; a week leaves room for a look at what happened
CLOCK_SECONDS = 1.0  # by which the clocks of processes may differ
PostState = Literal["none", "sending", "sent"]


@dataclass(frozen=True, slots=True)
class Question:
    """A question as it arrived; ``ts`` is the message that asked it, ``thread`` where the answer goes."""

    team: str
    channel: str
    thread: str
    ts: str
    person: str
    text: str

    @property
    def job_id(self) -> str:
        """One post is one job, though a mention arrives as two events."""
        return f"{self.team}:{self.channel}:{self.ts}"


@dataclass(frozen=True, slots=True)
class Job:
    """A question being answered."""

    id: str
    question: Question
    attempts: int
    post: PostState
    answer_ts: str


class Ledger:
    """Deliveries and jobs in the advisor's database."""

    def __init__(self, database: Database, lease_seconds: float, clock: Callable[[], float] = time.time) -> None:
        self._database, self._lease, self._clock = database, lease_seconds, clock

    def accept(self, event_id: str, question: Question) -> bool:
        """Write a delivery and its question down; whether the question is a new one."""
        now = self._clock()
        with self._database.writing() as db:
            seen = db.execute(
                "insert into slack_deliveries (event_id, job_id, seen_at) values (?, ?, ?)"
                " on conflict (event_id) do nothing",
                (event_id, question.job_id, now),
            )
            if not seen.rowcount:
                return False
            made = db.execute(
                "insert into slack_jobs (id, team, channel, thread, asked_at, person, question, state, created_at)"
                " values (?, ?, ?, ?, ?, ?, ?, 'open', ?) on conflict (id) do nothing",
                (
                    question.job_id,
                    question.team,
                    question.channel,
                    question.thread,
                    question.ts,
                    question.person,
                    question.text,
                    now,
                ),
            )
            return made.rowcount > 0

    def claim(self, owner: str) -> Job | None:
        """The oldest open job that nobody works on, now leased to ``owner``; one at a time in a thread.

        A lease that ends later than any can is of before the clock was set back, and holds nothing.
        """
        now = self._clock()
        last = now + self._lease + CLOCK_SECONDS
        rows = self._database.read(
            "select id from slack_jobs j where state = 'open' and (lease_until < ? or lease_until > ?)"
            " and not exists (select 1 from"
            " slack_jobs o where o.team = j.team and o.channel = j.channel and o.thread = j.thread and o.state = 'open'"
            " and o.id <> j.id and (o.lease_until between ? and ? or o.created_at < j.created_at"
            " or (o.created_at = j.created_at and o.id < j.id))) order by created_at limit 4",
            (now, last, now, last),
        )
        for (job_id,) in rows:
            with self._database.writing() as db:
                taken = db.execute(
                    "update slack_jobs set owner = ?, lease_until = ?, attempts = attempts + 1"
                    " where id = ? and state = 'open' and (lease_until < ? or lease_until > ?)",
                    (owner, now + self._lease, job_id, now, last),
                )
            if taken.rowcount:
                return self._job(job_id)
        return None

    def keep(self, job_id: str, owner: str) -> bool:
        """Prolong a lease; False when somebody else holds the job now."""
        with self._database.writing() as db:
            kept = db.execute(
                "update slack_jobs set lease_until = ? where id = ? and owner = ? and state = 'open'",
                (self._clock() + self._lease, job_id, owner),
            )
            return kept.rowcount > 0

    def sending(self, job_id: str) -> None:
        """From now on Slack may have been sent a message for this job."""
        self._set(job_id, "post = 'sending'")

    def sent(self, job_id: str, ts: str) -> None:
        """Slack has this message (its ``ts``) for the job: whoever takes the job over goes on with it."""
        with self._database.writing() as db:
            db.execute("update slack_jobs set post = 'sent', answer_ts = ? where id = ?", (ts, job_id))

    def not_sent(self, job_id: str) -> None:
        """Slack certainly has no message for this job, so that another attempt may post one."""
        self._set(job_id, "post = 'none'")

    def finish(self, job_id: str, turn_id: str) -> None:
        """The answer of this turn is shown: close the job and give its lease back."""
        with self._database.writing() as db:
            db.execute(
                "update slack_jobs set state = 'answered', turn_id = ?, lease_until = 0 where id = ?", (turn_id, job_id)
            )

    def drop(self, job_id: str) -> None:
        """The question cannot be answered; close the job, so that no process tries it again."""
        self._set(job_id, "state = 'dropped', lease_until = 0")

    def answers_in(self, question: Question) -> set[str]:
        """Timestamps (``ts``) of the messages that answer questions of this thread; an empty set where
        there are none.
        """
        rows = self._database.read(
            "select answer_ts from slack_jobs where team = ? and channel = ? and thread = ? and answer_ts <> ''",
            (question.team, question.channel, question.thread),
        )
        return {ts for (ts,) in rows}

    def knows_thread(self, team: str, channel: str, thread: str) -> bool:
        """Whether the bot was asked something in this thread, answered or not, since it was last swept."""
        return bool(
            self._database.read(
                "select 1 from slack_jobs where team = ? and channel = ? and thread = ? limit 1",
                (team, channel, thread),
            )
        )

    def open_jobs(self) -> int:
        """How many questions, of all processes on this database, are not answered yet."""
        return int(self._database.read("select count(*) from slack_jobs where state = 'open'")[0][0])

    def sweep(self) -> None:
        """Delete deliveries and closed jobs that are older than ``KEEP_SECONDS``; open jobs stay."""
        before = self._clock() - KEEP_SECONDS
        with self._database.writing() as db:
            db.execute("delete from slack_deliveries where seen_at < ?", (before,))
            db.execute("delete from slack_jobs where created_at < ? and state <> 'open'", (before,))

    def _set(self, job_id: str, change: str) -> None:
        with self._database.writing() as db:
            db.execute(f"update slack_jobs set {change} where id = ?", (job_id,))

    def _job(self, job_id: str) -> Job:
        columns = "team, channel, thread, asked_at, person, question, attempts, post, answer_ts"
        (row,) = self._database.read(f"select {columns} from slack_jobs where id = ?", (job_id,))
        team, channel, thread, ts, person, text, attempts, post, answer_ts = row
        return Job(job_id, Question(team, channel, thread, ts, person, text), attempts, post, answer_ts)
