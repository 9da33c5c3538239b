"""Two other wire formats that litellm translates: Ollama's on loopback, Anthropic's through respx."""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
import respx

from advisor.answer import Answer
from advisor.llm import breaker, client
from advisor.llm.door import open_model
from advisor.settings import Settings
from advisor.store import SqliteConversations
from advisor.turn import Desk, answer

pytestmark = [
    pytest.mark.skipif(find_spec("litellm") is None, reason="the llm extra is not installed"),
    pytest.mark.filterwarnings("default"),  # litellm's own deprecations are not ours to fail on
]
ARGUMENTS = {"model": "meta-llama/Llama-3.1-70B"}


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Answer]]:
    monkeypatch.setattr(breaker, "BREAKERS", {})

    def go(model: str) -> Answer:
        settings = Settings(model=model)
        desk = Desk(settings, SqliteConversations(tmp_path / "a.db"), lambda name: open_model(name, settings))
        return answer("does a 70B fit?", desk=desk)

    yield go
    cache = client.load_litellm().in_memory_llm_clients_cache
    for kept in list(cache.cache_dict.values()):
        if not inspect.iscoroutinefunction(getattr(kept, "close", None)):
            kept.close()
    cache.flush_cache()


class _Ollama(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: list[dict[str, Any]]

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.seen.append(body)
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        if body["messages"][-1]["role"] == "user":
            call = {"function": {"name": "toy_memory", "arguments": ARGUMENTS}}
            self._line({"message": {"role": "assistant", "content": "", "tool_calls": [call]}, "done": False})
        else:
            for piece in ("It needs [[t1.peak", "_per_gpu]]."):
                self._line({"message": {"role": "assistant", "content": piece}, "done": False})
        self._line({"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"})
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _line(self, data: dict[str, Any]) -> None:
        line = json.dumps({"model": "llama3.1", "created_at": "2026-01-01T00:00:00Z", **data}).encode() + b"\n"
        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        self.wfile.flush()


def test_a_local_ollama_model_answers(ask: Callable[[str], Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    _Ollama.seen = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Ollama)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    monkeypatch.setenv("OLLAMA_API_BASE", f"http://127.0.0.1:{server.server_port}")
    try:
        got = ask("ollama_chat/llama3.1")
    finally:
        server.shutdown()
        server.server_close()
    assert (got.model, got.degraded) == ("ollama_chat/llama3.1", False)
    assert got.answer.startswith("It needs 45.3 GB.")
    assert [message["role"] for message in _Ollama.seen[1]["messages"]] == ["system", "user", "assistant", "tool"]


def _sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def _anthropic(block: dict[str, Any], deltas: list[dict[str, Any]], stop: str) -> bytes:
    message = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "content": [], "stop_reason": None,
               "stop_sequence": None, "usage": {"input_tokens": 5, "output_tokens": 1}}  # fmt: skip
    return _sse(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    )


def test_anthropics_format_is_spoken_too(ask: Callable[[str], Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-canary")
    text = json.dumps(ARGUMENTS)
    pieces = [{"type": "input_json_delta", "partial_json": text[start : start + 9]} for start in range(0, len(text), 9)]
    calls = _anthropic({"type": "tool_use", "id": "toolu_1", "name": "toy_memory", "input": {}}, pieces, "tool_use")
    words = [{"type": "text_delta", "text": piece} for piece in ("It needs [[t1.", "peak_per_gpu]].")]
    says = _anthropic({"type": "text", "text": ""}, words, "end_turn")
    replies = [
        httpx.Response(200, content=body, headers={"content-type": "text/event-stream"}) for body in (calls, says)
    ]
    with respx.mock(assert_all_called=True) as router:
        route = router.post("https://api.anthropic.com/v1/messages").mock(side_effect=replies)
        got = ask("anthropic/claude-sonnet-4-20250514")
    assert (got.model, got.degraded) == ("anthropic/claude-sonnet-4-20250514", False)
    assert got.answer.startswith("It needs 45.3 GB.")
    second = json.loads(route.calls[1].request.content)
    assert second["system"]
    assert second["messages"][-1]["content"][0]["tool_use_id"] == "toolu_1"
    assert "canary" not in json.dumps(got.as_json())
