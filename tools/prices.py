"""Prices in summary: medians and ranges of dated offers by class and billing, with the days they span. Pure.

A median, not a minimum, stands for "the price": the cheapest ask is often two to three times below what can be had.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from statistics import median

from knowledge import prices
from knowledge.types import Offer, ProviderClass

CLASS_WORDS: dict[str, str] = {
    "hyperscaler": "hyperscaler",
    "specialist": "specialist cloud",
    "marketplace": "marketplace",
}
BILLING_WORDS = {
    "on_demand": "on demand",
    "secure": "on demand (secure)",
    "community": "community host",
    "spot": "spot",
    "reserved_1y": "reserved 1 year",
    "reserved_3y": "reserved 3 years",
}
FIRM = ("on_demand", "secure")
STALE_BESIDE_NEWER_DAYS = 180  # beside a newer price of the same card an older one is likely no offer any more


@dataclass(frozen=True, slots=True)
class Summary:
    """A median with its range over some offers."""

    usd_per_gpu_hour: float
    low: float
    high: float
    offers: int
    providers: int
    first_seen: str
    last_seen: str
    source: str  # of the offer nearest to the median


def summary(rows: Sequence[Offer]) -> Summary | None:
    """The median, USD per GPU-hour, of the providers' own medians, so that one long price list does not decide, with
    the lowest and highest offer and the days they span. None for no rows.
    """
    if not rows:
        return None
    by_provider: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        by_provider[row.provider].append(row.usd_per_gpu_hour)
    middle = median(median(found) for found in by_provider.values())
    found = [row.usd_per_gpu_hour for row in rows]
    dates = sorted(row.observed for row in rows)
    nearest = min(rows, key=lambda row: abs(row.usd_per_gpu_hour - middle))
    return Summary(middle, min(found), max(found), len(rows), len(by_provider), dates[0], dates[-1], nearest.source)


def without_stale(rows: Sequence[Offer]) -> list[Offer]:
    """The offers that are not half a year older than the newest of their card among them; the order stays."""
    newest: dict[str, int] = {}
    days = [date.fromisoformat(row.observed[:10]).toordinal() for row in rows]
    for row, day in zip(rows, days, strict=True):
        newest[row.gpu_id] = max(day, newest.get(row.gpu_id, 0))
    return [row for row, day in zip(rows, days, strict=True) if newest[row.gpu_id] - day <= STALE_BESIDE_NEWER_DAYS]


def median_usd_per_gpu_hour(gpu_id: str, billing: str = "firm") -> Summary | None:
    """The usual price of a card, USD; ``firm``: on demand at clouds that are not a marketplace of strangers' machines.
    None where the price book holds no such offer.
    """
    return summary(without_stale(prices.offers(gpu_id, billing=billing)))


def by_class(rows: Sequence[Offer]) -> dict[tuple[ProviderClass, str], list[Offer]]:
    """Offers grouped by provider class and kind of billing (secure counts as on demand)."""
    out: dict[tuple[ProviderClass, str], list[Offer]] = defaultdict(list)
    for row in rows:
        billing = "on_demand" if row.billing in ("on_demand", "secure", "community") else row.billing
        out[(row.provider_class, billing)].append(row)
    return dict(sorted(out.items(), key=lambda item: (item[0][1] != "on_demand", item[0][1], item[0][0])))


def saving(cheaper: Summary | None, dearer: Summary | None) -> float | None:
    """How many percent below the dearer median the cheaper one lies, negative where it does not; None without both."""
    if cheaper is None or dearer is None:
        return None
    return 100 * (1 - cheaper.usd_per_gpu_hour / dearer.usd_per_gpu_hour)


def cheapest(rows: Sequence[Offer], where: Callable[[Offer], bool] = lambda row: True) -> Offer | None:
    """The offer with the lowest USD per GPU-hour, the newer of two at one price; None where no row passes ``where``."""
    found = [row for row in rows if where(row)]
    return min(found, key=lambda row: (row.usd_per_gpu_hour, -int(row.observed.replace("-", "")))) if found else None


def freshness(offer: Offer) -> str:
    """How far a price may be trusted: live (seen within a day through a live source), recent or dated."""
    age = prices.age_days(offer)
    if offer.live and age <= prices.FRESH_DAYS:
        return "live"
    return "recent" if age <= prices.LIVE_DAYS else "dated"


def spread(rows: Sequence[Offer]) -> float | None:
    """Dearest over cheapest provider of one card, a ratio, by each one's on-demand median; marketplaces left out. None
    for fewer than three providers.
    """
    by_provider: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row.billing in FIRM and row.provider_class != "marketplace":
            by_provider[row.provider].append(row.usd_per_gpu_hour)
    middles = [median(found) for found in by_provider.values()]
    return max(middles) / min(middles) if len(middles) >= 3 else None
