"""Errors of tools: the same shape as the knowledge base's, under the names that tools raise."""

from __future__ import annotations

from collections.abc import Iterable

from rapidfuzz import process

from knowledge.errors import BadValue, InputProblem, MissingValue, UnknownName

__all__ = ["BadValue", "InputProblem", "MissingValue", "UnknownName", "nearest"]


def nearest(value: str, choices: Iterable[str], limit: int = 3) -> list[str]:
    """The choices most like ``value``, best first (rapidfuzz weighted ratio of at least 50)."""
    found = process.extract(value, list(choices), limit=limit, score_cutoff=50)
    return [name for name, _score, _index in found]
