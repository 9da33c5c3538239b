"""What the routes share: settings, the desk that answers, who may call, turns, figures."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from advisor.llm.door import ladder
from advisor.turn import Desk
from integrations.http.metrics import Metrics
from integrations.http.settings import ServiceSettings
from integrations.http.turns import Turns
from tools.errors import UnknownName, nearest


@dataclass
class Service:
    """One server process."""

    settings: ServiceSettings
    desk: Desk
    metrics: Metrics
    turns: Turns
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that callers may name: those the operator set up, and the planner. Any other could cost money."""
        return ladder(None, self.desk.settings)

    def check_model(self, name: str | None) -> str | None:
        """``name`` if callers may ask for it."""
        if name is not None and name not in self.models:
            raise UnknownName(
                "unknown_model",
                f"There is no model named {name[:80]!r} here.",
                field="model",
                hint="GET /v1/models lists them.",
                candidates=nearest(name[:80], self.models) or list(self.models[:3]),
            )
        return name


def _service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


Here = Annotated[Service, Depends(_service)]
