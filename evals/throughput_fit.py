"""The calibration's arithmetic: many measured rows as arrays through the product's own formula, and its least squares.

Each table entry is a factor fitted in the logarithm and pulled towards a prior: what a matrix-multiply benchmark or a
paper says the physical quantity is, as loosely as it is known. Entries that few rows speak of therefore stay near it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from evals.throughput_cases import Case
from tools.network.model import communication
from tools.throughput.efficiency import AXES, Coefficients, compute_bits, keys, peak_flops, under_power
from tools.throughput.flops import TokenFlops
from tools.throughput.model import Parts, busy, combine
from tools.throughput.terms import Terms, work

Array = NDArray[np.float64]
NOISE = 0.20  # log error of a sound measurement against any model this simple: sources differ by 8 %, runs by 8 %

# Prior (value, loose factor as a standard deviation of its logarithm) of each table's entries.
# Matrix products inside a step: 60 % of peak at 16 bits, 50 % at 8, 42 % at 4 (published achieved matmul ceilings are
# 50-87 %, and a step holds more than its best shape).
MATMUL = {16: (0.60, 0.30), 8: (0.50, 0.30), 4: (0.42, 0.35), 32: (0.50, 0.30)}
# Best shapes of matrix products alone, measured: A100 87 % of peak, H100 80 (FP8 71), B200 78 (FP8 76), GB200 73,
# MI300X 51 (stas00/ml-engineering, MAMF tables). Inside a step, with every shape there is, about 0.85 of that.
MATMUL_OF = {
    "ampere_dc/16": (0.74, 0.10), "hopper/16": (0.68, 0.10), "hopper/8": (0.60, 0.07), "blackwell_dc/16": (0.64, 0.10),
    "blackwell_dc/8": (0.62, 0.10), "blackwell_ultra/16": (0.64, 0.15), "blackwell_ultra/8": (0.62, 0.15),
    "cdna/16": (0.43, 0.15),
}  # fmt: skip
# Sustained TFLOP/s a watt: from measured large matmuls, A100 271 at 400 W, A6000 95 at 300 W, H100 795 at 700 W.
POWER = {"ampere_dc": 1.5, "ampere_rtx": 0.5, "ada": 0.9, "hopper": 2.5, "blackwell_dc": 4.0, "volta": 0.8}
PRIORS: dict[str, tuple[float, float]] = {
    "stack": (1.0, 0.12), "attention": (0.40, 0.40), "expert": (0.60, 0.30), "power": (1.0, 0.25),
    "software/tuned": (1.0, 1e-6), "software/benchmark": (0.95, 0.15), "software/user": (0.85, 0.15),
    "kernels/current": (1.0, 0.20), "kernels/first": (0.70, 0.20), "exposed/tuned": (0.70, 0.35),
    "exposed/other": (1.0, 0.35), "scalar/memory": (0.70, 0.30), "scalar/dequant": (0.50, 0.40),
    "scalar/narrow": (0.80, 0.25), "scalar/hybrid": (0.70, 0.30), "scalar/bubble": (0.40, 0.40),
    "scalar/host": (0.70, 0.40), "scalar/fill_tokens": (1.0, 0.50), "scalar/fill_width": (1.0, 0.50),
    "scalar/fill_expert_tokens": (0.30, 0.70), "scalar/fill_expert_width": (1.0, 0.50),
}  # fmt: skip


@dataclass(slots=True)
class Problem:
    """Measured rows ready to be fitted; everything an array with one entry a row."""

    terms: Terms
    names: list[str]
    prior: Array
    loose: Array
    index: dict[str, NDArray[np.intp]]
    exposed_index: list[NDArray[np.intp]]
    exposed: list[Array]
    peak: Array
    half: Array
    bits: Array
    watts: Array
    bandwidth: Array
    measured: Array
    weight: Array
    cases: Sequence[Case]

    def take(self, rows: NDArray[np.bool_]) -> Problem:
        """The same parameters over the rows where ``rows`` (n booleans) is true; arrays are copied."""
        return Problem(
            _take(self.terms, rows), self.names, self.prior, self.loose,
            {name: index[rows] for name, index in self.index.items()}, [index[rows] for index in self.exposed_index],
            [axis[rows] for axis in self.exposed], self.peak[rows], self.half[rows], self.bits[rows],
            self.watts[rows],
            self.bandwidth[rows], self.measured[rows], self.weight[rows],
            [case for case, kept in zip(self.cases, rows, strict=True) if kept],
        )  # fmt: skip


def problem(cases: Sequence[Case], measured: Sequence[float], sources: Sequence[str]) -> Problem:
    """Lay the rows out. A source's rows share weight: each counts 1 / sqrt(rows of its source)."""
    registry: dict[str, int] = {"one": 0}
    names, prior, loose = ["one"], [0.0], [1e-6]

    def entry(table: str, key: str | None) -> int:
        if key is None:
            return 0
        name = f"{table}/{key}"
        if name not in registry:
            registry[name] = len(names)
            names.append(name)
            value, width = _prior(table, key)
            prior.append(math.log(value))
            loose.append(width)
        return registry[name]

    index: dict[str, list[int]] = {}
    exposed_index: list[list[int]] = [[] for _axis in AXES]
    bits = [compute_bits(c.job.precision, c.gpu, c.job.method != "qlora") for c in cases]
    for case, width in zip(cases, bits, strict=True):
        used = keys(case.gpu, case.job, width, case.software, case.pcie, case.kernels, fitted=False)
        row = {
            "matmul": entry("matmul", used.matmul), "half": entry("matmul", used.half),
            "stack": entry("stack", used.stack), "attention": entry("attention", used.attention),
            "kernels": entry("kernels", used.kernels), "narrow": entry("scalar", used.narrow),
            "expert": entry("expert", used.expert),
            "power": entry("power", used.power if used.power in POWER else None),
            "software": entry("software", used.software),
        }  # fmt: skip
        for name in _SCALARS:
            row[name] = entry("scalar", name)
        for name, value in row.items():
            index.setdefault(name, []).append(value)
        for axis, key in enumerate(used.exposed):
            exposed_index[axis].append(entry("exposed", key))
    count = Counter(sources)
    weight = np.array([count[source] ** -0.5 for source in sources])
    return Problem(
        terms=_stack([work(case.job, case.gpu) for case in cases]),
        names=names,
        prior=np.array(prior),
        loose=np.array(loose),
        index={name: np.array(values) for name, values in index.items()},
        exposed_index=[np.array(values) for values in exposed_index],
        exposed=[np.zeros(len(cases)) for _axis in AXES],
        peak=np.array([peak_flops(case.gpu, width) for case, width in zip(cases, bits, strict=True)]),
        half=np.array([peak_flops(case.gpu, 16) for case in cases]),
        bits=np.array(bits, dtype=float),
        watts=np.array([min(case.power_watts or 1e9, case.gpu.tdp_watts or 1e9) for case in cases]),
        bandwidth=np.array([case.gpu.bandwidth_bytes_per_s for case in cases]),
        measured=np.array(measured),
        weight=weight / weight.mean(),
        cases=cases,
    )


_SCALARS = (
    "memory", "dequant", "hybrid", "bubble", "host", "fill_tokens", "fill_width", "fill_expert_tokens",
    "fill_expert_width",
)  # fmt: skip


def solve(rows: Problem, start: Array | None = None) -> Array:
    """The logarithms of the table entries that fit best, shape (entries,): robust least squares (soft L1) on log
    speeds, with the priors as further rows.
    """
    target = np.log(rows.measured)
    root = np.sqrt(rows.weight)

    def residual(theta: Array) -> Array:
        error = root * (np.log(speed(rows, theta)) - target) / NOISE
        return np.concatenate([error, (theta - rows.prior) / rows.loose])

    found = least_squares(residual, rows.prior if start is None else start, loss="soft_l1", max_nfev=40)
    return np.asarray(found.x)


def settle(rows: Problem, rounds: int = 3, start: Array | None = None) -> Array:
    """Fit ``rounds`` times, with communication exposed anew under each round's compute time; the logarithms, shape
    (entries,).
    """
    theta = rows.prior if start is None else start
    for _round in range(rounds):
        expose(rows, theta)
        theta = solve(rows, theta)
    return theta


def entries(names: Sequence[str], held: Mapping[str, Mapping[str, float]]) -> Array:
    """The logarithms of tables that are held already, shape (names,). Raises KeyError for an entry that they lack."""
    found = []
    for name in names:
        table, _, key = name.partition("/")
        found.append(0.0 if name == "one" else math.log(held[table][key]))
    return np.array(found)


def expose(rows: Problem, theta: Array) -> None:
    """Work out, in place, the seconds per token and axis of communication that the present compute time
    leaves exposed.
    """
    compute = np.asarray(busy(rows.terms, _rates(rows, theta)).compute)
    for row, (case, seconds) in enumerate(zip(rows.cases, compute, strict=True)):
        tokens = case.job.tokens_per_step / case.job.n_gpus
        shown = {}
        if case.job.n_gpus > 1:
            shown = communication(case.job, case.gpu, case.fabric, float(seconds) * tokens).by_axis
        for axis, name in enumerate(AXES):
            rows.exposed[axis][row] = shown.get(name, 0.0) / tokens


def speed(rows: Problem, theta: Array) -> Array:
    """Tokens per second and GPU of every row, shape (rows,); ``theta`` are the logarithms of the table entries."""
    return 1.0 / np.asarray(parts(rows, theta).total)


def parts(rows: Problem, theta: Array) -> Parts:
    """Seconds per token of every row by cause, each of shape (rows,), by the product's own formula."""
    return combine(rows.terms, _rates(rows, theta), cast(Any, rows.exposed))


def tables(names: Sequence[str], theta: Array) -> dict[str, dict[str, float]]:
    """The entries as nested tables of plain numbers, three digits."""
    found: dict[str, dict[str, float]] = {}
    for name, value in zip(names, np.exp(theta), strict=True):
        if name != "one":
            table, _, key = name.partition("/")
            found.setdefault(table, {})[key] = float(f"{value:.3g}")
    return found


def _rates(rows: Problem, theta: Array) -> Coefficients:
    value = np.exp(theta)

    def of(name: str) -> Any:  # arrays take the place of the formula's floats
        return value[rows.index[name]]

    ceiling: Any = np.where(rows.index["power"] > 0, of("power") * rows.watts * 1e12, 1e30)
    peak: Any = under_power(cast(Any, rows.peak), ceiling * 16.0 / rows.bits)
    half: Any = under_power(cast(Any, rows.half), ceiling)
    return Coefficients(
        matmul_flops=peak * of("matmul"),
        half_flops=half * of("half"),
        attention_flops=half * of("attention") * of("kernels") * of("narrow"),
        expert=of("expert"),
        hybrid=of("hybrid"),
        memory_bytes_per_s=rows.bandwidth * of("memory"),
        dequant_bytes_per_s=rows.bandwidth * of("dequant"),
        software=of("software") * of("stack"),
        ridge=cast(Any, rows.peak / rows.bandwidth),
        half_ridge=cast(Any, rows.half / rows.bandwidth),
        fill_tokens=of("fill_tokens"),
        fill_width=of("fill_width"),
        fill_expert_tokens=of("fill_expert_tokens"),
        fill_expert_width=of("fill_expert_width"),
        bubble=of("bubble"),
        host=of("host"),
        exposed=tuple(cast(Any, value[index]) for index in rows.exposed_index),
    )


def _prior(table: str, key: str) -> tuple[float, float]:
    if table == "matmul":
        return MATMUL_OF.get(key) or MATMUL[int(key.rsplit("/", 1)[1])]
    if table == "power":
        return POWER[key], PRIORS["power"][1]
    if table == "exposed":
        return PRIORS[f"exposed/{key.split('/')[1]}"]
    if table == "kernels":
        return PRIORS[f"kernels/{key.split('/')[0]}"]
    return PRIORS.get(f"{table}/{key}") or PRIORS[table]


def _stack(items: Sequence[Terms]) -> Terms:
    parts_of: list[Any] = [np.array([getattr(item.flops, part.name) for item in items]) for part in fields(TokenFlops)]
    rest: dict[str, Any] = {
        part.name: np.array([getattr(item, part.name) for item in items], dtype=float)
        for part in fields(Terms)
        if part.name != "flops"
    }
    return Terms(flops=TokenFlops(*parts_of), **rest)


def _take(terms: Terms, rows: NDArray[np.bool_]) -> Terms:
    flops = TokenFlops(*(getattr(terms.flops, part.name)[rows] for part in fields(TokenFlops)))
    rest = {part.name: getattr(terms, part.name)[rows] for part in fields(Terms) if part.name != "flops"}
    return Terms(flops=flops, **rest)
