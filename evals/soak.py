"""A server under mixed load for a long time: memory, files, sockets and threads must stay as they are.

    python -m evals.soak                           two minutes; prints JSON, exit 1 when something grew
    python -m evals.soak --minutes 30 --record     the long one, put into evals/results/load.json

Four clients ask tool calls, planner answers and streams, leave streams midway, and send what cannot be answered. The
server keeps its conversations in a file, as in earnest.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import httpx

from evals import processes as held
from evals.figures import record
from evals.load import serving

CLIENTS = 4
QUESTIONS = (
    "what GPU for 70B QLoRA?",
    "can I train a 13B with LoRA on a 4090?",
    "what does a H100 cost per hour?",
    "do I need InfiniBand for 16 H100 and a 13B?",
    "compare H100 and A100",
)
CALL = {"model": "13B", "method": "full", "n_gpus": 8, "sharding": "zero3", "seq_len": 4096}
STREAM = {"accept": "text/event-stream"}
MOST_LATE_THREADS = 2  # a pool's last workers may come late; one left behind by each turn would be hundreds
MOST_GROWTH_MIB = 12.0  # what the allocator of a process of 200 MiB moves by without anything being kept


def main() -> None:
    """Measure and print JSON; exit 1 when something failed or grew."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--record", action="store_true", help="keep the figures in the results file")
    given = parser.parse_args()
    found = measure(given.minutes)
    if given.record:
        record("soak", found)
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
    sys.exit(0 if sound(found) else 1)


def sound(found: dict[str, Any]) -> bool:
    """Whether nothing failed and nothing grew in the second half: memory in MiB below a limit, threads, files, sockets
    not at all.
    """
    return (
        not found["faults"]
        and found["growth_in_second_half_mib"] < MOST_GROWTH_MIB
        and not found["sockets_left"]
        and found["threads_grown_in_second_half"] <= MOST_LATE_THREADS
        and found["files_grown_in_second_half"] <= 0
    )


def measure(minutes: float) -> dict[str, Any]:
    """Figures of one run on a server of its own; memory in MiB of the server's one process."""
    with serving(1) as (url, every):
        server = every[:1]
        asked: Counter[str] = Counter()
        faults: list[str] = []
        stop = threading.Event()
        _settle()
        sockets_before = held.sockets(server)
        clients = [
            threading.Thread(target=_client, args=(url, number, stop, asked, faults)) for number in range(CLIENTS)
        ]
        for client in clients:
            client.start()
        points = []
        begun = time.monotonic()
        while (at := time.monotonic() - begun) < 60 * minutes:
            points.append((at, held.rss_mib(server), held.files(server), held.threads(server)))
            time.sleep(min(5.0, 60 * minutes / 40))
        stop.set()
        for client in clients:
            client.join(60)
        _settle()
        half = points[len(points) // 2]
        _, _, files, threads = zip(*points, strict=True)
        return {
            "minutes": minutes,
            "requests": asked.total(),
            "by_kind": dict(sorted(asked.items())),
            "faults": faults[:10],
            "rss_start_mib": points[0][1],
            "rss_half_mib": half[1],
            "rss_end_mib": points[-1][1],
            "growth_in_second_half_mib": round(points[-1][1] - half[1], 1),
            "files_grown_in_second_half": _risen(files),
            "threads_grown_in_second_half": _risen(threads),
            "sockets_left": held.sockets(server) - sockets_before,
        }


def _risen(counts: Sequence[int]) -> int:
    """By how much the least of the last quarter lies above the most of the first half.

    Threads and files come and go with the turns, so that two single moments differ by chance; what leaks stays above.
    """
    return min(counts[-max(1, len(counts) // 4) :]) - max(counts[: len(counts) // 2 + 1])


def _client(url: str, number: int, stop: threading.Event, asked: Counter[str], faults: list[str]) -> None:
    turn = number
    while not stop.is_set():
        with httpx.Client(base_url=url, timeout=60) as client:  # a new connection now and then
            for _ in range(20):
                turn += 1
                kind = KINDS[turn % len(KINDS)]
                try:
                    wrong = kind(client, turn)
                except httpx.HTTPError as error:
                    wrong = type(error).__name__
                asked[kind.__name__.strip("_")] += 1
                if wrong:
                    faults.append(f"{kind.__name__}: {wrong}")
                if stop.is_set():
                    return


def _tool_call(client: httpx.Client, _turn: int) -> str:
    return _expect(client.post("/v1/tools/estimate_vram", json=CALL), 200)


def _answer(client: httpx.Client, turn: int) -> str:
    return _expect(client.post("/v1/ask", json=_question(turn)), 200)


def _follow_up(client: httpx.Client, turn: int) -> str:
    first = client.post("/v1/ask", json=_question(turn))
    if wrong := _expect(first, 200):
        return wrong
    body = {"question": "and with LoRA?", "conversation_id": first.json()["conversation_id"]}
    return _expect(client.post("/v1/ask", json=body), 200)


def _stream(client: httpx.Client, turn: int) -> str:
    got = client.post("/v1/ask", json=_question(turn), headers=STREAM)
    return _expect(got, 200) or ("" if "event: done" in got.text else "no last word")


def _stream_left_midway(client: httpx.Client, turn: int) -> str:
    body = {**_question(turn), "keep_seconds": turn % 2}
    with client.stream("POST", "/v1/ask", json=body, headers=STREAM) as got:
        next(got.iter_bytes())
        return _expect(got, 200)


def _nonsense(client: httpx.Client, turn: int) -> str:
    if turn % 2:
        return _expect(client.post("/v1/ask", content=b"{", headers={"content-type": "application/json"}), 422)
    return _expect(client.get("/v1/conversations/nobody"), 404)


KINDS = (_tool_call, _answer, _tool_call, _follow_up, _stream, _stream_left_midway, _nonsense)


def _question(turn: int) -> dict[str, object]:
    return {"question": QUESTIONS[turn % len(QUESTIONS)]}


def _expect(got: httpx.Response, status: int) -> str:
    return "" if got.status_code == status else f"status {got.status_code}"


def _settle() -> None:
    time.sleep(2.0)  # connections that were closed at one end are closed at the other


if __name__ == "__main__":
    main()
