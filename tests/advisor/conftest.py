"""A scripted model, two small tools and a desk on a temporary store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from advisor.llm.planner import Planner
from advisor.llm.protocol import Finish, Model, ModelEvent, ModelFailed, ModelRequest, TextDelta, ToolCall
from advisor.settings import Settings
from advisor.store import SqliteConversations
from advisor.turn import Desk
from tests.advisor import toys
from tools import registry

Move = list[ModelEvent] | Exception | Callable[[ModelRequest], list[ModelEvent]]


class Scripted:
    """A model that plays its moves, one a step, and keeps what it was asked."""

    def __init__(self, *moves: Move, name: str = "scripted") -> None:
        self.name = name
        self.moves = list(moves)
        self.requests: list[ModelRequest] = []

    def reply(self, request: ModelRequest) -> Iterator[ModelEvent]:
        self.requests.append(request)
        move = self.moves.pop(0) if self.moves else ModelFailed("bad_reply", "script over")
        if isinstance(move, Exception):
            raise move
        yield from move(request) if callable(move) else move


def says(*pieces: str, finish: Finish | None = None) -> list[ModelEvent]:
    return [*(TextDelta(piece) for piece in pieces), finish or Finish()]


def calls(*named: tuple[str, dict[str, object]]) -> list[ModelEvent]:
    return [
        *(ToolCall(f"id{number}", name, arguments) for number, (name, arguments) in enumerate(named)),
        Finish(reason="tool_calls"),
    ]


@pytest.fixture(autouse=True)
def _toy_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    for spec in toys.SPECS:
        monkeypatch.setitem(registry._REGISTRY, spec.name, spec)


@pytest.fixture
def desk_of(tmp_path: Path) -> Callable[..., Desk]:
    """A desk whose ladder holds exactly these models, by name."""

    def make(*models: Model, **settings: object) -> Desk:
        by_name = {model.name: model for model in models}

        def open_model(name: str) -> Model:
            if name not in by_name:
                raise ModelFailed("missing", "not in this test")
            return by_name[name]

        first, *others = by_name
        chosen = Settings.model_validate({"model": first, "fallback_models": others, **settings})
        return Desk(chosen, SqliteConversations(tmp_path / "advisor.db"), open_model)

    return make


@pytest.fixture(scope="module")
def planner_desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A desk where the planner answers, on a store of the module's own."""
    path = tmp_path_factory.mktemp("planner") / "a.db"
    return Desk(Settings(), SqliteConversations(path), lambda _name: Planner())
