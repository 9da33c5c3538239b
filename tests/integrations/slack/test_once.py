"""Exactly one visible answer a question, whatever Slack and the process do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from advisor.llm.protocol import ModelEvent, ModelFailed, ModelRequest
from tests.integrations.slack.conftest import SECRET, Start, answered, event_body, mention, sign, wait_for
from tests.integrations.slack.fake import FakeSlack

DONE = ("before", "after")
QUESTION = "can I full fine-tune Llama 3.1 8B on one H100?"


def test_four_deliveries_of_one_event_give_one_answer(start: Start, slack: FakeSlack) -> None:
    site = start()
    asked = slack.said(QUESTION)
    for _ in range(4):
        assert site.deliver(mention(asked), "EvSame").status_code == 200
    assert len(answered(slack, asked["ts"])) == 1
    site.deliver(mention(asked), "EvSame")  # and one long after
    time.sleep(0.5)
    assert len(slack.shown(asked["ts"])) == 1


def test_a_mention_that_comes_as_two_events_gives_one_answer(start: Start, slack: FakeSlack) -> None:
    site = start()
    asked = slack.said(QUESTION)
    site.deliver(mention(asked), "EvA")
    site.deliver({**mention(asked), "type": "message", "channel_type": "im"}, "EvB")
    assert len(answered(slack, asked["ts"])) == 1


def test_a_retry_whose_first_delivery_was_lost_is_answered(start: Start, slack: FakeSlack) -> None:
    site = start()
    asked = slack.said(QUESTION)
    body = json.dumps(event_body(mention(asked), "EvLost")).encode()
    headers = {
        "content-type": "application/json", "x-slack-retry-num": "1", "x-slack-retry-reason": "http_timeout",
        **sign(body),
    }  # fmt: skip
    assert httpx.post(f"{site.live.url}/slack/events", content=body, headers=headers).status_code == 200
    assert len(answered(slack, asked["ts"])) == 1


def test_concurrent_deliveries_to_two_servers_give_one_answer(start: Start, slack: FakeSlack, tmp_path: Path) -> None:
    sites = [start(database=tmp_path / "shared.db") for _ in range(2)]
    asked = slack.said(QUESTION)
    threads = [threading.Thread(target=site.deliver, args=(mention(asked), "EvBoth")) for site in sites for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answered(slack, asked["ts"])) == 1


def test_questions_of_a_thread_are_answered_one_after_the_other(start: Start, slack: FakeSlack) -> None:
    site = start()
    first = slack.said(QUESTION)
    second = slack.said("and with qlora?", thread=first["ts"])
    site.deliver(mention(first))
    site.deliver(mention(second))
    wait_for(lambda: len([one for one in slack.shown(first["ts"]) if one.get("blocks")]) == 2)
    texts = [json.dumps(one["blocks"]) for one in slack.shown(first["ts"])]
    assert "full fine-tuning" in texts[0]
    assert "QLoRA" in texts[1]


@pytest.mark.parametrize("method", ["chat.startStream", "chat.stopStream", "chat.appendStream"])
@pytest.mark.parametrize("fault", ["drop", "lost"])
def test_a_connection_cut_around_a_call_changes_nothing(
    start: Start, slack: FakeSlack, method: str, fault: str
) -> None:
    site = start()
    slack.faults[method] = [fault]
    asked = slack.said(QUESTION)
    site.deliver(mention(asked))
    (message,) = answered(slack, asked["ts"])
    assert message["blocks"][0]["type"] == "section"


def test_a_storm_of_429s_is_waited_out(start: Start, slack: FakeSlack) -> None:
    site = start()
    for method in ("chat.startStream", "chat.appendStream", "chat.stopStream"):
        slack.faults[method] = [("429", 0), ("429", 1), ("429", 0)]
    asked = slack.said(QUESTION)
    site.deliver(mention(asked))
    assert len(answered(slack, asked["ts"])) == 1


def test_a_stream_that_slack_closed_is_finished_by_an_update(start: Start, slack: FakeSlack) -> None:
    site = start()
    slack.faults["chat.stopStream"] = ["message_not_in_streaming_state"]
    asked = slack.said(QUESTION)
    site.deliver(mention(asked))
    (message,) = answered(slack, asked["ts"])
    assert slack.called("chat.update")
    assert message["blocks"][0]["type"] == "section"


def test_without_streams_one_post_is_edited(start: Start, slack: FakeSlack) -> None:
    slack.no_streams = True
    site = start()
    asked = slack.said(QUESTION)
    site.deliver(mention(asked))
    (message,) = answered(slack, asked["ts"])
    assert message["metadata"]["event_type"] == "advisor_answer"
    assert len(slack.called("chat.postMessage")) == 1


def test_blocks_that_a_workspace_does_not_know_are_shown_plainly(start: Start, slack: FakeSlack) -> None:
    site = start()
    slack.faults["chat.stopStream"] = ["invalid_blocks"]
    asked = slack.said(QUESTION)
    site.deliver(mention(asked))
    (message,) = answered(slack, asked["ts"])
    assert {block["type"] for block in message["blocks"]} == {"section"}


def test_a_channel_that_is_gone_is_given_up(start: Start, slack: FakeSlack) -> None:
    site = start()
    slack.faults["chat.startStream"] = ["channel_not_found"]
    asked = slack.said(QUESTION)
    site.deliver(mention(asked))
    wait_for(lambda: slack.called("chat.startStream"))
    time.sleep(0.5)
    assert slack.shown(asked["ts"]) == []


class Stalled:
    """A model that says nothing for a minute."""

    name = "prov/stalled"

    def reply(self, request: ModelRequest) -> Iterator[ModelEvent]:
        until = time.monotonic() + 60
        while time.monotonic() < until and not request.stopped():
            time.sleep(0.05)
        raise ModelFailed("timeout", "said nothing")
        yield  # a generator


def test_slack_hears_200_long_before_a_stalled_model_is_given_up(start: Start, slack: FakeSlack) -> None:
    site = start(Stalled())
    took = []
    for _ in range(40):
        asked = slack.said(QUESTION)
        begun = time.perf_counter()
        assert site.deliver(mention(asked)).status_code == 200
        took.append(time.perf_counter() - begun)
    # Slack gives 3 s; on an idle machine the slowest takes well below 0.5 s, but tests share theirs with others.
    assert sorted(took)[len(took) // 2] < 0.5
    assert max(took) < 3


# Killed at every step -----------------------------------------------------------------------------------------------


class Process:
    """A server process of its own, to be killed."""

    def __init__(self, slack: FakeSlack, folder: Path) -> None:
        self._environment = {
            **os.environ, "SLACK_BOT_TOKEN": "xoxb-none", "SLACK_SIGNING_SECRET": SECRET,
            "ADVISOR_SLACK_API_URL": slack.url, "ADVISOR_SLACK_LEASE_SECONDS": "1.5", "ADVISOR_MODEL": "planner",
            "ADVISOR_DATABASE_URL": str(folder / "advisor.db"), "ADVISOR_OFFLINE": "1",
        }  # fmt: skip
        self.port = 0
        self.start()

    def start(self) -> None:
        code = (
            "import uvicorn, sys\n"
            "from integrations.http.server import app\n"
            "config = uvicorn.Config(app(), host='127.0.0.1', port=0, log_config=None)\n"
            "server = uvicorn.Server(config)\n"
            "import asyncio\n"
            "async def main():\n"
            "    task = asyncio.create_task(server.serve())\n"
            "    while not server.started: await asyncio.sleep(0.01)\n"
            "    print(server.servers[0].sockets[0].getsockname()[1], flush=True)\n"
            "    await task\n"
            "asyncio.run(main())\n"
        )
        self.running = subprocess.Popen(
            [sys.executable, "-c", code], env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            cwd=Path(__file__).parents[3], text=True,
        )  # fmt: skip
        assert self.running.stdout is not None
        self.port = int(self.running.stdout.readline())

    def kill(self) -> None:
        os.kill(self.running.pid, signal.SIGKILL)

    def gone(self) -> None:
        self.running.wait(10)
        assert self.running.stdout is not None
        self.running.stdout.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "done"),
    [
        ("acknowledged", "after"),  # killed before its 200 is the lost first delivery above
        *((f"chat.{name}", done) for name in ("startStream", "appendStream", "stopStream") for done in DONE),
    ],
)
def test_killed_at_a_step_and_started_again_there_is_one_answer(
    slack: FakeSlack, tmp_path: Path, step: str, done: str
) -> None:
    process = Process(slack, tmp_path)
    asked = slack.said(QUESTION)
    body = json.dumps(event_body(mention(asked), "EvKill")).encode()
    if step != "acknowledged":
        # The call is carried out or not; either way its caller is dead before it hears.
        slack.faults[step] = [process.kill if done == "after" else _Killing(process)]
    httpx.post(
        f"http://127.0.0.1:{process.port}/slack/events",
        content=body, headers={"content-type": "application/json", **sign(body)}, timeout=20,
    )  # fmt: skip
    if step == "acknowledged":
        process.kill()
    process.gone()
    process.start()
    try:
        assert len(answered(slack, asked["ts"])) == 1
    finally:
        process.kill()
        process.gone()


class _Killing(str):
    """A fault by which the caller dies and the call is not carried out."""

    process: Process

    def __new__(cls, process: Process) -> _Killing:
        made = super().__new__(cls, "drop")
        made.process = process
        return made
