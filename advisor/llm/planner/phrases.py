"""Sentences of ``words.yaml``, and a tool's result as the wording reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from advisor.llm.planner import grammar
from advisor.llm.planner.plan import Call


@dataclass(frozen=True, slots=True)
class Outcome:
    """A planned call with what came back."""

    call: Call
    data: dict[str, Any]

    @property
    def error(self) -> dict[str, Any] | None:
        """The tool's error, if it gave one."""
        error = self.data.get("error")
        return error if isinstance(error, dict) else None

    @property
    def prefix(self) -> str:
        """The id that references to this result begin with."""
        return str(self.data.get("tool_call", ""))

    def fact(self, name: str) -> dict[str, Any] | None:
        """The first fact of this name."""
        return next((fact for fact in self.data.get("facts", ()) if fact.get("name") == name), None)

    def ref(self, name: str) -> str | None:
        """The reference id of the first fact of this name."""
        fact = self.fact(name)
        return str(fact["id"]) if fact else None


def say(key: str, language: str = "en", /, **values: Any) -> str:
    """A sentence of ``words.yaml``."""
    table = grammar.data("words")
    text = str(table.get(language, {}).get(key) or table["en"].get(key, ""))
    return _Blank(values).fill(text)


class _Blank(dict[str, Any]):
    def fill(self, text: str) -> str:
        return re.sub(r"(?<!\{)\{(\w+)\}", lambda match: str(self.get(match[1], "")), text)


def has(key: str, language: str) -> bool:
    """Whether a language has this sentence of its own."""
    return key in grammar.data("words").get(language, {})
