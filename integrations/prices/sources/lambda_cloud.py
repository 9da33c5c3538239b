"""Lambda's instance types: with a key, one reply, integer cents per machine and hour; no region left means sold out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from integrations.net import Session, SourceError
from integrations.prices.source import Keys, Left, Parsed, PriceSource, each, key_of, price, row
from knowledge.price_rules import Observation

HOST, PATH = "cloud.lambda.ai", "/api/v1/instance-types"


def fetch(session: Session, keys: Keys) -> Any:
    """The whole reply, one request. Raises SourceError: "no_key" without a key, else as ``Session`` does."""
    return session.json(HOST, PATH, headers={"Authorization": f"Bearer {key_of(keys, 'LAMBDA_API_KEY')}"})


def parse(body: Any, day: str) -> Parsed:
    """On-demand USD per machine-hour in each region that has machines left. Raises SourceError("drift") for another
    shape.
    """
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, dict):
        raise SourceError("drift", "the reply has no data")
    return each(list(data.values()), lambda item: _read(item, day), "Lambda")


def _read(item: dict[str, Any], day: str) -> Iterator[Observation]:
    kind, regions = item["instance_type"], item["regions_with_capacity_available"]
    n = int(kind["specs"]["gpus"])
    if n == 0:
        raise Left("no GPU")
    if not regions:
        raise Left("sold out")
    for region in regions:
        yield row(
            "live-lambda", "lambda", kind["gpu_description"], n, day, instance_type=kind["name"],
            usd_per_hour=price(kind["price_cents_per_hour"]) / 100, region=region["name"],
            vcpus=float(kind["specs"]["vcpus"]), ram_gb=float(kind["specs"]["memory_gib"]),
        )  # fmt: skip


SOURCE = PriceSource(
    id="live-lambda",
    title="Lambda instance types",
    hosts={HOST: (r"/api/v1/instance-types",)},
    fetch=fetch,
    parse=parse,
    keys=("LAMBDA_API_KEY",),
)
