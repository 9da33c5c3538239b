"""Graders: what of an expectation did not hold. Each returns its misses; a case scores the product of all graders.

All are deterministic and hard. Values are compared as numbers in the fact's unit, texts by the quantities that the
extractor reads, names by what they resolve to: nothing is a suffix or substring match, so 711 is not 11.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from advisor.answer import Answer
from advisor.number_check import check
from advisor.quantities import quantities
from evals.casefile import Expect, Number, ToolCallWanted
from evals.stray import stray_numbers
from evals.transcript import Happened
from evals.units import same_unit, to_fact, to_reading
from knowledge.gpus import find_gpu
from knowledge.models import find_model
from tools.errors import InputProblem
from tools.registry import all_tools
from tools.units import parse_bytes, parse_count

DEFAULT_RELATIVE = 0.005
# What a turn may be when a refusal of this kind is wanted.
_STATUS_OF = {
    "none": {"answered"},
    "ask": {"needs_input"},
    "unknown": {"answered", "needs_input", "declined"},
    "out_of_scope": {"declined"},
    "bad_input": {"answered", "needs_input", "declined", "failed"},
}


@dataclass(frozen=True, slots=True)
class Miss:
    """One thing that did not hold."""

    grader: str
    message: str
    wanted: str = ""
    got: str = ""

    def __str__(self) -> str:
        detail = f": wanted {self.wanted}, got {self.got}" if self.wanted or self.got else ""
        return f"{self.grader}: {self.message}{detail}"


Grader = Callable[[Expect, Happened, list[str]], Iterator[Miss]]


def grade(expect: Expect, happened: Happened, said: list[str]) -> list[Miss]:
    """All misses of a turn or call; ``said`` is what the user said so far. A crash misses everything."""
    if happened.crash:
        return [Miss("crash", happened.crash)]
    return [miss for grader in GRADERS.values() for miss in grader(expect, happened, said)]


def schema(expect: Expect, happened: Happened, said: list[str]) -> Iterator[Miss]:
    """The answer object has the contract's shape and every result is its tool's output."""
    if happened.answer is not None:
        try:
            Answer.model_validate(
                {**happened.answer, "tool_calls": [{**call} for call in happened.answer["tool_calls"]]}
            )
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            yield Miss("schema", f"answer.{'.'.join(map(str, first['loc']))}: {first['msg']}")
    specs = all_tools()
    for call in happened.calls:
        if call["name"] not in specs:
            yield Miss("schema", f"{call['name']} is no tool of ours")
        elif call.get("result") is not None:
            missing = set(specs[call["name"]].output_model.model_fields) - set(call["result"])
            if missing:
                yield Miss("schema", f"{call['name']} left out {sorted(missing)}")
            ids = [fact["id"] for fact in call["result"]["facts"]]
            if len(ids) != len(set(ids)):
                yield Miss("schema", f"{call['name']} gives two facts one id")


def refusal(expect: Expect, happened: Happened, said: list[str]) -> Iterator[Miss]:
    """The turn's status is what the kind of question asks for; an error is one only where wanted."""
    if expect.error is not None:
        error = happened.error or next((call["error"] for call in happened.calls if call.get("error")), None)
        if error is None:
            yield Miss("refusal", "no error was given", wanted=str(expect.error.code or "an error"))
            return
        if expect.error.code and error["code"] not in expect.error.code:
            yield Miss("refusal", "another error", wanted=" or ".join(expect.error.code), got=error["code"])
        if expect.error.field and error.get("field") != expect.error.field:
            yield Miss("refusal", "error names another field", wanted=expect.error.field, got=str(error.get("field")))
        lacking = [name for name in expect.error.candidates if name not in (error.get("candidates") or [])]
        if lacking:
            yield Miss("refusal", "nearest names not offered", wanted=str(lacking), got=str(error.get("candidates")))
        return
    if happened.error is not None:
        if expect.refusal not in ("bad_input", "unknown"):
            yield Miss("refusal", f"an error was given: {happened.error['message']}")
        return
    allowed = _STATUS_OF[expect.refusal]
    if happened.status not in allowed:
        yield Miss("refusal", "status", wanted=" or ".join(sorted(allowed)), got=happened.status)


def tools(expect: Expect, happened: Happened, said: list[str]) -> Iterator[Miss]:
    """The calls that had to be made were made, the forbidden ones were not, and no more than allowed."""
    called = [call["name"] for call in happened.calls]
    for wanted in expect.tools:
        if wanted.name not in called:
            yield Miss("tools", f"{wanted.name} was not called", wanted=wanted.name, got=", ".join(called) or "none")
    if expect.any_tool_of and not set(expect.any_tool_of) & set(called):
        yield Miss("tools", "none of the right tools", wanted=str(expect.any_tool_of), got=", ".join(called) or "none")
    for name in expect.must_not_call:
        if name in called:
            yield Miss("tools", f"{name} was called and must not be")
    if expect.max_calls is not None and len(called) > expect.max_calls:
        yield Miss("tools", "too many calls", wanted=str(expect.max_calls), got=str(len(called)))


def arguments(expect: Expect, happened: Happened, said: list[str]) -> Iterator[Miss]:
    """One call of each wanted tool carries the accepted arguments."""
    for wanted in expect.tools:
        made = [call["arguments"] for call in happened.calls if call["name"] == wanted.name]
        if not wanted.args or not made:
            continue
        best = min((list(_argument_misses(wanted, given)) for given in made), key=len)
        yield from best


def fact_value(expect: Expect, happened: Happened, said: list[str]) -> Iterator[Miss]:
    """The numbers, as facts, in their unit and within their tolerance; typed fields and words as listed."""
    for number in expect.numbers:
        facts = [fact for fact in happened.facts if number.fact in (fact["name"], fact["id"])]
        if number.about is not None:
            facts = [fact for fact in facts if _speaks_of(fact, number.about)]
        if not facts:
            yield Miss("fact_value", f"there is no fact {number.fact}", wanted=_words(number))
            continue
        misses = [miss for fact in facts if (miss := _number_miss(number, fact))]
        if misses and (number.every or len(misses) == len(facts)):
            yield misses[0]
    for name, accepted in expect.values.items():
        got = _values(happened, name)
        if not got:
            yield Miss("fact_value", f"there is no fact or field {name}")
        elif not any(_same(value, one) for value in got for one in accepted):
            yield Miss("fact_value", name, wanted=" or ".join(map(str, accepted)), got=", ".join(map(str, got))[:200])
    for low, high in expect.order:
        below, above = _values(happened, low), _values(happened, high)
        if not below or not above:
            yield Miss("fact_value", f"{low} and {high} cannot be compared: one is missing")
        elif not float(below[0]) < float(above[0]):
            yield Miss("fact_value", f"{low} is not below {high}", got=f"{below[0]} and {above[0]}")


def text_value(expect: Expect, happened: Happened, said: list[str]) -> Iterator[Miss]:
    """The text shows the number itself, read as a quantity with its unit, within the rounding it is shown with."""
    wanted = [
        (number.value, number.unit, number.rel or DEFAULT_RELATIVE, number.fact)
        for number in expect.numbers
        if number.in_text and number.value is not None
    ]
    wanted += [(shown.value, shown.unit, shown.rel, "a quantity") for shown in expect.shown]
    if not wanted:
        return
    readings = [
        (-reading.value if quantity.negative else reading.value, reading)
        for quantity in quantities(happened.text)
        for reading in quantity.readings
    ]
    for value, unit, rel, name in wanted:
        target, dimension = to_reading(value, unit)
        close = [
            reading
            for value_read, reading in readings
            if reading.dimension == dimension and abs(value_read - target) <= rel * abs(target) + reading.step / 2
        ]
        if not close:
            yield Miss(
                "text_value",
                f"the text does not show {name}",
                wanted=f"{value:g} {unit}",
                got=_near([reading for _, reading in readings], dimension),
            )


def grounding(expect: Expect, happened: Happened, said: list[str]) -> Iterator[Miss]:
    """No number of the text rests on nothing: by the product's check and by a second, plainer one."""
    if not expect.grounded:
        return
    evidence = happened.evidence([*said, happened.question])
    for finding in check(happened.text, evidence).findings:
        yield Miss("grounding", f"{finding.text!r} in {finding.sentence!r}: {finding.why}")
    for number in stray_numbers(happened, [*said, happened.question]):
        yield Miss("grounding", f"{number!r} stands in no result and was not said")


def citation(expect: Expect, happened: Happened, said: list[str]) -> Iterator[Miss]:
    """Sources that must be cited are; a price or measurement has its date."""
    for wanted in expect.cite:
        pattern = re.compile(rf"(?<![\w-]){re.escape(wanted)}(?![\w-])", re.IGNORECASE)
        if not any(pattern.search(item) for item in happened.cited):
            yield Miss("citation", f"{wanted} is not cited", got=", ".join(happened.cited[:8]))
    given = any("price" in name for call in happened.calls for name in call["arguments"])  # a user's own has no date
    for fact in happened.facts:
        if fact["kind"] == "price" and not fact.get("as_of") and not given:
            yield Miss("citation", f"the price {fact['id']} has no date")
    for wanted in expect.warns:
        if wanted not in happened.warnings:
            yield Miss("citation", f"the warning {wanted} is not given", got=", ".join(happened.warnings))


def words(expect: Expect, happened: Happened, said: list[str]) -> Iterator[Miss]:
    """The patterns that the text or a field must hold are there, those it must not are not; case aside."""
    for pattern in expect.say:
        if not re.search(pattern, happened.text, re.IGNORECASE):
            yield Miss("words", "the text does not say it", wanted=pattern, got=happened.text[:160])
    for name, patterns in expect.field_says.items():
        written = json.dumps(_values(happened, name), ensure_ascii=False)
        for pattern in patterns:
            if not re.search(pattern, written, re.IGNORECASE):
                yield Miss("words", f"the field {name} does not say it", wanted=pattern, got=written[:160])
    for pattern in expect.not_say:
        found = re.search(pattern, happened.text, re.IGNORECASE)
        if found:
            yield Miss("words", "the text says what it must not", wanted=f"not {pattern}", got=found[0][:120])


def budget(expect: Expect, happened: Happened, said: list[str]) -> Iterator[Miss]:
    """The turn took no longer than ``expect.seconds`` of wall time."""
    if happened.seconds > expect.seconds:
        yield Miss("budget", "too slow", wanted=f"{expect.seconds:g} s", got=f"{happened.seconds:.2f} s")


GRADERS: dict[str, Grader] = {
    "schema": schema, "refusal": refusal, "tools": tools, "arguments": arguments, "fact_value": fact_value,
    "text_value": text_value, "grounding": grounding, "citation": citation, "words": words, "budget": budget,
}  # fmt: skip


def _number_miss(number: Number, fact: dict[str, Any]) -> Miss | None:
    unit = to_fact(0.0, number.unit)[1]
    got = _number(fact, "value", unit)
    if got is None:
        return Miss(
            "fact_value", f"{number.fact} is in another unit", wanted=unit, got=f"{fact['value']} {fact['unit']}"
        )
    if number.value is not None:
        wanted = to_fact(number.value, number.unit)[0]
        room = to_fact(number.abs, number.unit)[0] if number.abs is not None else 0.0
        if number.abs is None or number.rel is not None:
            room = max(room, (number.rel or DEFAULT_RELATIVE) * abs(wanted))
        if abs(got - wanted) > room:
            return Miss("fact_value", number.fact, wanted=_words(number), got=f"{got:.6g} {unit}")
    elif number.between is not None:
        low, high = (to_fact(end, number.unit)[0] for end in number.between)
        if not low <= got <= high:
            return Miss("fact_value", number.fact, wanted=_words(number), got=f"{got:.6g} {unit}")
    elif number.covers is not None:
        wanted = to_fact(number.covers, number.unit)[0]
        least, most = _number(fact, "low", unit), _number(fact, "high", unit)
        if least is None or most is None:
            return Miss("fact_value", f"{number.fact} has no range", wanted=_words(number))
        if not least <= wanted <= most:
            return Miss("fact_value", number.fact, wanted=_words(number), got=f"{least:.4g} to {most:.4g} {unit}")
    return None


def _number(fact: dict[str, Any], key: str, unit: str) -> float | None:
    value = fact.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return same_unit(float(value), fact["unit"], unit)


def _words(number: Number) -> str:
    if number.value is not None:
        return f"{number.value:g} {number.unit}"
    if number.between is not None:
        return f"{number.between[0]:g} to {number.between[1]:g} {number.unit}"
    return f"a range around {number.covers:g} {number.unit}"


def _values(happened: Happened, name: str) -> list[Any]:
    facts = [fact["value"] for fact in happened.facts if name in (fact["name"], fact["id"])]
    if facts:
        return facts
    found = []
    for call in happened.calls:
        value: Any = call.get("result") or {}
        for part in name.split("."):
            if isinstance(value, list) and part.isdigit() and int(part) < len(value):
                value = value[int(part)]
            else:
                value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            found += value if isinstance(value, list) else [value]
    return found


def _speaks_of(fact: dict[str, Any], entity: str) -> bool:
    return any(_same(name, entity) for name in fact.get("about") or ())


def _argument_misses(wanted: ToolCallWanted, given: dict[str, Any]) -> Iterator[Miss]:
    for name, accepted in wanted.args.items():
        value = given.get(name)
        if not any(value is None if one is None else _same(value, one) for one in accepted):
            options = " or ".join("nothing" if one is None else str(one) for one in accepted)
            yield Miss("arguments", f"{wanted.name}.{name}", wanted=options, got=str(value))


def _same(value: Any, wanted: Any) -> bool:
    """Equal as numbers (also "20B" and 2e10, "80GB" and 8e10), as names of one thing, or as words in any case."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, list) and isinstance(wanted, list):
        return len(value) == len(wanted) and all(_same(a, b) for a, b in zip(value, wanted, strict=True))
    if isinstance(value, list):
        return len(value) == 1 and _same(value[0], wanted)
    if isinstance(value, dict) and isinstance(wanted, dict):
        return all(_same(value.get(key), item) for key, item in wanted.items())
    one, other = _as_number(value), _as_number(wanted)
    if one is not None and other is not None:
        return abs(one - other) <= 1e-6 * max(abs(one), abs(other))
    if isinstance(value, str) and isinstance(wanted, str):
        known = _resolved(value)
        return value.casefold() == wanted.casefold() or (known is not None and known == _resolved(wanted))
    return bool(value == wanted)


def _as_number(value: Any) -> float | None:
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, str):
        for parse in (parse_count, parse_bytes):
            try:
                return float(parse(value))
            except (InputProblem, ValueError):
                continue
    return None


def _resolved(name: str) -> str | None:
    """The id of the GPU or model that the name means, None for any other word."""
    for find in (find_gpu, find_model):
        try:
            return find(name).value.id
        except InputProblem:
            continue
    return None


def _near(readings: list[Any], dimension: str) -> str:
    same = [f"{reading.value:g}" for reading in readings if reading.dimension == dimension]
    return f"{dimension}: {', '.join(same[:6])}" if same else f"no {dimension}"
