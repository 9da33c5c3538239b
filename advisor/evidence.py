"""What the numbers of a turn's answer may rest on: facts, tables, sums and words of its tools, and what the user said.

A known number stands in a sentence when it equals what is written, within the rounding shown, in the same dimension
(units convert only by exact factors; GB and GiB differ), and the sentence speaks of the number's own entity.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from advisor.grounds import Grounds, grounds_of, strings_of
from advisor.links import is_held
from advisor.names import Mention, id_of, kind_of, mentions, words_of
from advisor.quantities import Quantity, normalised, quantities
from advisor.render import REFERENCE
from advisor.sentences import Sentences, name_spans
from advisor.shelf import Kept, Shelf
from tools.result import ToolResult

if TYPE_CHECKING:
    from advisor.number_check import Report

MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
# What a number without a unit, or with the count's noun left out, may be a number of.
_COUNTS = frozenset({"count", "gpus", "nodes", "layers", "steps", "offers", "tokens", "samples", "params", "ratio"})
# Which known dimensions a reading of text may state.
_MAY_STATE = {"count": tuple(sorted(_COUNTS)), "time": ("time", "gpu-time")}
_ALIKE = {"flop": ("flop/s",), "flop/s": ("flop",), "money/h": ("money/gpu/h",), "money/gpu/h": ("money/h",)}
_NUMBER = re.compile(r"\d(?:[\d.,]*\d)?")


class Evidence:
    """What the numbers of a turn's answer may rest on."""

    def __init__(self, said: Iterable[str] = ()) -> None:
        self._facts = Shelf()
        self._said = Shelf()
        self._texts: list[str] = []
        self._once: list[str] | None = None  # the texts, each once
        self._words: str | None = None  # all of them in one, without capitals, made when first needed
        self.checked: dict[str, Report] = {}  # what each line came to, on this evidence
        self._dates: set[str] = set()
        self.cited: list[str] = []  # titles and addresses of the sources, without capitals
        self._said_texts: list[str] = []
        for text in said:
            self._said_texts.append(normalised(text).casefold())
            for dimension, value, words in _said_in(text):
                self._said.put(dimension, value, text=words)

    def add(self, call: str, arguments: Mapping[str, Any], result: ToolResult) -> None:
        """Take in a tool's result; ``arguments`` name the entities that its facts speak of."""
        self.add_json(arguments, result.model_dump(mode="json", exclude={"charts"}))

    def add_json(self, arguments: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """The same from a result as JSON data, e.g. of an ``ask --json`` object."""
        self.add_grounds(grounds_of(arguments, result))

    def add_grounds(self, grounds: Grounds) -> None:
        """Take in what ``grounds_of`` read of a result, as ``add`` does; what was checked before is checked anew."""
        self._facts.extend(grounds.numbers)
        self._texts += grounds.texts
        self._dates |= grounds.dates
        self.cited += grounds.cited
        self._changed()

    def add_error(self, error: Mapping[str, Any]) -> None:
        """Let the strings of a tool's error, and the numbers in them, be repeated in the answer."""
        self._texts += strings_of(error)
        self._changed()

    def add_text(self, text: str) -> None:
        """Words of our own that the answer holds, e.g. which model failed."""
        self._texts.append(text)
        self._changed()

    def _changed(self) -> None:
        self._words = self._once = None
        self.checked.clear()

    # Asking -------------------------------------------------------------------------------------------------------

    def why_not(self, quantity: Quantity, named: list[Mention]) -> str | None:
        """None when the quantity stands in a sentence that names these entities, else why it does not."""
        elsewhere = False
        for kept in self._equal_facts(quantity):
            if _speaks_of(named, kept.about):
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
        if self._holds(match[0].casefold()):
            return True
        if match["iso"]:
            return any(date.startswith(match["iso"]) for date in self._dates)
        month = MONTHS.split("|").index(match["month"][:3].lower()) + 1
        day = match["day"] or match["day2"]
        wanted = f"{match['year']}-{month:02d}" + (f"-{int(day):02d}" if day else "")
        return any(date.startswith(wanted) for date in self._dates)

    def knows_year(self, year: str) -> bool:
        """Whether a year, four digits, begins the date of a fact or source, or was said or quoted."""
        return any(date.startswith(year) for date in self._dates) or self.knows_words(year)

    def knows_address(self, address: str) -> bool:
        """Whether an address is that of a source; what a user pasted or a tool quoted gives none a place in answers."""
        return is_held(address, self.cited)

    def knows_words(self, text: str) -> bool:
        """Whether exactly these words stand in what the user said or a tool gave."""
        return self._holds(normalised(text).casefold())

    def _holds(self, words: str) -> bool:
        """Whether what was said or quoted holds these words; no search goes over the end of a text."""
        if self._words is None:
            self._words = "\n".join((*self._said_texts, *map(str.casefold, self._texts)))
        return words in self._words

    def _equal_facts(self, quantity: Quantity) -> Iterator[Kept]:
        """The facts that equal a reading of the quantity, within the rounding it is shown with."""
        for reading in quantity.readings:
            step = reading.step
            if quantity.approximate and step:
                step = max(step, _coarse_step(abs(reading.value), step))
            for dimension in _MAY_STATE.get(reading.dimension, (reading.dimension,)):
                yield from self._facts.near(dimension, reading.value, 0.5 * step * (1 + 1e-9))
            if reading.dimension == "percent":  # a share kept as a plain ratio
                yield from self._shares(reading.value / 100.0, 0.005 * step)

    def _shares(self, value: float, within: float) -> Iterator[Kept]:
        for dimension in ("count", "ratio"):
            yield from (kept for kept in self._facts.near(dimension, value, within) if kept.value <= 1.0)

    def _was_said(self, quantity: Quantity) -> bool:
        """Whether the user said it, who may leave the unit of a count, and whose hour a price is for, understood."""
        for reading in quantity.readings:
            dimensions = {reading.dimension, *_ALIKE.get(reading.dimension, ())}
            if reading.dimension in _COUNTS:
                dimensions |= _COUNTS if reading.dimension == "count" else {"count"}
            if any(True for name in dimensions for _kept in self._said.near(name, reading.value, 0.0)):
                return True
        return False

    def _is_quoted(self, quantity: Quantity, named: list[Mention]) -> bool:
        """Whether a tool's words hold it, in a sentence that speaks of the same entities."""
        wanted: list[tuple[str, float]] = []
        for reading in quantity.readings:
            dimensions = {reading.dimension, *(_COUNTS if reading.dimension == "count" else ())}
            if reading.dimension in ("flop", "flop/s"):
                dimensions |= {"flop", "flop/s"}
            wanted += [(name, abs(reading.value)) for name in dimensions]
        # What is repeated mostly stands there in the same digits, so texts that hold these are read first.
        digits = _NUMBER.search(quantity.text)
        words = digits[0] if digits else quantity.text
        texts = self._distinct_texts()
        return any(
            _quotes(text, wanted, quantity, named)
            for holding in (True, False)
            for text in texts
            if (words in text) is holding
        )

    def _distinct_texts(self) -> list[str]:
        if self._once is None:
            self._once = list(dict.fromkeys(self._texts))
        return self._once

    def _is_ratio(self, quantity: Quantity) -> bool:
        """Words such as "twice" stand when two facts of one name and unit are in that ratio, within a twentieth."""
        for reading in quantity.readings:
            if reading.dimension != "ratio":
                continue
            for group in self._facts.groups():
                values = [value for value in group if value > 0][:200]
                if any(abs(one / other / reading.value - 1) < 0.05 for one in values for other in values):
                    return True
        return False


def _quotes(text: str, wanted: list[tuple[str, float]], quantity: Quantity, named: list[Mention]) -> bool:
    """Whether a text holds one of these values, in a sentence that speaks of the same entities."""
    stated = _quoted_in(text)
    return any(
        abs(found - value) <= 1e-9 * value
        and (dimension != "version" or words == quantity.text)
        and _speaks_of(named, about)
        for dimension, value in wanted
        for found, about, words in stated.get(dimension, ())
    )


@lru_cache(maxsize=512)
def _said_in(text: str) -> tuple[tuple[str, float, str], ...]:
    """Dimension, value and words of each number that the user wrote, inside names too ("the 4090")."""
    found = (*quantities(text), *quantities(text, name_spans(text, mentions(text))))
    return tuple((reading.dimension, reading.value, item.text) for item in found for reading in item.readings)


@lru_cache(maxsize=8192)
def _quoted_in(text: str) -> dict[str, list[tuple[float, tuple[str, ...], str]]]:
    """The numbers of a tool's words by dimension: size, the entities beside it, its words. Tools repeat their words."""
    text = REFERENCE.sub(" ", text[:20_000])
    names = mentions(text)
    sentences = Sentences(text)
    found: dict[str, list[tuple[float, tuple[str, ...], str]]] = {}
    for quantity in quantities(text, name_spans(text, names)):
        _sentence, start, end = sentences.at(quantity.start)
        about = tuple(mention.id for mention in names if start <= mention.start < end)
        for reading in quantity.readings:
            found.setdefault(reading.dimension, []).append((abs(reading.value), about, quantity.text))
    return found


def _coarse_step(shown: float, step: float) -> float:
    """After "about", trailing zeros are rounding: the place of the last digit that is not zero, two digits at least."""
    digits = round(shown / step)
    place = 1
    while digits and digits % (place * 10) == 0:
        place *= 10
    while place > 1 and digits // place < 10:
        place //= 10
    return step * place


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
