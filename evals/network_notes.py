"""The tables of ``evals/notes/network.md``, so that the notes cannot drift from what the model does.

python -m evals.network_notes          rewrites the part of the notes between its two marks
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from evals import accuracy_scaling, calibrate_network
from evals.accuracy_scaling import Scaled

NOTES = Path(__file__).parent / "notes" / "network.md"
BEGIN, END = "<!-- tables: python -m evals.network_notes -->", "<!-- end of tables -->"
SOURCES = {
    "FQL": "fsdp_qlora, 70B QLoRA", "LAM": "Lambda, BERT DDP", "MLL": "InternEvo issue reports",
    "MLP": "MLPerf training",
    "MOS": "llm-foundry, MPT FSDP", "MXT": "MaxText, TPU v4-v5p", "TPU": "MaxText, TPU v7x", "TTN": "torchtitan",
}  # fmt: skip
WORST = 12


def collective_errors() -> dict[str, list[float]]:
    """Predicted over measured bus bandwidth of every sweep, by the constants in the code."""
    found: dict[str, list[float]] = defaultdict(list)
    for row in calibrate_network.rows():
        found[calibrate_network.series(row)].append(calibrate_network.predicted(row) / (float(row["busbw_gb_s"]) * 1e9))
    return found


def tables() -> str:
    """Every table, as Markdown, computed anew with the constants in the code."""
    results = accuracy_scaling.evaluate(accuracy_scaling.rows())
    found = accuracy_scaling.summary(results)
    lines = [
        "| scaling | rows | median error | 90th percentile | median where > 15 % is lost | range covers |",
        "|---|---|---|---|---|---|",
        f"| model | {len(results)} | {_pct(found['median'])} | {_pct(found['p90'])} | "
        f"{_pct(found['losing_median'])} ({found['losing_rows']:.0f} rows) | {_pct(found['covered'])} |",
        f"| always 100 % | {len(results)} | {_pct(found['flat_median'])} | {_pct(found['flat_p90'])} | "
        f"{_pct(found['flat_losing_median'])} | |",
        "",
        "| source | rows | median error | 90th percentile | bias |",
        "|---|---|---|---|---|",
        *_by_source(results),
        "",
        "| worst rows | GPUs | measured | modelled | error |",
        "|---|---|---|---|---|",
    ]
    for each in sorted(results, key=lambda each: -abs(each.error))[:WORST]:
        name = f"{each.row['id']} {each.row['model']} {each.row['gpu']}"
        count = f"{each.base['n_gpus']} → {each.row['n_gpus']}"
        lines.append(
            f"| {name} | {count} | {_pct(each.measured)} | {_pct(each.predicted)} | {each.error * 100:+.1f} % |"
        )
    lines += ["", "| collective sweep | rows | modelled over measured | range |", "|---|---|---|---|"]
    fitted = []
    for name, ratios in collective_errors().items():
        middle = statistics.median(ratios)
        lines.append(f"| {name} | {len(ratios)} | {middle:.2f} | {min(ratios):.2f}-{max(ratios):.2f} |")
        fitted += [abs(ratio - 1) for ratio in ratios] if name.endswith(" fit") else []
    fitted.sort()
    lines += ["", f"Fitted rows: median error {_pct(_at(fitted, 0.5))}, 90th percentile {_pct(_at(fitted, 0.9))}."]
    return "\n".join(lines)


def current() -> str:
    """The tables that the notes hold between their marks; "" where a mark is missing."""
    return NOTES.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].strip()


def rewrite() -> None:
    """Write fresh tables between the marks of the notes."""
    head, _begin, rest = NOTES.read_text(encoding="utf-8").partition(BEGIN)
    tail = rest.partition(END)[2]
    NOTES.write_text(f"{head}{BEGIN}\n{tables()}\n{END}{tail}", encoding="utf-8")


def _by_source(results: list[Scaled]) -> Iterator[str]:
    for prefix, name in SOURCES.items():
        errors = [each.error for each in results if each.row["id"].startswith(prefix)]
        sizes = sorted(map(abs, errors))
        yield (
            f"| {name} | {len(errors)} | {_pct(_at(sizes, 0.5))} | {_pct(_at(sizes, 0.9))} | "
            f"{statistics.median(errors) * 100:+.1f} % |"
        )


def _at(ordered: list[float], share: float) -> float:
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _pct(value: float) -> str:
    return f"{value * 100:.1f} %"


if __name__ == "__main__":
    rewrite()
