"""How far memory estimates are from published measurements and from counted allocations.

Behind ``advisor eval accuracy memory|allocation --data FILE.csv --rows OUT.csv``. The predictor reads configuration
columns only; the measured column is read here, after the estimate, to compare.
"""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from evals.allocation_rows import read_allocation_row
from evals.measured_models import Row
from evals.measured_rows import Case, read_row
from knowledge.errors import InputProblem
from tools.memory import MemoryBill, estimate
from tools.memory.bill import BORDERLINE
from tools.memory.overhead import LIVE_FIXED_BYTES, loose_interval

BOUNDS = ("fits", "oom")
# What a card that people call "80 GB" lets a process use, in bytes per printed unit: 80 GiB less the driver's share.
USABLE_PER_UNIT = 2.0**30 * 0.985
OUT_COLUMNS = ("id", "measured", "predicted", "low", "high", "unit", "status")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row compared, in the row's own unit."""

    id: str
    source: str
    kind: str
    method: str
    framework: str
    params_b: float
    measured: float
    predicted: float
    low: float
    high: float
    unit: str
    status: str
    flag: str

    @property
    def error(self) -> float:
        """Relative error of the prediction, signed: 0.1 is a tenth too much."""
        return self.predicted / self.measured - 1

    @property
    def is_bound(self) -> bool:
        """Whether the figure is a card's capacity that a run fitted into or not, so that it has no error."""
        return self.kind in BOUNDS

    @property
    def covered(self) -> bool:
        """Whether the measurement lies in the prediction's 90 % interval, ends included."""
        return self.low <= self.measured <= self.high

    def bound_verdict(self) -> str:
        """right, wrong, or borderline where the prediction is within a tenth of what the card holds."""
        ratio = self.predicted * (2.0**30 if "i" in self.unit else 1e9) / (self.measured * USABLE_PER_UNIT)
        if abs(ratio - 1) <= BORDERLINE:
            return "borderline"
        return "right" if (ratio < 1) == (self.kind == "fits") else "wrong"


def predict(case: Case) -> tuple[float, float, float]:
    """Expected, low and high bytes in the terms that the row was measured in: allocated, reserved or the card's, on one
    GPU or summed over them.
    """
    bill = estimate(case.job, case.recipe)
    value, low, high = _in_terms(bill, case.kind)
    if case.loose:
        low, high = loose_interval(value, low, high)
    gpus = case.job.n_gpus if case.summed else 1
    return value * gpus, low * gpus, high * gpus


def run_memory(data: Path | None = None, rows: Path | None = None) -> dict[str, Any]:
    """Compare every row of a file of published measurements (the packaged ones without a file)."""
    outcomes = outcomes_of(read_csv(data, "measured_memory.csv"), flags())
    if rows is not None:
        write_rows(outcomes, rows)
    return summary(outcomes)


def run_allocation(data: Path | None = None, rows: Path | None = None) -> dict[str, Any]:
    """Compare every row of a file of live bytes counted under fake tensors."""
    outcomes = []
    for number, row in enumerate(read_csv(data, "allocation_counts.csv")):
        outcomes.append(_allocation_outcome(row, number))
    if rows is not None:
        write_rows(outcomes, rows)
    good = sorted(abs(one.error) for one in outcomes if one.status == "ok")
    return {
        "rows": len(outcomes),
        "supported": len(good),
        "median_abs_error_pct": _pct(_quantile(good, 0.5)),
        "p90_abs_error_pct": _pct(_quantile(good, 0.9)),
        "max_abs_error_pct": _pct(good[-1] if good else math.nan),
        "worst": [
            {"id": one.id, "model": one.framework, "method": one.method, "error_pct": _pct(one.error)}
            for one in sorted((o for o in outcomes if o.status == "ok"), key=lambda o: -abs(o.error))[:5]
        ],
    }


def outcomes_of(table: Iterable[Row], flagged: dict[str, str] | None = None) -> list[Outcome]:
    """Every row compared; rows that cannot be estimated carry the reason as their status."""
    flagged = flagged or {}
    found = []
    for row in table:
        measured = _number(row.get("measured_peak_gb"))
        flag = flagged.get(row.get("id") or "", "")
        found.append(_outcome(row, measured, flag))
    return found


def summary(outcomes: list[Outcome]) -> dict[str, Any]:
    """Errors with each source weighted equally, by kind, method, framework and size; coverage; fits and oom."""
    graded = [one for one in outcomes if one.flag in ("", "use")]
    values = [one for one in graded if not one.is_bound]
    good = [one for one in values if one.status == "ok"]
    bounds = [one for one in outcomes if one.is_bound and one.status == "ok"]
    verdicts = [one.bound_verdict() for one in bounds]
    decided = [verdict for verdict in verdicts if verdict != "borderline"]
    weak = [one for one in outcomes if one.flag == "weak" and one.status == "ok" and not one.is_bound]
    return {
        "rows": len(outcomes),
        "measured_rows": len(values),
        "supported_pct": _pct(len(good) / len(values)) if values else None,
        "all": _errors(good),
        "allocated": _errors([one for one in good if one.kind == "allocated"]),
        "reserved": _errors([one for one in good if one.kind == "reserved"]),
        "by_source": _grouped(good, lambda one: one.source),
        "by_method": _grouped(good, lambda one: one.method),
        "by_framework": _grouped(good, lambda one: one.framework),
        "by_size": _grouped(good, lambda one: _size(one.params_b)),
        "bounds": {
            "rows": len(bounds),
            "borderline": len(bounds) - len(decided),
            "right_pct": _pct(decided.count("right") / len(decided)) if decided else None,
            "wrong": [one.id for one, verdict in zip(bounds, verdicts, strict=True) if verdict == "wrong"],
        },
        "weak_rows_beside": _errors(weak),
        "worst": [
            {"id": one.id, "error_pct": _pct(one.error)} for one in sorted(good, key=lambda one: -abs(one.error))[:10]
        ],
        "unsupported": [{"id": one.id, "why": one.status} for one in values if one.status != "ok"],
    }


def read_csv(path: Path | None, packaged: str) -> list[Row]:
    """Rows of a CSV file, or of the packaged one where ``path`` is None; cells stripped, absent ones "". Raises OSError
    for a file that cannot be read.
    """
    text = (
        path.read_text(encoding="utf-8-sig")
        if path is not None
        else resources.files("evals").joinpath(f"data/{packaged}").read_text(encoding="utf-8")
    )
    return [
        {key: (value or "").strip() for key, value in row.items() if key} for row in csv.DictReader(text.splitlines())
    ]


def flags() -> dict[str, str]:
    """Which packaged rows are sound (use), loosely specified (weak), bounds, or wrong, by id."""
    return {row["id"]: row["flag"] for row in read_csv(None, "memory_row_flags.csv")}


def write_rows(outcomes: list[Outcome], path: Path) -> None:
    """The comparison, one line a row, in the columns that reports rely on."""
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(OUT_COLUMNS)
        for one in outcomes:
            numbers = [f"{value:.6g}" for value in (one.measured, one.predicted, one.low, one.high)]
            writer.writerow([one.id, *numbers, one.unit, one.status])


def weighted_quantile(pairs: list[tuple[float, float]], share: float) -> float:
    """The smallest value at or below which ``share`` (0 to 1) of the weight lies, of (value, weight) pairs; no
    interpolation. NaN for no pairs.
    """
    if not pairs:
        return math.nan
    ordered = sorted(pairs)
    total, run = sum(weight for _value, weight in ordered), 0.0
    for value, weight in ordered:
        run += weight
        if run >= share * total:
            return value
    return ordered[-1][0]


def by_source_weights(outcomes: list[Outcome]) -> list[float]:
    """A weight for each outcome that gives each source the same say: 1 over the number of its rows."""
    counts: dict[str, int] = defaultdict(int)
    for one in outcomes:
        counts[one.source] += 1
    return [1 / counts[one.source] for one in outcomes]


def _in_terms(bill: MemoryBill, kind: str) -> tuple[float, float, float]:
    if kind == "allocated":
        return bill.live_bytes, bill.live_low, bill.live_high
    if kind == "reserved":
        scale = bill.reserved_bytes / bill.peak_bytes
        return bill.reserved_bytes, bill.low_bytes * scale, bill.high_bytes * scale
    return bill.peak_bytes, bill.low_bytes, bill.high_bytes


def _outcome(row: Row, measured: float, flag: str) -> Outcome:
    unit = row.get("unit") or "GB"
    predicted = low = high = math.nan
    status, kind, method, framework = "ok", (row.get("kind") or "unknown"), row.get("method") or "", ""
    try:
        case = read_row(row)
        kind, method, framework = case.kind, case.job.method, case.job.framework
        predicted, low, high = (value / case.unit_bytes for value in predict(case))
        if math.isnan(measured):
            status = "nothing measured in this row"
    except (InputProblem, ValueError, KeyError, ArithmeticError) as problem:  # one bad row must not stop the file
        status = f"unsupported: {problem}"
    return Outcome(
        id=row.get("id") or "", source=row.get("source_repo_or_paper") or "", kind=kind, method=method,
        framework=framework, params_b=_number(row.get("params_b")), measured=measured, predicted=predicted, low=low,
        high=high, unit=unit, status=status, flag=flag,
    )  # fmt: skip


def _allocation_outcome(row: Row, number: int) -> Outcome:
    measured = _number(row.get("peak_bytes"))
    predicted = low = high = math.nan
    status, method = "ok", row.get("method") or ""
    try:
        bill = estimate(*_job_and_recipe(row, number))
        # Nothing but tensors is counted there: no library workspaces.
        predicted = bill.live_bytes - LIVE_FIXED_BYTES
        low, high = predicted * 0.97, predicted * 1.03
    except (InputProblem, ValueError, KeyError, ArithmeticError) as problem:
        status = f"unsupported: {problem}"
    return Outcome(
        id=str(number), source="counted", kind="allocated", method=method, framework=row.get("model") or "",
        params_b=_number(row.get("total_params")) / 1e9, measured=measured, predicted=predicted, low=low, high=high,
        unit="B", status=status, flag="",
    )  # fmt: skip


def _job_and_recipe(row: Row, number: int) -> tuple[Any, Any]:
    case = read_allocation_row(row, number)
    return case.job, case.recipe


def _errors(outcomes: list[Outcome]) -> dict[str, Any]:
    weights = by_source_weights(outcomes)
    pairs = [(abs(one.error), weight) for one, weight in zip(outcomes, weights, strict=True)]
    covered = sum(weight for one, weight in zip(outcomes, weights, strict=True) if one.covered)
    width = weighted_quantile(
        [((one.high - one.low) / one.predicted, weight) for one, weight in zip(outcomes, weights, strict=True)], 0.5
    )
    return {
        "rows": len(outcomes),
        "median_abs_error_pct": _pct(weighted_quantile(pairs, 0.5)),
        "p90_abs_error_pct": _pct(weighted_quantile(pairs, 0.9)),
        "interval_covers_pct": _pct(covered / sum(weights)) if weights else None,
        "interval_width_pct": _pct(width),
    }


def _grouped(outcomes: list[Outcome], key: Callable[[Outcome], str]) -> dict[str, dict[str, Any]]:
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        groups[key(one)].append(one)
    return {
        name: {
            "rows": len(group),
            "median_abs_error_pct": _pct(_quantile(sorted(abs(one.error) for one in group), 0.5)),
            "p90_abs_error_pct": _pct(_quantile(sorted(abs(one.error) for one in group), 0.9)),
            "bias_pct": _pct(_quantile(sorted(one.error for one in group), 0.5)),
        }
        for name, group in sorted(groups.items())
    }


def _size(params_b: float) -> str:
    for limit, name in ((2, "below 2B"), (10, "2-10B"), (40, "10-40B")):
        if params_b < limit:
            return name
    return "above 40B"


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else math.nan


def _pct(value: float) -> float | None:
    return None if math.isnan(value) else round(100 * value, 2)


def _number(text: str | None) -> float:
    try:
        return float((text or "").replace(",", ""))
    except ValueError:
        return math.nan


if __name__ == "__main__":  # the command without the rest of the product
    import sys

    what = sys.argv[1] if len(sys.argv) > 1 else "memory"
    file = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    run = run_allocation if what == "allocation" else run_memory
    sys.stdout.write(json.dumps(run(file), indent=1) + "\n")
