"""TensorDock: with a token, one reply; the price is the GPU alone, its vCPUs, memory and disk come on top."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from integrations.net import Session
from integrations.prices.source import Keys, Left, Parsed, PriceSource, each, key_of, listed, price, row
from knowledge.price_rules import Observation

HOST, PATH = "dashboard.tensordock.com", "/api/v2/locations"
VCPUS_A_GPU, RAM_GB_A_GPU, DISK_GB = 8, 32, 100  # the smallest host that trains on one card; the disk is their minimum


def fetch(session: Session, keys: Keys) -> Any:
    """Every location, one request. Raises SourceError: "no_key" without a token, else as ``Session`` does."""
    return session.json(HOST, PATH, headers={"Authorization": f"Bearer {key_of(keys, 'TENSORDOCK_API_KEY')}"})


def parse(body: Any, day: str) -> Parsed:
    """USD per hour of one GPU with a small host, by location. Raises SourceError("drift") for another shape."""
    places = [(place, gpu) for place in listed(body, "data", "locations") for gpu in place.get("gpus", ())]
    return each(places, lambda pair: _read(*pair, day), "TensorDock")


def _read(place: dict[str, Any], gpu: dict[str, Any], day: str) -> Iterator[Observation]:
    if not gpu["max_count"]:
        raise Left("sold out")
    parts = gpu["pricing"]
    host = VCPUS_A_GPU * float(parts["per_vcpu_hr"]) + RAM_GB_A_GPU * float(parts["per_gb_ram_hr"])
    host += DISK_GB * float(parts["per_gb_storage_hr"])
    yield row(
        "live-tensordock", "tensordock", gpu["displayName"], 1, day, instance_type=gpu["v0Name"],
        usd_per_hour=price(gpu["price_per_hr"]) + host, region=f"{place['city']}, {place['country']}",
        vcpus=VCPUS_A_GPU, ram_gb=RAM_GB_A_GPU, warnings=("with a host of 8 vCPUs, 32 GB and 100 GB of disk",),
    )  # fmt: skip


SOURCE = PriceSource(
    id="live-tensordock",
    title="TensorDock locations",
    hosts={HOST: (r"/api/v2/locations",)},
    fetch=fetch,
    parse=parse,
    keys=("TENSORDOCK_API_KEY",),
)
