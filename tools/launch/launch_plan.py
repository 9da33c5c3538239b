"""``launch_plan``: the files, commands and variables that start a job, and what to check before."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field, field_validator

from tools.launch.checked import checked
from tools.launch.environment import environment
from tools.launch.readiness import Readiness, check, save_interval
from tools.launch.target import Launcher, Target
from tools.launch.writers import TITAN, write
from tools.network.inputs import Cluster, ClusterInput, read_cluster
from tools.network.step import step_time
from tools.registry import tool
from tools.result import Assumption, Column, FileText, SourceRef, Table, ToolResult, Warn
from tools.units import parse_count

_METHODS = {"full": "Full fine-tuning", "lora": "LoRA", "qlora": "QLoRA", "dpo": "DPO", "grpo": "GRPO"}
_OWN = frozenset({"launcher", "dataset", "tokens", "spot", "idle_minutes"})
SOURCES = (
    SourceRef(id="torchrun", title="torchrun (PyTorch Elastic)", as_of="2026-11-30",
              url="https://pytorch.org/docs/stable/elastic/run.html"),
    SourceRef(id="accelerate", title="Accelerate: FSDP2 and launch configuration", as_of="2026-11-30",
              url="https://huggingface.co/docs/accelerate/usage_guides/fsdp"),
    SourceRef(id="deepspeed", title="DeepSpeed configuration JSON", as_of="2026-11-30",
              url="https://www.deepspeed.ai/docs/config-json/"),
    SourceRef(id="skypilot", title="SkyPilot task YAML", as_of="2026-11-30",
              url="https://docs.skypilot.co/en/latest/reference/yaml-spec.html"),
    SourceRef(id="llama-3", title="The Llama 3 herd of models (failures, section 3.3.4)", as_of="2024-07-31",
              url="https://arxiv.org/abs/2407.21783"),
)  # fmt: skip


class LaunchPlanInput(ClusterInput):
    """A workload laid out, its machines, and what should start it."""

    launcher: Launcher = Field(
        default="accelerate",
        description="torchrun, accelerate, deepspeed, fsdp, torchtitan, axolotl, llama-factory, skypilot or slurm.",
    )
    dataset: str = Field(default="ORG/DATASET", max_length=200, description="Hub id or path of the training data.")
    tokens: float | str | None = Field(
        default=None, description="Tokens to train on, e.g. 20B; sets the steps.", json_schema_extra={"unit": "tokens"}
    )
    spot: bool = Field(default=False, description="Interruptible machines: saves more often, recovers by itself.")
    idle_minutes: int = Field(default=15, ge=1, le=1440, description="Idle minutes before machines stop.")

    @field_validator("tokens", mode="after")
    @classmethod
    def _count(cls, value: float | str | None) -> float | None:
        return parse_count(value, "tokens") if isinstance(value, str) else value

    @field_validator("dataset")
    @classmethod
    def _plain(cls, value: str) -> str:
        return "".join(sign for sign in value if sign.isalnum() or sign in "/-_.:") or "ORG/DATASET"


class LaunchPlanResult(ToolResult):
    """Files, commands, variables and the checklist."""

    launcher: str
    files: list[FileText] = Field(default_factory=list)
    commands: list[str] = Field(default_factory=list)
    environment: dict[str, str] = Field(default_factory=dict)


@tool(
    "launch_plan",
    examples=[
        {"model": "llama-3.1-8b", "method": "full", "gpu": "H100", "n_gpus": 16, "launcher": "fsdp"},
        {"model": "llama-3.1-70b", "method": "qlora", "gpu": "H100", "n_gpus": 8, "launcher": "skypilot", "spot": True},
    ],
)
def launch_plan(given: LaunchPlanInput) -> LaunchPlanResult:
    """Ready files and commands that start this job, environment variables, and a checklist with this job's numbers.

    torchrun, accelerate (FSDP2, DeepSpeed), DeepSpeed JSON, torchtitan, axolotl, LLaMA-Factory, SkyPilot, Slurm. Save
    interval by Young and Daly from checkpoint bytes and failure rate. A file says which real parser has read its like.
    Not decided here: learning rate schedule beyond a usual start, data format, container image.
    """
    cluster = read_cluster(given, extra=_OWN)
    tokens = float(given.tokens) if given.tokens is not None else None
    target = _target(given, cluster, tokens)
    files, commands = write(target)
    files = [file.model_copy(update={"checked": checked(given.launcher, file.path)}) for file in files]
    ready = check(target, tokens)
    result = LaunchPlanResult(
        assumptions=list(cluster.assumptions),
        launcher=given.launcher,
        files=files,
        commands=commands,
        environment=environment(target),
        facts=list(ready.facts),
        sources=list(SOURCES),
    )
    if given.dataset == "ORG/DATASET":
        result.assumptions.append(
            Assumption(name="dataset", value=given.dataset, why="a placeholder: name your data", argument="dataset")
        )
    result.tables = [_checklist(ready), _variables(result)]
    result.warnings = _warnings(target, files)
    _say(result, target, ready, commands)
    return result


def _target(given: LaunchPlanInput, cluster: Cluster, tokens: float | None) -> Target:
    job = cluster.job
    target = Target(
        job=job, gpu=cluster.gpu, fabric=cluster.fabric, software=cluster.software,
        launcher=given.launcher, dataset=given.dataset,
        steps=max(1, round(tokens / job.tokens_per_step)) if tokens else None, save_steps=500, spot=given.spot,
        idle_minutes=given.idle_minutes,
    )  # fmt: skip
    seconds, _stall = save_interval(target)
    step = step_time(job, cluster.gpu, cluster.fabric, cluster.software).total
    steps = max(10, round(seconds / step / 10) * 10)
    return replace(target, save_steps=min(steps, target.steps or steps))


def _checklist(ready: Readiness) -> Table:
    facts = {fact.id: fact for fact in ready.facts}
    rows: list[list[float | int | str | bool | None]] = []
    for item in ready.items:
        fact = facts[item.number]
        rows.append([item.name, item.state, *_cells(fact.unit, float(fact.value)), fact.label, item.close])
    return Table(
        id="readiness",
        title="Before pressing start",
        columns=[
            Column(key="item", label="item"), Column(key="state", label="state"),
            Column(key="bytes", label="bytes", unit="B"), Column(key="rate", label="rate", unit="B/s"),
            Column(key="time", label="time", unit="s"), Column(key="share", label="share", unit="%"),
            Column(key="what", label="of what"), Column(key="close", label="to close it"),
        ],
        rows=rows,
    )  # fmt: skip


def _cells(unit: str, value: float) -> list[float | None]:
    return [value if unit == wanted else None for wanted in ("B", "B/s", "s", "%")]


def _variables(result: LaunchPlanResult) -> Table:
    rows: list[list[float | int | str | bool | None]] = [[name, value] for name, value in result.environment.items()]
    return Table(
        id="environment",
        title="Environment variables",
        columns=[Column(key="name", label="variable"), Column(key="value", label="value")],
        rows=rows,
    )


def _warnings(target: Target, files: list[FileText]) -> list[Warn]:
    found = []
    unread = [file.path for file in files if not file.checked and file.language in ("yaml", "json")]
    if unread:
        found.append(
            Warn(
                code="unchecked_file",
                text="Written from documentation, read by no parser here: " + ", ".join(unread) + ".",
            )
        )
    job = target.job
    if target.launcher in ("torchrun", "accelerate", "fsdp", "deepspeed", "skypilot", "slurm") and job.pp > 1:
        found.append(
            Warn(
                code="no_pipeline",
                text="Trainer stacks have no pipeline parallelism: use torchtitan or Megatron for it.",
            )
        )
    if target.launcher == "torchtitan" and job.arch.id not in TITAN:
        found.append(
            Warn(code="not_in_torchtitan",
                 text=f"torchtitan registers no configuration of {job.arch.id}; the flags use llama3_8b as a stand-in.")
        )  # fmt: skip
    if "ADDRESS" in str(environment(target)):
        found.append(Warn(code="fill_in", text="Put the first node's address in place of NODE0_ADDRESS."))
    return found


def _say(result: LaunchPlanResult, target: Target, ready: Readiness, commands: list[str]) -> None:
    names = ", ".join(file.path for file in result.files)
    open_items = [item.name for item in ready.items if item.state == "open"]
    state = "should run as it is" if not open_items else "is not ready (" + ", ".join(open_items) + ")"
    name = target.job.arch.id.rpartition("/")[2]
    method = _METHODS.get(target.job.method, target.job.method.replace("_", " "))
    result.verdict = (
        f"{method} of {name} on {target.job.n_gpus}× {target.gpu.id} {state}: [[peak_per_gpu]] per GPU with "
        f"[[headroom]] left, [[tokens_per_second]]. Save the files below ({names}) and start with "
        f"`{commands[0].split(' #')[0]}`."
    )
    result.next_steps += [f"Run: `{command}`" for command in commands]
    result.next_steps += [
        f"{item.name[0].upper()}{item.name[1:]}: {item.close}." for item in ready.items if item.state == "open"
    ]
    result.suggestions += [f"What does this run cost on {target.job.n_gpus} {target.gpu.id}?",
                           f"Is there a better layout for {name}?", "The same with SkyPilot on spot"]  # fmt: skip
