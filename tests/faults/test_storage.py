"""A disk that is full or read-only, a database that is locked, damaged or newer: said in words, and nothing breaks.

The disk's faults are real ones: a limit on the size of files (RLIMIT_FSIZE), a folder of another user, SQLite's own
limit on pages.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from advisor import cli, database, schema
from advisor.database import SqliteDatabase, StoreUnavailable
from advisor.store import SqliteConversations
from advisor.turn import default_desk
from knowledge import store as knowledge
from knowledge.errors import BadValue
from tests.advisor.conftest import Scripted, says
from tests.integrations.http.conftest import Serve, _toy_tools, serve  # noqa: F401  fixtures
from tests.integrations.http.test_ask import ASK

QUESTION = "how much memory does a 7B need for QLoRA?"
ROOT = Path(__file__).parents[2]
Ask = Callable[..., tuple[int, str]]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Ask]:
    """`advisor ask`: its exit code and what it wrote."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)

    def go(place: Path, *options: str) -> tuple[int, str]:
        monkeypatch.setenv("ADVISOR_DATABASE_URL", str(place))
        default_desk.cache_clear()
        with pytest.raises(SystemExit) as ended:
            cli.main(["ask", *options, QUESTION])
        written = "".join(capsys.readouterr())
        assert "Traceback" not in written
        assert "on our side" not in written
        return int(ended.value.code or 0), written

    yield go
    default_desk.cache_clear()


# Damaged, locked, newer -----------------------------------------------------------------------------------------------


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no database at all, " * 200)


def _torn(path: Path) -> None:
    """A database with a page in its middle overwritten."""
    with closing(SqliteDatabase(str(path))) as made, made.writing() as db:
        for number in range(400):
            db.execute("insert into rates (subject, free_at) values (?, 1)", (f"{number} " + "x" * 100,))
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xa5" * (len(data) - 4096))


def _newer(path: Path) -> None:
    SqliteDatabase(str(path), (*schema.MIGRATIONS, "create table later (id text)")).close()


def _folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "words"),
    [(_garbage, "damaged"), (_torn, "damaged"), (_newer, "newer release"), (_folder, "cannot be opened")],
)
def test_a_database_that_cannot_be_used_is_named_with_the_way_out(
    ask: Ask, tmp_path: Path, damage: Callable[[Path], None], words: str
) -> None:
    path = tmp_path / "a.db"
    damage(path)
    before = path.read_bytes() if path.is_file() else b""
    code, written = ask(path)
    assert code == 2
    assert words in written
    assert damage is _newer or str(path) in written
    assert "ADVISOR_DATABASE_URL" in written
    assert not before or path.read_bytes() == before  # left as it was, for whoever can mend it


def test_under_json_the_error_has_the_one_shape(ask: Ask, tmp_path: Path) -> None:
    _garbage(tmp_path / "a.db")
    code, written = ask(tmp_path / "a.db", "--json")
    error = json.loads(written)["error"]
    assert (code, error["field"]) == (2, "ADVISOR_DATABASE_URL")
    assert set(error) == {"code", "message", "field", "hint", "candidates"}


def test_a_locked_database_is_said_and_works_again_once_it_is_free(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    SqliteDatabase(str(path)).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin exclusive")
        code, written = ask(path)
        assert code == 1
        assert "busy" in written
        other.execute("rollback")
    assert ask(path)[0] == 0


def test_damage_met_while_serving_is_503_and_the_process_lives(
    serve: Serve,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    live = serve(Scripted(says("Fine.")))

    def broken(*_: object) -> None:
        raise sqlite3.DatabaseError("database disk image is malformed")

    monkeypatch.setattr(SqliteDatabase, "_connection", broken)
    got = live.client.post("/v1/ask", json=ASK)
    assert (got.status_code, got.json()["error"]["code"]) == (503, "store_unavailable")
    assert live.client.get("/readyz").status_code == 503
    assert live.client.get("/livez").status_code == 200
    monkeypatch.undo()


# A full disk ----------------------------------------------------------------------------------------------------------


@contextmanager
def full(db: sqlite3.Connection) -> Iterator[None]:
    """No page more than there is."""
    (pages,) = db.execute("pragma page_count").fetchone()
    db.execute(f"pragma max_page_count = {pages}")
    try:
        yield
    finally:
        db.execute("pragma max_page_count = 1073741823")


def test_a_full_disk_refuses_new_questions_and_keeps_what_is_there(tmp_path: Path) -> None:
    store = SqliteConversations(tmp_path / "a.db")
    first = store.begin("ann", "c", "kept?")
    with full(store.database._connection()):  # type: ignore[attr-defined]
        with pytest.raises(StoreUnavailable, match="full"):
            store.begin("ann", "c", "x" * 100_000)
        assert [turn.id for turn in store.turns("ann", "c") or []] == [first.turn_id]
    assert store.begin("ann", "c", "x" * 100_000)
    store.database.close()


def test_a_transaction_that_cannot_be_kept_does_not_block_the_next(tmp_path: Path) -> None:
    """COMMIT itself may fail, and leaves its transaction open."""
    with closing(SqliteDatabase(str(tmp_path / "a.db"))) as found:
        with pytest.raises(sqlite3.IntegrityError):
            _break_a_rule(found)
        with found.writing() as db:
            db.execute("insert into rates (subject, free_at) values ('a', 1)")
        assert found.read("select subject from rates") == [("a",)]


def _break_a_rule(found: SqliteDatabase) -> None:
    with found.writing() as db:
        db.execute("pragma defer_foreign_keys = on")
        db.execute("insert into messages (turn_id, number, message) values ('of no turn', 1, '')")


def test_an_answer_is_given_also_when_the_disk_fills_up_meanwhile(tmp_path: Path) -> None:
    from advisor.settings import Settings
    from advisor.turn import Desk, answer

    store = SqliteConversations(tmp_path / "a.db")
    db = store.database._connection()  # type: ignore[attr-defined]

    def fills(_request: object) -> list[object]:
        (pages,) = db.execute("pragma page_count").fetchone()
        db.execute(f"pragma max_page_count = {pages}")
        return says("Plain words. " * 2000)

    desk = Desk(Settings(model="scripted"), store, lambda _name: Scripted(fills))  # type: ignore[arg-type]
    done = answer("does it fit?", desk=desk)
    assert done.status == "answered"
    assert "not_saved" in [warning.code for warning in done.warnings]
    store.database.close()


def test_files_that_may_not_grow_end_in_one_sentence(tmp_path: Path) -> None:
    """As when the disk is full at the very start: the schema itself cannot be written."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that a write fails, as on a full disk, and does not kill
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    done = run_advisor(tmp_path / "a.db", limit)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "disk" in done.stderr


# A read-only disk -----------------------------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_written_ends_in_one_sentence_with_the_way_out() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o555)
        done = run_as_nobody(Path(folder) / "a.db")
    assert "Traceback" not in done
    assert "cannot be opened" in done
    assert "ADVISOR_DATABASE_URL" in done


def test_a_file_that_turned_read_only_refuses_writes_and_still_reads(tmp_path: Path) -> None:
    store = SqliteConversations(tmp_path / "a.db")
    store.begin("ann", "c", "before?")
    store.database._connection().execute("pragma query_only = on")  # type: ignore[attr-defined]
    with pytest.raises(StoreUnavailable, match="written"):
        store.begin("ann", "c", "after?")
    with pytest.raises(StoreUnavailable):
        store.ping()  # so /readyz says it
    assert [turn.question for turn in store.turns("ann", "c") or []] == ["before?"]
    store.database.close()


# The knowledge file ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["absent", "empty", "garbage", "torn"])
def test_a_damaged_knowledge_file_is_named_with_the_way_out(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "knowledge.db"
    _damage(path, damage)
    with pytest.raises(BadValue) as found:
        knowledge._opened(path)
    assert str(path) in found.value.message
    assert "knowledge.build" in (found.value.hint or "")


def test_a_question_to_a_damaged_knowledge_file_ends_in_that_sentence(tmp_path: Path) -> None:
    path = tmp_path / "knowledge.db"
    _damage(path, "torn")
    done = run_advisor(tmp_path / "a.db", ADVISOR_KNOWLEDGE_DB=str(path))
    assert done.returncode == 2, done.stdout
    assert "Traceback" not in done.stderr
    assert str(path) in done.stderr


def _damage(path: Path, how: str) -> None:
    whole = knowledge.database_path().read_bytes()
    if how != "absent":
        path.write_bytes({"empty": b"", "garbage": b"no " * 4096, "torn": whole[: len(whole) // 3]}[how])


def run_advisor(place: Path, limit: Callable[[], None] | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ADVISOR_DATABASE_URL": str(place), **more}
    return subprocess.run(
        [sys.executable, "-m", "advisor", "ask", QUESTION],
        cwd=ROOT, env=environment, capture_output=True, text=True, preexec_fn=limit,
    )  # fmt: skip


def run_as_nobody(place: Path) -> str:
    """What `advisor ask` writes when it runs as a user who owns nothing; imports come first, while all can be read."""
    code = (
        "import os, sys\n"
        "from advisor import cli, terminal, turn\n"
        "from tools.registry import all_tools\n"
        "all_tools()\n"
        "if os.geteuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        f"cli.main(['ask', {QUESTION!r}])\n"
    )
    environment = {**os.environ, "ADVISOR_DATABASE_URL": str(place)}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 2, done.stdout
    return done.stderr
