"""Run suites: ``run_suites(names, model, out)`` answers every case, grades it, and writes the reports.

A crash of a case is a failure, counted apart; the run goes on. The harness itself breaking, or nothing to run, is not
a result: it raises InputProblem or leaves a report with no case, which the command line turns into exit code 2.
"""

from __future__ import annotations

import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from advisor.llm.door import PLANNER, open_model
from advisor.llm.protocol import Model
from advisor.settings import get_settings
from advisor.store import SqliteConversations
from advisor.turn import Desk
from advisor.turn import answer as answer_turn
from evals.canaries import run_canaries
from evals.casefile import Case, Suite, load_suites
from evals.graders import Miss, grade
from evals.transcript import Happened, of_answer, of_call
from tools.errors import InputProblem

Opener = Callable[[str], Model]
ASKED_AT = datetime(2026, 11, 30, 12, tzinfo=UTC)  # every case is asked on this Monday, so that "by Friday" holds still


@dataclass(slots=True)
class CaseResult:
    """A case with what happened in each of its turns and what did not hold."""

    suite: str
    case: Case
    turns: list[Happened] = field(default_factory=list)
    misses: list[Miss] = field(default_factory=list)
    attempts: int = 1
    passes: int = 0

    @property
    def passed(self) -> bool:
        """Whether every attempt held (pass^k), not only one of them."""
        return self.passes == self.attempts

    @property
    def crashed(self) -> bool:
        """Whether an exception that is no user's error was raised in a turn of the last attempt."""
        return any(turn.crash for turn in self.turns)

    @property
    def seconds(self) -> float:
        """Wall time, in seconds, of the last attempt's turns."""
        return sum(turn.seconds for turn in self.turns)


@dataclass(slots=True)
class RunReport:
    """All results of a run."""

    model: str
    suites: list[Suite]
    results: list[CaseResult] = field(default_factory=list)
    seconds: float = 0.0
    broken: list[Miss] = field(default_factory=list)  # canaries that the graders let through

    @property
    def passed(self) -> int:
        """How many cases held."""
        return sum(result.passed for result in self.results)

    @property
    def failed(self) -> int:
        """How many cases did not hold, crashes among them."""
        return len(self.results) - self.passed

    @property
    def crashed(self) -> int:
        """How many of the failed cases were crashes."""
        return sum(result.crashed for result in self.results)


def run_suites(
    names: Iterable[str] = (),
    model: str | None = None,
    out: Path | None = None,
    *,
    repeat: int = 1,
    opener: Opener | None = None,
    watch: Callable[[CaseResult], None] | None = None,
) -> RunReport:
    """Run the suites of these names or files (all of ours when none), with ``model``; reports go to ``out``."""
    suites = load_suites(names)
    report = RunReport(model or PLANNER, suites)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        desk = make_desk(Path(folder), opener)
        report.broken = run_canaries()
        for suite in suites:
            for case in suite.cases:
                result = run_case(suite.suite, case, report.model, desk, repeat)
                report.results.append(result)
                if watch:
                    watch(result)
    report.seconds = time.perf_counter() - started
    if out is not None:
        from evals.report import write_reports

        write_reports(report, out)
    return report


def run_case(suite: str, case: Case, model: str, desk: Desk, repeat: int = 1, *, degraded: bool = False) -> CaseResult:
    """One case, ``repeat`` times where a model answers it; a direct call is the same every time.

    ``degraded``: the model is known to be down, so each turn must be answered, and said to be, by the one behind it.
    """
    result = CaseResult(suite, case, attempts=1 if case.call else repeat)
    for _ in range(result.attempts):
        result.turns, misses = _attempt(case, model, desk, degraded)
        result.passes += not misses
        result.misses = result.misses or misses
    return result


def _attempt(case: Case, model: str, desk: Desk, degraded: bool) -> tuple[list[Happened], list[Miss]]:
    if case.call:
        happened = _timed(lambda: of_call(case.call.tool, case.call.arguments), "")  # type: ignore[union-attr]
        return [happened], grade(case.expect, happened, [])
    turns: list[Happened] = []
    misses: list[Miss] = []
    said: list[str] = []
    conversation: str | None = None
    for number, turn in enumerate(case.asked(), 1):
        happened = _timed(lambda turn=turn, at=conversation: _turn(turn.user, at, model, desk, degraded), turn.user)  # type: ignore[misc]
        turns.append(happened)
        found = grade(turn.expect, happened, said)
        if len(case.asked()) > 1:
            found = [Miss(miss.grader, f"turn {number}: {miss.message}", miss.wanted, miss.got) for miss in found]
        misses += found
        said.append(turn.user)
        conversation = happened.answer["conversation_id"] if happened.answer else conversation
    return turns, misses


def _turn(question: str, conversation: str | None, model: str, desk: Desk, degraded: bool) -> Happened:
    try:
        done = answer_turn(question, conversation, model, desk=desk)
    except InputProblem as problem:
        return Happened(question=question, text=problem.message, status="failed", error=problem.as_dict())
    happened = of_answer(question, done.as_json())
    if happened.status == "failed" or happened.degraded != degraded:
        # A provider that failed, a stale cassette, a tool's crash: never a pass because the planner stepped in.
        happened.crash = f"the turn failed, or was {'not ' * degraded}degraded: {happened.text[:200]}"
    return happened


def _timed(act: Callable[[], Happened], question: str) -> Happened:
    started = time.perf_counter()
    try:
        happened = act()
    except Exception as error:  # a crash of the product is a finding, not the end of the run
        trace = traceback.format_exception(error)[-3:]
        happened = Happened(question=question, crash=f"{type(error).__name__}: {error}\n{''.join(trace)}"[:2000])
    happened.seconds = time.perf_counter() - started
    return happened


def make_desk(folder: Path, opener: Opener | None = None) -> Desk:
    """A desk that keeps its conversations in ``folder`` and asks everything on one fixed day; settings as the
    environment says, models by ``opener`` or theirs.
    """
    settings = get_settings()
    return Desk(
        settings,
        SqliteConversations(folder / "evals.db"),
        opener or (lambda name: open_model(name, settings)),
        now=lambda: ASKED_AT,
    )


def summary(report: RunReport) -> dict[str, Any]:
    """Counts of cases by tag (a case counts under each of its tags) and of cases missed by each grader, for tables."""
    by_tag: dict[str, list[CaseResult]] = {}
    for result in report.results:
        for tag in result.case.tags or ["untagged"]:
            by_tag.setdefault(tag, []).append(result)
    graders: dict[str, int] = {}
    for result in report.results:
        for name in {miss.grader for miss in result.misses}:
            graders[name] = graders.get(name, 0) + 1
    return {
        "passed": report.passed,
        "failed": report.failed,
        "crashed": report.crashed,
        "by_tag": {
            tag: {"cases": len(rows), "passed": sum(row.passed for row in rows)} for tag, rows in sorted(by_tag.items())
        },
        "misses_by_grader": dict(sorted(graders.items())),
    }
