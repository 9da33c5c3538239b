"""RunPod's GPU types over GraphQL: a public query, all prices per GPU; 0 or null means not offered there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from integrations.net import Session, SourceError
from integrations.prices.source import Keys, Left, Parsed, PriceSource, each, listed, price, row
from knowledge.price_rules import Observation
from knowledge.types import Billing

HOST, PATH = "api.runpod.io", "/graphql"
QUERY = (
    "query { gpuTypes { id displayName memoryInGb secureCloud communityCloud securePrice communityPrice"
    " secureSpotPrice communitySpotPrice oneYearPrice lowestPrice(input: {gpuCount: 1}) { stockStatus } } }"
)
PRICES: tuple[tuple[str, Billing], ...] = (
    ("securePrice", "secure"),
    ("communityPrice", "community"),
    ("secureSpotPrice", "spot"),
    ("communitySpotPrice", "spot"),
    ("oneYearPrice", "reserved_1y"),
)


def fetch(session: Session, keys: Keys) -> Any:
    """One query; the key is optional and sent where there is one. Raises SourceError as ``Session`` does."""
    key = keys.get("RUNPOD_API_KEY", "").strip()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return session.json(HOST, PATH, method="POST", body={"query": QUERY}, headers=headers)


def parse(body: Any, day: str) -> Parsed:
    """Secure, community, spot and one-year USD per GPU-hour of cards in stock. Raises SourceError("drift") where the
    query was refused and for another shape.
    """
    if isinstance(body, dict) and body.get("errors") and not body.get("data"):
        raise SourceError("drift", "the query was refused: " + str(body["errors"])[:80])
    return each(listed(body, "data", "gpuTypes"), lambda item: _read(item, day), "RunPod")


def _read(item: dict[str, Any], day: str) -> Iterator[Observation]:
    name, memory = item["displayName"], float(item["memoryInGb"])
    if item["lowestPrice"] is None or item["lowestPrice"]["stockStatus"] is None:
        raise Left("sold out")
    found = [(item[field], billing, field) for field, billing in PRICES]
    if not any(value for value, _billing, _field in found):
        raise Left("no price")
    for value, billing, field in found:
        if value:
            yield row(
                "live-runpod", "runpod", f"{name} {memory:g}GB", 1, day, instance_type=f"{item['id']} {field}",
                usd_per_gpu_hour=price(value), billing=billing, gpu_memory_gb=memory,
            )  # fmt: skip


SOURCE = PriceSource(id="live-runpod", title="RunPod GPU types", hosts={HOST: (r"/graphql",)}, fetch=fetch, parse=parse)
