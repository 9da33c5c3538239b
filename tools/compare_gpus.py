"""``compare_gpus``: cards side by side, dense rates, and what a unit of each costs."""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from knowledge import prices
from knowledge.gpus import find_gpu
from knowledge.providers import find_provider
from knowledge.sources import all_sources
from knowledge.types import Gpu
from tools.errors import BadValue, MissingValue
from tools.prices import Summary, cheapest, median_usd_per_gpu_hour
from tools.registry import tool
from tools.result import Assumption, Column, Fact, SourceRef, Table, ToolResult, Warn
from tools.units import Unit

MAX_CARDS = 8
_RATES = ("fp32", "tf32", "bf16", "fp8", "fp4", "int8")


class CompareGpusInput(BaseModel):
    """The cards to compare."""

    model_config = ConfigDict(extra="forbid")

    gpus: list[str] | str = Field(description="One to eight cards: ['H100 SXM', 'A100 80GB'] or 'h100 vs a100'.")
    precision: str | None = Field(default=None, description="Rate to compare by: bf16 (default), fp8, fp4, tf32, fp32.")

    @field_validator("gpus", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return [
                part.strip()
                for part in re.split(r",|;|\bvs\b\.?|\bversus\b|\bagainst\b|\band\b|\bor\b", value)
                if part.strip()
            ]
        return value


class GpuRow(BaseModel):
    """One card in base units."""

    gpu: str
    memory_bytes: float = Field(json_schema_extra={"unit": "B"})
    bandwidth_bytes_per_s: float = Field(json_schema_extra={"unit": "B/s"})
    dense_flops: dict[str, float | None] = Field(json_schema_extra={"unit": "FLOP/s"})
    nvlink_bytes_per_s: float | None = Field(default=None, json_schema_extra={"unit": "B/s"})
    tdp_watts: float | None = Field(default=None, json_schema_extra={"unit": "W"})
    usd_per_gpu_hour: float | None = Field(default=None, json_schema_extra={"unit": "USD/GPU-h"})
    usd_per_tflop_hour: float | None = Field(default=None, json_schema_extra={"unit": "USD/TFLOP-h"})
    usd_per_gb_hour: float | None = Field(default=None, json_schema_extra={"unit": "USD/GB-h"})


class CompareGpusResult(ToolResult):
    """Cards side by side."""

    gpus: list[GpuRow] = Field(default_factory=list)


@tool("compare_gpus", examples=[{"gpus": ["H100 SXM", "A100 80GB"]}, {"gpus": "4090 vs 3090"}])
def compare_gpus(given: CompareGpusInput) -> CompareGpusResult:
    """Specifications of GPUs side by side: memory, bandwidth, dense rates, links, power, and price a unit.

    Rates are dense with fp32 accumulation, the rate that training sees, never the sparse headline. USD per
    TFLOP-hour = median on-demand price / dense rate in TFLOP/s; USD per GB-hour = the same / memory in GB; both
    at peak rates, so they rank cards and do not price a run.
    """
    cards, assumed = _cards(given)
    precision = _precision(given.precision, cards)
    result = CompareGpusResult(assumptions=assumed)
    for number, card in enumerate(cards):
        price = median_usd_per_gpu_hour(card.id)
        result.gpus.append(_row(card, precision, price))
        result.facts += _facts(card, precision, price, number)
    # The faster card is set against the others, so that people read "3 x the rate" rather than "a third".
    ranked = sorted(cards, key=lambda card: -(card.dense_flops[precision] or 0))
    ratios = _ratios(ranked, precision) if len(cards) >= 2 else []
    result.facts += ratios
    result.tables += [_table(result.gpus, precision)]
    result.charts.append(_chart(result.gpus, precision))
    result.verdict = _verdict(ranked, precision, result, {fact.id for fact in ratios})
    _notes(result, cards)
    return result


def _cards(given: CompareGpusInput) -> tuple[list[Gpu], list[Assumption]]:
    names = [name for name in given.gpus if name.strip()]
    if not names:
        raise MissingValue("missing_argument", "Name at least one GPU.", field="gpus", hint="E.g. ['H100', 'A100'].")
    if len(names) > MAX_CARDS:
        raise BadValue(
            "too_many", f"{len(names)} cards are too many to read side by side.", field="gpus",
            hint=f"At most {MAX_CARDS}.", candidates=[str(MAX_CARDS)],
        )  # fmt: skip
    cards: list[Gpu] = []
    assumed = []
    for name in names:
        match = find_gpu(name, "gpus")
        if match.value.id not in [card.id for card in cards]:
            cards.append(match.value)
            if match.note:
                assumed.append(
                    Assumption(name="gpus", value=match.value.id, why=match.note.rstrip("."), argument="gpus")
                )
    return cards, assumed


def _precision(asked: str | None, cards: list[Gpu]) -> str:
    if asked is None:
        has_bf16 = all(card.dense_flops["bf16"] for card in cards)
        return "bf16" if has_bf16 else "fp16" if all(card.dense_flops["fp16"] for card in cards) else "fp32"
    name = asked.casefold().strip()
    if name not in (*_RATES, "fp16"):
        raise BadValue(
            "not_a_choice", f"{asked[:20]!r} is not a rate I hold.", field="precision",
            hint="One of: bf16, fp16, fp8, fp4, tf32, fp32, int8.", candidates=["bf16", "fp8"],
        )  # fmt: skip
    return name


def _row(card: Gpu, precision: str, price: Summary | None) -> GpuRow:
    usd = price.usd_per_gpu_hour if price else None
    rate = card.dense_flops[precision]
    return GpuRow(
        gpu=card.id,
        memory_bytes=card.marketed_memory_gb * 1e9,
        bandwidth_bytes_per_s=card.bandwidth_bytes_per_s,
        dense_flops={name: card.dense_flops[name] for name in (*_RATES, "fp16")},
        nvlink_bytes_per_s=card.nvlink_bytes_per_s,
        tdp_watts=card.tdp_watts,
        usd_per_gpu_hour=usd,
        usd_per_tflop_hour=usd / (rate / 1e12) if usd and rate else None,
        usd_per_gb_hour=usd / card.marketed_memory_gb if usd else None,
    )


def _facts(card: Gpu, precision: str, price: Summary | None, number: int) -> list[Fact]:
    source = card.source_ids[0] if card.source_ids else card.source
    out: list[Fact] = []

    def add(name: str, value: float | None, unit: Unit, label: str, **more: Any) -> None:
        if value is not None:
            more = {"kind": "quoted", "basis": source, "as_of": card.as_of, **more}
            key = name if number == 0 else f"{name}_{number + 1}"
            out.append(
                Fact(id=key, name=name, value=value, unit=unit, label=f"{card.id}: {label}", about=[card.id], **more)
            )

    add("memory", card.marketed_memory_gb * 1e9, "B", "memory as sold")
    add("memory_usable", float(card.usable_bytes), "B", "memory a process can allocate", kind="modelled",
        basis="memory of the device less the driver's reserve of 1.5 %")  # fmt: skip
    add("memory_bandwidth", card.bandwidth_bytes_per_s or None, "B/s", "memory bandwidth")
    for rate in _RATES:
        add(f"{rate}_flops", card.dense_flops[rate], "FLOP/s", f"dense {rate} rate")
    if precision == "fp16":
        add("fp16_flops", card.dense_flops["fp16"], "FLOP/s", "dense fp16 rate")
    add("nvlink_bandwidth", card.nvlink_bytes_per_s, "B/s", "NVLink, one direction")
    add("tdp", card.tdp_watts, "W", "board power")
    if price:
        dated = {"kind": "price", "as_of": price.last_seen}
        words = f"median of {price.providers} providers' on-demand offers seen {price.first_seen} to {price.last_seen}"
        usd, rate_now = price.usd_per_gpu_hour, card.dense_flops[precision]
        add(
            "usd_per_gpu_hour",
            usd,
            "USD/GPU-h",
            "median on demand",
            basis=words,
            low=price.low,
            high=price.high,
            **dated,
        )
        if rate_now:
            add("usd_per_tflop_hour", usd / (rate_now / 1e12), "USD/TFLOP-h", f"per dense {precision} TFLOP-hour",
                basis=f"{usd:g} USD / {rate_now / 1e12:g} TFLOP/s", **dated)  # fmt: skip
        add("usd_per_gb_hour", usd / card.marketed_memory_gb, "USD/GB-h", "per GB of memory and hour",
            basis=f"{usd:g} USD / {card.marketed_memory_gb:g} GB", **dated)  # fmt: skip
    return out


def _ratios(cards: list[Gpu], precision: str) -> list[Fact]:
    """The fastest card over each other one."""
    first = cards[0]
    out = []
    for number, other in enumerate(cards[1:], 1):
        usd = [
            price.usd_per_gpu_hour if price else None for price in map(median_usd_per_gpu_hour, (first.id, other.id))
        ]
        pairs: tuple[tuple[str, float | None, float | None], ...] = (
            ("memory_ratio", first.marketed_memory_gb, other.marketed_memory_gb),
            ("bandwidth_ratio", first.bandwidth_bytes_per_s, other.bandwidth_bytes_per_s),
            (f"{precision}_ratio", first.dense_flops[precision], other.dense_flops[precision]),
            ("price_ratio", usd[0], usd[1]),
        )
        for name, above, below in pairs:
            if above and below:
                out.append(
                    Fact(id=name if number == 1 else f"{name}_{number}", name=name, value=above / below, unit="x",
                         kind="exact", label=f"{first.id} over {other.id}", basis=f"{above:g} / {below:g}",
                         about=[first.id, other.id])
                )  # fmt: skip
    return out


def _table(rows: list[GpuRow], precision: str) -> Table:
    columns = [
        Column(key="gpu", label="card"),
        Column(key="memory", label="memory", unit="B"),
        Column(key="bandwidth", label="bandwidth", unit="B/s"),
        Column(key="bf16", label=f"dense {precision}", unit="FLOP/s"),
        Column(key="fp8", label="dense fp8", unit="FLOP/s"),
        Column(key="nvlink", label="NVLink, one way", unit="B/s"),
        Column(key="tdp", label="power", unit="W"),
        Column(key="usd", label="median on demand", unit="USD/GPU-h"),
        Column(key="usd_tflop", label=f"per {precision} TFLOP-hour", unit="USD/TFLOP-h"),
        Column(key="usd_gb", label="per GB-hour", unit="USD/GB-h"),
    ]
    cells: list[list[float | int | str | bool | None]] = [
        [row.gpu, row.memory_bytes, row.bandwidth_bytes_per_s, row.dense_flops[precision], row.dense_flops["fp8"],
         row.nvlink_bytes_per_s, row.tdp_watts, row.usd_per_gpu_hour, row.usd_per_tflop_hour, row.usd_per_gb_hour]
        for row in rows
    ]  # fmt: skip
    return Table(id="cards", title="Side by side, dense rates", columns=columns, rows=cells)


def _chart(rows: list[GpuRow], precision: str) -> dict[str, Any]:
    """Rate against bandwidth, sized by memory."""
    values = [
        {"gpu": row.gpu, "tflops": (row.dense_flops[precision] or 0) / 1e12,
         "tb_per_s": row.bandwidth_bytes_per_s / 1e12, "memory_gb": row.memory_bytes / 1e9} for row in rows
    ]  # fmt: skip
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": f"Dense {precision} rate, bandwidth and memory",
        "data": {"values": values},
        "mark": {"type": "circle", "opacity": 0.8},
        "encoding": {
            "x": {"field": "tb_per_s", "type": "quantitative", "title": "memory bandwidth, TB/s"},
            "y": {"field": "tflops", "type": "quantitative", "title": f"dense {precision}, TFLOP/s"},
            "size": {"field": "memory_gb", "type": "quantitative", "title": "memory, GB"},
            "color": {"field": "gpu", "type": "nominal", "title": "card"},
            "tooltip": [{"field": name} for name in ("gpu", "tflops", "tb_per_s", "memory_gb")],
        },
    }


def _verdict(cards: list[Gpu], precision: str, result: CompareGpusResult, ratios: set[str]) -> str:
    first = cards[0]
    if len(cards) == 1:
        parts = [f"{first.id}: [[memory]] of memory at [[memory_bandwidth]]"]
        if first.dense_flops[precision]:
            parts.append(f", [[{precision}_flops]] dense {precision}")
        priced = any(fact.id == "usd_per_gpu_hour" for fact in result.facts)
        return "".join(parts) + (
            ", [[usd_per_gpu_hour]] in the median." if priced else "; no price of it is in the book."
        )
    other = cards[1]
    wins = []
    for key, what in (("usd_per_tflop_hour", f"{precision} arithmetic"), ("usd_per_gb_hour", "memory")):
        units = [fact for fact in result.facts if fact.name == key]
        if len(units) > 1:
            best = min(units, key=lambda fact: float(fact.value))
            wins.append(f"most {what} per dollar: {best.about[0]} at [[{best.id}]]")
    said = [
        words
        for name, words in (
            (f"{precision}_ratio", f"[[{precision}_ratio]] the dense {precision} rate"),
            ("bandwidth_ratio", "[[bandwidth_ratio]] the bandwidth"),
            ("memory_ratio", "[[memory_ratio]] the memory"),
        )
        if name in ratios
    ]
    price = ", at [[price_ratio]] the median price" if "price_ratio" in ratios else ""
    lead = f"{'; '.join(wins)}. " if wins else ""
    return f"{lead[:1].upper()}{lead[1:]}{first.id} has {', '.join(said)} of {other.id}{price}."


def _notes(result: CompareGpusResult, cards: list[Gpu]) -> None:
    sources = all_sources()
    seen: dict[str, SourceRef] = {}
    for card in cards:
        if median_usd_per_gpu_hour(card.id) is None:
            result.warnings.append(Warn(code="no_price", text=f"The book holds no on-demand price of {card.id}."))
        if card.notes:
            result.warnings.append(Warn(code="card_note", text=f"{card.id}: {card.notes}."))
        for source_id in card.source_ids:
            known = sources[source_id]
            seen.setdefault(source_id, SourceRef(id=source_id, title=known.title, as_of=card.as_of))
    result.sources += seen.values()
    for number, card in enumerate(cards[:3], 1):
        best = cheapest(prices.offers(card.id, billing="on_demand"))
        if best:
            where, key = find_provider(best.provider).title, f"cheapest_{number}"
            result.facts.append(
                Fact(id=key, name="cheapest_offer", value=best.usd_per_gpu_hour, unit="USD/GPU-h", kind="price",
                     label=f"{card.id} at {where}", basis=best.source, as_of=best.observed,
                     about=[card.id, best.provider])
            )  # fmt: skip
            result.next_steps.append(f"Cheapest offer of {card.id}: [[{key}]] at {where}, seen {best.observed}.")
    names = " or ".join(card.id for card in cards[:2])
    result.suggestions += [
        f"What does {cards[0].id} cost per hour?",
        f"Which is cheaper to fine-tune an 8B on, {names}?",
    ]
