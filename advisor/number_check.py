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
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from advisor.names import Mention, id_of, kind_of, mentions, term_spans, words_of
from advisor.quantities import Quantity, Reading, normalised, quantities
from advisor.render import REFERENCE, show_fact
from tools.result import Fact, ToolResult
from tools.units import format_value

_DIMENSIONS = {
    "B": "bytes", "B/s": "bytes/s", "B/param": "bytes/param", "B/token": "bytes/token", "FLOP": "flop",
    "FLOP/s": "flop/s", "FLOP/token": "flop/token", "s": "time", "h": "time", "days": "time", "tokens": "tokens",
    "tokens/s": "tokens/s", "samples": "samples", "params": "params", "USD": "money", "USD/h": "money/h",
    "USD/GPU-h": "money/gpu/h", "USD/GB-month": "money/gb/month",
    "USD/GB-h": "money/gb/h", "USD/GB": "money/gb", "USD/TFLOP-h": "money/tflop/h",
    "USD/kWh": "money/kwh", "USD/token": "money/token",
    "%": "percent", "x": "ratio", "GPUs": "gpus", "nodes": "nodes", "layers": "layers", "steps": "steps",
    "W": "watts", "kWh": "kwh", "kg CO2e": "kg", "offers": "offers", "": "count",
}  # fmt: skip
_SCALES = {"h": 3600.0, "days": 86400.0}
# What a number without a unit, or with the count's noun left out, may be a number of.
_COUNTS = frozenset({"count", "gpus", "nodes", "layers", "steps", "offers", "tokens", "samples", "params", "ratio"})
# Which known dimensions a reading of text may state.
_MAY_STATE = {"count": tuple(sorted(_COUNTS)), "time": ("time", "gpu-time"), "percent": ("percent", "count", "ratio")}
# What a count without a unit counts, by its name.
_COUNTED = (
    (re.compile(r"gpu|card|^(?:tp|pp|cp|ep|dp)$"), "gpus"), (re.compile(r"node|server|machine"), "nodes"),
    (re.compile(r"layer"), "layers"), (re.compile(r"param"), "params"), (re.compile(r"token|seq_len"), "tokens"),
    (re.compile(r"sample|batch|epoch"), "samples"), (re.compile(r"step"), "steps"), (re.compile(r"offer"), "offers"),
)  # fmt: skip
_COUNT_ARGUMENTS = re.compile(
    r"^(?:n_gpus|gpus_per_node|n_nodes|seq_len|micro_batch|grad_accum|lora_rank|tp|pp|cp|ep|dp|tokens|epochs|years|"
    r"max_gpus|samples|vocab\w*|num_\w+|n_\w+)$"
)
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DATES = re.compile(
    r"\b(?P<iso>(?:19|20)\d\d-\d\d(?:-\d\d)?)(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?(?!\d)"
    rf"|\b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+)?(?P<month>{_MONTHS})[a-z]*\.?\s+(?:(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?,?\s+)?"
    r"(?P<year>(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?<![\d.,$€£-])(?:19[89]\d|20[0-4]\d)(?![\d.,]\d|\s?[%xKkMGT$€]|\d)")
_INDEX = re.compile(
    r"^[ \t>]*(?:#{1,6}[ \t]+)?(?:\*\*)?\d{1,2}[.)](?=\s)|\[\d{1,2}\](?!\()|^[ \t]*[-*]?[ \t]*\(\d{1,2}\)"
    r"|\b(?:option|step|choice|plan|rank|table|figure|section|point|question|no\.|#)\s?#?\d{1,2}(?=[\s:,;)]|\.(?!\d)|$)",
    re.IGNORECASE,
)
# Addresses: with a scheme, as a link's target, or a host with a path. Only those that a tool or the user gave stand.
_LINKS = re.compile(
    r"(?:https?|ftp)://[^\s)>\]]+|(?<=\]\()\s*<?[^\s)>]+|\bwww\.[^\s)>\]]+"
    r"|\b(?:[a-z0-9-]+\.)+[a-z]{2,12}/[^\s)>\]|`*,;]+",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_LONE_NUMBER = re.compile(r"^\d{3,5}$")


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
        """Count a reference that names no fact."""
        self.numbers += 1
        self.findings.append(Finding(f"[[{name}]]", "", "no fact of this turn has this id"))


@dataclass(frozen=True, slots=True)
class _Known:
    """A value that may be stated. ``about``: entity ids; empty: no entity is asked for."""

    value: float
    dimension: str
    about: tuple[str, ...] = ()


class Evidence:
    """What the numbers of a turn's answer may rest on."""

    def __init__(self, said: Iterable[str] = ()) -> None:
        self._known: dict[str, list[_Known]] = {}
        self._texts: list[str] = []
        self._quoted: list[tuple[Quantity, tuple[str, ...]]] | None = None
        self.checked: dict[str, Report] = {}  # what each line came to, on this evidence
        self._dates: set[str] = set()
        self._said: list[Quantity] = []
        self._said_texts: list[str] = []
        for text in said:
            self._said_texts.append(normalised(text).casefold())
            self._said += quantities(text)
            self._said += quantities(text, _name_spans(text, mentions(text)))

    def add(self, call: str, arguments: Mapping[str, Any], result: ToolResult) -> None:
        """Take in a tool's result; ``arguments`` name the entities that its facts speak of."""
        self.add_json(arguments, result.model_dump(mode="json", exclude={"charts"}))

    def add_json(self, arguments: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """The same from a result as JSON data, e.g. of an ``ask --json`` object."""
        asked = _entities(arguments)
        for fact in result.get("facts", ()):
            about = tuple(fact.get("about") or ())
            kinds = {kind_of(name) for name in about}
            about += tuple(name for name in asked if kind_of(name) not in kinds)
            dimension, scale = _dimension(fact["unit"], fact["name"])
            for value in (fact["value"], fact.get("low"), fact.get("high")):
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    self._know(value * scale, dimension, about)
                elif isinstance(value, str):
                    self._texts.append(value)
            self._date(fact.get("as_of"))
            self._texts += [fact.get("label") or "", fact.get("basis") or ""]
        for item in [*result.get("assumptions", ()), *result.get("steps", ())]:
            dimension, scale = _dimension(item["unit"], item.get("name") or item.get("symbol") or "")
            if isinstance(item["value"], (int, float)) and not isinstance(item["value"], bool):
                self._know(item["value"] * scale, dimension)
            else:
                self._texts.append(str(item["value"]))
            self._texts += [item.get("why", ""), item.get("expression", "")]
        for table in result.get("tables", ()):
            self._table(table)
        for source in result.get("sources", ()):
            self._date(source["as_of"])
            self._texts += [source["title"], source.get("url") or "", source["id"]]
        # A tool's own sentences as printed: what it says of an entity may be said again.
        sentences = [result.get("verdict", ""), *result.get("next_steps", ())]
        sentences += [warn["text"] for warn in result.get("warnings", ())]
        facts = {key: fact for fact in reversed(result.get("facts", ())) for key in (fact["name"], fact["id"])}
        self._texts += [_printed(text, facts) for text in sentences]
        extra = {key: value for key, value in result.items() if key not in _COMMON}
        self._texts += _strings(extra)
        self._arguments(arguments)
        self._changed()

    def add_error(self, error: Mapping[str, Any]) -> None:
        """The words of a tool's error may be repeated."""
        self._texts += _strings(error)
        self._changed()

    def add_text(self, text: str) -> None:
        """Words of our own that the answer holds, e.g. which model failed."""
        self._texts.append(text)
        self._changed()

    def _changed(self) -> None:
        self._quoted = None
        self.checked.clear()

    # Asking -------------------------------------------------------------------------------------------------------

    def why_not(self, quantity: Quantity, sentence: str, named: list[Mention]) -> str | None:
        """None when the quantity stands in this sentence, else why it does not."""
        elsewhere = False
        for reading in quantity.readings:
            for known in self._of(reading.dimension):
                if _equal(known.value, known.dimension, reading, quantity.approximate):
                    if _speaks_of(named, known.about):
                        return None
                    elsewhere = True
        if self._was_said(quantity) or self._is_quoted(quantity, named):
            return None
        if quantity.in_words and self._is_ratio(quantity):
            return None
        if elsewhere:
            names = ", ".join(sorted({mention.id for mention in named}))
            return f"it belongs to something else than {names}"
        return "no tool of this turn gave it"

    def knows_date(self, match: re.Match[str]) -> bool:
        """Whether a date is one of a fact or source, or was said or quoted."""
        text = match[0].casefold()
        if any(text in said for said in self._said_texts) or any(text in known.casefold() for known in self._texts):
            return True
        if match["iso"]:
            return any(date.startswith(match["iso"]) for date in self._dates)
        month = _MONTHS.split("|").index(match["month"][:3].lower()) + 1
        day = match["day"] or match["day2"]
        wanted = f"{match['year']}-{month:02d}" + (f"-{int(day):02d}" if day else "")
        return any(date.startswith(wanted) for date in self._dates)

    def knows_year(self, year: str) -> bool:
        """Whether a year is that of a fact, or was said or quoted."""
        return any(date.startswith(year) for date in self._dates) or self.knows_words(year)

    def knows_words(self, text: str) -> bool:
        """Whether exactly these words stand in what the user said or a tool gave."""
        words = normalised(text).casefold()
        return any(words in said for said in self._said_texts) or any(words in t.casefold() for t in self._texts)

    def _of(self, dimension: str) -> Iterator[_Known]:
        """The known values that a reading of this dimension may state."""
        for name in _MAY_STATE.get(dimension, (dimension,)):
            yield from self._known.get(name, ())

    def _know(self, value: float, dimension: str, about: tuple[str, ...] = ()) -> None:
        self._known.setdefault(dimension, []).append(_Known(value, dimension, about))

    def _was_said(self, quantity: Quantity) -> bool:
        said = [reading for item in self._said for reading in item.readings]
        return any(_same(reading, other, loosely=True) for reading in quantity.readings for other in said)

    def _is_quoted(self, quantity: Quantity, named: list[Mention]) -> bool:
        if self._quoted is None:
            self._quoted = [pair for text in dict.fromkeys(self._texts) for pair in _quoted_in(text)]
        for item, about in self._quoted:
            if any(_same(reading, other) for reading in quantity.readings for other in item.readings) and (
                _speaks_of(named, about)
            ):
                version = any(reading.dimension == "version" for reading in quantity.readings)
                if not version or quantity.text == item.text:
                    return True
        return False

    def _is_ratio(self, quantity: Quantity) -> bool:
        """Words such as "twice" stand when two facts of one unit stand in that ratio, within a twentieth."""
        for reading in quantity.readings:
            if reading.dimension != "ratio":
                continue
            for group in self._known.values():
                values = [known.value for known in group if known.value > 0][:200]
                if any(abs(one / other / reading.value - 1) < 0.05 for one in values for other in values):
                    return True
        return False

    # Taking in ----------------------------------------------------------------------------------------------------

    def _table(self, table: Mapping[str, Any]) -> None:
        columns = table["columns"]
        for row in table["rows"]:
            about = tuple(cell for cell in row if isinstance(cell, str) and kind_of(cell))
            for column, cell in zip(columns, row, strict=False):
                if isinstance(cell, bool) or cell is None:
                    continue
                if isinstance(cell, (int, float)):
                    dimension, scale = _dimension(column["unit"], column["key"])
                    self._know(cell * scale, dimension, about)
                else:
                    self._texts.append(str(cell))
        self._texts += [table["title"], *(column["label"] for column in columns)]

    def _arguments(self, arguments: Mapping[str, Any]) -> None:
        """Counts that the tool was called with may be stated; prices and rates only if the user said them."""
        for name, value in arguments.items():
            if isinstance(value, Mapping):
                self._arguments(value)
            elif isinstance(value, int) and not isinstance(value, bool) and _COUNT_ARGUMENTS.match(name):
                self._know(float(value), _dimension("", name)[0])
            elif isinstance(value, str) and _COUNT_ARGUMENTS.match(name):
                self._texts.append(value)

    def _date(self, date: str | None) -> None:
        if date:
            self._dates.add(date)


_COMMON = {
    "facts", "assumptions", "steps", "sources", "warnings", "tables", "charts", "verdict", "next_steps", "suggestions",
}  # fmt: skip


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
    names = mentions(text)
    blank = _name_spans(text, names)
    sentences = _Sentences(text)
    for match in _LINKS.finditer(text):
        _judge(report, match[0], match[0], None if evidence.knows_words(match[0]) else "no tool gave this address")
        blank.append(match.span())
    blank += [match.span() for match in _INDEX.finditer(text)]
    for match in _DATES.finditer(text):
        if not _inside(match.span(), blank):
            why = None if evidence.knows_date(match) else "it is the date of no fact"
            _judge(report, match[0], sentences.at(match.start())[0], why)
            blank.append(match.span())
    for match in _YEAR.finditer(text):
        if not _inside(match.span(), blank) and evidence.knows_year(match[0]):
            _judge(report, match[0], "", None)
            blank.append(match.span())
    for quantity in quantities(text, blank):
        sentence, start, end = sentences.at(quantity.start)
        named = [mention for mention in names if start <= mention.start < end]
        _judge(report, quantity.text, sentence, evidence.why_not(quantity, sentence, named))
    return report


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


def _name_spans(text: str, names: list[Mention]) -> list[tuple[int, int]]:
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


def _inside(span: tuple[int, int], spans: list[tuple[int, int]]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in spans)


class _Sentences:
    """The sentence (or table row) around a position."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(match.end() for match in _SENTENCE_END.finditer(text))]

    def at(self, position: int) -> tuple[str, int, int]:
        number = bisect_right(self._starts, position) - 1
        start = self._starts[number]
        end = self._starts[number + 1] if number + 1 < len(self._starts) else len(self._text)
        return self._text[start:end], start, end


@lru_cache(maxsize=8192)
def _quoted_in(text: str) -> tuple[tuple[Quantity, tuple[str, ...]], ...]:
    """The quantities of a tool's words with the entities beside each. Cached: tools repeat their words."""
    text = REFERENCE.sub(" ", text[:20_000])
    names = mentions(text)
    sentences = _Sentences(text)
    found = []
    for quantity in quantities(text, _name_spans(text, names)):
        _sentence, start, end = sentences.at(quantity.start)
        found.append((quantity, tuple(mention.id for mention in names if start <= mention.start < end)))
    return tuple(found)


def _printed(text: str, facts: Mapping[str, Mapping[str, Any]]) -> str:
    def show(match: re.Match[str]) -> str:
        fact = facts.get(match[1].strip())
        return show_fact(Fact.model_validate(fact), (match[2] or "").strip()) if fact else " "

    return REFERENCE.sub(show, text) if "[[" in text else text


def _dimension(unit: str, name: str) -> tuple[str, float]:
    if unit == "h" and "gpu_hour" in name.lower().replace("-", "_"):
        return "gpu-time", 3600.0
    dimension = _DIMENSIONS.get(unit, "count")
    if dimension == "count":
        lowered = name.lower()
        dimension = next((counted for pattern, counted in _COUNTED if pattern.search(lowered)), "count")
    return dimension, _SCALES.get(unit, 1.0)


def _equal(value: float, dimension: str, reading: Reading, approximate: bool) -> bool:
    if reading.dimension == "percent" and dimension != "percent":
        if abs(value) > 1.0:
            return False
        value *= 100.0  # a share kept as a plain ratio
    shown, step = abs(reading.value), reading.step
    if approximate and step:
        step = max(step, _coarse_step(shown, step))
    return abs(abs(value) - shown) <= 0.5 * step * (1 + 1e-9) + 1e-9 * abs(value)


def _coarse_step(shown: float, step: float) -> float:
    """After "about", trailing zeros are rounding: the place of the last digit that is not zero, two digits at least."""
    digits = round(shown / step)
    place = 1
    while digits and digits % (place * 10) == 0:
        place *= 10
    while place > 1 and digits // place < 10:
        place //= 10
    return step * place


def _same(reading: Reading, other: Reading, loosely: bool = False) -> bool:
    """Whether two texts say the same number. ``loosely``: the user may leave the unit of a count to be understood."""
    dimensions = {reading.dimension, other.dimension}
    if len(dimensions) > 1 and dimensions not in ({"flop", "flop/s"}, {"money/h", "money/gpu/h"}):
        understood = loosely and "count" in dimensions and dimensions <= _COUNTS
        if not understood and not (reading.dimension == "count" and other.dimension in _COUNTS):
            return False
    return abs(reading.value - other.value) <= 1e-9 * max(abs(reading.value), abs(other.value))


def _speaks_of(named: list[Mention], about: tuple[str, ...]) -> bool:
    """Whether the entities of the sentence go with those of a fact, kind by kind; a kind that either lacks is free."""
    by_kind: dict[str, list[Mention]] = {}
    for mention in named:
        by_kind.setdefault(mention.kind, []).append(mention)
    for kind, group in by_kind.items():
        entities = [name for name in about if kind_of(name) == kind]
        if entities and not any(
            mention.fits(name) or mention.fits(id_of(name)) or words_of(name) <= mention.words
            for mention in group
            for name in entities
        ):
            return False
    return True


def _entities(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    found: list[str] = []
    for value in arguments.values():
        if isinstance(value, Mapping):
            found += _entities(value)
        elif isinstance(value, str):
            if kind_of(value):
                found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [item for item in value if isinstance(item, str) and kind_of(item)]
    return tuple(found)


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for item in value.values() for text in _strings(item)]
    if isinstance(value, (list, tuple)):
        return [text for item in value for text in _strings(item)]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return [format_value(value, "")]
    return []
