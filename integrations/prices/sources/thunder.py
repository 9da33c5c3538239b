"""Thunder Compute: one keyless reply of card names to USD per GPU-hour."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from integrations.net import Session, SourceError
from integrations.prices.source import Keys, Left, Parsed, PriceSource, each, price, row
from knowledge.price_rules import Observation

HOST, PATH = "api.thundercompute.com:8443", "/v1/pricing"
CARDS = {"t4": "T4", "a100": "A100 SXM 40GB", "a100xl": "A100 SXM 80GB", "h100": "H100 PCIe", "a6000": "RTX A6000",
         "l40s": "L40S", "l40": "L40"}  # fmt: skip


def fetch(session: Session, keys: Keys) -> Any:
    """The whole reply, one request; no key is needed. Raises SourceError as ``Session`` does."""
    return session.json(HOST, PATH)


def parse(body: Any, day: str) -> Parsed:
    """USD per GPU-hour by card; other entries are host parts and left out. Raises SourceError("drift") for another
    shape.
    """
    prices = body.get("pricing") if isinstance(body, dict) else None
    if not isinstance(prices, dict):
        raise SourceError("drift", "the reply has no pricing table")

    def read(item: tuple[str, Any]) -> Iterator[Observation]:
        card = CARDS.get(item[0].casefold())
        if card is None:
            raise Left("not a card")
        yield row("live-thunder", "thundercompute", card, 1, day, instance_type=item[0],
                  usd_per_gpu_hour=price(item[1]))  # fmt: skip

    return each(list(prices.items()), read, "Thunder Compute")


SOURCE = PriceSource(
    id="live-thunder", title="Thunder Compute prices", hosts={HOST: (r"/v1/pricing",)}, fetch=fetch, parse=parse
)
