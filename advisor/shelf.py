"""Numbers kept by dimension, found again by value: what the evidence looks quantities up in."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple


class Kept(NamedTuple):
    """A number with the entities it speaks of (none: any) and the words it was read from."""

    value: float
    about: tuple[str, ...] = ()
    text: str = ""


Entry = tuple[float, tuple[str, ...], str]  # as Kept, which costs more to make


class Shelf:
    """Numbers by dimension; signs are left aside, since texts drop them ("5 % less")."""

    def __init__(self) -> None:
        self._kept: dict[str, list[Entry]] = {}
        self._sorted: dict[str, tuple[list[float], list[Entry]]] = {}  # made when asked

    def put(self, dimension: str, value: float, about: tuple[str, ...] = (), text: str = "") -> None:
        """Keep a number in its dimension's base unit, without its sign, with the entities and words it came with. NaN
        is left out.
        """
        if value == value:
            group = self._kept.get(dimension)
            if group is None:
                group = self._kept[dimension] = []
            group.append((abs(value), about, text))

    def extend(self, numbers: Mapping[str, Sequence[Entry]]) -> None:
        """Keep many numbers: size, entities and words of each, by dimension."""
        for dimension, entries in numbers.items():
            self._kept.setdefault(dimension, []).extend(entries)

    def near(self, dimension: str, value: float, within: float) -> Iterator[Kept]:
        """The numbers of this dimension at most ``within`` from ``value``, smallest first."""
        kept = self._kept.get(dimension)
        if kept is None:
            return
        values, group = self._sorted.get(dimension) or ([], [])
        if len(group) != len(kept):  # some were added since
            group = sorted(kept)
            values = [entry[0] for entry in group]
            self._sorted[dimension] = (values, group)
        value = abs(value)
        slack = within + 1e-9 * value
        for index in range(bisect_left(values, value - slack), len(values)):
            if values[index] > value + slack:
                return
            yield Kept(*group[index])

    def groups(self) -> Iterator[list[float]]:
        """The values, in base units, of each dimension that bear the same words; a list for each such group."""
        for group in self._kept.values():
            by_text: dict[str, list[float]] = {}
            for value, _about, text in group:
                by_text.setdefault(text, []).append(value)
            yield from by_text.values()
