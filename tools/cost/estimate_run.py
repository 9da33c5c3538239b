"""``estimate_run``: how long a training run takes and what it costs in the end, hidden parts included."""

from __future__ import annotations

from pydantic import Field

from knowledge.gpus import find_gpu
from knowledge.providers import find_provider
from knowledge.types import Gpu
from tools.cost.export import budget_request, files, focus_rows
from tools.cost.inputs import BillingChoice, RunInput
from tools.cost.policy import choose_policy
from tools.cost.price_basis import PriceBasis, no_price, price_basis
from tools.cost.run import bill, hours_at_mfu, run_time, training_hours
from tools.cost.run_words import Course, write
from tools.cost.tokens import training_tokens
from tools.errors import BadValue
from tools.network.fabric import fabric_for
from tools.registry import tool
from tools.result import Assumption, FileText, ToolResult
from tools.throughput import estimate_throughput, software_of
from tools.usual_batch import at_usual_batch
from tools.workload import resolve


class EstimateRunInput(RunInput):
    """A workload, a machine and a price."""

    gpu: str = Field(description="Card, e.g. 'H100', 'A100 80GB', 'RTX 4090'.")
    price: float | str | None = Field(
        default=None, description="USD per GPU-hour; else the price book's.", json_schema_extra={"unit": "USD/GPU-h"}
    )
    provider: str | None = Field(default=None, description="Bill at this provider's offers, e.g. aws, runpod.")
    region: str | None = Field(default=None, description="Part of the region's name.")
    billing: BillingChoice | None = Field(default=None, description="on_demand (default), spot, reserved_1y, ...")
    mfu: float | None = Field(default=None, gt=0, le=1, description="Model FLOPs utilisation, 0-1; else modelled.")
    gpus_per_node: int | None = Field(default=None, ge=1, description="Default: as the card is usually built.")
    intra_link: str | None = Field(default=None, description="Link inside a node, e.g. NVLink-4, PCIe 4.0.")
    inter_link: str | None = Field(default=None, description="Network between nodes, e.g. NDR, 100GbE.")
    instance: str | None = Field(default=None, description="Machine type that gives the links, e.g. p5.48xlarge.")
    export: bool = Field(default=False, description="Add the bill as FOCUS rows (CSV, JSON) and a budget request.")
    start: str | None = Field(default=None, description="First day as an ISO date, for the exported rows.")
    project: str | None = Field(default=None, max_length=120, description="Name for the exported rows.")
    pue: float | None = Field(default=None, ge=1, le=3, description="Building over IT power; default 1.54.")
    grid_kg_per_kwh: float | None = Field(default=None, ge=0, description="CO2e per kWh; default 0.37.")


class EstimateRunResult(ToolResult):
    """The time and bill of the run, base units."""

    run_seconds: float = 0.0
    gpu_seconds: float = 0.0
    usd: float | None = None
    fits: str = ""
    budget_request: str = Field(default="", description="One paragraph to send, numbers as [[fact]] references.")
    files: list[FileText] = Field(default_factory=list, description="FOCUS rows as CSV and JSON, when asked for.")


@tool(
    "estimate_run",
    examples=[{"model": "llama-3.1-8b", "method": "lora", "gpu": "H100", "tokens": "100M"}],
)
def estimate_run(given: EstimateRunInput) -> EstimateRunResult:
    """How long does this training run take, and what will it cost in the end?

    Hours = tokens / (tokens/s), with tokens/s from FLOPs per token, achieved fractions of peak and bandwidth, and
    exposed communication; or, with an MFU given, hours = 6·N·D / (GPUs · peak · MFU). Cost = GPU-hours x price, plus
    failures and saves (Daly 2006), evaluation, idle time, checkpoint and dataset storage, egress. Energy = design power
    x load x PUE. PPO and GRPO: completions are written by an engine on the same cards, bound by reading weights and
    cache; then scored, then trained on. Not modelled: queueing for capacity, salaries, taxes, tools called while
    generating. Raises BadValue for inference, and for an offer asked for that the price book does not hold.
    """
    if given.task != "train":
        raise BadValue(
            "not_training", "estimate_run times training; for serving a model ask estimate_vram what fits.",
            field="task", candidates=["train"],
        )  # fmt: skip
    job, batched = at_usual_batch(resolve(given), given.grad_accum)
    gpu_match = find_gpu(given.gpu)
    gpu = gpu_match.value
    assumed = [*job.assumptions, *batched]
    if gpu_match.note:
        assumed.append(Assumption(name="gpu", value=gpu.id, why=gpu_match.note, argument="gpu"))
    tokens, more = training_tokens(job, given.tokens, given.samples, given.epochs, given.tokens_per_sample)
    assumed += more
    fabric, more = fabric_for(gpu, job.n_gpus, given.gpus_per_node, given.intra_link, given.inter_link, given.instance)
    assumed += more
    software = software_of(given.framework, given.software)
    speed = estimate_throughput(job, gpu, fabric, software)
    billing = given.billing or "on_demand"
    policy, more = choose_policy(given, billing, tokens, find_provider(given.provider) if given.provider else None)
    assumed += more
    hours = training_hours(tokens, speed)
    if given.mfu is not None:
        hours, flops, words = hours_at_mfu(job, gpu, tokens, given.mfu, speed)
        assumed.append(Assumption(name="mfu_convention", value=flops, unit="FLOP/token", why=words))
    else:
        assumed.append(
            Assumption(
                name="software",
                value=software,
                why="whose stack: sets the achieved fraction and the range",
                argument="software",
            )
        )
    time = run_time(job, hours, fabric.nodes(job.n_gpus), policy)
    basis = _price(given, gpu, billing)
    course = Course(job, gpu, fabric, tokens, hours, time, speed, policy, basis, given.mfu)
    result = EstimateRunResult(run_seconds=hours * 3600, gpu_seconds=hours * 3600 * job.n_gpus, assumptions=assumed)
    result.fits = write(result, course, given.pue, given.grid_kg_per_kwh)
    if basis is not None:
        result.usd = result.fact("run_cost").value  # type: ignore[assignment]
        if given.export:
            _export(result, given, course, basis, billing)
    return result


def _export(
    result: EstimateRunResult, given: EstimateRunInput, course: Course, basis: PriceBasis, billing: str
) -> None:
    rows = focus_rows(
        course.job, course.gpu.id, bill(course.job, course.time, basis.usd_per_gpu_hour, course.policy),
        basis.usd_per_gpu_hour, course.time.billed_hours, given.provider or "", given.region or "", billing,
        basis.observed_to, (course.fast, course.slow), given.start, given.project or "",
    )  # fmt: skip
    result.files = files(rows)
    result.budget_request = budget_request(
        course.job, course.gpu.id, given.mfu is not None, basis.observed_to, bool(course.gpu.tdp_watts)
    )
    result.next_steps.insert(0, result.budget_request)


def _price(given: EstimateRunInput, gpu: Gpu, billing: str) -> PriceBasis | None:
    if given.price is not None:
        value = parse_price(given.price)
        return PriceBasis(value, value, value, 0, "price given", "", "", "given")
    provider = find_provider(given.provider).id if given.provider else None
    found = price_basis(gpu, billing, provider, given.region)
    if found is None and (provider or given.region or given.billing):
        raise no_price(gpu, billing, provider, given.region)
    return found


def parse_price(price: float | str, field: str = "price") -> float:
    """USD per GPU-hour from 2.5, "$2.50" or "2.5/h"; what follows a slash is not read. Raises BadValue where it is no
    number, is negative, or is 100,000 USD and more.
    """
    text = str(price).replace("$", "").replace("USD", "").split("/")[0].strip()
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        raise BadValue("not_a_number", f"A price cannot be {price!r}.", field=field, candidates=["2.50"]) from None
    if not 0 <= value < 1e5:
        raise BadValue("out_of_range", f"{value:g} USD per GPU-hour cannot be.", field=field, candidates=["2.50"])
    return value
