"""A turn through litellm against a provider that misbehaves, paid for as on the server, and what is left behind."""

from __future__ import annotations

import inspect
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from advisor.accounts import Accounts, Budget
from advisor.answer import Answer
from advisor.events import Done, Event
from advisor.llm import breaker, client
from advisor.llm.door import open_model
from advisor.llm.protocol import Model
from advisor.settings import Settings
from advisor.store import SqliteConversations
from advisor.turn import Desk, run
from integrations.http.metering import Meter, Watched
from integrations.http.metrics import Metrics
from integrations.http.tracing import TurnTrace
from tests.advisor import toys
from tests.advisor.conftest import Scripted, calls, says
from tests.advisor.fake_provider import Move, Provider, text
from tools import registry

NAME = "openai/scripted"
USD_PER_INPUT, USD_PER_OUTPUT = 1e-6, 4e-6
if os.environ.get("FAULTS_SEED"):
    from tests.faults.mutations import plant  # with all that faults may be planted in

    plant(os.environ["FAULTS_SEED"])
DEADLINES = {"first_token_seconds": 10.0, "idle_seconds": 10.0, "turn_seconds": 20.0}


@dataclass(frozen=True)
class Played:
    """What became of a turn."""

    answer: Answer
    events: list[Event]
    provider: Provider
    seconds: float
    waits: list[float]  # the pauses that were made between attempts, not really waited for
    tokens: int  # charged to the caller
    usd: float
    reserved: int  # tokens that calls in flight, or ones that never reported, hold
    failures: int  # that the model's breaker counts

    @property
    def attempts(self) -> int:
        """Requests that the provider saw."""
        return len(self.provider.requests)


Play = Callable[..., Played]


@pytest.fixture
def _toy_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    for spec in toys.SPECS:
        monkeypatch.setitem(registry._REGISTRY, spec.name, spec)


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    """One address for all rows; litellm takes seconds to import and to call it first, which no row should pay for."""
    registry.all_tools()
    provider = Provider(text("x"))
    said = [{"role": "user", "content": "x"}]
    client.load_litellm().completion(model=NAME, api_key="none", api_base=provider.url, messages=said)
    close_clients()
    yield provider
    provider.close()


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, provider: Provider, _toy_tools: None) -> Iterator[Play]:
    """Ask one question of a provider that plays these moves; the planner is scripted too, and stands by."""
    waits: list[float] = []
    monkeypatch.setattr(client, "CONNECT_SECONDS", 0.1)
    monkeypatch.setattr(client, "_sleep", lambda seconds, _stopped: waits.append(seconds))
    monkeypatch.setattr(breaker, "BREAKERS", {})
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-123")
    before = set(threading.enumerate())

    def go(*moves: Move, stop: threading.Event | None = None, address: str = "", **settings: object) -> Played:
        provider.play(*moves)
        waits.clear()
        for variable in ("OPENAI_API_BASE", "OPENAI_BASE_URL"):
            monkeypatch.setenv(variable, address or provider.url)
        chosen = Settings.model_validate({"model": NAME, **DEADLINES, **settings})
        planner = Scripted(calls(("toy_memory", {"model": "7B"})), says("It needs [[peak_per_gpu]]."), name="planner")
        store = SqliteConversations(tmp_path / "advisor.db")
        accounts = Accounts(store.database)
        meter = Meter(accounts, [Budget("ann", 10**9, 1e6)], lambda _name: (USD_PER_INPUT, USD_PER_OUTPUT), Metrics())

        def model(name: str) -> Model:
            found = planner if name == "planner" else open_model(name, chosen)
            return Watched(found, stop or threading.Event(), meter, TurnTrace("test", name))

        begun = time.monotonic()
        events = list(run("does it fit?", desk=Desk(chosen, store, model), principal="ann"))
        seconds = time.monotonic() - begun
        last = events[-1]
        assert isinstance(last, Done)
        kept = store.turns("ann", last.answer.conversation_id)
        assert kept is not None
        assert kept[-1].answer == last.answer.as_json()  # what is shown is what is stored
        tokens, usd = accounts.spent("ann")
        reserved = store.database.read("select coalesce(sum(tokens), 0) from reservations")[0][0]
        failures = len(breaker.breaker_of(NAME)._failures)
        store.database.close()
        return Played(last.answer, events, provider, seconds, list(waits), tokens, usd, reserved, failures)

    yield go
    close_clients()
    assert settles(lambda: provider.open == 0), f"{provider.open} connections left open"
    assert settles(lambda: not _leaked(before)), _leaked(before)
    written = "".join(file.read_bytes().decode("utf-8", "replace") for file in tmp_path.iterdir())
    assert "canary" not in written


def close_clients() -> None:
    """Let go of the connections that litellm keeps."""
    cache = client.load_litellm().in_memory_llm_clients_cache
    for kept in list(cache.cache_dict.values()):
        if not inspect.iscoroutinefunction(getattr(kept, "close", None)):
            kept.close()
    cache.flush_cache()


def _leaked(before: set[threading.Thread]) -> list[str]:
    """Threads that came and stayed, e.g. one that still listens to a provider; tools and litellm's logs keep some."""
    kept = ("litellm-logging", "tool")
    return [one.name for one in set(threading.enumerate()) - before if not one.name.startswith(kept)]


def settles(condition: Callable[[], bool], seconds: float = 6.0) -> bool:
    """Whether the condition comes true in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


def shown(played: Played) -> str:
    """Everything that a surface was told, as text."""
    return json.dumps([event.model_dump(mode="json") for event in played.events], ensure_ascii=False)
