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
        """The tool's error (code, message, field, hint, candidates); None where it gave a result."""
        error = self.data.get("error")
        return error if isinstance(error, dict) else None

    @property
    def prefix(self) -> str:
        """The id that references to this result begin with, e.g. "t1"; "" for a result without references."""
        return str(self.data.get("tool_call", ""))

    @property
    def verdict(self) -> str:
        """The tool's own answer in a line, "" where it gave none."""
        verdict = self.data.get("verdict")
        return verdict if isinstance(verdict, str) else ""

    @property
    def tables(self) -> list[str]:
        """References to the result's tables, in order, each to stand on a line of its own."""
        return [f"[[{table['id']}]]" for table in self._rows("tables")]

    def lines(self, key: str) -> list[str]:
        """The sentences under ``key``, ``next_steps`` or ``suggestions``; [] where there are none."""
        found = self.data.get(key)
        return [line for line in found if isinstance(line, str)] if isinstance(found, list) else []

    def facts(self) -> list[dict[str, Any]]:
        """The facts that have an id and a value, as the tool message carries them: values in base units."""
        return [fact for fact in self._rows("facts") if "value" in fact]

    def _rows(self, key: str) -> list[dict[str, Any]]:
        found = self.data.get(key)
        return [row for row in found if isinstance(row, dict) and row.get("id")] if isinstance(found, list) else []

    def fact(self, name: str) -> dict[str, Any] | None:
        """The first fact of this name, its value in base units; None where the result has none."""
        return next((fact for fact in self.facts() if fact.get("name") == name), None)

    def ref(self, name: str) -> str | None:
        """The reference id of the first fact of this name, to write as ``[[id]]``; None where there is none."""
        fact = self.fact(name)
        return str(fact["id"]) if fact else None


def say(key: str, language: str = "en", /, **values: Any) -> str:
    """A sentence of ``words.yaml`` blanks filled, in English where the language has none; "" for no such key."""
    table = grammar.data("words")
    text = str(table.get(language, {}).get(key) or table["en"].get(key, ""))
    return _Blank(values).fill(text)


class _Blank(dict[str, Any]):
    def fill(self, text: str) -> str:
        return re.sub(r"(?<!\{)\{(\w+)\}", lambda match: str(self.get(match[1], "")), text)


def has(key: str, language: str) -> bool:
    """Whether a language has this sentence of its own, so that no English one stands in."""
    return key in grammar.data("words").get(language, {})
