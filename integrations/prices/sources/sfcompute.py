"""SF Compute: with a token, a quote for a block of 8-GPU nodes; cents for the whole block, null when none is sold."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from integrations.net import Session
from integrations.prices.source import Keys, Left, Parsed, PriceSource, each, key_of, listed, price, row
from knowledge.price_rules import Observation

HOST, PATH = "api.sfcompute.com", "/v0/quote"
GPUS_A_NODE = 8
KINDS = {"h100i": "H100 SXM", "h200i": "H200 SXM", "b200": "B200"}  # "i": with InfiniBand


def fetch(session: Session, keys: Keys) -> list[Any]:
    """One quote a kind: one node for a day, from now. Raises SourceError: "no_key" without a token, else as ``Session``
    does.
    """
    headers = {"Authorization": f"Bearer {key_of(keys, 'SFCOMPUTE_API_KEY')}"}
    asked = {"side": "buy", "quantity": 1, "min_start_date": "NOW", "max_start_date": "NOW",
             "min_duration": 86400, "max_duration": 86400}  # fmt: skip
    return [session.json(HOST, PATH, params={**asked, "instance_type": kind}, headers=headers) for kind in KINDS]


def parse(pages: list[Any], day: str) -> Parsed:
    """USD per GPU-hour of each quoted block, cents over its GPUs and hours. Raises SourceError("drift") for another
    shape.
    """
    return each(listed(pages), lambda page: _read(page, day), "SF Compute")


def _read(page: dict[str, Any], day: str) -> Iterator[Observation]:
    quote = page["quote"]
    if quote is None:
        raise Left("sold out")
    starts, ends = (datetime.fromisoformat(str(quote[name]).replace("Z", "+00:00")) for name in ("start_at", "end_at"))
    hours = (ends - starts).total_seconds() / 3600
    nodes = int(quote["quantity"])
    if hours <= 0 or nodes <= 0:
        raise Left("an empty block")
    usd = price(quote["price"]) / 100 / hours / nodes
    yield row(
        "live-sfcompute", "sfcompute", KINDS[quote["instance_type"]], GPUS_A_NODE, day,
        instance_type=quote["instance_type"], usd_per_hour=usd, warnings=("quote for one node and one day",),
    )  # fmt: skip


SOURCE = PriceSource(
    id="live-sfcompute",
    title="SF Compute quotes",
    hosts={HOST: (r"/v0/quote",)},
    fetch=fetch,
    parse=parse,
    keys=("SFCOMPUTE_API_KEY",),
)
