"""What all tests share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def a_loop_for_who_asks_for_one() -> Iterator[None]:
    """litellm, called in the main thread, takes its current loop and would else make one that nobody closes.

    Whatever test the collector happens to find that one in would then fail.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()


def pytest_make_parametrize_id(config: object, val: object, argname: str) -> str | None:
    """Bytes are no part of a test's name: compressed ones hold the time, and parallel processes must agree on names."""
    return argname if isinstance(val, bytes) else None
