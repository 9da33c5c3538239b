"""One visible message for one job, whatever Slack or this process does meanwhile.

Opened once (a native stream, or a plain post where streams are not to be had), fed with task updates, closed with the
answer's blocks. What is idempotent (updates) is retried; what is not (the first post) is looked up in the thread when
nobody knows whether it arrived, since Slack's posting has no idempotency key.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from aiohttp import ClientError
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from integrations.slack.blocks import Post
from integrations.slack.escape import plain
from integrations.slack.ledger import Job, Ledger

log = logging.getLogger("advisor.slack")
EVENT_TYPE = "advisor_answer"  # metadata by which a post is found again
FEED_SECONDS = 1.0  # appendStream is a tier 4 method, about 100 calls a minute
TRIES = 4
LOST = (SlackClientError, ClientError, OSError, TimeoutError)  # nobody knows whether Slack did it
_NO_STREAM = frozenset({
    "unknown_method", "not_allowed_token_type", "missing_scope", "channel_type_not_supported", "feature_not_enabled",
    "method_not_supported_for_channel_type", "invalid_arguments", "team_not_found", "user_not_found",
})  # fmt: skip
_CLOSED = frozenset({"message_not_in_streaming_state", "streaming_mode_mismatch", "message_not_owned_by_app"})
_HOPELESS = frozenset({"channel_not_found", "not_in_channel", "is_archived", "account_inactive", "token_revoked"})


class Unreachable(Exception):
    """Slack will never show this message: the channel is gone, the bot is out of it, the token is void."""


class Message:
    """The answer's message; use one instance a job and attempt."""

    def __init__(self, client: AsyncWebClient, ledger: Ledger, job: Job, bot_user: str, streams: bool) -> None:
        self._client, self._ledger, self._job, self._bot_user = client, ledger, job, bot_user
        self._wants_stream = streams
        self._streaming = False
        self._ts = job.answer_ts if job.post == "sent" else ""
        self._tasks: dict[str, dict[str, Any]] = {}
        self._fed_at = 0.0

    async def open(self) -> None:
        """Make sure that exactly one message of this job is in the thread. Raises Unreachable."""
        if not self._ts and self._job.post == "sending":
            found = await self._find()
            if found:
                await self._note(found)
        if self._ts:
            self._streaming = self._wants_stream  # of an earlier attempt: perhaps it streams still, closing will tell
            return
        for attempt in range(TRIES):
            await asyncio.to_thread(self._ledger.sending, self._job.id)
            try:
                await self._note(await self._post())
                return
            except LOST as error:
                if code := code_of(error):  # Slack said no: nothing was posted
                    await asyncio.to_thread(self._ledger.not_sent, self._job.id)
                    self._judge(code, attempt)
                else:
                    log.warning("post of %s: %s; looking whether it arrived", self._job.id, type(error).__name__)
                    found = await self._find()
                    if found:
                        self._streaming = self._wants_stream
                        await self._note(found)
                        return
            await asyncio.sleep(0.5 * 2**attempt)
        raise Unreachable("the message could not be posted")

    async def task(self, key: str, title: str, status: str, output: str = "") -> None:
        """Show how a tool call stands; at most one update in ``FEED_SECONDS`` is sent, and only into a stream. What
        Slack refuses is dropped, since the answer follows.
        """
        chunk = {"type": "task_update", "id": plain(key, 60), "title": plain(title, 120), "status": status}
        if output:
            chunk["output"] = plain(output, 200)
        self._tasks[key] = chunk
        if not self._streaming or time.monotonic() - self._fed_at < FEED_SECONDS:
            return
        await self._feed()

    async def close(self, *posts: Post) -> None:
        """Show the answer: the first of ``posts`` whose blocks Slack takes. Raises Unreachable."""
        if self._streaming:
            await self._feed()
        for number, post in enumerate(posts):
            try:
                await self._show(post)
                return
            except _BadBlocks as error:
                log.warning("blocks of %s refused: %s", self._job.id, error)
                if number == len(posts) - 1:
                    await self._show(Post([], post.text))

    # Helpers ------------------------------------------------------------------------------------------------------

    async def _post(self) -> str:
        question = self._job.question
        if self._wants_stream:
            try:
                begun = await self._client.chat_startStream(
                    channel=question.channel,
                    thread_ts=question.thread,
                    recipient_team_id=question.team,
                    recipient_user_id=question.person,
                    task_display_mode="timeline",
                )
                self._streaming = True
                return str(begun["ts"])
            except SlackApiError as error:
                if code_of(error) not in _NO_STREAM:
                    raise
                self._wants_stream = False
        made = await self._client.chat_postMessage(
            channel=question.channel,
            thread_ts=question.thread,
            text="Working on it…",
            unfurl_links=False,
            unfurl_media=False,
            metadata={"event_type": EVENT_TYPE, "event_payload": {"job": self._job.id}},
        )
        return str(made["ts"])

    async def _find(self) -> str:
        """The message of this job in the thread, if it is there: ours, later than the question, no other job's."""
        question = self._job.question
        taken = await asyncio.to_thread(self._ledger.answers_in, question)
        for attempt in range(TRIES):
            try:
                replies = await self._client.conversations_replies(
                    channel=question.channel,
                    ts=question.thread,
                    oldest=question.ts,
                    include_all_metadata=True,
                    limit=100,
                )
                break
            except LOST as error:
                if code := code_of(error):
                    self._judge(code, attempt)
            await asyncio.sleep(0.5 * 2**attempt)
        else:
            raise ConnectionError("the thread could not be read")
        own = [one for one in replies["messages"] if one.get("user") == self._bot_user and one["ts"] > question.ts]
        for one in own:
            if (one.get("metadata") or {}).get("event_payload", {}).get("job") == self._job.id:
                return str(one["ts"])
        free = [one["ts"] for one in own if one["ts"] not in taken and not one.get("metadata")]
        return str(free[0]) if free else ""

    async def _note(self, ts: str) -> None:
        self._ts = ts
        await asyncio.to_thread(self._ledger.sent, self._job.id, ts)

    async def _feed(self) -> None:
        chunks, self._tasks = list(self._tasks.values()), {}
        if not chunks:
            return
        self._fed_at = time.monotonic()
        try:
            await self._client.chat_appendStream(channel=self._job.question.channel, ts=self._ts, chunks=chunks)
        except LOST as error:
            if code_of(error) in _CLOSED:
                self._streaming = False  # Slack ends a stream after minutes; the answer goes in by an update
            else:
                log.info("a task update of %s was lost", self._job.id)

    async def _show(self, post: Post) -> None:
        for attempt in range(TRIES):
            try:
                if self._streaming:
                    await self._client.chat_stopStream(
                        channel=self._job.question.channel, ts=self._ts, blocks=post.blocks, markdown_text=None
                    )
                else:
                    await self._client.chat_update(
                        channel=self._job.question.channel, ts=self._ts, text=post.text, blocks=post.blocks
                    )
                return
            except LOST as error:
                code = code_of(error)
                if not code:  # whether it was stopped or not, an update shows the answer
                    self._streaming = False
                    await asyncio.sleep(0.5 * 2**attempt)
                    continue
                if code in ("invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long"):
                    raise _BadBlocks(code) from None
                if self._streaming and code in _CLOSED:
                    self._streaming = False
                    continue
                if code == "message_not_found":
                    raise Unreachable("the message was deleted") from None
                self._judge(code, attempt)
            await asyncio.sleep(0.5 * 2**attempt)
        raise ConnectionError("the answer could not be shown")

    @staticmethod
    def _judge(code: str, attempt: int) -> None:
        """Whether it is worth another try. Raises Unreachable or ConnectionError when it is not."""
        if code in _HOPELESS:
            raise Unreachable(code) from None
        if attempt == TRIES - 1:
            raise ConnectionError(f"Slack: {code}") from None


def code_of(error: Exception) -> str:
    """What Slack said, empty when nobody knows: the connection broke, or something in between answered."""
    data = error.response.data if isinstance(error, SlackApiError) else None
    return str(data.get("error", "")) if isinstance(data, dict) else ""


class _BadBlocks(Exception):
    """Slack does not take these blocks."""
