"""Local measurement: what can be checked without torch, that is the row's format and what cannot be built."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from evals.accuracy_memory import read_csv
from evals.measure import MEMORY_COLUMNS, Measured, _configuration, append, expected, memory_row
from evals.measured_rows import read_row
from tools.errors import InputProblem
from tools.memory import estimate
from tools.workload import WorkloadInput, resolve


def test_a_local_row_has_the_columns_of_the_published_ones_and_is_labelled(tmp_path: Path) -> None:
    assert tuple(read_csv(None, "measured_memory.csv")[0]) == MEMORY_COLUMNS
    job = resolve(WorkloadInput(model="llama-3.2-1b", method="lora", precision="bf16", seq_len=1024))
    row = memory_row(job, Measured(5_000_000_000, 6_000_000_000, 1000.0, "a card"))
    file = tmp_path / "mine.csv"
    append(file, MEMORY_COLUMNS, row)
    append(file, MEMORY_COLUMNS, row)
    rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 2
    assert rows[0]["source_repo_or_paper"] == "local measurement"
    assert read_row(rows[0]).job.arch == job.arch


def test_the_estimate_beside_a_local_run_is_of_live_bytes() -> None:
    job = resolve(WorkloadInput(model="llama-3.2-1b", method="lora", precision="bf16", seq_len=1024))
    value, low, high = expected(job, fake=False)
    assert low <= value <= high < estimate(job).high_bytes


def test_models_that_widths_do_not_describe_are_refused_with_others_to_try() -> None:
    arch = resolve(WorkloadInput(model="mixtral-8x7b")).arch
    with pytest.raises(InputProblem) as problem:
        _configuration(arch)
    assert problem.value.candidates
