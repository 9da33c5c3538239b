"""What the processes of a server hold, as Linux tells it: memory, open files, connections, threads."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def rss_mib(processes: Iterable[int]) -> float:
    """Resident memory of all together, MiB (2**20), shared pages counted for each. Raises OSError for a process that is
    gone.
    """
    return round(sum(_number(process, "VmRSS:") for process in processes) / 1024, 1)


def threads(processes: Iterable[int]) -> int:
    """Threads of all together, from /proc. Raises OSError for a process that is gone."""
    return sum(_number(process, "Threads:") for process in processes)


def sockets(processes: Iterable[int]) -> int:
    """Open sockets of all together, those that listen among them. Raises OSError for a process that is gone."""
    return sum(link.startswith("socket:") for link in _links(processes))


def files(processes: Iterable[int]) -> int:
    """Open files of all together, pipes among them, without sockets. Raises OSError for a process that is gone."""
    return sum(not link.startswith("socket:") for link in _links(processes))


def _number(process: int, name: str) -> int:
    for line in Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    return 0


def _links(processes: Iterable[int]) -> list[str]:
    found = []
    for process in processes:
        for entry in Path(f"/proc/{process}/fd").iterdir():
            try:
                found.append(os.readlink(entry))
            except OSError:
                continue  # closed while we looked
    return found
