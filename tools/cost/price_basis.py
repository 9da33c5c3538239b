"""Which price a run is billed at: as given, one provider's, or the median of the dated offers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from knowledge import regions
from knowledge.prices import columns, today
from knowledge.types import Gpu
from tools.errors import BadValue
from tools.prices import summary

FIRM = ("on_demand", "secure")  # machines that are not taken away and not a stranger's
ENOUGH = 3  # offers that make a median
RECENT_DAYS = 210  # the market of the last seven months, where it has enough offers


@dataclass(frozen=True, slots=True)
class PriceBasis:
    """USD per GPU-hour with where it is from."""

    usd_per_gpu_hour: float
    low: float
    high: float
    offers: int
    words: str  # "median of 43 on-demand offers"
    observed_from: str
    observed_to: str
    source: str


def price_basis(
    gpu: Gpu, billing: str = "on_demand", provider: str | None = None, region: str | None = None
) -> PriceBasis | None:
    """The median offer for this card, or None where the book holds none.

    Without a provider the specialised clouds' median stands in, since hyperscalers' list prices are two to four times
    it and marketplaces' below; ``low`` and ``high`` span all of them.
    """
    book = columns()
    kinds = FIRM if billing == "on_demand" else (billing,)
    rows = (book.gpu_id == gpu.id) & np.isin(book.billing, kinds)
    if provider:
        rows &= book.provider == provider
    if region:
        rows &= regions.mask(book.region, region)
    every = np.flatnonzero(rows)
    if not len(every):
        return None
    usual = rows & (book.provider_class == "specialist") if not provider else rows
    recent = np.datetime64(today()) - book.day <= np.timedelta64(RECENT_DAYS, "D")
    found = next(
        (chosen for chosen in map(np.flatnonzero, (usual & recent, usual, recent & rows)) if len(chosen) >= ENOUGH),
        every,
    )
    prices = book.usd_per_gpu_hour[found]
    dates = sorted(str(date) for date in book.observed[found])
    usual_price = summary([book.offers[at] for at in found])  # over providers: one long price list does not decide
    if usual_price is None:
        return None
    middle = usual_price.usd_per_gpu_hour
    kind = {"on_demand": "on-demand", "reserved_1y": "1-year reserved", "reserved_3y": "3-year reserved"}
    special = not provider and bool((book.provider_class[found] == "specialist").all())
    where = f" at {provider}" if provider else (" of specialised clouds" if special else "")
    words = f"median of {len(found)} {kind.get(billing, billing)} offers{where}"
    if len(found) == 1:
        words = f"the one {kind.get(billing, billing)} offer{where}"
    nearest = found[int(np.argmin(np.abs(prices - middle)))]
    return PriceBasis(
        usd_per_gpu_hour=middle,
        low=min(middle, float(np.quantile(book.usd_per_gpu_hour[every], 0.1))),
        high=max(middle, float(np.quantile(book.usd_per_gpu_hour[every], 0.9))),
        offers=len(found),
        words=words,
        observed_from=dates[0],
        observed_to=dates[-1],
        source=str(book.source[nearest]),
    )


def no_price(gpu: Gpu, billing: str, provider: str | None, region: str | None) -> BadValue:
    """The error to raise for a filter that leaves no offer of a card that has some; its candidates are up to six pairs
    of provider and billing that the price book does hold.
    """
    offers = columns()
    same = offers.gpu_id == gpu.id
    have = sorted({f"{p} {b}" for p, b in zip(offers.provider[same], offers.billing[same], strict=True)})
    asked = " ".join(part for part in (billing.replace("_", "-"), provider or "", region or "") if part)
    return BadValue(
        "no_price",
        f"The price book holds no {asked} offer of {gpu.id}.",
        field="provider" if provider else "billing",
        hint="Give a price (USD per GPU-hour), or ask for an offer that exists.",
        candidates=have[:6],
    )
