"""Published GRPO steps lie in the range that the model states, and generation behaves as its physics say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evals.accuracy_rollouts import steps
from knowledge.gpus import find_gpu
from tools.network.fabric import fabric_for
from tools.throughput.rollouts import rollouts
from tools.workload import Job, WorkloadInput, resolve

H100 = find_gpu("H100").value


def _job(**more: object) -> Job:
    given: dict[str, object] = {"model": "llama-3.1-8b", "method": "grpo", "n_gpus": 8, "seq_len": 2048, **more}
    return replace(resolve(WorkloadInput.model_validate(given)), grad_accum=32)


def _decode(job: Job) -> float:
    return rollouts(job, H100, fabric_for(H100, job.n_gpus)[0]).decode


def test_every_published_step_lies_in_its_range_and_dense_ones_within_a_third() -> None:
    found = steps()
    assert all(step.covered for step in found)
    dense = [abs(step.predicted / step.measured - 1) for step in found if step.id in ("NRL-1", "NRL-5")]
    assert max(dense) < 1 / 3


def test_one_sequence_alone_is_written_at_the_rate_at_which_weights_are_read() -> None:
    job = replace(_job(n_gpus=1), grad_accum=1)
    made = rollouts(job, H100, None)
    # 2 B x 8.03e9 weights over 0.8 of 3.35 TB/s is 6 ms a token, beside 3 ms of launching
    assert made.concurrent == pytest.approx(0.5, rel=0.01)  # the mean answer is half as long as the longest
    assert made.decode / made.passes == pytest.approx(2 * 8.03e9 / (0.8 * 3.35e12) + 3e-3, rel=0.05)


def test_a_card_too_small_for_the_weights_shares_its_engine() -> None:
    job = _job(model="llama-3.1-70b", n_gpus=8)
    assert rollouts(job, H100, fabric_for(H100, 8)[0]).engine_gpus == 8  # 2 x 141 GB over shares of 40 GB


def test_more_cards_longer_answers_and_larger_groups_move_the_time_the_right_way() -> None:
    base = _job()
    assert _decode(_job(response_tokens=512)) < _decode(base)
    doubled = replace(base, grad_accum=64)
    assert _decode(base) < _decode(doubled) < 2.2 * _decode(base)
    grouped = rollouts(_job(group_size=16), H100, fabric_for(H100, 8)[0])
    assert grouped.prefill == pytest.approx(rollouts(base, H100, fabric_for(H100, 8)[0]).prefill / 2)
