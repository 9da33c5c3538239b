"""The committed baseline: which cases passed. Any pass that became a failure is a regression and blocks.

Refreshing it (``advisor eval baseline --reason ...``) is a commit of its own; the reason is kept in the file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from evals.run import RunReport

BASELINE = Path(__file__).parent / "baseline.json"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Case ids against the baseline."""

    regressions: list[str]
    new_failures: list[str]
    gone: list[str]


def compare(report: RunReport, baseline: Path = BASELINE) -> Comparison:
    """What changed. ``gone`` are baseline cases of the suites that ran which no longer exist."""
    known: dict[str, dict[str, str]] = read(baseline)
    failed = [result.case.id for result in report.results if not result.passed]
    ran = {result.case.id for result in report.results}
    before = {case: outcome for suite in known.values() for case, outcome in suite.items()}
    return Comparison(
        regressions=[case for case in failed if before.get(case) == "pass"],
        new_failures=[case for case in failed if before.get(case) != "pass"],
        gone=[case for suite in report.suites for case in known.get(suite.suite, {}) if case not in ran],
    )


def read(baseline: Path = BASELINE) -> dict[str, dict[str, str]]:
    """Outcomes, "pass" or "fail", by suite and case; {} where there is no baseline."""
    if not baseline.exists():
        return {}
    cases: dict[str, dict[str, str]] = json.loads(baseline.read_text(encoding="utf-8"))["cases"]
    return cases


def write(report: RunReport, reason: str, baseline: Path = BASELINE) -> None:
    """Write this run over the baseline file, with the reason for it; cases of suites that did not run are dropped."""
    cases: dict[str, dict[str, str]] = {}
    for result in report.results:
        cases.setdefault(result.suite, {})[result.case.id] = "pass" if result.passed else "fail"
    text = json.dumps({"reason": reason, "model": report.model, "cases": cases}, indent=1, ensure_ascii=False)
    baseline.write_text(text + "\n", encoding="utf-8")
