"""Tables and the chart of ``lookup_prices``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knowledge import prices
from knowledge.instances import all_instances
from knowledge.providers import Figure, find_provider
from knowledge.types import Offer
from tools.prices import BILLING_WORDS, CLASS_WORDS, cheapest, freshness, median_usd_per_gpu_hour
from tools.result import Column, Fact, Table

if TYPE_CHECKING:
    from tools.lookup_prices import Asked, LookupPricesResult


def tables(result: LookupPricesResult, asked: Asked) -> list[Table]:
    """Offers, medians by class, the other cards of the name, and what a bill holds beside the GPU-hours."""
    columns = [
        Column(key="provider", label="provider"),
        Column(key="class", label="class"),
        Column(key="gpu", label="card"),
        Column(key="n", label="GPUs"),
        Column(key="region", label="region"),
        Column(key="billing", label="billing"),
        Column(key="gpu_hour", label="per GPU-hour", unit="USD/GPU-h"),
        Column(key="hour", label="machine per hour", unit="USD/h"),
        Column(key="seen", label="seen"),
    ]
    rows: list[list[float | int | str | bool | None]] = [
        [title(row), CLASS_WORDS[row.provider_class], row.gpu_id, row.n_gpus, place(row), BILLING_WORDS[row.billing],
         row.usd_per_gpu_hour, row.usd_per_hour, row.observed + (" (live)" if freshness(row) == "live" else "")]
        for row in asked.listed
    ]  # fmt: skip
    out = [Table(id="offers", title="Offers, cheapest first", columns=columns, rows=rows)]
    medians = [fact for fact in result.facts if fact.name.startswith("median_") and fact.name != "median_on_demand"]
    if len(medians) > 1:
        out.append(
            Table(
                id="classes",
                title="Median and range by class and billing",
                columns=[
                    Column(key="kind", label="class, billing"),
                    Column(key="low", label="lowest", unit="USD/GPU-h"),
                    Column(key="median", label="median", unit="USD/GPU-h"),
                    Column(key="high", label="highest", unit="USD/GPU-h"),
                    Column(key="seen", label="newest seen"),
                ],
                rows=[[fact.label, fact.low, _number(fact), fact.high, fact.as_of] for fact in medians],
            )
        )
    out += _forms(asked)
    out += _beside(asked)
    return out


def _forms(asked: Asked) -> list[Table]:
    """The other cards that the name could have meant, with their medians."""
    rows: list[list[float | int | str | bool | None]] = []
    for gpu_id in asked.others:
        found = median_usd_per_gpu_hour(gpu_id)
        best = cheapest(prices.offers(gpu_id, billing="on_demand"))
        if found and best:
            rows.append([gpu_id, best.usd_per_gpu_hour, title(best), found.usd_per_gpu_hour, best.observed])
    columns = [
        Column(key="gpu", label="card"),
        Column(key="cheapest", label="cheapest on demand", unit="USD/GPU-h"),
        Column(key="provider", label="at"),
        Column(key="median", label="median on demand", unit="USD/GPU-h"),
        Column(key="seen", label="seen"),
    ]
    return [Table(id="forms", title="The same name also means", columns=columns, rows=rows)] if rows else []


def _beside(asked: Asked) -> list[Table]:
    """What a bill holds beside the GPU-hours, for the providers shown."""
    links: dict[str, str] = {}
    for machine in all_instances():
        if machine.inter_kind and (asked.card is None or machine.gpu_id == asked.card.id):
            links.setdefault(find_provider(machine.provider).id, machine.inter_kind)
    rows: list[list[float | int | str | bool | None]] = []
    for provider_id in dict.fromkeys(row.provider for row in asked.listed):
        provider = find_provider(provider_id)
        link = links.get(provider_id)
        if any((provider.egress, provider.storage, provider.spot_notice, link)):
            figures = (provider.egress, provider.storage, provider.spot_notice)
            rows.append([provider.title, link, *(one.value if one else None for one in figures), _newest(figures)])
    columns = [
        Column(key="provider", label="provider"),
        Column(key="link", label="link between nodes"),
        Column(key="egress", label="egress, first tier", unit="USD/GB"),
        Column(key="storage", label="disk", unit="USD/GB-month"),
        Column(key="notice", label="notice before spot is taken", unit="s"),
        Column(key="seen", label="as of"),
    ]
    return [Table(id="beside", title="Beside the GPU-hours", columns=columns, rows=rows)] if rows else []


def _newest(figures: tuple[Figure | None, ...]) -> str | None:
    return max((one.as_of for one in figures if one), default=None)


def offers_chart(asked: Asked) -> dict[str, object]:
    """Price per GPU-hour by provider, coloured by class; a Vega-Lite spec with its data inline."""
    subject = asked.card.id if asked.card else asked.provider.title if asked.provider else "GPUs"
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": f"{subject}: USD per GPU-hour",
        "data": {
            "values": [
                {"provider": title(row), "class": CLASS_WORDS[row.provider_class], "usd": row.usd_per_gpu_hour,
                 "billing": BILLING_WORDS[row.billing], "seen": row.observed, "region": place(row)}
                for row in asked.listed
            ]
        },
        "mark": {"type": "point", "filled": True, "size": 80},
        "encoding": {
            "x": {"field": "usd", "type": "quantitative", "title": "USD per GPU-hour", "scale": {"zero": True}},
            "y": {"field": "provider", "type": "nominal", "sort": "x", "title": None},
            "color": {"field": "class", "type": "nominal", "title": "class"},
            "shape": {"field": "billing", "type": "nominal", "title": "billing"},
            "tooltip": [{"field": name} for name in ("provider", "usd", "billing", "region", "seen")],
        },
    }  # fmt: skip


def title(row: Offer) -> str:
    """The provider's name as it writes it itself. Raises UnknownName for an offer of a provider not held."""
    return find_provider(row.provider).title


def place(row: Offer) -> str:
    """The region for people; "any region" where the offer holds everywhere."""
    return "any region" if row.region.casefold().startswith("global") else row.region


def _number(fact: Fact) -> float:
    return float(fact.value)
