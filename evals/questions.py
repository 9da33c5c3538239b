"""Run a file of real questions through the advisor: one line out for each, whatever happens to a turn.

``run_questions`` is what ``advisor eval questions FILE.jsonl --rows OUT.jsonl`` calls. Each line in holds ``id`` and
``text`` (or ``turns``, all user turns in order); each line out ``{"id", "results": [one ask --json object a turn]}``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from advisor.answer import Answer
from tools.errors import InputProblem

Ask = Callable[[str, str | None, str | None], Answer]


@dataclass(slots=True)
class RunSummary:
    """How a run went: turns by status, crashes, and the time of each turn in milliseconds."""

    questions: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    crashed: list[str] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)

    def percentile(self, share: float) -> float:
        """Milliseconds below which ``share`` (0 to 1) of the turns lie; 0 where there was no turn."""
        times = sorted(self.milliseconds)
        return times[min(len(times) - 1, int(share * len(times)))] if times else 0.0

    def as_dict(self) -> dict[str, Any]:
        """What the command prints: counts, crashed ids, and two percentiles of turn times in milliseconds."""
        return {
            "questions": self.questions,
            "turns": len(self.milliseconds),
            "statuses": self.statuses,
            "crashed": self.crashed,
            "p50_ms": round(self.percentile(0.5), 1),
            "p95_ms": round(self.percentile(0.95), 1),
        }


def run_questions(file: str | Path, rows: str | Path, model: str | None = None) -> RunSummary:
    """Run a file, write the rows, print the summary as JSON. Raises OSError for files that cannot be read
    or written.
    """
    summary = run_file(file, rows, model)
    click.echo(json.dumps(summary.as_dict(), ensure_ascii=False))
    return summary


def run_file(file: str | Path, rows: str | Path, model: str | None = None, ask: Ask | None = None) -> RunSummary:
    """Run every question of ``file`` and write one line each to ``rows``, at once, so that a stop loses nothing."""
    summary = RunSummary()
    with Path(rows).open("w", encoding="utf-8") as out:
        for question in read_questions(file):
            line = run_question(question, model, ask or _ask, summary)
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
            out.flush()
    return summary


def read_questions(file: str | Path) -> Iterator[dict[str, Any]]:
    """The questions of a file; a line that is no JSON object becomes a question that fails."""
    with Path(file).open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                question = json.loads(line)
            except ValueError:
                question = None
            yield question if isinstance(question, dict) else {"id": f"line {number}", "unreadable": True}


def run_question(question: dict[str, Any], model: str | None, ask: Ask, summary: RunSummary) -> dict[str, Any]:
    """All turns of one question in one conversation, as the line to write; ``summary`` is added to in place. A turn
    that raises becomes a result of status "failed".
    """
    summary.questions += 1
    turns: Iterable[Any] = question.get("turns") or [question.get("text", "")]
    conversation: str | None = None
    results = []
    for turn in turns:
        begun = time.perf_counter()
        result = _turn(str(turn), conversation, model, ask)
        summary.milliseconds.append((time.perf_counter() - begun) * 1e3)
        conversation = result.get("conversation_id") or conversation
        status = str(result["status"])
        summary.statuses[status] = summary.statuses.get(status, 0) + 1
        if status == "failed":
            summary.crashed.append(str(question.get("id", "")))
        results.append(result)
    return {"id": question.get("id"), "results": results}


def _turn(text: str, conversation: str | None, model: str | None, ask: Ask) -> dict[str, Any]:
    try:
        return ask(text, conversation, model).as_json()
    except InputProblem as problem:  # an empty or unreadable turn: one clear error, and the conversation goes on
        words = " ".join(part for part in (problem.message, problem.hint) if part)
        return _result(conversation, "needs_input", words, problem.as_dict())
    except Exception as error:  # one bad turn must not stop the run
        return _result(conversation, "failed", f"The turn crashed: {type(error).__name__}.", None)


def _result(conversation: str | None, status: str, words: str, error: dict[str, Any] | None) -> dict[str, Any]:
    empty = Answer(
        conversation_id=conversation or "", turn_id="", status="failed", answer=words, model="planner"
    ).as_json()
    return {**empty, "status": status, **({"error": error} if error else {})}


def _ask(text: str, conversation: str | None, model: str | None) -> Answer:
    from advisor.turn import answer

    return answer(text, conversation, model)
