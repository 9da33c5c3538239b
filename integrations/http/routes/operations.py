"""``/livez``, ``/readyz``, ``/metrics``: for whoever runs the server. None of them ever calls a model."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST

from integrations.http.problems import ServiceProblem
from integrations.http.service import Here, Service
from knowledge.store import kb_version
from tools.registry import all_tools

log = logging.getLogger("advisor.http")
router = APIRouter(tags=["operations"])
CHECK_SECONDS = 3.0


@router.get("/livez", summary="Whether the process answers", include_in_schema=True)
async def livez() -> dict[str, str]:
    """No I/O: a database that is down must not get the process restarted."""
    return {"status": "ok"}


@router.get("/readyz", summary="Whether questions can be answered now", responses={503: {"description": "Not now."}})
async def readyz(here: Here) -> Response:
    """Checks the store, the knowledge base and the tools, and that the server is not stopping."""
    checks: dict[str, Any] = {"stopping": {"ok": not here.turns.draining}}
    for name, check in _checks(here).items():
        checks[name] = await _outcome(name, check)
    ok = all(check["ok"] for check in checks.values())
    body = {"status": "ready" if ok else "not ready", "checks": checks, "turns_running": here.turns.running}
    return JSONResponse(body, 200 if ok else 503)


@router.get("/metrics", summary="Figures for Prometheus", include_in_schema=False)
async def metrics(request: Request, here: Here) -> Response:
    """Asks for the token that ADVISOR_METRICS_TOKEN sets, if it does."""
    token = here.settings.metrics_token
    if token is not None:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), token.get_secret_value().encode()):
            raise ServiceProblem(401, "unauthorized", "/metrics asks for its own token.")
    return Response(await asyncio.to_thread(here.metrics.exposition), media_type=CONTENT_TYPE_LATEST)


def _checks(here: Service) -> dict[str, Callable[[], Any]]:
    return {"store": here.desk.store.ping, "knowledge": kb_version, "tools": lambda: len(all_tools())}


async def _outcome(name: str, check: Callable[[], Any]) -> dict[str, Any]:
    try:
        detail = await asyncio.wait_for(asyncio.to_thread(check), CHECK_SECONDS)
    except Exception:
        log.warning("readiness: %s failed", name, exc_info=True)
        return {"ok": False}
    return {"ok": True} if detail is None else {"ok": True, "detail": detail}
