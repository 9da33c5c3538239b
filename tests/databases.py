"""Databases for tests: a file, and a schema of its own on a PostgreSQL server where there is one.

The server is taken from ADVISOR_TEST_POSTGRES, else tried at 127.0.0.1:5432, database ``test``.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import pytest

PLACES = ["sqlite", "postgresql"]
URL = os.environ.get("ADVISOR_TEST_POSTGRES", "postgresql://127.0.0.1:5432/test")


@contextmanager
def fresh(kind: str, folder: Path) -> Iterator[str]:
    """The place of an empty database, gone afterwards; skips the test where there is none of that kind."""
    if kind == "sqlite":
        yield str(folder / f"{secrets.token_hex(4)}.db")
        return
    reason = no_postgres()
    if reason:
        pytest.skip(reason)
    import psycopg

    name = f"t_{secrets.token_hex(6)}"
    with psycopg.connect(URL, autocommit=True) as connection:
        connection.execute(f"create schema {name}")  # type: ignore[arg-type]
        try:
            yield f"{URL}?options=-csearch_path%3D{name}"
        finally:
            connection.execute(f"drop schema {name} cascade")  # type: ignore[arg-type]


@lru_cache(maxsize=1)
def no_postgres() -> str | None:
    """Why there is no PostgreSQL to test on; None when there is."""
    if reason := no_driver():
        return reason
    import psycopg

    try:
        psycopg.connect(URL, connect_timeout=2).close()
    except psycopg.OperationalError:
        return f"no PostgreSQL server at {URL.rpartition('@')[2]}"
    return None


def no_driver() -> str | None:
    """Why PostgreSQL cannot be spoken to at all; None when it can."""
    if find_spec("psycopg") is None or find_spec("psycopg_pool") is None:
        return "the postgres extra is not installed"
    return None
