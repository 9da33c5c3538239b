"""Predict published training speeds and score them: ``python -m evals.accuracy_throughput [--data F] [--rows OUT]``.

Behind ``advisor eval accuracy throughput``. A row is predicted from its configuration columns alone, in the metric and
unit it was measured in; the measured value is only compared with. ``--held-out`` scores the carried rows with
constants fitted on other groups, which is the figure to judge the model by.
"""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from evals.throughput_cases import Case, Unsupported, number, read_case, text_of
from tools.errors import InputProblem
from tools.throughput import Throughput, estimate_throughput
from tools.throughput.flops import token_flops, weights

DATA = Path(__file__).parent / "data" / "throughput_rows.csv"
COLUMNS = ("id", "measured", "predicted", "low", "high", "unit", "status")
CLEAR = 1.2  # a pair of cards counts when one is at least this much faster
Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row predicted."""

    id: str
    measured: float | None
    predicted: float | None
    low: float | None
    high: float | None
    unit: str
    status: str
    case: Case | None = None
    row: Row | None = None

    @property
    def scored(self) -> bool:
        """Whether the row could be predicted and has a measured value above 0 to compare with."""
        return self.status == "ok" and self.measured is not None and self.measured > 0

    @property
    def error(self) -> float:
        """Relative error of the prediction, signed. AssertionError for a row that is not scored."""
        assert self.predicted is not None
        assert self.measured is not None
        return self.predicted / self.measured - 1


def run_throughput(data: Path | None = None, rows: Path | None = None) -> dict[str, Any]:
    """Predict every row of ``data`` (default: the carried ones), write ``rows``, return the summary."""
    outcomes = [outcome(row) for row in read_rows(data or DATA)]
    if rows is not None:
        write_rows(outcomes, rows)
    return summary(outcomes)


def outcome(row: Row) -> Outcome:
    """One row predicted in its own metric; ``status`` says why where it cannot be."""
    name, metric = row.get("id") or "", (row.get("metric") or "").strip().lower()
    measured = number(row, "value")
    unit = UNITS.get(metric, "")
    try:
        if metric not in METRICS:
            raise Unsupported(f"metric {metric or 'missing'!r} is not a speed, utilisation, time or cost")
        case = read_case(row)
        speed = estimate_throughput(
            case.job, case.gpu, case.fabric, case.software, case.power_watts, case.kernels
        )  # fmt: skip
        predicted = METRICS[metric](row, case, speed)
        slow, fast = predicted * speed.low_factor, predicted * speed.high_factor
        return Outcome(name, measured, predicted, slow, fast, unit, "ok", case, row)
    except Unsupported as why:
        return Outcome(name, measured, None, None, None, unit, str(why), None, row)
    except (InputProblem, ArithmeticError, ValueError) as why:  # cells at odds with each other
        return Outcome(name, measured, None, None, None, unit, f"contradictory configuration: {why}", None, row)


def read_rows(path: Path) -> list[dict[str, str]]:
    """The file's rows in order; absent cells are "". Raises OSError for a file that cannot be read."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [{key: value or "" for key, value in row.items() if key} for row in csv.DictReader(file)]


def write_rows(outcomes: Sequence[Outcome], path: Path) -> None:
    """Write the comparison as CSV, one line a row, in order and in each row's own unit; folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for one in outcomes:
            numbers = ["" if value is None else f"{value:.6g}" for value in (one.predicted, one.low, one.high)]
            writer.writerow([one.id, "" if one.measured is None else one.measured, *numbers, one.unit, one.status])


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Errors with each source weighted equally, coverage of the interval, and tables by what matters."""
    scored = [one for one in outcomes if one.scored]
    refused: dict[str, int] = defaultdict(int)
    for one in outcomes:
        if one.status != "ok":
            refused[one.status] += 1
    right, pairs = faster_card(scored)
    return {
        "rows": len(outcomes),
        "scored": len(scored),
        "supported_percent": _percent(sum(one.status == "ok" for one in outcomes), len(outcomes)),
        **scores(scored),
        "faster_card_right_percent": _percent(right, pairs),
        "faster_card_pairs": pairs,
        "by_gpu": _table(scored, lambda one: one.case.gpu.id if one.case else ""),
        "by_precision": _table(scored, lambda one: one.case.job.precision if one.case else ""),
        "by_method": _table(scored, lambda one: one.case.job.method if one.case else ""),
        "by_scale": _table(scored, _scale),
        "by_software": _table(scored, lambda one: one.case.software if one.case else ""),
        "by_source": _table(scored, _source),
        "unsupported": dict(sorted(refused.items())),
    }


def scores(scored: Sequence[Outcome]) -> dict[str, float | None]:
    """Median and 90th percentile of the absolute error and the interval's coverage, percent, sources equal."""
    if not scored:
        return {"median_percent": None, "p90_percent": None, "coverage_percent": None}
    count: dict[str, int] = defaultdict(int)
    for one in scored:
        count[_source(one)] += 1
    weighed = [(abs(one.error), 1 / count[_source(one)]) for one in scored]
    inside = sum(
        1 / count[_source(one)] for one in scored if (one.low or 0) <= (one.measured or 0) <= (one.high or 0)
    )  # fmt: skip
    return {
        "median_percent": round(100 * weighted_quantile(weighed, 0.5), 1),
        "p90_percent": round(100 * weighted_quantile(weighed, 0.9), 1),
        "coverage_percent": round(100 * inside / len(count), 1),
    }


def weighted_quantile(pairs: Sequence[tuple[float, float]], share: float) -> float:
    """The smallest value at or below which ``share`` (0 to 1) of the weight lies, of (value, weight) pairs. Raises
    IndexError for no pairs.
    """
    ordered = sorted(pairs)
    total, reached = sum(weight for _value, weight in ordered), 0.0
    for value, weight in ordered:
        reached += weight
        if reached >= share * total * (1 - 1e-12):
            return value
    return ordered[-1][0]


def faster_card(scored: Sequence[Outcome]) -> tuple[int, int]:
    """(named rightly, pairs): the same job on two cards, where the measured speeds differ by more than 20 %."""
    groups: dict[tuple[Any, ...], list[Outcome]] = defaultdict(list)
    for one in scored:
        if one.case and one.unit.startswith("tokens/s"):
            job = one.case.job
            same = (_source(one), job.arch.id, job.method, job.seq_len, one.unit)
            groups[same].append(one)
    right = pairs = 0
    for members in groups.values():
        for first, second in combinations(members, 2):
            assert first.case is not None
            assert second.case is not None
            if first.case.gpu.id == second.case.gpu.id or not first.measured or not second.measured:
                continue
            if max(first.measured, second.measured) / min(first.measured, second.measured) < CLEAR:
                continue
            pairs += 1
            right += (first.measured > second.measured) == ((first.predicted or 0) > (second.predicted or 0))
    return right, pairs


def _per_gpu(row: Row, case: Case, speed: Throughput) -> float:
    return speed.tokens_per_second_per_gpu


def _total(row: Row, case: Case, speed: Throughput) -> float:
    return speed.tokens_per_second


def _tflops(row: Row, case: Case, speed: Throughput) -> float:
    return speed.tokens_per_second_per_gpu * counted_flops(row, case) / 1e12


def _mfu(row: Row, case: Case, speed: Throughput) -> float:
    return 100 * speed.tokens_per_second_per_gpu * counted_flops(row, case) / speed.peak_flops


def _hfu(row: Row, case: Case, speed: Throughput) -> float:
    return _mfu(row, case, speed) * (4 / 3 if case.job.checkpointing == "full" else 1.0)


def _hours(row: Row, case: Case, speed: Throughput) -> float:
    billions = number(row, "tokens_total_b")
    if not billions:
        raise Unsupported("a time needs the tokens trained on, and none are given")
    return billions * 1e9 / speed.tokens_per_second / 3600


def _step(row: Row, case: Case, speed: Throughput) -> float:
    if not number(row, "global_batch_tokens"):
        raise Unsupported("a step's time needs the global batch, and none is given")
    return speed.step_seconds


_RATE = re.compile(
    r"(?:\$|USD|US\$)?\s*(\d+(?:\.\d+)?)\s*(?:USD|\$|dollars?)?\s*(?:/|per\s+|an?\s+)\s*(GPU|card|A100|H100|node|machine|instance)?"
    r"[\s\-]*(?:h|hr|hour)\b",
    re.IGNORECASE,
)


def stated_price(row: Row) -> float | None:
    """USD per GPU-hour that a row states as a rate: in a price column, or in its notes as "$2.50 per GPU-hour"; a
    price of a machine is shared by its cards. Amounts without "per hour" are what was paid, and are not read.
    """
    for column in ("usd_per_gpu_hour", "price_per_gpu_hour", "price"):
        value = number(row, column)
        if value:
            return value
    text = row.get("notes") or ""
    found = next((match for match in _RATE.finditer(text) if "$" in match[0] or "usd" in match[0].lower()), None)
    if found is None:
        return None
    whole = (found[2] or "").lower() in ("node", "machine", "instance")
    cards = (number(row, "n_gpus") or 1) / (number(row, "n_nodes") or 1) if whole else 1.0
    return float(found[1]) / cards


def _usd(row: Row, case: Case, speed: Throughput) -> float:
    if not number(row, "tokens_total_b"):
        raise Unsupported("a cost needs the tokens trained on, and none are given")
    price = stated_price(row)
    if price is None:
        raise Unsupported("a cost needs the price of a GPU-hour that was paid, and the row states none")
    return _hours(row, case, speed) * case.job.n_gpus * price


METRICS: dict[str, Callable[[Row, Case, Throughput], float]] = {
    "tokens_per_s_per_gpu": _per_gpu,
    "tokens_per_s": _total,
    "tflops_per_gpu": _tflops,
    "mfu": _mfu,
    "hfu": _hfu,
    "wall_hours": _hours,
    "gpu_hours": lambda row, case, speed: _hours(row, case, speed) * case.job.n_gpus,
    "step_seconds": _step,
    "seconds_per_step": _step,
    "step_time_s": _step,
    "cost_usd": _usd,
    "minutes_to_train": lambda row, case, speed: _hours(row, case, speed) * 60,
}
UNITS = {
    "tokens_per_s_per_gpu": "tokens/s/GPU", "tokens_per_s": "tokens/s", "tflops_per_gpu": "TFLOPS", "mfu": "%",
    "hfu": "%", "wall_hours": "h", "gpu_hours": "h", "minutes_to_train": "min",
    "step_seconds": "s", "seconds_per_step": "s", "step_time_s": "s", "cost_usd": "USD",
}  # fmt: skip


def counted_flops(row: Row, case: Case) -> float:
    """FLOPs per token as the framework that published the figure counts them.

    Megatron-DeepSpeed's logs count 8 a parameter with recomputation, else 6 (bigscience's tables); Megatron-LM's 2021
    paper counts recomputation and attention without the causal half; everyone else 6 a parameter, 4 under LoRA, and
    attention without the causal half (PaLM, appendix B).
    """
    job = case.job
    params = float(job.arch.active_params)
    framework = text_of(row, "framework").lower()
    full = job.checkpointing == "full"
    if "megatron-deepspeed" in framework:
        return (8.0 if full else 6.0) * params
    part = weights(job.arch)
    forward_core = 4.0 * part.attention_width * job.seq_len
    per_param = 4.0 if job.is_adapter else 6.0
    counted = per_param * params + 3.0 * forward_core
    year = number(row, "year")
    if full and "megatron-lm" in framework and year is not None and year <= 2021:
        return counted * 4.0 / 3.0
    return counted if params else token_flops(job).model


def _table(scored: Sequence[Outcome], key: Callable[[Outcome], str]) -> dict[str, dict[str, float | int]]:
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for one in scored:
        groups[key(one)].append(one)
    found: dict[str, dict[str, float | int]] = {}
    for name, members in sorted(groups.items()):
        sizes = [(abs(one.error), 1.0) for one in members]
        bias = math.exp(sum(math.log1p(one.error) for one in members) / len(members)) - 1
        found[name] = {
            "rows": len(members),
            "median_percent": round(100 * weighted_quantile(sizes, 0.5), 1),
            "p90_percent": round(100 * weighted_quantile(sizes, 0.9), 1),
            "bias_percent": round(100 * bias, 1),
        }
    return found


def _scale(one: Outcome) -> str:
    count = one.case.job.n_gpus if one.case else 0
    for limit, name in ((1, "1"), (8, "2-8"), (64, "9-64"), (1024, "65-1024")):
        if count <= limit:
            return name
    return "above 1024"


def _source(one: Outcome) -> str:
    """A source is the id's first part, else the publication."""
    prefix = one.id.split("-")[0]
    return prefix if prefix and not prefix.isdigit() else ((one.row or {}).get("source_repo_or_paper") or "?")


def _percent(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 1) if whole else None


def held_out_summary() -> dict[str, Any]:
    """The carried rows with constants fitted on other split groups, in tokens/s a GPU."""
    return summary(held_out_outcomes())


def held_out_outcomes(seed: int = 0, by_source: bool = False) -> list[Outcome]:
    """Every carried row predicted by constants fitted without its group, or without its whole source."""
    from evals.calibrate_throughput import FOLDS, fitted, held_out, rows  # the fit's arrays are needed only here
    from tools.throughput.efficiency import interval_factor

    data = rows()
    laid, _theta = fitted(again=True)
    groups = data.sources if by_source else data.groups
    errors = held_out(laid, groups, seed, len(set(groups)) if by_source else FOLDS)
    found = []
    for name, case, measured, error in zip(data.ids, data.cases, data.measured, errors, strict=True):
        predicted = measured * math.exp(float(error))
        width = interval_factor(case.gpu, case.job, case.software, case.fabric)
        found.append(
            Outcome(name, measured, predicted, predicted / width, predicted * width, "tokens/s/GPU", "ok", case)
        )
    return found


def main(arguments: list[str]) -> int:
    """The command line: prints the summary as JSON and returns 0; arguments that it does not know are passed over."""
    given = dict(zip(arguments[::2], arguments[1::2], strict=False))
    if "--held-out" in arguments:
        found = held_out_summary()
    else:
        data, rows = given.get("--data"), given.get("--rows")
        found = run_throughput(Path(data) if data else None, Path(rows) if rows else None)
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
