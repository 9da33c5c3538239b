"""``advisor mcp``: the tools on standard input and output, for agents on this machine."""

from __future__ import annotations

import logging

import click

from advisor.redaction import log_plainly
from integrations import hub
from integrations.prices import attached


@click.command()
def mcp() -> None:
    """Serve the tools over MCP on standard input and output."""
    import anyio

    log_plainly(logging.WARNING)  # standard output is the protocol's
    hub.attach()
    with attached():
        anyio.run(_serve)


async def _serve() -> None:
    from mcp.server.stdio import stdio_server

    from advisor.settings import program_version
    from integrations.mcp.server import build_server

    server = build_server(program_version())
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
