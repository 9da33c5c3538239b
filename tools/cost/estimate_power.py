"""``estimate_power``: what machines draw, what electricity costs a month and a year, and which circuit carries them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from knowledge.gpus import find_gpu
from knowledge.hardware_costs import CostFigure, node_watts, usual
from knowledge.types import Gpu
from tools.cost.energy import GRID_KG_PER_KWH, HOST_WATTS_PER_WATT, LOAD
from tools.cost.words import Facts, cards
from tools.errors import MissingValue
from tools.registry import tool
from tools.result import Assumption, Column, SourceRef, Table, ToolResult
from tools.units import HOURS_PER_MONTH, parse_seconds

Currency = Literal["USD", "EUR", "GBP"]
LOAD_LOW, LOAD_HIGH = 0.6, 0.9  # of design power in training, as ``tools.cost.energy`` says of published nodes
# A desktop or workstation beside its cards: processor, board, memory, disks and fans, then what the supply loses
# (80 PLUS Gold asks for 87 to 90 % between half and full load at 115 V).
DESKTOP_HOST_WATTS = 250.0
SUPPLY_EFFICIENCY = 0.9
CONTINUOUS = 0.8  # of a breaker's rating for loads of three hours and more (NEC 210.20(A): 125 % of the load)
_DESKTOP = ("consumer", "workstation", "laptop")
# What walls give: words, volts, amperes.
_CIRCUITS = (
    ("US 120 V, 15 A", 120.0, 15.0), ("US 120 V, 20 A", 120.0, 20.0), ("UK 230 V, 13 A plug", 230.0, 13.0),
    ("Europe 230 V, 16 A", 230.0, 16.0), ("US 240 V, 20 A", 240.0, 20.0), ("US 240 V, 30 A", 240.0, 30.0),
    ("Europe 400 V three-phase, 16 A", 692.8, 16.0),
)  # fmt: skip
_SOURCES = (
    SourceRef(id="nec-210-20", title="NEC 210.20(A): continuous loads at 125 %", as_of="2023-01-01"),
    SourceRef(id="80plus", title="80 PLUS: efficiency of power supplies by load", as_of="2026-11-30"),
)


class EstimatePowerInput(BaseModel):
    """Cards, how busy they are, and what electricity costs."""

    model_config = ConfigDict(extra="forbid")

    gpu: str = Field(description="Card, e.g. 'H100', 'RTX 4090'.")
    n_gpus: int = Field(default=1, ge=1, le=1_000_000, description="Default 1.")
    utilisation: float = Field(default=1.0, gt=0, le=1, description="Share of hours in use; default 1, day and night.")
    hours: float | str | None = Field(default=None, description="Also for a time of this length, e.g. 120, '5 days'.")
    power_price: float | None = Field(default=None, ge=0, le=50, description="A kWh; default 0.08 USD (industrial).")
    currency: Currency = Field(default="USD", description="Of power_price; costs are in it.")
    load: float | None = Field(default=None, gt=0, le=1, description="Of design power in training; default 0.8.")
    pue: float | None = Field(default=None, ge=1, le=3, description="Building over machines; default 1.54, home 1.")
    grid_kg_per_kwh: float | None = Field(default=None, ge=0, le=2, description="CO2e a kWh; default 0.37.")
    circuits: bool | None = Field(default=None, description="List usual circuits; default for desktop cards.")
    circuit_volts: float | None = Field(default=None, gt=0, le=1000, description="Of the circuit to judge.")
    circuit_amps: float | None = Field(default=None, gt=0, le=1000, description="Its breaker's rating.")

    @field_validator("utilisation", mode="before")
    @classmethod
    def _percent(cls, value: object) -> object:
        if isinstance(value, str) and value.strip().endswith("%"):
            return float(value.strip().rstrip("%")) / 100
        return value


class EstimatePowerResult(ToolResult):
    """Watts of the machines at most, and energy of a month in use."""

    watts_at_most: float = Field(json_schema_extra={"unit": "W"})
    kwh_per_month: float = Field(json_schema_extra={"unit": "kWh"})


@dataclass(frozen=True, slots=True)
class _Draw:
    """Watts of all machines: the cards alone, whole machines at most, and in training at the meter with its ends."""

    cards: float
    most: float
    meter: float
    meter_low: float
    meter_high: float
    basis: str


@tool("estimate_power", examples=[{"gpu": "H100", "n_gpus": 32, "power_price": 0.3, "currency": "EUR"}])
def estimate_power(given: EstimatePowerInput) -> EstimatePowerResult:
    """How much power do these GPUs draw, what does the electricity cost a month and a year, and can a circuit feed it?

    Servers: the maker's figure for a whole machine, else design power x 1.8. Desktops: (cards + 250 W) / 0.9. Energy =
    that x load x PUE x hours; a circuit carries 80 % of volts x amperes for hours on end. Not modelled: the cooling
    plant of an own room, demand charges, three-phase balance. Raises MissingValue for a card of unknown design power.
    """
    match = find_gpu(given.gpu)
    gpu = match.value
    assumed: list[Assumption] = []
    if match.note:
        assumed.append(Assumption(name="gpu", value=gpu.id, why=match.note, argument="gpu"))
    if not gpu.tdp_watts:
        raise MissingValue(
            "no_power", f"No design power of {gpu.id} is held.", field="gpu", hint="Ask for a card that has one.",
            candidates=["H100", "RTX 4090"],
        )  # fmt: skip
    desktop = gpu.tier in _DESKTOP
    draw = _draw(given, gpu, desktop, assumed)
    price = _price(given, desktop, assumed)
    hours = _hours(given.hours)
    facts = _facts(given, gpu, draw, price, hours)
    result = EstimatePowerResult(
        watts_at_most=draw.most,
        kwh_per_month=draw.meter / 1000 * HOURS_PER_MONTH * given.utilisation,
        assumptions=assumed,
        sources=_sources(gpu, desktop),
    )
    asked = given.circuit_amps is not None
    listed = asked or (desktop if given.circuits is None else given.circuits)
    result.tables = [_spans_table(facts, given.currency if given.power_price is not None else "USD", hours)]
    if listed:
        result.tables.insert(0, _circuit_table(given, draw))
        result.sources.insert(0, _SOURCES[0])
    result.verdict = _verdict(given, gpu, draw, facts, hours, listed)
    result.next_steps = _next(given, gpu, draw, facts, desktop)
    result.facts = facts.found
    result.suggestions = ["With power at 0.15 USD/kWh?", "Is owning cheaper than renting?", "At a 300 W power limit?"]
    return result


def _sources(gpu: Gpu, desktop: bool) -> list[SourceRef]:
    if desktop:
        return [_SOURCES[1]]
    server, pue = node_watts(gpu.id), usual("pue")
    found = [SourceRef(id=pue.source, title=f"Power usage effectiveness: {pue.source}", as_of=pue.as_of)]
    if server is not None:
        found.insert(0, SourceRef(id=server.source, title=f"Power of a server: {server.note}", as_of=server.as_of))
    return found


def _draw(given: EstimatePowerInput, gpu: Gpu, desktop: bool, assumed: list[Assumption]) -> _Draw:
    watts = float(gpu.tdp_watts or 0.0) * given.n_gpus
    server: CostFigure | None = None if desktop else node_watts(gpu.id)
    if desktop:
        most = (watts + DESKTOP_HOST_WATTS) / SUPPLY_EFFICIENCY
        basis = f"({watts:g} W + {DESKTOP_HOST_WATTS:g} W) / {SUPPLY_EFFICIENCY:g}"
        why = "processor, board, memory, disks, fans; the supply loses a tenth"
        assumed.append(Assumption(name="rest_of_the_machine", value=DESKTOP_HOST_WATTS, unit="W", why=why))
    elif server is not None:
        most = server.value / server.gpus * given.n_gpus
        basis = f"{server.value:g} W a server of {server.gpus}"
    else:
        most = watts * (1 + HOST_WATTS_PER_WATT)
        basis = f"{watts:g} W x {1 + HOST_WATTS_PER_WATT:g} for host, network and fans"
    load, pue = given.load or LOAD, given.pue
    lows = (given.load or LOAD_LOW, given.pue or 1.0)
    highs = (given.load or LOAD_HIGH, given.pue or 1.0)
    if given.utilisation == 1:
        why = "running day and night"
        assumed.append(Assumption(name="utilisation", value=1.0, why=why, argument="utilisation"))
    if given.load is None:
        assumed.append(Assumption(name="load", value=LOAD, why="of design power, in training", argument="load"))
    if pue is None and not desktop:
        figure = usual("pue")
        pue = figure.value
        lows, highs = (lows[0], figure.low or pue), (highs[0], figure.high or pue)
        assumed.append(Assumption(name="pue", value=pue, why="industry mean: building over machines", argument="pue"))
    meter = most * load * (pue or 1.0)
    return _Draw(watts, most, meter, most * lows[0] * lows[1], most * highs[0] * highs[1], basis)


def _price(given: EstimatePowerInput, desktop: bool, assumed: list[Assumption]) -> float:
    if given.power_price is not None:
        return given.power_price
    figure = usual("usd_per_kwh_home" if desktop else "usd_per_kwh")
    why = f"{'homes' if desktop else 'industry'} in the United States, {figure.as_of}"
    assumed.append(
        Assumption(name="power_price", value=figure.value, unit="USD/kWh", why=why, argument="power_price")
    )  # fmt: skip
    return figure.value


def _hours(given: float | str | None) -> float | None:
    if given is None:
        return None
    return float(given) if isinstance(given, (int, float)) else parse_seconds(given, "hours") / 3600


def _facts(given: EstimatePowerInput, gpu: Gpu, draw: _Draw, price: float, hours: float | None) -> Facts:
    facts = Facts()
    about = [gpu.id]
    currency = given.currency if given.power_price is not None else "USD"
    facts.add("power_cards", draw.cards, "W", kind="exact", label="the cards alone, at their design power", about=about)
    facts.add("power_at_most", draw.most, "W", label="whole machines, at most", about=about, basis=draw.basis)
    facts.add("power_in_training", draw.meter, "W", low=draw.meter_low, high=draw.meter_high, about=about,
              label="in training, at the meter")  # fmt: skip
    grid = GRID_KG_PER_KWH if given.grid_kg_per_kwh is None else given.grid_kg_per_kwh
    spans = [("month", HOURS_PER_MONTH * given.utilisation), ("year", 12 * HOURS_PER_MONTH * given.utilisation)]
    if hours is not None:
        spans.insert(0, ("time", hours))
    for name, span in spans:
        low, kwh, high = (watts / 1000 * span for watts in (draw.meter_low, draw.meter, draw.meter_high))
        words = "for the time asked" if name == "time" else f"a {name}"
        facts.add(f"energy_{name}", kwh, "kWh", low=low, high=high, label=f"energy {words}", about=about)
        facts.add(f"cost_{name}", kwh * price, currency, low=low * price, high=high * price, about=about,
                  label=f"electricity {words}")  # fmt: skip
        facts.add(f"emissions_{name}", kwh * grid, "kg CO2e", low=low * grid, high=high * grid, about=about,
                  label=f"emissions {words}", basis=f"{grid:g} kg CO2e a kWh")  # fmt: skip
    facts.add("cost_per_gpu_hour", draw.meter / 1000 * price / given.n_gpus, currency, label="electricity a GPU-hour")
    if currency == "USD":
        facts.add("power_price", price, "USD/kWh", kind="quoted", label="a kWh")
    return facts


def _circuits(given: EstimatePowerInput) -> tuple[tuple[str, float], ...]:
    """Circuits to judge with the watts that each carries for hours."""
    if given.circuit_amps is not None:
        volts = given.circuit_volts or 120.0
        return ((f"{volts:g} V, {given.circuit_amps:g} A", CONTINUOUS * volts * given.circuit_amps),)
    return tuple((words, CONTINUOUS * volts * amps) for words, volts, amps in _CIRCUITS)


def _circuit_table(given: EstimatePowerInput, draw: _Draw) -> Table:
    rows: list[list[float | int | str | bool | None]] = [
        [words, watts, "yes" if draw.most <= watts else "no"] for words, watts in _circuits(given)
    ]
    columns = [Column(key="circuit", label="circuit"), Column(key="watts", label="carries for hours", unit="W"),
               Column(key="enough", label="enough")]  # fmt: skip
    return Table(id="circuits", title="Which circuit carries it", columns=columns, rows=rows)


def _verdict(
    given: EstimatePowerInput, gpu: Gpu, draw: _Draw, facts: Facts, hours: float | None, circuits: bool
) -> str:
    what = cards(given.n_gpus, gpu)
    draws = "draws" if given.n_gpus == 1 else "draw"
    price = " at [[power_price]]" if any(fact.name == "power_price" for fact in facts.found) else ""
    span = "[[cost_time]] of electricity for that time, " if hours is not None else ""
    text = (
        f"{what} {draws} up to [[power_at_most]] with the rest of the machine, about [[power_in_training]] at the "
        f"meter in training: {span}[[cost_month]] a month ([[cost_month|range]]){price}."
    )
    return f"{_circuit_words(given, draw, facts)} {text}" if circuits else text


def _spans_table(facts: Facts, currency: str, hours: float | None) -> Table:
    found = {fact.name: fact.value for fact in facts.found}
    rows: list[list[float | int | str | bool | None]] = [
        [words, found[f"energy_{name}"], found[f"cost_{name}"], found[f"emissions_{name}"]]
        for name, words in (("time", "the time asked"), ("month", "a month"), ("year", "a year"))
        if f"energy_{name}" in found
    ]
    columns = [
        Column(key="span", label="running"), Column(key="energy", label="energy", unit="kWh"),
        Column(key="cost", label="electricity", unit=currency),  # type: ignore[arg-type]  # one of Currency
        Column(key="emissions", label="emissions", unit="kg CO2e"),
    ]  # fmt: skip
    return Table(id="energy", title="Energy at the meter", columns=columns, rows=rows)


def _circuit_words(given: EstimatePowerInput, draw: _Draw, facts: Facts) -> str:
    able = [(words, watts) for words, watts in _circuits(given) if watts >= draw.most]
    if given.circuit_amps is not None:
        words, watts = _circuits(given)[0]
        facts.add("circuit_watts", watts, "W", kind="exact", label=words, basis="80 % of volts x amperes")
        return f"{'Yes' if able else 'No'}: that circuit carries [[circuit_watts]] for hours."
    if not able:
        return "No single household circuit carries that: spread the machines over several."
    words, watts = min(able, key=lambda one: one[1])
    facts.add("circuit_watts", watts, "W", kind="exact", label=words, basis="80 % of volts x amperes")
    facts.add("circuit", words, kind="quoted", label="smallest usual circuit that carries it")
    if len(able) == len(_CIRCUITS):
        return "Yes, any household circuit carries that ([[circuit_watts]] on the smallest, for hours)."
    weak = _CIRCUITS[0][1] * _CIRCUITS[0][2] * CONTINUOUS
    facts.add("weakest_circuit_watts", weak, "W", kind="exact", label=_CIRCUITS[0][0], basis="80 % of volts x amperes")
    return (
        "Not from a US 15 A outlet ([[weakest_circuit_watts]] for hours); the smallest usual circuit that carries it "
        "is [[circuit]] ([[circuit_watts]])."
    )


def _next(given: EstimatePowerInput, gpu: Gpu, draw: _Draw, facts: Facts, desktop: bool) -> list[str]:
    steps = []
    if desktop:
        weak = CONTINUOUS * _CIRCUITS[0][1] * _CIRCUITS[0][2]
        limit = (weak * SUPPLY_EFFICIENCY - DESKTOP_HOST_WATTS) / given.n_gpus
        if draw.most > weak and 0.4 * float(gpu.tdp_watts or 0) <= limit:
            facts.add("power_limit", limit // 10 * 10, "W", label="a card, to stay within a US 15 A circuit")
            steps.append("Limited to [[power_limit]] a card (nvidia-smi -pl), it runs from a US 15 A circuit.")
        facts.add("supply_watts", draw.most * SUPPLY_EFFICIENCY * 1.25, "W", label="power supplies, a quarter to spare")
        steps.append("Power supplies for [[supply_watts]] leave a quarter for short peaks.")
    if given.pue is None and not desktop:
        newer = usual("pue").low or 1.2
        month = draw.meter / usual("pue").value * newer / 1000 * HOURS_PER_MONTH * given.utilisation
        price = next(float(fact.value) for fact in facts.found if fact.name == "cost_month")
        facts.add("cost_month_new_hall", price * newer / usual("pue").value,
                  given.currency if given.power_price is not None else "USD", label="a month in a new hall",
                  basis=f"{month:.4g} kWh, PUE {newer:g}")  # fmt: skip
        facts.add("pue_new_hall", newer, kind="quoted", label="PUE of new halls")
        steps.append("In a new hall (PUE [[pue_new_hall]]) it is [[cost_month_new_hall]] a month.")
    return steps
