"""Owning against renting: yearly cost of a machine, the utilisation at which it pays, and the best mix of both.

With F the fixed USD per hour of an owned GPU (purchase less resale, support, fabric, staff, spread over its years), v
its running USD per used hour (power x PUE) and c the cloud's price: owning pays above utilisation u* = F / (c - v).
For a mix, each further owned GPU is used a smaller share of the hours; it pays while that share is above u*. With
demand spread evenly between a base and the peak, owned = the demand exceeded a share u* of the time (the newsvendor's
critical ratio, Arrow, Harris and Marschak 1951).
"""

from __future__ import annotations

from dataclasses import dataclass

HOURS_PER_YEAR = 8760.0
RESIDUAL_MONTHS = 36.0


@dataclass(frozen=True, slots=True)
class Owned:
    """An owned fleet's cost, USD."""

    purchase: float
    resale: float
    support: float
    staff: float
    hosting: float  # per year whatever the use: colocation
    fixed_per_gpu_hour: float
    running_per_gpu_hour: float
    years: float
    n_gpus: int

    def total(self, utilisation: float) -> float:
        """USD over all years and GPUs, with each GPU at work a share ``utilisation`` (0 to 1) of the year's 8,760
        hours.
        """
        hours = HOURS_PER_YEAR * self.years * self.n_gpus
        return (self.fixed_per_gpu_hour + self.running_per_gpu_hour * utilisation) * hours

    def per_used_hour(self, utilisation: float) -> float:
        """USD per GPU-hour that does work, at a ``utilisation`` above 0 and up to 1; ZeroDivisionError at 0."""
        return self.fixed_per_gpu_hour / utilisation + self.running_per_gpu_hour


def owned(
    server_usd: float,
    n_gpus: int,
    gpus_per_server: int,
    years: float,
    residual_36_months: float,
    support_share: float,
    network_share: float,
    staff_usd_per_year: float,
    watts_per_gpu: float,
    usd_per_kwh: float,
    pue: float,
    colo_usd_per_kw_month: float = 0.0,
    node_watts: float = 0.0,
) -> Owned:
    """Spread every cost, USD, over the years: the fixed part by GPU-hour of the calendar, power by used GPU-hour.
    Shares are 0 to 1; resale falls exponentially through its share after 36 months. Colocation, USD per kW and month,
    where given, includes power and replaces it. ``years`` and ``n_gpus`` must be above 0.
    """
    servers = -(-n_gpus // gpus_per_server)
    purchase = server_usd * servers * (1 + (network_share if servers > 1 else 0.0))
    resale = server_usd * servers * residual_36_months ** (12 * years / RESIDUAL_MONTHS)
    support = server_usd * servers * support_share * years
    staff = staff_usd_per_year * years
    hosting = colo_usd_per_kw_month * (node_watts or watts_per_gpu * gpus_per_server) / 1000 * servers * 12 * years
    hours = HOURS_PER_YEAR * years * n_gpus
    running = 0.0 if colo_usd_per_kw_month else watts_per_gpu / 1000 * pue * usd_per_kwh
    fixed = (purchase - resale + support + staff + hosting) / hours
    return Owned(purchase, resale, support, staff, hosting, fixed, running, years, n_gpus)


def break_even_utilisation(fleet: Owned, cloud_usd_per_gpu_hour: float) -> float:
    """The utilisation u* = F / (c - v) above which owning is cheaper (the module's derivation); above 1 it never is,
    and infinite where the cloud is dearer to power than to rent.
    """
    margin = cloud_usd_per_gpu_hour - fleet.running_per_gpu_hour
    return fleet.fixed_per_gpu_hour / margin if margin > 0 else float("inf")


@dataclass(frozen=True, slots=True)
class Mix:
    """Part owned, the peaks rented."""

    owned_gpus: float
    rented_gpu_hours: float
    total: float


def best_mix(fleet: Owned, cloud_usd_per_gpu_hour: float, utilisation: float, gpus_per_server: int = 1) -> Mix:
    """The cheapest number of whole owned servers for demand spread evenly between base and peak, of this mean (0 to 1
    of the peak, which is ``fleet.n_gpus``): the newsvendor's critical ratio (Arrow, Harris and Marschak 1951). Total in
    USD over the years.
    """
    peak = float(fleet.n_gpus)
    low = max(0.0, 2 * utilisation - 1) * peak
    high = peak if utilisation >= 0.5 else 2 * utilisation * peak
    share = break_even_utilisation(fleet, cloud_usd_per_gpu_hour)
    ideal = 0.0 if share >= 1 else high - share * (high - low)
    below = int(ideal // gpus_per_server) * gpus_per_server
    around = (float(below), min(float(below + gpus_per_server), peak))
    return min((_mix(fleet, cloud_usd_per_gpu_hour, utilisation, low, high, own) for own in around),
               key=lambda mix: mix.total)  # fmt: skip


def _mix(fleet: Owned, cloud: float, utilisation: float, low: float, high: float, own: float) -> Mix:
    hours = HOURS_PER_YEAR * fleet.years
    over = _mean_excess(low, high, own)
    used = utilisation * fleet.n_gpus - over
    cost = own * fleet.fixed_per_gpu_hour * hours + used * fleet.running_per_gpu_hour * hours
    return Mix(own, over * hours, cost + over * cloud * hours)


def _mean_excess(low: float, high: float, capacity: float) -> float:
    """Mean of max(0, demand - capacity) for demand even on [low, high]."""
    if high <= low:
        return max(0.0, high - capacity)
    if capacity <= low:
        return (low + high) / 2 - capacity
    return max(0.0, high - capacity) ** 2 / (2 * (high - low))
