"""``select_gpu``: which machine to rent for a job, from every offer in the price book."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import BaseModel, Field

from knowledge.gpus import find_gpu
from knowledge.providers import find_provider
from tools.cost.inputs import BillingChoice, RunInput
from tools.cost.layouts import Freedom
from tools.cost.limits import budget_usd, deadline_hours
from tools.cost.policy import choose_policy
from tools.cost.precisions import FP8_METHODS
from tools.cost.search import Filters, Plan, search
from tools.cost.select_tables import Choice
from tools.cost.select_words import write
from tools.cost.tokens import training_tokens
from tools.errors import BadValue
from tools.registry import tool
from tools.result import Assumption, ToolResult
from tools.throughput import software_of
from tools.workload import resolve

FIRM = ("on_demand", "secure")
MAX_GPUS_FINE_TUNING, MAX_GPUS_PRETRAINING = 64, 1024


class SelectGpuInput(RunInput):
    """A job, limits on time and money, and which offers may be used."""

    gpu: str | list[str] | None = Field(default=None, description="Only these cards.")
    deadline: float | str | None = Field(
        default=None, description="Hours (48), a span (3 days), a weekday or an ISO date; dates need now."
    )
    now: str | None = Field(default=None, description="Today as an ISO date or time, for dates as deadline.")
    budget: float | str | None = Field(default=None, description="USD for the finished run, e.g. 500 or '5k'.")
    provider: str | list[str] | None = Field(default=None, description="Only these providers; same as providers.")
    max_usd_per_gpu_hour: float | None = Field(default=None, gt=0, description="Price cap, USD per GPU-hour.")
    max_usd_per_hour: float | None = Field(default=None, gt=0, description="Price cap of all GPUs together, USD/h.")
    providers: str | list[str] | None = Field(default=None, description="Only these providers, e.g. aws, runpod.")
    region: str | None = Field(default=None, description="Part of a region's name; same as regions.")
    regions: str | list[str] | None = Field(default=None, description="Parts of region names, e.g. us-east, eu.")
    spot: bool | None = Field(default=None, description="Allow spot and marketplace offers; default false.")
    billing: BillingChoice | None = Field(default=None, description="Only this kind of billing.")
    objective: Literal["cost", "time", "balance"] = Field(default="cost", description="What to rank by.")
    max_gpus: int | None = Field(default=None, ge=1, le=100_000, description="Default 64; 1024 for pretraining.")


class PlanRow(BaseModel):
    """One plan, base units."""

    gpu: str
    n_gpus: int
    provider: str
    region: str
    billing: str
    usd_per_gpu_hour: float
    observed: str
    layout: str
    precision: str
    tp: int
    pp: int
    sharding: str
    micro_batch: int
    grad_accum: int
    activation_checkpointing: str
    gpus_per_node: int
    peak_bytes: float
    hours: float
    usd: float
    reason: str


class SelectGpuResult(ToolResult):
    """Plans worth having, cheapest first."""

    plans: list[PlanRow] = Field(default_factory=list)
    offers_searched: int = 0


@tool(
    "select_gpu",
    examples=[
        {"model": "llama-3.3-70b", "method": "qlora"},
        {"model": "llama-3.1-8b", "method": "lora", "tokens": "500M", "budget": 500, "deadline": "48h"},
    ],
)
def select_gpu(given: SelectGpuInput) -> SelectGpuResult:
    """Which GPU, how many, at which provider, so that the finished run is cheapest, fastest or both?

    Every offer of the price book whose layout fits in memory is priced, in bf16 (fp16 where a card has none) and in FP8
    where card and method gain: hours = tokens / modelled tokens/s, stretched by failures, saves, start-up and
    evaluation; cost = price x GPUs x billed hours + storage. Returned are the plans that no other of their precision
    beats in both cost and time (Pareto front), and what was ruled out. Not modelled: availability, quality.
    """
    job = resolve(given)
    assumed = [item for item in job.assumptions if item.name not in ("sharding", "n_gpus")]
    tokens, more = training_tokens(job, given.tokens, given.samples, given.epochs, given.tokens_per_sample)
    told = not any(item.name == "tokens" for item in more)
    assumed += more
    free = Freedom.of(given, job)
    if not told:  # "what fits?" is answered for the smallest need, the same that estimate_vram shows
        free = replace(free, micro_batch=False, checkpointing=False)
    if free.checkpointing:
        assumed = [item for item in assumed if item.name not in ("activation_checkpointing", "micro_batch")]
    budget = budget_usd(given.budget) if given.budget is not None else None
    deadline = deadline_hours(given.deadline, given.now) if given.deadline is not None else None
    policy, more = choose_policy(given, "on_demand", tokens)
    assumed += more
    software = software_of(given.framework, given.software)
    assumed.append(
        Assumption(name="software", value=software, why="whose stack: sets speed and range", argument="software")
    )
    want = _filters(given, job.method == "pretrain", assumed)
    if given.precision is None and job.method in FP8_METHODS and not job.is_adapter:
        assumed = [item for item in assumed if item.name != "precision"]
        why = "the verdict's: bf16, or fp16 on cards without it; FP8 rows stand beside; naming one pins it"
        assumed.append(Assumption(name="precision", value=job.precision, why=why, argument="precision"))
    found = search(job, tokens, free, software, policy, want, pinned=given.precision is not None)
    result = SelectGpuResult(assumptions=assumed, offers_searched=found.offers)
    dearer = None
    if not found.plans and (want.usd_per_gpu_hour or want.usd_per_hour):
        uncapped = replace(want, usd_per_gpu_hour=None, usd_per_hour=None)
        dearer = search(job, tokens, free, software, policy, uncapped, pinned=given.precision is not None)
    choice = Choice(job, tokens, told, found, given.objective, budget, deadline, want, policy, dearer)
    shown = write(result, choice)
    result.plans = [_row(plan, reason) for plan, reason in shown]
    return result


def _filters(given: SelectGpuInput, pretrain: bool, assumed: list[Assumption]) -> Filters:
    billings: tuple[str, ...] = (given.billing,) if given.billing else FIRM
    if given.billing is None and given.spot:
        billings = (*FIRM, "spot", "community")
    elif given.billing is None:
        why = "machines that nobody takes away; spot=true adds spot and marketplace offers"
        assumed.append(Assumption(name="billing", value="on_demand", why=why, argument="billing"))
    most = given.max_gpus or max(given.n_gpus or 0, MAX_GPUS_PRETRAINING if pretrain else MAX_GPUS_FINE_TUNING)
    if given.max_gpus is None and given.n_gpus is None:
        assumed.append(
            Assumption(name="max_gpus", value=most, unit="GPUs", why="largest cluster considered", argument="max_gpus")
        )
    if given.n_gpus and most < given.n_gpus:
        raise BadValue("out_of_range", f"n_gpus {given.n_gpus} is above max_gpus {most}.", field="max_gpus")
    asked = [given.gpu] if isinstance(given.gpu, str) else given.gpu or []
    return Filters(
        billings=billings,
        providers=tuple(find_provider(name).id for name in _names(given.providers) + _names(given.provider)),
        regions=tuple(_names(given.regions) + _names(given.region)),
        gpu_ids=tuple(_cards(asked)),
        n_gpus=given.n_gpus,
        max_gpus=most,
        usd_per_gpu_hour=given.max_usd_per_gpu_hour,
        usd_per_hour=given.max_usd_per_hour,
    )


def _cards(asked: list[str]) -> list[str]:
    """Every card that a name can mean: "A100" takes in 40 and 80 GB, SXM and PCIe."""
    found: list[str] = []
    for name in asked:
        match = find_gpu(name)
        found += [match.value.id, *match.alternatives]
    return list(dict.fromkeys(found))


def _names(given: str | list[str] | None) -> list[str]:
    if given is None:
        return []
    return [part.strip() for part in given.split(",") if part.strip()] if isinstance(given, str) else given


def _row(plan: Plan, reason: str) -> PlanRow:
    job = plan.set_up.job
    return PlanRow(
        gpu=plan.set_up.gpu.id,
        n_gpus=plan.set_up.n_gpus,
        provider=plan.provider,
        region=plan.region,
        billing=plan.billing,
        usd_per_gpu_hour=plan.usd_per_gpu_hour,
        observed=plan.observed,
        layout=plan.set_up.layout,
        precision=plan.precision,
        tp=job.tp,
        pp=job.pp,
        sharding=job.sharding,
        micro_batch=job.micro_batch,
        grad_accum=job.grad_accum,
        activation_checkpointing=job.checkpointing,
        gpus_per_node=plan.gpus_per_node,
        peak_bytes=plan.set_up.need.peak_bytes,
        hours=plan.hours,
        usd=plan.cost,
        reason=reason,
    )
