"""What is stored, on SQLite and on PostgreSQL alike: one suite, run on both."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from advisor import database as module
from advisor import schema
from advisor.answer import Answer
from advisor.database import Database, SqliteDatabase, StoreUnavailable, open_database
from advisor.llm.protocol import Message, ToolCall
from advisor.store import Opened, SqlConversations, open_store
from tests.databases import PLACES, fresh
from tools.errors import BadValue

DONE = Answer(conversation_id="c", turn_id="t", status="answered", model="planner", answer="45 GB")
ANSWER = DONE.as_json()
MESSAGES = [
    Message("assistant", tool_calls=(ToolCall("x1", "toy_memory", {"model": "7B"}),)),
    Message("tool", '{"tool_call":"t1"}', tool_call_id="x1", name="toy_memory"),
    Message("assistant", "45 GB"),
]


@pytest.fixture(params=PLACES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    with fresh(request.param, tmp_path) as place:
        found = open_database(place)
        yield found
        found.close()


@pytest.fixture
def store(database: Database) -> SqlConversations:
    return SqlConversations(database)


def ask(
    store: SqlConversations, principal: str = "ann", conversation: str | None = None, question: str = "q?"
) -> Opened:
    opened = store.begin(principal, conversation, question)
    store.finish(principal, opened, DONE, MESSAGES)
    return opened


def test_a_turn_is_kept_whole_and_shown_to_the_next(store: SqlConversations) -> None:
    first = ask(store, question="how much for 7B?\x7f ü 漢")
    second = store.begin("ann", first.conversation_id, "and 13B?")
    assert second.conversation_id == first.conversation_id
    assert second.history == (Message("user", "how much for 7B?\x7f ü 漢"), *MESSAGES)
    assert second.tool_calls_before == 1
    turns = store.turns("ann", first.conversation_id)
    assert turns is not None
    assert [(turn.status, turn.answer) for turn in turns] == [("answered", ANSWER), ("running", None)]


def test_a_conversation_may_be_named_by_the_caller_and_belongs_to_one_principal(store: SqlConversations) -> None:
    ask(store, "ann", "mine", "ann's question")
    bobs = store.begin("bob", "mine", "bob's question")
    assert bobs.history == ()
    assert [turn.question for turn in store.turns("ann", "mine") or []] == ["ann's question"]


def test_nobody_reaches_what_is_anothers(store: SqlConversations) -> None:
    opened = ask(store, "ann")
    store.remember("ann", "digest", opened.conversation_id, opened.turn_id)
    assert store.turns("bob", opened.conversation_id) is None
    assert store.recent("bob") == []
    assert store.recall("bob", "digest") is None
    assert not store.add_feedback("bob", opened.turn_id, -1, "not mine")
    assert not store.delete("bob", opened.conversation_id)
    store.finish("bob", opened, DONE.model_copy(update={"answer": "forged"}), [])
    assert [turn.answer for turn in store.turns("ann", opened.conversation_id) or []] == [ANSWER]
    assert store.rated("bob") == []


def test_the_list_is_newest_first_and_goes_on_page_by_page(database: Database) -> None:
    clock = [datetime(2026, 11, 30, 12, tzinfo=UTC)]
    store = SqlConversations(database, lambda: clock[0])
    for number in range(5):
        clock[0] += timedelta(seconds=1)
        ask(store, conversation=f"c{number}", question=f"question {number}")
    clock[0] += timedelta(seconds=1)
    ask(store, conversation="c1")
    newest = store.recent("ann", limit=2)
    assert [(item.id, item.turns) for item in newest] == [("c1", 2), ("c4", 1)]
    rest = store.recent("ann", limit=9, before=newest[-1].updated_at)
    assert [item.id for item in rest] == ["c3", "c2", "c0"]


def test_a_deleted_conversation_leaves_nothing_behind(store: SqlConversations, database: Database) -> None:
    opened = ask(store)
    store.add_feedback("ann", opened.turn_id, 1)
    store.remember("ann", "digest", opened.conversation_id, opened.turn_id)
    late = store.begin("ann", opened.conversation_id, "still running")
    assert store.delete("ann", opened.conversation_id)
    store.finish("ann", late, DONE, MESSAGES)  # ends after the deletion
    store.remember("ann", "digest 2", late.conversation_id, late.turn_id)
    for table in ("conversations", "turns", "messages", "feedback", "transcripts"):
        assert database.read(f"select count(*) from {table}") == [(0,)], table


def test_the_last_word_of_feedback_counts_and_comes_with_its_questions(store: SqlConversations) -> None:
    first = ask(store, question="first?")
    second = ask(store, conversation=first.conversation_id, question="second?")
    assert store.add_feedback("ann", second.turn_id, 1)
    assert store.add_feedback("ann", second.turn_id, -1, "wrong GPU")
    (rated,) = store.rated("ann", rating=-1)
    assert (rated.questions, rated.comment, rated.answer) == (("first?", "second?"), "wrong GPU", ANSWER)
    assert store.rated("ann", rating=1) == []
    assert len(store.rated(None)) == 1


def test_a_transcript_is_recalled_up_to_its_turn(store: SqlConversations) -> None:
    first = ask(store, question="first?")
    store.remember("ann", "after first", first.conversation_id, first.turn_id)
    recalled = store.recall("ann", "after first")
    assert recalled is not None
    assert recalled.latest
    ask(store, conversation=first.conversation_id, question="second?")
    recalled = store.recall("ann", "after first")
    assert recalled is not None
    assert not recalled.latest
    assert [message.content for message in recalled.history if message.role == "user"] == ["first?"]


def test_turns_begun_at_once_get_numbers_of_their_own(store: SqlConversations) -> None:
    at_once(8, lambda number: ask(store, conversation="shared", question=f"q{number}"))
    turns = store.turns("ann", "shared") or []
    assert sorted(turn.question for turn in turns) == [f"q{number}" for number in range(8)]


def test_connections_that_broke_are_replaced(tmp_path: Path) -> None:
    with fresh("postgresql", tmp_path) as place:
        store = open_store(place)
        (pid,) = store.database.read("select pg_backend_pid()")[0]
        import psycopg

        with psycopg.connect(place, autocommit=True) as other:
            other.execute("select pg_terminate_backend(%s)", (pid,))
        store.ping()
        store.database.close()


def test_a_database_that_does_not_answer_is_said_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg_pool")
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.2)
    with pytest.raises(BadValue, match="does not answer") as caught:
        open_database("postgresql://me:canary-password@127.0.0.1:1/none")
    assert "canary" not in str(caught.value.as_dict())


def test_a_place_where_nobody_listens_is_told_apart_from_a_fault(tmp_path: Path) -> None:
    with fresh("postgresql", tmp_path) as place:
        found = open_database(place)
        found.close()
        with pytest.raises(StoreUnavailable):
            found.read("select 1")


def test_a_failed_transaction_leaves_nothing(database: Database) -> None:
    def fail() -> None:
        with database.writing() as db:
            db.execute("insert into rates (subject, free_at) values ('a', 1.5)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert database.read("select * from rates") == []


@pytest.mark.parametrize("kind", PLACES)
def test_two_processes_may_start_at_once_on_an_empty_database(kind: str, tmp_path: Path) -> None:
    code = "import sys; from advisor.store import open_store; s = open_store(sys.argv[1]); s.ping(); s.database.close()"
    with fresh(kind, tmp_path) as place:
        started = [subprocess.Popen([sys.executable, "-c", code, place], cwd=Path.cwd()) for _ in range(3)]
        assert [process.wait(30) for process in started] == [0, 0, 0]


@pytest.mark.parametrize("kind", PLACES)
def test_an_older_database_is_brought_forward_with_what_it_holds(kind: str, tmp_path: Path) -> None:
    with fresh(kind, tmp_path) as place:
        old = open_database(place, schema.MIGRATIONS[:1])
        with old.writing() as db:
            db.execute("insert into conversations values ('ann', 'c', 'title', '2026', '2026', 3)")
        old.close()
        new = open_database(place)
        assert new.read("select tool_calls from conversations") == [(3,)]
        assert new.read("select count(*) from api_keys") == [(0,)]
        new.close()


@pytest.mark.parametrize("kind", PLACES)
def test_a_database_of_a_newer_release_is_refused(kind: str, tmp_path: Path) -> None:
    with fresh(kind, tmp_path) as place:
        open_database(place, (*schema.MIGRATIONS, "create table later (id text)")).close()
        with pytest.raises(schema.StoreTooNew):
            open_database(place)


def test_a_broken_migration_leaves_the_schema_as_it_was(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    with pytest.raises(sqlite3.OperationalError):
        SqliteDatabase(path, (schema.MIGRATIONS[0], "create table fine (id text); create nonsense"))
    db = sqlite3.connect(path)
    assert db.execute("pragma user_version").fetchone() == (1,)
    assert db.execute("select name from sqlite_master where name = 'fine'").fetchall() == []
    db.close()


def test_no_finished_turn_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    """The child says each turn once it is kept; whatever it said before SIGKILL must be there."""
    code = (
        "import sys\n"
        "from advisor.answer import Answer\n"
        "from advisor.store import open_store\n"
        "done = Answer(conversation_id='c', turn_id='t', status='answered', model='m', answer='a')\n"
        "store = open_store(sys.argv[1])\n"
        "while True:\n"
        "    opened = store.begin('ann', None, 'q?')\n"
        "    store.finish('ann', opened, done, [])\n"
        "    print(opened.turn_id, flush=True)\n"
    )
    path = str(tmp_path / "killed.db")
    said: list[str] = []
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True, cwd=Path.cwd())
        assert child.stdout is not None
        said += [child.stdout.readline().strip() for _ in range(20)]  # it is certainly at work
        child.kill()
        said += [line.strip() for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        child.wait()
        child.stdout.close()
    db = SqliteDatabase(path)
    kept = {turn for (turn,) in db.read("select id from turns where status = 'answered'")}
    assert set(said) <= kept
    assert db.read("pragma integrity_check") == [("ok",)]
    db.close()


def at_once(count: int, work: Callable[[int], object]) -> None:
    """Run ``work`` in so many threads, all let go together."""
    gate = threading.Barrier(count)
    faults: list[BaseException] = []

    def one(number: int) -> None:
        gate.wait()
        try:
            work(number)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
