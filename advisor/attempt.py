"""What one model has done in a turn, and what the results of its tool calls say together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from advisor.answer import AnswerFact, Citation, ToolRecord, finite
from advisor.grounds import grounds_of
from advisor.llm.protocol import Message
from advisor.number_check import Evidence
from advisor.render import Sources, assumptions_line, cells, render, sources_line
from advisor.tool_payload import prefix_references
from advisor.tool_runner import Outcome
from tools.result import Assumption, Table, ToolResult, Warn

MAX_CHARTS = 4


@dataclass
class Attempt:
    """The messages of one model's try at the turn and everything its tool calls gave."""

    messages: list[Message]
    evidence: Evidence
    failures: Sequence[Warn] = ()  # that models before this one could not answer
    sources: Sources = field(default_factory=Sources)
    outcomes: list[tuple[str, Outcome]] = field(default_factory=list)  # with the call's short id, e.g. t1
    payloads: list[dict[str, object]] = field(default_factory=list)
    answer_facts: dict[str, list[AnswerFact]] = field(default_factory=dict)  # of each call, by its short id
    seen: dict[str, str] = field(default_factory=dict)  # a call's name and arguments -> its short id
    faults: int = 0
    repeats: int = 0
    tokens: int = 0
    repaired: bool = False

    def __post_init__(self) -> None:
        for warn in self.failures:
            self.evidence.add_text(warn.text)

    def take_in(self, short: str, outcome: Outcome) -> None:
        """Keep what became of a call, in every form that is needed later."""
        self.outcomes.append((short, outcome))
        self.payloads.append(outcome.payload(short))
        if outcome.result is None:
            self.evidence.add_error(outcome.error or {})
        else:
            self.answer_facts[short] = _facts_of(short, outcome.result)
            self.sources.add(short, outcome.result)
            self.evidence.add_grounds(outcome.grounds or grounds_of(outcome.call.arguments, outcome.data or {}))

    @property
    def results(self) -> list[tuple[str, ToolResult]]:
        """(short id, result) of the calls that worked, in the order they were made; t1 is the first."""
        return [(short, outcome.result) for short, outcome in self.outcomes if outcome.result is not None]

    def footer(self) -> list[str]:
        """The paragraphs below any answer: warnings, assumptions, sources."""
        notes = [f"Note: {warn.text}" for warn in self.warnings()]
        titles = [(citation.title, citation.as_of) for citation in self.citations()]
        return [part for part in (*notes, assumptions_line(self.assumptions()), sources_line(titles)) if part]

    def records(self) -> list[ToolRecord]:
        """Every call in order with its whole result or its error, infinities as null; times in milliseconds."""
        return [
            ToolRecord(
                id=short,
                name=outcome.call.name,
                arguments=finite(outcome.call.arguments),
                result=outcome.data,
                error=outcome.error,
                milliseconds=outcome.milliseconds,
            )
            for short, outcome in self.outcomes
        ]

    def facts(self, printed_tables: Iterable[str] = ()) -> list[AnswerFact]:
        """The facts of every call, and the cells of the tables that the answer prints."""
        found = [fact for facts in self.answer_facts.values() for fact in facts]
        known = {(fact.tool_call, fact.unit, fact.value) for fact in found}
        for name in dict.fromkeys(printed_tables):
            for fact in _cell_facts(name, self.sources.tables[name]):
                if (fact.tool_call, fact.unit, fact.value) not in known:
                    found.append(fact)
        return found

    def assumptions(self) -> list[Assumption]:
        """Every default that mattered, once by name and value, in the order of the calls."""
        found: dict[tuple[str, str], Assumption] = {}
        for _short, result in self.results:
            for item in result.assumptions:
                found.setdefault((item.name, json.dumps(item.value)), item)
        return list(found.values())

    def citations(self) -> list[Citation]:
        """Every source once by its id, in the order of the calls; one without address is cited by its id."""
        found: dict[str, Citation] = {}
        for _short, result in self.results:
            for source in result.sources:
                where = source.url or source.id
                found.setdefault(
                    source.id, Citation(id=source.id, title=source.title, source=where, as_of=source.as_of)
                )
        return list(found.values())

    def warnings(self) -> list[Warn]:
        """What the reader should know before acting, once each, with numbers printed; why models failed comes first."""
        found = {warn.text: warn for warn in self.failures}
        for short, result in self.results:
            for warn in result.warnings:
                text = render(prefix_references(short, warn.text), self.sources).text
                found.setdefault(text, Warn(code=warn.code, text=text))
        return list(found.values())


def _facts_of(short: str, result: ToolResult) -> list[AnswerFact]:
    """The facts of one call, under ids that are unique in the conversation."""
    return [
        AnswerFact(
            id=f"{short}.{fact.id}",
            name=fact.name,
            value=fact.value,
            unit=fact.unit,
            low=fact.low,
            high=fact.high,
            kind=fact.kind,
            basis=fact.basis,
            as_of=fact.as_of,
            tool_call=short,
        )
        for fact in result.facts
    ]


def _cell_facts(name: str, table: Table) -> Iterable[AnswerFact]:
    """The numbers of a table's cells as facts: whoever checks an answer finds each of its numbers in one list."""
    call = name.partition(".")[0]
    for number, row in enumerate(table.rows):
        about = "; ".join(cell for cell in cells(table, row) if not cell[:1].isdigit())[:120]
        dated = next(
            (str(cell) for column, cell in zip(table.columns, row, strict=False) if _is_date(column.key, cell)), None
        )
        for column, cell in zip(table.columns, row, strict=False):
            if isinstance(cell, (int, float)) and not isinstance(cell, bool):
                yield AnswerFact(
                    id=f"{name}.{number}.{column.key}",
                    name=column.key,
                    value=cell,
                    unit=column.unit,
                    kind="price" if column.unit in ("USD/h", "USD/GPU-h") else "modelled",
                    basis=f"table {table.title or table.id}, row {about}".rstrip(", "),
                    as_of=dated,
                    tool_call=call,
                )


def _is_date(key: str, cell: object) -> bool:
    return key in ("seen", "as_of", "date", "observed") and isinstance(cell, str) and cell[:2] == "20"
