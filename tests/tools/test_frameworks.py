"""Names of training stacks: each counts by the conventions of one that is modelled, and the result says which."""

from __future__ import annotations

from typing import get_args

import pytest

from tools.compatibility.versions import parse_stack
from tools.errors import InputProblem
from tools.frameworks import Framework, counted_as
from tools.registry import get_tool, parse_input
from tools.workload import WorkloadInput, resolve


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("xtuner", "hf"),
        ("ms-swift", "hf"),
        ("ms_swift", "hf"),
        ("OpenRLHF", "deepspeed"),
        ("verl", "hf"),
        ("Megatron-LM", "megatron"),
        ("nanochat", "nanogpt"),
        ("kohya_ss", "hf"),
        ("llama.cpp", "hf"),
        ("vllm", "hf"),
        ("LLaMA Factory", "llama-factory"),
    ],
)
def test_a_stack_is_counted_by_the_nearest_one_and_the_job_says_so(name: str, counted: str) -> None:
    job = resolve(WorkloadInput.model_validate({"model": "7B", "framework": name}))
    said = [item for item in job.assumptions if item.name == "framework"]
    assert job.framework == counted
    assert [item.value for item in said] == [counted]
    assert name in said[0].why


@pytest.mark.parametrize("name", get_args(Framework))
def test_a_modelled_stack_counts_as_itself(name: str) -> None:
    given = WorkloadInput.model_validate({"model": "7B", "framework": name})
    assert counted_as(name) in (None, name)
    assert (given.framework, given.stack) == (name, None)


def test_the_name_survives_a_dump_and_a_nested_input() -> None:
    given = parse_input(get_tool("estimate_vram").input_model, {"model": "7B", "gpu": "A100", "framework": "xtuner"})
    again = WorkloadInput.model_validate(given.model_dump(exclude_unset=True, exclude={"gpu"}))
    assert again.stack == "xtuner"
    assert again.framework == "hf"


def test_the_same_bytes_are_counted_under_either_name() -> None:
    tool = get_tool("estimate_vram")
    peaks = []
    for name in ("nanochat", "nanogpt"):
        result = tool.fn(parse_input(tool.input_model, {"model": "1B", "method": "pretrain", "framework": name}))
        peaks.append([fact.value for fact in result.facts if fact.name == "peak_per_gpu"])
    assert peaks[0]
    assert peaks[0] == peaks[1]


def test_a_name_that_is_no_stack_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputProblem, match="framework"):
        parse_input(WorkloadInput, {"model": "7B", "framework": "foo"})


@pytest.mark.parametrize("name", ["kohya_ss", "axolotl", "ms-swift", "xtuner 0.1", "verl"])
def test_a_stack_on_pytorch_adds_no_condition_of_its_own(name: str) -> None:
    assert parse_stack(name).libraries == ()
