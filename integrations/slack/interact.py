"""Buttons and forms: follow-ups in the thread, the sums, feedback, the calculator."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from integrations.http.service import Service
from integrations.slack.blocks import FOLLOW_UPS, sums_view
from integrations.slack.ledger import Ledger, Question
from integrations.slack.views import (
    CALCULATOR,
    calculator_arguments,
    calculator_errors,
    calculator_view,
    reason_view,
    result_view,
)
from integrations.slack.worker import Worker, conversation, principal
from tools.errors import InputProblem
from tools.registry import get_tool


class Interactions:
    """What clicks do."""

    def __init__(self, app: AsyncApp, service: Service, ledger: Ledger, worker: Worker, teams: set[str]) -> None:
        self._service, self._ledger, self._worker, self._teams = service, ledger, worker, teams
        app.action(re.compile(r"^follow_(cheaper|faster|launch)$"))(self.follow)
        app.action("follow_sums")(self.sums)
        app.action("feedback")(self.feedback)
        app.action("ask_starter")(self.starter)
        app.action("open_calculator")(self.calculator)
        app.view(CALCULATOR)(self.compute)
        app.view("reason")(self.reason)

    async def follow(self, ack: Any, body: dict[str, Any], action: dict[str, Any]) -> None:
        """A button of an answer asks the next question, as a new job in its thread. Acknowledged first; returns before
        the answer.
        """
        await ack()
        text = FOLLOW_UPS[action["action_id"].removeprefix("follow_")]
        await self._ask(body, action["action_ts"], text)

    async def sums(self, ack: Any, body: dict[str, Any], action: dict[str, Any], client: AsyncWebClient) -> None:
        """Open a modal with the derivation of the answer whose button was clicked. Nothing happens for a workspace that
        is not served or an answer no longer kept; raises SlackApiError where Slack refuses the modal.
        """
        await ack()
        if self._foreign(body):
            return
        question = _place(body)
        turns = await asyncio.to_thread(self._service.desk.store.turns, principal(question), conversation(question))
        found = next((turn.answer for turn in turns or () if turn.id == action["value"]), None)
        if found:
            await client.views_open(trigger_id=body["trigger_id"], view=sums_view(found))

    async def feedback(self, ack: Any, body: dict[str, Any], action: dict[str, Any], client: AsyncWebClient) -> None:
        """Thumbs; a bad answer is asked why. The last word counts, since the buttons toggle without saying so."""
        await ack()
        if self._foreign(body):
            return
        turn_id, _, rating = str(action["value"]).partition(" ")
        owner = principal(_place(body))
        score = 1 if rating == "1" else -1
        kept = await asyncio.to_thread(self._service.desk.store.add_feedback, owner, turn_id, score)
        if kept and score < 0:
            await client.views_open(trigger_id=body["trigger_id"], view=reason_view(turn_id, owner))

    async def reason(self, ack: Any, body: dict[str, Any], view: dict[str, Any]) -> None:
        """Keep why an answer was bad (rating -1, at most 1,000 characters) with its turn. Nothing for a workspace not
        served.
        """
        await ack()
        if self._foreign(body):
            return
        turn_id, _, owner = view["private_metadata"].partition(" ")
        words = view["state"]["values"]["reason"]["value"].get("value") or ""
        await asyncio.to_thread(self._service.desk.store.add_feedback, owner, turn_id, -1, words[:1000])

    async def starter(self, ack: Any, body: dict[str, Any], action: dict[str, Any], client: AsyncWebClient) -> None:
        """An example of the home tab is asked in the direct message with the bot."""
        await ack()
        if self._foreign(body):
            return
        opened = await client.conversations_open(users=body["user"]["id"])
        channel = opened["channel"]["id"]
        posted = await client.chat_postMessage(channel=channel, text=f"You asked: {action['value']}")
        question = Question(
            body["team"]["id"], channel, posted["ts"], posted["ts"], body["user"]["id"], action["value"]
        )
        await self._accept(f"starter:{body['trigger_id']}", question)

    async def calculator(self, ack: Any, body: dict[str, Any], client: AsyncWebClient) -> None:
        """Open the memory form. Raises SlackApiError where the click is too old (3 s) or Slack refuses."""
        await ack()
        await client.views_open(trigger_id=body["trigger_id"], view=calculator_view())

    async def compute(self, ack: Any, view: dict[str, Any]) -> None:
        """Show the memory estimate of the form in its place, or say at which field it is wrong; no model is asked."""
        try:
            result = await asyncio.to_thread(get_tool("estimate_vram").call, calculator_arguments(view["state"]))
        except InputProblem as problem:
            await ack(response_action="errors", errors=calculator_errors(problem))
            return
        await ack(response_action="update", view=result_view(result))

    async def _ask(self, body: dict[str, Any], ts: str, text: str) -> None:
        if self._foreign(body):
            return
        place = _place(body)
        question = Question(place.team, place.channel, place.thread, ts, place.person, text)
        await self._accept(f"click:{ts}:{body['user']['id']}", question)

    async def _accept(self, event_id: str, question: Question) -> None:
        if await asyncio.to_thread(self._ledger.accept, event_id, question):
            self._worker.wake()

    def _foreign(self, body: dict[str, Any]) -> bool:
        return (body.get("team") or {}).get("id") not in self._teams


def _place(body: dict[str, Any]) -> Question:
    """Where a click happened."""
    container = body.get("container") or {}
    message = body.get("message") or {}
    thread = message.get("thread_ts") or container.get("thread_ts") or container.get("message_ts", "")
    return Question(
        body["team"]["id"],
        str(container.get("channel_id") or (body.get("channel") or {}).get("id", "")),
        str(thread),
        str(container.get("message_ts", "")),
        body["user"]["id"],
        "",
    )
