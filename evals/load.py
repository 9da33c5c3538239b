"""How much a server takes: tool calls and planner answers a second, their slowest hundredth, memory over a long run.

    python -m evals.load                      starts `advisor serve --workers 2` and drives it with wrk
    python -m evals.load --requests 0         without the memory run
    python -m evals.load --url http://host    drives a server that runs already (no memory figures)
    python -m evals.load --requests 20000     the memory run's length

wrk must be installed (Debian: wrk). Each client keeps one connection and asks as soon as it was answered, so the
figures are those of a server under full load; run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from evals.figures import record
from evals.load_questions import CALLS, QUESTIONS, distinct

CLIENTS = 32
THREADS = 2  # of wrk
# A second, with p99 below this many milliseconds; "distinct" questions were never asked before (``load_questions``).
TARGETS = {"tool calls": 300.0, "planner answers": 100.0, "planner answers, distinct": 100.0}
MOST_A_SECOND = 500  # distinct questions made for each second of the run
TARGET_P99_MS = 250.0
_SCRIPT = """
local threads = 0
setup = function(thread)
  thread:set("number", threads)
  threads = threads + 1
end
init = function(args)
  bodies = {}
  for line in io.lines(%s) do bodies[#bodies + 1] = line end
  turn = number  -- each thread takes the bodies that the other does not
end
request = function()
  turn = turn + %d
  return wrk.format("POST", %s, {["content-type"] = "application/json"}, bodies[turn %% #bodies + 1])
end
done = function(summary, latency, requests)
  io.write(string.format("RESULT %%d %%d %%d %%.3f %%.3f %%.3f\\n", summary.requests, summary.duration,
    summary.errors.status + summary.errors.timeout + summary.errors.read + summary.errors.connect,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000, latency.max / 1000))
end
"""


@dataclass(frozen=True)
class Load:
    """What one run gave."""

    what: str
    requests: int
    per_second: float
    errors: int
    p50_ms: float
    p99_ms: float
    max_ms: float

    @property
    def holds(self) -> bool:
        """Whether there was no error, and requests a second and the 99th percentile reach their targets."""
        return not self.errors and self.per_second >= TARGETS[self.what] and self.p99_ms < TARGET_P99_MS


def main() -> None:
    """Run all and print JSON; exit 1 when a target is missed, 2 without wrk."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--url", help="a server that runs already")
    parser.add_argument("--seconds", type=int, default=15, help="length of each throughput run")
    parser.add_argument("--requests", type=int, default=20_000, help="length of the memory run; 0 leaves it out")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--record", action="store_true", help="keep the figures in the results file")
    given = parser.parse_args()
    if shutil.which("wrk") is None:
        parser.exit(2, "wrk is not installed\n")
    with serving(given.workers) if given.url is None else _running(given.url) as (url, processes):
        tool = [json.dumps(call) for call in CALLS]
        asked = [json.dumps({"question": question}) for question in QUESTIONS]
        new = [json.dumps({"question": question}) for question in distinct(MOST_A_SECOND * given.seconds)]
        loads = [
            drive(url, "tool calls", "/v1/tools/estimate_vram", tool, given.seconds),
            drive(url, "planner answers", "/v1/ask", asked, given.seconds),
            drive(url, "planner answers, distinct", "/v1/ask", new, given.seconds, warm=asked),
        ]
        report: dict[str, object] = {
            "clients": CLIENTS,
            "loads": [{**asdict(load), "holds": load.holds} for load in loads],
        }
        if processes and given.requests:
            report["memory"] = soak(url, processes, tool, asked, given.requests)
    if given.record:
        record("load", report)
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    sys.exit(0 if all(load.holds for load in loads) else 1)


def drive(url: str, what: str, path: str, bodies: list[str], seconds: int, warm: list[str] | None = None) -> Load:
    """Keep all clients busy for so long, after a second to warm up (with ``warm``, where given)."""
    _wrk(url, path, warm or bodies, 1)
    out = _wrk(url, path, bodies, seconds)
    found = re.search(r"RESULT (\d+) (\d+) (\d+) ([\d.]+) ([\d.]+) ([\d.]+)", out)
    assert found is not None, out
    count, microseconds, errors = int(found[1]), int(found[2]), int(found[3])
    return Load(what, count, round(count / microseconds * 1e6, 1), errors, *(float(found[n]) for n in (4, 5, 6)))


def _wrk(url: str, path: str, bodies: list[str], seconds: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        asked, script = Path(folder) / "bodies", Path(folder) / "script.lua"
        asked.write_text("".join(body + "\n" for body in bodies), encoding="utf-8")
        script.write_text(_SCRIPT % (_lua(str(asked)), THREADS, _lua(path)), encoding="utf-8")
        command = ["wrk", f"-t{THREADS}", f"-c{CLIENTS}", f"-d{seconds}s", "--timeout", "10s", "-s", str(script), url]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def soak(url: str, processes: list[int], tool: list[str], asked: list[str], requests: int) -> dict[str, object]:
    """Resident memory of the server's processes by number of requests, nine of ten a tool call."""
    points = [{"requests": 0, "rss_mib": _rss_mib(processes)}]
    done = 0
    while done < requests:
        done += drive(url, "tool calls", "/v1/tools/estimate_vram", tool, 5).requests
        done += drive(url, "planner answers", "/v1/ask", asked, 2).requests
        points.append({"requests": done, "rss_mib": _rss_mib(processes)})
    half = next(point for point in points if point["requests"] >= done / 2)
    return {"points": points, "growth_in_second_half_mib": round(points[-1]["rss_mib"] - half["rss_mib"], 1)}


@contextmanager
def serving(workers: int) -> Iterator[tuple[str, list[int]]]:
    """A server of its own on a free port and an empty database; its address and process ids."""
    with socket.socket() as probe, tempfile.TemporaryDirectory() as folder:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        environment = {
            **os.environ,
            "ADVISOR_DATABASE_URL": str(Path(folder) / "load.db"),
            "ADVISOR_LOG_LEVEL": "warning",
            "ADVISOR_TURNS_PER_CALLER": "1024",
            "ADVISOR_MODEL": "planner",
        }
        command = [sys.executable, "-m", "advisor", "serve", "--port", str(port), "--workers", str(workers)]
        process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(url)
            yield url, [process.pid, *_children(process.pid)]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


@contextmanager
def _running(url: str) -> Iterator[tuple[str, list[int]]]:
    yield url, []


def _wait(url: str) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=5):
                return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def _children(parent: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(stat.parent.name))
    return found


def _rss_mib(processes: list[int]) -> float:
    total = 0
    for process in processes:
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1])
    return round(total / 1024, 1)


def _lua(text: str) -> str:
    return "[==[" + text + "]==]"


if __name__ == "__main__":
    main()
