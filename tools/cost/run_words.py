"""Facts, tables and sentences of ``estimate_run``."""

from __future__ import annotations

from dataclasses import dataclass, replace

from knowledge.types import Gpu
from tools.cost.energy import GRID_KG_PER_KWH, LOAD, PUE, energy
from tools.cost.precisions import has_fp8
from tools.cost.price_basis import PriceBasis, price_basis
from tools.cost.run import SPOT_MONTHLY_SHARE, Bill, Policy, RunTime, bill, checkpoint_bytes, run_time, training_hours
from tools.cost.words import Facts, cards, doing, model_name
from tools.memory import MemoryBill, estimate, verdict
from tools.network.fabric import Fabric
from tools.result import Assumption, Column, SourceRef, Step, Table, ToolResult, Warn
from tools.throughput import Throughput, estimate_throughput
from tools.throughput.flops import six_nd_hours
from tools.throughput.rollouts import uncertainty
from tools.workload import Job

_FORMULAS = [
    SourceRef(
        id="kaplan-2020",
        title="Kaplan et al., Scaling Laws: 6·N·D",
        as_of="2020-01-23",
        url="https://arxiv.org/abs/2001.08361",
    ),
    SourceRef(
        id="daly-2006",
        title="Daly, optimum checkpoint interval and expected run time",
        as_of="2006-02-01",
        url="https://doi.org/10.1016/j.future.2004.11.016",
    ),
]


LONG_HOURS = 96.0  # beyond these, days are said as well
SMALL = 0.005  # parts below this share of a bill are shown as one line


@dataclass(frozen=True, slots=True)
class Course:
    """A run as computed; what there is to tell."""

    job: Job
    gpu: Gpu
    fabric: Fabric
    tokens: float
    hours: float
    time: RunTime
    speed: Throughput
    policy: Policy
    basis: PriceBasis | None
    given_mfu: float | None

    @property
    def slow(self) -> float:
        """Factor on the hours at the slow end of the speed's 90 % range, at least 1; exactly 1 where the
        MFU was given.
        """
        return 1.0 if self.given_mfu else 1.0 / self.speed.low_factor

    @property
    def fast(self) -> float:
        """Factor on the hours at the fast end of the speed's 90 % range, at most 1; exactly 1 where the
        MFU was given.
        """
        return 1.0 if self.given_mfu else 1.0 / self.speed.high_factor


def write(result: ToolResult, run: Course, pue: float | None, grid: float | None) -> str:
    """Fill in facts, tables, sentences; returns whether the job fits."""
    facts = Facts()
    need = estimate(run.job)
    fits = verdict(need, run.gpu)
    _time_facts(facts, run)
    _rollout_facts(facts, run)
    _memory_facts(facts, run, need)
    costs = _cost_facts(facts, run) if run.basis else None
    _energy_facts(facts, run, result.assumptions, pue, grid)
    result.facts = facts.found
    result.sources = list(_FORMULAS)
    if run.basis and run.basis.source not in ("given", ""):
        result.sources.append(
            SourceRef(id=run.basis.source, title=f"Prices: {run.basis.source}", as_of=run.basis.observed_to)
        )
    result.steps = _steps(run)
    result.tables = [_bill_table(costs)] if costs else []
    result.verdict = _verdict(run, fits)
    _warn(result, run, fits)
    result.next_steps = _next_steps(facts, run, fits)
    result.suggestions = _suggestions(run)
    return fits


def _time_facts(facts: Facts, run: Course) -> None:
    job, speed = run.job, run.speed
    kind = "exact" if run.given_mfu else "modelled"
    tokens_per_second = run.tokens / run.hours / 3600.0

    def hours(name: str, value: float, label: str, basis: str = "", kind: str = "modelled") -> None:
        spread = {} if run.given_mfu else {"low": value * run.fast, "high": value * run.slow}
        about = [job.arch.id, run.gpu.id] if name == "run_hours" else []
        facts.add(name, value, "h", label=label, basis=basis, kind=kind, about=about, **spread)

    def rate(name: str, value: float, label: str) -> None:
        spread = {} if run.given_mfu else {"low": value / run.slow, "high": value / run.fast}
        facts.add(name, value, "tokens/s", label=label, kind=kind, **spread)

    told = f"{run.tokens:.4g} tokens / {tokens_per_second:.4g} tokens/s / 3600"
    hours("run_hours", run.hours, "training time", told, kind)
    hours("gpu_hours", run.hours * job.n_gpus, "GPU-hours of training", f"{job.n_gpus} x run_hours", kind)
    billed = run.time.billed_hours
    hours("billed_hours", billed, "billed time", "training + failures + saves + evaluation + start-up + idle")
    hours("wall_hours", run.time.wall_hours, "start-up to last step, failures and saves included")
    hours("billed_gpu_hours", billed * job.n_gpus, "billed GPU-hours")
    mfu = run.given_mfu or speed.mfu
    spread = {} if run.given_mfu else {"low": mfu * speed.low_factor, "high": min(1.0, mfu * speed.high_factor)}
    counted = f"of {speed.peak_flops / 1e12:.4g} TFLOP/s dense ({speed.bits} bit), recomputation left out"
    facts.add("mfu", mfu, "", kind=kind, label="model FLOPs utilisation", basis=counted, **spread)
    if not run.given_mfu:
        facts.add("hfu", speed.hfu, "", label="hardware FLOPs utilisation", basis="recomputation counted")
    rate("tokens_per_second", tokens_per_second, "speed of the whole job")
    rate("tokens_per_second_per_gpu", tokens_per_second / job.n_gpus, "speed a GPU")
    facts.add("tokens", run.tokens, "tokens", kind="exact", label="training tokens")
    facts.add("flops_per_token", speed.model_flops_per_token, "FLOP/token", label="model FLOPs a token")
    if run.time.broken.expected > 0.05:
        facts.add("expected_interruptions", run.time.broken.expected, "", label="interruptions expected")
        every = run.time.broken.interval_hours
        facts.add("checkpoint_interval", every, "h", label="best time between saves", basis="Young/Daly")
    facts.add("checkpoint_bytes", checkpoint_bytes(job), "B", kind="exact", label="one resumable checkpoint")


def _rollout_facts(facts: Facts, run: Course) -> None:
    """Where a PPO or GRPO step's time goes: writing completions, scoring and training on them."""
    made = run.speed.rollouts
    if made is None or run.given_mfu:
        return
    job, off = run.job, uncertainty(run.job)
    facts.add("step_time", run.speed.step_seconds, "s", low=run.speed.step_seconds * run.fast,
              high=run.speed.step_seconds * run.slow, label="one step, completions written and trained on")  # fmt: skip
    facts.add("rollout_seconds", made.seconds, "s", low=made.seconds / off, high=made.seconds * off,
              label="writing completions, a step",
              basis=f"derived: {made.passes:.0f} passes of {made.concurrent:.3g} sequences at once on "
              f"{made.engine_gpus} GPUs a copy, + switch {made.switch:.3g} s")  # fmt: skip
    share = run.speed.parts.rollouts / run.speed.parts.total * 100
    facts.add("rollout_share", share, "%", label="of the step spent writing completions")
    per_step = job.tokens_per_step / job.seq_len
    facts.add("completions_per_step", per_step, "", kind="exact", label="completions a step")
    facts.add("steps", run.tokens / job.tokens_per_step, "", label="steps of the run")


def _memory_facts(facts: Facts, run: Course, need: MemoryBill) -> None:
    facts.add("peak_per_gpu", need.peak_bytes, "B", low=need.low_bytes, high=need.high_bytes, label="memory a GPU")
    facts.add("usable_memory", run.gpu.usable_bytes, "B", kind="exact", label="usable on the card", about=[run.gpu.id])


def _cost_facts(facts: Facts, run: Course) -> Bill:
    assert run.basis is not None
    price = run.basis.usd_per_gpu_hour
    costs = bill(run.job, run.time, price, run.policy)
    dated = run.basis.observed_to or None
    scaled = costs.total - costs.egress
    spread = {} if run.given_mfu else {
        "low": scaled * run.fast + costs.egress, "high": scaled * run.slow + costs.egress,
    }  # fmt: skip
    facts.add(
        "run_cost", costs.total, "USD", label="whole run", as_of=dated, **spread,
        basis=f"GPU-hours x {price:.4g} USD + hidden parts",
    )  # fmt: skip
    facts.add(
        "usd_per_gpu_hour",
        price,
        "USD/GPU-h",
        low=run.basis.low,
        high=run.basis.high,
        kind="price",
        as_of=dated,
        label=run.basis.words,
        basis=run.basis.source,
        about=[run.gpu.id],
    )
    facts.add("compute_cost", costs.training, "USD", label="training alone", as_of=dated, basis="gpu_hours x price")
    facts.add("hidden_cost", costs.total - costs.training, "USD", label="hidden parts together")
    facts.add("usd_per_million_tokens", costs.total / run.tokens * 1e6, "USD", label="a million tokens")
    for name, value, label in _hidden(costs):
        if value > 0:
            facts.add(name, value, "USD", label=label)
    return costs


def _hidden(costs: Bill) -> list[tuple[str, float, str]]:
    return [
        ("failure_cost", costs.failures, "failures and restarts"),
        ("checkpoint_stall_cost", costs.checkpoint_stalls, "waiting for saves"),
        ("evaluation_cost", costs.evaluation, "evaluation"),
        ("start_up_cost", costs.start_up, "start-up before the first step"),
        ("idle_cost", costs.idle, "idle and debugging"),
        ("storage_cost", costs.storage, "checkpoints and dataset stored"),
        ("egress_cost", costs.egress, "egress of the result"),
    ]


def _bill_table(costs: Bill) -> Table:
    parts = [("training", costs.training), *((label, value) for _name, value, label in _hidden(costs))]
    shown = [(label, value) for label, value in parts if value >= SMALL * costs.total]
    rest = costs.total - sum(value for _label, value in shown)
    if rest > 0:
        shown.append(("failures, saves, storage and other small parts", rest))
    shown.append(("total", costs.total))
    rows: list[list[float | int | str | bool | None]] = [
        [label, value, value / costs.total * 100 if costs.total else 0.0] for label, value in shown
    ]
    columns = [
        Column(key="part", label="part"),
        Column(key="usd", label="USD", unit="USD"),
        Column(key="share", label="share", unit="%"),
    ]
    return Table(id="bill", title="Where the money goes", columns=columns, rows=rows)


def _energy_facts(facts: Facts, run: Course, assumed: list[Assumption], pue: float | None, grid: float | None) -> None:
    used = energy(
        run.gpu, run.time.billed_hours * run.job.n_gpus, pue or PUE, GRID_KG_PER_KWH if grid is None else grid
    )
    if used is None:
        return
    facts.add(
        "energy",
        used.kwh,
        "kWh",
        label="energy at the meter",
        basis=f"{run.gpu.tdp_watts:g} W x {LOAD:g} load, host share, PUE",
    )
    facts.add("emissions", used.kg_co2e, "kg CO2e", label="emissions")
    if pue is None:
        assumed.append(Assumption(name="pue", value=PUE, why="industry mean 2025 (Uptime Institute)", argument="pue"))
    if grid is None:
        why = "kg CO2e a kWh, mean of the United States grid (EPA eGRID2022)"
        assumed.append(Assumption(name="grid_kg_per_kwh", value=GRID_KG_PER_KWH, why=why, argument="grid_kg_per_kwh"))


def _steps(run: Course) -> list[Step]:
    job, speed = run.job, run.speed
    mfu = run.given_mfu or speed.mfu
    plain = six_nd_hours(job.arch.active_params, run.tokens, job.n_gpus, speed.peak_flops, mfu)
    return [
        Step(
            symbol="6·N·D check",
            expression=f"6 x {job.arch.active_params:.4g} x {run.tokens:.4g} / "
            f"({job.n_gpus} x {speed.peak_flops:.4g} x {mfu:.3g} x 3600)",
            value=plain,
            unit="h",
        ),
        Step(
            symbol="run_hours",
            expression=f"{run.tokens:.4g} tokens / {run.tokens / run.hours / 3600:.4g} tokens/s / 3600",
            value=run.hours,
            unit="h",
        ),
        Step(
            symbol="billed_hours",
            expression=f"({run.hours:.4g} h x {run.time.broken.stretch:.4g} (failures, saves) / "
            f"{1 - run.policy.evaluation_share:.3g} (evaluation) + {run.policy.start_up_hours:g} h start-up) / "
            f"{1 - run.policy.idle_share:.3g} (idle)",
            value=run.time.billed_hours,
            unit="h",
        ),
    ]


def _verdict(run: Course, fits: str) -> str:
    job, where = run.job, cards(run.job.n_gpus, run.gpu)
    what = f"{doing(job)} on [[tokens]] with {where}"
    days = ", [[run_hours|days]]" if run.hours > LONG_HOURS else ""
    took = f"takes [[run_hours]]{days}" if run.given_mfu else f"takes about [[run_hours]]{days} ([[run_hours|range]])"
    if run.basis is None:
        text = f"{what} {took}; no price of this card is in the book, so no cost is given."
    else:
        date = f" ({run.basis.words}, {run.basis.observed_to})" if run.basis.observed_to else ""
        cost = "[[run_cost]]" if run.given_mfu else "[[run_cost]] ([[run_cost|range]])"
        text = f"{what} {took} and costs {cost} in the end, at [[usd_per_gpu_hour]]{date}."
    if fits == "does_not_fit":
        return (
            f"It does not fit: {where} would need [[peak_per_gpu]] a GPU and has [[usable_memory]]. If it did: {text}"
        )
    return text


def _warn(result: ToolResult, run: Course, fits: str) -> None:
    add = result.warnings.append
    if fits == "does_not_fit":
        add(Warn(code="does_not_fit", text="The job does not fit these cards' memory: time and cost are hypothetical."))
    if fits == "borderline":
        add(Warn(code="borderline", text="Memory is tight: the upper bound of the need is above what the card has."))
    if run.basis is None:
        add(
            Warn(code="no_price", text=f"No dated price of {run.gpu.id} is held; give one as price (USD per GPU-hour).")
        )
    if run.speed.rollouts is not None:
        text = (
            "The time to write completions is derived from bandwidth and assumed lengths, not calibrated: engines, "
            "answers that run long and tools called in between move it by half or double."
        )
        add(Warn(code="rollouts", text=text))
    attention = run.speed.parts.attention / run.speed.parts.total
    if run.given_mfu and run.job.seq_len <= 8192 and attention > 0.25:
        add(Warn(code="attention_left_out", text="At this length attention is a large share; 6·N·D leaves it out."))
    if run.given_mfu and run.given_mfu > 0.65:
        add(Warn(code="high_mfu", text="Few runs reach this MFU; tuned recipes get 0.35-0.6 of a modern card."))


def _next_steps(facts: Facts, run: Course, fits: str) -> list[str]:
    steps: list[str] = []
    job = run.job
    if fits == "does_not_fit":
        steps += _what_fits(facts, run)
    else:
        steps += _other_billing(facts, run)
    if run.speed.rollouts is not None and not run.given_mfu:
        steps.append(
            "Of each step of [[step_time]], writing [[completions_per_step]] completions takes [[rollout_seconds]] "
            "([[rollout_share]]); shorter answers (response_tokens) change that most."
        )
    if job.checkpointing == "full" and not run.given_mfu:
        lighter = replace(job, checkpointing="none")
        if verdict(estimate(lighter), run.gpu) == "fits":
            faster = training_hours(run.tokens, estimate_throughput(lighter, run.gpu, run.fabric, run.speed.software))
            if faster < 0.95 * run.hours:
                facts.add("run_hours_without_checkpointing", faster, "h", label="without activation checkpointing")
                steps.append(
                    "Without activation checkpointing it still fits and takes [[run_hours_without_checkpointing]]."
                )
    if not run.given_mfu and run.speed.bits == 16 and has_fp8(run.gpu, job):
        fp8 = estimate_throughput(replace(job, precision="fp8"), run.gpu, run.fabric, run.speed.software)
        gain = fp8.tokens_per_second / run.speed.tokens_per_second
        if gain > 1.05:
            facts.add("fp8_gain", gain, "x", label="speed in FP8")
            steps.append(
                "FP8 products would make it [[fp8_gain]] as fast; they need Transformer Engine or torchao, and a check "
                "that the loss follows a bf16 run's."
            )
    if any(fact.id == "emissions" for fact in facts.found):
        steps.append("Energy at the meter [[energy]], [[emissions]]; pue and grid_kg_per_kwh change both.")
    return steps


def _other_billing(facts: Facts, run: Course) -> list[str]:
    """The same run on spot machines, or from spot on machines that stay, and where the two cost the same."""
    if run.basis is None or run.basis.source == "given":
        return []
    spot_now = run.policy.spot_monthly_share > 0
    other = price_basis(run.gpu, "on_demand" if spot_now else "spot")
    if other is None:
        return []
    policy = replace(run.policy, spot_monthly_share=0.0 if spot_now else SPOT_MONTHLY_SHARE)
    time = run_time(run.job, run.hours, run.fabric.nodes(run.job.n_gpus), policy)
    total = bill(run.job, time, other.usd_per_gpu_hour, policy).total
    if spot_now:
        facts.add("on_demand_run_cost", total, "USD", label=f"at the {other.words}", as_of=other.observed_to)
        dearest = other.usd_per_gpu_hour * time.billed_hours / run.time.billed_hours
        facts.add("spot_break_even_price", dearest, "USD/GPU-h", label="spot price at which both cost the same",
                  basis="on-demand price x billed hours on demand / on spot")  # fmt: skip
        return [
            "On machines that stay it would cost [[on_demand_run_cost]]; spot pays below [[spot_break_even_price]], "
            "reclaims, lost work and restarts counted."
        ]
    if other.usd_per_gpu_hour >= run.basis.usd_per_gpu_hour:
        return []
    facts.add("spot_run_cost", total, "USD", label="on spot machines", as_of=other.observed_to)
    return ["On spot machines, lost work and restarts counted, the run would cost [[spot_run_cost]]."]


def _what_fits(facts: Facts, run: Course) -> list[str]:
    job, count = run.job, run.job.n_gpus
    while count < 4096:
        count *= 2
        wider = replace(job, n_gpus=count, sharding="fsdp")
        need = estimate(wider)
        if verdict(need, run.gpu) == "fits":
            facts.add("gpus_that_fit", count, "GPUs", label="smallest doubling that fits")
            facts.add("peak_at_that_count", need.peak_bytes, "B", label="memory a GPU there")
            return [f"Sharded over [[gpus_that_fit]] of {run.gpu.id} it needs [[peak_at_that_count]] each and fits."]
    return []


def _suggestions(run: Course) -> list[str]:
    name = model_name(run.job)
    return [
        f"Which GPU finishes {name} cheapest?",
        f"What if I use twice as many {run.gpu.id}?",
        "How often should I save checkpoints?",
    ]
