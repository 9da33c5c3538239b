"""Speed of the memory model: what searches over layouts and GPUs lean on."""

from __future__ import annotations

import time
from dataclasses import replace

from tools.memory import estimate
from tools.workload import WorkloadInput, resolve


def test_ten_thousand_configurations_take_less_than_a_second() -> None:
    base = resolve(WorkloadInput(model="llama-3.1-8b", method="full", n_gpus=8))
    jobs = [
        replace(base, seq_len=512 * (1 + n % 16), micro_batch=1 + n % 7, n_gpus=2 ** (n % 8 + 1)) for n in range(10_000)
    ]
    estimate(jobs[0])
    start = time.process_time()
    for job in jobs:
        estimate(job)
    assert time.process_time() - start < 1.0


def test_one_warm_estimate_takes_less_than_a_millisecond() -> None:
    job = resolve(WorkloadInput(model="llama-3.3-70b", method="qlora"))
    estimate(job)
    start = time.process_time()
    for _ in range(100):
        estimate(job)
    assert (time.process_time() - start) / 100 < 1e-3
