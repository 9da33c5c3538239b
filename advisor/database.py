"""SQLite or PostgreSQL behind one small interface, so that what is stored is written once, in SQL both understand.

Statements use ``?`` for values. A writing transaction is BEGIN IMMEDIATE on SQLite, since a deferred one that turns
into a write fails at once under contention, whatever the timeout; on PostgreSQL rows that are counted are locked by
an update first, so that two processes do not read the same count.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Protocol

from advisor.schema import MIGRATIONS, migrate_postgres, migrate_sqlite
from advisor.write_queue import WriteQueue
from tools.errors import BadValue

BUSY_SECONDS = 5.0
POOL_SIZE = 16
Row = tuple[Any, ...]


class StoreUnavailable(Exception):
    """The database cannot be reached, read or written just now; its text says why, e.g. "the disk is full"."""


class Rows(Protocol):
    """What a statement gave."""

    @property
    def rowcount(self) -> int:
        """Rows changed."""
        ...

    def fetchone(self) -> Row | None:
        """The next row."""
        ...

    def fetchall(self) -> list[Row]:
        """All rows."""
        ...


class Session(Protocol):
    """An open transaction."""

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """Run one statement."""
        ...


class Database(Protocol):
    """Where rows are kept."""

    kind: Literal["sqlite", "postgresql"]

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows of one statement, all fetched; [] for none. Raises StoreUnavailable where the database cannot be
        reached.
        """
        ...

    def writing(self) -> AbstractContextManager[Session]:
        """A transaction: kept when the block ends, undone when it raises. Raises StoreUnavailable where the database
        cannot be reached or written.
        """
        ...

    def close(self) -> None:
        """Let connections go."""
        ...


def open_database(place: str | Path, steps: Sequence[str] = MIGRATIONS) -> Database:
    """The database at a file path, ``:memory:`` or ``postgresql://`` URL, brought to the newest schema. Raises BadValue
    where it cannot be used or reached, or PostgreSQL's driver is not installed; StoreTooNew for a newer release's;
    StoreUnavailable for a file that another process holds for longer than 5 s.
    """
    text = str(place)
    if text.startswith(("postgresql://", "postgres://")):
        if find_spec("psycopg_pool") is None:
            raise BadValue(
                "missing_extra",
                "PostgreSQL's driver is not installed.",
                field="ADVISOR_DATABASE_URL",
                hint="pip install 'training-infrastructure-advisor[postgres]'",
            )
        return PostgresDatabase(text, steps)
    return SqliteDatabase(text, steps)


class SqliteDatabase:
    """One file on local disk, or ``:memory:``; safe for several threads and processes."""

    kind: Literal["sqlite", "postgresql"] = "sqlite"

    def __init__(self, path: str, steps: Sequence[str] = MIGRATIONS) -> None:
        self._path = path
        self._local = threading.local()
        self._shared: sqlite3.Connection | None = None
        self._lock = threading.RLock()
        self._queue: WriteQueue | None = None
        try:
            if path == ":memory:":
                self._shared = self._connect()
            else:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                self._queue = WriteQueue(path)
            migrate_sqlite(self._connection(), steps)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError) or _is_away(error):
                raise self._unusable(error) from None
            raise

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """See ``Database.read``."""
        with _told_apart(*_SQLITE_LOST):
            return self._connection().execute(sql, values).fetchall()

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """See ``Database.writing``."""
        with _told_apart(*_SQLITE_LOST), self._queue.turn() if self._queue else self._lock:
            db = self._connection()
            db.execute("begin immediate")
            try:
                yield db
                db.execute("commit")  # which may fail too, and then leaves the transaction open
            except BaseException:
                if db.in_transaction:  # a full disk has ended it already
                    db.execute("rollback")
                raise

    def close(self) -> None:
        """Let this thread's connection go; those of other threads close with their threads."""
        connection = self._shared or getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
        if self._queue is not None:
            self._queue.close()
        self._shared, self._local = None, threading.local()

    def _unusable(self, error: BaseException) -> Exception:
        """Why the file cannot be used at all, for whoever set it up."""
        why = _reason(error)
        if why == _BUSY:
            return StoreUnavailable(why)
        return BadValue(
            "database_unusable",
            f"The database {self._path} {why}.",
            field="ADVISOR_DATABASE_URL",
            hint="Move the file away (a new one is made), free space, or set ADVISOR_DATABASE_URL to another file.",
        )

    def _connection(self) -> sqlite3.Connection:
        if self._shared:
            return self._shared
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = self._local.connection = self._connect()
        return found

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            # WAL lets readers pass a writer; NORMAL may lose the last turns when power fails, never when a process
            # dies.
            db.execute("pragma journal_mode = wal")
            db.execute("pragma synchronous = normal")
            db.execute("pragma foreign_keys = on")
        except BaseException:
            db.close()
            raise
        return db


class PostgresDatabase:
    """A PostgreSQL database that several server processes share."""

    kind: Literal["sqlite", "postgresql"] = "postgresql"

    def __init__(self, url: str, steps: Sequence[str] = MIGRATIONS, size: int = POOL_SIZE) -> None:
        # Only who keeps conversations there needs the driver: it is an extra.
        from psycopg import OperationalError
        from psycopg_pool import ConnectionPool, PoolTimeout

        self._lost = (OperationalError, PoolTimeout)

        self._pool = ConnectionPool(
            url,
            min_size=1,
            max_size=size,
            timeout=BUSY_SECONDS,
            open=True,
            configure=_with_limits,
            check=ConnectionPool.check_connection,  # one that broke while idle is replaced, not handed out
            kwargs={"autocommit": True},
        )
        try:
            with self._pool.connection() as connection:
                migrate_postgres(connection, steps)
        except BaseException as error:
            self._pool.close()
            if isinstance(error, self._lost):
                raise BadValue(
                    "database_unreachable",
                    "PostgreSQL does not answer, or not to this user.",
                    field="ADVISOR_DATABASE_URL",
                    hint="Check host, port, user, password and database name.",
                ) from None
            raise

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """See ``Database.read``."""
        with _told_apart(*self._lost), self._pool.connection() as connection:
            rows: list[Row] = connection.execute(_dialect(sql), values).fetchall()
            return rows

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """See ``Database.writing``."""
        with _told_apart(*self._lost), self._pool.connection() as connection, connection.transaction():
            yield _PostgresSession(connection)

    def close(self) -> None:
        """See ``Database.close``."""
        self._pool.close()


@contextmanager
def _told_apart(*lost: type[Exception]) -> Iterator[None]:
    """A database that is away is not a fault of the program."""
    try:
        yield
    except lost as error:
        if isinstance(error, sqlite3.DatabaseError) and not _is_away(error):
            raise
        raise StoreUnavailable(_reason(error)) from error


_SQLITE_LOST = (sqlite3.OperationalError, sqlite3.DatabaseError)  # exactly these: subclasses are other faults
_BUSY = "is busy: another process holds it"
_REASONS = {
    "SQLITE_BUSY": _BUSY,
    "SQLITE_LOCKED": _BUSY,
    "SQLITE_FULL": "cannot grow: the disk is full",
    "SQLITE_IOERR": "cannot be written or read: the disk fails or is full",
    "SQLITE_READONLY": "cannot be written: it is read-only",
    "SQLITE_CANTOPEN": "cannot be opened",
    "SQLITE_CORRUPT": "is damaged",
    "SQLITE_NOTADB": "is damaged, or no database at all",
}


def _is_away(error: BaseException) -> bool:
    """Whether it is the file, the disk or another process, rather than a broken rule or a wrong statement."""
    return type(error) in _SQLITE_LOST and getattr(error, "sqlite_errorname", "") != "SQLITE_ERROR"


def _reason(error: BaseException) -> str:
    """What is wrong, as the end of a sentence that begins with the database."""
    name = str(getattr(error, "sqlite_errorname", ""))
    for known, words in _REASONS.items():
        if name.startswith(known):
            return words
    if isinstance(error, OSError):
        return f"cannot be opened: {(error.strerror or type(error).__name__).lower()}"
    return "does not answer"


def _with_limits(connection: Any) -> None:
    """A statement that hangs must not hold a thread of the server for good."""
    connection.execute("set statement_timeout = '10s'")
    connection.execute("set lock_timeout = '5s'")
    connection.execute("set idle_in_transaction_session_timeout = '30s'")


class _PostgresSession:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        rows: Rows = self._connection.execute(_dialect(sql), values)
        return rows


@lru_cache(maxsize=256)
def _dialect(sql: str) -> str:
    return sql.replace("?", "%s")
