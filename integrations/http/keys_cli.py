"""``advisor keys`` and ``advisor feedback``: what an operator keeps in the database besides conversations."""

from __future__ import annotations

import json

import click
from rich.console import Console
from rich.table import Table

from advisor.accounts import SCOPES, Accounts, Key, Limits
from advisor.settings import database_place, get_settings
from advisor.store import SqlConversations, open_store
from tools.errors import UnknownName, nearest


@click.group()
def keys() -> None:
    """Make, list and revoke the API keys of the server."""


@keys.command("create")
@click.argument("owner")
@click.option("--name", default="", help="What the key is for.")
@click.option("--scope", "scopes", multiple=True, type=click.Choice(SCOPES), help="What it may do (all); repeatable.")
@click.option("--requests-per-minute", type=click.IntRange(1), help="Rate of requests.")
@click.option("--tokens-per-day", type=click.IntRange(1), help="Tokens of language models a day.")
@click.option("--usd-per-day", type=click.FloatRange(0, min_open=True), help="Spending on language models a day.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def create(
    owner: str,
    name: str,
    scopes: tuple[str, ...],
    requests_per_minute: int | None,
    tokens_per_day: int | None,
    usd_per_day: float | None,
    as_json: bool,
) -> None:
    """Make a key for OWNER, whose conversations its holders share. It is shown this once."""
    limits = Limits(requests_per_minute, tokens_per_day, usd_per_day)
    key = Accounts(_store().database).create_key(owner, name, scopes or SCOPES, limits)
    if as_json:
        click.echo(json.dumps({"key": key, "owner": owner, "name": name}))
    else:
        click.echo(key)
        click.echo("Keep it now: only its digest is stored.", err=True)


@keys.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def list_keys(as_json: bool) -> None:
    """List the keys with what they may and what they spent today."""
    accounts = Accounts(_store().database)
    rows = [_row(key, accounts) for key in accounts.all_keys()]
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    if not rows:
        click.echo("There is no key: the server lets in this machine only. `advisor keys create OWNER` makes one.")
        return
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    Console(markup=False).print(table)


@keys.command("revoke")
@click.argument("key_id")
def revoke(key_id: str) -> None:
    """End the key of this id; servers refuse it within seconds."""
    accounts = Accounts(_store().database)
    if not accounts.revoke_key(key_id):
        working = [key.id for key in accounts.all_keys() if key.revoked_at is None]
        words = f"There is no working key {key_id[:40]!r}."
        raise UnknownName("unknown_key", words, field="key_id", candidates=nearest(key_id[:40], working))
    click.echo(f"Key {key_id} is revoked.")


@click.command()
@click.option("--rating", type=click.Choice(["-1", "0", "1"]), help="Only these (-1: bad answers).")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, help="At most so many, newest first.")
def feedback(rating: str | None, limit: int) -> None:
    """Print what users thought of answers, one JSON object a line, ready for `advisor eval questions`."""
    from integrations.http.routes.conversations import eval_case

    for item in _store().rated(None, None if rating is None else int(rating), limit):
        click.echo(json.dumps(eval_case(item), ensure_ascii=False))


def _store() -> SqlConversations:
    return open_store(database_place(get_settings()))


def _row(key: Key, accounts: Accounts) -> dict[str, object]:
    tokens, usd = accounts.spent(f"key:{key.id}")
    return {
        "id": key.id,
        "owner": key.owner,
        "name": key.name,
        "scopes": " ".join(key.scopes),
        "requests/min": key.limits.requests_per_minute,
        "tokens/day": key.limits.tokens_per_day,
        "USD/day": key.limits.usd_per_day,
        "tokens today": tokens,
        "USD today": round(usd, 4),
        "created": key.created_at,
        "last used": key.last_used_at,
        "revoked": key.revoked_at,
    }
