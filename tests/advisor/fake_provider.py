"""A scripted provider that speaks the chat-completions format on loopback, streaming and not, with faults."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Move = Callable[["Handler"], None]


class Provider:
    """Plays one move a request; the last move repeats. ``requests`` holds what was asked."""

    def __init__(self, *moves: Move) -> None:
        self.moves = list(moves)
        self.requests: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.open = 0  # connections that callers hold
        self.lock = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.provider = self  # type: ignore[attr-defined]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def play(self, *moves: Move) -> None:
        """Begin anew with these moves."""
        self.moves, self.requests, self.times = list(moves), [], []

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self._count(1)

    def finish(self) -> None:
        with contextlib.suppress(OSError):
            super().finish()
        self._count(-1)

    def _count(self, change: int) -> None:
        provider: Provider = self.server.provider  # type: ignore[attr-defined]
        with provider.lock:
            provider.open += change

    def do_POST(self) -> None:
        provider: Provider = self.server.provider  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with provider.lock:
            provider.requests.append(body)
            provider.times.append(time.monotonic())
            move = provider.moves.pop(0) if len(provider.moves) > 1 else provider.moves[0]
        self.streaming = bool(body.get("stream"))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            move(self)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def start_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def raw(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def chunk(self, delta: dict[str, Any], finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        body = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        self.raw(b"data: " + json.dumps(body).encode() + b"\n\n")

    def end_stream(self) -> None:
        self.raw(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def text(*pieces: str, finish: str = "stop", pause: float = 0.0) -> Move:
    """The pieces as a stream, or as one body when none is asked for."""

    def move(handler: Handler) -> None:
        if not handler.streaming:
            message = {"role": "assistant", "content": "".join(pieces)}
            handler.json(200, _body(message, finish))
            return
        handler.start_stream()
        handler.chunk({"role": "assistant", "content": ""})
        for piece in pieces:
            handler.chunk({"content": piece})
            time.sleep(pause)
        handler.chunk({}, finish)
        handler.end_stream()

    return move


def tools(*calls: tuple[str, str], split: int = 7, ids: bool = True) -> Move:
    """Tool calls with their argument text in pieces, the calls' deltas interleaved."""

    def move(handler: Handler) -> None:
        whole = [
            {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for number, (name, arguments) in enumerate(calls)
        ]
        if not handler.streaming:
            handler.json(200, _body({"role": "assistant", "content": None, "tool_calls": whole}, "tool_calls"))
            return
        handler.start_stream()
        for number, (name, _arguments) in enumerate(calls):
            first: dict[str, Any] = {"index": number, "type": "function", "function": {"name": name, "arguments": ""}}
            if ids:
                first["id"] = f"call_{number}"
            handler.chunk({"tool_calls": [first]})
        longest = max(len(arguments) for _name, arguments in calls)
        for start in range(0, longest, split):
            for number, (_name, arguments) in enumerate(calls):
                piece = arguments[start : start + split]
                if piece:
                    handler.chunk({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
        handler.chunk({}, "tool_calls")
        handler.end_stream()

    return move


def lost_call(handler: Handler) -> None:
    """Says that it calls tools, and calls none."""
    if handler.streaming:
        handler.start_stream()
        handler.chunk({"role": "assistant", "content": ""})
        handler.chunk({}, "tool_calls")
        handler.end_stream()
    else:
        handler.json(200, _body({"role": "assistant", "content": None}, "tool_calls"))


def status(code: int, headers: dict[str, str] | None = None, message: str = "no sk-canary-123") -> Move:
    def move(handler: Handler) -> None:
        handler.json(code, {"error": {"message": message, "type": "x", "code": None}}, headers)

    return move


def stall(handler: Handler) -> None:
    """Takes the request and says nothing."""
    time.sleep(6)


def drip(handler: Handler) -> None:
    """A piece of text now and then, for ever."""
    handler.start_stream()
    for number in range(100):
        handler.chunk({"content": f"word{'s' * (number % 2)} "})
        time.sleep(0.1)


def cut(handler: Handler) -> None:
    """Half an answer, then the connection is gone."""
    handler.start_stream()
    handler.chunk({"role": "assistant", "content": "It needs "})
    handler.wfile.flush()
    handler.close_connection = True
    handler.connection.close()


def cut_politely(handler: Handler) -> None:
    """Half an answer and the end of the body, with neither finish reason nor [DONE]."""
    handler.start_stream()
    handler.chunk({"role": "assistant", "content": "It needs "})
    handler.wfile.write(b"0\r\n\r\n")
    handler.wfile.flush()


def _body(message: dict[str, Any], finish: str) -> dict[str, Any]:
    return {
        "id": "x", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }  # fmt: skip
