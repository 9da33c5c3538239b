"""Takes jobs and answers them: a lease kept alive, the turn run beside the event loop, the message shown once."""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import suppress
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from advisor.accounts import Limits
from advisor.answer import Answer
from integrations.http.auth import Caller
from integrations.http.follow import ShuttingDown
from integrations.http.problems import ServiceProblem
from integrations.http.service import Service
from integrations.slack.blocks import answer_post, plain_post, words_post
from integrations.slack.ledger import Job, Ledger, Question
from integrations.slack.message import Message, Unreachable
from integrations.slack.settings import SlackSettings
from tools.errors import InputProblem

log = logging.getLogger("advisor.slack")
MAX_ATTEMPTS = 5
IDLE_SECONDS = 1.0  # how often other processes' leftovers are looked for; own jobs wake the worker at once
SORRY = "Something went wrong on our side; your question is kept. Please ask again in a moment."


def principal(question: Question) -> str:
    """Whose conversations these are: a channel's members share theirs, a direct message is nobody else's."""
    return f"slack:{question.team}:{question.channel}"


def conversation(question: Question) -> str:
    """The id of the conversation that a thread of a channel is, "slack:CHANNEL:THREAD"."""
    return f"slack:{question.channel}:{question.thread}"


class Worker:
    """Answers the jobs of one process."""

    def __init__(
        self, service: Service, ledger: Ledger, client: AsyncWebClient, settings: SlackSettings, bot_user: str
    ) -> None:
        self._service, self._ledger, self._client, self._settings = service, ledger, client, settings
        self._bot_user = bot_user
        self._owner = secrets.token_hex(8)
        self._wake = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        """Look for jobs at once, not at the next tick: a new one was written down."""
        self._wake.set()

    async def run(self) -> None:
        """Claim and answer jobs, at most ``slack_workers`` at a time, until cancelled; then its running jobs are
        cancelled too, and their leases run out for others.
        """
        ticks = 0
        try:
            while True:
                while len(self._running) < self._settings.slack_workers:
                    job = await asyncio.to_thread(self._ledger.claim, self._owner)
                    if job is None:
                        break
                    task = asyncio.create_task(self._work(job))
                    self._running.add(task)
                    task.add_done_callback(self._done)
                self._wake.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), IDLE_SECONDS)
                ticks += 1
                if ticks % 3600 == 0:
                    await asyncio.to_thread(self._ledger.sweep)
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self.wake()

    async def _work(self, job: Job) -> None:
        beat = asyncio.create_task(self._beat(job))
        try:
            if job.attempts > MAX_ATTEMPTS:
                await asyncio.to_thread(self._ledger.drop, job.id)
                log.error("job %s dropped after %d attempts", job.id, MAX_ATTEMPTS)
                return
            await self._answer(job)
        except Unreachable as error:
            log.warning("job %s cannot be shown: %s", job.id, error)
            await asyncio.to_thread(self._ledger.drop, job.id)
        except ShuttingDown:
            pass  # the lease runs out and another process takes over
        except Exception:
            log.exception("job %s failed; it is tried again when its lease is over", job.id)
        finally:
            beat.cancel()

    async def _beat(self, job: Job) -> None:
        while True:
            await asyncio.sleep(self._settings.slack_lease_seconds / 3)
            if not await asyncio.to_thread(self._ledger.keep, job.id, self._owner):
                log.warning("job %s was taken over", job.id)
                return

    async def _answer(self, job: Job) -> None:
        message = Message(self._client, self._ledger, job, self._bot_user, self._settings.slack_native_streams)
        await self._status(job, "is working it out…")
        await message.open()
        try:
            wait = await asyncio.to_thread(self._take, job)
            if wait > 0:
                await message.close(words_post(f"That is a lot of questions; please wait {wait:.0f} s and ask again."))
                await asyncio.to_thread(self._ledger.finish, job.id, "")
                return
            answer = await self._turn(job, message)
            if isinstance(answer, Answer):
                data = answer.as_json()
                await message.close(answer_post(data), plain_post(data))
                await asyncio.to_thread(self._ledger.finish, job.id, answer.turn_id)
            else:
                await message.close(words_post(answer))
                await asyncio.to_thread(self._ledger.finish, job.id, "")
        finally:
            await self._status(job, "")

    def _take(self, job: Job) -> float:
        if job.attempts > 1:  # counted when first tried
            return 0.0
        return self._service.accounts.take(self._subject(job), self._settings.slack_requests_per_minute)

    @staticmethod
    def _subject(job: Job) -> str:
        return f"slack:{job.question.team}:{job.question.person}"

    async def _turn(self, job: Job, message: Message) -> Answer | str:
        """The answer, or a sentence for the person when there is none."""
        limits = Limits(
            tokens_per_day=self._settings.slack_tokens_per_day, usd_per_day=self._settings.slack_usd_per_day
        )
        caller = Caller(principal(job.question), self._subject(job), limits=limits)
        ask = self._service.ask(caller, "slack", job.question.text, conversation(job.question))
        names: dict[str, str] = {}
        try:
            async for event in self._service.turns.events(ask):
                if event.type == "tool_started":
                    names[event.id] = event.name.replace("_", " ")
                    await message.task(event.id, names[event.id], "in_progress")
                elif event.type == "tool_finished":
                    status = "error" if event.error else "complete"
                    await message.task(event.id, names.get(event.id, event.name), status, event.verdict)
                elif event.type == "done":
                    return event.answer
        except InputProblem as problem:
            return " ".join(part for part in (problem.message, problem.hint) if part)
        except ServiceProblem as refused:
            return refused.problem.message
        return SORRY

    async def _status(self, job: Job, words: str) -> None:
        """The line under the composer; nothing depends on it, and not every channel has one."""
        arguments: dict[str, Any] = {"channel_id": job.question.channel, "thread_ts": job.question.thread}
        with suppress(Exception):
            await asyncio.wait_for(self._client.assistant_threads_setStatus(**arguments, status=words), 3)
