"""The most that fits within a limit: tokens or a model for a sum or for hours, cards that meet a deadline."""

from __future__ import annotations

import math
from typing import Any

from advisor.llm.planner.decide import Decider
from advisor.llm.planner.plan import Limit
from advisor.llm.planner.run_sizes import billions_of, default_count, run_methods
from knowledge.gpus import load_gpu


def ladder(d: Decider, limit: Limit, argument: str, values: tuple[Any, ...], **extra: Any) -> None:
    """estimate_run over rising values of one argument, held against a limit that the asker gave."""
    d.limit = limit
    base = d.workload("estimate_run", **extra)
    for value in values:
        about = str(value) if argument == "model" else f"{argument}={value}"
        d.add("estimate_run", {**base, argument: value}, "ladder", about)


def in_time(d: Decider, card: str) -> None:
    """The fewest of a card that finish by the deadline: runs on six counts, doubling, held against its hours."""
    hours = float(d.state.get("deadline_hours"))
    limit = Limit("run_hours", hours, "the deadline")
    method = d.method() or run_methods(d)[0]
    ladder(d, limit, "n_gpus", _counts_around(d, card, hours), gpu=card, method=method)
    d.whole = True


_ROUGH_MFU = 0.35  # only for choosing which counts to compute
_MOST_TRIED = 4096


def _counts_around(d: Decider, card: str, hours: float) -> tuple[int, ...]:
    """Six counts, doubling, around what the work takes at a usual share of peak: 6 x parameters x tokens."""
    tokens = float(d.state.get("tokens") or 0)
    peak = load_gpu(card).dense_flops.get("bf16") or load_gpu(card).dense_flops.get("fp16") or 1e14
    needed = 6e9 * billions_of(d.state.model) * tokens / (_ROUGH_MFU * peak * hours * 3600) if tokens else 4
    middle = 2 ** round(math.log2(max(needed, 4)))
    least = max(1, min(middle, _MOST_TRIED) // 8)
    return tuple(least * 2**step for step in range(6))


def tokens_in_time(d: Decider, card: str) -> None:
    """The most tokens that a count of cards sees in the hours given: runs from 100M to 1T tokens."""
    limit = Limit("run_hours", float(d.state.get("deadline_hours") or d.state.get("hours")), "the time")
    values = ("100M", "300M", "1B", "3B", "10B", "30B", "100B", "300B", "1T")
    count = d.count_of(card) or default_count(d)
    ladder(d, limit, "tokens", values, gpu=card, n_gpus=count, method=d.method() or "pretrain")


def tokens_for_money(d: Decider, card: str) -> None:
    """The most tokens that a budget (USD) buys: runs over rising tokens, held against it."""
    budget = float(d.state.get("budget_usd"))
    limit = Limit("run_cost", budget, "the budget")
    values: tuple[str, ...] = ("3M", "10M", "30M", "100M", "300M", "1B", "3B", "10B", "30B")
    if budget >= _LARGE_BUDGET:
        values = ("300M", "1B", "3B", "10B", "30B", "100B", "300B", "1T")
    count, method = d.count_of(card) or default_count(d), d.method() or run_methods(d)[0]
    ladder(d, limit, "tokens", values, gpu=card, n_gpus=count, method=method)


_LARGE_BUDGET = 3_000  # USD


def model_for_money(d: Decider, card: str) -> None:
    """The largest model that a budget trains on its default share of tokens."""
    limit = Limit("run_cost", float(d.state.get("budget_usd")), "the budget")
    values = ("410M", "1B", "1.4B", "2B", "3B", "4B", "7B", "13B")
    ladder(d, limit, "model", values, gpu=card, n_gpus=d.count_of(card) or 8, method="pretrain")


def model_in_gpu_hours(d: Decider, card: str) -> None:
    """The largest model that a stock of GPU-hours trains on its default share of tokens."""
    limit = Limit("gpu_hours", float(d.state.get("gpu_hours")), "the GPU-hours")
    values = ("160M", "410M", "700M", "1B", "1.4B", "2B", "3B", "7B")
    ladder(d, limit, "model", values, gpu=card, n_gpus=d.state.get("n_gpus"), method="pretrain")


def model_in_time(d: Decider, card: str) -> None:
    """The largest model that a card pretrains on its default share of tokens in a time."""
    limit = Limit("run_hours", float(d.state.get("deadline_hours") or d.state.get("hours")), "the time")
    values = ("20M", "50M", "100M", "160M", "250M", "410M", "1B", "3B")
    ladder(d, limit, "model", values, gpu=card, n_gpus=d.count_of(card) or 1, method="pretrain")
