"""AWS Signature Version 4 for a request without a session token's frills (AWS General Reference, "Signing")."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote


def sign(
    method: str,
    host: str,
    path: str,
    query: Mapping[str, str],
    body: str,
    *,
    key_id: str,
    secret: str,
    region: str,
    service: str,
    now: datetime,
    headers: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The headers to send, with the Authorization that covers them all."""
    stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    sent = {"host": host, "x-amz-date": stamp, **{name.lower(): value for name, value in (headers or {}).items()}}
    names = ";".join(sorted(sent))
    lines = [
        method,
        path,
        canonical_query(query),
        *(f"{name}:{sent[name].strip()}" for name in sorted(sent)),
        "",
        names,
        hashlib.sha256(body.encode()).hexdigest(),
    ]
    scope = f"{day}/{region}/{service}/aws4_request"
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, digest])
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    given = f"AWS4-HMAC-SHA256 Credential={key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**{name: value for name, value in sent.items() if name != "host"}, "authorization": given}


def canonical_query(query: Mapping[str, str]) -> str:
    """Parameters sorted by name and percent-encoded as the signature wants them."""
    return "&".join(f"{quote(name, safe='-_.~')}={quote(query[name], safe='-_.~')}" for name in sorted(query))
