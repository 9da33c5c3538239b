"""Processes of one server share their clients: who has clearly more than its part closes connections."""

from __future__ import annotations

import struct
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from integrations.http.balance import FEWEST, SLOTS, Balance, shared_file
from tests.integrations.http.conftest import Serve


def several(file: Path, count: int) -> list[Balance]:
    """As many processes as that; each takes its slot in a thread, so that one that waits for ever is noticed."""
    made: list[Balance] = []
    for _number in range(count):
        thread = threading.Thread(target=lambda: made.append(Balance(file)), daemon=True)
        thread.start()
        thread.join(10)
    assert len(made) == count
    return made


def test_only_who_has_clearly_more_than_its_share_lets_clients_go(tmp_path: Path) -> None:
    busy, idle = several(tmp_path / "counts", 2)
    for _request in range(26):
        busy.begin()
    for _request in range(6):
        idle.begin()
    assert busy.too_many()
    assert not idle.too_many()
    for _request in range(8):
        busy.end()
        idle.begin()
    assert not busy.too_many()  # 18 and 14
    assert not idle.too_many()


def test_few_requests_are_nobodys_burden_and_a_process_by_itself_keeps_all(tmp_path: Path) -> None:
    one, _other = several(tmp_path / "counts", 2)
    alone = Balance()
    for _request in range(FEWEST):
        one.begin()
        alone.begin()
    assert not one.too_many()
    for _request in range(100):
        one.begin()
        alone.begin()
    assert one.too_many()
    assert not alone.too_many()


def test_the_slot_of_a_process_that_died_is_taken_over(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    file = tmp_path / "counts"
    file.write_bytes(struct.pack("=qq", gone.pid, 500) + bytes(16 * (SLOTS - 1)))
    (mine,) = several(file, 1)
    for _request in range(FEWEST + 1):
        mine.begin()
    assert not mine.too_many()  # its own five are the mean
    assert struct.unpack_from("=qq", file.read_bytes())[1] == FEWEST + 1


def test_only_processes_of_one_server_have_a_common_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    assert shared_file(1) is None
    found = shared_file(2)
    assert found is not None
    assert found.parent == tmp_path
    monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR")
    assert shared_file(2) is None


def test_an_answer_tells_the_client_to_come_back(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    live = serve()
    with httpx.Client(base_url=live.url) as client:
        assert "connection" not in client.get("/livez").headers
        monkeypatch.setattr(Balance, "too_many", lambda _self: True)
        assert client.get("/livez").headers["connection"] == "close"
        assert client.get("/livez").status_code == 200
