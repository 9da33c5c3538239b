"""Who writes next to a SQLite file, among the threads and processes that share it.

SQLite lets one write and the others sleep, for up to a tenth of a second a try, so that under load a few wait long
while the file is idle. Here they queue on a file of their own beside it and are awake within a millisecond. It is a
courtesy only: SQLite's own lock guards the data, and whoever cannot queue, or has queued long enough, goes to it
directly.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

LONGEST_SECONDS = 0.5  # in the queue; a process that was stopped while it wrote must not hold up the others
_LOOK_SECONDS = 0.0003


class WriteQueue:
    """The queue of one database file; ``path`` is that file's."""

    def __init__(self, path: str) -> None:
        self._threads = threading.Lock()
        self._file: int | None = None
        with suppress(OSError):  # a read-only place: no queue
            self._file = os.open(f"{path}-queue", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Entered when it is this thread's turn, or after ``LONGEST_SECONDS`` whoever's it is."""
        until = time.monotonic() + LONGEST_SECONDS
        first = self._threads.acquire(timeout=LONGEST_SECONDS)
        alone = first and self._alone(until)
        try:
            yield
        finally:
            if alone and self._file is not None:
                with suppress(OSError):  # closed meanwhile
                    fcntl.flock(self._file, fcntl.LOCK_UN)
            if first:
                self._threads.release()

    def close(self) -> None:
        """Leave the queue for good."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _alone(self, until: float) -> bool:
        """Whether no other process is writing, once that is so."""
        while (file := self._file) is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                pass  # another process is writing
            except OSError:  # closed meanwhile, or a file system without locks: there is no queue
                break
            if time.monotonic() >= until:
                break
            time.sleep(_LOOK_SECONDS)
        return False
