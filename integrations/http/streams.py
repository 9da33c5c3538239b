"""Server-sent events: a response that ends its work within a moment of the reader going away."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

log = logging.getLogger("advisor.http")
READER_SECONDS = 30.0
HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}
PING = b": ping\n\n"


def sse(data: Any, event: str | None = None, number: int | None = None) -> bytes:
    """One server-sent event as UTF-8, with the blank line that ends it; ``data`` is made JSON unless it is text
    already, ``number`` becomes its id. Raises TypeError for what JSON cannot hold.
    """
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    head = (f"id: {number}\n" if number is not None else "") + (f"event: {event}\n" if event else "")
    return (head + "".join(f"data: {line}\n" for line in text.split("\n")) + "\n").encode()


class EventStream(Response):
    """Sends pieces as they come. The generator is cancelled, and so cleans up, as soon as the reader has gone.

    The wait for the disconnect runs beside the generator: one that is silent (a provider that stalls) would
    otherwise notice only when it next has something to say.
    """

    media_type = "text/event-stream"

    def __init__(self, pieces: AsyncIterator[bytes], reader_seconds: float = READER_SECONDS) -> None:
        self._pieces, self._reader_seconds = pieces, reader_seconds
        self.status_code = 200
        self.background = None
        self.init_headers(HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until done or until the reader has gone."""
        sending = asyncio.ensure_future(self._send(send))
        gone = asyncio.ensure_future(disconnected(receive))
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        except TimeoutError:
            log.warning("a reader took nothing for %g s, and is left", self._reader_seconds)
        finally:
            for task in (sending, gone):
                task.cancel()
            await asyncio.gather(sending, gone, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            async for piece in self._pieces:
                async with asyncio.timeout(self._reader_seconds):  # what is not read is held in memory meanwhile
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        finally:
            close = getattr(self._pieces, "aclose", None)
            if close is not None:
                await close()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def disconnected(receive: Receive) -> None:
    """Return once the reader has gone; the request's body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
