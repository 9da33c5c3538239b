"""Azure retail prices: keyless, paged by links, one price per machine, Linux only.

Reservation rows carry the total of the term though their unit says "1 Hour"; Windows, Dedicated and Low Priority rows
share the machine's name with the plain one, only the product's name tells; savings plans are per hour.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from integrations.net import Session
from integrations.prices.source import Keys, Left, Parsed, PriceSource, each, listed, machine, price, row
from knowledge.instances import all_instances
from knowledge.price_rules import Observation
from knowledge.types import Billing

HOST, PATH = "prices.azure.com", "/api/retail/prices"
TERM_HOURS = {"1 Year": 8760.0, "3 Years": 26280.0}
TERM_BILLING: dict[str, Billing] = {"1 Year": "reserved_1y", "3 Years": "reserved_3y"}
MAX_PAGES = 60


def fetch(session: Session, keys: Keys) -> list[Any]:
    """Every page about the machine types that we hold, one type at a time, since broad filters page for minutes; no key
    is needed. Raises SourceError as ``Session`` does.
    """
    pages: list[Any] = []
    for name in sorted({m.instance_type for m in all_instances() if m.provider == "Azure"}):
        params: dict[str, str] | None = {
            "api-version": "2023-01-01-preview",
            "currencyCode": "'USD'",
            "meterRegion": "'primary'",
            "$filter": f"serviceName eq 'Virtual Machines' and armSkuName eq '{name}'",
        }
        while params and len(pages) < MAX_PAGES:
            page = session.json(HOST, PATH, params=params)
            pages.append(page)
            params = _next(page)
    return pages


def _next(page: Any) -> dict[str, str] | None:
    """The parameters of the next page; its link is never followed as a URL."""
    link = page.get("NextPageLink") if isinstance(page, dict) else None
    return dict(parse_qsl(urlsplit(str(link)).query)) if link else None


def parse(pages: list[Any], day: str) -> Parsed:
    """Linux on-demand, spot, reserved and savings-plan USD per machine-hour by region. Raises SourceError("drift") for
    another shape.
    """
    items = [item for page in pages for item in listed(page, "Items")]
    return each(items, lambda item: _read(item, day), "Azure")


def _read(item: dict[str, Any], day: str) -> Iterator[Observation]:
    product, sku = item["productName"], item["skuName"]
    if "Windows" in product or "Dedicated" in product or "Low Priority" in sku or "DevTest" in str(item.get("type")):
        raise Left("Windows, dedicated, low priority or test")
    if item["currencyCode"] != "USD":
        raise Left("not in USD")
    held = machine("azure", item["armSkuName"].strip())
    usd = price(item["retailPrice"])
    billing: Billing = "spot" if "Spot" in sku else "on_demand"
    if item["type"] == "Reservation":
        term = item["reservationTerm"]
        usd, billing = usd / TERM_HOURS[term], TERM_BILLING[term]
    elif item["unitOfMeasure"] != "1 Hour":
        raise Left("not priced by the hour")

    def offer(usd_per_hour: float, kind: Billing) -> Observation:
        return row(
            "live-azure", "azure", held.gpu_id, held.n_gpus, day, instance_type=held.instance_type,
            usd_per_hour=usd_per_hour, region=item["armRegionName"], billing=kind, vcpus=held.vcpus,
            locator=f"meter {item.get('meterId', '')}",
        )  # fmt: skip

    yield offer(usd, billing)
    for plan in item.get("savingsPlan") or ():
        if plan.get("term") in TERM_BILLING:
            yield offer(price(plan["unitPrice"]), TERM_BILLING[plan["term"]])


SOURCE = PriceSource(
    id="live-azure",
    title="Azure retail prices",
    hosts={HOST: (r"/api/retail/prices",)},
    fetch=fetch,
    parse=parse,
    deadline_seconds=45.0,
)
