"""Calibrate the throughput model: ``python -m evals.calibrate_throughput [--write]``.

Fits the constants of ``tools/throughput/constants.py`` on every carried row, cross-validates by split group to set
the intervals, prints both, and with ``--write`` writes the module. A test holds the module equal to this output.
"""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evals.throughput_cases import Case, read_case
from evals.throughput_fit import Array, Problem, entries, problem, settle, solve, speed, tables
from tools.throughput import constants
from tools.throughput.efficiency import over_pcie
from tools.throughput.flops import sparse

DATA = Path(__file__).parent / "data" / "throughput_rows.csv"
MODULE = Path(__file__).parent.parent / "tools" / "throughput" / "constants.py"
FOLDS = 10
COVERAGE = 0.90
_HEAD = '''"""Achieved fractions of nominal rates, calibrated on published measurements; written by a script.

``python -m evals.calibrate_throughput --write`` fits them (evals/data/throughput_rows.csv) and writes this file.
"""

from __future__ import annotations
'''
_WORDS = {
    "MATMUL": "Fraction of the dense peak (under the power limit) of large matrix products, by chip and bits.",
    "STACK": "Speed of a chip, precision and class of software beside what its parts say.",
    "ATTENTION": "Fraction of the 16-bit peak that fused attention reaches.",
    "KERNELS": "The same by generation of the fused kernels and class of software.",
    "EXPERT": "Routed experts' products against dense ones of the same shape.",
    "POWER": "Sustained TFLOP/s a watt of the power limit, 16 bit.",
    "SOFTWARE": "Speed against a tuned vendor recipe, everything else equal.",
    "EXPOSED": "Share of the communication left exposed by a plain schedule that this class of software really shows.",
    "SCALARS": "memory, dequant: fractions of memory bandwidth; narrow: attention with heads of 64 or less; hybrid:\n"
    "# state-space mixers against products; bubble: of a plain 1F1B pipeline; host: of the host link; fill_*: how\n"
    "# much of the ridge a product's short sides cost.",
    "INTERVAL": "90 % interval, a factor either way, from rows predicted without their group.",
}
_NAMES = {
    "matmul": "MATMUL", "stack": "STACK", "attention": "ATTENTION", "kernels": "KERNELS", "expert": "EXPERT",
    "power": "POWER", "software": "SOFTWARE", "exposed": "EXPOSED", "scalar": "SCALARS", "interval": "INTERVAL",
}  # fmt: skip
_ORDER = ("matmul", "stack", "attention", "kernels", "expert", "power", "software", "exposed", "scalar")


@dataclass(frozen=True, slots=True)
class Rows:
    """The carried measurements."""

    ids: list[str]
    cases: list[Case]
    measured: list[float]
    sources: list[str]
    groups: list[str]


@lru_cache(maxsize=1)
def rows() -> Rows:
    """Every carried row with its case; a source is the id's first part."""
    with DATA.open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    return Rows(
        ids=[row["id"] for row in found],
        cases=[read_case(row) for row in found],
        measured=[float(row["tokens_per_s_per_gpu"]) for row in found],
        sources=[row["id"].split("-")[0] for row in found],
        groups=[row["split_group"] for row in found],
    )


def fitted(again: bool = False) -> tuple[Problem, Array]:
    """All rows and the entries that fit them; ``again`` starts from the constants in use, which are where it ends."""
    data = rows()
    laid = problem(data.cases, data.measured, data.sources)
    if again:
        return laid, settle(laid, 1, entries(laid.names, held()))
    return laid, settle(laid)


def held() -> dict[str, dict[str, float]]:
    """The tables in use, of ``tools/throughput/constants.py``, by their names here; not copies."""
    return {name: getattr(constants, _NAMES[name]) for name in _ORDER}


def held_out(laid: Problem, groups: list[str], seed: int = 0, folds: int = FOLDS) -> Array:
    """Log error (predicted over measured) of every row, predicted by constants fitted without the fold that its group
    fell into; the seed decides the folds. Shape: the rows.
    """
    names = np.array(groups)
    order = np.unique(names)
    np.random.default_rng(seed).shuffle(order)
    error = np.zeros(len(names))
    for fold in range(folds):
        out: NDArray[np.bool_] = np.isin(names, order[fold::folds])
        theta = solve(laid.take(~out))
        error[out] = np.log(speed(laid.take(out), theta) / laid.measured[out])
    return error


def intervals(error: Array, strange: Array, data: Rows) -> dict[str, float]:
    """The factor either way that holds 90 % of held-out rows of a class, each source weighted equally.

    ``error`` is of rows predicted without their group, ``strange`` without their whole source.
    """
    count = {source: data.sources.count(source) for source in set(data.sources)}
    weight = np.array([1 / count[source] for source in data.sources])
    software = np.array([case.software for case in data.cases])
    adapter = np.array([case.job.is_adapter for case in data.cases])
    hosted = np.array([over_pcie(case.job, case.fabric) for case in data.cases])
    moe = np.array([sparse(case.job.arch) for case in data.cases])
    found = {}
    for name in ("tuned", "benchmark", "user"):
        found[name] = _width(error, weight, (software == name) & ~moe & ~adapter & ~hosted)
        own = _width(error, weight, (software == name) & adapter & ~moe & ~hosted)
        found[f"{name}/adapter"] = max(found[name], own)
    found["user"] = max(found["user"], found["benchmark"])
    # One source speaks for ordinary stacks, so it is predicted without itself: a stranger's stack is what is asked for.
    stranger = _width(strange, weight, (software == "user") & ~moe & ~hosted)
    found["user/adapter"] = max(found["user/adapter"], stranger)
    found["pcie"] = max(found["user"], _width(error, weight, hosted))
    found["moe"] = _width(error, weight, moe)
    found["unknown_chip"] = 2.0  # no row to tell: a new chip's first published recipes lay within this of the old one's
    return {name: float(f"{value:.3g}") for name, value in found.items()}


def _width(error: Array, weight: Array, chosen: NDArray[np.bool_]) -> float:
    if not chosen.any():
        return 1.0
    size, share = np.abs(error[chosen]), weight[chosen]
    order = np.argsort(size)
    reached = np.cumsum(share[order]) / share.sum()
    return float(np.exp(size[order][min(int(np.searchsorted(reached, COVERAGE)), len(order) - 1)]))


def general(found: dict[str, dict[str, float]]) -> None:
    """Entries for chips without rows of their own: the middle of the others', and careful at 8 and 4 bits."""
    matmul = found["matmul"]
    for bits in (16, 8, 4):
        same = [value for key, value in matmul.items() if key.endswith(f"/{bits}")]
        matmul[f"other/{bits}"] = float(f"{0.8 * np.median(same):.3g}")
    matmul["other/32"] = matmul["other/16"]
    for table in ("attention", "expert"):
        found[table]["other"] = float(f"{np.median(list(found[table].values())):.3g}")


def module_text(found: dict[str, dict[str, float]], width: dict[str, float]) -> str:
    """The constants, ``found``, and the intervals, ``width``, as the source of ``tools/throughput/constants.py``."""
    text = _HEAD
    for name in (*_ORDER, "interval"):
        table = width if name == "interval" else found[name]
        text += f"\n# {_WORDS[_NAMES[name]]}\n{_NAMES[name]}: dict[str, float] = {{\n"
        text += "".join(f'    "{key}": {value!r},\n' for key, value in sorted(table.items()))
        text += "}\n"
    return text


def main() -> int:
    """Fit, print the module and its held-out errors, with --write also write it; returns 0."""
    data = rows()
    laid, theta = fitted()
    found = tables(laid.names, theta)
    general(found)
    error = held_out(laid, data.groups)
    strange = held_out(laid, data.sources, folds=len(set(data.sources)))
    text = module_text(found, intervals(error, strange, data))
    sys.stdout.write(text)
    size = np.abs(np.expm1(error))
    sys.stdout.write(f"# without the row's source: median {np.median(np.abs(np.expm1(strange))):.3f}\n")
    sys.stdout.write(f"# {len(size)} rows held out: median {np.median(size):.3f}, p90 {np.quantile(size, 0.9):.3f}\n")
    if "--write" in sys.argv[1:]:
        MODULE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
