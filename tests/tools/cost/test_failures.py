"""Young/Daly against the papers' own limits, simulation and properties."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.cost.failures import (
    GPU_HOURS_BETWEEN_FAILURES,
    best_interval,
    expected_stretch,
    interruptions,
    job_mean_between,
    spot_mean_between,
)


def test_young_s_interval_is_the_limit_for_short_saves() -> None:
    # 196 s to save (980 GB at 5 GB/s) and a failure every 100 h: sqrt(2 x 196 x 360,000) s = 11,879 s
    young = math.sqrt(2 * 196 * 360_000) / 3600
    assert best_interval(196 / 3600, 100.0) == pytest.approx(young, rel=0.02)


def test_the_best_interval_is_where_daly_s_expected_time_is_least() -> None:
    mean, stall, restart = 30.0, 0.1, 0.3
    best = best_interval(stall, mean)
    at_best = expected_stretch(mean, stall, restart, best)
    for factor in (0.5, 0.8, 1.25, 2.0):
        assert expected_stretch(mean, stall, restart, best * factor) > at_best


def test_expected_time_agrees_with_a_simulation() -> None:
    rng = random.Random(7)
    mean, stall, restart, interval, useful = 10.0, 0.2, 0.5, 2.0, 400.0
    total = 0.0
    for _segment in range(int(useful / interval) * 20):
        while True:  # a segment of work and its save must pass without a failure; else restart, which may fail too
            failure = rng.expovariate(1 / mean)
            if failure >= interval + stall:
                total += interval + stall
                break
            total += failure
            while (failure := rng.expovariate(1 / mean)) < restart:
                total += failure
            total += restart
    simulated = total / (useful * 20)
    assert expected_stretch(mean, stall, restart, interval) == pytest.approx(simulated, rel=0.03)


def test_llama_3_s_failures_give_one_every_three_hours_on_sixteen_thousand_gpus() -> None:
    assert pytest.approx(50_677, rel=1e-3) == GPU_HOURS_BETWEEN_FAILURES
    assert job_mean_between(16_384) == pytest.approx(3.09, rel=0.01)


def test_spot_rates_of_many_machines_add_up() -> None:
    alone = spot_mean_between(0.15, 1)
    assert alone == pytest.approx(730 / -math.log(0.85))
    assert spot_mean_between(0.15, 8) == pytest.approx(alone / 8)
    assert math.isinf(spot_mean_between(0.0, 8))


def test_without_failures_and_saves_a_run_takes_its_training_time() -> None:
    assert interruptions(100.0, math.inf, 0.0).stretch == pytest.approx(1.0)


@given(st.floats(1, 5000), st.floats(0.5, 1e5), st.floats(0, 0.5), st.floats(0, 1), st.floats(1.01, 10))
def test_more_failures_never_shorten_a_run(
    useful: float, mean: float, stall: float, restart: float, factor: float
) -> None:
    calm = interruptions(useful, mean * factor, stall, restart)
    rough = interruptions(useful, mean, stall, restart)
    assert rough.stretch >= calm.stretch * (1 - 1e-9)
    assert calm.stretch >= 1
    wall = useful * calm.stretch
    assert useful + calm.lost_hours + calm.stall_hours == pytest.approx(wall, rel=1e-6)
