"""Prime Intellect, a reseller: with a key, paged by number, prices per item with all its GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from integrations.net import Session
from integrations.prices.source import Keys, Left, Parsed, PriceSource, each, key_of, listed, price, row
from knowledge.errors import UnknownName
from knowledge.price_rules import Observation
from knowledge.providers import find_provider

HOST, PATH = "api.primeintellect.ai", "/api/v1/availability/gpus"
PAGE_SIZE, MAX_PAGES = 100, 10


def fetch(session: Session, keys: Keys) -> list[Any]:
    """Every page of what is available, up to ``MAX_PAGES``. Raises SourceError: "no_key" without a key, else as
    ``Session`` does.
    """
    headers = {"Authorization": f"Bearer {key_of(keys, 'PRIME_INTELLECT_API_KEY')}"}
    pages: list[Any] = []
    while len(pages) < MAX_PAGES:
        page = session.json(HOST, PATH, params={"page": len(pages) + 1, "page_size": PAGE_SIZE}, headers=headers)
        pages.append(page)
        if not isinstance(page, dict) or len(pages) * PAGE_SIZE >= int(page.get("totalCount") or 0):
            break
    return pages


def parse(pages: list[Any], day: str) -> Parsed:
    """USD per hour of what is in stock, under the name of the cloud it runs at. Raises SourceError("drift") for another
    shape.
    """
    items = [item for page in pages for item in listed(page, "items")]
    return each(items, lambda item: _read(item, day), "Prime Intellect")


def _read(item: dict[str, Any], day: str) -> Iterator[Observation]:
    if item["stockStatus"] in (None, "Unavailable"):
        raise Left("sold out")
    prices = item["prices"]
    if prices["currency"] != "USD":
        raise Left("not in USD")
    try:
        provider = find_provider(str(item["provider"])).id
    except UnknownName:
        raise Left("not a provider that we hold") from None
    usd = price(prices.get("communityPrice") or prices["onDemand"])
    gpu = f"{str(item['gpuType']).replace('_', ' ')} {item.get('socket') or ''}".strip()
    yield row(
        "live-primeintellect", provider, gpu, int(item["gpuCount"]), day,
        instance_type=f"primeintellect {item['cloudId']}", usd_per_hour=usd, region=item["region"],
        billing="spot" if item.get("isSpot") else "on_demand", gpu_memory_gb=float(item["gpuMemory"]),
        warnings=("sold through Prime Intellect",),
    )  # fmt: skip


SOURCE = PriceSource(
    id="live-primeintellect",
    title="Prime Intellect availability",
    hosts={HOST: (r"/api/v1/availability/gpus",)},
    fetch=fetch,
    parse=parse,
    keys=("PRIME_INTELLECT_API_KEY",),
)
