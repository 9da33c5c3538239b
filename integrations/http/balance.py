"""Sharing clients between the processes of one server.

A connection stays with the process that took it, and which one that is, is chance: of thirty-two clients that keep
theirs open, one process may hold twenty-six. So each process notes in a small common file how many requests it works
on, and one that has clearly more than its share closes connections after the answer (``connection: close``). Their
clients come back, most of them to a process with more time.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
from pathlib import Path

SLOTS = 64  # as many processes as ``--workers`` allows
_SLOT = struct.Struct("=qq")  # process id (0: free), requests
FEWEST = 4  # a process with no more than these is not busy
SLACK = 1.1  # times the mean, and one more, is still a fair share


class Balance:
    """This process' requests beside those of its siblings; without a ``file`` there are none."""

    def __init__(self, file: Path | None = None) -> None:
        self._mine = 0
        self._map: mmap.mmap | None = None
        if file is not None:
            with file.open("a+b") as opened:
                fcntl.flock(opened, fcntl.LOCK_EX)
                opened.truncate(SLOTS * _SLOT.size)
                self._map = mmap.mmap(opened.fileno(), SLOTS * _SLOT.size)
                self._at = self._claim(self._map)
                fcntl.flock(opened, fcntl.LOCK_UN)  # closing does not do it, since the map holds the file too

    def begin(self) -> None:
        """Count one more request of this process, visible to its siblings; each ``begin`` needs its ``end``."""
        self._note(1)

    def end(self) -> None:
        """Count one request less: it is answered, or its caller has gone."""
        self._note(-1)

    def too_many(self) -> bool:
        """Whether this process works on clearly more requests than the others do."""
        if self._map is None or self._mine <= FEWEST:
            return False
        counts: list[int] = [count for pid, count in _SLOT.iter_unpack(self._map[:]) if pid]
        return self._mine > SLACK * sum(counts) / len(counts) + 1

    def _note(self, change: int) -> None:
        self._mine += change
        if self._map is not None:
            _SLOT.pack_into(self._map, self._at, os.getpid(), self._mine)

    def _claim(self, slots: mmap.mmap) -> int:
        """The offset of a slot that nobody has, or whose process is no more."""
        for number, (pid, _count) in enumerate(_SLOT.iter_unpack(slots[:])):
            if not pid or not _lives(pid):
                _SLOT.pack_into(slots, number * _SLOT.size, os.getpid(), 0)
                return number * _SLOT.size
        raise RuntimeError(f"more than {SLOTS} processes share one server")


def shared_file(workers: int) -> Path | None:
    """Where the processes that this one's parent has started keep their counts; None for a process by itself."""
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    return Path(folder) / f"requests-{os.getppid()}" if workers > 1 and folder else None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
