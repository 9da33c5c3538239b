"""The whole price book at once: every offer and number of machines priced for one job, and what is worth having.

The set-ups (card x count) are few, some hundreds, and modelled one by one; the offers are many and are arithmetic on
columns: cost = price x GPUs x billed hours + storage.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from knowledge import regions
from knowledge.gpus import all_gpus
from knowledge.prices import Columns, columns
from knowledge.types import Gpu
from tools.cost.layouts import Freedom, SetUp, best_set_up
from tools.cost.precisions import lacking, precisions_for
from tools.cost.run import SPOT_MONTHLY_SHARE, Policy, bill, run_time, training_hours
from tools.memory import MemoryBill, estimate
from tools.prices import STALE_BESIDE_NEWER_DAYS
from tools.throughput import SoftwareClass
from tools.workload import Job, Precision

MAX_AGE_DAYS = 365  # older observations say little about today's market
NEWER_DAYS = 90  # before the newest price of the book: within them a plan is among the ``newer`` ones as well
# Boards that present themselves as several small GPUs: their sum is no memory that one process can use.
SPLIT_BOARDS = ("A16", "MI250X")
TOO_LITTLE = "too little memory"
NODE_GPUS = 8  # machines of this size are sold in clusters; smaller ones rarely share a fast network


@dataclass(frozen=True, slots=True)
class Filters:
    """Which offers may be used."""

    billings: tuple[str, ...]
    providers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    gpu_ids: tuple[str, ...] = ()
    n_gpus: int | None = None
    max_gpus: int = 64
    usd_per_gpu_hour: float | None = None  # at most
    usd_per_hour: float | None = None  # of all GPUs together, at most


@dataclass(frozen=True, slots=True)
class Plan:
    """One way to run the job: a set-up at an offer."""

    set_up: SetUp
    provider: str
    instance_type: str
    region: str
    billing: str
    usd_per_gpu_hour: float
    observed: str
    source: str
    hours: float  # wall-clock, failures and evaluation counted
    cost: float
    training_hours: float
    gpus_per_node: int

    @property
    def precision(self) -> Precision:
        """What it computes in, which may be FP8 where the job asked for 16 bits."""
        return self.set_up.job.precision


@dataclass(frozen=True, slots=True)
class RuledOut:
    """A card that cannot, with its nearest miss."""

    gpu: Gpu
    n_gpus: int
    need: MemoryBill
    why: str = TOO_LITTLE


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that fits, cheapest offer of each card, count and billing; and what does not fit."""

    plans: list[Plan]
    ruled_out: list[RuledOut]
    unpriced: list[str]
    offers: int
    newer: list[Plan]  # as ``plans``, at prices of the book's last ``NEWER_DAYS`` alone


VARIANTS = 2  # precisions tried on a card at most


def search(
    job: Job,
    tokens: float,
    free: Freedom,
    software: SoftwareClass,
    policy: Policy,
    want: Filters,
    pinned: bool = True,
) -> Found:
    """Price the job on every offer that passes the filters, USD and hours; ``pinned``: in the job's own precision
    alone. Cards that no count of GPUs makes fit are in ``ruled_out``, with their need.
    """
    offers = columns()
    rows = np.flatnonzero(_mask(offers, want))
    row, machines = _expand(offers, rows, want)
    counts = offers.n_gpus[row] * machines
    first, which = _distinct(offers, row, counts)
    each = len(first)
    set_ups: list[SetUp | None] = [None] * (VARIANTS * each)
    misses: dict[str, RuledOut] = {}
    billed = np.full((VARIANTS * each, 2), np.inf)
    wall = np.full((VARIANTS * each, 2), np.inf)
    fixed = np.zeros((VARIANTS * each, 2))
    gpus = {gpu.id: gpu for gpu in all_gpus()}
    shares = (0.0, SPOT_MONTHLY_SHARE) if "spot" in want.billings else (0.0,)
    courses = [replace(policy, spot_monthly_share=share) for share in shares]
    plain = replace(job, assumptions=())
    for index, at in enumerate(first):
        gpu, total = gpus[str(offers.gpu_id[row[at]])], int(counts[at])
        size = int(offers.n_gpus[row[at]])
        options = precisions_for(gpu, plain, pinned)
        if not options:
            misses.setdefault(gpu.id, RuledOut(gpu, total, estimate(replace(plain, n_gpus=total)), lacking(plain)))
        for variant, precision in enumerate(options):
            own = plain if precision == plain.precision else replace(plain, precision=precision)
            chosen, need = best_set_up(own, gpu.id, total, size, free, software)
            if chosen is None:
                if gpu.id not in misses or misses[gpu.id].n_gpus < total:
                    misses[gpu.id] = RuledOut(gpu, total, need)
                continue
            place = index + variant * each
            set_ups[place] = chosen
            hours = training_hours(tokens, chosen.speed)
            for spot, course in enumerate(courses):
                time = run_time(chosen.job, hours, chosen.machines, course)
                billed[place, spot] = time.billed_hours
                wall[place, spot] = time.wall_hours
                fixed[place, spot] = bill(chosen.job, time, 0.0, course).total
    row, counts = np.tile(row, VARIANTS), np.tile(counts, VARIANTS)
    which = np.concatenate([which + variant * each for variant in range(VARIANTS)])
    spot_row = (offers.billing[row] == "spot").astype(int)
    cost = offers.usd_per_gpu_hour[row] * counts * billed[which, spot_row] + fixed[which, spot_row]
    plans = _cheapest_each(offers, row, which, spot_row, cost, wall, set_ups, tokens)
    newest = offers.day[row] >= offers.day.max() - np.timedelta64(NEWER_DAYS, "D")
    newer = _cheapest_each(offers, row, which, spot_row, np.where(newest, cost, np.inf), wall, set_ups, tokens)
    fitting = {plan.set_up.gpu.id for plan in plans}
    priced = set(offers.gpu_id.tolist())
    unpriced = [gpu.id for gpu in all_gpus() if gpu.id not in priced]
    return Found(plans, [miss for name, miss in misses.items() if name not in fitting], unpriced, len(rows), newer)


def pareto(plans: list[Plan]) -> list[Plan]:
    """Those that no other plan beats in both cost and time, cheapest first."""
    front: list[Plan] = []
    for plan in sorted(plans, key=lambda one: (one.cost, one.hours)):
        if not front or plan.hours < front[-1].hours * 0.995:
            front.append(plan)
    return front


def _mask(offers: Columns, want: Filters) -> NDArray[np.bool_]:
    keep: NDArray[np.bool_] = np.isin(offers.billing, want.billings)
    keep &= (offers.day.max() - offers.day) <= np.timedelta64(MAX_AGE_DAYS, "D")
    keep &= ~np.isin(offers.gpu_id, SPLIT_BOARDS)
    if want.providers:
        keep &= np.isin(offers.provider, want.providers)
    if want.regions:
        keep &= np.any([regions.mask(offers.region, name) for name in want.regions], axis=0)
    if want.gpu_ids:
        keep &= np.isin(offers.gpu_id, want.gpu_ids)
    if want.usd_per_gpu_hour is not None:
        keep &= offers.usd_per_gpu_hour <= want.usd_per_gpu_hour
    return keep & _recent(offers, keep)


def _recent(offers: Columns, keep: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Offers not much older than the newest one of their card among those kept."""
    days, card = offers.day.astype(np.int64), offers.card
    newest = np.zeros(int(card.max()) + 1, dtype=np.int64)
    np.maximum.at(newest, card[keep], days[keep])
    recent: NDArray[np.bool_] = newest[card] - days <= STALE_BESIDE_NEWER_DAYS
    return recent


def _expand(offers: Columns, rows: NDArray[np.intp], want: Filters) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Each offer as one machine, and full nodes as clusters of 2, 4, 8 ... too."""
    all_rows, all_machines = [], []
    machines = 1
    while machines == 1 or machines * NODE_GPUS <= want.max_gpus:
        size = offers.n_gpus[rows]
        usable = (size * machines <= want.max_gpus) & ((machines == 1) | (size >= NODE_GPUS))
        if want.n_gpus is not None:
            usable &= size * machines == want.n_gpus
        if want.usd_per_hour is not None:
            usable &= offers.usd_per_gpu_hour[rows] * size * machines <= want.usd_per_hour
        all_rows.append(rows[usable])
        all_machines.append(np.full(int(usable.sum()), float(machines)))
        machines *= 2
    return np.concatenate(all_rows), np.concatenate(all_machines)


def _distinct(
    offers: Columns, row: NDArray[np.intp], counts: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where each set-up (card, size of machine, count) comes first, in the order of their names; the one of each row.

    By number, since names of ten thousand rows are slow to compare.
    """
    sizes = offers.n_gpus[row].astype(np.int64)
    width = int(max(counts.max(initial=0), sizes.max(initial=0))) + 1
    codes = (offers.card[row] * width + sizes) * width + counts.astype(np.int64)
    _unique, first, which = np.unique(codes, return_index=True, return_inverse=True)
    names = np.array([f"{offers.gpu_id[row[at]]}|{sizes[at]}|{int(counts[at])}" for at in first], dtype=np.str_)
    order = np.argsort(names, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[which]


def _cheapest_each(
    offers: Columns,
    row: NDArray[np.intp],
    which: NDArray[np.intp],
    spot_row: NDArray[np.int_],
    cost: NDArray[np.float64],
    wall: NDArray[np.float64],
    set_ups: list[SetUp | None],
    tokens: float,
) -> list[Plan]:
    """The cheapest offer of each set-up and billing, cheapest first."""
    order = np.argsort(cost, kind="stable")
    order = order[np.isfinite(cost[order])]
    _kinds, billing = np.unique(offers.billing[row[order]], return_inverse=True)
    _pairs, first = np.unique(which[order] * 64 + billing, return_index=True)
    plans = []
    for index in order[np.sort(first)]:
        at, which_one = int(row[index]), int(which[index])
        chosen = set_ups[which_one]
        assert chosen is not None
        plans.append(
            Plan(
                set_up=chosen,
                provider=str(offers.provider[at]),
                instance_type=str(offers.instance_type[at]),
                region=str(offers.region[at]),
                billing=str(offers.billing[at]),
                usd_per_gpu_hour=float(offers.usd_per_gpu_hour[at]),
                observed=str(offers.observed[at]),
                source=str(offers.source[at]),
                hours=float(wall[which_one, spot_row[index]]),
                cost=float(cost[index]),
                training_hours=training_hours(tokens, chosen.speed),
                gpus_per_node=int(offers.n_gpus[at]),
            )
        )
    return plans
