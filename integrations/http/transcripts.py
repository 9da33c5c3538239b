"""Conversations of clients that send everything said so far with each question (the OpenAI format).

A transcript that ends in an answer of ours is known by its digest, so the stored conversation, tool results included,
goes on. One that is not known (begun elsewhere, or edited) is begun here with what the client sent.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from advisor.llm.protocol import Message
from advisor.store import Conversations, Opened, Recalled

Said = tuple[str, str]  # role and text
MOST_MESSAGES = 400


@dataclass
class Transcript:
    """What a client sent: everything said before, and the question."""

    before: tuple[Said, ...]
    question: str
    recalled: Recalled | None = None

    @classmethod
    def recall(cls, store: Conversations, principal: str, said: Sequence[Said]) -> Transcript:
        """The transcript with the stored conversation that it goes on with, if any."""
        *before, (_role, question) = said[-MOST_MESSAGES:]
        found = cls(tuple(before), question)
        if any(role == "assistant" for role, _text in before):
            found.recalled = store.recall(principal, _digest(before))
        return found

    @property
    def conversation_id(self) -> str | None:
        """The conversation to go on with; None begins one: a fork must not change what it was forked from."""
        return self.recalled.conversation_id if self.recalled and self.recalled.latest else None

    def history(self) -> tuple[Message, ...]:
        """Messages before the question as models are shown them: the stored ones with tool results, else the client's
        own.
        """
        if self.recalled:
            return self.recalled.history
        return tuple(Message("user" if role == "user" else "assistant", text) for role, text in self.before)

    def remember(self, store: Conversations, principal: str, answer: str, conversation_id: str, turn_id: str) -> None:
        """Store where the transcript that ends in this answer goes on, so that the client's next request finds its
        conversation; the digest is kept, not the text.
        """
        said = [*self.before, ("user", self.question), ("assistant", answer)]
        store.remember(principal, _digest(said), conversation_id, turn_id)


class Continued:
    """A store whose next turn begins after what the transcript says; everything else is the store's."""

    def __init__(self, store: Conversations, transcript: Transcript) -> None:
        self._store, self._transcript = store, transcript

    def begin(self, principal: str, conversation_id: str | None, question: str) -> Opened:
        """As the store's ``begin``, with the transcript's history in place of none where a new conversation is begun.
        Raises what the store raises.
        """
        opened = self._store.begin(principal, conversation_id, question)
        if conversation_id is not None or not self._transcript.before:
            return opened
        history = self._transcript.history()
        calls = sum(message.role == "tool" for message in history)
        return replace(opened, history=history, tool_calls_before=calls)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def _digest(said: Sequence[Said]) -> str:
    """Clients trim and re-wrap white space, so it does not count."""
    normal = [[role, " ".join(text.split())] for role, text in said]
    return hashlib.sha256(json.dumps(normal, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()
