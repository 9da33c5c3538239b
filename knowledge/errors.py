"""The one shape of an error that a user can mend, from the lowest room up.

InputProblem
├── UnknownName      a model, GPU, instance, link, provider or article that the knowledge base does not hold
├── BadValue         a value out of range, of the wrong type, or at odds with another one
└── MissingValue     something without which no answer can be computed
"""

from __future__ import annotations

from typing import Any

MAX_WORDS_CHARS = 1_000  # an error repeats what was typed, which may be a megabyte; nobody reads more than this
MAX_FIELD_CHARS = 200


class InputProblem(Exception):
    """What is wrong, which field, and the nearest valid thing; shown to people and models alike.

    Attributes:
        code: short machine-readable name, e.g. ``unknown_gpu`` or ``out_of_range``.
        message: one plain sentence.
        field: the argument at fault, e.g. ``gpu`` or ``seq_len``.
        hint: what to do about it.
        candidates: the nearest valid values, best first.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        field: str | None = None,
        hint: str | None = None,
        candidates: list[str] | None = None,
    ) -> None:
        message = _short(message)
        super().__init__(message)
        self.code = code
        self.message = message
        self.field = field and field[:MAX_FIELD_CHARS]
        self.hint = hint and _short(hint)
        self.candidates = [_short(name) for name in candidates or ()]

    def as_dict(self) -> dict[str, Any]:
        """The error body, the same on every surface: code, message, field, hint, candidates; None and [] where not
        told.
        """
        return {
            "code": self.code,
            "message": self.message,
            "field": self.field,
            "hint": self.hint,
            "candidates": self.candidates,
        }


class UnknownName(InputProblem):
    """A name that the knowledge base does not hold; ``candidates`` are the nearest known ones."""


class BadValue(InputProblem):
    """A value that cannot be: out of range, of the wrong type, or contradicting another argument."""


class MissingValue(InputProblem):
    """A needed argument was not given and has no sensible default."""


def _short(text: str) -> str:
    """The beginning and the end of a long text, which hold what is wrong and what was expected."""
    if len(text) <= MAX_WORDS_CHARS:
        return text
    half = MAX_WORDS_CHARS // 2
    return f"{text[: half - 2]} … {text[-half + 2 :]}"
