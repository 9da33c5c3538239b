"""Who gets in: signatures and timestamps, Socket Mode with the real client."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path

import httpx
import pytest

from integrations.slack.settings import credentials, slack_settings
from integrations.slack.socket import serve
from tests.integrations.slack.conftest import Start, answered, event_body, mention, sign, wait_for
from tests.integrations.slack.fake import FakeSlack

NOW = str(int(time.time()))
GOOD = "v0=" + "a" * 64


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-slack-signature": GOOD},
        {"x-slack-request-timestamp": NOW},
        {"x-slack-request-timestamp": NOW, "x-slack-signature": GOOD},
        {"x-slack-request-timestamp": NOW, "x-slack-signature": "v0=\xe9"},
        {"x-slack-request-timestamp": NOW, "x-slack-signature": "v1=" + "a" * 64},
        {"x-slack-request-timestamp": NOW, "x-slack-signature": "v0=" + "A" * 64},
        {"x-slack-request-timestamp": "soon", "x-slack-signature": GOOD},
        {"x-slack-request-timestamp": "1e9", "x-slack-signature": GOOD},
        {"x-slack-request-timestamp": "-1", "x-slack-signature": GOOD},
        {"x-slack-request-timestamp": "9" * 400, "x-slack-signature": GOOD},
        {"x-slack-request-timestamp": "", "x-slack-signature": ""},
    ],
)
@pytest.mark.parametrize("body", [b"{}", b"ssl_check=1&token=x", b"\xff\xfe", b""])
def test_what_slack_did_not_sign_is_401(start: Start, slack: FakeSlack, headers: dict[str, str], body: bytes) -> None:
    site = start()
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    response = httpx.post(f"{site.live.url}/slack/events", content=body, headers=raw)
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "bad_signature"


def test_an_old_but_well_signed_delivery_is_401(start: Start, slack: FakeSlack) -> None:
    site = start()
    body = json.dumps(event_body(mention(slack.said("x")), "EvOld")).encode()
    headers = sign(body, str(int(time.time()) - 600))
    assert httpx.post(f"{site.live.url}/slack/events", content=body, headers=headers).status_code == 401


def test_slack_s_url_check_is_answered(start: Start, slack: FakeSlack) -> None:
    site = start()
    body = json.dumps({"type": "url_verification", "challenge": "abc", "token": "x"}).encode()
    headers = {"content-type": "application/json", **sign(body)}
    response = httpx.post(f"{site.live.url}/slack/events", content=body, headers=headers)
    assert response.status_code == 200
    assert "abc" in response.text


def test_socket_mode_answers_what_comes_over_the_socket(
    slack: FakeSlack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADVISOR_DATABASE_URL", str(tmp_path / "advisor.db"))
    monkeypatch.setenv("ADVISOR_MODEL", "planner")
    monkeypatch.setenv("ADVISOR_SLACK_API_URL", slack.url)
    environment = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1"}
    stop, loops = asyncio.Event(), []

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        await serve(credentials("app_token", environment=environment), slack_settings(), stop)

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    wait_for(lambda: slack.sockets)
    asked = slack.said("can I full fine-tune Llama 3.1 8B on one H100?")
    payload = event_body(mention(asked), "EvSocket")
    for _ in range(2):  # Slack sends an envelope again when its acknowledgement was lost
        slack.push({"type": "events_api", "envelope_id": "e1", "payload": payload, "accepts_response_payload": False})
    wait_for(lambda: any(one.get("envelope_id") == "e1" for one in slack.acknowledged))
    assert len(answered(slack, asked["ts"])) == 1
    loops[0].call_soon_threadsafe(stop.set)
    thread.join(20)
    assert not thread.is_alive()
