"""The bolt app: what Slack sends becomes a job or a view. Every listener ends within milliseconds, without a model."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.web.async_client import AsyncWebClient

from integrations.http.service import Service, database_of
from integrations.slack.escape import cut, mrkdwn, typed
from integrations.slack.interact import Interactions
from integrations.slack.ledger import Ledger, Question
from integrations.slack.settings import Credentials, SlackSettings
from integrations.slack.views import STARTERS, home_view
from integrations.slack.worker import Worker

log = logging.getLogger("advisor.slack")
MAX_QUESTION = 12_000


@dataclass
class Bot:
    """A running bot: the bolt app and what works behind it."""

    app: AsyncApp
    worker: Worker
    ledger: Ledger


async def build_bot(service: Service, tokens: Credentials, settings: SlackSettings) -> Bot:
    """The bot of the workspace that the token is of. Raises SlackApiError when Slack does not know the token."""
    client = AsyncWebClient(token=tokens.bot_token.get_secret_value(), base_url=settings.slack_api_url, timeout=20)
    # Only what Slack says was not done is done again without thinking: a 429. The rest is decided message by message.
    client.retry_handlers = [AsyncRateLimitErrorRetryHandler(max_retry_count=6)]
    me = await client.auth_test()
    ledger = Ledger(database_of(service.desk), settings.slack_lease_seconds)
    worker = Worker(service, ledger, client, settings, str(me["user_id"]))
    app = AsyncApp(
        client=client,
        signing_secret=tokens.signing_secret.get_secret_value() if tokens.signing_secret else "socket mode needs none",
        process_before_response=True,  # the job is written down before Slack hears 200
        ssl_check_enabled=False,  # an unsigned ssl_check is refused like anything unsigned
        raise_error_for_unhandled_request=False,
    )
    teams = set(settings.slack_teams) or {str(me["team_id"])}
    _Listeners(app, ledger, worker, teams, str(me["user_id"]))
    Interactions(app, service, ledger, worker, teams)
    return Bot(app, worker, ledger)


class _Listeners:
    """Messages, mentions, the home tab, the slash command."""

    def __init__(self, app: AsyncApp, ledger: Ledger, worker: Worker, teams: set[str], bot_user: str) -> None:
        self._ledger, self._worker, self._teams, self._bot_user = ledger, worker, teams, bot_user
        app.event("app_mention")(self.mentioned)
        app.event("message")(self.said)
        app.event("app_home_opened")(self.opened)
        app.command("/advisor")(self.command)

    async def mentioned(self, body: dict[str, Any], event: dict[str, Any]) -> None:
        """Somebody wrote @advisor in a channel."""
        await self._take(body, event)

    async def said(self, body: dict[str, Any], event: dict[str, Any]) -> None:
        """A direct message, or a reply in a thread that the bot is in already."""
        if event.get("channel_type") == "im":
            await self._take(body, event)
        elif event.get("thread_ts"):
            team = str(body.get("team_id", ""))
            known = await asyncio.to_thread(
                self._ledger.knows_thread, team, str(event["channel"]), str(event["thread_ts"])
            )
            if known and f"<@{self._bot_user}" not in event.get("text", ""):  # a mention comes as its own event too
                await self._take(body, event)

    async def opened(self, event: dict[str, Any], client: AsyncWebClient) -> None:
        """The home tab, or the agent's pane: examples to click."""
        if event.get("tab") == "messages":
            prompts = [{"title": text, "message": text} for text in STARTERS[:4]]
            await client.assistant_threads_setSuggestedPrompts(
                channel_id=event["channel"], title="What do you want to train?", prompts=prompts
            )
        else:
            await client.views_publish(user_id=event["user"], view=home_view())

    async def command(self, ack: Any, command: dict[str, Any], client: AsyncWebClient) -> None:
        """``/advisor QUESTION``: the question is posted for all to see, its answer comes in the thread."""
        text = typed(command.get("text", ""))
        if command.get("team_id") not in self._teams:
            await ack()
        elif not text:
            await ack(f"Ask a question: `/advisor {STARTERS[0]}`")
        else:
            await ack()
            words = f"<@{command['user_id']}> asks: {mrkdwn(cut(text, 2500))}"
            posted = await client.chat_postMessage(channel=command["channel_id"], text=words, unfurl_links=False)
            question = Question(
                command["team_id"], command["channel_id"], posted["ts"], posted["ts"], command["user_id"], text
            )
            await self._accept(f"command:{command['trigger_id']}", question)

    async def _take(self, body: dict[str, Any], event: dict[str, Any]) -> None:
        team = str(body.get("team_id", ""))
        if team not in self._teams:
            log.warning("an event of team %s was ignored", team)
            return
        # Own messages, other bots, edits, deletions and joins are no questions.
        if event.get("bot_id") or event.get("subtype") not in (None, "file_share", "thread_broadcast"):
            return
        person, text = event.get("user"), typed(str(event.get("text", "")))[:MAX_QUESTION]
        if not person or person == self._bot_user or not text:
            return
        ts = str(event["ts"])
        thread = str(event.get("thread_ts") or ts)
        await self._accept(
            str(body.get("event_id") or ts), Question(team, str(event["channel"]), thread, ts, person, text)
        )

    async def _accept(self, event_id: str, question: Question) -> None:
        if await asyncio.to_thread(self._ledger.accept, event_id, question):
            self._worker.wake()
