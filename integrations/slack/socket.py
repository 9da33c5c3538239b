"""Socket Mode: bolt's handler beside the worker, until a signal to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
from contextlib import suppress

from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler

from advisor.redaction import secret_values
from advisor.settings import read_settings
from integrations import hub
from integrations.http import logs
from integrations.http.service import Service, build_service
from integrations.http.settings import ServiceSettings
from integrations.prices import attached
from integrations.slack.app import build_bot
from integrations.slack.settings import Credentials, SlackSettings
from tools.registry import all_tools

log = logging.getLogger("advisor.slack")
WATCH_SECONDS = 10.0  # asynchronous sockets have been seen to go quiet; a closed one is opened again


async def serve(tokens: Credentials, settings: SlackSettings, stop: asyncio.Event | None = None) -> None:
    """Answer over Socket Mode until ``stop`` is set, or SIGTERM or SIGINT where none is given; a lost socket is opened
    again. Raises InputProblem for settings that cannot be, SlackApiError for tokens that Slack refuses.
    """
    service_settings = read_settings(ServiceSettings)
    logs.set_up(service_settings, secret_values())
    service = build_service(service_settings)
    all_tools()
    hub.attach()
    with attached():
        await _run(service, tokens, settings, stop)
    service.turns.close()


async def _run(service: Service, tokens: Credentials, settings: SlackSettings, stop: asyncio.Event | None) -> None:
    """Connected to Slack until told to stop."""
    bot = await build_bot(service, tokens, settings)
    assert tokens.app_token is not None
    handler = AsyncSocketModeHandler(bot.app, tokens.app_token.get_secret_value(), web_client=bot.app.client)
    stopped = stop or _stop_signal()
    working = asyncio.create_task(bot.worker.run())
    await handler.connect_async()  # type: ignore[no-untyped-call]
    log.info("connected to Slack")
    try:
        while not stopped.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), WATCH_SECONDS)
            if not stopped.is_set() and not await handler.client.is_connected():
                log.warning("the socket is closed; connecting again")
                with suppress(Exception):
                    await handler.client.connect_to_new_endpoint(force=True)
    finally:
        await handler.close_async()  # type: ignore[no-untyped-call]
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


def _stop_signal() -> asyncio.Event:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    return stopped
