"""GRPO steps as published against the model's: ``python -m evals.accuracy_rollouts``.

The rows (``evals/data/rollout_steps.csv``) are NeMo RL's own performance page: whole steps, generation included,
colocated and on policy. They check the model; no constant is fitted to them. Prompt lengths are what tokens a second,
step time and answers' mean length leave over.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from knowledge.gpus import find_gpu
from tools.network.fabric import fabric_for
from tools.throughput import estimate_throughput
from tools.throughput.rollouts import rollouts
from tools.workload import WorkloadInput, resolve

DATA = Path(__file__).parent / "data" / "rollout_steps.csv"


@dataclass(frozen=True, slots=True)
class Step:
    """One published step and what the model makes of it, seconds."""

    id: str
    measured: float
    training: float
    generating: float
    low: float
    high: float

    @property
    def predicted(self) -> float:
        """Seconds of the whole step, training and generation."""
        return self.training + self.generating

    @property
    def covered(self) -> bool:
        """Whether the measured seconds lie in the range stated, ends included."""
        return self.low <= self.measured <= self.high


def steps() -> list[Step]:
    """Every row of the packaged file, predicted from its configuration alone, in file order."""
    with DATA.open(encoding="utf-8", newline="") as file:
        return [predict(row) for row in csv.DictReader(file)]


def predict(row: Mapping[str, str]) -> Step:
    """The step of one row; its longest answer runs into the sequence limit, as the page's recipes let it."""
    prompt, answer, count = int(row["prompt_tokens"]), int(row["response_tokens"]), int(row["n_gpus"])
    job = resolve(
        WorkloadInput(
            model=row["model"], method="grpo", n_gpus=count, seq_len=prompt + answer, response_tokens=answer,
            framework="megatron", activation_checkpointing="none", micro_batch=1, sharding="zero1",
            tp=int(row["tp"]), cp=int(row["cp"]), ep=int(row["ep"]), pp=int(row["pp"]),
        )
    )  # fmt: skip
    job = replace(job, grad_accum=max(1, int(row["sequences"]) // job.dp))
    gpu = find_gpu(row["gpu"]).value
    fabric = fabric_for(gpu, count)[0]
    speed = estimate_throughput(job, gpu, fabric, "tuned")
    generating = rollouts(job, gpu, fabric, longest=float(row["max_sequence_tokens"]) - prompt).seconds
    training = speed.parts.training * job.tokens_per_step / count
    whole = training + generating
    return Step(
        row["id"], float(row["measured_step_seconds"]), training, generating, whole * speed.low_factor,
        whole * speed.high_factor,
    )  # fmt: skip


def main() -> int:
    """Print each step."""
    for step in steps():
        sys.stdout.write(
            f"{step.id}: measured {step.measured:.0f} s, predicted {step.predicted:.0f} s "
            f"({step.training:.0f} training, {step.generating:.0f} generating), range {step.low:.0f}-{step.high:.0f}\n"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
