"""The numeric cases with every provider down: the planner must answer nearly all of them, and say that it did.

    python -m evals.outage            all numeric cases; exit 1 below 95 %
    python -m evals.outage --every 7  every seventh

A numeric case asks in words and expects a number, of a fact or in the text, or the call that computes it. The models
set up all refuse, as they do when a provider's breaker is open; an answer that is right but does not say who gave it
counts as wrong.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advisor.llm.door import PLANNER, open_model
from advisor.llm.protocol import Model, ModelFailed
from advisor.settings import Settings
from advisor.store import SqliteConversations
from advisor.turn import Desk
from evals.casefile import Case, load_suites
from evals.run import ASKED_AT, CaseResult, run_case

DOWN = ("acme/first", "acme/second")  # the model set up and its fallback
WANTED = 0.95


@dataclass(frozen=True, slots=True)
class Outage:
    """Results of a run with every provider down."""

    results: tuple[CaseResult, ...]

    @property
    def share(self) -> float:
        """Cases that held, of all (0 to 1); 0 for no cases."""
        return sum(result.passed for result in self.results) / max(1, len(self.results))

    def missed(self) -> list[str]:
        """Each case that did not hold, as "id: why", in order."""
        return [f"{one.case.id}: {_why(one)}" for one in self.results if not one.passed]


def main() -> None:
    """Run and print JSON; exit 1 where fewer than 95 % of the cases held or there was none."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--every", type=int, default=1, help="take one case in so many")
    logging.getLogger("advisor").setLevel(logging.CRITICAL)  # each turn would say that its models failed
    outage = run(numeric_cases()[:: parser.parse_args().every])
    report = {"cases": len(outage.results), "share_right": round(outage.share, 4), "missed": outage.missed()}
    sys.stdout.write(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    sys.exit(0 if outage.results and outage.share >= WANTED else 1)


def numeric_cases() -> list[tuple[str, Case]]:
    """Suite and case, by id, of those that ask in words and expect a computed answer."""
    found = [(suite.suite, case) for suite in load_suites() for case in suite.cases if not case.call and _numeric(case)]
    return sorted(found, key=lambda pair: pair[1].id)


def run(cases: Sequence[tuple[str, Case]]) -> Outage:
    """Answer these (suite, case) pairs with every provider down, on a store of their own that is removed afterwards."""
    settings = Settings(model=DOWN[0], fallback_models=DOWN[1:])

    def opened(name: str) -> Model:
        if name != PLANNER:
            raise ModelFailed("unavailable", f"{name} is not available.", free=True)
        return open_model(PLANNER, settings)

    with tempfile.TemporaryDirectory() as folder:
        store = SqliteConversations(Path(folder) / "outage.db")
        desk = Desk(settings, store, opened, now=lambda: ASKED_AT)
        results = tuple(run_case(suite, case, DOWN[0], desk, degraded=True) for suite, case in cases)
        store.database.close()
    return Outage(results)


def _numeric(case: Case) -> bool:
    wanted = [turn.expect for turn in case.asked()]
    return any(one.numbers or one.shown or one.values or one.order or one.tools for one in wanted)


def _why(result: CaseResult) -> str:
    crash: Any = next((turn.crash for turn in result.turns if turn.crash), None)
    return str(crash or "; ".join(miss.message for miss in result.misses))[:300]


if __name__ == "__main__":
    main()
