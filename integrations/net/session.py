"""One guarded HTTP session: known hosts and paths only, a total deadline, byte caps, no redirects off the host.

Nobody but an operator names a host: a caller picks a host from the table it was given and a path that the table
allows, and a connection goes to an address of the public Internet (``addresses``) or to the operator's own mirror.
Bodies are counted compressed and inflated while they arrive, so that neither a huge reply nor a small one that inflates
without end can fill the memory. Failures come out as one ``SourceError`` with a short code.
"""

from __future__ import annotations

import re
import ssl
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import httpx

from integrations.net.addresses import Forbidden, GuardedBackend
from knowledge.foreign import read_json

AGENT = "training-infrastructure-advisor/0.1"  # some price pages refuse clients without a name
MAX_RATIO, FREE_BYTES = 100, 1 << 20  # tables of prices shrink ten- to fiftyfold, zeros a thousandfold
RETRIED = frozenset({429, 500, 502, 503, 504})


class SourceError(Exception):
    """A source could not be read. ``code``: offline, not_allowed, timeout, unreachable, bad_status, redirected,
    too_large, truncated, not_json, drift or no_key.
    """

    def __init__(self, code: str, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


class NotModified(Exception):
    """The server says that nothing changed since the ETag that was sent."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits of one session."""

    hosts: Mapping[str, tuple[str, ...]]  # host -> patterns that a whole path must match
    deadline_seconds: float = 20.0
    max_body_bytes: int = 32_000_000  # as sent
    max_inflated_bytes: int = 128_000_000
    attempts: int = 3
    same_host_redirects: int = 0  # a renamed model's; never to another host, never to a path outside the table
    elsewhere: Mapping[str, str] = field(default_factory=dict)  # an operator's base URL in a host's place


@dataclass(frozen=True, slots=True)
class Clock:
    """Time as the session sees it; tests bring their own."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class Session:
    """Requests to a table of hosts under one deadline. Not for sharing between threads."""

    def __init__(
        self,
        policy: Policy,
        *,
        etags: Mapping[str, str] | None = None,
        client: httpx.Client | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.policy = policy
        self.clock = clock or Clock()
        self.etags_sent = dict(etags or {})
        self.etags_seen: dict[str, str] = {}
        self.requests = 0
        self._client = client or _guarded_client(policy)
        self._ends = self.clock.monotonic() + policy.deadline_seconds

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def json(self, host: str, path: str, **request: Any) -> Any:
        """The reply to a GET (or ``method``) as JSON. ``params``, ``headers``, ``body`` (sent as JSON). Raises
        SourceError, also for what is not whole JSON, and NotModified under an ETag.
        """
        return self.parse(self.content(host, path, **request))

    def parse(self, body: bytes) -> Any:
        """Bytes as JSON. Raises SourceError: "not_json" for a page of HTML, "truncated" for half a document and what
        else ``read_json`` refuses.
        """
        try:
            return read_json(body)
        except ValueError as err:
            start = body[:1].lstrip()
            code = "not_json" if start[:1] not in (b"{", b"[") else "truncated"
            raise SourceError(code, f"the reply is not whole JSON ({str(err)[:60]})") from None

    def text(self, host: str, path: str, **request: Any) -> str:
        """The reply as text, bytes that are no UTF-8 replaced; arguments and errors as of ``json``."""
        return self.content(host, path, **request).decode("utf-8", "replace")

    def content(self, host: str, path: str, **request: Any) -> bytes:
        """The whole body, inflated, within the policy's byte caps and deadline; arguments as of ``json``. Raises
        SourceError, whose ``code`` says why, and NotModified where an ETag that was sent still holds.
        """
        return b"".join(self.chunks(host, path, **request))

    def lines(self, host: str, path: str, **request: Any) -> Iterator[str]:
        """The body line by line as it arrives, for files too large to hold."""
        rest = b""
        for chunk in self.chunks(host, path, **request):
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                yield line.decode("utf-8", "replace") + "\n"
        if rest:
            yield rest.decode("utf-8", "replace")

    def chunks(
        self,
        host: str,
        path: str,
        *,
        method: str = "GET",
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        content: str | None = None,
        etag: bool = False,
    ) -> Iterator[bytes]:
        """The inflated body in pieces. Raises NotModified for a 304 when ``etag`` is set, else SourceError."""
        url = self._url(host, path)
        sent = {"Accept-Encoding": "gzip, identity", **(headers or {})}
        if etag and url in self.etags_sent:
            sent["If-None-Match"] = self.etags_sent[url]
        hops = self.policy.same_host_redirects if method == "GET" else 0
        for attempt in range(1, self.policy.attempts + hops + 1):
            request = self._client.build_request(
                method, url, params=params, headers=sent, json=body, content=content, timeout=self._timeout()
            )
            try:
                response = self._client.send(request, stream=True)
            except httpx.TimeoutException:
                raise SourceError("timeout", f"{host} did not answer in time") from None
            except httpx.HTTPError as err:
                if isinstance(err.__cause__, Forbidden):
                    raise SourceError("not_allowed", str(err)) from None
                if attempt < self.policy.attempts and self._wait(0.5 * attempt):
                    continue
                raise SourceError("unreachable", f"{host} could not be reached ({type(err).__name__})") from None
            self.requests += 1
            try:
                pause = self._pause_before_retry(response, host, attempt)
                if pause is None and hops and response.status_code in (301, 302, 307, 308):
                    hops -= 1
                    url, pause = self._moved(response, host), 0.0
                elif pause is None:
                    if response.status_code == 304 and etag:
                        raise NotModified
                    self._check(response, host)
                    if etag and response.headers.get("etag"):
                        self.etags_seen[url] = response.headers["etag"]
                    yield from self._body(response, host)
                    return
            finally:
                response.close()
            self._wait(pause or 0.0)

    def _moved(self, response: httpx.Response, host: str) -> str:
        """Where a redirect leads on the same host."""
        target = urlsplit(response.headers.get("location", ""))
        if target.netloc not in ("", host) or target.query:
            raise SourceError("redirected", f"{host} redirects to another place; that is not followed")
        return self._url(host, target.path)

    def _url(self, host: str, path: str) -> str:
        allowed = self.policy.hosts.get(host)
        if allowed is None or not any(re.fullmatch(pattern, path) for pattern in allowed):
            raise SourceError("not_allowed", f"{host}{path[:80]} is not in the table of hosts and paths")
        base = self.policy.elsewhere.get(host, f"https://{host}")
        if not base.startswith("https://") and not re.match(r"http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$", base):
            raise SourceError("not_allowed", f"{base} is neither https nor this machine")
        return base + path

    def _timeout(self) -> httpx.Timeout:
        left = self._ends - self.clock.monotonic()
        if left <= 0:
            raise SourceError("timeout", f"nothing within {self.policy.deadline_seconds:g} s")
        return httpx.Timeout(min(left, 15.0), connect=min(left, 5.0))

    def _wait(self, seconds: float) -> bool:
        """Sleep if there is time for it; False when there is not."""
        if self.clock.monotonic() + seconds >= self._ends:
            return False
        self.clock.sleep(seconds)
        return True

    def _pause_before_retry(self, response: httpx.Response, host: str, attempt: int) -> float | None:
        """Seconds to wait, or None when the reply is to be used as it is."""
        if response.status_code not in RETRIED or attempt >= self.policy.attempts:
            return None
        asked = response.headers.get("retry-after", "")
        pause = float(asked) if re.fullmatch(r"\d{1,5}(\.\d+)?", asked) else 0.5 * 2 ** (attempt - 1)
        if self.clock.monotonic() + pause >= self._ends:
            raise SourceError("bad_status", f"{host} answered {response.status_code} and asks to wait {pause:g} s")
        return pause

    def _check(self, response: httpx.Response, host: str) -> None:
        status = response.status_code
        if 300 <= status < 400:
            where = response.headers.get("location", "")[:80]
            raise SourceError("redirected", f"{host} redirects to {where or 'nowhere'}; redirects are not followed")
        if status in (401, 403):
            words = "the key is missing, wrong or not allowed"
            raise SourceError("bad_status", f"{host} answered {status}: {words}", status)
        if status != 200:
            raise SourceError("bad_status", f"{host} answered {status}", status)

    def _body(self, response: httpx.Response, host: str) -> Iterator[bytes]:
        """Count what arrives and what it inflates to; end early beyond either cap or the deadline."""
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "gzip", ""):
            raise SourceError("not_allowed", f"{host} sent {encoding}, which was not asked for")
        inflate = zlib.decompressobj(16 + zlib.MAX_WBITS) if encoding == "gzip" else None
        received = inflated = 0
        try:
            for raw in response.iter_raw(65536):
                received += len(raw)
                if received > self.policy.max_body_bytes:
                    raise SourceError("too_large", f"{host} sent more than {self.policy.max_body_bytes} bytes")
                self._timeout()
                while raw:
                    if inflate is None:
                        piece, raw = raw, b""
                    else:
                        piece = inflate.decompress(raw, 1 << 20)
                        raw = inflate.unconsumed_tail
                    inflated += len(piece)
                    if inflated > min(self.policy.max_inflated_bytes, MAX_RATIO * received + FREE_BYTES):
                        raise SourceError("too_large", f"{host}'s reply inflates beyond every reason")
                    if piece:
                        yield piece
        except httpx.TimeoutException:
            raise SourceError("timeout", f"{host} stopped sending") from None
        except (httpx.HTTPError, zlib.error) as err:
            raise SourceError("truncated", f"{host}'s reply broke off ({type(err).__name__})") from None
        if inflate is not None and not inflate.eof:
            raise SourceError("truncated", f"{host}'s compressed reply ends in the middle")


def _guarded_client(policy: Policy) -> httpx.Client:
    """A client whose direct connections are judged by address; those through an operator's proxy are the proxy's."""
    client = httpx.Client(follow_redirects=False, trust_env=True, headers={"User-Agent": AGENT}, verify=_trusted())
    mirrors = [urlsplit(base).hostname or "" for base in policy.elsewhere.values()]
    # httpx hands a connection pool no backend, so it is put in its place; the test of hostile names notices if that
    # place moves.
    pool: Any = client._transport
    pool._pool._network_backend = GuardedBackend(mirrors)
    return client


@lru_cache(maxsize=1)
def _trusted() -> ssl.SSLContext:
    """The certificates that are trusted; reading them takes longer than many a request."""
    return httpx.create_ssl_context()
