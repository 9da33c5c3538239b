"""Vultr's GPU plans: keyless, paged by cursor.

A plan states the memory of all its GPUs together and no count, so the count is that memory over the card's; plans
with less than a card's memory are slices. No location left means sold out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from integrations.net import Session
from integrations.prices.source import Keys, Left, Parsed, PriceSource, each, listed, price, row
from knowledge.errors import InputProblem
from knowledge.gpus import find_gpu
from knowledge.price_rules import Observation

HOST, PATH = "api.vultr.com", "/v2/plans"
MAX_PAGES = 10


def fetch(session: Session, keys: Keys) -> list[Any]:
    """Every page of cloud GPU plans, up to ``MAX_PAGES``; no key is needed. Raises SourceError as ``Session`` does."""
    pages: list[Any] = []
    cursor = ""
    while len(pages) < MAX_PAGES:
        page = session.json(
            HOST, PATH, params={"type": "vcg", "per_page": 500, **({"cursor": cursor} if cursor else {})}
        )
        pages.append(page)
        links = page.get("meta", {}).get("links", {}) if isinstance(page, dict) else {}
        cursor = str(links.get("next") or "")
        if not cursor:
            break
    return pages


def parse(pages: list[Any], day: str) -> Parsed:
    """On-demand and preemptible USD per machine-hour of plans with whole GPUs. Raises SourceError("drift") for another
    shape.
    """
    plans = [plan for page in pages for plan in listed(page, "plans")]
    return each(plans, lambda plan: _read(plan, day), "Vultr")


def _read(plan: dict[str, Any], day: str) -> Iterator[Observation]:
    if not plan["locations"]:
        raise Left("sold out")
    name, memory = str(plan["gpu_type"]), float(plan["gpu_vram_gb"])
    if memory <= 0:
        raise Left("no GPU")
    try:
        card = find_gpu(name.replace("NVIDIA_", "")).value
    except InputProblem:
        raise Left("not a card that we hold") from None
    n = round(memory / card.marketed_memory_gb, 2)
    if n < 0.95:
        raise Left("a slice of a GPU")
    fields = {"instance_type": plan["id"], "ram_gb": float(plan["ram"]) / 1024, "vcpus": float(plan["vcpu_count"])}
    if plan.get("deploy_ondemand", True):
        usd = price(plan["hourly_cost"])
        yield row("live-vultr", "vultr", name.replace("_", " "), round(n), day, usd_per_hour=usd, **fields)
    if plan.get("deploy_preemptible") and plan.get("hourly_cost_preemptible"):
        usd = price(plan["hourly_cost_preemptible"])
        gpu = name.replace("_", " ")
        yield row("live-vultr", "vultr", gpu, round(n), day, usd_per_hour=usd, billing="spot", **fields)


SOURCE = PriceSource(id="live-vultr", title="Vultr plans", hosts={HOST: (r"/v2/plans",)}, fetch=fetch, parse=parse)
