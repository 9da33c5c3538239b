"""``diagnose_oom``: from a pasted error to what filled the memory and the one knob that helps most."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from knowledge.gpus import find_gpu
from knowledge.types import Gpu
from tools.diagnose.causes import Cause, judge
from tools.diagnose.identify import Match, identify
from tools.diagnose.oom_words import write
from tools.diagnose.patterns import MAX_TEXT, Report, parse
from tools.diagnose.symptoms import described
from tools.errors import MissingValue
from tools.memory import MemoryBill, estimate
from tools.registry import tool
from tools.result import ToolResult
from tools.workload import Job, WorkloadInput, resolve


class DiagnoseOomInput(WorkloadInput):
    """A pasted message and, where known, the workload that printed it."""

    model: str | dict[str, Any] | None = Field(  # type: ignore[assignment]
        default=None, description="Known name, hub id, bare size or parameters; without it only the message is read."
    )
    traceback: str = Field(
        description="The error as printed (traceback, log, dmesg, exit code), else what happened and when.",
        max_length=1_000_000,
    )
    gpu: str | None = Field(default=None, description="Card, e.g. 'RTX 4090'; else the capacity in the message counts.")
    host_ram_gb: float | None = Field(default=None, gt=0, description="Host memory of the machine, GB.")


class DiagnoseOomResult(ToolResult):
    """The cause and the knob."""

    cause: str = Field(description="fragmentation, shortage, other_process, host_memory, eval, save, varying, ...")
    style: str = Field(description="What printed the message.")
    tensor: str | None = Field(default=None, description="What the failed allocation was, where its size says so.")
    knob: str | None = Field(default=None, description="The one change to make first, as argument=value.")


@tool(
    "diagnose_oom",
    examples=[
        {
            "traceback": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.83 GiB. GPU 0 has a total "
            "capacity of 23.52 GiB of which 5.02 GiB is free.",
            "model": "llama-3-8b", "method": "qlora", "seq_len": 8192, "micro_batch": 2,
        }
    ],
)  # fmt: skip
def diagnose_oom(given: DiagnoseOomInput) -> DiagnoseOomResult:
    """What a memory error says: GPU or host, shortage or fragmentation, which tensor, and the first knob to turn.

    Figures are read from the message; the bytes asked for are compared with the tensors of the workload (logits b·s·V·4
    and so on), the bytes held with the memory model's bill, and each knob's effect is the model's bill before and after
    it. Fragmentation: reserved but unallocated is at least what was asked for. Not seen: leaks over time. Raises
    MissingValue for an empty message.
    """
    if not given.traceback.strip():
        raise MissingValue("missing_argument", "Paste the error message.", field="traceback")
    report = parse(given.traceback[:MAX_TEXT])
    if report.kind == "unknown":
        report = described(given.traceback[:MAX_TEXT]) or report
    gpu = find_gpu(given.gpu).value if given.gpu else None
    job = _job(given)
    bill = estimate(job) if job else None
    match = identify(report.tried, job) if job and report.tried else None
    cause = judge(report, job, bill, gpu, match)
    result = DiagnoseOomResult(
        assumptions=list(job.assumptions) if job else [],
        cause=cause.name,
        style=report.style,
        tensor=match.what if match else None,
        knob=cause.knob,
    )
    write(result, report, cause, job, bill, gpu, match, given.host_ram_gb)
    return result


def _job(given: DiagnoseOomInput) -> Job | None:
    if given.model is None:
        return None
    fields = given.model_dump(exclude_unset=True, exclude={"traceback", "gpu", "host_ram_gb"})
    return resolve(WorkloadInput(**fields))


__all__ = ["Cause", "DiagnoseOomInput", "DiagnoseOomResult", "Gpu", "Match", "MemoryBill", "Report", "diagnose_oom"]
