"""The app: routes, the frame around them, and what starts and ends with the server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI
from starlette.routing import Route

from advisor.accounts import Accounts
from advisor.llm.client import warm_up
from advisor.llm.door import PLANNER, ladder
from advisor.llm.protocol import ModelFailed
from advisor.settings import program_version, read_settings
from advisor.turn import Desk
from integrations import hub
from integrations.http import openapi, problems
from integrations.http.balance import Balance, shared_file
from integrations.http.drain import draining
from integrations.http.frame import Frame
from integrations.http.mcp_mount import McpMount
from integrations.http.routes import ask, conversations, docs, openai_wire, operations
from integrations.http.routes import tools as tool_routes
from integrations.http.routes import turns as turn_routes
from integrations.http.service import Service, build_service
from integrations.http.settings import ServiceSettings
from integrations.prices import attached
from integrations.slack import settings as slack
from integrations.web import pages
from knowledge.store import kb_version
from tools.registry import all_tools

log = logging.getLogger("advisor.http")
SWEEP_SECONDS = 60.0


def create_app(settings: ServiceSettings | None = None, desk: Desk | None = None) -> FastAPI:
    """The app; what is not given is as the environment says. Opens the database at once; threads and chores start with
    the server. Raises InputProblem for settings that cannot be.
    """
    settings = settings or read_settings(ServiceSettings)
    service = build_service(settings, desk)
    mcp = McpMount(service, program_version())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(_warm_up, service.desk)
        chores = asyncio.create_task(_sweep(service.accounts))
        hub.attach()
        with draining(service), attached():
            async with mcp.manager.run(), _slack(app, service):
                yield
        chores.cancel()
        service.turns.close()

    app = FastAPI(title="advisor", version=program_version(), lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.service = service
    for routes in (ask, turn_routes, tool_routes, openai_wire, conversations, operations, docs):
        app.include_router(routes.router)
    pages.install(app)
    # POST alone: the server keeps no session to end and pushes nothing, so a GET's stream would only hold a connection.
    app.router.routes.append(Route("/mcp", mcp, methods=["POST"], include_in_schema=False))
    problems.install(app)
    openapi.install(app)
    balance = Balance(shared_file(settings.workers))
    app.add_middleware(Frame, metrics=service.metrics, body_bytes=settings.body_bytes, balance=balance)
    return app


@asynccontextmanager
async def _slack(app: FastAPI, service: Service) -> AsyncIterator[None]:
    """Slack's events route and worker, where a token and a signing secret are set."""
    if not slack.configured():
        yield
        return
    # bolt takes half a second to import, which only servers with Slack should pay.
    from integrations.slack.http import slack_events

    async with slack_events(app, service, slack.credentials("signing_secret"), slack.slack_settings()):
        yield


def _warm_up(desk: Desk) -> None:
    """Import and read now what the first question would otherwise wait for."""
    all_tools()
    kb_version()
    with suppress(ModelFailed):
        desk.open_model(PLANNER)
    if any(name != PLANNER for name in ladder(None, desk.settings)) and not desk.settings.offline:
        warm_up()


async def _sweep(accounts: Accounts) -> None:
    """Now and then forget reservations that nobody will settle any more."""
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        try:
            await asyncio.to_thread(accounts.sweep)
        except Exception:
            log.exception("reservations could not be swept")
