"""The price book as columns, so that a search over every offer is arithmetic on arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from knowledge.names import find_id
from knowledge.store import connection


@dataclass(frozen=True, slots=True)
class Book:
    """Parallel columns, one entry an offer."""

    gpu_id: NDArray[np.str_]
    n_gpus: NDArray[np.float64]
    usd_per_gpu_hour: NDArray[np.float64]
    provider: NDArray[np.str_]
    region: NDArray[np.str_]
    billing: NDArray[np.str_]
    observed: NDArray[np.str_]
    source: NDArray[np.str_]
    instance_type: NDArray[np.str_]


@lru_cache(maxsize=1)
def book() -> Book:
    """Every offer whose GPU is known and whose machine has whole GPUs."""
    rows = []
    for row in connection().execute("select * from prices"):
        gpu_id, count, price = _gpu(row["gpu"]), float(row["gpu_count"] or 0), float(row["price_usd_per_gpu_hour"] or 0)
        if gpu_id and count >= 1 and price > 0:
            rows.append((row, gpu_id, count, price))
    return Book(
        gpu_id=np.array([gpu_id for _row, gpu_id, _count, _price in rows]),
        n_gpus=np.array([count for _row, _gpu_id, count, _price in rows]),
        usd_per_gpu_hour=np.array([price for *_rest, price in rows]),
        provider=np.array([row["provider"] for row, *_rest in rows]),
        region=np.array([row["region"] or "" for row, *_rest in rows]),
        billing=np.array([row["billing"] for row, *_rest in rows]),
        observed=np.array([row["observed_date"] for row, *_rest in rows]),
        source=np.array([row["source"] for row, *_rest in rows]),
        instance_type=np.array([row["instance_type"] or "" for row, *_rest in rows]),
    )


@lru_cache(maxsize=256)
def _gpu(name: str) -> str | None:
    words = name.split("-")
    for tried in (" ".join(words), " ".join(words[:-1]), "-".join(words), "-".join(words[:-1])):
        found = find_id("gpus", tried)
        if found:
            return found
    return None
