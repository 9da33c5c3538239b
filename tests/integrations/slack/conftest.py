"""The bot on a real HTTP server against the fake Slack; deliveries signed as Slack signs them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from slack_sdk.signature import SignatureVerifier

from advisor.llm.door import open_model
from advisor.llm.protocol import Model
from advisor.settings import Settings
from advisor.store import SqliteConversations
from advisor.turn import Desk
from integrations.http.settings import ServiceSettings
from tests.integrations.http.conftest import Live
from tests.integrations.slack.fake import CHANNEL, DM, PERSON, TEAM, FakeSlack

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"


def sign(body: bytes, stamp: str | None = None) -> dict[str, str]:
    stamp = stamp or str(int(time.time()))
    signature = SignatureVerifier(SECRET).generate_signature(timestamp=stamp, body=body)
    return {"x-slack-request-timestamp": stamp, "x-slack-signature": str(signature)}


def event_body(event: dict[str, Any], event_id: str, team: str = TEAM) -> dict[str, Any]:
    return {"type": "event_callback", "team_id": team, "event_id": event_id, "event": event, "token": "x"}


def mention(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    kept = {key: message[key] for key in ("ts", "user", "channel")}
    thread = {"thread_ts": message["thread_ts"]} if message["thread_ts"] != message["ts"] else {}
    return {"type": "app_mention", "text": f"<@U0BOT> {message['text']}", **kept, **thread, **more}


def direct(message: dict[str, Any]) -> dict[str, Any]:
    return {**mention(message), "type": "message", "channel_type": "im", "text": message["text"], "channel": DM}


class Site:
    """A server with the bot on it."""

    def __init__(self, slack: FakeSlack, live: Live) -> None:
        self.slack, self.live, self._number = slack, live, 0

    def deliver(self, event: dict[str, Any], event_id: str | None = None, **more: Any) -> httpx.Response:
        self._number += 1
        body = json.dumps(event_body(event, event_id or f"Ev{self._number}", **more)).encode()
        headers = {"content-type": "application/json", **sign(body)}
        return httpx.post(f"{self.live.url}/slack/events", content=body, headers=headers, timeout=30)

    def click(self, payload: dict[str, Any]) -> httpx.Response:
        body = httpx.QueryParams({"payload": json.dumps(payload)}).__str__().encode()
        headers = {"content-type": "application/x-www-form-urlencoded", **sign(body)}
        return httpx.post(f"{self.live.url}/slack/events", content=body, headers=headers, timeout=30)

    def command(self, text: str) -> httpx.Response:
        fields = {
            "command": "/advisor", "text": text, "team_id": TEAM, "channel_id": CHANNEL, "user_id": PERSON,
            "trigger_id": "1.2", "response_url": "http://127.0.0.1:1/none",
        }  # fmt: skip
        body = str(httpx.QueryParams(fields)).encode()
        headers = {"content-type": "application/x-www-form-urlencoded", **sign(body)}
        return httpx.post(f"{self.live.url}/slack/events", content=body, headers=headers, timeout=30)


def wait_for(what: Callable[[], Any], seconds: float = 20) -> Any:
    until = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.02)
    return found


def answered(slack: FakeSlack, thread: str, channel: str = CHANNEL) -> list[dict[str, Any]]:
    """The bot's messages in the thread once one of them has its answer."""
    wait_for(lambda: any(one.get("blocks") for one in slack.shown(thread, channel)))
    time.sleep(0.3)  # a second message would come now
    return slack.shown(thread, channel)


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    fake = FakeSlack()
    yield fake
    fake.stop()


Start = Callable[..., Site]


@pytest.fixture
def start(slack: FakeSlack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-not-a-real-one")
    monkeypatch.setenv("SLACK_SIGNING_SECRET", SECRET)
    monkeypatch.setenv("ADVISOR_SLACK_API_URL", slack.url)
    monkeypatch.setenv("ADVISOR_SLACK_LEASE_SECONDS", "2")
    running: list[Live] = []

    def begin(*models: Model, database: Path | None = None, **environment: str) -> Site:
        for name, value in environment.items():
            monkeypatch.setenv(f"ADVISOR_{name.upper()}", value)
        named = {model.name: model for model in models}
        chosen = Settings(model=next(iter(named), "planner"))
        store = SqliteConversations(database or tmp_path / "advisor.db")

        def opened(name: str) -> Model:
            return named[name] if name in named else open_model(name, chosen)

        running.append(Live(ServiceSettings(), Desk(chosen, store, opened)))
        return Site(slack, running[-1])

    yield begin
    for live in running:
        live.stop()
