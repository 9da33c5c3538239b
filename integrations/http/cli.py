"""``advisor serve``."""

from __future__ import annotations

import click

from advisor.settings import database_place, get_settings, read_settings
from integrations.http.settings import ServiceSettings
from tools.errors import BadValue


@click.command()
@click.option("--host", metavar="H", help="Address to listen on (127.0.0.1).")
@click.option("--port", metavar="P", type=click.IntRange(0, 65535), help="Port to listen on (8080).")
@click.option("--workers", metavar="N", type=click.IntRange(1, 64), help="Server processes (1).")
def serve(host: str | None, port: int | None, workers: int | None) -> None:
    """Serve HTTP: the API, the OpenAI wire format, MCP and the web page."""
    given = {"host": host, "port": port, "workers": workers}
    settings = read_settings(ServiceSettings).model_copy(
        update={name: value for name, value in given.items() if value is not None}
    )
    from integrations.http.auth import given_keys
    from integrations.http.oidc import Oidc

    given_keys(settings)  # what cannot be is said now and not by the first request
    if settings.oidc_issuer:
        Oidc(settings)
    anybody = _anybody_may_call(settings)
    if settings.auth == "auto" and not settings.on_loopback and not anybody:
        raise BadValue(
            "nobody_may_call",
            f"On {settings.host} others could reach the server, and no key is set up.",
            field="ADVISOR_AUTH",
            hint="Set ADVISOR_API_KEYS, make a key with `advisor keys create`, or set ADVISOR_AUTH=open to let all in.",
        )
    from integrations.http.server import serve as run

    click.echo(f"Serving on http://{settings.host}:{settings.port} (docs at /docs); Ctrl-C stops.", err=True)
    run(settings)


def _anybody_may_call(settings: ServiceSettings) -> bool:
    """Whether somebody holds a key or a token. Opens the database, so that one that is away is said now too."""
    from advisor.accounts import Accounts
    from advisor.store import open_store

    database = open_store(database_place(get_settings())).database
    try:
        return bool(settings.api_keys or settings.oidc_issuer) or Accounts(database).any_keys()
    finally:
        database.close()
