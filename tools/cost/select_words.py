"""Choosing among the plans and saying why: facts, tables and sentences of ``select_gpu``."""

from __future__ import annotations

from tools.cost.old_prices import say_newer
from tools.cost.plan_chart import front_chart
from tools.cost.precisions import FP8_NOTE
from tools.cost.search import TOO_LITTLE, Plan, pareto
from tools.cost.select_tables import SHOWN, Choice, machine, plan_table, ruled_out_table, where, with_reasons
from tools.cost.words import Facts, cards, doing
from tools.result import SourceRef, ToolResult, Warn
from tools.throughput.efficiency import known_chip
from tools.units import Unit


def write(result: ToolResult, choice: Choice) -> list[tuple[Plan, str]]:
    """Fill in the result; returns the plans shown with the reason of each."""
    facts = Facts()
    facts.add("max_gpus", choice.want.max_gpus, "GPUs", kind="exact", label="largest cluster considered")
    plans = choice.found.plans
    if _cap(choice) is not None:
        unit: Unit = "USD/GPU-h" if choice.want.usd_per_gpu_hour else "USD/h"
        facts.add("price_cap", _cap(choice) or 0.0, unit, kind="exact", label="price cap")
    if not plans and choice.dearer is not None and choice.dearer.plans:
        _all_dearer(result, facts, choice)
        result.facts = facts.found
        return []
    if not plans:
        _nothing_fits(result, facts, choice)
        result.facts = facts.found
        return []
    every = [plan for plan in plans if plan.set_up.fit == "fits"] or plans
    narrow = [plan for plan in every if _beside(plan, choice)]
    sure = [plan for plan in every if not _beside(plan, choice)] or every
    front = pareto(sure)
    meets = [plan for plan in sure if _in_time(plan, choice) and _in_budget(plan, choice)]
    if not choice.tokens_told:
        shown = _smallest(sure)
    elif meets:
        shown = _ranked(meets, choice.objective)
    else:
        shown = _ranked(front, choice.objective)
    best = shown[0]
    _best_facts(facts, choice, best)
    others = [plan for plan in shown[1:] if plan.set_up.gpu.id != best.set_up.gpu.id]
    if not known_chip(best.set_up.gpu, best.set_up.speed.bits):  # beside an unmeasured card, one that was measured
        others = [plan for plan in others if known_chip(plan.set_up.gpu, plan.set_up.speed.bits)] or others
    if not others and not choice.tokens_told:  # one card alone at the fewest: the next best takes more cards
        more = sorted(sure, key=lambda plan: (plan.set_up.n_gpus, plan.usd_per_gpu_hour))
        others = [plan for plan in more if plan.set_up.gpu.id != best.set_up.gpu.id]
        shown = [*shown, *others[:1]]
    other = others[0] if others else (shown[1] if len(shown) > 1 else None)
    if other is not None:
        _other_facts(facts, other, "runner_up")
    if not choice.tokens_told:
        _say_smallest(result, facts, choice, sure, best, other)
        say_newer(result, facts, best, choice, lambda plan: _allowed(plan, choice), _other_facts)
    elif meets or (choice.budget is None and choice.deadline is None):
        _say_best(result, facts, choice, front, best, other)
        if choice.objective == "cost":
            say_newer(result, facts, best, choice, lambda plan: _allowed(plan, choice), _other_facts)
    else:
        _say_misses(result, facts, choice, sure)
    speed = best.set_up.speed
    if not known_chip(best.set_up.gpu, speed.bits):
        result.warnings.append(
            Warn(code="unmeasured_card", text=f"No training speed of {best.set_up.gpu.id}'s kind was measured at this "
                 "precision: its time and cost are the least certain here.")
        )  # fmt: skip
    result.facts = facts.found
    listed = with_reasons(shown[:SHOWN] if not choice.tokens_told else (pareto(meets) if meets else front), choice)
    if choice.tokens_told and narrow:
        listed += _say_fp8(result, facts, choice, narrow, best)
        result.facts = facts.found
    result.tables = [plan_table(listed, choice.tokens_told)]
    if choice.found.ruled_out:
        result.tables.append(ruled_out_table(choice))
    result.charts.append(front_chart(sure, front))
    _sources(result, [plan for plan, _reason in listed] + [best])
    result.suggestions = _suggestions(choice, best)
    return listed


def _beside(plan: Plan, choice: Choice) -> bool:
    """Whether a plan is in FP8 without having been asked for: shown beside the others, never the verdict."""
    return plan.precision == "fp8" and choice.job.precision != "fp8"


def _allowed(plan: Plan, choice: Choice) -> bool:
    return not _beside(plan, choice) and _in_time(plan, choice) and _in_budget(plan, choice)


def _in_time(plan: Plan, choice: Choice) -> bool:
    return choice.deadline is None or plan.hours <= choice.deadline


def _in_budget(plan: Plan, choice: Choice) -> bool:
    return choice.budget is None or plan.cost <= choice.budget


def _ranked(plans: list[Plan], objective: str) -> list[Plan]:
    if objective == "time":
        return sorted(plans, key=lambda plan: (plan.hours, plan.cost))
    if objective == "balance":
        return sorted(plans, key=lambda plan: plan.cost * plan.hours)
    return sorted(plans, key=lambda plan: (plan.cost, plan.hours))


def _smallest(plans: list[Plan]) -> list[Plan]:
    """Fewest cards first, then the lowest price of the machine by the hour; one plan a card."""
    fewest = min(plan.set_up.n_gpus for plan in plans)
    ordered = sorted(
        (plan for plan in plans if plan.set_up.n_gpus == fewest),
        key=lambda plan: plan.usd_per_gpu_hour * plan.set_up.n_gpus,
    )
    seen: set[str] = set()
    return [plan for plan in ordered if not (plan.set_up.gpu.id in seen or seen.add(plan.set_up.gpu.id))]  # type: ignore[func-returns-value]


def _best_facts(facts: Facts, choice: Choice, plan: Plan) -> None:
    job, speed = plan.set_up.job, plan.set_up.speed
    about = [plan.set_up.gpu.id, plan.provider, job.arch.id]
    low, high = 1 / speed.high_factor, 1 / speed.low_factor
    facts.add("recommended_gpu", plan.set_up.gpu.id, kind="exact", label="card", about=about)
    facts.add("recommended_count", plan.set_up.n_gpus, "GPUs", kind="exact", label="cards")
    need, usable = plan.set_up.need, plan.set_up.gpu.usable_bytes
    facts.add("peak_per_gpu", need.peak_bytes, "B", low=need.low_bytes, high=need.high_bytes, label="memory a GPU")
    facts.add("usable_memory", usable, "B", kind="exact", label="usable on the card")
    facts.add("headroom", (usable - need.peak_bytes) / usable * 100, "%", label="memory left free")
    facts.add(
        "usd_per_gpu_hour", plan.usd_per_gpu_hour, "USD/GPU-h", kind="price", as_of=plan.observed,
        label=f"{plan.provider}, {plan.billing.replace('_', '-')}", basis=plan.source, about=about,
    )  # fmt: skip
    per_second = speed.tokens_per_second
    facts.add(
        "tokens_per_second", per_second, "tokens/s", low=per_second * speed.low_factor,
        high=per_second * speed.high_factor, label="speed of the whole job",
    )  # fmt: skip
    facts.add("mfu", speed.mfu, label="model FLOPs utilisation")
    million = plan.cost / choice.tokens * 1e6
    facts.add("usd_per_million_tokens", million, "USD", low=million * low, high=million * high, as_of=plan.observed,
              label="a million tokens, hidden parts included")  # fmt: skip
    facts.add("run_hours", plan.training_hours, "h", low=plan.training_hours * low, high=plan.training_hours * high,
              label="training time")  # fmt: skip
    facts.add("wall_hours", plan.hours, "h", low=plan.hours * low, high=plan.hours * high,
              label="start-up to last step")  # fmt: skip
    facts.add("gpu_hours", plan.training_hours * plan.set_up.n_gpus, "h", label="GPU-hours of training")
    facts.add("run_cost", plan.cost, "USD", low=plan.cost * low, high=plan.cost * high, as_of=plan.observed,
              label="finished run", basis="price x GPUs x billed hours + storage")  # fmt: skip
    facts.add("tokens", choice.tokens, "tokens", kind="exact", label="training tokens")


def _other_facts(facts: Facts, plan: Plan, name: str) -> None:
    about = [plan.set_up.gpu.id, plan.provider]
    need = plan.set_up.need
    facts.add(f"{name}_price", plan.usd_per_gpu_hour, "USD/GPU-h", kind="price", as_of=plan.observed,
              basis=plan.source, about=about, label=f"{plan.provider}, {plan.billing.replace('_', '-')}")  # fmt: skip
    facts.add(f"{name}_cost", plan.cost, "USD", as_of=plan.observed, about=about, label="finished run")
    facts.add(f"{name}_hours", plan.hours, "h", about=about, label="start-up to last step")
    facts.add(f"{name}_peak", need.peak_bytes, "B", low=need.low_bytes, high=need.high_bytes, about=about,
              label="memory a GPU")  # fmt: skip
    facts.add(f"{name}_count", plan.set_up.n_gpus, "GPUs", kind="exact", about=about, label="cards")
    headroom = (1 - need.peak_bytes / plan.set_up.gpu.usable_bytes) * 100
    facts.add(f"{name}_headroom", headroom, "%", about=about, label="memory left free")


def _say_smallest(
    result: ToolResult, facts: Facts, choice: Choice, sure: list[Plan], best: Plan, other: Plan | None
) -> None:
    capped = " for all GPUs together" if choice.want.usd_per_hour else ""
    held = f"Within [[price_cap]]{capped}: " if _cap(choice) is not None else ""
    text = (
        f"{held}{machine(best)} is the cheapest that fits for {doing(choice.job, inside=True)}: it needs "
        f"[[peak_per_gpu]] a GPU of [[usable_memory]] ([[headroom]] free), from [[usd_per_gpu_hour]] ({where(best)})."
    )
    if other is not None:
        text += f" Runner-up: {machine(other)} from [[runner_up_price]] ({where(other)}), [[runner_up_headroom]] free."
    result.verdict = text
    value = min(sure, key=lambda plan: plan.cost)
    if value is not best:
        million = value.cost / choice.tokens * 1e6
        facts.add("best_value_per_million_tokens", million, "USD", as_of=value.observed, about=[value.set_up.gpu.id],
                  label=f"{machine(value)} at {value.provider}")  # fmt: skip
        result.next_steps.append(
            f"Cheapest a token is {machine(value)} ({where(value)}): [[best_value_per_million_tokens]] a million "
            "tokens, against [[usd_per_million_tokens]], hidden parts included."
        )
    else:
        result.next_steps.append("It is also the cheapest a token: [[usd_per_million_tokens]] a million, all included.")
    result.next_steps.append("Say how many tokens you train on, and I rank whole runs by cost and time.")


def _cap(choice: Choice) -> float | None:
    return choice.want.usd_per_gpu_hour or choice.want.usd_per_hour


def _all_dearer(result: ToolResult, facts: Facts, choice: Choice) -> None:
    """Nothing that fits is within the price cap: the nearest that does fit, and what it costs."""
    assert choice.dearer is not None
    plans = [plan for plan in choice.dearer.plans if not _beside(plan, choice)]
    plans = [plan for plan in plans if plan.set_up.fit == "fits"] or plans
    whole = choice.want.usd_per_hour is not None
    nearest = min(plans, key=lambda plan: plan.usd_per_gpu_hour * (plan.set_up.n_gpus if whole else 1))
    _other_facts(facts, nearest, "nearest")
    total = nearest.usd_per_gpu_hour * nearest.set_up.n_gpus
    facts.add("nearest_usd_per_hour", total, "USD/h", kind="price", as_of=nearest.observed,
              about=[nearest.set_up.gpu.id, nearest.provider], label="all its GPUs")  # fmt: skip
    result.verdict = (
        f"No: nothing on offer within [[price_cap]]{' for all GPUs together' if whole else ''} holds "
        f"{doing(choice.job, inside=True)}. The nearest is {machine(nearest)} at [[nearest_price]], "
        f"[[nearest_usd_per_hour]] in all ({where(nearest)})."
    )
    result.next_steps.append("LoRA or QLoRA needs a fraction of the memory; spot (spot=true) lowers the price.")
    _sources(result, [nearest])


def _say_best(
    result: ToolResult, facts: Facts, choice: Choice, front: list[Plan], best: Plan, other: Plan | None
) -> None:
    word = {"cost": "Cheapest", "time": "Fastest", "balance": "Best balance"}[choice.objective]
    limits = []
    if choice.budget is not None:
        facts.add("budget", choice.budget, "USD", kind="exact", label="budget")
        limits.append("within [[budget]]")
    if choice.deadline is not None:
        facts.add("deadline", choice.deadline, "h", kind="exact", label="time left")
        limits.append("in [[deadline]]")
    held = f" {' and '.join(limits)}" if limits else ""
    result.verdict = (
        f"{word}{held} for {doing(choice.job, inside=True)} on [[tokens]]: {machine(best)} at [[usd_per_gpu_hour]] "
        f"({where(best)}): [[wall_hours]] ([[wall_hours|range]]) and [[run_cost]] ([[run_cost|range]]) in the end."
    )
    if other is not None:
        result.verdict += f" Runner-up: {machine(other)} ({where(other)}), [[runner_up_hours]] and [[runner_up_cost]]."
    speed = best.set_up.speed
    if choice.deadline is not None and best.hours / speed.low_factor > choice.deadline:
        safe = [p for p in front if p.hours / p.set_up.speed.low_factor <= choice.deadline and _in_budget(p, choice)]
        if safe:
            plan = min(safe, key=lambda one: one.cost)
            _other_facts(facts, plan, "safe")
            result.next_steps.append(
                f"At the slow end of the range it would be late; {machine(plan)} ({where(plan)}) is in time even "
                "then: [[safe_hours]] and [[safe_cost]] expected."
            )
        else:
            result.warnings.append(Warn(code="deadline_tight", text="At the slow end of the range it would be late."))
    if choice.budget is not None and best.cost / speed.low_factor > choice.budget:
        result.warnings.append(Warn(code="budget_tight", text="At the slow end of the range it would cost more."))
    _faster(result, facts, front, best)


def _say_fp8(
    result: ToolResult, facts: Facts, choice: Choice, narrow: list[Plan], best: Plan
) -> list[tuple[Plan, str]]:
    """The same search in FP8, beside the verdict: its rows with reasons, and what it would save."""
    meeting = [plan for plan in narrow if _in_time(plan, choice) and _in_budget(plan, choice)]
    allowed = meeting or narrow
    cheapest, fastest = min(allowed, key=lambda p: (p.cost, p.hours)), min(allowed, key=lambda p: (p.hours, p.cost))
    if cheapest.cost < best.cost or cheapest.hours < best.hours:
        _other_facts(facts, cheapest, "fp8")
        limited = choice.budget is not None or choice.deadline is not None
        kept = ", within the limits" if meeting and limited else ""
        result.next_steps.append(
            f"With FP8 products, {machine(cheapest)} ({where(cheapest)}) takes [[fp8_hours]] for [[fp8_cost]]{kept}; "
            "that needs Transformer Engine or torchao, and a check that the loss follows a bf16 run's."
        )
    result.warnings.append(Warn(code="fp8", text=FP8_NOTE))
    rows = [(cheapest, "cheapest in FP8")]
    if fastest is not cheapest:
        rows.append((fastest, "fastest in FP8"))
    return rows


def _faster(result: ToolResult, facts: Facts, front: list[Plan], best: Plan) -> None:
    faster = [plan for plan in front if plan.hours <= best.hours / 2]
    if faster:
        plan = min(faster, key=lambda one: one.cost)
        _other_facts(facts, plan, "faster")
        facts.add("faster_extra_cost", (plan.cost / best.cost - 1) * 100, "%", label="more than the cheapest")
        result.next_steps.append(
            f"Twice as fast or better: {machine(plan)} ({where(plan)}) takes [[faster_hours]] for [[faster_cost]], "
            "[[faster_extra_cost]] more."
        )


def _say_misses(result: ToolResult, facts: Facts, choice: Choice, sure: list[Plan]) -> None:
    cheapest = min(sure, key=lambda plan: plan.cost)
    fastest = min(sure, key=lambda plan: plan.hours)
    _other_facts(facts, cheapest, "cheapest")
    _other_facts(facts, fastest, "fastest")
    affordable = choice.budget is None or cheapest.cost <= choice.budget
    quick = choice.deadline is None or fastest.hours <= choice.deadline
    if choice.budget is not None:
        facts.add("budget", choice.budget, "USD", kind="exact", label="budget")
    if choice.deadline is not None:
        facts.add("deadline", choice.deadline, "h", kind="exact", label="time left")
    if choice.budget is not None and not affordable:
        running = cheapest.cost / choice.tokens
        bought = choice.budget / running
        facts.add("tokens_affordable", bought, "tokens", label="tokens that the budget buys", about=[cheapest.provider])
        facts.add("share_affordable", bought / choice.tokens * 100, "%", label="of the run")
        result.verdict = (
            f"No: [[budget]] does not pay for {doing(choice.job, inside=True)} on [[tokens]]. The cheapest plan is "
            f"{machine(cheapest)} ({where(cheapest)}), [[cheapest_cost]] in [[cheapest_hours]]; the budget buys "
            "[[tokens_affordable]] of training there, [[share_affordable]] of the run."
        )
        result.warnings.append(Warn(code="over_budget", text="No plan stays within the budget."))
    elif choice.deadline is not None and not quick:
        done = choice.tokens * choice.deadline / fastest.hours
        facts.add("tokens_in_time", done, "tokens", label="tokens trained by the deadline")
        result.verdict = (
            f"No: nothing within [[max_gpus]] finishes {doing(choice.job, inside=True)} on [[tokens]] in "
            f"[[deadline]]. The fastest is {machine(fastest)} ({where(fastest)}): [[fastest_hours]] and "
            "[[fastest_cost]]; by the deadline it has trained on [[tokens_in_time]]."
        )
        result.warnings.append(Warn(code="too_late", text="No plan meets the deadline."))
    else:
        in_time = [plan for plan in sure if _in_time(plan, choice)]
        in_budget = [plan for plan in sure if _in_budget(plan, choice)]
        quick_plan = min(in_time, key=lambda plan: plan.cost)
        cheap_plan = min(in_budget, key=lambda plan: plan.hours)
        _other_facts(facts, quick_plan, "in_time")
        _other_facts(facts, cheap_plan, "in_budget")
        result.verdict = (
            f"Not both: {doing(choice.job, inside=True)} on [[tokens]] meets [[deadline]] from [[in_time_cost]] "
            f"({machine(quick_plan)}, {where(quick_plan)}), and within [[budget]] it takes [[in_budget_hours]] "
            f"({machine(cheap_plan)}, {where(cheap_plan)})."
        )
        result.warnings.append(Warn(code="limits_conflict", text="No plan meets both the deadline and the budget."))
    result.next_steps.append(
        "Fewer tokens, LoRA instead of full training, or spot machines (spot=true) change this most."
    )


def _nothing_fits(result: ToolResult, facts: Facts, choice: Choice) -> None:
    if choice.found.offers == 0:
        result.verdict = "No offer in the price book passes these filters, so nothing can be ranked."
        result.warnings.append(
            Warn(code="no_price", text="Loosen provider, region, billing or GPU; prices are never guessed.")
        )
        return
    misses = sorted(choice.found.ruled_out, key=lambda miss: miss.need.peak_bytes / miss.gpu.usable_bytes)
    if not misses:
        result.verdict = "No machine of this size is on offer."
        return
    nearest = misses[0]
    if all(miss.why != TOO_LITTLE for miss in misses):
        result.verdict = (
            f"None of these cards can be used for {doing(choice.job, inside=True)} as asked: {nearest.gpu.id} has "
            f"{nearest.why}."
        )
        result.tables = [ruled_out_table(choice)]
        return
    facts.add("peak_per_gpu", nearest.need.peak_bytes, "B", low=nearest.need.low_bytes, high=nearest.need.high_bytes,
              label="smallest need a GPU", about=[nearest.gpu.id])  # fmt: skip
    facts.add("usable_memory", nearest.gpu.usable_bytes, "B", kind="exact", label="usable on the card")
    result.verdict = (
        f"Nothing on offer within [[max_gpus]] fits {doing(choice.job, inside=True)}: the nearest, "
        f"{cards(nearest.n_gpus, nearest.gpu)}, would need [[peak_per_gpu]] a GPU and has [[usable_memory]]."
    )
    result.next_steps.append("Raise max_gpus, shorten the sequence, or train adapters (LoRA, QLoRA) instead.")
    result.tables = [ruled_out_table(choice)]


def _sources(result: ToolResult, plans: list[Plan]) -> None:
    for plan in plans:
        if all(source.id != plan.source for source in result.sources):
            result.sources.append(SourceRef(id=plan.source, title=f"Prices: {plan.source}", as_of=plan.observed))


def _suggestions(choice: Choice, best: Plan) -> list[str]:
    gpu = best.set_up.gpu.id
    asked = [f"How long does it take on {machine(best)}, and what are the hidden costs?"]
    if not choice.tokens_told:
        asked.append("Which is cheapest for 100M tokens?")
    asked.append("And on spot machines?")
    asked.append(f"Does a longer sequence still fit on {gpu}?")
    return asked
