"""The chart of ``select_gpu``: every plan by cost and time, and the front that nothing beats."""

from __future__ import annotations

from typing import Any

from tools.cost.search import Plan
from tools.cost.words import cards

CHARTED = 60  # the cheapest; more points hide the front


def front_chart(plans: list[Plan], front: list[Plan]) -> dict[str, Any]:
    """Cost against time of the cheapest plan of each card and count; those that nothing beats are joined."""
    unbeaten = {id(plan) for plan in front}
    best: dict[tuple[str, int], Plan] = {}
    for plan in plans:
        key = (plan.set_up.gpu.id, plan.set_up.job.n_gpus)
        if key not in best or plan.cost < best[key].cost:
            best[key] = plan
    shown = sorted(best.values(), key=lambda plan: plan.cost)[:CHARTED]
    values = [
        {
            "machine": cards(plan.set_up.job.n_gpus, plan.set_up.gpu),
            "hours": round(plan.hours, 3),
            "USD": round(plan.cost, 2),
            "provider": plan.provider,
            "front": "nothing beats it" if id(plan) in unbeaten else "another is better",
        }
        for plan in {id(plan): plan for plan in [*shown, *front]}.values()
    ]
    x = {"field": "hours", "type": "quantitative", "scale": {"type": "log"}, "title": "hours, start-up to last step"}
    y = {"field": "USD", "type": "quantitative", "scale": {"type": "log"}, "title": "USD, the finished run"}
    only_front = {"filter": "datum.front === 'nothing beats it'"}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": "Cost and time of the finished run",
        "data": {"values": values},
        "layer": [
            {"transform": [only_front], "mark": {"type": "line", "strokeDash": [4, 3]}, "encoding": {"x": x, "y": y}},
            {
                "mark": {"type": "point", "filled": True, "size": 70},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": {"field": "front", "type": "nominal", "title": None},
                    "tooltip": [{"field": name} for name in ("machine", "provider", "hours", "USD")],
                },
            },
            {
                "transform": [only_front],
                "mark": {"type": "text", "align": "left", "dx": 8, "fontSize": 10},
                "encoding": {"x": x, "y": y, "text": {"field": "machine"}},
            },
        ],
    }
