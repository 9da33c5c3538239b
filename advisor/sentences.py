"""Names and sentences in a text: where digits belong to a name, and which sentence a number stands in."""

from __future__ import annotations

import re
from bisect import bisect_right

from advisor.names import Mention, term_spans
from advisor.quantities import normalised

_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_LONE_NUMBER = re.compile(r"^\d{3,5}$")


def name_spans(text: str, names: list[Mention]) -> list[tuple[int, int]]:
    """Where digits belong to names. A card's nickname (4090) is one only without a unit or currency."""
    spans = term_spans(normalised(text))
    for mention in names:
        words = text[mention.start : mention.end]
        if _LONE_NUMBER.match(words) and _adorned(text, mention.start, mention.end):
            continue
        spans.append((mention.start, mention.end))
    return spans


_AFTER_NUMBER = re.compile(
    r"\s?(?:%|[kKMGTP]i?[Bb]\b|h\b|hours?\b|days?\b|USD|dollars?|tokens?|steps?|W\b|FLOP|TFLOP|x\b|[.,]\d)"
)
_BEFORE_NUMBER = re.compile(r"(?:[$€£]\s?|USD\s|\d[.,])$")


def _adorned(text: str, start: int, end: int) -> bool:
    return bool(_AFTER_NUMBER.match(text, end) or _BEFORE_NUMBER.search(text[max(0, start - 5) : start]))


class Sentences:
    """The sentence (or table row) around a position."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(match.end() for match in _SENTENCE_END.finditer(text))]

    def at(self, position: int) -> tuple[str, int, int]:
        """(sentence, start, end) around this position of the text, ``end`` beyond its last character."""
        number = bisect_right(self._starts, position) - 1
        start = self._starts[number]
        end = self._starts[number + 1] if number + 1 < len(self._starts) else len(self._text)
        return self._text[start:end], start, end
