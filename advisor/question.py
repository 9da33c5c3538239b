"""Taking a question in: what cannot be read is refused with one clear error, the rest is freed of stray controls."""

from __future__ import annotations

import re

from tools.errors import BadValue, MissingValue

# Escape sequences of terminals, then controls other than tab and newline, then bidi, zero-width and tag characters.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?|[@-Z\\-_])")
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")
_UNREADABLE = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd\ud800-\udfff\ufffe\uffff]")
MOST_UNREADABLE = 0.05


def read_question(text: str, longest: int) -> str:
    """The question as kept and shown to models. Raises MissingValue when empty, BadValue when long or unreadable."""
    if len(text) > longest:
        raise BadValue(
            "question_too_long",
            f"The question has {len(text):,} characters; at most {longest:,} are read.",
            field="question",
            hint="Paste the part that matters: the error's last lines, or the configuration.",
        )
    if len(_UNREADABLE.findall(text)) > MOST_UNREADABLE * len(text):
        raise BadValue(
            "question_unreadable",
            "The question is not readable text.",
            field="question",
            hint="Send plain text in UTF-8.",
        )
    cleaned = clean(text).strip()
    if not cleaned:
        raise MissingValue(
            "empty_question",
            "There is no question.",
            field="question",
            hint='Ask for example: "what GPU for 70B QLoRA?"',
        )
    return cleaned


def clean(text: str) -> str:
    """``text`` without terminal escapes, control, bidi and zero-width characters and lone surrogates."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _HIDDEN.sub("", _ESCAPES.sub("", text))
    return text.encode("utf-8", "ignore").decode("utf-8")
