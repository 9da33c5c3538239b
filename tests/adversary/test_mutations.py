"""Each defence is proven by taking it away: with a seeded fault the tests that guard it fail."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from evals.mutations import Mutation
from tests.adversary.mutations import FAULTS, outcome

HERE = Path(__file__).parent


def test_faults_name_tests_that_exist_and_places_that_can_be_changed() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    for fault in FAULTS:
        assert fault.cases, fault.name
        for guard in fault.cases:
            file, _, name = guard.partition("::")
            assert f"def {name.partition('[')[0]}(" in (HERE / file).read_text(encoding="utf-8"), guard
        for place in fault.places:
            module, _, path = place.partition(":")
            found = import_module(module)
            for part in path.split("."):
                found = getattr(found, part)


def test_every_file_of_tests_has_its_faults() -> None:
    """A fault here, or a test in the file that shows a bad thing to its own scanner and sees it found."""
    guarded = {guard.partition("::")[0] for fault in FAULTS for guard in fault.cases}
    for file in sorted(HERE.glob("test_*.py")):
        shown = re.search(r"def test_\w*would_be_found", file.read_text(encoding="utf-8"))
        assert file.name in guarded or shown or file.name == Path(__file__).name, file.name


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_seeded_fault_is_caught(fault: Mutation) -> None:
    assert outcome(fault) == 1
