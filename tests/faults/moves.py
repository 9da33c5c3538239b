"""Faults of a provider beyond those of ``tests.advisor.fake_provider``: what is sent, or not, to one request.

A move that goes silent ends as soon as the caller has hung up, so that a caller who never does is seen.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import time
from typing import Any

from tests.advisor.fake_provider import Handler, Move

SILENT_SECONDS = 15.0
USAGE = {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}


def silence(handler: Handler) -> None:
    """Nothing more, until the caller hangs up."""
    handler.connection.settimeout(SILENT_SECONDS)
    with contextlib.suppress(OSError):
        handler.connection.recv(1)
    handler.close_connection = True


def stall(handler: Handler) -> None:
    """The request is taken; no status line comes."""
    silence(handler)


def headers_only(handler: Handler) -> None:
    handler.start_stream()
    silence(handler)


def begins(*pieces: str, then: Move = silence) -> Move:
    """Text as far as these pieces, then another fault."""

    def move(handler: Handler) -> None:
        handler.start_stream()
        for piece in pieces:
            handler.chunk({"role": "assistant", "content": piece})
        then(handler)

    return move


def drip(handler: Handler) -> None:
    """A word now and then, for as long as somebody listens; each well within the time between two."""
    until = time.monotonic() + SILENT_SECONDS
    handler.start_stream()
    while time.monotonic() < until:
        handler.chunk({"content": "word "})
        time.sleep(0.05)


def only_comments(handler: Handler) -> None:
    """Signs of life that carry nothing."""
    until = time.monotonic() + SILENT_SECONDS
    handler.start_stream()
    while time.monotonic() < until:
        handler.raw(b": keep-alive\n\n")
        time.sleep(0.05)


def events(*data: Any, kind: str = "text/event-stream", separator: bytes = b"\n\n", done: bool = True) -> Move:
    """Server-sent events with these payloads, objects or bytes as they are."""

    def move(handler: Handler) -> None:
        if not handler.streaming:
            handler.json(500, {"error": {"message": "only streams here"}})
            return
        handler.send_response(200)
        handler.send_header("content-type", kind)
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        for item in data:
            handler.raw(b"data: " + (item if isinstance(item, bytes) else json.dumps(item).encode()) + separator)
        if done:
            handler.raw(b"data: [DONE]" + separator)
        handler.wfile.write(b"0\r\n\r\n")

    return move


def delta(content: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """One chunk of a streamed reply."""
    body = {"content": content, **more} if content is not None else more
    choice = {"index": 0, "delta": body, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def call_delta(name: str, arguments: str, call_id: str = "call_0", index: int = 0) -> dict[str, Any]:
    """One chunk with a piece of a tool call."""
    function = {"name": name, "arguments": arguments}
    return delta(tool_calls=[{"index": index, "id": call_id, "type": "function", "function": function}])


def usage(**counts: int) -> dict[str, Any]:
    """The last chunk, which says what the call cost."""
    return {**delta(), "choices": [], "usage": {**USAGE, **counts}}


def whole(status: int, body: bytes, kind: str = "application/json") -> Move:
    """One body, whatever was asked for."""

    def move(handler: Handler) -> None:
        handler.send_response(status)
        handler.send_header("content-type", kind)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return move


def short_body(handler: Handler) -> None:
    """Fewer bytes than were promised."""
    handler.send_response(200)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"id": "x", "choices": [{"message"')
    handler.close_connection = True


def nonsense(handler: Handler) -> None:
    """No HTTP at all."""
    handler.wfile.write(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
    handler.close_connection = True


def reset(handler: Handler) -> None:
    """The connection is torn down without a word."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def flood(pieces: int, size: int) -> Move:
    """So many pieces of text of so many characters."""

    def move(handler: Handler) -> None:
        handler.start_stream()
        for _ in range(pieces):
            handler.chunk({"content": "a " * (size // 2)})
        handler.chunk({}, "stop")
        handler.end_stream()

    return move


def first_bytes(count: int, of: bytes) -> Move:
    """This response as far as ``count`` bytes, then the connection is gone."""

    def move(handler: Handler) -> None:
        handler.wfile.write(of[:count])
        handler.wfile.flush()
        handler.close_connection = True

    return move
