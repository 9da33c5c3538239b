"""Does the network model keep or lose speed as published runs did? ``python -m evals.accuracy_scaling``.

Series: one source's runs of one model on one GPU at several counts (``evals/data/scaling_rows.csv``). Efficiency of a
run is its tokens/s a GPU over that of the series' smallest run; the model predicts both from the stated
configuration, and the error is predicted over measured efficiency. No measured speed enters a prediction.
"""

from __future__ import annotations

import csv
import math
import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from knowledge.gpus import find_gpu
from knowledge.types import Gpu
from tools.architectures import known_model
from tools.network import fabric_for
from tools.network.alternatives import Options
from tools.network.fabric import Fabric
from tools.network.interconnect_words import SCATTER, efficiency_range
from tools.network.model import Ways
from tools.network.search import search
from tools.network.step import StepTime, step_time
from tools.workload import Job, WorkloadInput, resolve

DATA = Path(__file__).parent / "data" / "scaling_rows.csv"
TUNED = ("nemo", "megatron")
LOSING = 0.85  # measured efficiency below this: more than 15 % lost
Row = dict[str, str]

_FRAMEWORKS = (
    ("llm-foundry", "llm-foundry"), ("nemo", "nemo"), ("megatron", "megatron"), ("maxtext", "maxtext"),
    ("torchtitan", "torchtitan"), ("deeplearningex", "hf"), ("nvidia", "nemo"), ("ngc", "nemo"),
    ("deepspeed", "deepspeed"),
)  # fmt: skip
_PLAIN_GPU = {
    "H100 96GB HBM2e 500W": "H100 SXM", "TPU v6e (Trillium)": "TPU-v6e", "TPU v7x (Ironwood)": "TPU-v7x",
    "A100 40GB": "A100 40GB SXM", "A100 80GB": "A100 80GB SXM",
}  # fmt: skip
_LINKS = (
    ("RoCE 1600", "1600 Gb/s per node"), ("Omni-Path", "135 Gb/s per node"), ("4x200", "800 Gb/s per node"),
    ("400Gb/s, Comp", "NDR"), ("8x ConnectX-7 IB NDR", "NDR"), ("8x NVIDIA ConnectX-7", "NDR"),
    ("4x ConnectX-7 IB NDR", "NDR"), ("RDMA 400", "400 Gb/s per GPU"), ("CX-7 400", "400 Gb/s per GPU"),
    ("ROCE2", "RoCE 400"), ("RoCEv2", "RoCE 400"),
)  # fmt: skip


@dataclass(frozen=True)
class Scaled:
    """One run against the smallest of its series."""

    row: Row
    base: Row
    measured: float
    predicted: float
    step: StepTime

    @property
    def error(self) -> float:
        """Relative error of the efficiency, signed: predicted over measured, less 1."""
        return self.predicted / self.measured - 1

    @property
    def covered(self) -> bool:
        """Whether the range that ``check_interconnect`` gives holds the measurement (the smallest run as modelled).

        A range that ends at 100 % also holds what scatter alone puts above it.
        """
        low, high = efficiency_range(self.step)
        found = self.measured * self.step.efficiency / self.predicted
        return low <= found <= (high if high < 1 else 1 + SCATTER)


def rows() -> list[Row]:
    """The carried measurements, cells as text, in file order."""
    with DATA.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def evaluate(sample: list[Row]) -> list[Scaled]:
    """Every run beyond the smallest of its series, predicted. A layout that one row of a series states is given to the
    others, in place.
    """
    series: dict[str, list[Row]] = defaultdict(list)
    for row in sample:
        series[row["series"]].append(row)
    out = []
    for members in series.values():
        members.sort(key=lambda row: int(row["n_gpus"]))
        _share_layout(members)
        base = members[0]
        base_speed = speed(base)[0]
        for row in members:
            if int(row["n_gpus"]) > int(base["n_gpus"]):
                measured = float(row["tokens_per_s_per_gpu"]) / float(base["tokens_per_s_per_gpu"])
                predicted, step = speed(row)
                out.append(Scaled(row, base, measured, predicted / base_speed, step))
    return out


def _share_layout(members: list[Row]) -> None:
    """A run that states no layout is taken to have that of the nearest run of its series that does."""
    stated = [row for row in members if _number(row["tp"])]
    for row in members:
        if stated and not _number(row["tp"]):
            near = min(stated, key=lambda other: abs(math.log(int(other["n_gpus"]) / int(row["n_gpus"]))))
            row.update({axis: near[axis] for axis in ("tp", "pp", "cp")})


def speed(row: Row) -> tuple[float, StepTime]:
    """Modelled tokens/s a GPU of a published configuration, and its step."""
    job, gpu, fabric = configuration(row)
    step = step_time(job, gpu, fabric, ways=Ways(overlap=row["sharding"] != "DistributedOptimizer"))
    return job.tokens_per_step / step.total / job.n_gpus, step


def configuration(row: Row) -> tuple[Job, Gpu, Any]:
    """The job that a row describes; a tuned recipe's unstated layout is the one that the search ranks first."""
    name = row["model"].replace(" SQuAD", "").replace(" (inferred)", "")
    name = name if known_model(name) else name.replace("LLaMA-13B", "huggyllama/llama-13b")
    model: Any = name if known_model(name) else {"params_b": float(row["total_params_b"])}
    n_gpus = int(row["n_gpus"])
    given: dict[str, Any] = {"model": model, "n_gpus": n_gpus}
    given["seq_len"] = _number(row["seq_len"]) or 2048
    adapter = row["task"] in ("lora", "qlora")
    given["method"] = row["task"] if adapter else ("pretrain" if row["task"] == "pretrain" else "full")
    given["precision"] = {"fp8": "fp8", "fp16": "fp16_mixed"}.get(row["precision"], "bf16")
    given["framework"] = next((mine for word, mine in _FRAMEWORKS if word in row["framework"].lower()), "hf")
    if row["id"].startswith("MLP") and given["framework"] == "hf":
        given["framework"] = "nemo"  # MLPerf entries are tuned recipes whatever their stack is called
    if row["activation_checkpointing"] in ("none", "selective", "full"):
        given["activation_checkpointing"] = row["activation_checkpointing"]
    elif given["framework"] == "nemo":
        given["activation_checkpointing"] = "selective"
    if row["precision"] == "unknown" and given["framework"] == "nemo":
        given["precision"] = "fp8"  # MLPerf entries on such hardware are, where their configuration says anything
    gpu = find_gpu(_gpu_name(row)).value
    words = row["interconnect_inter"]
    link = next((mine for word, mine in _LINKS if word in words), None)
    fabric = fabric_for(gpu, n_gpus, inter_link=link)[0]
    given["sharding"] = _sharding(row, adapter, given["framework"])
    samples = round((_number(row["global_batch_tokens"]) or 0) / given["seq_len"])
    sizes = {axis: _number(row[axis]) for axis in ("tp", "pp", "cp")}
    if sizes["tp"] and samples and n_gpus // ((sizes["tp"] or 1) * (sizes["pp"] or 1) * (sizes["cp"] or 1)) > samples:
        sizes["tp"] = None  # a neighbour's layout that has more replicas than this batch has sequences
    if sizes["tp"] is None and samples and (given["framework"] in TUNED or n_gpus > samples):
        best = _best_layout(given, gpu, fabric, samples)
        if best is not None:
            return best, gpu, fabric
    given.update({axis: value or 1 for axis, value in sizes.items()})
    replicas = max(1, n_gpus // (given["tp"] * given["pp"] * given["cp"]))
    given["micro_batch"] = _number(row["micro_batch"]) or _usual_micro(given, samples / replicas)
    steps = samples / (given["micro_batch"] * replicas)
    given["grad_accum"] = max(1, round(steps)) if samples else (4 if given["pp"] > 1 else 1)
    return resolve(WorkloadInput(**given)), gpu, fabric


def _best_layout(given: dict[str, Any], gpu: Gpu, fabric: Fabric, samples: int) -> Job | None:
    """Tuned recipes that state no layout are taken to use the one that the search ranks first."""
    checkpointing = given.get("activation_checkpointing")
    job = resolve(WorkloadInput(**{**given, "activation_checkpointing": checkpointing or "none"}))
    found = search(job, gpu, fabric, samples, Options("tuned"))
    return found.layouts[0].job if found.layouts else None


def _gpu_name(row: Row) -> str:
    name = _PLAIN_GPU.get(row["gpu"], row["gpu"])
    if row["gpu_form"] == "PCIe" and row["gpu"].startswith("H100"):
        return "H100 PCIe"
    return "H200 NVL" if row["gpu_form"] == "NVL" else name


def _sharding(row: Row, adapter: bool, framework: str) -> str:
    words = row["sharding"].lower()
    if "grad_op" in words or "zero2" in words:
        return "zero2"
    if "fsdp" in words or "zero3" in words or "zero-3" in words:
        return "zero3"
    if "ddp" in words or adapter:
        return "ddp"
    return "hsdp" if framework == "maxtext" else "zero1"  # several TPU slices: sharded inside, replicated across


def _usual_micro(given: dict[str, Any], samples_each: float) -> int:
    """Unstated micro-batches: one sample under pipelines, tuned recipes and long sequences, else what fills a card."""
    if given["framework"] == "maxtext" and samples_each >= 1:
        return max(1, int(samples_each))
    if given["pp"] > 1 or given["framework"] in ("nemo", "megatron") or given["seq_len"] >= 8192:
        return 1
    return max(1, 16384 // int(given["seq_len"]))


def _number(text: str) -> int | None:
    try:
        return int(float(text))
    except ValueError:
        return None


def summary(results: list[Scaled]) -> dict[str, float]:
    """The figures that the targets speak of: counts, absolute relative errors and coverage as shares (0 to 1).
    "losing": runs that lose more than 15 %; "flat": the guess that nothing is lost. Raises StatisticsError for no
    results.
    """
    errors = sorted(abs(each.error) for each in results)
    losing = sorted(abs(each.error) for each in results if each.measured < LOSING)
    flat = sorted(abs(1 / each.measured - 1) for each in results)
    flat_losing = sorted(abs(1 / each.measured - 1) for each in results if each.measured < LOSING)
    return {
        "rows": len(errors),
        "median": statistics.median(errors),
        "p90": errors[math.ceil(0.9 * len(errors)) - 1],
        "losing_rows": len(losing),
        "losing_median": statistics.median(losing) if losing else 0.0,
        "covered": sum(each.covered for each in results) / len(results),
        "flat_median": statistics.median(flat),
        "flat_p90": flat[math.ceil(0.9 * len(flat)) - 1],
        "flat_losing_median": statistics.median(flat_losing) if flat_losing else 0.0,
    }


def main() -> None:
    """Print every series and the summary."""
    results = evaluate(rows())
    for each in results:
        row = each.row
        sys.stdout.write(
            f"{row['series'][:44]:44} {each.base['n_gpus']:>5} -> {row['n_gpus']:>6}  "
            f"measured {each.measured:6.1%} predicted {each.predicted:6.1%} error {each.error:+6.1%}\n"
        )
    for key, value in summary(results).items():
        sys.stdout.write(f"{key}: {value:.3g}\n")


if __name__ == "__main__":
    main()
