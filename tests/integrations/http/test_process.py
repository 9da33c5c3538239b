"""`advisor serve` as people run it: a process with settings, logs, keys and signals; two of them on one database."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.databases import fresh

ROOT = Path(__file__).parents[3]
QUESTION = {"question": "how much memory does a 7B need for QLoRA?"}
COMMAND = [sys.executable, "-m", "advisor"]


def environment(place: str, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ADVISOR_")}
    return {**kept, "ADVISOR_DATABASE_URL": place, "ADVISOR_LOG_FORMAT": "json", **more}


class Process:
    """A server process on a free port, with what it logged."""

    def __init__(self, place: str, *options: str, **more: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        command = [*COMMAND, "serve", "--port", str(self.port), *options]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment(place, **more), stderr=subprocess.PIPE, text=True
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=30)
        until = time.monotonic() + 40
        while True:
            try:
                self.client.get("/livez")
                return
            except httpx.HTTPError:
                assert self.process.poll() is None, "".join(self.lines)
                assert time.monotonic() < until
                time.sleep(0.05)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)

    def stop(self, seconds: float = 15.0) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(seconds)
        self._reader.join(5)
        return code

    def close(self) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process.stderr is not None:
            self.process.stderr.close()


@contextmanager
def serving(place: str, *options: str, **more: str) -> Iterator[Process]:
    started = Process(place, *options, **more)
    try:
        yield started
    finally:
        started.close()


def advisor(place: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], cwd=ROOT, env=environment(place, **more), capture_output=True, text=True
    )


def test_a_server_answers_logs_one_line_a_request_without_secrets_and_stops_in_good_order(tmp_path: Path) -> None:
    place = str(tmp_path / "a.db")
    secret = "canary-provider-key-123456"
    with serving(
        place, OPENAI_API_KEY=secret, ADVISOR_API_KEYS=f"me:{secret}-own", ADVISOR_LOG_LEVEL="debug"
    ) as server:
        headers = {"authorization": f"Bearer {secret}-own", "x-request-id": "seen-1"}
        answer = server.client.post("/v1/ask", json=QUESTION, headers=headers)
        assert answer.status_code == 200
        assert answer.json()["status"] == "answered"
        server.client.post("/v1/ask", json=QUESTION, headers={"authorization": f"Bearer {secret}-wrong"})
        idle = [httpx.Client(base_url=server.client.base_url, verify=False) for _ in range(20)]
        assert {client.get("/livez").status_code for client in idle} == {200}
        begun = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - begun < 8  # open connections are no reason to wait for the deadline
        for client in idle:
            client.close()
        logged = "".join(server.lines)
        assert secret not in logged
        assert "7B" not in logged  # what users write is not logged
        lines = [json.loads(line) for line in server.lines if line.startswith("{")]
        (request,) = [line for line in lines if line.get("request_id") == "seen-1"]
        assert (request["route"], request["status"], request["caller"]) == ("/v1/ask", 200, "owner:me")
        assert request["milliseconds"] > 0


def test_without_a_key_it_does_not_listen_beyond_this_machine(tmp_path: Path) -> None:
    refused = advisor(str(tmp_path / "a.db"), "serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.returncode == 2
    assert "advisor keys create" in refused.stderr


def test_keys_are_made_listed_and_revoked_at_the_terminal(tmp_path: Path) -> None:
    place = str(tmp_path / "a.db")
    made = json.loads(
        advisor(place, "keys", "create", "team", "--scope", "tools", "--usd-per-day", "5", "--json").stdout
    )
    (row,) = json.loads(advisor(place, "keys", "list", "--json").stdout)
    assert (row["owner"], row["scopes"], row["USD/day"], row["revoked"]) == ("team", "tools", 5.0, None)
    assert made["key"].startswith(f"adv_{row['id']}_")
    assert advisor(place, "keys", "revoke", row["id"]).returncode == 0
    again = advisor(place, "keys", "revoke", row["id"])
    assert again.returncode == 2
    assert "Traceback" not in again.stderr


def test_two_servers_on_one_postgresql_share_conversations_keys_and_rates(tmp_path: Path) -> None:
    with fresh("postgresql", tmp_path) as place, ThreadPoolExecutor(2) as pool:
        made = json.loads(advisor(place, "keys", "create", "team", "--requests-per-minute", "8", "--json").stdout)
        headers = {"authorization": f"Bearer {made['key']}"}
        started = [pool.submit(Process, place) for _ in range(2)]
        servers = [future.result() for future in started]
        try:
            one, two = (server.client for server in servers)
            first = one.post("/v1/ask", json=QUESTION, headers=headers).json()
            follow = {"question": "and with LoRA?", "conversation_id": first["conversation_id"]}
            second = two.post("/v1/ask", json=follow, headers=headers).json()
            assert second["tool_calls"][0]["arguments"]["method"] == "lora"
            turns = one.get(f"/v1/conversations/{first['conversation_id']}", headers=headers).json()["turns"]
            assert [turn["answer"]["turn_id"] for turn in turns] == [first["turn_id"], second["turn_id"]]
            codes = [client.get("/v1/models", headers=headers).status_code for _ in range(4) for client in (one, two)]
            assert codes.count(200) == 5  # three of the minute's eight were spent above
            assert [server.stop() for server in servers] == [0, 0]
        finally:
            for server in servers:
                server.close()


@pytest.mark.slow
def test_several_workers_share_the_port_and_the_figures(tmp_path: Path) -> None:
    with serving(str(tmp_path / "a.db"), "--workers", "2") as server:
        for _ in range(6):
            with httpx.Client(base_url=server.client.base_url) as client:
                got = client.post("/v1/tools/estimate_vram", json={"model": "7B"})
                assert got.status_code == 200
        figures: Any = server.client.get("/metrics").text
        assert 'advisor_tool_calls_total{outcome="ok",surface="http",tool="estimate_vram"} 6.0' in figures
        assert server.stop() == 0


@pytest.mark.parametrize(("name", "value"), [("ADVISOR_PORT", "many"), ("ADVISOR_API_KEYS", "short")])
def test_a_setting_that_cannot_be_is_named_at_the_start(tmp_path: Path, name: str, value: str) -> None:
    refused = advisor(str(tmp_path / "a.db"), "serve", **{name: value})
    assert refused.returncode == 2
    assert name in refused.stderr
    assert value not in refused.stderr or name != "ADVISOR_API_KEYS"
