"""Facts and sentences of ``lookup_prices``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knowledge import prices
from knowledge.sources import all_sources
from knowledge.types import Offer
from tools.price_history import Moved, moved
from tools.price_tables import offers_chart, place, tables, title
from tools.prices import (
    BILLING_WORDS,
    CLASS_WORDS,
    FIRM,
    Summary,
    by_class,
    cheapest,
    freshness,
    median_usd_per_gpu_hour,
    saving,
    spread,
    summary,
)
from tools.result import Fact, SourceRef, Warn

if TYPE_CHECKING:
    from tools.lookup_prices import Asked, LookupPricesResult

STAYS = ("on_demand", "secure", "community")


def write(result: LookupPricesResult, asked: Asked) -> None:
    """Fill the result, in place, with facts, tables, chart and sentences; where no offer was found, with the nearest
    ones that exist.
    """
    _offer_facts(result, asked.listed)
    if not asked.found:
        _nothing(result, asked)
        return
    _class_facts(result, asked)
    _costs(result, asked)
    change = moved(asked.history) if asked.given.since else None
    result.tables += tables(result, asked)
    result.charts += [offers_chart(asked), *([change.chart] if change and change.chart else [])]
    result.verdict = _verdict(result, asked, change)
    _next_steps(result, asked)
    _closing(result, asked)


def fact_id(number: int, name: str = "usd_per_gpu_hour") -> str:
    """The id of the ``number``-th fact (from 0) of one name: the first has the plain name, the next
    ``_2`` and so on.
    """
    return name if number == 0 else f"{name}_{number + 1}"


def _offer_facts(result: LookupPricesResult, listed: list[Offer]) -> None:
    for number, row in enumerate(listed):
        about = [row.gpu_id, row.provider]
        words = f"{title(row)}, {BILLING_WORDS[row.billing]}, {place(row)}"
        result.facts.append(
            Fact(
                id=fact_id(number),
                name="usd_per_gpu_hour",
                value=row.usd_per_gpu_hour,
                unit="USD/GPU-h",
                kind="price",
                label=words,
                basis=row.source,
                as_of=row.observed,
                about=about,
            )
        )
        if row.n_gpus > 1:
            basis = f"{row.n_gpus} GPUs x {row.usd_per_gpu_hour:g} USD; {row.source}"
            result.facts.append(
                Fact(
                    id=fact_id(number, "usd_per_hour"),
                    name="usd_per_hour",
                    value=row.usd_per_hour,
                    unit="USD/h",
                    kind="price",
                    label=f"the whole machine: {words}",
                    basis=basis,
                    as_of=row.observed,
                    about=about,
                )
            )


def _summary_fact(name: str, found: Summary, label: str, about: list[str]) -> Fact:
    basis = f"median over {found.providers} providers ({found.offers} offers), seen {found.first_seen}"
    basis += f" to {found.last_seen}" if found.last_seen != found.first_seen else ""
    return Fact(
        id=name,
        name=name,
        value=found.usd_per_gpu_hour,
        unit="USD/GPU-h",
        low=found.low,
        high=found.high,
        kind="price",
        label=label,
        basis=basis,
        as_of=found.last_seen,
        about=about,
    )


def _class_facts(result: LookupPricesResult, asked: Asked) -> None:
    about = [asked.card.id] if asked.card else [asked.provider.id] if asked.provider else []
    firm = summary([row for row in asked.found if row.billing in FIRM])
    groups = {key: summary(rows) for key, rows in by_class(asked.found).items()}
    if asked.card:
        if firm:
            result.facts.append(_summary_fact("median_on_demand", firm, "on demand, marketplaces left out", about))
            result.facts.append(
                Fact(id="providers", name="providers", value=firm.providers, kind="exact",
                     label="providers with on-demand offers", basis="counted in the price book", about=about)
            )  # fmt: skip
        for (kind, billing), found in groups.items():
            if found:
                label = f"{CLASS_WORDS[kind]}, {BILLING_WORDS[billing]}"
                result.facts.append(_summary_fact(f"median_{kind}_{billing}", found, label, about))
        less = saving(groups.get(("specialist", "on_demand")), groups.get(("hyperscaler", "on_demand")))
        if less is not None:
            result.facts.append(
                Fact(id="specialist_saving", name="specialist_saving", value=less, unit="%", kind="exact",
                     label="specialists below hyperscalers, on-demand medians",
                     basis="1 - median of specialists / median of hyperscalers", about=about)
            )  # fmt: skip
        apart = spread(asked.found)
        if apart is not None:
            result.facts.append(
                Fact(id="same_card_spread", name="same_card_spread", value=apart, unit="x", kind="exact",
                     label="dearest over cheapest provider, on demand",
                     basis="largest provider median / smallest, marketplaces left out", about=about)
            )  # fmt: skip
    result.facts.append(
        Fact(id="offers_found", name="offers_found", value=len(asked.found), unit="offers", kind="exact",
             label="offers that match", basis="counted in the price book", about=about)
    )  # fmt: skip


def _costs(result: LookupPricesResult, asked: Asked) -> None:
    given = asked.given
    amount = given.gpu_hours or (given.hours * (given.n_gpus or 1) if given.hours else None)
    if not amount:
        return
    if given.price is not None:
        result.facts.append(
            Fact(id="cost_at_price", name="cost_at_price", value=given.price * amount, unit="USD", kind="exact",
                 label="at the price offered", basis=f"{amount:g} GPU-hours x {given.price:g} USD",
                 about=[asked.card.id] if asked.card else [])
        )  # fmt: skip
    words = f"{given.gpu_hours:g} GPU-hours" if given.gpu_hours else f"{given.hours:g} h x {given.n_gpus or 1} GPUs"
    for name, of in (("cost_at_cheapest", "usd_per_gpu_hour"), ("cost_at_median", "median_on_demand")):
        price = next((fact for fact in result.facts if fact.id == of), None)
        if price:
            value = float(price.value) * amount
            result.facts.append(
                Fact(id=name, name=name, value=value, unit="USD", kind="exact", label=name.replace("_", " "),
                     basis=f"{words} x {float(price.value):g} USD", as_of=price.as_of, about=price.about)
            )  # fmt: skip


def _verdict(result: LookupPricesResult, asked: Asked, change: Moved | None) -> str:
    subject = asked.card.id if asked.card else f"GPUs at {asked.provider.title}" if asked.provider else "GPUs"
    first = asked.listed[0]
    kind = CLASS_WORDS[first.provider_class]
    how = "" if first.billing in FIRM else f", {BILLING_WORDS[first.billing]}"
    what = subject if asked.card else f"{subject}: {first.gpu_id}"
    parts = []
    if change:
        result.facts += change.facts
        parts.append(change.sentence(subject))
    parts.append(f"{what} from [[usd_per_gpu_hour]] at {title(first)} ({_article(kind)}{how}), {_seen(first)}.")
    plain = next((n for n, row in enumerate(asked.listed) if row.billing in FIRM and _cloud(row)), None)
    if first.provider_class == "marketplace" and plain is not None and asked.provider is None:
        row = asked.listed[plain]
        parts.append(f"Not from a marketplace: [[{fact_id(plain)}]] at {title(row)}, {_seen(row)}.")
    if any(fact.id == "providers" and float(fact.value) > 1 for fact in result.facts):
        parts.append("Median on demand [[median_on_demand]] over [[providers]] providers ([[median_on_demand|range]]).")
    if any(fact.id == "cost_at_cheapest" for fact in result.facts):
        parts.append("For the time asked: [[cost_at_cheapest]] there.")
    if any(fact.id == "cost_at_price" for fact in result.facts):
        parts.insert(0, "At the price you name it comes to [[cost_at_price]].")
    return " ".join(parts)


def _next_steps(result: LookupPricesResult, asked: Asked) -> None:
    spot = next((n for n, row in enumerate(asked.listed) if row.billing == "spot"), None)
    if spot is not None and asked.listed[0].billing in STAYS:
        row = asked.listed[spot]
        result.next_steps.append(
            f"Spot, which can be taken away at any time: [[{fact_id(spot)}]] at {title(row)}, {_seen(row)}."
        )
    names = {fact.id for fact in result.facts}
    if "specialist_saving" in names and asked.provider is None:
        result.next_steps.append(
            "Specialist clouds: [[median_specialist_on_demand]] in the median, [[specialist_saving]] below the"
            " hyperscalers' [[median_hyperscaler_on_demand]]."
        )
    if "same_card_spread" in names and asked.provider is None:
        result.next_steps.append("The dearest provider asks [[same_card_spread]] the price of the cheapest.")


def _closing(result: LookupPricesResult, asked: Asked) -> None:
    found = asked.found
    newest = max(row.observed for row in found)
    if all(freshness(row) == "dated" for row in asked.listed):
        result.warnings.append(
            Warn(code="stale_prices", text=f"No offer here is newer than {newest}: take them as dated, not as live."
                 " `advisor prices refresh` fetches today's.")
        )  # fmt: skip
    elif any(freshness(row) == "dated" for row in asked.listed):
        result.warnings.append(
            Warn(code="some_stale_prices", text="Some of these offers are over a month old; each shows its date.")
        )
    if asked.given.live and not found:
        result.warnings.append(Warn(code="not_live", text="No live offer is in the cache."))
    for text in dict.fromkeys(note for row in asked.listed for note in row.warnings):
        result.warnings.append(Warn(code="price_note", text=f"{text[0].upper()}{text[1:]}."))
    sources = all_sources()
    for source_id in dict.fromkeys(row.source for row in asked.listed):
        dates = [row.observed for row in asked.listed if row.source == source_id]
        known = sources.get(source_id)
        result.sources.append(SourceRef(id=source_id, title=known.title if known else source_id, as_of=max(dates)))
    subject = asked.card.id if asked.card else None
    if subject:
        result.suggestions += [
            f"How has {subject} moved since May?",
            f"{subject} spot prices?",
            f"What does {subject} cost at a hyperscaler?",
        ]


def _nothing(result: LookupPricesResult, asked: Asked) -> None:
    """No offer: say so, name what comes nearest, guess nothing."""
    what = asked.card.id if asked.card else "GPUs"
    given = asked.given
    narrowed = (
        asked.provider and f"at {asked.provider.title}",
        given.region and f"in {given.region}",
        given.billing and BILLING_WORDS.get(given.billing),
    )
    where = " ".join(part for part in narrowed if part)
    told = f"I hold no price of {what}{' ' + where if where else ''}, and do not guess one."
    if asked.without_age:
        newest = max(asked.without_age, key=lambda row: row.observed)
        result.facts.append(
            Fact(id="newest_offer", name="newest_offer", value=newest.usd_per_gpu_hour, unit="USD/GPU-h", kind="price",
                 label=title(newest), basis=newest.source, as_of=newest.observed,
                 about=[newest.gpu_id, newest.provider])
        )  # fmt: skip
        age = "live" if given.live else "that new"
        told = f"No offer of {what} is {age}; the newest, [[newest_offer]] at {title(newest)}, {_seen(newest)}."
    elif elsewhere := _elsewhere(result, asked):
        told += " " + elsewhere
    elif asked.card:
        usual = median_usd_per_gpu_hour(asked.card.id)
        if usual:
            result.facts.append(
                _summary_fact("median_on_demand", usual, "on demand, all providers and regions", [asked.card.id])
            )
            told += " Elsewhere its on-demand median is [[median_on_demand]]."
    result.verdict = told
    code = "not_live" if asked.given.live else "no_price"
    result.warnings.append(Warn(code=code, text="`advisor prices refresh` asks the live sources."))


def _elsewhere(result: LookupPricesResult, asked: Asked) -> str:
    """What the same provider asks for the card under another kind of billing."""
    if asked.card is None or asked.provider is None or not asked.given.billing:
        return ""
    same = [row for row in prices.offers(asked.card.id, asked.provider.id) if row.billing in STAYS] or prices.offers(
        asked.card.id, asked.provider.id
    )
    best = cheapest(same)
    if best is None:
        return ""
    if all(fact.id != "usd_per_gpu_hour" for fact in result.facts):
        _offer_facts(result, [best])
    return f"There it costs [[usd_per_gpu_hour]] {BILLING_WORDS[best.billing]}, {_seen(best)}."


def _cloud(row: Offer) -> bool:
    return row.provider_class != "marketplace"


def _seen(row: Offer) -> str:
    how = freshness(row)
    return (
        f"live on {row.observed}"
        if how == "live"
        else f"seen {row.observed}" + (", not live" if how == "dated" else "")
    )


def _article(words: str) -> str:
    return f"a {words}"
