"""Bearer tokens of an OpenID Connect issuer: signature, issuer, audience and time are checked, nothing is guessed."""

from __future__ import annotations

import threading

import httpx
import jwt

from integrations.http.settings import ServiceSettings
from tools.errors import MissingValue

# Asymmetric only: with a shared secret whoever can check a token could make one.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
CLOCK_SECONDS = 30
FETCH_SECONDS = 5.0


class BadToken(Exception):
    """The token proves nothing."""


class Oidc:
    """Checks tokens of one issuer; its keys are fetched when first needed and again when an unknown one signs."""

    def __init__(self, settings: ServiceSettings) -> None:
        if not settings.oidc_audience:
            raise MissingValue(
                "missing_setting",
                "With an OIDC issuer the audience must be set too.",
                field="ADVISOR_OIDC_AUDIENCE",
                hint="Tokens for other services of the issuer would be let in without it.",
            )
        self._issuer = settings.oidc_issuer.rstrip("/")
        self._audience = settings.oidc_audience
        self._claim = settings.oidc_owner_claim
        self._jwks_url = settings.oidc_jwks_url
        self._keys: jwt.PyJWKClient | None = None
        self._lock = threading.Lock()

    def owner(self, token: str) -> str:
        """The claim that names whose token this is, at most 128 characters. May fetch the issuer's keys (up to 5 s).
        Raises BadToken for a signature, issuer, audience or time that is wrong, and when the keys cannot be fetched.
        """
        try:
            key = self._client().get_signing_key_from_jwt(token)
            claims = jwt.decode(
                token,
                key.key,
                algorithms=ALGORITHMS,
                audience=self._audience,
                issuer=[self._issuer, self._issuer + "/"],
                leeway=CLOCK_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, httpx.HTTPError, ValueError, KeyError):
            raise BadToken from None
        owner = claims.get(self._claim)
        if not isinstance(owner, str) or not owner or len(owner) > 128 or not owner.isprintable():
            raise BadToken
        return owner

    def _client(self) -> jwt.PyJWKClient:
        with self._lock:
            if self._keys is None:
                self._keys = jwt.PyJWKClient(self._jwks_url or self._discover(), timeout=FETCH_SECONDS)
            return self._keys

    def _discover(self) -> str:
        found = httpx.get(f"{self._issuer}/.well-known/openid-configuration", timeout=FETCH_SECONDS)
        found.raise_for_status()
        return str(found.json()["jwks_uri"])
