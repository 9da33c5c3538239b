"""A real headless Chromium on the page of a running server; skipped with the reason where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, sync_playwright

from advisor.llm.door import open_model
from advisor.settings import Settings
from advisor.store import SqliteConversations
from advisor.turn import Desk
from integrations.http.settings import ServiceSettings
from tests.integrations.http.conftest import Live

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SHOTS = Path(__file__).parents[3] / "reports" / "screenshots"
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if not CHROMIUM:
        pytest.skip("no chromium on this machine (Debian package: chromium)")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    settings = Settings(model="planner")
    store = SqliteConversations(tmp_path_factory.mktemp("web") / "advisor.db")
    live = Live(ServiceSettings(), Desk(settings, store, lambda name: open_model(name, settings)))
    yield live
    live.stop()


class Visit:
    """A page with what it did wrong: console errors, policy violations, requests to anywhere else."""

    def __init__(self, page: Page, base: str) -> None:
        self.page, self.base = page, base
        self.faults: list[str] = []
        page.on("console", lambda message: self.faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("request", self._requested)

    def _requested(self, request: Request) -> None:
        if not request.url.startswith((self.base, "data:", "blob:")):
            self.faults.append(f"requested {request.url}")

    def go(self, path: str = "/") -> Page:
        self.page.goto(self.base + path)
        return self.page

    def ask(self, question: str) -> Page:
        self.page.fill("#question", question)
        self.page.press("#question", "Enter")
        self.page.locator(".turn").last.locator(".actions").first.wait_for()
        return self.page

    def shot(self, name: str) -> None:
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{name}.png")


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    opened = browser.new_context(viewport={"width": 1280, "height": 900})
    opened.set_default_timeout(15_000)
    yield opened
    opened.close()


@pytest.fixture
def visit(context: BrowserContext, served: Live) -> Iterator[Visit]:
    seen = Visit(context.new_page(), served.url)
    yield seen
    assert not seen.faults
