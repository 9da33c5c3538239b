"""How much a server takes: tool calls and planner answers a second, their slowest hundredth, memory over a long run.

    python -m evals.load                      starts `advisor serve --workers 2` and drives it with wrk
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

CLIENTS = 32
TARGETS = {"tool calls": 300.0, "planner answers": 100.0}  # a second, with p99 below this many milliseconds
TARGET_P99_MS = 250.0
# Different questions, so that no cache of one answer is what is measured.
QUESTIONS = [
    "what GPU for 70B QLoRA?",
    "how much memory does a 7B need for full fine-tuning?",
    "can I train a 13B with LoRA on a 4090?",
    "what does a H100 cost per hour?",
    "does llama-3.1-8b fit on an A100 40GB for inference?",
    "how long does LoRA of an 8B on 100 million tokens take on one H100?",
    "compare H100 and A100",
    "do I need InfiniBand for 16 H100 and a 13B?",
]
CALLS = [
    {"model": "7B", "method": "qlora"},
    {"model": "llama-3.1-70b", "method": "lora", "n_gpus": 8, "sharding": "fsdp"},
    {"model": "13B", "method": "full", "n_gpus": 8, "sharding": "zero3", "seq_len": 4096},
    {"model": "mistral-7b", "task": "inference", "gpu": "4090"},
]
_SCRIPT = """
local bodies = { %s }
local turn = 0
request = function()
  turn = turn + 1
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
        """Whether the target was reached."""
        return not self.errors and self.per_second >= TARGETS[self.what] and self.p99_ms < TARGET_P99_MS


def main() -> None:
    """Run all and print JSON; exit 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--url", help="a server that runs already")
    parser.add_argument("--seconds", type=int, default=15, help="length of each throughput run")
    parser.add_argument("--requests", type=int, default=20_000, help="length of the memory run; 0 leaves it out")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    if shutil.which("wrk") is None:
        parser.exit(2, "wrk is not installed\n")
    with serving(given.workers) if given.url is None else _running(given.url) as (url, processes):
        tool = [json.dumps(call) for call in CALLS]
        asked = [json.dumps({"question": question}) for question in QUESTIONS]
        loads = [
            drive(url, "tool calls", "/v1/tools/estimate_vram", tool, given.seconds),
            drive(url, "planner answers", "/v1/ask", asked, given.seconds),
        ]
        report: dict[str, object] = {
            "clients": CLIENTS,
            "loads": [{**asdict(load), "holds": load.holds} for load in loads],
        }
        if processes and given.requests:
            report["memory"] = soak(url, processes, tool, asked, given.requests)
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    sys.exit(0 if all(load.holds for load in loads) else 1)


def drive(url: str, what: str, path: str, bodies: list[str], seconds: int) -> Load:
    """Keep all clients busy for so long, after a second to warm up."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(_SCRIPT % (", ".join(map(_lua, bodies)), _lua(path)))
        script.flush()
        command = ["wrk", "-t2", f"-c{CLIENTS}", "--timeout", "10s", "-s", script.name, url]
        subprocess.run([*command, "-d1s"], check=True, capture_output=True)
        out = subprocess.run([*command, f"-d{seconds}s"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"RESULT (\d+) (\d+) (\d+) ([\d.]+) ([\d.]+) ([\d.]+)", out)
    assert found is not None, out
    count, microseconds, errors = int(found[1]), int(found[2]), int(found[3])
    return Load(what, count, round(count / microseconds * 1e6, 1), errors, *(float(found[n]) for n in (4, 5, 6)))


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
