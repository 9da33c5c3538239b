"""The app on a real loopback socket, with the toy tools and models that tests script."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn

from advisor.llm.protocol import Model, ModelFailed
from advisor.settings import Settings
from advisor.store import SqliteConversations
from advisor.turn import Desk
from integrations.http import app, service
from integrations.http.app import create_app
from integrations.http.service import Service
from integrations.http.settings import ServiceSettings
from tests.advisor import toys
from tools import registry


class _Quick(uvicorn.Server):
    """Looks whether it is to stop a hundred times a second rather than ten: there are many servers here."""

    async def main_loop(self) -> None:
        while not self.should_exit:
            await asyncio.sleep(0.01)


class Live:
    """A running server; ``stop`` ends it."""

    def __init__(self, settings: ServiceSettings, desk: Desk) -> None:
        self.app = create_app(settings, desk)
        self.service: Service = self.app.state.service
        config = uvicorn.Config(self.app, host="127.0.0.1", port=0, log_config=None, access_log=False)
        self.server = _Quick(config)
        self._thread = threading.Thread(target=self.server.run, daemon=True)
        self._thread.start()
        until = time.monotonic() + 60  # far more than it takes; others may use the machine too
        while not self.server.started:
            assert time.monotonic() < until, "the server did not start"
            time.sleep(0.005)
        self.port: int = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx.Client(base_url=self.url, timeout=20, verify=False)

    def stop(self) -> None:
        self.client.close()
        self.server.should_exit = True
        self._thread.join(15)
        assert not self._thread.is_alive()


@pytest.fixture(autouse=True)
def _toy_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    registry.all_tools()
    for spec in toys.SPECS:
        monkeypatch.setitem(registry._REGISTRY, spec.name, spec)
    monkeypatch.setattr(app, "warm_up", lambda: None)  # importing litellm takes seconds
    monkeypatch.setattr(service, "price_of", lambda _model: None)


Serve = Callable[..., Live]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start servers with these models, by name; ``settings`` are the server's, ``advisor`` the loop's."""
    started: list[Live] = []

    def start(*models: Model, advisor: dict[str, object] | None = None, **settings: object) -> Live:
        by_name = {model.name: model for model in models}

        def open_model(name: str) -> Model:
            if name not in by_name:
                raise ModelFailed("missing", "not in this test")
            return by_name[name]

        first, *others = by_name or {"planner": None}
        chosen = Settings.model_validate({"model": first, "fallback_models": others, **(advisor or {})})
        desk = Desk(chosen, SqliteConversations(tmp_path / "advisor.db"), open_model)
        started.append(Live(ServiceSettings.model_validate(settings), desk))
        return started[-1]

    yield start
    for live in started:
        live.stop()
