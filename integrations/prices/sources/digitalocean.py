"""DigitalOcean's sizes: with a token, paged by links; ``vram.amount`` is that of all GPUs together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

from integrations.net import Session
from integrations.prices.source import Keys, Left, Parsed, PriceSource, each, key_of, listed, price, row
from knowledge.price_rules import Observation

HOST, PATH = "api.digitalocean.com", "/v2/sizes"
MAX_PAGES = 10
# Their H100 and H200 droplets are cut from HGX boards (DigitalOcean GPU droplet documentation).
CARDS = {
    "nvidia_h100": "H100 SXM", "nvidia_h200": "H200 SXM", "nvidia_b300": "B300", "nvidia_l40s": "L40S",
    "nvidia_rtx4000_ada": "RTX 4000 Ada", "nvidia_rtx6000_ada": "RTX 6000 Ada", "amd_mi300x": "MI300X",
    "amd_mi325x": "MI325X", "amd_mi350x": "MI350X",
}  # fmt: skip


def fetch(session: Session, keys: Keys) -> list[Any]:
    """Every page of sizes, up to ``MAX_PAGES``. Raises SourceError: "no_key" without a token, else as
    ``Session`` does.
    """
    headers = {"Authorization": f"Bearer {key_of(keys, 'DIGITALOCEAN_TOKEN')}"}
    pages: list[Any] = []
    number = "1"
    while number and len(pages) < MAX_PAGES:
        page = session.json(HOST, PATH, params={"per_page": 200, "page": number}, headers=headers)
        pages.append(page)
        link = page.get("links", {}).get("pages", {}).get("next", "") if isinstance(page, dict) else ""
        number = parse_qs(urlsplit(str(link)).query).get("page", [""])[0]
    return pages


def parse(pages: list[Any], day: str) -> Parsed:
    """On-demand USD per machine-hour of GPU sizes with a region left. Raises SourceError("drift") for another shape."""
    return each([one for page in pages for one in listed(page, "sizes")], lambda item: _read(item, day), "DigitalOcean")


def _read(item: dict[str, Any], day: str) -> Iterator[Observation]:
    info = item.get("gpu_info")
    if not info:
        if str(item["slug"]).startswith("gpu-"):
            raise KeyError("gpu_info")
        raise Left("no GPU")
    if not item["available"] or not item["regions"]:
        raise Left("sold out")
    card = CARDS.get(info["model"])
    if card is None:
        raise Left("not a card that we hold")
    n = int(info["count"])
    for region in item["regions"]:
        yield row(
            "live-digitalocean", "digitalocean", card, n, day, instance_type=item["slug"],
            usd_per_hour=price(item["price_hourly"]), region=region, gpu_memory_gb=float(info["vram"]["amount"]) / n,
            vcpus=float(item["vcpus"]), ram_gb=float(item["memory"]) / 1024,
        )  # fmt: skip


SOURCE = PriceSource(
    id="live-digitalocean",
    title="DigitalOcean sizes",
    hosts={HOST: (r"/v2/sizes",)},
    fetch=fetch,
    parse=parse,
    keys=("DIGITALOCEAN_TOKEN",),
)
