"""Printing at a terminal: Rich where there is one, aligned plain text in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from advisor.answer import Answer
from advisor.question import clean
from advisor.render import Sources, assumptions_line, error_words, plain, render, rich_parts, sources_line
from advisor.tool_payload import prefix_references
from tools.errors import InputProblem
from tools.registry import ToolSpec
from tools.result import Column, Table, ToolResult
from tools.units import format_range, format_value

if TYPE_CHECKING:
    from rich.console import Console


def print_answer(answer: Answer) -> None:
    """Print the answer, then what may be asked next and how to go on, to standard output."""
    _print(answer.answer)
    if answer.suggestions:
        _print("Next you may ask:\n\n" + "\n".join(f"- {text}" for text in answer.suggestions))
    _dim(f'model {answer.model} · go on: advisor ask --conversation {answer.conversation_id} "…"')


def print_tools(specs: Iterable[ToolSpec]) -> None:
    """Print a table of tool names and what they answer to standard output."""
    rows: list[list[float | int | str | bool | None]] = [[spec.name, spec.summary] for spec in specs]
    from advisor.render import markdown_table

    _print(markdown_table(Table(id="tools", title="", columns=[_column("Tool"), _column("Answers")], rows=rows)))


def print_result(name: str, result: ToolResult) -> None:
    """A tool's result: verdict, facts, tables, next steps, warnings, assumptions, sources."""
    _print(result_markdown(name, result))


def result_markdown(name: str, result: ToolResult) -> str:
    """A tool's result as markdown: verdict, facts with their ranges, tables, next steps, warnings, assumptions,
    sources; references printed.
    """
    from advisor.render import markdown_table

    sources = Sources()
    sources.add(name, result)

    def words(text: str) -> str:
        return render(prefix_references(name, text), sources).text

    rows: list[list[float | int | str | bool | None]] = [
        [
            fact.label or fact.name.replace("_", " "),
            format_value(fact.value, fact.unit),
            format_range(fact.low, fact.high, fact.unit) if fact.low is not None and fact.high is not None else "",
            fact.kind,
            fact.as_of or "",
        ]
        for fact in result.facts
    ]
    columns = [_column(label) for label in ("Fact", "Value", "Range", "Kind", "As of")]
    parts = [f"**{words(result.verdict)}**" if result.verdict else ""]
    if rows:
        parts.append(markdown_table(Table(id="facts", title="", columns=columns, rows=rows)))
    parts += [markdown_table(table) for table in result.tables]
    parts.append("\n".join(f"- {words(text)}" for text in result.next_steps))
    parts += [f"Note: {words(warn.text)}" for warn in result.warnings]
    parts.append(assumptions_line(result.assumptions))
    parts.append(sources_line((source.title, source.as_of) for source in result.sources))
    return "\n\n".join(part for part in parts if part)


def chat_loop(model: str | None, conversation: str | None) -> None:
    """Questions from the prompt, answers below, until an empty line, /quit or the end of the input."""
    from advisor.events import Done, ToolStarted
    from advisor.turn import run

    _dim("Ask about machines for training models. /new starts afresh, an empty line ends.")
    while True:
        try:
            question = input("> " if sys.stdin.isatty() else "").strip()
        except EOFError:
            return
        if question in ("", "/quit", "/exit"):
            return
        if question == "/new":
            conversation = None
            _dim("A new conversation.")
            continue
        try:
            for event in run(question, conversation, model):
                if isinstance(event, ToolStarted):
                    _dim(f"· {event.name}")
                elif isinstance(event, Done):
                    conversation = event.answer.conversation_id
                    _print(event.answer.answer)
        except InputProblem as problem:
            click.echo(f"Error: {error_words(problem.as_dict())}", err=True)


def _print(markdown: str) -> None:
    text = clean(markdown)  # no escape sequence of a model or a price feed reaches the terminal
    if sys.stdout.isatty():
        console = _console()
        for part in rich_parts(text):
            console.print(part)
    else:
        click.echo(plain(text))


def _dim(text: str) -> None:
    click.echo(click.style(clean(text), dim=True), err=True)


def _console() -> Console:
    from rich.console import Console  # not needed in a pipe

    return Console()


def _column(label: str) -> Column:
    return Column(key=label, label=label)
