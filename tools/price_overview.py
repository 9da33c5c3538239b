"""The market at a glance: the usual price of each card, and two sayings about prices put to the test. Pure."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from knowledge import prices
from tools.prices import FIRM, by_class, saving, spread, summary, without_stale
from tools.result import Column, Fact, Table
from tools.units import Unit

if TYPE_CHECKING:
    from tools.lookup_prices import LookupPricesResult

MIN_PROVIDERS = 3  # fewer say nothing about a market


def write_overview(result: LookupPricesResult, region: str | None) -> None:
    """Every card with enough providers: median and range on demand, what specialists save, how far providers differ."""
    savings: list[float] = []
    spreads: list[float] = []
    rows: list[list[float | int | str | bool | None]] = []
    newest = ""
    for gpu_id in dict.fromkeys(row.gpu_id for row in prices.offers()):
        found = without_stale(prices.offers(gpu_id, region=region, billing="on_demand"))
        firm = summary([row for row in found if row.billing in FIRM])
        if firm is None or firm.providers < MIN_PROVIDERS:
            continue
        groups = {key[0]: summary(group) for key, group in by_class(found).items()}
        less, apart = saving(groups.get("specialist"), groups.get("hyperscaler")), spread(found)
        savings += [less] if less is not None else []
        spreads += [apart] if apart is not None else []
        newest = max(newest, firm.last_seen)
        rows.append([gpu_id, firm.low, firm.usd_per_gpu_hour, firm.high, firm.providers, less, apart, firm.last_seen])
    rows.sort(key=lambda row: -float(row[2] or 0))
    label = "specialists below hyperscalers, on-demand medians, over the cards"
    _over_cards(result, "specialist_saving", savings, "%", label, newest)
    label = "dearest over cheapest provider of a card, over the cards"
    _over_cards(result, "same_card_spread", spreads, "x", label, newest)
    result.facts.append(Fact(id="cards", name="cards", value=len(rows), kind="exact", label="cards compared",
                             basis="cards with on-demand offers of three providers or more"))  # fmt: skip
    columns = [
        Column(key="gpu", label="card"),
        Column(key="low", label="lowest", unit="USD/GPU-h"),
        Column(key="median", label="median on demand", unit="USD/GPU-h"),
        Column(key="high", label="highest", unit="USD/GPU-h"),
        Column(key="providers", label="providers"),
        Column(key="saving", label="specialists below hyperscalers", unit="%"),
        Column(key="spread", label="dearest over cheapest", unit="x"),
        Column(key="seen", label="newest seen"),
    ]
    result.tables.append(
        Table(id="market", title="On-demand prices by card, dearest first", columns=columns, rows=rows)
    )
    sentences = ["On-demand prices of [[cards]] cards, newest seen " + (newest or "never") + "."]
    if savings:
        sentences.append("Specialists ask [[specialist_saving]] less than hyperscalers ([[specialist_saving|range]]).")
    if spreads:
        sentences.append("For one card the dearest provider asks [[same_card_spread]] the price of the cheapest"
                         " ([[same_card_spread|range]]).")  # fmt: skip
    result.verdict = " ".join(sentences)
    result.offers_found = len(prices.offers())
    result.suggestions += ["What does an H100 cost per hour?", "Cheapest 4090 per hour?"]


def _over_cards(
    result: LookupPricesResult, name: str, values: list[float], unit: Unit, label: str, newest: str
) -> None:
    if values:
        basis = f"median, lowest and highest over {len(values)} cards of the price book"
        fact = Fact(id=name, name=name, value=median(values), unit=unit, low=min(values), high=max(values))
        result.facts.append(fact.model_copy(update={"kind": "exact", "label": label, "as_of": newest, "basis": basis}))
