"""``lookup_prices``: what a GPU costs an hour, by provider, place and kind of billing, each offer with its date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from knowledge import prices
from knowledge.gpus import find_gpu
from knowledge.instances import find_instance
from knowledge.providers import Provider, find_provider
from knowledge.types import Gpu, Offer
from tools.errors import BadValue, UnknownName
from tools.price_overview import write_overview
from tools.price_words import write
from tools.prices import STALE_BESIDE_NEWER_DAYS, cheapest, freshness, without_stale
from tools.registry import tool
from tools.result import Assumption, ToolResult
from tools.units import parse_count, parse_seconds

BillingChoice = Literal["on_demand", "spot", "reserved_1y", "reserved_3y", "community", "secure", "any"]
_BILLING_WORDS = {
    "on-demand": "on_demand", "ondemand": "on_demand", "on demand": "on_demand", "preemptible": "spot",
    "interruptible": "spot", "reserved": "reserved_1y", "1y": "reserved_1y", "3y": "reserved_3y",
    "1 year": "reserved_1y", "3 years": "reserved_3y", "all": "any",
}  # fmt: skip


class LookupPricesInput(BaseModel):
    """Which offers: by card or machine, provider, place, billing, size and age."""

    model_config = ConfigDict(extra="forbid")

    gpu: str | None = Field(default=None, description="Card, e.g. 'H100 SXM'; a machine type such as p5.48xlarge.")
    provider: str | None = Field(default=None, description="Only this provider, e.g. aws, lambda, runpod.")
    region: str | None = Field(default=None, description="Part of a region's name, e.g. us-east, europe.")
    billing: BillingChoice | None = Field(default=None, description="Default any; on_demand leaves spot out.")
    n_gpus: int | None = Field(default=None, ge=1, le=100_000, description="Machines with at least so many GPUs.")
    hours: float | None = Field(default=None, gt=0, le=1e6, description="Also price so many hours of n_gpus.")
    gpu_hours: float | None = Field(default=None, gt=0, le=1e12, description="Also price so many GPU-hours.")
    price: float | None = Field(default=None, ge=0, le=1e5, description="USD per GPU-hour offered to you.")
    live: bool = Field(default=False, description="Only offers fetched from live sources within a day.")
    max_age: str | float | None = Field(
        default=None, description="Only offers at most this old: '7 days', '12h'; a number is days."
    )
    since: str | None = Field(default=None, description="Also how the price moved since this ISO date or month.")
    limit: int = Field(default=8, ge=1, le=100, description="Offers listed of each kind of billing.")

    @field_validator("billing", mode="before")
    @classmethod
    def _billing(cls, value: object) -> object:
        return _BILLING_WORDS.get(value.casefold(), value.casefold()) if isinstance(value, str) else value

    @field_validator("n_gpus", mode="before")
    @classmethod
    def _count(cls, value: object) -> object:
        return int(parse_count(value, "n_gpus")) if isinstance(value, str) else value


class OfferRow(BaseModel):
    """One dated offer."""

    provider: str
    provider_class: str
    instance_type: str
    gpu: str
    n_gpus: int
    region: str
    billing: str
    usd_per_gpu_hour: float = Field(json_schema_extra={"unit": "USD/GPU-h"})
    usd_per_hour: float = Field(json_schema_extra={"unit": "USD/h"})
    observed: str
    freshness: str
    source: str
    warnings: list[str] = Field(default_factory=list)


class LookupPricesResult(ToolResult):
    """Dated offers, cheapest first within a kind of billing, and what they come to by class."""

    gpu: str | None = None
    offers: list[OfferRow] = Field(default_factory=list)
    offers_found: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """A look-up resolved: what was found and what it was narrowed to."""

    given: LookupPricesInput
    card: Gpu | None
    provider: Provider | None
    found: list[Offer]  # that match, cheapest first
    listed: list[Offer]  # of those, the ones shown
    without_age: list[Offer]  # that would match at any age
    history: list[Offer]
    others: tuple[str, ...]  # what the card's name could also have meant


@tool(
    "lookup_prices",
    examples=[
        {"gpu": "H100"},
        {"gpu": "A100 80GB", "provider": "aws", "billing": "spot"},
        {"gpu": "H100", "since": "2026-05"},
    ],
)
def lookup_prices(given: LookupPricesInput) -> LookupPricesResult:
    """Dated rental offers of a GPU: per GPU and per machine, with median and range by class and billing.

    Every price is an observation with its date and source; the median is taken over the providers' own medians. An
    offer is called live only when a live source gave it within a day. Nothing is guessed: a card without an offer is
    said to have none. With neither card nor provider: every card's median, and how far classes and providers differ.
    Not in a price: taxes, egress, storage and negotiated discounts.
    """
    if not given.gpu and not given.provider:
        result = LookupPricesResult()
        write_overview(result, given.region)
        return result
    card, provider, machine, assumed, others = _subject(given)
    kinds = None if given.billing in (None, "any") else given.billing
    pool = prices.offers(card.id if card else None, provider.id if provider else None, given.region, kinds)
    if card and not pool:
        card, pool, assumed = _other_meaning(card, others, provider, given, kinds) or (card, pool, assumed)
    if machine:
        pool = [row for row in pool if row.instance_type.casefold() == machine.casefold()] or pool
    if given.n_gpus:
        pool = [row for row in pool if row.n_gpus >= given.n_gpus] or pool
    young = _young_enough(pool, given)
    if given.max_age is None:  # who gives an age wants that age; else what select_gpu would leave out is left out
        current = without_stale(young)
        if len(current) < len(young):
            assumed = [*assumed, _left_out(len(young) - len(current))]
        young = current
    found = sorted(young, key=lambda row: (row.usd_per_gpu_hour, row.provider, row.id))
    history: list[Offer] = []
    if given.since:
        start = _since(given.since)
        history = prices.offers(card.id if card else None, provider.id if provider else None, given.region, kinds, True)
        history = [row for row in history if row.observed >= start]
    asked = Asked(given, card, provider, found, _listed(found, given.limit), pool, history, others)
    result = LookupPricesResult(
        gpu=card.id if card else None, offers=[_row(row) for row in asked.listed], offers_found=len(found)
    )
    result.assumptions += assumed
    write(result, asked)
    return result


def _subject(
    given: LookupPricesInput,
) -> tuple[Gpu | None, Provider | None, str | None, list[Assumption], tuple[str, ...]]:
    """The card (also by a machine type's name), the provider, the machine type, and what was guessed."""
    provider = find_provider(given.provider) if given.provider else None
    if not given.gpu:
        return None, provider, None, [], ()
    try:
        match = find_gpu(given.gpu)
    except UnknownName as unknown:
        try:
            machine = find_instance(given.gpu).value
        except UnknownName:
            raise unknown from None
        card = find_gpu(machine.gpu_id).value
        provider = provider or find_provider(machine.provider)
        return card, provider, machine.instance_type, [], ()
    notes = []
    if match.note:
        notes.append(Assumption(name="gpu", value=match.value.id, why=match.note.rstrip("."), argument="gpu"))
    return match.value, provider, None, notes, match.alternatives


def _other_meaning(
    card: Gpu, others: tuple[str, ...], provider: Provider | None, given: LookupPricesInput, kinds: str | None
) -> tuple[Gpu, list[Offer], list[Assumption]] | None:
    """The first other card that an ambiguous name could mean and that has such an offer."""
    for gpu_id in others:
        found = prices.offers(gpu_id, provider.id if provider else None, given.region, kinds)
        if found:
            why = f"{given.gpu!r} could also mean {card.id}, of which there is no such offer"
            return find_gpu(gpu_id).value, found, [Assumption(name="gpu", value=gpu_id, why=why, argument="gpu")]
    return None


def _young_enough(rows: Sequence[Offer], given: LookupPricesInput) -> list[Offer]:
    kept = [row for row in rows if freshness(row) == "live"] if given.live else list(rows)
    if given.max_age is None:
        return kept
    limit = parse_seconds(given.max_age, "max_age") if isinstance(given.max_age, str) else given.max_age * 86400
    if limit < 0:
        raise BadValue("out_of_range", "'max_age' cannot be negative.", field="max_age", hint="E.g. '7 days'.")
    return [row for row in kept if prices.age_days(row) * 86400 <= limit]


def _listed(found: list[Offer], limit: int) -> list[Offer]:
    """The cheapest of each kind of billing: machines that stay first, then spot, then reserved."""
    out: list[Offer] = []
    for kinds in (("on_demand", "secure", "community"), ("spot",), ("reserved_1y",), ("reserved_3y",)):
        rows = [row for row in found if row.billing in kinds]
        seen: set[tuple[str, str, str]] = set()
        kept = []
        for row in rows:  # one line a provider and card: its other sizes cost much the same a GPU
            key = (row.provider, row.gpu_id, row.provider_class)
            if key not in seen:
                seen.add(key)
                kept.append(row)
        best = cheapest(kept, lambda row: row.provider_class == "hyperscaler")
        shown = kept[: limit if kinds[0] == "on_demand" else max(2, limit // 2)]
        out += [*shown, *([best] if best and best not in shown else [])]
    return out


def _left_out(count: int) -> Assumption:
    why = f"{count} offers half a year older than the newest of their card are left out; max_age brings them back"
    return Assumption(name="max_age", value=STALE_BESIDE_NEWER_DAYS, unit="days", why=why, argument="max_age")


def _since(text: str) -> str:
    """An ISO date from a date, a month or a month's name ("2026-05", "May")."""
    words = text.strip().casefold()
    months = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
              "november", "december")  # fmt: skip
    day = prices.today()
    for number, name in enumerate(months, 1):
        if len(words) >= 3 and (name.startswith(words) or words.startswith(name)):
            year = int(day[:4]) if number <= int(day[5:7]) else int(day[:4]) - 1
            digits = "".join(c for c in words if c.isdigit())
            return f"{digits if len(digits) == 4 else year}-{number:02d}-01"
    parts = words.split("-")
    if len(parts) in (1, 2, 3) and all(part.isdigit() for part in parts) and len(parts[0]) == 4:
        return "-".join([parts[0], *(part.zfill(2) for part in parts[1:]), "01", "01"][:3])
    raise BadValue(
        "bad_date", f"{text[:20]!r} is not a date.", field="since", hint="Write it as 2026-05-01 or 2026-05."
    )


def _row(row: Offer) -> OfferRow:
    return OfferRow(
        provider=row.provider,
        provider_class=row.provider_class,
        instance_type=row.instance_type,
        gpu=row.gpu_id,
        n_gpus=row.n_gpus,
        region=row.region,
        billing=row.billing,
        usd_per_gpu_hour=row.usd_per_gpu_hour,
        usd_per_hour=row.usd_per_hour,
        observed=row.observed,
        freshness=freshness(row),
        source=row.source,
        warnings=list(row.warnings),
    )
