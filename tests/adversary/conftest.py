"""A fault of ``mutations.py`` is put into the program for the whole run when ADVERSARY_FAULT names it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.integrations.http.conftest import serve

__all__ = ["serve"]


@pytest.fixture(scope="session", autouse=True)
def _fault() -> Iterator[None]:
    name = os.environ.get("ADVERSARY_FAULT", "")
    if not name:
        yield
        return
    from evals.mutations import seeded  # only where a fault is planted: importing them all takes a while
    from tests.adversary.mutations import FAULTS

    with seeded(next(fault for fault in FAULTS if fault.name == name)):
        yield
