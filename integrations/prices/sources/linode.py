"""Akamai (Linode) instance types: keyless, paged by number, whole-machine prices; the label names the card."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from integrations.net import Session
from integrations.prices.source import Keys, Left, Parsed, PriceSource, each, listed, price, row
from knowledge.price_rules import Observation

HOST, PATH = "api.linode.com", "/v4/linode/types"
MAX_PAGES = 10
# The first GPU plans ("Dedicated 32GB + RTX6000 GPU x1") hold the Turing card; later ones name the Ada generation.
CARDS = {"RTX6000": "Quadro RTX 6000", "RTX4000 Ada": "RTX 4000 Ada"}


def fetch(session: Session, keys: Keys) -> list[Any]:
    """Every page of types, up to ``MAX_PAGES``; no key is needed. Raises SourceError as ``Session`` does."""
    pages: list[Any] = []
    while len(pages) < MAX_PAGES:
        page = session.json(HOST, PATH, params={"page": len(pages) + 1, "page_size": 500})
        pages.append(page)
        if not isinstance(page, dict) or len(pages) >= int(page.get("pages") or 1):
            break
    return pages


def parse(pages: list[Any], day: str) -> Parsed:
    """On-demand USD per machine-hour of GPU plans whose card we hold. Raises SourceError("drift") for another shape."""
    return each([one for page in pages for one in listed(page, "data")], lambda item: _read(item, day), "Linode")


def _read(item: dict[str, Any], day: str) -> Iterator[Observation]:
    n = int(item["gpus"])
    if n == 0:
        raise Left("no GPU")
    label = str(item["label"])
    card = next((card for word, card in CARDS.items() if re.search(rf"{word}\b", label)), None)
    if card is None:
        raise Left("not a card that we hold")
    yield row(
        "live-linode", "akamai", card, n, day, instance_type=item["id"], usd_per_hour=price(item["price"]["hourly"]),
        vcpus=float(item["vcpus"]), ram_gb=float(item["memory"]) / 1024,
    )  # fmt: skip


SOURCE = PriceSource(
    id="live-linode", title="Akamai (Linode) types", hosts={HOST: (r"/v4/linode/types",)}, fetch=fetch, parse=parse
)
