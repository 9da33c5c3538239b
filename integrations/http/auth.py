"""Who calls: somebody on this machine, the holder of an API key, or of a bearer token of the OIDC issuer.

Without keys and issuer only this machine is let in, whatever address the server listens on, and only under a loopback
name, so that a web page elsewhere cannot reach it by pointing its own name here.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.types import Scope

from advisor.accounts import SCOPES, Accounts, Limits
from advisor.store import LOCAL
from integrations.http.metrics import Metrics
from integrations.http.oidc import BadToken, Oidc
from integrations.http.problems import ServiceProblem
from integrations.http.settings import LOOPBACK, ServiceSettings
from tools.errors import BadValue

REMEMBERED_SECONDS = 2.0  # how long a revoked key may still work
USED_SECONDS = 60.0  # how often the last use of a key is written down
SHORTEST_KEY = 16
NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who may call. ``owner`` is the principal whose conversations these are, ``subject`` who is limited."""

    owner: str
    subject: str
    scopes: frozenset[str] = frozenset(SCOPES)
    limits: Limits = field(default_factory=Limits)
    key_id: str | None = None


class Authenticator:
    """Tells callers apart, counts their requests."""

    def __init__(self, settings: ServiceSettings, accounts: Accounts, metrics: Metrics) -> None:
        self._settings, self._accounts, self._metrics = settings, accounts, metrics
        self._given = given_keys(settings)
        self._oidc = Oidc(settings) if settings.oidc_issuer else None
        self._remembered: dict[str, tuple[float, Caller | None]] = {}
        self._written: dict[str, float] = {}
        self._any_keys = (0.0, False)

    async def admit(self, scope: Scope, needed: str) -> Caller:
        """The caller of a request that needs this scope. Raises ServiceProblem: 401, 403 or 429."""
        caller = await self._identify(scope)
        if needed not in caller.scopes:
            raise ServiceProblem(403, "not_allowed", f"This key does not allow {needed!r}.", field="scopes")
        scope.setdefault("state", {}).setdefault("log", {})["caller"] = caller.subject
        per_minute = caller.limits.requests_per_minute
        if per_minute is not None:
            wait = await asyncio.to_thread(self._accounts.take, caller.subject, per_minute)
            if wait > 0:
                self._metrics.refusals.labels("too_many_requests").inc()
                words = f"More than {per_minute} requests a minute."
                raise ServiceProblem(429, "too_many_requests", words, hint="Wait as told.", retry_after=wait)
        return caller

    async def _identify(self, scope: Scope) -> Caller:
        headers = Headers(scope=scope)
        self._check_host(headers)
        token = _token(headers)
        if token is None:
            if await self._is_open(scope, headers):
                return self._caller(LOCAL, LOCAL)
            raise ServiceProblem(
                401, "unauthorized", "This needs a key.", hint="Send the header authorization: Bearer KEY."
            )
        digest = hashlib.sha256(token.encode()).hexdigest()
        now = time.monotonic()
        until, caller = self._remembered.get(digest, (0.0, None))
        if until < now:
            caller = await self._look_up(token)
            if len(self._remembered) > 10_000:
                self._remembered.clear()
            self._remembered[digest] = (now + REMEMBERED_SECONDS, caller)
        if caller is None and await self._is_open(scope, headers):
            return self._caller(LOCAL, LOCAL)  # many clients cannot be set up without some key
        if caller is None:
            raise ServiceProblem(401, "unauthorized", "This key is not valid.")
        if caller.key_id and now - self._written.get(caller.key_id, -USED_SECONDS) >= USED_SECONDS:
            self._written[caller.key_id] = now
            await asyncio.to_thread(self._accounts.used, caller.key_id)
        return caller

    async def _look_up(self, token: str) -> Caller | None:
        digest = hashlib.sha256(token.encode()).digest()
        for given, owner in self._given:
            if hmac.compare_digest(given, digest):
                return self._caller(owner, f"owner:{owner}")
        if token.startswith("adv_"):
            key = await asyncio.to_thread(self._accounts.find_key, token)
            if key is None:
                return None
            return self._caller(key.owner, f"key:{key.id}", frozenset(key.scopes), key.limits, key.id)
        if self._oidc is not None and token.count(".") == 2:
            try:
                owner = await asyncio.to_thread(self._oidc.owner, token)
            except BadToken:
                return None
            return self._caller(f"oidc:{owner}", f"oidc:{owner}")
        return None

    def _caller(
        self,
        owner: str,
        subject: str,
        scopes: frozenset[str] = frozenset(SCOPES),
        limits: Limits = NO_LIMITS,
        key_id: str | None = None,
    ) -> Caller:
        """With the server's limits where the key has none of its own."""
        ours = self._settings
        filled = Limits(
            limits.requests_per_minute or ours.requests_per_minute,
            limits.tokens_per_day or ours.tokens_per_day,
            limits.usd_per_day or ours.usd_per_day,
        )
        return Caller(owner, subject, scopes, filled, key_id)

    async def _is_open(self, scope: Scope, headers: Headers) -> bool:
        if self._settings.auth == "open":
            return True
        if self._settings.auth == "required" or self._given or self._oidc:
            return False
        if not _on_this_machine(scope) or _host(headers) not in LOOPBACK | set(self._settings.allowed_hosts):
            return False
        now = time.monotonic()
        if self._any_keys[0] < now:
            self._any_keys = (now + REMEMBERED_SECONDS, await asyncio.to_thread(self._accounts.any_keys))
        return not self._any_keys[1]

    def _check_host(self, headers: Headers) -> None:
        allowed = self._settings.allowed_hosts
        if allowed and _host(headers) not in {*allowed, *LOOPBACK}:
            raise ServiceProblem(403, "wrong_host", "This server does not answer to that name.")


def needs(scope: str) -> Callable[[Request], Awaitable[Caller]]:
    """A FastAPI dependency that gives the caller who may do ``scope`` ("ask", "tools", ...). It raises ServiceProblem:
    401 without a valid key or token, 403 without the scope, 429 above the caller's rate.
    """

    async def check(request: Request) -> Caller:
        authenticator: Authenticator = request.app.state.service.auth
        return await authenticator.admit(request.scope, scope)

    return check


Asker = Annotated[Caller, Depends(needs("ask"))]
Toolsmith = Annotated[Caller, Depends(needs("tools"))]
Reader = Annotated[Caller, Depends(needs("conversations"))]
Critic = Annotated[Caller, Depends(needs("feedback"))]


def _token(headers: Headers) -> str | None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and token.strip():
        return token.strip()
    return headers.get("x-api-key") or None


def _host(headers: Mapping[str, str]) -> str:
    """The name a request is addressed to, without its port."""
    host = headers.get("host", "").lower()
    return host.partition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]


def _on_this_machine(scope: Scope) -> bool:
    try:
        return ipaddress.ip_address((scope.get("client") or ("",))[0]).is_loopback
    except ValueError:
        return False


def given_keys(settings: ServiceSettings) -> list[tuple[bytes, str]]:
    """(SHA-256 digest, owner) of each key of ADVISOR_API_KEYS; one without owner gets a name of its digest. [] where
    none is set. Raises BadValue for a key that is too short.
    """
    found = []
    text = settings.api_keys.get_secret_value() if settings.api_keys else ""
    for part in filter(None, (part.strip() for part in text.split(","))):
        owner, separator, key = part.rpartition(":")
        if len(key) < SHORTEST_KEY:
            words = f"ADVISOR_API_KEYS holds a key of less than {SHORTEST_KEY} characters."
            raise BadValue(
                "bad_setting", words, field="ADVISOR_API_KEYS", hint="`advisor keys create` makes good ones."
            )
        digest = hashlib.sha256(key.encode()).digest()
        found.append((digest, owner if separator else f"key-{digest.hex()[:8]}"))
    return found
