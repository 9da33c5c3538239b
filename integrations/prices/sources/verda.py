"""Verda (formerly DataCrunch): instance types, keyless; whole-machine prices as text, memory of all GPUs together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from integrations.net import Session
from integrations.prices.source import Keys, Left, Parsed, PriceSource, each, listed, price, row
from knowledge.price_rules import Observation
from knowledge.types import Billing

HOST, PATH = "api.verda.com", "/v1/instance-types"


def fetch(session: Session, keys: Keys) -> Any:
    """The list, in USD: the default currency may be another. No key is needed. Raises SourceError as
    ``Session`` does.
    """
    return session.json(HOST, PATH, params={"currency": "usd"})


def parse(body: Any, day: str) -> Parsed:
    """On-demand and spot USD per machine-hour. Raises SourceError("drift") for another shape."""
    return each(listed(body), lambda item: _read(item, day), "Verda")


def _read(item: dict[str, Any], day: str) -> Iterator[Observation]:
    n = int(item["gpu"]["number_of_gpus"])
    if n == 0:
        raise Left("no GPU")
    if str(item["currency"]).casefold() != "usd":
        raise Left("not in USD")
    memory = float(item["gpu_memory"]["size_in_gigabytes"]) / n
    kinds: tuple[tuple[str, Billing], ...] = (("price_per_hour", "on_demand"), ("spot_price", "spot"))
    for field, billing in kinds:
        if field == "spot_price" and not item.get(field):
            continue
        yield row(
            "live-verda", "verda", item["name"], n, day, instance_type=item["instance_type"],
            usd_per_hour=price(item[field]), billing=billing, gpu_memory_gb=memory,
            ram_gb=float(item["memory"]["size_in_gigabytes"]),
        )  # fmt: skip


SOURCE = PriceSource(
    id="live-verda", title="Verda instance types", hosts={HOST: (r"/v1/instance-types",)}, fetch=fetch, parse=parse
)
