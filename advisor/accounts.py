"""Who may ask and how much: API keys, request rates, and budgets of what language models cost.

A key is ``adv_<id>_<secret>``; only the SHA-256 of the secret is kept (it is random, so a slow hash adds nothing).
A request rate is one number a subject: when its next request is due (the generic cell rate algorithm), which lets a
minute's worth through at once and then one at a time. A budget is reserved before a call at the most it can cost, in
one transaction that fails when any limit would be passed, and settled afterwards; a reservation that is never settled
(the process died) stays charged in full.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from advisor.database import Database, Session
from tools.errors import BadValue

SCOPES = ("ask", "tools", "conversations", "feedback")
EVERYBODY = "*"  # the subject whose budget is that of all together
RESERVED_SECONDS = 600.0
LONGEST_SECONDS = 61.0  # how far ahead of now the next request may at most be due


@dataclass(frozen=True, slots=True)
class Limits:
    """What a subject may use; None: no limit."""

    requests_per_minute: int | None = None
    tokens_per_day: int | None = None
    usd_per_day: float | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """An API key as kept. ``owner`` is the principal, whose conversations outlive a changed key."""

    id: str
    owner: str
    name: str
    scopes: tuple[str, ...]
    limits: Limits
    created_at: str
    last_used_at: str | None = None
    revoked_at: str | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """A subject's limits of a day."""

    subject: str
    tokens: int | None = None
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class Reservation:
    """What is set aside for one call."""

    id: str
    subjects: tuple[str, ...]
    day: str
    tokens: int
    usd: float


class OverBudget(Exception):
    """A limit of the day would be passed; ``seconds`` until the next day (UTC) begins."""

    def __init__(self, subject: str, seconds: float) -> None:
        super().__init__(subject)
        self.subject = subject
        self.seconds = seconds


class Accounts:
    """Keys, rates and budgets in a database."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    # Keys ---------------------------------------------------------------------------------------------------------

    def create_key(self, owner: str, name: str = "", scopes: Sequence[str] = SCOPES, limits: Limits = Limits()) -> str:
        """Make a key of these scopes and limits and return its text: the only time that it is seen. Raises BadValue for
        an unknown scope, and for an owner that is empty, longer than 128 characters or not printable.
        """
        unknown = [scope for scope in scopes if scope not in SCOPES]
        if unknown:
            raise BadValue("unknown_scope", f"{unknown[0]!r} is not a scope.", field="scopes", candidates=list(SCOPES))
        if not owner.strip() or len(owner) > 128 or not owner.isprintable():
            raise BadValue("bad_owner", "The owner must be a short name.", field="owner")
        key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        with self._database.writing() as db:
            db.execute(
                "insert into api_keys (id, digest, owner, name, scopes, requests_per_minute, tokens_per_day,"
                " usd_per_day, created_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    key_id, _digest(secret), owner, name, " ".join(scopes), limits.requests_per_minute,
                    limits.tokens_per_day, limits.usd_per_day, self._stamp(),
                ),
            )  # fmt: skip
        return f"adv_{key_id}_{secret}"

    def find_key(self, text: str) -> Key | None:
        """The key of this text; None where it is malformed, unknown, wrong or revoked. Compared in constant time."""
        prefix, _, rest = text.partition("_")
        key_id, _, secret = rest.partition("_")
        if prefix != "adv" or not secret:
            return None
        rows = self._database.read(f"select {_KEY}, digest from api_keys where id = ?", (key_id,))
        digest = rows[0][-1] if rows else ""
        if not hmac.compare_digest(_digest(secret), digest) or rows[0][9] is not None:
            return None
        return _key(rows[0])

    def all_keys(self) -> list[Key]:
        """All keys, revoked ones too, newest first; without their secrets, which are not kept."""
        return [_key(row) for row in self._database.read(f"select {_KEY} from api_keys order by created_at desc, id")]

    def any_keys(self) -> bool:
        """Whether there is a key that works, that is, one not revoked."""
        return bool(self._database.read("select 1 from api_keys where revoked_at is null limit 1"))

    def revoke_key(self, key_id: str) -> bool:
        """End a key at once for this database's readers; False where there is none of this id or it was
        revoked before.
        """
        with self._database.writing() as db:
            done = db.execute(
                "update api_keys set revoked_at = ? where id = ? and revoked_at is null", (self._stamp(), key_id)
            )
            return done.rowcount > 0

    def used(self, key_id: str) -> None:
        """Note that the key was used now; nothing where there is none of this id."""
        with self._database.writing() as db:
            db.execute("update api_keys set last_used_at = ? where id = ?", (self._stamp(), key_id))

    # Rates --------------------------------------------------------------------------------------------------------

    def take(self, subject: str, per_minute: int) -> float:
        """Count one request. 0 when it may go ahead, else the seconds after which one may."""
        now, spacing = self._clock(), 60.0 / per_minute
        latest = now + 60.0 - spacing  # a minute's worth may be spent ahead
        never = now + LONGEST_SECONDS  # later than any request can make it: the clock was set back since
        with self._database.writing() as db:
            done = db.execute(
                "insert into rates (subject, free_at) values (?, ?) on conflict (subject) do update set free_at ="
                " case when rates.free_at > ? and rates.free_at <= ? then rates.free_at else ? end + ?"
                " where rates.free_at <= ? or rates.free_at > ?",
                (subject, now + spacing, now, never, now, spacing, latest, never),
            )
            if done.rowcount:
                return 0.0
            row = db.execute("select free_at from rates where subject = ?", (subject,)).fetchone()
        return max(0.0, row[0] - latest) if row else 0.0

    # Budgets ------------------------------------------------------------------------------------------------------

    def reserve(self, budgets: Sequence[Budget], tokens: int, usd: float) -> Reservation:
        """Set aside ``tokens`` and ``usd``, the most that a call can cost, from every budget of today (UTC) or from
        none, in one transaction. Raises OverBudget for the first limit that would be passed.
        """
        now = datetime.fromtimestamp(self._clock(), UTC)
        day = now.date().isoformat()
        subjects = tuple(sorted(budget.subject for budget in budgets))  # one order, so that no two wait for each other
        reservation = Reservation(secrets.token_hex(10), subjects, day, tokens, usd)
        limits = {budget.subject: budget for budget in budgets}
        with self._database.writing() as db:
            for subject in subjects:
                limit = limits[subject]
                db.execute(
                    "insert into spending (subject, day) values (?, ?) on conflict (subject, day) do nothing",
                    (subject, day),
                )
                # Ten-thousandths of a cent are forgiven: sums of binary fractions are not exact.
                done = db.execute(
                    "update spending set tokens = tokens + ?, usd = usd + ? where subject = ? and day = ?"
                    " and tokens + ? <= ? and usd + ? <= ?",
                    (tokens, usd, subject, day, tokens, limit.tokens if limit.tokens is not None else 2**62, usd,
                     (limit.usd if limit.usd is not None else 1e300) + 1e-6),
                )  # fmt: skip
                if not done.rowcount:
                    raise OverBudget(subject, _until_tomorrow(now))
            db.execute(
                "insert into reservations (id, subjects, day, tokens, usd, expires_at) values (?, ?, ?, ?, ?, ?)",
                (reservation.id, json.dumps(subjects), day, tokens, usd, self._clock() + RESERVED_SECONDS),
            )
        return reservation

    def settle(self, reservation: Reservation, tokens: int, usd: float) -> None:
        """Charge what the call did cost in place of what was set aside; a second time changes nothing."""
        with self._database.writing() as db:
            if not db.execute("delete from reservations where id = ?", (reservation.id,)).rowcount:
                return
            for subject in reservation.subjects:
                self._charge(db, subject, reservation.day, tokens - reservation.tokens, usd - reservation.usd)

    def sweep(self) -> int:
        """Forget reservations that nobody will settle any more, which leaves them charged in full; how many."""
        with self._database.writing() as db:
            return db.execute("delete from reservations where expires_at < ?", (self._clock(),)).rowcount

    def spent(self, subject: str) -> tuple[int, float]:
        """(tokens, USD) of today by UTC, what is set aside for running calls included; (0, 0.0) for an
        unknown subject.
        """
        day = datetime.fromtimestamp(self._clock(), UTC).date().isoformat()
        rows = self._database.read("select tokens, usd from spending where subject = ? and day = ?", (subject, day))
        return (rows[0][0], rows[0][1]) if rows else (0, 0.0)

    @staticmethod
    def _charge(db: Session, subject: str, day: str, tokens: int, usd: float) -> None:
        db.execute(
            "update spending set tokens = tokens + ?, usd = usd + ? where subject = ? and day = ?",
            (tokens, usd, subject, day),
        )

    def _stamp(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="seconds")


_KEY = "id, owner, name, scopes, requests_per_minute, tokens_per_day, usd_per_day, created_at, last_used_at, revoked_at"


def _key(row: Sequence[object]) -> Key:
    key_id, owner, name, scopes, requests, tokens, usd, created, used, revoked = row[:10]
    limits = Limits(requests, tokens, usd)  # type: ignore[arg-type]
    return Key(str(key_id), str(owner), str(name), tuple(str(scopes).split()), limits, str(created), used, revoked)  # type: ignore[arg-type]


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _until_tomorrow(now: datetime) -> float:
    tomorrow = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return (tomorrow - now).total_seconds()
