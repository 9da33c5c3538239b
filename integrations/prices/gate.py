"""Whether fetched rows may replace those in force: absurd prices dropped, sudden changes kept back. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from integrations.prices.cache import Key, key
from knowledge.clean_prices import cleaned
from knowledge.price_rules import UNIT_FACTOR, Observation
from knowledge.types import Offer

MAX_ROW_DROP = 0.20  # of the rows in force: more missing means that the source broke, not that the market emptied
MAX_CHANGE = 3.0  # times, up or down, for one offer from one fetch to the next
MAX_CHANGED_SHARE = 0.20  # of the offers: more changed so much means that the unit changed
KIND_FACTOR = 5.0  # from the median of the same card, billing and kind of provider: a node taken for a GPU is 8


@dataclass(slots=True)
class Judged:
    """Rows to put in force (None: keep the old ones), what was dropped, and what to warn of."""

    rows: list[Observation] | None
    dropped: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)


def judge(fetched: Sequence[Observation], old: Mapping[Key, Observation], book: Sequence[Offer]) -> Judged:
    """Name and clean the rows, drop absurd ones (reasons counted), and compare with the rows in force, ``old``;
    ``book`` gives the usual prices. Pure.
    """
    named, rejected = cleaned(fetched)
    out = Judged(None, Counter(_short(item.reason) for item in rejected))
    usual = _medians(book)
    new: dict[Key, Observation] = {}
    for row in named:
        if _absurd(row, usual):
            out.dropped["far from every known price of the card"] += 1
        elif key(row) not in new or row.usd_per_gpu_hour < new[key(row)].usd_per_gpu_hour:
            new[key(row)] = row
    if not new:
        out.warnings.append("no usable row: the old ones stay")
        return out
    if len(new) < (1 - MAX_ROW_DROP) * len(old):
        out.warnings.append(f"{len(new)} rows where {len(old)} were: the old ones stay")
        return out
    shared = [name for name in new if name in old]
    jumped = [name for name in shared if _jumped(new[name], old[name])]
    if len(jumped) > max(1, MAX_CHANGED_SHARE * len(shared)):
        out.warnings.append(f"{len(jumped)} of {len(shared)} prices changed more than threefold: the old ones stay")
        return out
    for name in jumped:
        out.warnings.append(f"{name[0]} {name[1]}: changed more than threefold, the old price stays")
        new[name] = old[name]
    out.rows = list(new.values())
    return out


def _jumped(new: Observation, old: Observation) -> bool:
    ratio = new.usd_per_gpu_hour / old.usd_per_gpu_hour
    return not 1 / MAX_CHANGE <= ratio <= MAX_CHANGE


def _medians(book: Sequence[Offer]) -> dict[tuple[str, ...], float]:
    groups: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for one in book:
        for name in (_kind(one), (one.gpu_id,)):
            groups[name].append(one.usd_per_gpu_hour)
    return {name: median(found) for name, found in groups.items() if len(found) >= 4}


def _kind(row: Observation | Offer) -> tuple[str, ...]:
    firm = "firm" if row.billing in ("on_demand", "secure", "community") else row.billing
    return (row.gpu_id, firm, str(row.provider_class == "hyperscaler"))


def _absurd(row: Observation, usual: Mapping[tuple[str, ...], float]) -> bool:
    for name, factor in ((_kind(row), KIND_FACTOR), ((row.gpu_id,), UNIT_FACTOR)):
        middle = usual.get(name)
        if middle and not middle / factor <= row.usd_per_gpu_hour <= middle * factor:
            return True
    return False


def _short(reason: str) -> str:
    """Reasons without their figures, so that they can be counted."""
    if "times the median" in reason:
        return "far from the median of its kind"
    if "third of its market" in reason:
        return "an ask below a third of its market's median"
    return "stated memory is not that of the card" if reason.startswith("stated memory") else reason
