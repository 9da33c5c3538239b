"""Failures and checkpoints: how often to save, and how much longer a run takes because machines break.

With M the mean time between interruptions of the whole job, δ the stall of one save and R the time to restart:

- best interval τ = sqrt(2·δ·M) (Young 1974, CACM 17(9)), here with Daly's correction for δ not far below M
  (Daly 2006, Future Generation Computer Systems 22, equation 37);
- expected wall time of T useful hours = M·e^(R/M)·(e^((τ+δ)/M) - 1)·T/τ (Daly 2006, equation 20), which holds for
  interruptions at any rate, unlike the first-order δ/τ + τ/2M.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# 419 unexpected interruptions in 54 days on 16,384 H100 (Llama 3 paper, arXiv:2407.21783, section 3.3.4).
GPU_HOURS_BETWEEN_FAILURES = 16384 * 54 * 24 / 419
RESTART_HOURS = 0.25  # boot 3-5 min, image and dataset, weights to the cards, warm-up of the data loader and compiler


@dataclass(frozen=True, slots=True)
class Interruptions:
    """How a run's useful hours stretch."""

    mean_hours_between: float  # of the whole job
    save_stall_hours: float
    restart_hours: float
    interval_hours: float
    expected: float  # interruptions in the whole run
    stretch: float  # wall hours over useful hours
    lost_hours: float  # work done twice and restarts
    stall_hours: float  # waiting for saves


def best_interval(stall: float, mean_between: float) -> float:
    """Hours of work between saves that waste least, from hours of one save's stall and between interruptions (Young
    1974; Daly 2006, equation 37). Infinite where nothing fails; a hundredth of the mean for saves that cost nothing.
    """
    if stall <= 0:
        return mean_between / 100 if math.isfinite(mean_between) else math.inf
    if not math.isfinite(mean_between):
        return math.inf
    if stall >= 2 * mean_between:
        return mean_between
    ratio = stall / (2 * mean_between)
    return math.sqrt(2 * stall * mean_between) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - stall


def expected_stretch(mean_between: float, stall: float, restart: float, interval: float) -> float:
    """Wall time over useful time, at least 1, when saving every ``interval`` hours of work; all arguments in hours
    (Daly 2006, equation 20). The mean may be infinite; exponents are capped, so that it never overflows.
    """
    if not math.isfinite(mean_between):
        return 1.0 + (stall / interval if math.isfinite(interval) and interval > 0 else 0.0)
    exponent = min((interval + stall) / mean_between, 500.0)
    return mean_between * math.exp(min(restart / mean_between, 500.0)) * math.expm1(exponent) / interval


def interruptions(
    useful_hours: float,
    mean_between: float,
    stall: float,
    restart: float = RESTART_HOURS,
    interval: float | None = None,
) -> Interruptions:
    """The expected course of a run of ``useful_hours``, saving at the best interval unless told one; all arguments in
    hours, ``mean_between`` of the whole job and infinite where nothing fails. A run saves at least once, at its end.
    """
    chosen = interval if interval is not None else best_interval(stall, mean_between)
    # A run that ends before its first save is due still writes its result once.
    chosen = max(min(chosen, useful_hours), 1e-6)
    stretch = expected_stretch(mean_between, stall, restart, chosen)
    wall = useful_hours * stretch
    stalls = stall * useful_hours / chosen
    return Interruptions(
        mean_hours_between=mean_between,
        save_stall_hours=stall,
        restart_hours=restart,
        interval_hours=chosen,
        expected=wall / mean_between if math.isfinite(mean_between) else 0.0,
        stretch=stretch,
        lost_hours=max(0.0, wall - useful_hours - stalls),
        stall_hours=stalls,
    )


def job_mean_between(n_gpus: int, gpu_hours_between: float = GPU_HOURS_BETWEEN_FAILURES) -> float:
    """Hours between failures of a job whose every GPU must run: the rates add up, so GPU-hours over GPUs. Infinite for
    a mean of 0, which stands for no failures.
    """
    return gpu_hours_between / n_gpus if gpu_hours_between > 0 else math.inf


def spot_mean_between(monthly_share: float, n_machines: int) -> float:
    """Hours between reclaims of any of ``n_machines`` when each has this chance (0 to 1) a month of 730 h of being
    taken: 730 / (-ln(1 - p) x n), for reclaims at a constant rate (derivation). Infinite for a chance of 0.
    """
    if monthly_share <= 0:
        return math.inf
    return 730.0 / (-math.log1p(-min(monthly_share, 0.999)) * n_machines)
