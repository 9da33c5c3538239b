"""Verdicts that the field agrees on (threads and vendors' tables), references that resolve, input that cannot be."""

import re
from typing import Any

import pytest

from knowledge.compatibility import cuda_releases, torch_releases, version
from tools.compatibility.check_compatibility import CheckCompatibilityResult
from tools.errors import InputProblem
from tools.registry import get_tool


def ask(**given: Any) -> CheckCompatibilityResult:
    result = get_tool("check_compatibility").call(given)
    assert isinstance(result, CheckCompatibilityResult)
    return result


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        ({"gpu": "RTX 5090", "framework": "torch 2.6+cu124"}, "does_not_work"),  # pytorch#150733
        ({"gpu": "RTX 5090", "framework": "torch 2.7+cu126"}, "does_not_work"),
        ({"gpu": "RTX 5090", "framework": "torch 2.7+cu128"}, "works"),
        ({"gpu": "RTX PRO 6000 Blackwell", "framework": "torch 2.4.1+cu121"}, "does_not_work"),
        ({"gpu": "V100", "precision": "bf16"}, "does_not_work"),
        ({"gpu": "T4", "precision": "bf16"}, "does_not_work"),
        ({"gpu": "V100", "precision": "fp16"}, "works"),
        ({"gpu": "A100", "precision": "fp8"}, "does_not_work"),
        ({"gpu": "L40S", "precision": "fp8"}, "works"),
        ({"gpu": "H100", "precision": "fp8"}, "works"),
        ({"gpu": "H100", "precision": "mxfp8"}, "does_not_work"),
        ({"gpu": "B200", "precision": "nvfp4"}, "works"),
        ({"gpu": "V100", "attention": "flash"}, "does_not_work"),
        ({"gpu": "RTX 4090", "attention": "flash3"}, "does_not_work"),
        ({"gpu": "H100", "attention": "flash_attention_3", "cuda": "12.4"}, "works"),
        ({"gpu": "H100", "attention": "flash3", "cuda": "12.1"}, "does_not_work"),
        ({"driver": "535", "cuda": "12.8"}, "works"),  # minor-version compatibility
        ({"driver": "470", "cuda": "12.1"}, "does_not_work"),
        ({"driver": "550", "cuda": "13.0"}, "does_not_work"),
        ({"driver": "520", "cuda": "11.8", "framework": "torch 2.6"}, "works"),
        ({"framework": "torch 2.8+cu118"}, "does_not_work"),  # 2.7 was the last with CUDA 11.8
        ({"gpu": "V100", "framework": "torch 2.12+cu130"}, "does_not_work"),
        ({"gpu": "V100", "framework": "torch 2.12+cu126"}, "works"),
        ({"gpu": "MI300X", "cuda": "12.4"}, "does_not_work"),
        ({"gpu": "MI300X", "framework": "torch 2.9 rocm6.4"}, "works"),
        ({"gpu": "T4", "framework": "bitsandbytes"}, "works"),
    ],
)
def test_verdicts_of_the_field(given: dict[str, Any], outcome: str) -> None:
    assert ask(**given).outcome == outcome


def test_the_fix_of_an_old_wheel_on_a_new_card_is_a_command_that_works() -> None:
    result = ask(gpu="RTX 5090", framework="torch 2.6+cu124")
    assert result.install_command
    torch = re.search(r"torch==(\d+\.\d+)", result.install_command)
    tag = re.search(r"the cu(\d{2})(\d) build", result.install_command)
    assert torch
    assert tag
    again = ask(gpu="RTX 5090", framework=f"torch {torch[1]}+cu{tag[1]}{tag[2]}")
    assert again.outcome == "works"


def test_the_fix_respects_an_old_driver() -> None:
    result = ask(gpu="A100", driver="535", framework="torch 2.14+cu132")
    assert result.outcome == "does_not_work"
    assert "cu126" in (result.install_command or "")


def test_a_message_names_its_card_and_cause() -> None:
    text = (
        "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation."
    )
    result = ask(error=text)
    assert result.outcome == "does_not_work"
    assert result.fact("minimum_cuda").value == "12.8"
    assert result.fact("minimum_driver").value == "570"


def test_driver_toolkit_and_wheel_are_told_apart() -> None:
    result = ask(driver="550", cuda="12.6", framework="torch 2.6+cu124")
    assert result.outcome == "works"
    assert any("Three versions" in step for step in result.next_steps)


def test_every_fact_carries_its_source_and_date() -> None:
    result = ask(gpu="RTX 5090", framework="torch 2.6+cu124", driver="535")
    assert result.sources
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\d", source.as_of) for source in result.sources)


def test_tables_of_versions_rise() -> None:
    natives = [version(rule.native) for rule in cuda_releases()]
    assert natives == sorted(natives)
    torches = [version(rule.version) for rule in torch_releases()]
    assert torches == sorted(torches)
    for rule in torch_releases():
        assert rule.pypi in rule.cuda


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "gpu"),
        ({"framework": "tensorfoo"}, "framework"),
        ({"framework": "torch 9.9"}, "framework"),
        ({"cuda": "99"}, "cuda"),
        ({"driver": "new"}, "driver"),
        ({"gpu": "RTX 5090", "precision": "bf17"}, "precision"),
        ({"gpu": "RTX 5099"}, "gpu"),
    ],
)
def test_what_cannot_be_names_the_field(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InputProblem) as problem:
        ask(**given)
    assert problem.value.field == field


@pytest.mark.parametrize(
    "given", [{"gpu": "H100"}, {"gpu": "V100", "precision": "bf16"}, {"driver": "535"}, {"gpu": "M2 Max"}]
)
def test_every_reference_in_a_sentence_is_a_fact(given: dict[str, Any]) -> None:
    result = ask(**given)
    ids = [fact.id for fact in result.facts]
    assert len(ids) == len(set(ids))
    for sentence in [result.verdict, *result.next_steps]:
        assert set(re.findall(r"\[\[([^\]|]+)", sentence)) <= set(ids)
