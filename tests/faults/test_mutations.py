"""Each seeded fault is noticed by the tests that it names."""

from __future__ import annotations

import pytest

from evals.mutations import Mutation
from tests.faults.mutations import FAULTS, noticed


def test_each_fault_has_a_name_of_its_own_and_a_guard() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert all(fault.cases for fault in FAULTS)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_seeded_fault_is_noticed(fault: Mutation) -> None:
    assert noticed(fault)
