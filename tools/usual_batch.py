"""The global batch of a step where nobody says one: the same for every tool that times a step.

Tokens a step decide how often optimizer, gradients and a pipeline's bubble are paid for, so tools that assumed
different ones would name different speeds for one layout.
"""

from __future__ import annotations

from dataclasses import replace

from tools.result import Assumption
from tools.workload import Job

# More data parallelism stops helping beyond these: 4M is what Llama 2 and 3 8B pretrained with (arXiv:2307.09288,
# arXiv:2407.21783); fine-tuning recipes stay at half a million or below (Tulu 3: 128 x 4,096, arXiv:2411.15124).
PRETRAIN_BATCH_TOKENS = 4 * 2**20
FINE_TUNE_BATCH_TOKENS = 2**19


def usual_batch_tokens(job: Job) -> int:
    """Tokens a step over all GPUs that the method usually covers: 4 x 2**20 in pretraining (Llama 2 and 3 8B), 2**19 in
    fine-tuning (Tulu 3).
    """
    return PRETRAIN_BATCH_TOKENS if job.method in ("pretrain", "continued_pretrain") else FINE_TUNE_BATCH_TOKENS


def usual_accumulation(job: Job, batch_tokens: float | None = None) -> int:
    """Passes that make up the usual batch (or this one) on this layout, at least 1."""
    tokens = usual_batch_tokens(job) if batch_tokens is None else batch_tokens
    return max(1, int(tokens // (job.dp * job.tokens_per_micro_batch)))


def at_usual_batch(job: Job, grad_accum: int | None) -> tuple[Job, list[Assumption]]:
    """The job at the usual batch, and that as an assumption; as it is where ``grad_accum`` was given or none trains."""
    if grad_accum is not None or job.task != "train":
        return job, []
    filled = replace(job, grad_accum=usual_accumulation(job))
    why = f"passes a step that make up the usual batch ({filled.tokens_per_step:,} tokens over all GPUs)"
    if filled.grad_accum == 1:
        return filled, []
    return filled, [Assumption(name="grad_accum", value=filled.grad_accum, why=why, argument="grad_accum")]
