"""With every provider down the planner answers: at least 95 % of the numeric cases stay right, and say who answered."""

from __future__ import annotations

import pytest

from evals import outage


def test_a_sample_of_the_numeric_cases_stays_right_with_every_provider_down() -> None:
    cases = outage.numeric_cases()
    assert len(cases) > 100
    found = outage.run(cases[::8])
    assert found.share >= outage.WANTED, found.missed()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_numeric_cases_stay_right_with_every_provider_down() -> None:
    found = outage.run(outage.numeric_cases())
    assert found.share >= outage.WANTED, found.missed()
    assert not [result.case.id for result in found.results if result.crashed]
