"""Small inputs that grow (compressed replies, YAML aliases, deep JSON, archives) are refused early and cheaply."""

from __future__ import annotations

import gzip
import io
import json
import socket
import threading
import time
import tracemalloc
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from advisor.llm.stream import CallFolder, whole_call
from advisor.tool_batch import parse_arguments
from integrations.net import Policy, Session, SourceError
from integrations.prices.sources import gpuhunt_files
from knowledge.foreign import MAX_DEPTH, Refused, check_depth, read_json, read_yaml
from tests.integrations.http.conftest import Serve, _toy_tools  # noqa: F401
from tools.config.flatten import settings_of
from tools.errors import BadValue, InputProblem
from tools.registry import get_tool

HOST = "prices.example.com"
GIB = 1 << 30
MIB = 1 << 20


class GzipBomb:
    """A server on loopback whose every reply is one gigabyte of zeros, about a megabyte as sent."""

    def __init__(self) -> None:
        squeeze = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
        # A fully flushed piece stands alone, so that the same one may follow itself.
        piece = squeeze.compress(b"0" * (GIB // 64)) + squeeze.flush(zlib.Z_FULL_FLUSH)
        self.body = gzip.compress(b"")[:10] + piece * 64 + b"\x03\x00" + bytes(8)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        head = (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n"
            f"content-length: {len(self.body)}\r\n\r\n"
        )
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                try:
                    connection.sendall(head.encode() + self.body)
                except OSError:  # the reader hung up, as it should
                    continue


@pytest.fixture(scope="module")
def bomb() -> Iterator[GzipBomb]:
    made = GzipBomb()
    yield made
    made.listener.close()


@contextmanager
def holding_less_than(most: int) -> Iterator[None]:
    """What Python holds at once inside the block, whatever the process held before."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < most, f"{peak / MIB:.0f} MiB"


@pytest.mark.parametrize("how", ["whole", "in pieces", "by lines"])
def test_a_megabyte_that_inflates_to_a_gigabyte_is_cut_off(bomb: GzipBomb, how: str) -> None:
    """Under the caps that sources really have: what is held does not grow with what the body would become."""
    assert MIB * 0.9 < len(bomb.body) < 1.2 * MIB
    policy = Policy(hosts={HOST: ("/x",)}, elsewhere={HOST: f"http://127.0.0.1:{bomb.port}"})
    read: dict[str, Callable[[Session], object]] = {
        "whole": lambda session: session.json(HOST, "/x"),
        "in pieces": lambda session: deque(session.chunks(HOST, "/x"), maxlen=0),
        "by lines": lambda session: deque(session.lines(HOST, "/x"), maxlen=0),
    }
    begun = time.process_time()
    with holding_less_than(50 * MIB), Session(policy) as session, pytest.raises(SourceError) as refused:
        read[how](session)
    assert refused.value.code == "too_large"
    assert time.process_time() - begun < 2.0


def laughs(levels: int, flow: bool = True) -> str:
    """Nine aliases of nine aliases of …: a few hundred characters that stand for 9**levels values."""
    lines = ["a0: &a0 {x: 1, y: 2}" if not flow else '{"a0":&a0 {"x":1,"y":2}']
    for level in range(1, levels):
        inner = ",".join(f'"k{n}":*a{level - 1} ' for n in range(9))
        lines.append(f"a{level}: &a{level} {{{inner}}}" if not flow else f',"a{level}":&a{level} {{{inner}}}')
    return ("\n".join(lines) if not flow else "".join(lines) + "}") + "\n"


@pytest.mark.parametrize("text", [laughs(9, flow=False), laughs(9), "[" + laughs(9) + "]"])
def test_alias_bombs_are_refused_before_they_grow(text: str) -> None:
    for read in (read_yaml, settings_of):
        best = 1.0
        for _ in range(3):
            begun = time.process_time()
            with pytest.raises((Refused, BadValue)):
                read(text)  # type: ignore[operator]
            best = min(best, time.process_time() - begun)
        assert best < 0.010


def test_a_configuration_that_refers_to_itself_says_what_to_do() -> None:
    with pytest.raises(BadValue, match=r"anchor \(\*base\)"):
        get_tool("estimate_vram").call({"training_config": "base: &base {lora_r: 8}\nmine: *base\nmodel: llama-3.1-8b"})


DEEP = {
    "JSON lists": "[" * 100_000,
    "JSON objects": '{"a":' * 5_000 + "1" + "}" * 5_000,
    "YAML flow": "a: " + "[" * 30_000,
    "YAML block": "\n".join(" " * n + "a:" for n in range(300)),
    "YAML sequences": "- " * 20_000 + "x",
    "YAML keys": "? " * 20_000 + "x",
}


@pytest.mark.parametrize("name", DEEP)
def test_bottomless_nesting_is_an_error_in_words(name: str) -> None:
    begun = time.process_time()
    for text in (DEEP[name], "model: llama-3.1-8b\n" + DEEP[name]):
        if len(text) <= 64_000:
            with pytest.raises(BadValue):
                settings_of(text)
    with pytest.raises(BadValue):
        parse_arguments(DEEP[name])
    assert whole_call("id", "tool", DEEP[name]).unreadable is not None
    assert time.process_time() - begun < 0.5


def test_a_model_whose_arguments_never_end_is_told_so() -> None:
    folder = CallFolder()
    for piece in ('{"a":' * 3_000, "1", "}" * 3_000):
        folder.feed([{"index": 0, "id": "c", "function": {"name": "estimate_vram", "arguments": piece}}])
    (call,) = folder.calls()
    assert call.unreadable is not None


AMBIGUOUS = {
    "NaN": ('{"model": NaN}', "not_finite"),
    "Infinity": ('{"model": Infinity}', "not_finite"),
    "-Infinity": ('{"model": -Infinity}', "not_finite"),
    "1e999": ('{"n_gpus": 1e999}', "not_finite"),
    "-1e999": ('{"n_gpus": [-1e999]}', "not_finite"),
    "the same name twice": ('{"n_gpus": 1, "n_gpus": 64}', "repeated_key"),
    "twice inside": ('{"model": {"params_b": 7, "params_b": 700}}', "repeated_key"),
    "33 levels": ("[" * 33 + "1" + "]" * 33, "too_deep"),
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_json_that_readers_take_differently_is_refused_everywhere(name: str) -> None:
    text, code = AMBIGUOUS[name]
    with pytest.raises(Refused) as refused:
        read_json(text)
    assert refused.value.code == code
    with pytest.raises(BadValue):
        parse_arguments(text)
    with Session(Policy(hosts={})) as session, pytest.raises(SourceError):
        session.parse(text.encode())
    assert whole_call("id", "tool", text).unreadable == text
    if text.startswith("{"):
        with pytest.raises(BadValue, match="training configuration"):
            settings_of(text)


def test_ordinary_json_and_yaml_are_read_as_ever() -> None:
    nested: Any = 1
    for _ in range(MAX_DEPTH):
        nested = [nested]
    assert read_json(json.dumps(nested)) == nested
    assert read_json('{"a": 1e308, "b": [], "c": {"a": 2}}') == {"a": 1e308, "b": [], "c": {"a": 2}}
    check_depth({"a": [{"b": {}}]})
    assert read_yaml("a: 1\n---\nb: [1, 2]") == [{"a": 1}, {"b": [1, 2]}]
    # An anchor without a reference, a glob, starred text and Python's stars are no bombs.
    assert {one.key for one in settings_of("base: &base\n  lora_r: 8\nfiles: '*.json'")} == {"lora_r", "files"}
    assert settings_of("TrainingArguments(*args, per_device_train_batch_size=2, **more)")[0].value == 2
    assert settings_of("* lora_r=8\n* lora_alpha=16")[0].value == 8


@pytest.mark.parametrize("route", ["/v1/ask", "/v1/tools/toy_memory", "/v1/chat/completions", "/v1/feedback", "/mcp"])
def test_request_bodies_are_read_within_the_same_bounds(serve: Serve, route: str) -> None:
    client = serve().client
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    for body in (DEEP["JSON lists"], DEEP["JSON objects"], *(text for text, _code in AMBIGUOUS.values()), "\x00", "["):
        got = client.post(route, content=body.encode(), headers=headers)
        assert 400 <= got.status_code < 500, (body[:40], got.status_code)
        assert len(got.content) < 4_000


def test_a_zip_of_zeros_is_no_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    """A price archive whose one file inflates beyond the cap, which is lowered here to keep the test quick."""
    monkeypatch.setattr(gpuhunt_files, "MAX_CSV_BYTES", MIB)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("aws.csv", b"0" * (8 * MIB))
    with holding_less_than(4 * MIB), pytest.raises(SourceError):
        gpuhunt_files.parse({"aws": ("v1", out.getvalue())}, "2026-12-01")


def test_two_members_of_gzip_and_trailing_bytes_do_not_pass_the_cap() -> None:
    """A second member after the first is not read at all, so it cannot hide a bomb."""
    import respx

    policy = Policy(hosts={HOST: ("/x",)}, max_inflated_bytes=100_000)
    with respx.mock, Session(policy) as session:
        body = gzip.compress(b"{}") + gzip.compress(b"0" * 10_000_000)
        respx.route().respond(content=body, headers={"content-encoding": "gzip"})
        assert session.json(HOST, "/x") == {}


def test_an_error_repeats_little_of_what_was_typed() -> None:
    for arguments in ({"model": "x" * 100_000}, {"x" * 100_000: 1}, {"model": "7B", "region": "\u4e2d" * 900}):
        with pytest.raises(InputProblem) as refused:
            get_tool("estimate_run").call({"gpu": "H100", "tokens": "1B", **arguments})
        assert len(json.dumps(refused.value.as_dict(), ensure_ascii=False)) < 3_000
    with pytest.raises(InputProblem) as said:
        raise BadValue("x", "m" * 100_000, field="f" * 100_000, hint="h" * 100_000, candidates=["c" * 100_000])
    assert len(json.dumps(said.value.as_dict())) < 4_000
