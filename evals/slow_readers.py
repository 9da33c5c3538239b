"""Hundreds of clients that read an answer's stream byte by byte: memory of the server, and how others fare meanwhile.

    python -m evals.slow_readers                500 readers for half a minute; prints JSON
    python -m evals.slow_readers --record       and puts it into evals/results/load.json

Each reader takes a few hundred bytes a second from a socket with small buffers, far below what the answer has. Probes,
one after the other, time tool calls and planner answers before, beside and after them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from evals.figures import record
from evals.load import serving
from evals.processes import rss_mib
from evals.soak import CALL, QUESTIONS

BYTES, PAUSE_SECONDS = 256, 0.5
HUNG_SECONDS = 30.0
AT_THE_DOOR = 4  # readers whose question is being answered at a time


def main() -> None:
    """Measure and print JSON; exit 1 when a client hung or failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--readers", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--record", action="store_true", help="keep the figures in the results file")
    given = parser.parse_args()
    found = measure(given.readers, given.seconds)
    if given.record:
        record("slow_readers", found)
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
    sys.exit(1 if found["hung"] or found["failed"] else 0)


def measure(readers: int, seconds: float) -> dict[str, Any]:
    """Figures of one run on a server of its own: memory in MiB, times of probes in milliseconds.

    The readers come a few at a time, so that what is measured is their slowness and not five hundred questions at once.
    """
    with patch.dict(os.environ, {"ADVISOR_READER_SECONDS": "600"}), serving(1) as (url, processes):
        for _ in range(3):
            _probe(url)
        idle = [_probe(url) for _ in range(20)]
        before = rss_mib(processes)
        crowd = asyncio.run(_crowd(url, processes, readers, seconds))
        time.sleep(1.0)
        after = [_probe(url) for _ in range(20)]
        return {
            "readers": readers,
            "seconds": seconds,
            "reading_at_once": crowd.most,
            "hung": sum(took is None for took in [*crowd.probes, *after]),
            "failed": crowd.failed,
            "probes": len(crowd.probes),
            "probe_p50_ms_idle": _percentile(idle, 0.5),
            "probe_p50_ms_beside": _percentile(crowd.probes, 0.5),
            "probe_p99_ms_beside": _percentile(crowd.probes, 0.99),
            "rss_before_mib": before,
            "rss_peak_mib": crowd.peak_mib,
            "rss_growth_mib": round(crowd.peak_mib - before, 1),
            "rss_after_mib": rss_mib(processes),
        }


@dataclass
class _Crowd:
    probes: list[float | None] = field(default_factory=list)
    peak_mib: float = 0.0
    reading: int = 0
    most: int = 0
    failed: int = 0


async def _crowd(url: str, processes: list[int], readers: int, seconds: float) -> _Crowd:
    crowd, door, over = _Crowd(), asyncio.Semaphore(AT_THE_DOOR), asyncio.Event()
    tasks = [asyncio.create_task(_reader(url, number, crowd, door, over)) for number in range(readers)]
    while crowd.reading + crowd.failed < readers:
        await asyncio.sleep(0.1)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        crowd.probes.append(await asyncio.to_thread(_probe, url))
        crowd.peak_mib = max(crowd.peak_mib, rss_mib(processes))
        await asyncio.sleep(0.02)
    over.set()
    await asyncio.gather(*tasks)
    return crowd


async def _reader(url: str, number: int, crowd: _Crowd, door: asyncio.Semaphore, over: asyncio.Event) -> None:
    """Ask, and read slowly until told that it is over."""
    host, _, port = url.removeprefix("http://").partition(":")
    body = json.dumps({"question": QUESTIONS[number % len(QUESTIONS)]}).encode()
    head = (
        f"POST /v1/ask HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\naccept: text/event-stream\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.setblocking(False)
    out: asyncio.StreamWriter | None = None
    try:
        async with door:
            await asyncio.get_running_loop().sock_connect(one, (host, int(port)))
            stream, out = await asyncio.open_connection(sock=one, limit=4096)
            out.write(head.encode() + body)
            status = await asyncio.wait_for(stream.read(12), HUNG_SECONDS)
        if status != b"HTTP/1.1 200":
            crowd.failed += 1
            return
        crowd.reading += 1
        crowd.most = max(crowd.most, crowd.reading)
        while not over.is_set():
            await stream.read(BYTES)
            await asyncio.sleep(PAUSE_SECONDS)
    except (OSError, TimeoutError):
        crowd.failed += 1
    finally:
        if out is None:
            one.close()
        else:
            out.transport.abort()  # what it has not read is not waited for
            await asyncio.sleep(0)  # the loop closes the socket in its next round


def _probe(url: str) -> float | None:
    """Milliseconds of a tool call and a planner answer; None when they took too long."""
    begun = time.perf_counter()
    for path, body in (("/v1/tools/estimate_vram", CALL), ("/v1/ask", {"question": QUESTIONS[0]})):
        data = json.dumps(body).encode()
        request = urllib.request.Request(url + path, data, {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=HUNG_SECONDS) as got:
                got.read()
        except OSError:
            return None
    return (time.perf_counter() - begun) * 1e3


def _percentile(times: list[float | None], part: float) -> float:
    found = sorted(took for took in times if took is not None)
    return round(found[min(len(found) - 1, int(part * len(found)))], 1) if found else 0.0


if __name__ == "__main__":
    main()
