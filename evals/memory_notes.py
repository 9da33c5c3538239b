"""The tables of ``evals/notes/memory.md``, so that the notes cannot drift from what the model does.

python -m evals.memory_notes          rewrites the part of the notes between its two marks
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evals.accuracy_memory import run_allocation, run_memory
from evals.calibrate_memory import main as calibration

NOTES = Path(__file__).parent / "notes" / "memory.md"
BEGIN, END = "<!-- tables: python -m evals.memory_notes -->", "<!-- end of tables -->"


def tables() -> str:
    """Every table, as Markdown, computed anew, the calibration without each source included."""
    memory, counted, calibrated = run_memory(), run_allocation(), calibration()
    inside, outside = calibrated["fitted_on_all"], calibrated["fitted_without_the_tested_source"]
    assert isinstance(inside, dict)
    assert isinstance(outside, dict)
    lines = [
        "| what | rows | median error | 90th percentile | interval covers |",
        "|---|---|---|---|---|",
        _line("sound measurements, each source weighted equally", memory["all"]),
        _line("of them allocated bytes", memory["allocated"]),
        _line("of them reserved bytes", memory["reserved"]),
        _line("constants fitted without the tested source", outside),
        f"| counted allocations (fake tensors) | {counted['rows']} | {counted['median_abs_error_pct']} % | "
        f"{counted['p90_abs_error_pct']} % | |",
        "",
        f"Fits and out-of-memory rows: {memory['bounds']['rows']}, of which {memory['bounds']['borderline']} within a "
        f"tenth of capacity; of the others {memory['bounds']['right_pct']} % right.",
        "",
    ]
    for title, key in (("Method", "by_method"), ("Framework", "by_framework"), ("Size", "by_size")):
        lines += [f"| {title} | rows | median error | 90th percentile | bias |", "|---|---|---|---|---|"]
        for name, row in memory[key].items():
            lines.append(
                f"| {name} | {row['rows']} | {row['median_abs_error_pct']} % | {row['p90_abs_error_pct']} % | "
                f"{row['bias_pct']:+} % |"
            )
        lines.append("")
    lines += ["| Source left out of calibration | rows | median error | 90th percentile |", "|---|---|---|---|"]
    left_out = calibrated["by_left_out_source"]
    assert isinstance(left_out, dict)
    for name, row in left_out.items():
        lines.append(f"| {name} | {row['rows']} | {row['median_abs_error_pct']} % | {row['p90_abs_error_pct']} % |")
    lines += ["", "Worst ten: " + ", ".join(f"{row['id']} {row['error_pct']:+} %" for row in memory["worst"]) + "."]
    return "\n".join(lines)


def current() -> str:
    """The tables that the notes hold between their marks; "" where a mark is missing."""
    text = NOTES.read_text(encoding="utf-8")
    return text.partition(BEGIN)[2].partition(END)[0].strip()


def rewrite() -> None:
    """Write fresh tables between the marks of the notes."""
    text = NOTES.read_text(encoding="utf-8")
    head, _begin, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    NOTES.write_text(f"{head}{BEGIN}\n{tables()}\n{END}{tail}", encoding="utf-8")


def _line(name: str, row: dict[str, Any]) -> str:
    return (
        f"| {name} | {row['rows']} | {row['median_abs_error_pct']} % | {row['p90_abs_error_pct']} % | "
        f"{row['interval_covers_pct']} % |"
    )


if __name__ == "__main__":
    rewrite()
