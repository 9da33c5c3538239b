"""What all tests share."""

from __future__ import annotations


def pytest_make_parametrize_id(config: object, val: object, argname: str) -> str | None:
    """Bytes are no part of a test's name: compressed ones hold the time, and parallel processes must agree on names."""
    return argname if isinstance(val, bytes) else None
