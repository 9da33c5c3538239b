"""The read-only connection to the knowledge base; builds the file once where it is missing or out of date."""

from __future__ import annotations

import os
import sqlite3
import threading
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from knowledge.errors import BadValue

_BUILT = Path(__file__).parent / "knowledge.db"
_LOCAL = threading.local()


def connection() -> sqlite3.Connection:
    """This thread's read-only connection; rows behave as mappings. Raises BadValue where the file is absent or damaged;
    one that is missing beside the package is built first.
    """
    found: sqlite3.Connection | None = getattr(_LOCAL, "connection", None)
    if found is None:
        found = _LOCAL.connection = _opened(database_path())
    return found


def _opened(path: Path) -> sqlite3.Connection:
    """A connection that reads; one to a file that is absent or damaged is said now, with the way out."""
    found = None
    try:
        found = sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)
        found.row_factory = sqlite3.Row
        pages, size = (found.execute(f"pragma {name}").fetchone()[0] for name in ("page_count", "page_size"))
        if pages * size > path.stat().st_size or not found.execute("select value from meta").fetchone():
            raise sqlite3.DatabaseError("cut short")
    except (sqlite3.DatabaseError, OSError):
        if found is not None:
            found.close()
        raise BadValue(
            "knowledge_damaged",
            f"The knowledge base {path} is {_state(path)}.",
            field="ADVISOR_KNOWLEDGE_DB",
            hint=f"Build it again: python -m knowledge.build {path}",
        ) from None
    return found


def _state(path: Path) -> str:
    return "not readable by this user" if path.exists() and not os.access(path, os.R_OK) else "absent or damaged"


@lru_cache(maxsize=1)
def database_path() -> Path:
    """Where the built file lies: beside the package, or in the user's cache when that is not writable."""
    override = os.environ.get("ADVISOR_KNOWLEDGE_DB")
    if override:
        return Path(override)
    if _BUILT.exists() and not _stale(_BUILT):
        return _BUILT
    from knowledge.build import build, data_version  # the builder's imports are paid only when something is to build

    if os.access(_BUILT.parent, os.W_OK):
        build(_BUILT)
        return _BUILT
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "training-infrastructure-advisor"
    target = cache / f"knowledge-{data_version()}.db"
    if not target.exists():
        build(target)
    return target


@lru_cache(maxsize=1)
def kb_version() -> str:
    """The hash of data files and builder (16 hex digits) that results carry; it is read from the built file. Raises
    BadValue where that file is absent or damaged.
    """
    row = connection().execute("select value from meta where key = 'version'").fetchone()
    return str(row["value"])


def _stale(built: Path) -> bool:
    """Whether a data file or the builder changed after ``built`` was written (a pull, an edit)."""
    written = built.stat().st_mtime
    data = Path(__file__).parent / "data"
    files = [built.parent / "build.py", *data.rglob("*")]
    return any(file.stat().st_mtime > written for file in files)
