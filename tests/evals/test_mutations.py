"""The gate blocks: with each seeded fault at least one of its guards turns red, and without it all are green."""

import pytest

from evals.mutations import MUTATIONS, clear_caches, seeded, verdicts


def test_there_are_enough_faults_and_each_has_a_name_of_its_own():
    assert len(MUTATIONS) >= 20
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)
    assert sum(not mutation.cases for mutation in MUTATIONS) >= 8  # faults of the graders themselves


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name.replace(" ", "-"))
def test_a_seeded_fault_turns_the_gate_red(mutation):
    sound = verdicts(mutation)
    assert all(sound.values()), f"not green to begin with: {sound}"
    with seeded(mutation):
        faulty = verdicts(mutation)
    assert not all(faulty.values()), f"{mutation.name} passes every guard"


def test_nothing_of_a_fault_stays_behind():
    mutation = next(mutation for mutation in MUTATIONS if mutation.name == "sparse rates")
    with seeded(mutation):
        assert not all(verdicts(mutation).values())
    assert all(verdicts(mutation).values())
    clear_caches()
