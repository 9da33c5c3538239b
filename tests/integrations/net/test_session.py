"""The guarded session: what it refuses, where it stops, and how it waits."""

from __future__ import annotations

import gzip
import zlib

import httpx
import pytest
import respx

from integrations.net import NotModified, Policy, Session, SourceError
from integrations.net.session import Clock

HOST = "prices.example.com"
HOSTS = {HOST: (r"/v1/[a-z]+",)}


class FakeClock:
    """Time that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def clock(self) -> Clock:
        return Clock(monotonic=lambda: self.now, sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def _session(fake: FakeClock | None = None, etags: dict[str, str] | None = None, **policy: object) -> Session:
    limits = Policy(hosts=HOSTS, **policy)  # type: ignore[arg-type]
    return Session(limits, clock=(fake or FakeClock()).clock(), etags=etags)


def _code(session: Session, path: str = "/v1/list", host: str = HOST) -> str:
    with session, pytest.raises(SourceError) as problem:
        session.json(host, path)
    return problem.value.code


@respx.mock
def test_a_plain_reply_is_read_as_json() -> None:
    respx.get(f"https://{HOST}/v1/list").respond(json={"a": 1})
    with _session() as session:
        assert session.json(HOST, "/v1/list") == {"a": 1}


@pytest.mark.parametrize(
    ("host", "path"),
    [
        ("evil.example.com", "/v1/list"),
        (f"{HOST}.evil.com", "/v1/list"),
        (f"{HOST}@evil.com", "/v1/list"),
        (f"{HOST}:8080", "/v1/list"),
        ("169.254.169.254", "/latest/meta-data"),
        ("localhost", "/v1/list"),
        (HOST, "/v2/list"),
        (HOST, "/v1/list/../../admin"),
        (HOST, "/v1/LIST"),
        (HOST, "/v1/list?x=1"),
        (HOST, "//evil.com/v1/list"),
        (HOST, "/v1/list\r\nHost: evil.com"),
    ],
)
@respx.mock(assert_all_called=False)
def test_hosts_and_paths_outside_the_table_are_never_asked(host: str, path: str, respx_mock: respx.MockRouter) -> None:
    respx_mock.route().respond(json={})
    assert _code(_session(), path, host) == "not_allowed"
    assert not respx_mock.calls


@pytest.mark.parametrize(
    "base", ["http://evil.com", "ftp://x", "file:///etc/passwd", "http://10.0.0.1", "http://127.0.0.1.evil.com"]
)
def test_an_operators_base_must_be_https_or_this_machine(base: str) -> None:
    assert _code(_session(elsewhere={HOST: base})) == "not_allowed"


@respx.mock
@pytest.mark.parametrize("where", ["https://evil.com/", "http://169.254.169.254/", f"https://{HOST}/v1/other", ""])
def test_redirects_are_not_followed(where: str) -> None:
    route = respx.route().respond(302, headers={"location": where})
    assert _code(_session()) == "redirected"
    assert route.call_count == 1


@respx.mock
def test_a_body_beyond_the_cap_is_cut_off() -> None:
    respx.route().respond(content=b"x" * 5000)
    assert _code(_session(max_body_bytes=1000)) == "too_large"


@respx.mock
def test_a_small_body_that_inflates_without_end_is_cut_off() -> None:
    bomb = gzip.compress(b"0" * 5_000_000)
    assert len(bomb) < 10_000
    respx.route().respond(content=bomb, headers={"content-encoding": "gzip"})
    assert _code(_session(max_inflated_bytes=100_000)) == "too_large"


@respx.mock
def test_gzip_is_inflated_and_other_encodings_are_refused() -> None:
    respx.route().respond(content=gzip.compress(b'{"a": 2}'), headers={"content-encoding": "gzip"})
    with _session() as session:
        assert session.json(HOST, "/v1/list") == {"a": 2}
    respx.route().respond(content=zlib.compress(b"{}"), headers={"content-encoding": "deflate"})
    assert _code(_session()) == "not_allowed"


@respx.mock
@pytest.mark.parametrize(
    ("body", "headers", "code"),
    [
        (b'{"items": [1, 2', {}, "truncated"),
        (b"<html>Just a moment...</html>", {}, "not_json"),
        (b"", {}, "not_json"),
        (b'{"price": NaN}', {}, "truncated"),
        (b'{"price": Infinity}', {}, "truncated"),
        (b"[" * 100_000, {}, "truncated"),
        (gzip.compress(b'{"a": 1}')[:-6], {"content-encoding": "gzip"}, "truncated"),
    ],
)
def test_replies_that_are_not_whole_json(body: bytes, headers: dict[str, str], code: str) -> None:
    respx.route().respond(content=body, headers=headers)
    assert _code(_session()) == code


@respx.mock
@pytest.mark.parametrize("status", [400, 401, 403, 404, 500])
def test_an_error_status_is_an_error(status: int) -> None:
    respx.route().respond(status, json={"a": 1})
    assert _code(_session()) == "bad_status"


@respx.mock
def test_retry_after_is_waited_out_and_the_reply_used() -> None:
    respx.route().mock(
        side_effect=[
            httpx.Response(429, headers={"retry-after": "7"}),
            httpx.Response(503),
            httpx.Response(200, json=[1]),
        ]
    )
    fake = FakeClock()
    with _session(fake) as session:
        assert session.json(HOST, "/v1/list") == [1]
    assert fake.slept == [7.0, 1.0]  # the second wait is ours: half a second, doubled


@respx.mock
def test_a_wait_beyond_the_deadline_fails_at_once() -> None:
    route = respx.route().respond(429, headers={"retry-after": "3600"})
    fake = FakeClock()
    assert _code(_session(fake, deadline_seconds=20)) == "bad_status"
    assert (route.call_count, fake.slept) == (1, [])


@respx.mock
def test_the_deadline_is_for_all_requests_together() -> None:
    respx.route().respond(json={})
    fake = FakeClock()
    with _session(fake, deadline_seconds=10) as session:
        session.json(HOST, "/v1/list")
        fake.now += 11
        with pytest.raises(SourceError) as problem:
            session.json(HOST, "/v1/list")
    assert problem.value.code == "timeout"


@respx.mock
def test_a_silent_server_is_a_timeout_and_a_dead_one_unreachable() -> None:
    respx.route().mock(side_effect=httpx.ReadTimeout("slow"))
    assert _code(_session()) == "timeout"
    respx.route().mock(side_effect=httpx.ConnectError("refused"))
    assert _code(_session()) == "unreachable"


@respx.mock
def test_an_etag_is_sent_and_not_modified_is_said() -> None:
    url = f"https://{HOST}/v1/list"
    respx.get(url).respond(json={}, headers={"etag": '"abc"'})
    with _session() as session:
        session.json(HOST, "/v1/list", etag=True)
        assert session.etags_seen == {url: '"abc"'}
    route = respx.get(url).respond(304)
    with _session(etags={url: '"abc"'}) as session, pytest.raises(NotModified):
        session.json(HOST, "/v1/list", etag=True)
    assert route.calls.last.request.headers["if-none-match"] == '"abc"'


@respx.mock
def test_lines_come_as_they_arrive() -> None:
    respx.route().respond(content=b"a,b\n1,2\n3,4")
    with _session() as session:
        assert list(session.lines(HOST, "/v1/list")) == ["a,b\n", "1,2\n", "3,4"]
