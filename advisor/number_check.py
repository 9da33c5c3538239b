"""The number check: every quantity in an answer must be a fact of this turn, or the answer is not shown.

A quantity stands when one of its readings equals, within the rounding it is shown with,
  - a fact's value, low or high, in the fact's dimension (units convert only by exact factors; GB and GiB differ),
  - a cell of a table, an assumption, a sum's step or a text that a tool of this turn gave,
  - something the user said,
or when it is part of a catalogue name or technical term, an index of a list, or the date of a fact. And the sentence
must speak of the fact's entity: a number of the H100 in a sentence about the B200 does not stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from advisor.evidence import MONTHS, Evidence
from advisor.links import LINKS
from advisor.names import Mention, mentions
from advisor.quantities import Quantity, quantities
from advisor.sentences import Sentences, name_spans

__all__ = ["Evidence", "Finding", "Report", "check", "evidence_of"]

_DATES = re.compile(
    r"\b(?P<iso>(?:19|20)\d\d-\d\d(?:-\d\d)?)(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?(?!\d)"
    rf"|\b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+)?(?P<month>{MONTHS})[a-z]*\.?\s+(?:(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?,?\s+)?"
    r"(?P<year>(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?<![\d.,$€£-])(?:19[89]\d|20[0-4]\d)(?![\d.,]\d|\s?[%xKkMGT$€]|\d)")
_INDEX = re.compile(
    r"^[ \t>]*(?:#{1,6}[ \t]+)?(?:\*\*)?\d{1,2}[.)](?=\s)|\[\d{1,2}\](?!\()|^[ \t]{0,40}[-*]?[ \t]{0,8}\(\d{1,2}\)"
    r"|\b(?:option|step|choice|plan|rank|table|figure|section|point|question|no\.|#)\s?#?\d{1,2}(?=[\s:,;)]|\.(?!\d)|$)",
    re.IGNORECASE,
)
_MAYBE_LINK = re.compile(r"/|\]\(|\bwww\.", re.IGNORECASE)  # cheap, and there is no link without one of these
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Finding:
    """A number that does not stand, with its sentence and why."""

    text: str
    sentence: str
    why: str

    def __str__(self) -> str:
        return f"{self.text!r} in {self.sentence!r}: {self.why}"


@dataclass(slots=True)
class Report:
    """How many quantities a text holds, how many stand, and those that do not."""

    numbers: int = 0
    grounded: int = 0
    findings: list[Finding] = field(default_factory=list)

    def missing_reference(self, name: str) -> None:
        """Count a ``[[reference]]`` that names no fact as a number that does not stand."""
        self.numbers += 1
        self.findings.append(Finding(f"[[{name}]]", "", "no fact of this turn has this id"))


def check(text: str, evidence: Evidence) -> Report:
    """Every quantity of ``text`` against the evidence, line by line: neither names nor sentences go over a line's end.

    What a line came to is kept, since a paragraph is checked when it is shown and again with the whole answer.
    """
    report = Report()
    for line in text.split("\n"):
        if line not in evidence.checked:
            evidence.checked[line] = _check_line(line, evidence)
        found = evidence.checked[line]
        report.numbers += found.numbers
        report.grounded += found.grounded
        report.findings += found.findings
    return report


def _check_line(text: str, evidence: Evidence) -> Report:
    report = Report()
    line = _read(text)
    for link in line.links:
        _judge(report, link, link, None if evidence.knows_address(link) else "it is the address of no source")
    for date in line.dates:
        why = None if evidence.knows_date(date) else "it is the date of no fact"
        _judge(report, date[0], line.sentences.at(date.start())[0], why)
    years = [year for year in line.years if evidence.knows_year(text[slice(*year)])]
    for year in years:
        _judge(report, text[slice(*year)], "", None)
    for quantity in line.quantities if not years else quantities(text, [*line.blank, *years]):
        sentence, start, end = line.sentences.at(quantity.start)
        named = [mention for mention in line.names if start <= mention.start < end]
        _judge(report, quantity.text, sentence, evidence.why_not(quantity, named))
    return report


@dataclass(frozen=True, slots=True)
class _Line:
    """What a line says, whatever its numbers may rest on."""

    names: list[Mention]
    links: list[str]
    dates: list[re.Match[str]]
    years: list[tuple[int, int]]  # bare years; one that nobody gave is a quantity like any other
    blank: list[tuple[int, int]]  # where digits are part of names, addresses, indices or dates
    quantities: list[Quantity]
    sentences: Sentences


@lru_cache(maxsize=2048)  # headings, notes and sources are the same from answer to answer
def _read(text: str) -> _Line:
    names = mentions(text)
    blank = name_spans(text, names)
    links = list(LINKS.finditer(text)) if _MAYBE_LINK.search(text) else []
    blank += [match.span() for match in links]
    dates, years = [], []
    if _DIGIT.search(text):
        blank += [match.span() for match in _INDEX.finditer(text)]
        for match in _DATES.finditer(text):
            if not _inside(match.span(), blank):
                dates.append(match)
                blank.append(match.span())
        years = [match.span() for match in _YEAR.finditer(text) if not _inside(match.span(), blank)]
    return _Line(names, [match[0] for match in links], dates, years, blank, quantities(text, blank), Sentences(text))


def evidence_of(answer: Mapping[str, Any], said: Iterable[str]) -> Evidence:
    """The evidence of a finished turn from its ``ask --json`` object and what the user said in the conversation."""
    evidence = Evidence(said)
    for call in answer["tool_calls"]:
        if call.get("result") is not None:
            evidence.add_json(call["arguments"], call["result"])
        else:
            evidence.add_error(call.get("error") or {})
    for warn in answer["warnings"]:
        evidence.add_text(warn["text"])
    evidence.add_text(answer["turn_id"])
    return evidence


def _judge(report: Report, text: str, sentence: str, why: str | None) -> None:
    report.numbers += 1
    if why is None:
        report.grounded += 1
    else:
        report.findings.append(Finding(text, " ".join(sentence.split())[:200], why))


def _inside(span: tuple[int, int], spans: list[tuple[int, int]]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in spans)
