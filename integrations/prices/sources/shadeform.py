"""Shadeform, a reseller of twenty clouds: with a key, one reply, integer cents per machine and hour."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from integrations.net import Session
from integrations.prices.source import Keys, Left, Parsed, PriceSource, each, key_of, listed, price, row
from knowledge.errors import UnknownName
from knowledge.price_rules import Observation
from knowledge.providers import find_provider

HOST, PATH = "api.shadeform.ai", "/v1/instances/types"


def fetch(session: Session, keys: Keys) -> Any:
    """Every type, in stock or not, one request. Raises SourceError: "no_key" without a key, else as
    ``Session`` does.
    """
    return session.json(HOST, PATH, headers={"X-API-KEY": key_of(keys, "SHADEFORM_API_KEY")})


def parse(body: Any, day: str) -> Parsed:
    """USD per machine-hour in the regions that have machines, under the cloud's own name. Raises SourceError("drift")
    for another shape.
    """
    return each(listed(body, "instance_types"), lambda item: _read(item, day), "Shadeform")


def _read(item: dict[str, Any], day: str) -> Iterator[Observation]:
    shape = item["configuration"]
    n = int(shape["num_gpus"])
    if n == 0:
        raise Left("no GPU")
    try:
        provider = find_provider(str(item["cloud"])).id
    except UnknownName:
        raise Left("not a provider that we hold") from None
    free = [one["region"] for one in item["availability"] if one["available"]]
    if not free:
        raise Left("sold out")
    form = str(shape.get("interconnect") or "")
    gpu = f"{shape['gpu_type']} {form if form.startswith(('sxm', 'pcie', 'nvl')) else ''}".replace("_", " ").strip()
    memory = float(shape["vram_per_gpu_in_gb"])
    for region in free:
        yield row(
            "live-shadeform", provider, f"{gpu} {memory:g}GB" if memory else gpu, n, day,
            instance_type=f"shadeform {item['shade_instance_type']}", usd_per_hour=price(item["hourly_price"]) / 100,
            region=region, gpu_memory_gb=memory or None, vcpus=float(shape["vcpus"]),
            ram_gb=float(shape["memory_in_gb"]), warnings=("sold through Shadeform",),
        )  # fmt: skip


SOURCE = PriceSource(
    id="live-shadeform",
    title="Shadeform instance types",
    hosts={HOST: (r"/v1/instances/types",)},
    fetch=fetch,
    parse=parse,
    keys=("SHADEFORM_API_KEY",),
)
