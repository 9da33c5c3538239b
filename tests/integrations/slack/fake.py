"""A Slack of our own on loopback: the Web API methods that the bot calls, and a Socket Mode endpoint.

It keeps messages, refuses blocks that break a limit, and can be told to fail: ``faults`` maps a method to a list of
what its next calls do: an error code, ("429", seconds), "drop" (closes the connection without doing it), "lost" (does
it, then closes the connection without saying so), or a callable run once the call has been done.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import WSMsgType, web

from tests.integrations.slack.limits import problems

TEAM, BOT_USER, PERSON, CHANNEL, DM = "T0TEAM", "U0BOT", "U0ANN", "C0GENERAL", "D0ANN"
Fault = str | tuple[str, float] | Callable[[], None]


class FakeSlack:
    """Runs in a thread of its own."""

    def __init__(self) -> None:
        self.messages: dict[tuple[str, str], dict[str, Any]] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.faults: dict[str, list[Fault]] = defaultdict(list)
        self.acknowledged: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self.sockets: list[web.WebSocketResponse] = []
        self.no_streams = False
        self._clock = 1_000
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/"

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def next_ts(self) -> str:
        self._clock += 1
        return f"1700000000.{self._clock:06d}"

    def said(self, text: str, channel: str = CHANNEL, thread: str | None = None) -> dict[str, Any]:
        """A person's message, as kept."""
        ts = self.next_ts()
        message = {"ts": ts, "user": PERSON, "text": text, "thread_ts": thread or ts, "channel": channel}
        self.messages[(channel, ts)] = message
        return message

    def shown(self, thread: str, channel: str = CHANNEL) -> list[dict[str, Any]]:
        """The bot's messages in a thread."""
        own = [one for (place, _), one in self.messages.items() if place == channel and one["user"] == BOT_USER]
        return [one for one in own if one["thread_ts"] == thread]

    def called(self, method: str) -> list[dict[str, Any]]:
        return [body for name, body in self.calls if name == method]

    def push(self, payload: dict[str, Any]) -> None:
        """Send an envelope to one connected socket, as Slack does."""
        asyncio.run_coroutine_threadsafe(self.sockets[-1].send_json(payload), self._loop).result(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        app = web.Application()
        app.router.add_post("/api/{method}", self._call)
        app.router.add_get("/api/{method}", self._call)
        app.router.add_get("/socket", self._socket)
        self._runner = web.AppRunner(app)
        self._loop.run_until_complete(self._runner.setup())
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        self._loop.run_until_complete(site.start())
        self.port: int = self._runner.addresses[0][1]
        self._ready.set()
        self._loop.run_forever()
        self._loop.close()

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.sockets.append(socket)
        await socket.send_json({"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A0"}})
        async for message in socket:
            if message.type == WSMsgType.TEXT:
                self.acknowledged.append(json.loads(message.data))
        return socket

    async def _call(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        body = await self._body(request)
        self.calls.append((method, body))
        fault = self.faults[method].pop(0) if self.faults[method] else None
        if isinstance(fault, tuple):
            return web.json_response(
                {"ok": False, "error": "ratelimited"}, status=429, headers={"Retry-After": f"{fault[1]:g}"}
            )
        if fault == "drop":
            process = getattr(fault, "process", None)  # a caller that dies before anything is done
            if process is not None:
                process.kill()
            return self._cut(request)
        if isinstance(fault, str) and fault != "lost":
            return web.json_response({"ok": False, "error": fault})
        result = getattr(self, f"_do_{method.replace('.', '_')}", lambda given: {})(body)
        if callable(fault):
            fault()
        if fault is not None:
            return self._cut(request)
        return web.json_response({"ok": "error" not in result, **result})

    @staticmethod
    def _cut(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    @staticmethod
    async def _body(request: web.Request) -> dict[str, Any]:
        if request.method == "GET":
            return dict(request.query)
        raw = (await request.read()).decode()
        if request.content_type == "application/json":
            return dict(json.loads(raw or "{}"))
        found: dict[str, Any] = dict(parse_qsl(raw, keep_blank_values=True))
        for key, value in found.items():
            if value[:1] in "[{":
                found[key] = json.loads(value)
        return found

    def _checked(self, blocks: list[dict[str, Any]] | None, most: int = 50) -> dict[str, Any] | None:
        found = problems(blocks or [], most)
        self.refused += found
        return {"error": "invalid_blocks"} if found else None

    def _do_auth_test(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"user_id": BOT_USER, "team_id": TEAM, "bot_id": "B0", "user": "advisor", "url": self.url}

    def _do_apps_connections_open(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"url": f"ws://127.0.0.1:{self.port}/socket"}

    def _do_conversations_open(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"channel": {"id": DM}}

    def _new(self, body: dict[str, Any], **more: Any) -> dict[str, Any]:
        ts = self.next_ts()
        thread = body.get("thread_ts") or ts
        self.messages[(body["channel"], ts)] = {
            "ts": ts, "user": BOT_USER, "text": body.get("text", ""), "thread_ts": thread,
            "channel": body["channel"], "metadata": body.get("metadata"), "blocks": body.get("blocks"), **more,
        }  # fmt: skip
        return {"ts": ts, "channel": body["channel"]}

    def _do_chat_postMessage(self, body: dict[str, Any]) -> dict[str, Any]:
        return self._checked(body.get("blocks")) or self._new(body)

    def _do_chat_startStream(self, body: dict[str, Any]) -> dict[str, Any]:
        if self.no_streams:
            return {"error": "unknown_method"}
        return self._new(body, streaming=True, began=time.monotonic())

    def _do_chat_appendStream(self, body: dict[str, Any]) -> dict[str, Any]:
        message = self.messages.get((body["channel"], body["ts"]))
        if not message or not message.get("streaming"):
            return {"error": "message_not_in_streaming_state"}
        message.setdefault("chunks", []).extend(body.get("chunks") or [])
        return {"ts": body["ts"]}

    def _do_chat_stopStream(self, body: dict[str, Any]) -> dict[str, Any]:
        message = self.messages.get((body["channel"], body["ts"]))
        if not message or not message.get("streaming"):
            return {"error": "message_not_in_streaming_state"}
        refusal = self._checked(body.get("blocks"))
        if not refusal:
            message.update(streaming=False, blocks=body.get("blocks"))
        return refusal or {"ts": body["ts"]}

    def _do_chat_update(self, body: dict[str, Any]) -> dict[str, Any]:
        message = self.messages.get((body["channel"], body["ts"]))
        if not message:
            return {"error": "message_not_found"}
        refusal = self._checked(body.get("blocks"))
        if not refusal:
            message.update(streaming=False, text=body.get("text", ""), blocks=body.get("blocks"))
        return refusal or {"ts": body["ts"]}

    def _do_conversations_replies(self, body: dict[str, Any]) -> dict[str, Any]:
        found = [one for (place, _), one in self.messages.items() if place == body["channel"]]
        found = [one for one in found if one["thread_ts"] == body["ts"]]
        return {"messages": sorted(found, key=lambda one: one["ts"])}

    def _do_views_open(self, body: dict[str, Any]) -> dict[str, Any]:
        return self._checked(body["view"]["blocks"], 100) or {"view": {"id": "V1"}}

    def _do_views_publish(self, body: dict[str, Any]) -> dict[str, Any]:
        return self._checked(body["view"]["blocks"], 100) or {"view": {"id": "V1"}}
