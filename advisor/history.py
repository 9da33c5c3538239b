"""What of the earlier conversation a model is shown: the newest turns whole, older results as their verdict only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from advisor.llm.protocol import Message

WHOLE_TURNS = 2


def trimmed(history: Sequence[Message], longest: int) -> tuple[Message, ...]:
    """The newest turns that fit into ``longest`` characters; a turn is kept whole or not at all."""
    turns: list[list[Message]] = []
    for message in history:
        if message.role == "user" or not turns:
            turns.append([])
        turns[-1].append(message)
    kept: list[list[Message]] = []
    used = 0
    for age, turn in enumerate(reversed(turns)):
        short = turn if age < WHOLE_TURNS else [_shortened(message) for message in turn]
        size = sum(len(message.content) for message in short)
        if used + size > longest:
            short = [_shortened(message) for message in turn]
            size = sum(len(message.content) for message in short)
        if used + size > longest:
            break
        kept.append(short)
        used += size
    return tuple(message for turn in reversed(kept) for message in turn)


def _shortened(message: Message) -> Message:
    if message.role != "tool":
        return message
    try:
        data = json.loads(message.content)
    except ValueError:
        return replace(message, content="{}")
    kept = {key: data[key] for key in ("tool_call", "tool", "verdict", "error") if key in data}
    return replace(message, content=json.dumps(kept, ensure_ascii=False))
