"""Fit the link constants on published collective measurements: ``python -m evals.calibrate_network``.

Prints the constants to copy into ``tools/network/constants.py`` and the error by series, with each series also
predicted by constants fitted without it. Small messages (< 1 MiB) and problem reports are shown but not fitted.
"""

from __future__ import annotations

import csv
import math
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from tools.network import constants as fit
from tools.network.collectives import Op, bus_bandwidth
from tools.network.fabric import Fabric

DATA = Path(__file__).parent / "data" / "network_collectives.csv"
Row = dict[str, str]
# Start values; each is free within a factor e of it, pulled to it where data is thin.
START = {
    "INTRA/nvswitch": 0.79, "INTRA/nvlink-bridge": 0.42, "INTRA/xgmi": 0.72, "INTRA/pcie": 0.55, "IN_SWITCH": 1.0,
    "INTER/efa": 0.95, "LAUNCH_SECONDS": 20e-6, "INTRA_HOP_SECONDS": 1.7e-6,
    "INTER_HOP_SECONDS/efa": 45e-6, "PIPELINE": 1.2,
}  # fmt: skip


def rows() -> list[Row]:
    """The carried measurements, cells as text, rates in GB/s of 1e9 bytes, in file order."""
    with DATA.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def predicted(row: Row) -> float:
    """Bus bandwidth of a row's configuration by the current constants, bytes/s."""
    n, nodes = int(row["n_gpus"]), int(row["n_nodes"])
    fabric = Fabric(
        gpus_per_node=n // nodes,
        intra_kind=row["intra_kind"],  # type: ignore[arg-type]
        intra_bytes_per_s=float(row["intra_gb_s"]) * 1e9,
        inter_kind=row["inter_kind"],  # type: ignore[arg-type]
        inter_bytes_per_s=float(row["inter_gb_s_per_gpu"]) * 1e9,
    )
    op: Op = row["op"]  # type: ignore[assignment]
    return bus_bandwidth(op, float(row["message_bytes"]), n, n // nodes, fabric)


def series(row: Row) -> str:
    """The name of the sweep that a row belongs to: operation, card, count, links and whether it is fitted."""
    return f"{row['op']} {row['gpu']} x{row['n_gpus']} on {row['intra_kind']}/{row['inter_kind']} {row['use']}"


def put(constants: dict[str, float]) -> None:
    """Set these constants of ``tools/network/constants.py`` for this process, "NAME" or "NAME/key"; nothing sets them
    back.
    """
    for key, value in constants.items():
        name, _, part = key.partition("/")
        if part:
            getattr(fit, name)[part] = value
        else:
            setattr(fit, name, value)


def fitted(sample: list[Row]) -> dict[str, float]:
    """Constants that minimise the squared log error of bus bandwidth, each series counted once and each constant pulled
    to its start; leaves the last ones tried in place.
    """
    count: dict[str, int] = defaultdict(int)
    for row in sample:
        count[series(row)] += 1

    def residuals(logs: Any) -> Any:
        put({key: START[key] * math.exp(shift) for key, shift in zip(START, logs, strict=True)})
        errors = [
            math.log(predicted(row) / (float(row["busbw_gb_s"]) * 1e9)) / math.sqrt(count[series(row)])
            for row in sample
        ]
        return np.array([*errors, *(0.05 * np.asarray(logs))])

    found = least_squares(residuals, np.zeros(len(START)), loss="soft_l1", f_scale=0.1)
    return {key: START[key] * math.exp(shift) for key, shift in zip(START, found.x, strict=True)}


def main() -> None:
    """Fit, print, and show the error of every series within and left out of the fit."""
    every = rows()
    sample = [row for row in every if row["use"] == "fit"]
    constants = fitted(sample)
    left_out: dict[str, list[float]] = defaultdict(list)
    for name in sorted({series(row) for row in sample}):
        put(fitted([row for row in sample if series(row) != name]))
        for row in sample:
            if series(row) == name:
                left_out[name].append(predicted(row) / (float(row["busbw_gb_s"]) * 1e9))
    put(constants)
    for key, value in constants.items():
        sys.stdout.write(f"{key} = {value:.3g}\n")
    within: dict[str, list[float]] = defaultdict(list)
    for row in every:
        within[series(row)].append(predicted(row) / (float(row["busbw_gb_s"]) * 1e9))
    for name, ratios in within.items():
        other = f", left out {statistics.median(left_out[name]):.2f}" if name in left_out else ""
        spread = f"{min(ratios):.2f}-{max(ratios):.2f}"
        sys.stdout.write(f"{name}: {len(ratios)} rows, ratio {statistics.median(ratios):.2f} ({spread}){other}\n")
    errors = sorted(abs(predicted(row) / (float(row["busbw_gb_s"]) * 1e9) - 1) for row in sample)
    sys.stdout.write(
        f"error of fitted rows: median {errors[len(errors) // 2]:.0%}, p90 {errors[int(0.9 * len(errors))]:.0%}\n"
    )
    held = sorted(abs(ratio - 1) for ratios in left_out.values() for ratio in ratios)
    sys.stdout.write(
        f"error of left-out rows: median {held[len(held) // 2]:.0%}, p90 {held[int(0.9 * len(held))]:.0%}\n"
    )


if __name__ == "__main__":
    main()
