"""Google's billing catalogue: with a free API key, paged; prices are per component and are put together here.

A machine = GPU x count + vCPU x vCPUs + RAM x GiB, each its own SKU by region and usage type. A machine whose host
parts are not all found is left out rather than quoted without them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from integrations.net import Session, SourceError
from integrations.prices.source import Keys, Left, Parsed, PriceSource, each, key_of, listed, price, row
from knowledge.instances import all_instances
from knowledge.price_rules import Observation
from knowledge.types import Billing, Instance

HOST, PATH = "cloudbilling.googleapis.com", "/v1/services/6F81-5844-456A/skus"
MAX_PAGES = 40
USAGE: dict[str, Billing] = {"OnDemand": "on_demand", "Preemptible": "spot", "Commit1Yr": "reserved_1y",
                             "Commit3Yr": "reserved_3y"}  # fmt: skip
# The card's words in a GPU SKU's description, for the machine families that we hold.
GPU_WORDS = {
    "A100-SXM4-40GB": r"A100 (?:40GB )?GPU|A100 GPU", "A100-SXM4-80GB": r"A100 80GB GPU", "L4": r"\bL4 GPU",
    "H100-SXM5": r"H100 80GB (?:Plus |Mega )?GPU", "H200-SXM": r"H200 141GB GPU", "B200-SXM": r"B200 GPU",
    "RTX-PRO-6000-Blackwell-Server": r"RTX PRO 6000",
}  # fmt: skip
_HOST = re.compile(r"\b(A2|A3|A3 Ultra|A4|G2|G4) Instance (Core|Ram)\b", re.IGNORECASE)
Parts = dict[tuple[str, str, str], float]  # (part, region, usage) -> USD an hour


def fetch(session: Session, keys: Keys) -> list[Any]:
    """Every page of Compute Engine's SKUs, up to ``MAX_PAGES``. Raises SourceError: "no_key" without a key, else as
    ``Session`` does.
    """
    headers = {"X-Goog-Api-Key": key_of(keys, "GCP_BILLING_API_KEY")}
    pages: list[Any] = []
    token = ""
    while len(pages) < MAX_PAGES:
        params = {"pageSize": 5000, "currencyCode": "USD", **({"pageToken": token} if token else {})}
        page = session.json(HOST, PATH, params=params, headers=headers)
        pages.append(page)
        token = str(page.get("nextPageToken") or "") if isinstance(page, dict) else ""
        if not token:
            break
    return pages


def parse(pages: list[Any], day: str) -> Parsed:
    """USD per hour of whole machines by region and usage type, put together from their parts; a machine with a part
    missing is left out. Raises SourceError("drift") when no SKU has the expected fields.
    """
    skus = [sku for page in pages for sku in listed(page, "skus")]
    parts: Parts = {}
    read = each(skus, lambda sku: _part(sku, parts), "GCP")
    machines = each(_wanted(parts), lambda want: _machine(*want, parts, day), "GCP machines")
    machines.dropped.update(read.dropped)
    if skus and not parts and read.dropped["malformed"] == len(skus):
        raise SourceError("drift", "GCP: no SKU has the expected fields")
    return machines


def _part(sku: dict[str, Any], parts: Parts) -> list[Observation]:
    words, usage = sku["description"], sku["category"]["usageType"]
    name = next((f"gpu {gpu}" for gpu, pattern in GPU_WORDS.items() if re.search(pattern, words)), None)
    host = _HOST.search(words)
    if host:
        name = f"{host[2].casefold()} {host[1].casefold()}"
    if name is None or usage not in USAGE or "Sole Tenancy" in words or "DWS" in words:
        raise Left("not a part of a GPU machine")
    expression = sku["pricingInfo"][-1]["pricingExpression"]
    if expression["usageUnit"] not in ("h", "GiBy.h"):
        raise Left("not priced by the hour")
    unit = expression["tieredRates"][-1]["unitPrice"]
    if unit["currencyCode"] != "USD":
        raise Left("not in USD")
    usd = price(int(unit["units"]) + int(unit["nanos"]) / 1e9)
    for region in sku["serviceRegions"]:
        parts.setdefault((name, region, usage), usd)
    return []


def _wanted(parts: Parts) -> list[tuple[Instance, str, str]]:
    places = defaultdict(set)
    for name, region, usage in parts:
        if name.startswith("gpu "):
            places[name.removeprefix("gpu ")].add((region, usage))
    machines = [m for m in all_instances() if m.provider == "GCP"]
    return [(m, region, usage) for m in machines for region, usage in sorted(places[m.gpu_id])]


def _machine(held: Instance, region: str, usage: str, parts: Parts, day: str) -> Iterator[Observation]:
    family = held.instance_type.split("-")[0]
    family = "a3 ultra" if held.instance_type.startswith("a3-ultra") else family
    host = [parts.get((f"{part} {family}", region, usage)) for part in ("core", "ram")]
    if held.vcpus is None or held.ram_bytes is None or None in host:
        raise Left("host parts not found")
    core, ram = (float(usd or 0) for usd in host)
    usd = parts[(f"gpu {held.gpu_id}", region, usage)] * held.n_gpus + core * held.vcpus + ram * held.ram_bytes / 2**30
    yield row(
        "live-gcp", "gcp", held.gpu_id, held.n_gpus, day, instance_type=held.instance_type, usd_per_hour=usd,
        region=region, billing=USAGE[usage], vcpus=held.vcpus, locator="GPU, vCPU and RAM SKUs",
    )  # fmt: skip


SOURCE = PriceSource(
    id="live-gcp",
    title="Google Cloud billing catalogue",
    hosts={HOST: (r"/v1/services/6F81-5844-456A/skus",)},
    fetch=fetch,
    parse=parse,
    keys=("GCP_BILLING_API_KEY",),
    deadline_seconds=45.0,
)
