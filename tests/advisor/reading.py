"""What tests of the planner share: whether a text reads as said, and questions asked of it in earnest."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.answer import Answer
from advisor.llm.planner.parse import parse
from advisor.turn import Desk, answer


def assert_read(text: str, expected: dict[str, Any]) -> None:
    """Each expected slot of a text; ``gpu`` is the first card, ``model`` the one that is computed with."""
    slots = parse(text)
    read = {
        **slots.values,
        "gpu": slots.gpus[0].argument if slots.gpus else None,
        "model": slots.model.argument if slots.model else None,
        "methods": slots.methods,
        "providers": slots.providers,
    }
    for name, value in expected.items():
        assert read.get(name) == (pytest.approx(value) if isinstance(value, float) else value), name


def ask(desk: Desk, *turns: str) -> Answer:
    """The answer to the last of ``turns``; every number of every answer holds."""
    conversation = None
    for text in turns:
        got = answer(text, conversation, "planner", desk=desk)
        conversation = got.conversation_id
        assert not got.grounding.repaired
        assert got.grounding.numbers == got.grounding.grounded
    return got


def lead(got: Answer) -> str:
    """The first paragraph."""
    return got.answer.split("\n\n", 1)[0]
