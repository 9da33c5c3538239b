"""Fit what hides and what waits on published scaling runs: ``python -m evals.calibrate_scaling``.

Six constants of ``tools/network/constants.py``, each pulled to a prior as loosely as it is known; every series counts
once, and runs that lose more than 15 % twice, since flat ones tell little. Each source is also predicted by constants
fitted without it.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from evals.accuracy_scaling import LOSING, Row, Scaled, evaluate, rows, summary
from tools.network import constants as fit

# Prior and its looseness as a standard deviation of the logarithm. Overlap and contention: profiles of FSDP and DDP
# show most but not all of a pass hidden and a few per cent of compute lost to copy kernels; stragglers: 1-2 % a
# doubling in reports of large runs; pipelined tensor-parallel kernels hide about half (Megatron's and torchtitan's).
PRIORS = {
    "OVERLAP": (0.85, 0.15), "CONTENTION": (0.05, 0.7), "STRAGGLER_PER_DOUBLING": (0.012, 0.5),
    "TENSOR_OVERLAP": (0.6, 0.25), "CONTEXT_OVERLAP": (0.2, 0.7), "STEP_SECONDS": (0.010, 0.7),
}  # fmt: skip
NOISE = 0.05  # log error of an efficiency that the model cannot explain


def predicted(sample: list[Row], logs: Any) -> list[Scaled]:
    """Every run of ``sample`` beyond the smallest of its series, under the priors times exp(``logs``); overlaps are
    capped at 1. Leaves those constants set in this process.
    """
    for (name, (prior, _loose)), shift in zip(PRIORS.items(), logs, strict=True):
        value = prior * math.exp(float(shift))
        setattr(fit, name, min(value, 1.0) if "OVERLAP" in name else value)
    return evaluate([dict(row) for row in sample])


def fitted(sample: list[Row]) -> Any:
    """Shifts that minimise the weighted log error of efficiencies and stay near the priors."""

    def residuals(logs: Any) -> Any:
        found = predicted(sample, logs)
        count = Counter(each.row["series"] for each in found)
        errors = [
            math.log(each.predicted / each.measured)
            / NOISE
            * (2 if each.measured < LOSING else 1)
            / math.sqrt(count[each.row["series"]])
            for each in found
        ]
        pulls = [shift / loose for shift, (_prior, loose) in zip(logs, PRIORS.values(), strict=True)]
        return np.array([*errors, *pulls])

    return least_squares(residuals, np.zeros(len(PRIORS)), loss="soft_l1", diff_step=0.05).x


def main() -> None:
    """Fit, print constants and errors within the fit and left out of it."""
    every = rows()
    held: list[Scaled] = []
    for source in sorted({row["series"].partition("-")[0] for row in every}):
        rest = [row for row in every if not row["series"].startswith(source + "-")]
        held += predicted([row for row in every if row["series"].startswith(source + "-")], fitted(rest))
    best = fitted(every)
    within = predicted(every, best)
    for name in PRIORS:
        sys.stdout.write(f"{name} = {getattr(fit, name):.3g}\n")
    for title, found in (("within the fit", within), ("source left out", held)):
        figures = ", ".join(f"{key} {value:.3g}" for key, value in summary(found).items())
        sys.stdout.write(f"{title}: {figures}\n")


if __name__ == "__main__":
    main()
