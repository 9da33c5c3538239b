"""The run as a person sees it in a terminal: progress, failures as they come, the table by topic, the closing line."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evals.baseline import Comparison
from evals.run import CaseResult, RunReport, summary


class Watcher:
    """Prints a dot a passed case and the misses of a failed one."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._in_line = 0

    def __call__(self, result: CaseResult) -> None:
        """Take in one result."""
        if result.passed:
            self._console.print(".", end="")
            self._in_line += 1
            if self._in_line % 80 == 0:
                self._console.print()
            return
        self._console.print()
        word = "crashed" if result.crashed else "failed"
        self._console.print(f"[bold red]{word}[/] {result.case.id}  [dim]{escape(result.case.why)}[/]")
        for miss in result.misses[:4]:
            self._console.print(f"   {escape(str(miss)[:300])}")
        self._in_line = 0


def print_report(report: RunReport, comparison: Comparison, console: Console) -> None:
    """The table by topic, what changed against the baseline, and the closing line."""
    counts = summary(report)
    table = Table(title=f"Evals with {report.model}", title_justify="left")
    for name in ("topic", "cases", "passed", "failed"):
        table.add_column(name, justify="left" if name == "topic" else "right")
    for tag, row in counts["by_tag"].items():
        table.add_row(escape(tag), str(row["cases"]), str(row["passed"]), str(row["cases"] - row["passed"] or ""))
    console.print()
    console.print(table)
    if counts["misses_by_grader"]:
        console.print("Missed by grader: " + ", ".join(f"{k} {v}" for k, v in counts["misses_by_grader"].items()))
    for words, ids in (("Regressions", comparison.regressions), ("New failures", comparison.new_failures)):
        if ids:
            console.print(f"[bold red]{words}[/]: " + escape(", ".join(ids)))
    if comparison.gone:
        console.print("No longer there: " + escape(", ".join(comparison.gone)))
    if counts["crashed"]:
        console.print(f"{counts['crashed']} of the failures are crashes.")
    console.print(f"{report.passed} passed, {report.failed} failed", highlight=False)
