"""Hyperstack: with a key, a price book per GPU and hour, joined with the flavours that are in stock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from integrations.net import Session
from integrations.prices.source import Keys, Left, Parsed, PriceSource, each, key_of, listed, price, row
from knowledge.price_rules import Observation

HOST = "infrahub-api.nexgencloud.com"


def fetch(session: Session, keys: Keys) -> Any:
    """Price book and flavours in stock, two requests. Raises SourceError: "no_key" without a key, else as ``Session``
    does.
    """
    headers = {"api_key": key_of(keys, "HYPERSTACK_API_KEY")}
    return {
        "pricebook": session.json(HOST, "/v1/pricebook", headers=headers),
        "flavors": session.json(HOST, "/v1/core/flavors", headers=headers),
    }


def parse(body: Any, day: str) -> Parsed:
    """One offer a flavour in stock, USD at its card's price per GPU-hour; spot flavours at the spot price. Raises
    SourceError("drift") for another shape.
    """
    prices = {
        str(item["name"]): item["value"] for item in listed(body, "pricebook") if "name" in item and "value" in item
    }
    groups = listed(body, "flavors", "data")
    flavours = [(group, one) for group in groups for one in group.get("flavors", ())]

    def read(pair: tuple[dict[str, Any], dict[str, Any]]) -> Iterator[Observation]:
        group, one = pair
        if not one["gpu_count"]:
            raise Left("no GPU")
        if not one["stock_available"]:
            raise Left("sold out")
        spot = str(one["name"]).endswith("-spot")
        name = str(one["gpu"])
        usd = prices[f"{name}-spot" if spot else name]
        yield row(
            "live-hyperstack", "hyperstack", name, int(one["gpu_count"]), day, instance_type=one["name"],
            usd_per_gpu_hour=price(usd), region=group["region_name"], billing="spot" if spot else "on_demand",
            vcpus=float(one["cpu"]), ram_gb=float(one["ram"]),
        )  # fmt: skip

    return each(flavours, read, "Hyperstack")


SOURCE = PriceSource(
    id="live-hyperstack",
    title="Hyperstack price book",
    hosts={HOST: (r"/v1/pricebook", r"/v1/core/flavors")},
    fetch=fetch,
    parse=parse,
    keys=("HYPERSTACK_API_KEY",),
)
