"""``plan_checkpoints``: what a checkpoint weighs, how often to save it, what failures and storage cost."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from knowledge.gpus import find_gpu
from tools.cost import run as usual
from tools.cost.failures import (
    GPU_HOURS_BETWEEN_FAILURES,
    RESTART_HOURS,
    Interruptions,
    interruptions,
    job_mean_between,
    spot_mean_between,
)
from tools.cost.price_basis import price_basis
from tools.cost.run import Policy, bill, checkpoint_bytes, run_time, trainable_params, training_hours
from tools.cost.tokens import training_tokens
from tools.cost.words import Facts, doing
from tools.errors import BadValue
from tools.network.fabric import fabric_for
from tools.registry import tool
from tools.result import Assumption, Column, SourceRef, Table, ToolResult
from tools.throughput import SoftwareClass, estimate_throughput, software_of
from tools.units import HOURS_PER_MONTH, parse_rate, parse_seconds
from tools.usual_batch import at_usual_batch
from tools.workload import Job, WorkloadInput, resolve

COLD_USD_PER_GB_MONTH = 0.004  # GCP coldline bucket, us-central1, price list of 2026-07-30
COLD_DATED = "2026-07-30"
BYTES_PER_TOKEN = 2.0
MONTH_HOURS = 720.0
LOCAL_COPIES = 2  # one complete, one being written
GPUS_A_NODE = 8


class PlanCheckpointsInput(WorkloadInput):
    """A job, where it writes and what interrupts it."""

    gpu: str | None = Field(default=None, description="Card; gives step time and the spot comparison.")
    tokens: float | str | None = Field(default=None, description="Training tokens; default as for estimate_run.")
    run_hours: float | str | None = Field(default=None, description="Hours of training, instead of modelling them.")
    write_bandwidth: float | str | None = Field(
        default=None, description="Of one node to storage, e.g. '5 GB/s'; a bare number is GB/s. Default 2 GB/s."
    )
    read_bandwidth: float | str | None = Field(default=None, description="Back from storage; default as written.")
    asynchronous: bool = Field(default=False, description="Training goes on while a copy in host memory is written.")
    gathered: bool = Field(
        default=False, description="One rank gathers and writes all, instead of every node its part."
    )
    mtbf_hours: float | None = Field(default=None, gt=0, description="Mean hours between failures of the whole job.")
    spot_interruptions_per_month: float | None = Field(
        default=None, ge=0, lt=1, description="Chance that a spot machine is reclaimed in a month, 0-1; none if absent."
    )
    restart: float | str | None = Field(default=None, description="From failure to training again; default 15 min.")
    interval: float | str | None = Field(default=None, description="Save this often instead, e.g. '30 min'.")
    kept: int = Field(default=3, ge=1, le=10_000, description="Copies kept during the run.")
    storage_usd_per_gb_month: float = Field(default=0.05, ge=0, description="Price of the warm tier.")
    retention_months: float = Field(default=12, ge=0, description="How long the final weights are kept, cold.")
    software: SoftwareClass | None = Field(default=None, description="tuned, benchmark or user stack.")


class PlanCheckpointsResult(ToolResult):
    """Sizes and times, base units."""

    checkpoint_bytes: float = 0.0
    interval_seconds: float = 0.0
    overhead: float = 0.0


@tool(
    "plan_checkpoints",
    examples=[{"model": "llama-3.1-70b", "method": "full", "gpu": "H100", "n_gpus": 64, "tokens": "10B"}],
)
def plan_checkpoints(given: PlanCheckpointsInput) -> PlanCheckpointsResult:
    """How big are this job's checkpoints, how often should it save, and what do failures and storage cost?

    Bytes = trained weights x (2 + 12 for AdamW in mixed precision; 8 with 8-bit states; 2 without optimizer). Interval
    = Young/Daly's sqrt(2·stall·MTBF); lost work a failure = half an interval + restart; overhead by Daly 2006,
    equation 20. Not modelled: file systems that slow down under other tenants' load.
    """
    job = resolve(given)
    assumed = [item for item in job.assumptions if item.name in ("model", "architecture", "method", "optimizer")]
    nodes = -(-job.n_gpus // GPUS_A_NODE)
    write = _rate(given.write_bandwidth, usual.CHECKPOINT_BYTES_PER_S, "write_bandwidth", assumed)
    read = _rate(given.read_bandwidth, write, "read_bandwidth", [])
    full, small = checkpoint_bytes(job), checkpoint_bytes(job, with_optimizer=False)
    writers = 1 if given.gathered else nodes
    write_seconds = full / (write * writers)
    stall = full / job.n_gpus / 20e9 if given.asynchronous else write_seconds  # a copy to host memory over PCIe
    restart = _seconds(given.restart, RESTART_HOURS * 3600, "restart", assumed) + full / (read * nodes)
    mean = _mean_between(given, job, nodes, assumed)
    course = _course(given, job, nodes, assumed)
    interval = _seconds(given.interval, None, "interval", assumed) if given.interval is not None else None
    broken = interruptions(
        course.hours, mean, stall / 3600, restart / 3600, None if interval is None else interval / 3600
    )
    facts = Facts()
    _size_facts(facts, job, full, small, write_seconds, stall, nodes, given)
    _disk_facts(facts, job, full, nodes, course)
    _time_facts(facts, broken, course, restart)
    _storage_facts(facts, given, full, small, course)
    result = PlanCheckpointsResult(
        assumptions=assumed,
        sources=list(_SOURCES),
        tables=[_table(job, full, small, write, nodes, given), _tiers(given, full, small, facts, course)],
        checkpoint_bytes=full,
        interval_seconds=broken.interval_hours * 3600,
        overhead=broken.stretch - 1,
    )
    short = broken.interval_hours >= 0.999 * course.hours and given.interval is None
    saved = "Save once, at the end: the run is shorter than the best interval" if short else "Save every [[interval]]"
    result.verdict = (
        f"{doing(job)}: {saved[0].lower()}{saved[1:]}. A resumable checkpoint is [[checkpoint_bytes]] "
        "([[weights_only_bytes]] without optimizer states) and takes [[write_seconds]] to write; failures, restarts "
        "and saves together add [[overhead]] to the run."
    )
    _next(result, facts, given, job, course, broken, nodes)
    result.facts = facts.found
    result.suggestions = [
        "And on spot machines?",
        "What does the whole run cost?",
        "How much host memory does saving need?",
    ]
    return result


class _Course:
    """How long the run is, how fast a step, and what it reads where that was told."""

    def __init__(
        self,
        hours: float,
        step_seconds: float | None,
        tokens_per_second: float | None,
        tokens: float | None = None,
    ) -> None:
        self.hours = hours
        self.step_seconds = step_seconds
        self.tokens_per_second = tokens_per_second
        self.tokens = tokens


_SOURCES = (
    SourceRef(id="young-1974", title="Young, A first order approximation to the optimum checkpoint interval",
              as_of="1974-09-01", url="https://doi.org/10.1145/361147.361115"),
    SourceRef(id="daly-2006", title="Daly, optimum checkpoint interval and expected run time", as_of="2006-02-01",
              url="https://doi.org/10.1016/j.future.2004.11.016"),
    SourceRef(id="llama-3", title="The Llama 3 herd of models, section 3.3.4: interruptions", as_of="2024-07-31",
              url="https://arxiv.org/abs/2407.21783"),
)  # fmt: skip


def _rate(given: float | str | None, default: float, name: str, assumed: list[Assumption]) -> float:
    if given is None:
        if name == "write_bandwidth":
            assumed.append(
                Assumption(name=name, value=default, unit="B/s", why="one node to network storage, sustained",
                           argument=name)
            )  # fmt: skip
        return default
    value = float(given) * 1e9 if isinstance(given, (int, float)) else parse_rate(given, name)
    if value <= 0:
        raise BadValue("out_of_range", f"{name} must be above 0.", field=name, candidates=["2 GB/s"])
    return value


def _seconds(given: float | str | None, default: float | None, name: str, assumed: list[Assumption]) -> float:
    if given is None:
        assert default is not None
        assumed.append(
            Assumption(name=name, value=default, unit="s", why="boot, image, loading, warm-up", argument=name)
        )
        return default
    value = parse_seconds(given, name)
    if value <= 0:
        raise BadValue("out_of_range", f"{name} must be above 0.", field=name, candidates=["30 min"])
    return value


def _mean_between(given: PlanCheckpointsInput, job: Job, nodes: int, assumed: list[Assumption]) -> float:
    failures = given.mtbf_hours
    if failures is None:
        failures = job_mean_between(job.n_gpus)
        why = f"one failure in {GPU_HOURS_BETWEEN_FAILURES:,.0f} GPU-hours, as Llama 3's training saw"
        assumed.append(Assumption(name="mtbf_hours", value=failures, unit="h", why=why, argument="mtbf_hours"))
    if not given.spot_interruptions_per_month:
        return failures
    return 1 / (1 / failures + 1 / spot_mean_between(given.spot_interruptions_per_month, nodes))


def _course(given: PlanCheckpointsInput, job: Job, nodes: int, assumed: list[Assumption]) -> _Course:
    if given.run_hours is not None:
        told = given.run_hours
        hours = float(told) if isinstance(told, (int, float)) else parse_seconds(told, "run_hours") / 3600
        if hours <= 0:
            raise BadValue("out_of_range", "run_hours must be above 0.", field="run_hours", candidates=["100"])
        return _Course(hours, None, None)
    if given.gpu is None:
        assumed.append(_a_month())
        return _Course(MONTH_HOURS, None, None)
    gpu = find_gpu(given.gpu).value
    fabric, _links = fabric_for(gpu, job.n_gpus)
    job, _batched = at_usual_batch(job, given.grad_accum)
    speed = estimate_throughput(job, gpu, fabric, software_of(given.framework, given.software))
    if given.tokens is None and job.method != "pretrain":
        assumed.append(_a_month())
        return _Course(MONTH_HOURS, speed.step_seconds, speed.tokens_per_second)
    tokens, more = training_tokens(job, given.tokens)
    assumed += more
    return _Course(training_hours(tokens, speed), speed.step_seconds, speed.tokens_per_second, tokens)


def _a_month() -> Assumption:
    why = "a month: give tokens and gpu, or run_hours"
    return Assumption(name="run_hours", value=MONTH_HOURS, unit="h", why=why, argument="run_hours")


def _size_facts(
    facts: Facts,
    job: Job,
    full: float,
    small: float,
    write: float,
    stall: float,
    nodes: int,
    given: PlanCheckpointsInput,
) -> None:
    trained = trainable_params(job)
    facts.add("checkpoint_bytes", full, "B", kind="exact", label="resumable checkpoint",
              basis=f"{trained:.4g} trained weights x {full / trained:g} B")  # fmt: skip
    facts.add("weights_only_bytes", small, "B", kind="exact", label="weights alone, 16 bit")
    facts.add("bytes_per_param", full / trained, "B/param", kind="exact", label="a trained weight")
    facts.add("shard_bytes", full / job.n_gpus, "B", kind="exact", label="a GPU's part when sharded")
    facts.add("write_seconds", write, "s", label="gathered on one rank" if given.gathered else "every node its part")
    facts.add("stall_seconds", stall, "s", label="training stands still")
    facts.add("nodes", nodes, "nodes", kind="exact", label=f"nodes of {GPUS_A_NODE}")


def _disk_facts(facts: Facts, job: Job, full: float, nodes: int, course: _Course) -> None:
    """Local NVMe of a node: its part of two checkpoints, the downloaded weights, and the tokenised data if told."""
    parts = [("nvme_checkpoints", LOCAL_COPIES * full / nodes, "two checkpoints, the node's part")]
    parts.append(("nvme_weights", 2.0 * job.arch.total_params, "downloaded weights, 16 bit"))
    if course.tokens:
        parts.append(("nvme_data", course.tokens * BYTES_PER_TOKEN, "tokenised data, a full copy"))
    for name, size, label in parts:
        facts.add(name, size, "B", label=label)
    whole = sum(size for _name, size, _label in parts)
    facts.add("nvme_per_node", whole, "B", label="local disk a node", basis=" + ".join(name for name, _, _ in parts))


def _time_facts(facts: Facts, broken: Interruptions, course: _Course, restart: float) -> None:
    facts.add("interval", broken.interval_hours * 3600, "s", label="time between saves", basis="Young/Daly")
    facts.add("mean_between_failures", broken.mean_hours_between, "h", label="between interruptions of the job")
    facts.add("lost_per_failure", broken.interval_hours * 1800 + restart, "s", label="lost work and restart, a failure")
    facts.add("expected_interruptions", broken.expected, label="interruptions in the run")
    facts.add("overhead", (broken.stretch - 1) * 100, "%", label="longer than without failures and saves")
    facts.add("lost_hours", broken.lost_hours, "h", label="work done twice, and restarts")
    facts.add("stall_hours", broken.stall_hours, "h", label="waiting for saves")
    facts.add("run_hours", course.hours, "h", label="training time")
    if course.step_seconds:
        facts.add("step_seconds", course.step_seconds, "s", label="one step")
        facts.add("stall_steps", broken.save_stall_hours * 3600 / course.step_seconds, "steps",
                  label="steps that one save costs")  # fmt: skip
        facts.add("interval_steps", round(broken.interval_hours * 3600 / course.step_seconds), "steps",
                  label="steps between saves")  # fmt: skip
    if course.tokens_per_second:
        facts.add("loader_bytes_per_second", course.tokens_per_second * BYTES_PER_TOKEN, "B/s",
                  label="the data loader must read", basis="tokens/s x 2 B of token ids")  # fmt: skip


def _storage_facts(facts: Facts, given: PlanCheckpointsInput, full: float, small: float, course: _Course) -> None:
    months = course.hours / HOURS_PER_MONTH
    monthly = given.kept * full / 1e9 * given.storage_usd_per_gb_month
    facts.add("stored_bytes", given.kept * full, "B", kind="exact", label=f"{given.kept} copies")
    facts.add("storage_usd_per_month", monthly, "USD", label="warm storage a month")
    facts.add("storage_cost", monthly * months, "USD", label="over the run")
    cold = small / 1e9 * COLD_USD_PER_GB_MONTH * given.retention_months
    facts.add("retention_cost", cold, "USD", as_of=COLD_DATED, label="final weights kept cold",
              basis=f"{COLD_USD_PER_GB_MONTH} USD/GB-month x {given.retention_months:g} months")  # fmt: skip
    warm = small / 1e9 * given.storage_usd_per_gb_month * given.retention_months
    facts.add("retention_cost_warm", warm, "USD", label="final weights kept warm as long")


def _tiers(given: PlanCheckpointsInput, full: float, small: float, facts: Facts, course: _Course) -> Table:
    """What lies where, for how long, at what cost."""
    cost = {fact.name: float(fact.value) for fact in facts.found if isinstance(fact.value, (int, float))}
    columns = [
        Column(key="tier", label="where"), Column(key="what", label="what"),
        Column(key="bytes", label="size", unit="B"), Column(key="months", label="months"),
        Column(key="usd", label="cost", unit="USD"),
    ]  # fmt: skip
    rows: list[list[float | int | str | bool | None]] = [
        ["NVMe of each node", "two checkpoints' part, weights, data", cost["nvme_per_node"], None, None],
        ["warm storage", f"{given.kept} resumable copies, during the run", given.kept * full,
         round(course.hours / HOURS_PER_MONTH, 2), cost["storage_cost"]],
        ["cold storage", "final weights", small, given.retention_months, cost["retention_cost"]],
        ["warm instead of cold", "final weights", small, given.retention_months, cost["retention_cost_warm"]],
    ]  # fmt: skip
    return Table(id="tiers", title="Where it is kept", columns=columns, rows=rows)


def _table(job: Job, full: float, small: float, write: float, nodes: int, given: PlanCheckpointsInput) -> Table:
    columns = [
        Column(key="what", label="checkpoint"), Column(key="bytes", label="size", unit="B"),
        Column(key="sharded", label="every node writes", unit="s"), Column(key="gathered", label="one does", unit="s"),
        Column(key="monthly", label="a month stored", unit="USD"),
    ]  # fmt: skip
    rows: list[list[float | int | str | bool | None]] = [
        [name, size, size / (write * nodes), size / write, copies * size / 1e9 * given.storage_usd_per_gb_month]
        for name, size, copies in (("with optimizer", full, given.kept), ("weights alone", small, 1))
    ]
    return Table(id="checkpoints", title="Sizes and write times", columns=columns, rows=rows)


def _next(
    result: PlanCheckpointsResult,
    facts: Facts,
    given: PlanCheckpointsInput,
    job: Job,
    course: _Course,
    broken: Interruptions,
    nodes: int,
) -> None:
    if course.step_seconds:
        result.next_steps.append(
            "One save costs as much as [[stall_steps]] of [[step_seconds]]; the data loader must read "
            "[[loader_bytes_per_second]], all nodes together."
        )
    if not given.asynchronous:
        quick = result.checkpoint_bytes / job.n_gpus / 20e9 / 3600
        other = interruptions(course.hours, broken.mean_hours_between, quick, broken.restart_hours)
        facts.add("overhead_asynchronous", (other.stretch - 1) * 100, "%", label="overhead with asynchronous saves")
        result.next_steps.append("Saved asynchronously, the overhead falls to [[overhead_asynchronous]].")
    if given.gpu is None:
        return
    gpu = find_gpu(given.gpu).value
    firm, spot = price_basis(gpu), price_basis(gpu, "spot")
    if firm is None or spot is None:
        return
    share = given.spot_interruptions_per_month or usual.SPOT_MONTHLY_SHARE
    policy = Policy()
    costs = {}
    for name, basis, monthly in (("on_demand_cost", firm, 0.0), ("spot_cost", spot, share)):
        chosen = replace(policy, spot_monthly_share=monthly)
        time = run_time(job, course.hours, nodes, chosen)
        way = name.removesuffix("_cost")
        words = way.replace("_", " ")
        facts.add(f"{way}_usd_per_gpu_hour", basis.usd_per_gpu_hour, "USD/GPU-h", kind="price", basis=basis.source,
                  as_of=basis.observed_to or None, label=basis.words, low=basis.low, high=basis.high)  # fmt: skip
        facts.add(f"{way}_wall_hours", time.wall_hours, "h", label=f"until done, {words}")
        facts.add(f"{way}_interruptions", time.broken.expected, label=f"interruptions expected, {words}")
        costs[name] = bill(job, time, basis.usd_per_gpu_hour, chosen).total
        facts.add(name, costs[name], "USD", as_of=basis.observed_to, label=f"run at the {basis.words}",
                  basis=basis.source)  # fmt: skip
    cheaper = "Spot wins" if costs["spot_cost"] < costs["on_demand_cost"] else "On demand wins"
    result.next_steps.append(
        f"{cheaper}: [[spot_cost]] on spot against [[on_demand_cost]] on demand, lost work and restarts counted."
    )
