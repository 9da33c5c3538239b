"""What every tool returns: facts, the assumptions they rest on, the sums, the sources, warnings, tables, charts.

A sentence for people (``verdict``, ``next_steps``) never holds a computed number as text: it refers to a fact as
``[[name]]`` and the renderer prints the fact with its unit and rounding. Forms of a reference:

    [[peak_per_gpu]]         45.3 GB           [[peak_per_gpu|range]]   41.2–49.8 GB
    [[peak_per_gpu|GiB]]     42.2 GiB          [[run_hours|h]]          in exactly this unit
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tools.units import Unit

FactKind = Literal["exact", "modelled", "measured", "price", "quoted"]


class Fact(BaseModel):
    """One value that an answer may state."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(description="Unique within the result; the turn prefixes it with the tool call's id.")
    name: str = Field(description="Stable name, e.g. peak_per_gpu; several facts may share one (offers, plans).")
    value: float | int | str | bool
    unit: Unit = ""
    low: float | None = None
    high: float | None = None
    kind: FactKind = "modelled"
    label: str = Field(default="", description="Words for a table row, e.g. 'optimizer states'.")
    basis: str = Field(default="", description="Formula with the numbers in it, or the source id.")
    as_of: str | None = Field(default=None, description="ISO date, for prices and quoted facts.")
    about: list[str] = Field(default_factory=list, description="Entities it speaks of: model, GPU, provider ids.")


class Assumption(BaseModel):
    """A default that mattered; ``argument`` names the tool argument that overrides it."""

    name: str
    value: float | int | str | bool | None
    unit: Unit = ""
    why: str
    argument: str | None = None


class Step(BaseModel):
    """One line of the sum: symbol = expression with numbers = result."""

    symbol: str
    expression: str
    value: float | int | str
    unit: Unit = ""


class SourceRef(BaseModel):
    """Where a fact or formula comes from."""

    id: str
    title: str
    as_of: str
    url: str | None = None


class Warn(BaseModel):
    """Something the reader should know before acting."""

    code: str
    text: str


class Column(BaseModel):
    """A table column; cells hold raw values in ``unit``."""

    key: str
    label: str
    unit: Unit = ""


class Table(BaseModel):
    """Rows for people; the renderer prints cells with the column's unit."""

    id: str
    title: str
    columns: list[Column]
    rows: list[list[float | int | str | bool | None]]


class FileText(BaseModel):
    """A ready file: its path beside the training script, its language and text, and what has read it."""

    path: str
    language: str
    text: str
    checked: str = Field(default="", description="The real parser that has read such a file, or '' if none has.")


class ToolResult(BaseModel):
    """Base of every tool's output; a tool adds its typed fields beside these."""

    facts: list[Fact] = Field(default_factory=list)
    assumptions: list[Assumption] = Field(default_factory=list)
    steps: list[Step] = Field(default_factory=list)
    sources: list[SourceRef] = Field(default_factory=list)
    warnings: list[Warn] = Field(default_factory=list)
    tables: list[Table] = Field(default_factory=list)
    charts: list[dict[str, Any]] = Field(default_factory=list)
    verdict: str = Field(default="", description="The answer in one line, numbers as [[fact]] references.")
    next_steps: list[str] = Field(
        default_factory=list, description="The next knobs with their computed effect, numbers as [[fact]] references."
    )
    suggestions: list[str] = Field(default_factory=list, description="Questions that usually come next, as typed.")

    def fact(self, name: str) -> Fact:
        """The first fact of this name. Raises KeyError when there is none."""
        for fact in self.facts:
            if fact.name == name:
                return fact
        raise KeyError(name)
