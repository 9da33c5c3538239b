"""Numbers kept by dimension, found again by value: what the evidence looks quantities up in."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple


class Kept(NamedTuple):
    """A number with the entities it speaks of (none: any) and the words it was read from."""

    value: float
    about: tuple[str, ...] = ()
    text: str = ""


class Shelf:
    """Numbers by dimension; signs are left aside, since texts drop them ("5 % less")."""

    def __init__(self) -> None:
        self._kept: dict[str, list[Kept]] = {}
        self._sorted: dict[str, tuple[list[float], list[Kept]]] = {}  # made when asked, dropped when one is added

    def put(self, dimension: str, value: float, about: tuple[str, ...] = (), text: str = "") -> None:
        """Keep a number."""
        if value == value:
            self._kept.setdefault(dimension, []).append(Kept(abs(value), about, text))
            self._sorted.pop(dimension, None)

    def near(self, dimension: str, value: float, within: float) -> Iterator[Kept]:
        """The numbers of this dimension at most ``within`` from ``value``, smallest first."""
        if dimension not in self._kept:
            return
        if dimension not in self._sorted:
            group = sorted(self._kept[dimension])
            self._sorted[dimension] = ([kept.value for kept in group], group)
        values, group = self._sorted[dimension]
        value = abs(value)
        slack = within + 1e-9 * value
        for index in range(bisect_left(values, value - slack), len(values)):
            if values[index] > value + slack:
                return
            yield group[index]

    def groups(self) -> Iterator[list[float]]:
        """The values of each dimension that bear the same words."""
        for group in self._kept.values():
            by_text: dict[str, list[float]] = {}
            for kept in group:
                by_text.setdefault(kept.text, []).append(kept.value)
            yield from by_text.values()
