"""``compare_ownership``: rent by the hour, reserve, own, or a mix: total cost and the utilisation where owning pays."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, field_validator

from knowledge.gpus import find_gpu
from knowledge.hardware_costs import CostFigure, node_watts, server_cost, usual
from knowledge.providers import find_provider
from knowledge.types import Gpu
from tools.cost.energy import HOST_WATTS_PER_WATT, LOAD
from tools.cost.estimate_run import parse_price
from tools.cost.limits import budget_usd
from tools.cost.ownership import HOURS_PER_YEAR, Mix, Owned, best_mix, break_even_utilisation, owned
from tools.cost.price_basis import PriceBasis, price_basis
from tools.cost.words import Facts, cards
from tools.errors import BadValue, MissingValue
from tools.registry import tool
from tools.result import Assumption, Column, SourceRef, Table, ToolResult, Warn
from tools.units import Unit


class CompareOwnershipInput(BaseModel):
    """A fleet, how much it is used, and what it costs either way."""

    model_config = ConfigDict(extra="forbid")

    gpu: str = Field(description="Card, e.g. 'H100'.")
    n_gpus: int = Field(default=8, ge=1, le=1_000_000, description="GPUs at peak; default 8.")
    utilisation: float | None = Field(default=None, gt=0, le=1, description="Mean share of hours in use; default 0.7.")
    years: float = Field(default=3, gt=0, le=15, description="Lifetime; default 3.")
    cloud_price: float | str | None = Field(default=None, description="USD per GPU-hour on demand; else the book's.")
    reserved_price: float | str | None = Field(default=None, description="USD per GPU-hour committed; else the book's.")
    provider: str | None = Field(default=None, description="Whose cloud prices.")
    server_price: float | str | None = Field(default=None, description="USD of one server, e.g. 350k.")
    gpus_per_server: int = Field(default=8, ge=1, le=72, description="Default 8.")
    power_price: float | None = Field(default=None, ge=0, le=5, description="USD per kWh; default 0.08.")
    pue: float | None = Field(default=None, ge=1, le=3, description="Building over IT power; default 1.54.")
    staff: float | str | None = Field(default=None, description="USD a year for operations; default 13,300 a server.")
    support_share: float | None = Field(default=None, ge=0, le=1, description="Of the price a year; default 0.1.")
    network_share: float | None = Field(default=None, ge=0, le=1, description="On top of servers; default 0.125.")
    residual: float | None = Field(default=None, ge=0, le=1, description="Resale share after 3 years; default 0.3.")
    colo_usd_per_kw_month: float = Field(default=0, ge=0, description="Rented hall with power, instead of power price.")

    @field_validator("utilisation", mode="before")
    @classmethod
    def _share(cls, value: object) -> object:
        if isinstance(value, str) and value.strip().endswith("%"):
            return float(value.strip().rstrip("%")) / 100
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 1:
            raise BadValue(
                "out_of_range", f"A utilisation of {value:g} is above 1.", field="utilisation",
                hint="It is a share of hours: 0.7 for 70 %.", candidates=[f"{min(1.0, value / 100):g}"],
            )  # fmt: skip
        return value


class CompareOwnershipResult(ToolResult):
    """Totals over the years, USD."""

    cheapest: str = ""
    break_even_utilisation: float | None = None


@dataclass(frozen=True, slots=True)
class _Case:
    gpu: Gpu
    n_gpus: int
    utilisation: float
    years: float
    cloud: PriceBasis
    reserved: PriceBasis | None
    fleet: Owned
    mix: Mix
    share: float

    @property
    def used_hours(self) -> float:
        return HOURS_PER_YEAR * self.years * self.n_gpus * self.utilisation

    @property
    def totals(self) -> dict[str, float]:
        found = {"cloud_cost": self.cloud.usd_per_gpu_hour * self.used_hours}
        if self.reserved is not None:
            hours = HOURS_PER_YEAR * self.years * self.n_gpus
            found["reserved_cost"] = self.reserved.usd_per_gpu_hour * hours
        found["owned_cost"] = self.fleet.total(self.utilisation)
        if 0 < self.mix.owned_gpus < self.n_gpus:
            found["hybrid_cost"] = self.mix.total
        return found


_WORDS = {
    "cloud_cost": "renting on demand", "reserved_cost": "reserving", "owned_cost": "owning",
    "hybrid_cost": "owning part and renting the peaks",
}  # fmt: skip


@tool(
    "compare_ownership",
    examples=[{"gpu": "H100", "n_gpus": 8, "utilisation": 0.7, "years": 3}],
)
def compare_ownership(given: CompareOwnershipInput) -> CompareOwnershipResult:
    """Should we rent, reserve, own or mix, and from which utilisation does owning pay?

    Owned = purchase less resale + support + fabric + staff, spread over the years, + power x PUE by the used hour;
    cloud = price x used hours; reserved = price x all hours; break-even utilisation = fixed / (cloud price - running).
    The mix owns what is busy a larger share of hours than that (demand spread evenly between base and peak). Not
    modelled: interest, tax, late delivery, and that next year's cards are faster.
    """
    match = find_gpu(given.gpu)
    assumed: list[Assumption] = []
    if match.note:
        assumed.append(Assumption(name="gpu", value=match.value.id, why=match.note, argument="gpu"))
    sources: list[SourceRef] = []
    if given.server_price is None and server_cost(match.value.id) is None:
        return _without_price(given, match.value, assumed, sources)
    case = _case(given, match.value, assumed, sources)
    totals = case.totals
    best = min(totals, key=lambda name: totals[name])
    facts = _facts(case, totals)
    result = CompareOwnershipResult(
        facts=facts.found, assumptions=assumed, sources=sources, tables=[_table(case, totals), _fleet_table(case)],
        cheapest=best.removesuffix("_cost"), break_even_utilisation=case.share if case.share < 1e6 else None,
    )  # fmt: skip
    _say(result, case, totals, best)
    return result


def _case(given: CompareOwnershipInput, gpu: Gpu, assumed: list[Assumption], sources: list[SourceRef]) -> _Case:
    def pick(argument: str, asked: float | None, figure: CostFigure, unit: Unit, why: str) -> float:
        if asked is not None:
            return asked
        note = f"{why} ({figure.note})" if figure.note else why
        assumed.append(Assumption(name=argument, value=figure.value, unit=unit, why=note, argument=argument))
        sources.append(SourceRef(id=figure.source, title=f"{why}: {figure.source}", as_of=figure.as_of))
        return figure.value

    utilisation = given.utilisation
    if utilisation is None:
        utilisation = 0.7
        assumed.append(
            Assumption(name="utilisation", value=0.7, why="a busy shared cluster", argument="utilisation")
        )  # fmt: skip
    servers = -(-given.n_gpus // given.gpus_per_server)
    if given.server_price is not None:
        price = budget_usd(given.server_price, "server_price")
    else:
        quote = server_cost(gpu.id)
        if quote is None:
            raise MissingValue(
                "missing_server_price", f"No dated price of a server with {gpu.id} is held.", field="server_price",
                hint="Give server_price (USD of one server) and gpus_per_server.", candidates=["350k"],
            )  # fmt: skip
        price = pick("server_price", None, quote, "USD", f"server with {quote.gpus} cards") / quote.gpus
        price *= given.gpus_per_server
    staff = (
        budget_usd(given.staff, "staff")
        if given.staff not in (None, 0, "0")
        else (0.0 if given.staff is not None else None)
    )
    if staff is None:
        each = usual("operations_usd_per_node_year")
        staff = pick("staff", None, each, "USD", "operations of a server a year") * servers
    draw = node_watts(gpu.id)
    watts = draw.value / draw.gpus * LOAD if draw else (gpu.tdp_watts or 500.0) * LOAD * (1 + HOST_WATTS_PER_WATT)
    assumed.append(
        Assumption(name="watts_per_gpu", value=watts, unit="W", why="server's design power at 80 % load, a card's part")
    )
    fleet = owned(
        price, given.n_gpus, given.gpus_per_server, given.years,
        pick("residual", given.residual, usual("residual_after_36_months"), "", "resale after 36 months"),
        pick("support_share", given.support_share, usual("support_share_per_year"), "", "support a year"),
        pick("network_share", given.network_share, usual("network_share"), "", "fabric on top") if servers > 1 else 0.0,
        staff, watts, pick("power_price", given.power_price, usual("usd_per_kwh"), "USD/kWh", "industrial power"),
        pick("pue", given.pue, usual("pue"), "", "power usage effectiveness"), given.colo_usd_per_kw_month,
        draw.value / draw.gpus * given.gpus_per_server if draw else 0.0,
    )  # fmt: skip
    cloud, reserved = _prices(given, gpu, sources)
    mix = best_mix(fleet, cloud.usd_per_gpu_hour, utilisation, given.gpus_per_server)
    share = break_even_utilisation(fleet, cloud.usd_per_gpu_hour)
    return _Case(gpu, given.n_gpus, utilisation, given.years, cloud, reserved, fleet, mix, share)


_PROBES = (1_000.0, 2_000.0)  # USD; two prices of a server give the line that its total follows


def _without_price(
    given: CompareOwnershipInput, gpu: Gpu, assumed: list[Assumption], sources: list[SourceRef]
) -> CompareOwnershipResult:
    """The most that a server may cost for owning to pay, where no dated price of one is held.

    What owning costs is linear in the price of a server: two prices give the one at which it equals renting.
    """
    cases = [_case(given.model_copy(update={"server_price": price}), gpu, [], []) for price in _PROBES]
    low, high = (case.totals["owned_cost"] for case in cases)
    each = (high - low) / (_PROBES[1] - _PROBES[0])
    case = _case(given.model_copy(update={"server_price": _PROBES[0]}), gpu, assumed, sources)
    rent, power = case.totals["cloud_cost"], case.fleet.running_per_gpu_hour * case.used_hours
    most = (rent - (low - each * _PROBES[0])) / each
    facts = Facts()
    facts.add(
        "cloud_cost", rent, "USD", label=_WORDS["cloud_cost"], about=[gpu.id], as_of=case.cloud.observed_to or None
    )
    facts.add("most_server_price", max(most, 0.0), "USD", label="the most that a server may cost",
              basis="the price at which owning costs what renting does")  # fmt: skip
    facts.add("power_cost", power, "USD", label="electricity of owning")
    facts.add("utilisation", case.utilisation * 100, "%", kind="exact", label="mean utilisation")
    facts.add("cloud_usd_per_gpu_hour", case.cloud.usd_per_gpu_hour, "USD/GPU-h", kind="price",
              as_of=case.cloud.observed_to or None, label=case.cloud.words, basis=case.cloud.source)  # fmt: skip
    where = cards(case.n_gpus, gpu)
    machine = f"a machine with {given.gpus_per_server} of them" if given.gpus_per_server > 1 else "the machine"
    pays = f"pays if {machine} costs less than [[most_server_price]]" if most > 0 else "never pays, whatever it costs"
    years = f"{case.years:g} year{'' if case.years == 1 else 's'}"
    return CompareOwnershipResult(
        verdict=f"Owning {where} for {years} at [[utilisation]] utilisation {pays}: renting the same hours on demand "
        "comes to [[cloud_cost]] ([[cloud_usd_per_gpu_hour]]), electricity of owning to [[power_cost]].",
        facts=facts.found, assumptions=assumed, sources=sources,
        next_steps=["Give the price of the machine (server_price), and both ways are compared in full."],
        warnings=[Warn(code="no_server_price", text=f"No dated price of a server with {gpu.id} is held.")],
        break_even_utilisation=None,
    )  # fmt: skip


def _prices(given: CompareOwnershipInput, gpu: Gpu, sources: list[SourceRef]) -> tuple[PriceBasis, PriceBasis | None]:
    provider = find_provider(given.provider).id if given.provider else None
    cloud = _told(given.cloud_price, "cloud_price") or price_basis(gpu, "on_demand", provider)
    if cloud is None:
        raise MissingValue(
            "no_price", f"The price book holds no on-demand offer of {gpu.id}.", field="cloud_price",
            hint="Give cloud_price in USD per GPU-hour.", candidates=["2.50"],
        )  # fmt: skip
    term = "reserved_3y" if given.years >= 3 else "reserved_1y"
    reserved = _told(given.reserved_price, "reserved_price") or price_basis(gpu, term, provider)
    for basis in (cloud, reserved):
        if basis is not None and basis.source != "given":
            sources.append(SourceRef(id=basis.source, title=f"Prices: {basis.source}", as_of=basis.observed_to))
    return cloud, reserved


def _told(price: float | str | None, field: str) -> PriceBasis | None:
    if price is None:
        return None
    value = parse_price(price, field)
    return PriceBasis(value, value, value, 0, "price given", "", "", "given")


def _facts(case: _Case, totals: dict[str, float]) -> Facts:
    facts, fleet = Facts(), case.fleet
    dated = case.cloud.observed_to or None
    for name, value in totals.items():
        facts.add(name, value, "USD", label=_WORDS[name], about=[case.gpu.id], as_of=dated)
    facts.add("break_even_utilisation", min(case.share, 99.0) * 100, "%", label="owning pays above",
              basis=f"{fleet.fixed_per_gpu_hour:.3g} / ({case.cloud.usd_per_gpu_hour:.3g} - "
              f"{fleet.running_per_gpu_hour:.3g})")  # fmt: skip
    facts.add("utilisation", case.utilisation * 100, "%", kind="exact", label="mean utilisation")
    facts.add("owned_usd_per_gpu_hour", fleet.per_used_hour(case.utilisation), "USD/GPU-h", label="owned, a used hour")
    facts.add("cloud_usd_per_gpu_hour", case.cloud.usd_per_gpu_hour, "USD/GPU-h", kind="price", as_of=dated,
              label=case.cloud.words, basis=case.cloud.source)  # fmt: skip
    if case.reserved is not None:
        facts.add("reserved_usd_per_gpu_hour", case.reserved.usd_per_gpu_hour, "USD/GPU-h", kind="price",
                  as_of=case.reserved.observed_to or None, label=case.reserved.words)  # fmt: skip
        if case.reserved.usd_per_gpu_hour < case.cloud.usd_per_gpu_hour:  # never where the cloud is free
            pays = case.reserved.usd_per_gpu_hour / case.cloud.usd_per_gpu_hour
            facts.add("reserved_break_even_utilisation", pays * 100, "%", label="reserving pays above")
    facts.add("purchase", fleet.purchase, "USD", label="purchase, fabric included")
    if "hybrid_cost" in totals:
        facts.add("hybrid_owned_gpus", case.mix.owned_gpus, "GPUs", label="owned in the mix")
        facts.add("hybrid_rented_hours", case.mix.rented_gpu_hours, "h", label="GPU-hours rented in the mix")
    else:
        facts.add("hybrid_cost", min(totals["cloud_cost"], totals["owned_cost"], case.mix.total), "USD",
                  label="best mix, which is all of one kind")  # fmt: skip
    saved_a_year = (totals["cloud_cost"] - totals["owned_cost"] + fleet.purchase - fleet.resale) / case.years
    if saved_a_year > 0 and fleet.purchase / saved_a_year <= case.years:
        facts.add("payback_months", fleet.purchase / saved_a_year * 12, label="months until rent saved pays it back")
    return facts


def _table(case: _Case, totals: dict[str, float]) -> Table:
    columns = [Column(key="way", label="way"), Column(key="usd", label="over the years", unit="USD"),
               Column(key="hour", label="a used GPU-hour", unit="USD/GPU-h")]  # fmt: skip
    rows: list[list[float | int | str | bool | None]] = [
        [_WORDS[name], value, value / case.used_hours] for name, value in sorted(totals.items(), key=lambda one: one[1])
    ]
    return Table(id="ways", title="Total cost", columns=columns, rows=rows)


def _fleet_table(case: _Case) -> Table:
    fleet = case.fleet
    power = fleet.running_per_gpu_hour * case.used_hours
    columns = [Column(key="part", label="owning"), Column(key="usd", label="USD", unit="USD")]
    rows: list[list[float | int | str | bool | None]] = [
        ["purchase, fabric included", fleet.purchase], ["resale", -fleet.resale], ["support", fleet.support],
        ["operations", fleet.staff], ["hosting", fleet.hosting], ["power", power],
        ["total", fleet.total(case.utilisation)],
    ]  # fmt: skip
    return Table(id="owned", title="What owning costs", columns=columns, rows=[row for row in rows if row[1]])


def _say(result: CompareOwnershipResult, case: _Case, totals: dict[str, float], best: str) -> None:
    where = cards(case.n_gpus, case.gpu)
    others = [name for name in sorted(totals, key=lambda name: totals[name]) if name != best][:2]
    against = " and ".join(f"[[{name}]] {_WORDS[name]}" for name in others)
    years = "3 years" if case.years == 3 else f"{case.years:g} years"
    part = " ([[hybrid_owned_gpus]] owned)" if best == "hybrid_cost" else ""
    pays = "Owning pays above [[break_even_utilisation]] utilisation"
    if case.share >= 1:
        pays = "At this cloud price owning never pays, even in use around the clock"
    result.verdict = (
        f"For {where} over {years} at [[utilisation]] utilisation, {_WORDS[best]}{part} is cheapest at [[{best}]], "
        f"against {against}. {pays}."
    )
    if case.reserved is None:
        result.warnings.append(Warn(code="no_reserved_price", text="No reserved price of this card is held; left out."))
    else:
        if case.reserved.usd_per_gpu_hour < case.cloud.usd_per_gpu_hour:
            result.next_steps.append("Reserving pays above [[reserved_break_even_utilisation]] utilisation.")
        else:
            result.next_steps.append(
                f"The reserved offers held ({case.reserved.words}, [[reserved_usd_per_gpu_hour]]) are dearer than "
                "renting by the hour at specialised clouds; name a provider to compare its own two prices."
            )
    if any(fact.name == "payback_months" for fact in result.facts):
        result.next_steps.append("Rent saved pays the purchase back in [[payback_months]] months.")
    result.warnings.append(
        Warn(code="secondary_sources", text="Server, support and resale figures are from secondary pages: get a quote.")
    )
    result.suggestions = ["At 40 % utilisation?", "With power at 0.15 USD/kWh?", "What does the cloud charge today?"]
