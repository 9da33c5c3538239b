"""Any provider's model through litellm: deadlines, one retry loop, streamed deltas folded, errors in our words.

litellm is imported inside a function here and nowhere else: it costs seconds of CPU and 200 MB, and at import would
fetch a price map from the network. Retries multiply between SDK, litellm and router, so theirs are off. Its timeout
is a read's, not a call's: a server that drips never times out, so the stream is read in a thread of its own and this
file watches the clock.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import queue
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import FrameType
from typing import Any

from advisor.llm.breaker import breaker_of
from advisor.llm.protocol import Finish, ModelEvent, ModelFailed, ModelRequest, TextDelta, Usage
from advisor.llm.provider_errors import is_overflow, judge, was_refused
from advisor.llm.stream import CallFolder, MarkReader, readable, whole_call
from advisor.llm.wire import this_turn, wire_messages, wire_tool
from advisor.settings import Settings

log = logging.getLogger("advisor")
CONNECT_SECONDS = 5.0
POLL_SECONDS = 0.1  # how often a silent call looks whether anybody still waits
MAX_TEXT_CHARS = 100_000
MOST_WAITING = 1000  # pieces of a reply that are read ahead of the turn
MOST_TOKENS = 100_000_000  # a call that claims more is taken at this


class LitellmModel:
    """A provider's model by its litellm name, e.g. ``anthropic/claude-sonnet-4`` or ``ollama_chat/llama3.1``."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self._settings = settings
        self._litellm = load_litellm()

    def reply(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """See ``Model.reply``: the provider's step as it streams, tried again as the settings say. Raises ModelFailed,
        also while the breaker leaves the model alone.
        """
        breaker = breaker_of(self.name)
        breaker.check()
        try:
            yield from self._with_retries(request)
        except ModelFailed as failure:
            if failure.code in ("timeout", "unavailable", "rate_limited"):
                breaker.failed()
            raise
        breaker.worked()

    def _with_retries(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """The only retry loop: before anything was passed on, for what may pass by itself, within the deadline."""
        messages = wire_messages(request.system(), request.messages)
        stream, free, lost = True, True, Usage()
        attempt = 0
        while True:
            passed_on = False
            begun = time.monotonic()
            try:
                for event in self._once(messages, request, stream):
                    passed_on = True
                    yield _with_lost(event, lost)
                return
            except _LostReply as reply:
                if not stream:
                    raise ModelFailed("bad_reply", f"{self.name} gave no usable reply.") from None
                stream = False  # tool calls vanish from streams (litellm 36262, 25561, 6135): ask once without
                free, lost = False, reply.usage
                continue
            except ModelFailed:
                raise
            except Exception as error:
                failure, wait = judge(self.name, error, attempt)
                free = free and not passed_on and (failure.code == "misconfigured" or was_refused(error))
                failure.free = free
                if time.monotonic() - begun >= self._settings.first_token_seconds:
                    wait = None  # who was silent for so long once is not waited for a second time
                if is_overflow(error) and len(messages) > 2 and messages[1] != this_turn(messages)[0]:
                    messages = [messages[0], *this_turn(messages)]  # the earlier conversation does not fit
                    continue
                if wait is None or passed_on or attempt >= self._settings.retries:
                    raise failure from None
                if time.monotonic() + wait >= request.deadline:
                    raise failure from None
                log.info("%s: %s, trying again in %.1f s", self.name, failure.code, wait)
                _sleep(wait, request.stopped)
                attempt += 1

    def _once(self, messages: list[dict[str, Any]], request: ModelRequest, stream: bool) -> Iterator[ModelEvent]:
        arguments: dict[str, Any] = {
            "model": self.name,
            "messages": messages,
            "stream": stream,
            "timeout": max(self._settings.first_token_seconds, self._settings.idle_seconds),
            "max_retries": 0,
            "num_retries": 0,
            "max_tokens": request.max_output_tokens,
        }
        if stream:
            arguments["stream_options"] = {"include_usage": True}
        if request.tools:
            arguments["tools"] = [wire_tool(tool) for tool in request.tools]
            if not request.allow_tools:
                arguments["tool_choice"] = "none"

        def call() -> Any:
            try:
                return self._litellm.completion(**arguments)
            except self._litellm.UnsupportedParamsError:
                arguments.pop("tool_choice", None)  # the loop refuses calls by itself
                return self._litellm.completion(**arguments)

        return self._streamed(call, request) if stream else self._whole(call, request)

    def _streamed(self, call: Callable[[], Any], request: ModelRequest) -> Iterator[ModelEvent]:
        calls, marks = CallFolder(), MarkReader()
        finish, usage, text = None, Usage(), ""
        for chunk in self._watched(call, request, stream=True):
            usage = _usage(chunk, usage)
            choice = next(iter(getattr(chunk, "choices", None) or ()), None)
            if choice is None:
                continue
            delta = choice.delta
            piece = readable(getattr(delta, "content", None) or "")
            if piece:
                text += piece
                if len(text) > MAX_TEXT_CHARS:
                    raise ModelFailed("bad_reply", f"{self.name} would not stop.")
                ready = marks.feed(piece)
                if ready:
                    yield TextDelta(ready)
            calls.feed([_plain(item) for item in getattr(delta, "tool_calls", None) or ()])
            finish = choice.finish_reason or finish
        found = calls.calls()
        if finish == "content_filter":
            raise ModelFailed("refused", f"{self.name} was stopped by its provider's filter.")
        if not found and (finish == "tool_calls" or not text.strip()):
            raise _LostReply(usage)
        if finish == _CUT:
            raise ModelFailed("unavailable", f"{self.name} broke off in the middle.")
        if not found:
            rest = marks.rest()
            if rest:
                yield TextDelta(rest)
        yield from found
        yield _finish(finish, bool(found), marks.status, usage)

    def _whole(self, call: Callable[[], Any], request: ModelRequest) -> Iterator[ModelEvent]:
        reply = next(iter(self._watched(call, request, stream=False)))
        choice = next(iter(getattr(reply, "choices", None) or ()), None)
        usage = _usage(reply, Usage())
        if choice is None:
            raise _LostReply(usage)
        if choice.finish_reason == "content_filter":
            raise ModelFailed("refused", f"{self.name} was stopped by its provider's filter.")
        message = choice.message
        found = [
            whole_call(item.id or f"call_{number}", item.function.name or "", item.function.arguments or "")
            for number, item in enumerate(getattr(message, "tool_calls", None) or ())
        ]
        marks = MarkReader()
        text = marks.feed(readable(message.content or "")[:MAX_TEXT_CHARS]) + marks.rest()
        if not found and not text.strip():
            raise _LostReply(usage)
        if not found:
            yield TextDelta(text)
        yield from found
        yield _finish(choice.finish_reason, bool(found), marks.status, usage)

    def _watched(self, call: Callable[[], Any], request: ModelRequest, stream: bool) -> Iterator[Any]:
        """The reply's chunks, read in a thread of their own; ModelFailed when one is late or nobody waits any more."""
        chunks: queue.Queue[tuple[str, Any]] = queue.Queue(maxsize=MOST_WAITING)
        left = threading.Event()
        over = False

        def read() -> None:
            reply: Any = None
            try:
                reply = call()
                for chunk in reply if stream else (reply,):
                    if not _offer(chunks, ("chunk", chunk), left):
                        return
                if stream and getattr(reply, "received_finish_reason", _CUT) is None:
                    _offer(chunks, ("chunk", _CutChunk()), left)  # litellm makes up a "stop" for a stream that was cut
                _offer(chunks, ("end", None), left)
            except BaseException as error:
                _offer(chunks, ("error", error), left)
            finally:
                _close(reply)

        reader = threading.Thread(target=read, daemon=True, name="advisor-model")
        reader.start()
        patience = self._settings.first_token_seconds + CONNECT_SECONDS
        try:
            while True:
                until = min(time.monotonic() + patience, request.deadline)
                while True:
                    if request.stopped():
                        raise ModelFailed("stopped", "Nobody waits for the answer any more.")
                    left_seconds = until - time.monotonic()
                    try:
                        kind, value = chunks.get(timeout=max(0.0, min(left_seconds, POLL_SECONDS)))
                        break
                    except queue.Empty:
                        if left_seconds <= 0:
                            raise ModelFailed("timeout", f"{self.name} did not answer in time.") from None
                if time.monotonic() > request.deadline:
                    raise ModelFailed("timeout", f"{self.name} was not done in time.")  # a drip never falls silent
                if kind == "error":
                    raise value
                if kind == "end":
                    over = True  # the connection may serve another call
                    return
                patience = self._settings.idle_seconds
                yield value
        finally:
            left.set()
            if not over:
                threading.Thread(target=_hang_up_on, args=(reader,), daemon=True, name="advisor-hang-up").start()


def load_litellm() -> Any:
    """litellm, set up to stay quiet and off the network. Raises ModelFailed when it is not installed."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOG", "ERROR")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import litellm  # the one import of it: seconds of CPU, so only when a provider is asked
    except ModuleNotFoundError:
        raise ModelFailed("missing", "litellm is not installed.") from None
    # Its types are built on first use and make pydantic warn about a qualifier; nothing that a user could mend.
    warnings.filterwarnings("ignore", message=".*`ReadOnly` qualifier.*", category=UserWarning)
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.drop_params = False
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # their messages may hold keys
    return litellm


def price_of(name: str) -> tuple[float, float] | None:
    """USD per input and per output token as litellm's own list has them; None where it does not."""
    try:
        found = load_litellm().model_cost
    except ModelFailed:
        return None
    entry = found.get(name) or found.get(name.partition("/")[2]) or {}
    taken, given = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
    return None if taken is None or given is None else (float(taken), float(given))


def warm_up() -> None:
    """Import litellm in the background, so that a server's first question does not pay for it."""
    threading.Thread(target=lambda: _quietly(load_litellm), daemon=True, name="advisor-warm-up").start()


_CUT = "cut"


class _LostReply(Exception):
    """The step ended with neither text nor a call; it cost ``usage`` all the same."""

    def __init__(self, usage: Usage) -> None:
        super().__init__()
        self.usage = usage


class _CutChunk:
    """Stands for the end of a stream that gave no finish reason."""

    class _Choice:
        delta = None
        finish_reason = _CUT

    choices = (_Choice,)


def _finish(reason: str | None, calls: bool, status: Any, usage: Usage) -> Finish:
    if calls:
        return Finish(reason="tool_calls", usage=usage)
    return Finish(status, "length" if reason == "length" else "stop", usage)


def _usage(chunk: Any, before: Usage) -> Usage:
    usage = getattr(chunk, "usage", None)
    if usage is None:
        return before
    return Usage(_count(getattr(usage, "prompt_tokens", 0)), _count(getattr(usage, "completion_tokens", 0)))


def _count(tokens: Any) -> int:
    """A number of tokens as a provider says it, which may be anything."""
    return min(max(int(tokens), 0), MOST_TOKENS) if isinstance(tokens, (int, float)) and tokens == tokens else 0


def _with_lost(event: ModelEvent, lost: Usage) -> ModelEvent:
    """The end of a step with what the attempt before it cost."""
    if not isinstance(event, Finish):
        return event
    usage = event.usage
    return replace(
        event,
        usage=Usage(usage.input_tokens + lost.input_tokens, usage.output_tokens + lost.output_tokens),
    )


def _plain(delta: Any) -> Mapping[str, Any]:
    data: Mapping[str, Any] = delta if isinstance(delta, dict) else delta.model_dump()
    return data


def _offer(chunks: queue.Queue[tuple[str, Any]], item: tuple[str, Any], left: threading.Event) -> bool:
    """Hand ``item`` on, however slowly it is taken; False once nobody takes any more."""
    while not left.is_set():
        with contextlib.suppress(queue.Full):
            chunks.put(item, timeout=POLL_SECONDS)
            return True
    return False


def _close(reply: Any) -> None:
    """Hang up on a stream, so that a provider stops writing (and billing) what nobody reads."""
    close = getattr(getattr(reply, "completion_stream", None), "close", None)
    if close:
        with contextlib.suppress(Exception):
            close()


def _hang_up_on(reader: threading.Thread) -> None:
    """Close the connection that a thread reads from, which wakes it at once; a provider then stops writing and billing.

    Before the first word litellm has returned nothing that could be closed, so the connection is taken from where the
    thread waits; until it waits there, it is looked for again. Where the HTTP library comes to name it differently, the
    read ends by its own timeout.
    """
    while reader.is_alive():
        frame = _frame_of(reader)
        while frame is not None:
            network = getattr(frame.f_locals.get("self"), "_network_stream", None)
            if network is not None:
                with contextlib.suppress(Exception):
                    network.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
            frame = frame.f_back
        reader.join(POLL_SECONDS)


def _frame_of(thread: threading.Thread) -> FrameType | None:
    """Where a thread is. Without the collector meanwhile: what it runs may hand over the interpreter while the list of
    threads is locked, and whoever then starts or ends a thread stops the whole process (CPython gh-106883).
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames().get(thread.ident or 0)
    finally:
        if collects:
            gc.enable()


def _sleep(seconds: float, stopped: Callable[[], bool]) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and not stopped():
        time.sleep(max(0.0, min(POLL_SECONDS, until - time.monotonic())))


def _quietly(work: Callable[[], Any]) -> None:
    try:
        work()
    except Exception as error:  # whoever asks a provider will hear of it; this was only meant to save time
        log.info("litellm was not imported beforehand: %s", type(error).__name__)
