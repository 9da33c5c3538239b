"""What to say where the plan that wins rests on an old price: how old, and what wins at newer ones.

The cheapest of many offers is more often than not one that somebody has since raised or withdrawn, so a reader must see
what the verdict would be without it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from knowledge.prices import columns
from tools.cost.search import NEWER_DAYS, Plan
from tools.cost.select_tables import Choice, machine, where
from tools.cost.words import Facts
from tools.result import ToolResult, Warn


def say_newer(
    result: ToolResult, facts: Facts, best: Plan, choice: Choice, allowed: Callable[[Plan], bool],
    add: Callable[[Facts, Plan, str], None],
) -> None:  # fmt: skip
    """Name the cheapest plan at a newer price as the first next step, or warn that there is none.

    By the cost of the run where its tokens were told, else by the machine's price by the hour at the verdict's count.
    ``allowed``: whether a plan keeps the limits that were asked for; ``add``: writes a plan's facts under a name.
    Nothing is said where the winner's own price is at most ``NEWER_DAYS`` older than the newest of the book.
    """
    newest = date.fromisoformat(str(columns().day.max()))
    age = (newest - date.fromisoformat(best.observed[:10])).days
    if age <= NEWER_DAYS:
        return
    fitting = [plan for plan in choice.found.newer if plan.set_up.fit == best.set_up.fit and allowed(plan)]
    if not choice.tokens_told:
        fitting = [plan for plan in fitting if plan.set_up.n_gpus == best.set_up.n_gpus]
    if not fitting:
        text = "The price that decides is old, and no newer one keeps these limits: ask the provider first."
        result.warnings.append(Warn(code="old_price", text=text))
        return
    facts.add("price_age", age, "days", kind="exact", label="older than the newest price of the book",
              about=[best.set_up.gpu.id, best.provider], as_of=best.observed)  # fmt: skip
    plan = min(fitting, key=(lambda one: one.cost) if choice.tokens_told else _hourly)
    add(facts, plan, "newer")
    bill = "[[newer_hours]] and [[newer_cost]]" if choice.tokens_told else "from [[newer_price]]"
    result.next_steps.insert(
        0,
        "That price is [[price_age]] older than the newest in the book. At prices of its last three months the "
        f"cheapest is {machine(plan)} ({where(plan)}): {bill}.",
    )


def _hourly(plan: Plan) -> float:
    return plan.usd_per_gpu_hour * plan.set_up.n_gpus
