"""Vast.ai's asks: a market of hosts, prices per whole offer.

The cheapest ask is two to three times below what one can really start, so an offer here is the lower quartile of the
asks of reliable, verified, free hosts, with their number.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import quantiles
from typing import Any

from integrations.net import Session
from integrations.prices.source import Keys, Left, Parsed, PriceSource, each, listed, price, row
from knowledge.price_rules import Observation
from knowledge.types import Billing

HOST, PATH = "console.vast.ai", "/api/v0/bundles/"
CARDS = (
    "RTX 3060", "RTX 3090", "RTX 4090", "RTX 5090", "RTX A5000", "RTX A6000", "RTX 6000Ada", "RTX PRO 6000 S",
    "RTX PRO 6000 WS", "L4", "L40", "L40S", "A10", "A40", "A100 PCIE", "A100 SXM4", "H100 PCIE", "H100 SXM",
    "H100 NVL", "H200", "H200 NVL", "B200", "B300", "MI300X", "Tesla V100",
)  # fmt: skip
MIN_RELIABILITY, DISK_GIB, LIMIT = 0.98, 100, 1000


def fetch(session: Session, keys: Keys) -> Any:
    """Up to 1,000 asks of reliable, free hosts for the cards above, cheapest first; the key is optional. Raises
    SourceError as ``Session`` does.
    """
    key = keys.get("VAST_API_KEY", "").strip()
    query = {
        "verified": {"eq": True},
        "rentable": {"eq": True},
        "rented": {"eq": False},
        "gpu_name": {"in": list(CARDS)},
        "reliability2": {"gte": MIN_RELIABILITY},
        "type": "on-demand",
        "order": [["dph_total", "asc"]],
        "limit": LIMIT,
        "allocated_storage": DISK_GIB,
    }
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return session.json(HOST, PATH, method="POST", body=query, headers=headers)


def parse(body: Any, day: str) -> Parsed:
    """The lower quartile, USD per GPU-hour, of the asks of each card, on demand and as a bid, with their number as a
    warning. Raises SourceError("drift") for another shape.
    """
    asks = each(listed(body, "offers"), lambda item: _read(item, day), "Vast.ai")
    groups: dict[tuple[str, Billing], list[Observation]] = defaultdict(list)
    for ask in asks.rows:
        groups[(ask.gpu, ask.billing)].append(ask)
    asks.rows = []
    for (gpu, billing), found in groups.items():
        usd = sorted(ask.usd_per_gpu_hour for ask in found)
        quarter = quantiles(usd, n=4, method="inclusive")[0] if len(usd) > 1 else usd[0]
        note = f"lower quartile of {len(usd)} asks of reliable hosts"
        asks.rows.append(
            row(
                "live-vast",
                "vastai",
                gpu,
                1,
                day,
                instance_type="asks",
                usd_per_gpu_hour=quarter,
                billing=billing,
                gpu_memory_gb=found[0].gpu_memory_gb,
                warnings=(note,),
            )
        )
    return asks


def _read(item: dict[str, Any], day: str) -> list[Observation]:
    if not item["rentable"] or item["rented"]:
        raise Left("taken")
    if float(item["reliability2"]) < MIN_RELIABILITY or item["verification"] != "verified":
        raise Left("host not reliable or not verified")
    gpu, n = str(item["gpu_name"]).replace("6000Ada", "6000 Ada"), int(item["num_gpus"])
    if float(item.get("gpu_frac") or 1) > 1 or n < 1:
        raise Left("no whole GPU")
    memory = float(item["gpu_ram"]) / 1024  # MB in replies
    ask = row("live-vast", "vastai", gpu, n, day, instance_type="ask", usd_per_hour=price(item["dph_total"]),
              billing="community", gpu_memory_gb=round(memory, 1), region=item.get("geolocation"))  # fmt: skip
    out = [ask]
    if item.get("min_bid"):
        bid = row("live-vast", "vastai", gpu, n, day, instance_type="bid", usd_per_hour=price(item["min_bid"]),
                  billing="spot", gpu_memory_gb=round(memory, 1))  # fmt: skip
        out.append(bid)
    return out


SOURCE = PriceSource(
    id="live-vast", title="Vast.ai asks", hosts={HOST: (r"/api/v0/bundles/",)}, fetch=fetch, parse=parse
)
