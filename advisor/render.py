"""One renderer for every surface: fact references become printed numbers, tables become markdown, plain text or Rich.

``[[t1.peak_per_gpu]]`` prints the fact, ``|range`` its low and high, ``|GiB`` in exactly this unit;
``[[table:t1.bill]]`` prints a table. The result is markdown; ``plain`` and ``rich_parts`` make the other two from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tools.result import Assumption, Fact, Table, ToolResult
from tools.units import format_range, format_value

if TYPE_CHECKING:
    from rich.console import RenderableType

REFERENCE = re.compile(r"\[\[([^\[\]|\n]{1,200})(?:\|([^\[\]|\n]{0,20}))?\]\]")
MAX_SOURCES = 8
# How an assumption is said where its argument's name is not plain English.
_SAID = {
    "n_gpus": "{}", "tokens": "{}", "seq_len": "sequence length {}", "micro_batch": "batch {} a GPU",
    "lora_rank": "LoRA rank {}", "lora_targets": "LoRA on {}", "grad_accum": "gradient accumulation {}",
    "gpus_per_node": "{} a machine", "failures": "failures {}", "idle_share": "{} idle", "software": "stack of a {}",
    "evaluation_share": "{} evaluation", "start_up_hours": "{} of start-up", "pue": "PUE {}",
    "message_bytes": "messages of {}", "checkpoint_gb_per_s": "checkpoints written at {}",
    "checkpoints_kept": "{} checkpoints kept",
    "storage_usd_per_gb_month": "storage at {}", "grid_kg_per_kwh": "grid intensity {}", "watts_per_gpu": "{} a GPU",
    "mtbf_hours": "a failure every {}", "run_hours": "a run of {}", "write_bandwidth": "saves written at {}",
    "read_bandwidth": "saves read at {}", "intra_link": "{} in a machine", "inter_link": "{} between machines",
    "residual": "resale share {}", "support_share": "yearly support share {}", "server_price": "a server at {}",
    "staff": "yearly operations {}", "power_price": "power at {}", "restart": "{} to restart",
    "response_tokens": "answers of {}", "group_size": "{} answers a prompt",
}  # fmt: skip
_NAMES = ("model", "gpu", "gpus", "provider", "instance", "intra_link", "inter_link")
NOT_KNOWN = "(not computed)"
# The units that a fact may be shown in by force, besides its own; any other is left aside.
_FORMS = {
    "B": re.compile(r"[kMGTP]i?B"), "B/s": re.compile(r"[kMGTP]i?B/s|[kMGTP]b/s"), "s": re.compile("h"),
    "h": re.compile("days"),
}  # fmt: skip
_CELL = str.maketrans({"|": "\\|", "\n": " ", "\r": " "})


@dataclass(slots=True)
class Rendered:
    """Markdown, with the references that named nothing and the tables that were printed."""

    text: str
    unknown: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)


class Sources:
    """What references may name: the facts and tables of the turn's tool results, by prefixed id."""

    def __init__(self) -> None:
        self.facts: dict[str, Fact] = {}
        self.tables: dict[str, Table] = {}

    def add(self, call: str, result: ToolResult) -> None:
        """Take in a result's facts (by id and by name) and tables under the prefix ``call``, e.g. t1; of a name the
        first stays.
        """
        for fact in result.facts:
            self.facts.setdefault(f"{call}.{fact.id}", fact)
            self.facts.setdefault(f"{call}.{fact.name}", fact)
        for table in result.tables:
            self.tables.setdefault(f"{call}.{table.id}", table)

    def fact(self, name: str) -> Fact | None:
        """The fact of this id; without its prefix where only one call has it. None where there is none or several."""
        if name in self.facts:
            return self.facts[name]
        found = {id(fact): fact for key, fact in self.facts.items() if key.partition(".")[2] == name}
        return next(iter(found.values())) if len(found) == 1 else None

    def table(self, name: str) -> tuple[str, Table] | None:
        """(full id, table) of this id; without its prefix where only one call has it. None where there is none or
        several.
        """
        if name in self.tables:
            return name, self.tables[name]
        found = [(key, table) for key, table in self.tables.items() if key.partition(".")[2] == name]
        return found[0] if len(found) == 1 else None


_BRACKETED_RANGE = re.compile(r" \(\[\[([^\[\]|]{1,200})\|range\]\]\)")  # says nothing where the fact has no range


def render(text: str, sources: Sources) -> Rendered:
    """``text`` with its references printed; ``unknown`` lists those that name no fact or table, which print as
    ``NOT_KNOWN``. The range in brackets behind a fact that has none is dropped. Raises nothing.
    """
    done = Rendered("")

    def put(match: re.Match[str]) -> str:
        name, form = match[1].strip(), (match[2] or "").strip()
        if name.startswith("table:"):
            found = sources.table(name.removeprefix("table:").strip())
            if found:
                done.tables.append(found[0])
                return "\n\n" + markdown_table(found[1]) + "\n\n"
        else:
            fact = sources.fact(name)
            if fact:
                return show_fact(fact, form)
        done.unknown.append(name)
        return NOT_KNOWN

    def without_range(match: re.Match[str]) -> str:
        fact = sources.fact(match[1].strip())
        return "" if fact and (fact.low is None or fact.low == fact.high) else match[0]

    done.text = _tidy(REFERENCE.sub(put, _BRACKETED_RANGE.sub(without_range, text)))
    return done


def show_fact(fact: Fact, form: str = "") -> str:
    """A fact as people read it: its value, its range (``range``), or either in a forced unit."""
    return shown(fact.value, fact.unit, fact.low, fact.high, form)


def shown(value: float | int | str | bool, unit: str, low: float | None, high: float | None, form: str) -> str:
    """As ``show_fact``, of a fact's parts: ``form`` is "", "range" or a unit; a form that the unit cannot take is left
    aside.
    """
    if form == "range":
        return format_value(value, unit) if low is None or high is None else format_range(low, high, unit)
    possible = _FORMS.get(unit)
    return format_value(value, unit, form if possible and possible.fullmatch(form) else None)


def markdown_table(table: Table) -> str:
    """A GitHub-style table under its title in bold; columns with numbers are right-aligned, cells in their column's
    unit.
    """
    rows = [cells(table, row) for row in table.rows]
    numeric = [
        any(type(row[index]) in (int, float) for row in table.rows if index < len(row))
        for index in range(len(table.columns))
    ]
    head = "| " + " | ".join(_escape(column.label) for column in table.columns) + " |"
    rule = "|" + "|".join("---:" if right else "---" for right in numeric) + "|"
    body = ["| " + " | ".join(_escape(cell) for cell in row) + " |" for row in rows]
    title = [f"**{_escape(table.title)}**", ""] if table.title else []
    return "\n".join([*title, head, rule, *body])


def cells(table: Table, row: list[Any]) -> list[str]:
    """A row's cells as printed, each in its column's unit; cells beyond the columns are left out."""
    return [format_value(cell, column.unit) for cell, column in zip(row, table.columns, strict=False)]


def assumptions_line(assumptions: Iterable[Assumption]) -> str:
    """What was assumed, each as people say it; the arguments that change it and the reasons are in the answer's data.

    Only how a name was read keeps its reason here: the reader has to see that another card or size was possible.
    """
    parts = []
    for item in assumptions:
        name = item.argument or item.name
        value = format_value(item.value, item.unit)
        value = value.replace("_", " ") if isinstance(item.value, str) and name not in _NAMES else value
        shown = _SAID.get(name, name.replace("_", " ") + " {}").format(value)
        why = item.why.rstrip(".")
        parts.append(f"{shown} ({why})" if why and name in _NAMES else shown)
    return "**Assumed** (say so to change any): " + "; ".join(parts) + "." if parts else ""


def sources_line(titles: Iterable[tuple[str, str]]) -> str:
    """One line of (title, ISO date), at most ``MAX_SOURCES`` of them; "" where there are none."""
    parts = [f"{title} ({as_of})" if as_of and as_of not in title else title for title, as_of in titles]
    more = "; and others, all in the answer's citations" if len(parts) > MAX_SOURCES else ""
    return "**Sources:** " + "; ".join(parts[:MAX_SOURCES]) + more + "." if parts else ""


def plain(markdown: str) -> str:
    """Markdown as text for a terminal without Rich, a log or an SMS: no stars, tables aligned."""
    out = []
    for kind, block in split_blocks(markdown):
        out.append(_plain_table(block) if kind == "table" else _plain_text(block) if kind == "text" else block)
    return "\n".join(out).strip() + "\n"


def rich_parts(markdown: str) -> list[RenderableType]:
    """Markdown as things a Rich console prints: tables as grids, all else as Rich's own Markdown."""
    from rich.markdown import Markdown  # Rich is paid for only where a terminal shows an answer
    from rich.table import Table as RichTable

    parts: list[RenderableType] = []
    for kind, block in split_blocks(markdown):
        if kind != "table":
            if block.strip():
                parts.append(Markdown(block))
            continue
        rows = _table_rows(block)
        grid = RichTable(show_edge=False, pad_edge=False, header_style="bold")
        for label, rule in zip(rows[0], _rule(block), strict=False):
            grid.add_column(label, justify="right" if rule.endswith(":") else "left", overflow="fold")
        for row in rows[1:]:
            grid.add_row(*row)
        parts += [grid, ""]
    return parts


def split_blocks(markdown: str) -> list[tuple[str, str]]:
    """The text cut into ("text", …), ("code", …) and ("table", …) blocks, in order."""
    blocks: list[tuple[str, list[str]]] = []
    fenced = False
    for line in markdown.split("\n"):
        fence = line.lstrip().startswith("```")
        kind = "code" if fenced or fence else "table" if line.lstrip().startswith("|") else "text"
        if blocks and blocks[-1][0] == kind and not (kind == "code" and fence and not fenced):
            blocks[-1][1].append(line)
        else:
            blocks.append((kind, [line]))
        if fence:
            fenced = not fenced
    return [(kind, "\n".join(lines)) for kind, lines in blocks]


def file_blocks(data: Mapping[str, Any]) -> list[str]:
    """The files of a tool's payload as code blocks, each with its path and what has read it."""
    blocks = []
    for file in data.get("files", ()):
        read = f" (read by {file['checked']})" if file.get("checked") else ""
        blocks.append(f"`{file['path']}`{read}:\n\n```{file['language']}\n{str(file['text']).rstrip()}\n```")
    return blocks


def compose(payloads: Iterable[Mapping[str, Any]]) -> str:
    """An answer from tool results alone, still with references: verdict, bill, next knobs; errors in words.

    The planner may word its answer with it, and it is what a turn falls back to when a model's numbers do not hold.
    """
    parts: list[str] = []
    for data in payloads:
        error = data.get("error")
        if error:
            parts.append(error_words(error))
            continue
        if data.get("verdict"):
            parts.append(f"**{data['verdict']}**")
        elif data.get("facts"):
            shown = [f"{fact.get('label') or _words(fact['name'])}: [[{fact['id']}]]" for fact in data["facts"][:8]]
            parts.append("\n".join(f"- {line}" for line in shown))
        parts += [f"[[{table['id']}]]" for table in data.get("tables", ())]
        parts += file_blocks(data)
        if data.get("next_steps"):
            parts.append("\n".join(f"- {line}" for line in data["next_steps"]))
    return "\n\n".join(parts)


def error_words(error: Mapping[str, Any]) -> str:
    """An error as a person reads it: what is wrong, what to do, the nearest valid things."""
    words = [str(error.get("message", ""))]
    if error.get("hint"):
        words.append(str(error["hint"]))
    if error.get("candidates"):
        words.append("Nearest: " + ", ".join(map(str, error["candidates"])) + ".")
    return " ".join(words)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _escape(text: str) -> str:
    return text.translate(_CELL)


def _tidy(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _plain_text(block: str) -> str:
    block = re.sub(r"(?m)^#{1,6}\s+", "", block)
    block = re.sub(r"\*\*(.+?)\*\*", r"\1", block, flags=re.DOTALL)
    block = re.sub(r"`([^`\n]+)`", r"\1", block)
    return re.sub(r"\[([^\[\]\n]{1,400})\]\((https?://[^)\s]+)\)", r"\1 (\2)", block)


def _table_rows(block: str) -> list[list[str]]:
    lines = [line.strip().strip("|") for line in block.split("\n")]
    rows = [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)] for line in lines]
    return [row for number, row in enumerate(rows) if number != 1]


def _rule(block: str) -> list[str]:
    lines = block.split("\n")
    return [cell.strip() for cell in lines[1].strip().strip("|").split("|")] if len(lines) > 1 else []


def _plain_table(block: str) -> str:
    rows, rule = _table_rows(block), _rule(block)
    columns = max(len(row) for row in rows)
    widths = [max((len(row[index]) for row in rows if index < len(row)), default=0) for index in range(columns)]
    right = [index < len(rule) and rule[index].endswith(":") for index in range(columns)]
    lines = [
        "  ".join(
            cell.rjust(widths[index]) if right[index] else cell.ljust(widths[index]) for index, cell in enumerate(row)
        ).rstrip()
        for row in rows
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
