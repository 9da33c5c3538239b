"""Whether an offer's region lies where someone asks for it: areas by name, else part of the region's own name."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from knowledge.name_keys import fold


def is_anywhere(region: str) -> bool:
    """Whether a source sells it in several places without saying which."""
    return region.casefold().startswith("global")


@lru_cache(maxsize=4096)
def lies_in(region: str, asked: str) -> bool:
    """Whether "eu" holds europe-west4, westeurope and "Norway, NO", but "us" does not hold australiaeast."""
    area = _areas().get(fold(asked))
    if area is not None:
        return area.search(region.casefold()) is not None
    return re.search(rf"(?<![a-z0-9]){re.escape(fold(asked))}", region.casefold()) is not None


def mask(regions: NDArray[np.str_], asked: str) -> NDArray[np.bool_]:
    """``lies_in`` over a column of n regions: n booleans. Each distinct region is judged once."""
    names, at = np.unique(regions, return_inverse=True)
    return np.array([lies_in(str(name), asked) for name in names], dtype=np.bool_)[at]


@lru_cache(maxsize=1)
def _areas() -> dict[str, re.Pattern[str]]:
    rows = json.loads((Path(__file__).parent / "data" / "regions.json").read_text(encoding="utf-8"))
    return {name: re.compile("|".join(row["regions"])) for row in rows for name in row["asked"]}
