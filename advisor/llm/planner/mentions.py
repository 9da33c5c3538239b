"""Models and cards named in a text, and what the readers of both share."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

# hub: an id that is not in the tables but that a surface may read from the model hub.
ModelKind = Literal["known", "hub", "size", "unknown", "closed", "unmodelled"]
COMPUTED = ("known", "hub", "size")
GpuKind = Literal["known", "unknown"]

TOKEN = re.compile(r"(?<=\d)x(?=[a-z])|[a-z]+|\d+(?:\.\d+)?|[^\s\w]|[^\x00-\x7f]", re.ASCII)
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ModelMention:
    """A model named in the text. ``argument`` is what a tool takes; None where nothing can be computed."""

    text: str
    kind: ModelKind
    argument: str | None
    start: int
    size: str | None = None
    nearest: tuple[str, ...] = ()
    topic: str | None = None  # of an unmodelled one: vision, diffusion, robotics, other
    note: str | None = None


@dataclass(frozen=True, slots=True)
class GpuMention:
    """A card named in the text, with how many of it. ``argument`` is what a tool takes."""

    text: str
    kind: GpuKind
    argument: str | None
    start: int
    end: int
    count: int | None = None
    nodes: int | None = None
    memory_gb: float | None = None  # stated, where it is not the known card's
    nearest: tuple[str, ...] = ()
    note: str | None = None


def tokens(text: str) -> list[tuple[int, int, str]]:
    """Letters, numbers and signs with their places; "h100" is two, "8xh100" four."""
    return [(match.start(), match.end(), match[0]) for match in TOKEN.finditer(text)]


def overlaps(span: Span, taken: Iterable[Span]) -> bool:
    """Whether any character of ``span`` (start, end) lies in one of ``taken``."""
    return any(span[0] < end and start < span[1] for start, end in taken)


def joined(char: str) -> bool:
    """Whether a neighbour belongs to the same word; other scripts begin a new one."""
    return char.isascii() and char.isalnum()
