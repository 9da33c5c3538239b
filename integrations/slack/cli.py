"""``advisor slack``: the bot over Socket Mode, which needs no address that Slack can reach."""

from __future__ import annotations

import click


@click.command("slack")
def command() -> None:
    """Answer in Slack over Socket Mode (SLACK_BOT_TOKEN and SLACK_APP_TOKEN)."""
    import asyncio

    from integrations.slack.settings import credentials, slack_settings
    from integrations.slack.socket import serve

    tokens, settings = credentials("app_token"), slack_settings()
    asyncio.run(serve(tokens, settings))
