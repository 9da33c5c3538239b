"""What was asked of ``select_gpu`` and found, plans in words, and its tables with the reason of each row."""

from __future__ import annotations

from dataclasses import dataclass

from tools.cost.run import Policy
from tools.cost.search import Filters, Found, Plan
from tools.cost.words import cards
from tools.result import Column, Table
from tools.workload import Job

SHOWN = 8


@dataclass(frozen=True, slots=True)
class Choice:
    """What was asked and what was found."""

    job: Job
    tokens: float
    tokens_told: bool
    found: Found
    objective: str
    budget: float | None
    deadline: float | None
    want: Filters
    policy: Policy
    dearer: Found | None = None  # without a price cap that left nothing


def where(plan: Plan) -> str:
    """Provider, billing and ISO date of the offer, for people: "runpod, on demand, seen 2026-11-30"."""
    billing = {"on_demand": "on demand", "secure": "on demand"}.get(plan.billing, plan.billing.replace("_", " "))
    return f"{plan.provider}, {billing}, seen {plan.observed}"


def machine(plan: Plan) -> str:
    """Cards, and the precision where it is not the usual bf16 or a stored base's."""
    kind = {"fp8": " in FP8", "fp16": " in fp16", "fp16_mixed": " in fp16"}.get(plan.precision, "")
    return cards(plan.set_up.n_gpus, plan.set_up.gpu) + kind


def with_reasons(plans: list[Plan], choice: Choice) -> list[tuple[Plan, str]]:
    """Up to ``SHOWN`` of the ranked plans, in their order, each with why it is there in words; ``[]`` for no plan. More
    than that are thinned over the range. "Finished run" is said only where the tokens were told.
    """
    if not plans:
        return []
    picked = plans if len(plans) <= SHOWN else _spread(plans)
    cheapest, fastest = min(picked, key=lambda p: p.cost), min(picked, key=lambda p: p.hours)
    balanced = min(picked, key=lambda p: p.cost * p.hours)
    rows = []
    for number, plan in enumerate(picked):
        reason = "no other is cheaper and faster"
        if not choice.tokens_told:
            reason = "lowest price by the hour" if number == 0 else "fits as well"
            if plan is cheapest:
                reason = "cheapest a token" + ("; " + reason if number == 0 else "")
        elif plan is cheapest:
            reason = "cheapest finished run"
        elif plan is fastest:
            reason = "fastest"
        elif plan is balanced:
            reason = "lowest cost x time"
        elif number:
            before = picked[number - 1]
            reason = "faster than the row above, and dearer" if plan.hours < before.hours else "next best"
        rows.append((plan, reason))
    return rows


def _spread(plans: list[Plan]) -> list[Plan]:
    """The ends and an even choice between them."""
    steps = [round(i * (len(plans) - 1) / (SHOWN - 1)) for i in range(SHOWN)]
    return [plans[i] for i in dict.fromkeys(steps)]


def plan_table(listed: list[tuple[Plan, str]], told: bool) -> Table:
    """The plans, one a row: memory in bytes a GPU, wall-clock hours, USD of the finished run. ``told`` is whether the
    tokens were given; the title says so where they were assumed.
    """
    columns = [
        Column(key="machine", label="machine"), Column(key="provider", label="provider"),
        Column(key="region", label="region"), Column(key="billing", label="billing"),
        Column(key="price", label="price", unit="USD/GPU-h"), Column(key="seen", label="seen"),
        Column(key="memory", label="memory a GPU", unit="B"), Column(key="hours", label="time", unit="h"),
        Column(key="cost", label="finished run", unit="USD"), Column(key="precision", label="precision"),
        Column(key="layout", label="layout"),
        Column(key="why", label="why"),
    ]  # fmt: skip
    rows: list[list[float | int | str | bool | None]] = [
        [
            machine(plan), plan.provider, plan.region or "any", plan.billing.replace("_", " "), plan.usd_per_gpu_hour,
            plan.observed, plan.set_up.need.peak_bytes, plan.hours, plan.cost, plan.precision.replace("_", " "),
            plan.set_up.layout, reason,
        ]
        for plan, reason in listed
    ]  # fmt: skip
    title = "Plans worth having"
    if not told:
        title = "Cards that fit, lowest price by the hour first; time and cost for the tokens assumed"
    return Table(id="plans", title=title, columns=columns, rows=rows)


def ruled_out_table(choice: Choice) -> Table:
    """Cards that cannot, most memory first and at most 12: bytes needed and usable per GPU, and why in words."""
    columns = [
        Column(key="machine", label="largest machine tried"), Column(key="need", label="needs a GPU", unit="B"),
        Column(key="has", label="has", unit="B"), Column(key="why", label="why"),
    ]  # fmt: skip
    misses = sorted(choice.found.ruled_out, key=lambda miss: -miss.gpu.usable_bytes)[:12]
    rows: list[list[float | int | str | bool | None]] = [
        [cards(miss.n_gpus, miss.gpu), miss.need.peak_bytes, miss.gpu.usable_bytes, miss.why] for miss in misses
    ]
    return Table(id="ruled_out", title="Ruled out", columns=columns, rows=rows)
