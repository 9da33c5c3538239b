"""``advisor eval``: the suites, question files and accuracy files.

Exit codes: 0 all passed, 1 something did not, 2 the harness broke or there was nothing to run.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from tools.errors import BadValue, MissingValue

ACCURACY = {
    "memory": "evals.accuracy_memory",
    "throughput": "evals.accuracy_throughput",
    "allocation": "evals.accuracy_memory",
}


@click.group("eval")
def command() -> None:
    """Run the eval suites, question files and accuracy files."""


@command.command()
@click.argument("suites", nargs=-1, metavar="[SUITE...]")
@click.option("--model", metavar="M", help="planner (default), or any litellm name.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Write results.json, junit.xml, report.html."
)
@click.option("--repeat", default=1, show_default=True, type=click.IntRange(1, 100), help="Attempts a case (pass^k).")
@click.option("--record", type=click.Path(path_type=Path), metavar="DIR", help="Keep the model's replies as cassettes.")
@click.option(
    "--replay", type=click.Path(path_type=Path), metavar="DIR", help="Answer from cassettes; a stale one fails."
)
def run(
    suites: tuple[str, ...], model: str | None, as_json: bool, out: Path | None, repeat: int,
    record: Path | None, replay: Path | None,
) -> None:  # fmt: skip
    """Run SUITE... (names of ours or YAML files of yours; all of ours when none is named)."""
    from rich.console import Console

    from evals.baseline import compare
    from evals.console import Watcher, print_report
    from evals.report import as_json as results
    from evals.run import run_suites

    if record and replay:
        raise BadValue("two_inputs", "Give either --record or --replay, not both.", field="replay")
    opener = None
    if record or replay:
        from evals.cassettes import opener_of

        opener = opener_of(record, replay)
    console = Console(stderr=as_json, soft_wrap=True, highlight=False)
    try:
        report = run_suites(suites, model, out, repeat=repeat, opener=opener, watch=Watcher(console))
    except BadValue:
        raise
    except Exception as error:  # the harness itself, not a case: 2, so that CI never reads it as a result
        click.echo(f"The harness broke: {type(error).__name__}: {error}", err=True)
        sys.exit(2)
    print_report(report, compare(report), console)
    if as_json:
        click.echo(json.dumps(results(report), ensure_ascii=False))
    if report.broken:
        for miss in report.broken:
            click.echo(f"A grader is broken: {miss}", err=True)
        sys.exit(2)
    if not report.results:
        click.echo("Nothing was run.", err=True)
        sys.exit(2)
    sys.exit(1 if report.failed else 0)


@command.command()
@click.option("--reason", required=True, help="Why the baseline changes; kept in the file.")
def baseline(reason: str) -> None:
    """Run all suites and keep the outcome as the committed baseline."""
    from evals.baseline import BASELINE, write
    from evals.run import run_suites

    report = run_suites()
    write(report, reason)
    click.echo(f"{BASELINE.name}: {report.passed} passed, {report.failed} failed")


@command.command()
@click.option("--check", is_flag=True, help="Only say whether the committed schema is current.")
def schema(check: bool) -> None:
    """Write the JSON Schema of case files beside them."""
    from evals.casefile import CASES, json_schema

    file = CASES / "case.schema.json"
    text = json.dumps(json_schema(), indent=1) + "\n"
    if check:
        sys.exit(0 if file.exists() and file.read_text(encoding="utf-8") == text else 1)
    file.write_text(text, encoding="utf-8")
    click.echo(str(file.name))


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--rows", type=click.Path(path_type=Path), required=True, metavar="OUT.jsonl", help="One line a question."
)
@click.option("--model", metavar="M", help="planner (default), or any litellm name.")
def questions(file: Path, rows: Path, model: str | None) -> None:
    """Answer each question (or its turns) of a FILE.jsonl, one line out a question."""
    _call("evals.questions", "run_questions", file, rows, model)


@command.command()
@click.argument("what", type=click.Choice(sorted(ACCURACY)))
@click.option(
    "--data", type=click.Path(path_type=Path), metavar="FILE.csv", help="Measured rows; default the packaged."
)
@click.option("--rows", type=click.Path(path_type=Path), metavar="OUT.csv", help="One line a row.")
def accuracy(what: str, data: Path | None, rows: Path | None) -> None:
    """Predict each measured row of a file and print the summary of errors as JSON last."""
    function = {"memory": "run_memory", "throughput": "run_throughput", "allocation": "run_allocation"}[what]
    summary = _call(ACCURACY[what], function, data, rows)
    if summary is not None:
        click.echo(json.dumps(summary, ensure_ascii=False))


def _call(module: str, function: str, first: Path | None, *rest: Any) -> Any:
    if first is not None and not first.is_file():
        raise BadValue("no_such_file", f"There is no file {str(first)!r}.", field="data")
    try:
        found = getattr(import_module(module), function)
    except (ModuleNotFoundError, AttributeError):
        raise MissingValue("not_built", f"This build lacks {module}.{function}.", field="what") from None
    return found(first, *rest)
