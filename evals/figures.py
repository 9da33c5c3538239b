"""One file with the figures of the benchmarks, each section with its date and machine; the README quotes it.

    python -m evals.load --record           each benchmark writes its own section
    python -m evals.soak --record
    python -m evals.slow_readers --record
    python -m evals.figures                 puts the figures into the README

A benchmark calls ``record("soak", {...})``; sections of others stay as they are. ``tests/evals/test_figures.py`` holds
the README to the file.
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "results" / "load.json"


def record(section: str, figures: Mapping[str, Any], file: Path = FILE) -> None:
    """Put one benchmark's figures, with today's date (UTC) and the machine, in place of its earlier ones
    in ``file``.
    """
    kept = read(file)
    kept[section] = {"date": datetime.now(UTC).date().isoformat(), "machine": machine(), **figures}
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(dict(sorted(kept.items())), indent=2, ensure_ascii=False)
    file.write_text(text + "\n", encoding="utf-8")


def read(file: Path = FILE) -> dict[str, Any]:
    """All sections by name; {} when nothing was measured yet."""
    if not file.exists():
        return {}
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def quoted(figures: Mapping[str, Any]) -> str:
    """The figures as the README's table, one row a benchmark that was run."""
    rows = [row for name, words in _ROWS if name in figures for row in words(figures[name])]
    lines = ["| what | figures | measured |", "|---|---|---|", *(f"| {row} |" for row in rows)]
    return "\n".join(lines)


def _load(found: Mapping[str, Any]) -> list[str]:
    return [
        f"{load['what']}, {found['clients']} clients | {load['per_second']:,.0f} a second, 99th percentile "
        f"{load['p99_ms']:,.0f} ms, {load['errors']} errors | {_where(found)}"
        for load in found["loads"]
    ]


def _slow(found: Mapping[str, Any]) -> list[str]:
    return [
        f"{found['reading_at_once']} readers of a few hundred bytes a second | {found['rss_growth_mib']:,.0f} MiB more "
        f"memory; a tool call and an answer beside them in {found['probe_p50_ms_beside']:,.0f} ms (alone "
        f"{found['probe_p50_ms_idle']:,.0f} ms); {found['hung']} hung | {_where(found)}"
    ]


def _soak(found: Mapping[str, Any]) -> list[str]:
    return [
        f"{found['minutes']:g} minutes of mixed load, {found['requests']:,} requests | memory "
        f"{found['growth_in_second_half_mib']:+,.1f} MiB in the second half of {found['rss_end_mib']:,.0f} MiB; "
        f"{len(found['faults'])} failed; {found['sockets_left']} sockets left | {_where(found)}"
    ]


def _where(found: Mapping[str, Any]) -> str:
    machine = found["machine"]
    return f"{found['date']}, {machine['processors']} processors at load {machine['load_of_a_minute']}"


_ROWS = (("load", _load), ("slow_readers", _slow), ("soak", _soak))
_TABLE = re.compile(r"\| what \| figures \| measured \|\n(?:\|.*\n)+")


def main() -> None:
    """Rewrite the README's table between its marks from the file of figures."""
    readme = FILE.parents[2] / "README.md"
    text = readme.read_text(encoding="utf-8")
    readme.write_text(_TABLE.sub(lambda _: quoted(read()) + "\n", text), encoding="utf-8")


def machine() -> dict[str, Any]:
    """What it was measured on: processors, memory (GiB), system, Python, and how busy it was (load of a minute)."""
    names = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    kilobytes = [int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal:")]
    return {
        "processors": len(os.sched_getaffinity(0)),
        "processor": names[0] if names else platform.processor(),
        "memory_gib": round(kilobytes[0] / 2**20, 1) if kilobytes else None,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_of_a_minute": round(os.getloadavg()[0], 1),
    }


def _lines(file: str) -> list[str]:
    try:
        return Path(file).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


if __name__ == "__main__":
    main()
