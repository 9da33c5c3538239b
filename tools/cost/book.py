"""The price book as columns, so that a search over every offer is arithmetic on arrays."""

from __future__ import annotations

from knowledge.prices import Columns as Book
from knowledge.prices import columns as book

__all__ = ["Book", "book"]
