"""``check_speed``: is a measured speed, MFU, utilisation or speed-up normal for this job, and what holds it back?"""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from tools.diagnose.busbw import Test, say_busbw
from tools.diagnose.speed_words import Findings, Measured, say_scaling, say_speed, say_utilisation
from tools.errors import BadValue, MissingValue
from tools.network.collectives import Op
from tools.network.inputs import ClusterInput, read_cluster, read_links
from tools.registry import tool
from tools.result import Assumption, ToolResult
from tools.throughput import estimate_throughput, software_of

_OWN = frozenset(
    {"measured_mfu", "tokens_per_second", "tokens_per_second_per_gpu", "step_seconds", "gpu_utilisation", "speedup",
     "from_gpus", "tflops_per_gpu", "busbw_gb_per_s", "collective", "message_bytes"}
)  # fmt: skip


class CheckSpeedInput(ClusterInput):
    """What was measured and, where known, the workload and its machines."""

    model: str | dict[str, Any] | None = Field(  # type: ignore[assignment]
        default=None, description="Known name, hub id, bare size or parameters; without it only ratios are judged."
    )
    measured_mfu: float | None = Field(default=None, gt=0, le=1, description="Model FLOPs utilisation seen, 0-1.")
    tokens_per_second: float | None = Field(default=None, gt=0, description="Of the whole job, as seen.")
    tokens_per_second_per_gpu: float | None = Field(default=None, gt=0, description="Of one GPU, as seen.")
    tflops_per_gpu: float | None = Field(default=None, gt=0, le=1e5, description="Model TFLOP/s of one GPU, as seen.")
    step_seconds: float | None = Field(default=None, gt=0, description="Of one optimizer step, as seen.")
    gpu_utilisation: float | None = Field(default=None, ge=0, le=1, description="What nvidia-smi shows, 0-1.")
    speedup: float | None = Field(default=None, gt=0, le=100_000, description="Speed on n_gpus over that on from_gpus.")
    from_gpus: int | None = Field(default=None, ge=1, description="GPUs that the speed-up is measured against.")

    busbw_gb_per_s: float | None = Field(
        default=None, gt=0, le=1e5, description="Bus bandwidth that nccl-tests printed, GB/s; needs no model."
    )
    collective: Op = Field(default="all_reduce", description="What nccl-tests ran, with busbw_gb_per_s.")
    message_bytes: float = Field(
        default=4 * 2**30, gt=0, le=1e15, description="Size of that test's message.", json_schema_extra={"unit": "B"}
    )

    @field_validator("measured_mfu", "gpu_utilisation", mode="before")
    @classmethod
    def _share(cls, value: object) -> object:
        if isinstance(value, str) and value.strip().endswith("%"):
            return float(value.strip().rstrip("%")) / 100
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 1 < value <= 100:
            return value / 100
        return value


class CheckSpeedResult(ToolResult):
    """Whether what was measured is within what is expected."""

    judgement: str = Field(default="", description="below, within or above the expected range; '' where nothing is.")
    expected_mfu: float | None = None
    measured_mfu: float | None = None
    scaling_efficiency: float | None = Field(default=None, description="Measured speed-up over the ratio of GPUs.")


@tool(
    "check_speed",
    examples=[
        {"model": "13B", "gpu": "A100", "n_gpus": 128, "measured_mfu": 0.32},
        {"speedup": 1.3, "from_gpus": 8, "n_gpus": 16},
        {"busbw_gb_per_s": 9.8, "gpu": "A100", "n_gpus": 16, "inter_link": "RoCE 200", "nics_per_node": 4},
    ],
)
def check_speed(given: CheckSpeedInput) -> CheckSpeedResult:
    """Is this MFU, tokens/s, GPU utilisation, speed-up or bus bandwidth normal, and what holds it back?

    MFU = tokens/s x model FLOPs a token / (GPUs x dense peak), compared with the modelled one and its range; scaling
    efficiency = speed-up / ratio of GPUs, the part that does not scale by Amdahl. Not seen: the data loader, other jobs
    on the machines, throttling: it says how to look for them. Raises MissingValue without model and utilisation, and
    for a speed-up without both counts; BadValue for a speed above the chip's peak.
    """
    if given.busbw_gb_per_s is not None:
        return _links(given, given.busbw_gb_per_s * 1e9)
    if given.speedup is not None:
        return _scaling(given)
    if given.model is None:
        if given.gpu_utilisation is None:
            raise MissingValue(
                "missing_argument", "Name the model, so that a speed can be judged.", field="model", candidates=["7B"]
            )
        result = CheckSpeedResult()
        say_utilisation(result, given.gpu_utilisation)
        return result
    cluster = read_cluster(given, extra=_OWN)
    job, gpu = cluster.job, cluster.gpu
    software = software_of(given.framework, given.software)
    speed = estimate_throughput(job, gpu, cluster.fabric, software)
    seen = _measured(given, job.tokens_per_step, job.n_gpus, speed.model_flops_per_token, speed.peak_flops)
    result = CheckSpeedResult(assumptions=list(cluster.assumptions), expected_mfu=speed.mfu, measured_mfu=seen.mfu)
    result.judgement = say_speed(result, Findings(cluster, speed, software), seen)
    return result


def _links(given: CheckSpeedInput, seen: float) -> CheckSpeedResult:
    gpu, fabric, count, assumed = read_links(given)
    if count < 2:
        raise BadValue(
            "out_of_range", "One GPU has nobody to exchange with.", field="n_gpus", candidates=["8", "16"]
        )  # fmt: skip
    result = CheckSpeedResult(assumptions=assumed)
    if "message_bytes" not in given.model_fields_set:
        why = "large messages show bandwidth; nccl-tests' -e sets it"
        note = Assumption(name="message_bytes", value=given.message_bytes, unit="B", why=why, argument="message_bytes")
        result.assumptions.append(note)
    ports = given.nics_per_node or min(fabric.gpus_per_node, count)
    result.judgement = say_busbw(result, Test(given.collective, seen, given.message_bytes, count, ports), gpu, fabric)
    return result


def _measured(
    given: CheckSpeedInput, tokens_per_step: int, n_gpus: int, flops_per_token: float, peak: float
) -> Measured:
    """What was seen as tokens/s a GPU and MFU, whichever of them was told."""
    rate = given.tokens_per_second_per_gpu
    if rate is None and given.tokens_per_second is not None:
        rate = given.tokens_per_second / n_gpus
    if rate is None and given.step_seconds is not None:
        rate = tokens_per_step / given.step_seconds / n_gpus
    mfu = given.measured_mfu
    if mfu is None and given.tflops_per_gpu is not None:
        mfu = given.tflops_per_gpu * 1e12 / peak
    if mfu is None and rate is not None:
        mfu = rate * flops_per_token / peak
    if mfu is not None and mfu > 1:
        raise BadValue(
            "out_of_range", f"That speed would be an MFU of {mfu:.3g}: no chip multiplies faster than its peak.",
            field="tokens_per_second", hint="Is it the speed of all GPUs together? Give it as tokens_per_second.",
            candidates=["n_gpus"],
        )  # fmt: skip
    if rate is None and mfu is not None:
        rate = mfu * peak / flops_per_token
    told = given.measured_mfu is not None or given.tflops_per_gpu is not None
    return Measured(mfu, rate, told, given.gpu_utilisation)


def _scaling(given: CheckSpeedInput) -> CheckSpeedResult:
    assert given.speedup is not None
    more, fewer = given.n_gpus, given.from_gpus
    if more is None or fewer is None or more <= fewer:
        raise MissingValue(
            "missing_argument", "A speed-up needs both counts: from_gpus and the larger n_gpus.", field="from_gpus",
            candidates=["8"],
        )  # fmt: skip
    result = CheckSpeedResult(scaling_efficiency=given.speedup * fewer / more)
    expected = None
    if given.model is not None:
        speeds = []
        for count in (fewer, more):
            cluster = read_cluster(given.model_copy(update={"n_gpus": count}), extra=_OWN)
            software = cluster.software
            speeds.append(estimate_throughput(cluster.job, cluster.gpu, cluster.fabric, software))
        result.assumptions = list(cluster.assumptions)
        expected = Findings(cluster, speeds[1], software, before=speeds[0])
    result.judgement = say_scaling(result, given.speedup, fewer, more, expected)
    return result
