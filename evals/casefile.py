"""Case files: YAML, one suite a file, checked against these models (and the JSON Schema made from them).

A case asks in words (``ask`` or ``turns``, answered by a model) or calls a tool directly (``call``). What must hold is
in ``expect``. Every expected number names where it comes from, in the file: a derivation by hand or a publication,
never a run of the tool under test.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tools.errors import BadValue

CASES = Path(__file__).parent / "cases"
Refusal = Literal["none", "ask", "unknown", "out_of_scope", "bad_input"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Number(_Strict):
    """A value that a fact must have: exactly one of ``value``, ``between`` and ``covers``."""

    fact: str = Field(description="Name or id of the fact, without the call's prefix.")
    value: float | None = Field(default=None, description="Expected value in ``unit``, within the tolerance.")
    between: tuple[float, float] | None = Field(default=None, description="The fact's value must lie inside.")
    covers: float | None = Field(default=None, description="A measurement that the fact's low..high must contain.")
    unit: str = Field(default="", description="GB, GiB, h, TFLOPS, USD, %, x ...; empty for a bare number.")
    rel: float | None = Field(
        default=None, gt=0, lt=1, description="Relative tolerance; 0.005 unless ``abs`` is given."
    )
    abs: float | None = Field(default=None, ge=0, description="Absolute tolerance in ``unit``.")
    source: str = Field(min_length=12, description="The derivation by hand, or the publication, of the expected value.")
    about: str | None = Field(default=None, description="Only facts that speak of this GPU, model or provider.")
    in_text: bool = Field(default=False, description="The same value must stand in the answer's text.")
    every: bool = Field(default=False, description="All facts of this name, not only one of them.")

    @model_validator(mode="after")
    def _one_kind(self) -> Number:
        if sum(part is not None for part in (self.value, self.between, self.covers)) != 1:
            raise ValueError("give exactly one of value, between, covers")
        return self


class Shown(_Strict):
    """A quantity that the text must show, wherever it comes from."""

    value: float
    unit: str = ""
    rel: float = Field(default=0.01, gt=0, lt=1)
    source: str = Field(min_length=12)


class ToolCallWanted(_Strict):
    """A call that must have been made; ``args`` lists the accepted values, null meaning that it may be left out."""

    name: str
    args: dict[str, list[Any]] = Field(default_factory=dict)


class ErrorWanted(_Strict):
    """A call must fail with this error."""

    code: list[str] = Field(default_factory=list, description="Accepted codes; empty: any.")
    field: str | None = None
    candidates: list[str] = Field(default_factory=list, description="All of these must be offered.")


class Expect(_Strict):
    """What must hold after a turn or call. Everything listed is hard: one miss fails the case."""

    refusal: Refusal = "none"
    tools: list[ToolCallWanted] = Field(default_factory=list)
    any_tool_of: list[str] = Field(default_factory=list, description="One of these tools must have been called.")
    must_not_call: list[str] = Field(default_factory=list)
    max_calls: int | None = None
    numbers: list[Number] = Field(default_factory=list)
    shown: list[Shown] = Field(default_factory=list)
    values: dict[str, list[Any]] = Field(default_factory=dict, description="Fact or typed field: accepted values.")
    order: list[list[str]] = Field(
        default_factory=list, description="Pairs of facts, the first below the second, by name or id."
    )
    cite: list[str] = Field(default_factory=list, description="Ids or words of sources that must be cited.")
    say: list[str] = Field(default_factory=list, description="Regular expressions, any case, that must match the text.")
    field_says: dict[str, list[str]] = Field(
        default_factory=dict, description="Typed field of a result: regular expressions that it must match as JSON."
    )
    not_say: list[str] = Field(default_factory=list, description="Regular expressions that must not match the text.")
    warns: list[str] = Field(default_factory=list, description="Codes of warnings that must be given.")
    error: ErrorWanted | None = None
    grounded: bool = Field(default=True, description="Every number of the text must rest on a fact or the question.")
    seconds: float = Field(default=20.0, gt=0, description="Budget of wall time.")


class Turn(_Strict):
    """One user turn of a conversation."""

    user: str
    expect: Expect = Field(default_factory=Expect)


class Call(_Strict):
    """A direct tool call."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class Case(_Strict):
    """One case; ``id`` is never reused or renamed."""

    id: str = Field(pattern=r"^[a-z0-9]+(?:[.\-_][a-z0-9]+)*$")
    why: str = Field(min_length=5, description="What the case guards against.")
    tags: list[str] = Field(default_factory=list)
    twin: str | None = Field(default=None, description="The adversarial case whose harmless twin this is.")
    call: Call | None = None
    ask: str | None = None
    turns: list[Turn] | None = None
    expect: Expect = Field(default_factory=Expect, description="For ``call`` and ``ask``.")

    @model_validator(mode="after")
    def _one_way(self) -> Case:
        if sum(part is not None for part in (self.call, self.ask, self.turns)) != 1:
            raise ValueError("give exactly one of call, ask, turns")
        if self.turns is not None and not self.turns:
            raise ValueError("turns is empty")
        return self

    def asked(self) -> list[Turn]:
        """The user turns in order: those of ``turns``, one for ``ask``, none for ``call``."""
        if self.turns is not None:
            return self.turns
        return [Turn(user=self.ask, expect=self.expect)] if self.ask is not None else []


class Suite(_Strict):
    """A file of cases."""

    suite: str = Field(pattern=r"^[a-z0-9_\-]+$")
    about: str
    cases: list[Case] = Field(min_length=1)


def load_suites(names: Iterable[str] = ()) -> list[Suite]:
    """The suites of these names or YAML files; all of ours when none is named. Raises BadValue for an unknown suite, a
    case id given twice, and a file at fault, saying where.
    """
    wanted = list(names)
    files = sorted(CASES.glob("*.yaml"))
    known = {file.stem: file for file in files}
    if wanted:
        files = []
        for name in wanted:
            file = known.get(name) or Path(name)
            if not file.is_file():
                raise BadValue(
                    "unknown_suite", f"There is no suite or file {name!r}.", field="suite", candidates=sorted(known),
                    hint="Name one of our suites or give the path of a YAML file.",
                )  # fmt: skip
            files.append(file)
    suites = [read_suite(file) for file in files]
    seen: set[str] = set()
    for suite in suites:
        for case in suite.cases:
            if case.id in seen:
                raise BadValue("case_twice", f"The case {case.id!r} is given twice.", field="id")
            seen.add(case.id)
    return suites


def read_suite(file: Path) -> Suite:
    """One case file. Raises BadValue naming the file and the first thing at fault."""
    try:
        return Suite.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
    except yaml.YAMLError as error:
        raise BadValue("bad_case_file", f"{file.name} is not YAML: {error}", field="suite") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadValue("bad_case_file", f"{file.name}: {where}: {first['msg']}", field="suite") from None


def json_schema() -> dict[str, Any]:
    """JSON Schema of a case file, for editors and for checks outside Python."""
    return Suite.model_json_schema()
