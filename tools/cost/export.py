"""A run's bill as rows with the column names of FOCUS, the open specification of cloud bills, and a budget request.

FOCUS 1.2 (FinOps Foundation, focus.finops.org) names the columns; ``x_`` marks our own, as it prescribes. The rows are
a forecast: dates are filled in from the start that is given, never from a clock.
"""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime, timedelta

from tools.cost.run import Bill
from tools.cost.words import cards, doing
from tools.errors import BadValue
from tools.result import FileText
from tools.workload import Job

_PRICING = {"spot": "Dynamic", "community": "Dynamic", "reserved_1y": "Committed", "reserved_3y": "Committed"}
_PARTS = (
    ("training", "Compute", "Training"), ("failures", "Compute", "Failures and restarts"),
    ("checkpoint_stalls", "Compute", "Waiting for checkpoints"), ("evaluation", "Compute", "Evaluation"),
    ("start_up", "Compute", "Start-up"), ("idle", "Compute", "Idle and debugging"),
    ("storage", "Storage", "Checkpoints and dataset"), ("egress", "Networking", "Egress of the result"),
)  # fmt: skip
COLUMNS = (
    "BilledCost", "EffectiveCost", "ListCost", "ContractedCost", "BillingCurrency", "ChargeCategory",
    "ChargeDescription", "ChargeFrequency", "ChargePeriodStart", "ChargePeriodEnd", "PricingCategory",
    "PricingQuantity", "PricingUnit", "ListUnitPrice", "ConsumedQuantity", "ConsumedUnit", "ProviderName", "RegionId",
    "ServiceCategory", "ServiceName", "ResourceType", "SkuId", "Tags", "x_CostLow", "x_CostHigh", "x_PriceObserved",
)  # fmt: skip
Row = dict[str, str | float | None]


def focus_rows(
    job: Job,
    gpu: str,
    bill: Bill,
    usd_per_gpu_hour: float,
    hours: float,
    provider: str = "",
    region: str = "",
    billing: str = "on_demand",
    observed: str = "",
    spread: tuple[float, float] = (1.0, 1.0),
    start: str | None = None,
    project: str = "",
) -> list[Row]:
    """One charge, USD, a part of the bill, in the columns of FOCUS 1.2; parts without cost are left out. ``hours`` is
    the billed time, ``spread`` the factors of the low and high cost, ``start`` an ISO date (None leaves the period
    open). Raises BadValue for a start that is no date.
    """
    begin, end = _period(start, hours)
    rows: list[Row] = []
    for name, category, words in _PARTS:
        cost = float(getattr(bill, name))
        if cost <= 0:
            continue
        compute = category == "Compute"
        quantity = cost / usd_per_gpu_hour if compute and usd_per_gpu_hour else None
        rows.append(
            {
                "BilledCost": round(cost, 6), "EffectiveCost": round(cost, 6), "ListCost": round(cost, 6),
                "ContractedCost": round(cost, 6), "BillingCurrency": "USD", "ChargeCategory": "Usage",
                "ChargeDescription": f"{words}: {doing(job)} on {cards(job.n_gpus, gpu)}",
                "ChargeFrequency": "Usage-Based", "ChargePeriodStart": begin, "ChargePeriodEnd": end,
                "PricingCategory": _PRICING.get(billing, "Standard"),
                "PricingQuantity": None if quantity is None else round(quantity, 4),
                "PricingUnit": "GPU-Hours" if compute else None,
                "ListUnitPrice": usd_per_gpu_hour if compute else None,
                "ConsumedQuantity": None if quantity is None else round(quantity, 4),
                "ConsumedUnit": "GPU-Hours" if compute else None, "ProviderName": provider or None,
                "RegionId": region or None, "ServiceCategory": category,
                "ServiceName": "GPU rental" if compute else words, "ResourceType": gpu if compute else None,
                "SkuId": f"{gpu}/{billing}" if compute else None,
                "Tags": json.dumps({"project": project or "training", "model": job.arch.id, "method": job.method}),
                "x_CostLow": round(cost * spread[0], 6), "x_CostHigh": round(cost * spread[1], 6),
                "x_PriceObserved": observed or None,
            }
        )  # fmt: skip
    return rows


def files(rows: list[Row]) -> list[FileText]:
    """The rows of ``focus_rows`` as two files, CSV (None as an empty cell) and JSON; only their texts, nothing is
    written.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: "" if value is None else value for key, value in row.items()} for row in rows)
    return [
        FileText(path="run-budget.focus.csv", language="csv", text=text.getvalue(), checked="csv"),
        FileText(path="run-budget.focus.json", language="json", text=json.dumps(rows, indent=1), checked="json"),
    ]


def budget_request(job: Job, gpu: str, given_mfu: bool, dated: str, energy: bool = True) -> str:
    """One paragraph to send, numbers as references to the result's facts."""
    spread = "" if given_mfu else " (between [[run_cost|range]])"
    when = f", seen {dated}" if dated else ""
    return (
        f"Budget request: [[run_cost]]{spread} for {doing(job, inside=True)} on [[tokens]], on "
        f"{cards(job.n_gpus, gpu)} at [[usd_per_gpu_hour]]{when}. That is [[gpu_hours]] of GPU time in [[run_hours]] "
        "of training, and [[hidden_cost]] for start-up, evaluation, failures, idle time and storage."
        + (" Energy about [[energy]]." if energy else "")
    )


def _period(start: str | None, hours: float) -> tuple[str | None, str | None]:
    if not start:
        return None, None
    try:
        begin = datetime.fromisoformat(start.strip().upper().replace("Z", "+00:00")).replace(tzinfo=None)
    except ValueError:
        raise BadValue(
            "not_a_date", f"{start!r} is not a date.", field="start", hint="Write it as 2026-12-04."
        ) from None
    end = begin + timedelta(hours=min(hours, 876_000))
    return f"{begin.isoformat()}Z", f"{end.replace(microsecond=0).isoformat()}Z"
