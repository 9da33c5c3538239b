"""PostgreSQL goes down in the middle of the load and comes back: answers recover by themselves, nothing kept is lost.

A cluster of its own on a free port, so that no other test's database is touched; skipped with the reason where there is
no server to install one from, or none may be started.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from advisor.store import open_store
from tests.databases import no_driver
from tests.faults.conftest import settles
from tests.integrations.http.test_process import QUESTION, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
CLIENTS = 4


class Cluster:
    """A PostgreSQL server in a folder."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._data = programs, folder / "data"
        # The server refuses to run as root.
        self._user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
        if self._user:
            shutil.chown(folder, "postgres", "postgres")
        self._folder = folder
        self._run("initdb", "-D", str(self._data), "-U", "test", "-A", "trust", "-E", "UTF8", "--no-sync")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"postgresql://test@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self._folder}"
        self._run("pg_ctl", "-D", str(self._data), "-l", str(self._folder / "log"), "-o", options, "-w", "start")

    def stop(self, how: str) -> None:
        self._run("pg_ctl", "-D", str(self._data), "-m", how, "-w", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._programs / program), *arguments],
            cwd=self._folder,
            stdout=subprocess.DEVNULL,  # the server would hold a pipe open
            stderr=subprocess.DEVNULL,
            **self._user,  # type: ignore[arg-type]
        )
        if done.returncode:
            raise OSError(f"{program} failed with {done.returncode}")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    reason = no_driver()
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found += [Path(path) for path in [shutil.which("initdb")] if path]
    if reason or not found:
        pytest.skip(reason or "no PostgreSQL server is installed (Debian package: postgresql)")
    with tempfile.TemporaryDirectory() as folder:
        try:
            made = Cluster(found[-1].parent, Path(folder))
            made.start()
        except OSError as error:
            pytest.skip(f"no PostgreSQL server could be started: {error}")
        yield made
        with suppress(OSError):  # the test left it down
            made.stop("immediate")


class Load:
    """Clients that ask one question after the other, and keep what they were told."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self.answered: list[tuple[str, str, float]] = []  # conversation, turn, when
        self.refused: list[tuple[int, str]] = []
        self.broken: list[str] = []
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def _ask(self, number: int) -> None:
        with httpx.Client(base_url=self._url, timeout=30) as client:
            while not self._stop.is_set():
                try:
                    got = client.post("/v1/ask", json={**QUESTION, "conversation_id": f"c{number}"})
                except httpx.HTTPError as error:
                    with self._lock:
                        self.broken.append(type(error).__name__)
                    continue
                body = got.json()
                with self._lock:
                    if got.status_code != 200:
                        self.refused.append((got.status_code, body["error"]["code"]))
                    elif "not_saved" not in [warning["code"] for warning in body["warnings"]]:
                        self.answered.append((body["conversation_id"], body["turn_id"], time.monotonic()))

    def reaches(self, count: int, seconds: float = 60.0) -> None:
        """Wait until so many questions were answered in all."""
        until = time.monotonic() + seconds
        while len(self.answered) < count:
            assert time.monotonic() < until, f"{len(self.answered)} of {count} answered; {self.refused[-3:]}"
            time.sleep(0.05)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(40)


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_answers_recover_after_a_restart_and_nothing_acknowledged_is_lost(cluster: Cluster, how: str) -> None:
    """``immediate`` is what a crash of the database is: it recovers from its log."""
    with serving(cluster.url, ADVISOR_TURNS_PER_CALLER="64") as server:
        load = Load(str(server.client.base_url))
        try:
            load.reaches(40)
            cluster.stop(how)
            # Questions come while it is away; they wait some seconds for a connection before they are refused.
            assert settles(lambda: bool(load.refused), 20)
            assert server.client.get("/livez").status_code == 200
            assert server.client.get("/readyz").status_code == 503
            cluster.start()
            back = time.monotonic()
            load.reaches(len(load.answered) + 40)
        finally:
            load.stop()
        first_after = min(at for *_, at in load.answered if at > back)
        assert first_after - back < 15
        assert server.client.get("/readyz").status_code == 200
        # Refused while it was away, in the one way; never a fault of ours, never a connection that breaks.
        assert {*load.refused} <= {(503, "store_unavailable")}
        assert load.refused
        assert load.broken == []
        kept = _kept(cluster.url)
        lost = [turn for _conversation, turn, _at in load.answered if kept.get(turn) != "answered"]
        assert lost == []
        assert server.stop() == 0


def _kept(url: str) -> dict[str, str]:
    store = open_store(url)
    rows = store.database.read("select id, status from turns")
    numbers = store.database.read("select conversation_id, count(*), max(number) from turns group by conversation_id")
    store.database.close()
    assert all(count == last for _conversation, count, last in numbers)
    return dict(rows)
