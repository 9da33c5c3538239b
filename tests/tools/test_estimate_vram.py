"""What the answer of estimate_vram holds and how it reads."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tools.errors import InputProblem
from tools.registry import get_tool
from tools.result import ToolResult

CASES: tuple[dict[str, Any], ...] = (
    {"model": "llama-3.3-70b", "method": "qlora"},
    {"model": "llama-2-7b", "method": "full", "gpu": "RTX 4090"},
    {"model": "llama-3.1-405b", "method": "full"},
    {"model": "llama-3.1-8b", "method": "dpo", "n_gpus": 4, "gpu": "A100 80GB"},
    {"model": "llama-3.1-8b", "method": "grpo", "lora_rank": 16},
    {"model": "qwen2.5-7b", "task": "inference", "seq_len": 32768, "micro_batch": 8, "gpu": "L4"},
    {"model": "deepseek-v3", "task": "inference", "precision": "fp8", "tp": 8},
    {"model": "whisper-large-v3", "method": "full"},
    {"model": "flux.1-dev", "method": "lora"},
    {"model": "sdxl", "method": "lora"},
    {"model": "qwen2.5-vl-7b", "method": "lora"},
    {"model": "bert-base-uncased", "method": "full"},
    {"model": "t5-base", "method": "full"},
    {"model": "70B", "method": "full", "n_gpus": 8, "sharding": "zero3", "cpu_offload": "all"},
)


def call(**arguments: Any) -> ToolResult:
    return get_tool("estimate_vram").call(arguments)


@pytest.mark.parametrize("arguments", CASES)
def test_every_reference_in_a_sentence_is_a_fact_and_no_other_number_is_there(arguments: dict[str, Any]) -> None:
    result = call(**arguments)
    ids = [fact.id for fact in result.facts]
    assert len(ids) == len(set(ids))
    notes = [warn.text for warn in result.warnings if warn.code == "convention"]
    for sentence in (result.verdict, *result.next_steps, *notes):
        for reference in re.findall(r"\[\[(\w+)", sentence):
            assert reference in ids
        bare = re.sub(r"\[\[[^\]]*\]\]", "", sentence)
        names = [arguments["model"], *(word for word in re.findall(r"\S+", bare) if re.search(r"[A-Za-z]", word))]
        for name in names:
            bare = bare.replace(str(name), "")
        assert not re.search(r"\d", bare), sentence


@pytest.mark.parametrize("arguments", CASES)
def test_the_named_facts_exist_and_the_parts_sum_to_the_peak(arguments: dict[str, Any]) -> None:
    result = call(**arguments)
    peak = result.fact("peak_per_gpu")
    assert peak.low is not None
    assert peak.high is not None
    assert peak.low <= float(peak.value) <= peak.high
    for name in ("weights", "gradients", "optimizer_states", "activations", "logits", "overhead"):
        assert result.fact(name).unit == "B"
    assert sum(result.components.values()) == pytest.approx(float(peak.value))  # type: ignore[attr-defined]


def test_a_given_card_gets_a_verdict_and_the_nearest_thing_that_works() -> None:
    result = call(model="llama-2-7b", method="full", gpu="RTX 4090")
    assert result.gpu_verdict == "does_not_fit"  # type: ignore[attr-defined]
    assert result.verdict.startswith("No: ")
    assert result.fact("nearest_fit").value < result.fact("usable_memory").value
    assert any("GPUs with FSDP" in step for step in result.next_steps)


def test_the_convention_of_bytes_a_parameter_is_said_with_the_others() -> None:
    result = call(model="llama-2-7b", method="full")
    assert result.fact("bytes_per_param").value == 16
    assert any("[[bytes_per_param]]" in warn.text for warn in result.warnings)
    step = next(step for step in result.steps if step.symbol == "bytes per parameter")
    assert "pure bf16 8" in step.expression
    assert "Megatron" in step.expression


def test_inference_counts_the_cache_by_key_value_heads() -> None:
    # Qwen2.5-7B: 28 layers, 4 kv heads of 128: 2 * 28 * 4 * 128 * 2 bytes = 57,344 a token.
    result = call(model="qwen2.5-7b", task="inference", seq_len=1000, micro_batch=2)
    assert result.fact("kv_cache").value == 2 * 1000 * 57_344


def test_latent_attention_caches_one_compressed_vector_a_layer() -> None:
    # DeepSeek-V3: 61 layers * (512 + 64) values of 2 bytes a token, the same on each tensor-parallel GPU.
    result = call(model="deepseek-v3", task="inference", precision="fp8", tp=8, seq_len=1000)
    assert result.fact("kv_cache").value == pytest.approx(1000 * 61 * 576 * 2)


def test_offloaded_states_are_counted_on_the_host() -> None:
    result = call(model="70B", method="full", n_gpus=8, sharding="zero3", cpu_offload="optimizer")
    assert result.fact("host_ram").value == pytest.approx(16 * 70e9, rel=0.02)  # ZeRO-Offload: 16 bytes a parameter
    assert result.fact("optimizer_states").value == 0


def test_loading_takes_what_deepspeed_s_estimator_says() -> None:
    # estimate_zero2_model_states_mem_needs with offload: parameters x max(4 x GPUs, 16) x 1.5, the first for loading.
    result = call(model="2.85B", method="full", n_gpus=8, sharding="zero2", cpu_offload="optimizer")
    assert result.fact("host_ram_loading").high == pytest.approx(2.85e9 * max(4 * 8, 16) * 1.5, rel=0.02)
    alone = call(model="2.85B", method="full", n_gpus=1, cpu_offload="optimizer")
    assert alone.fact("host_ram").high == pytest.approx(2.85e9 * max(4 * 1, 16) * 1.5, rel=0.02)
    assert "host_ram_loading" not in {fact.name for fact in alone.facts}


def test_the_three_knobs_are_sorted_by_what_they_save() -> None:
    result = call(model="llama-3.1-8b", method="full", precision="bf16_mixed")
    after = [float(fact.value) for fact in result.facts if fact.name == "knob"]
    assert len(after) == 3
    assert after == sorted(after)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"model": "7b", "method": "lora", "lora_targets": "q_projx"}, "lora_targets"),
        ({"model": "7b", "seq_len": 0}, "seq_len"),
        ({"model": "7b", "micro_batch": -1}, "micro_batch"),
        ({"model": "7b", "precision": "bf17"}, "precision"),
        ({"model": "7b", "tp": 3, "n_gpus": 3}, "tp"),
        ({"model": "7b", "method": "lora", "lora_rank": 9000}, "lora_rank"),
        ({"model": {"params_b": 7, "n_heads": 33, "hidden_size": 4096}}, "model"),
        ({"training_config": "nothing here"}, "training_config"),
    ],
)
def test_bad_input_names_the_field_and_the_nearest_valid_value(arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(InputProblem) as problem:
        call(**arguments)
    assert problem.value.field == field
    assert problem.value.candidates or problem.value.hint


def test_the_bill_is_charted_against_the_cards_nearest_to_it() -> None:
    result = get_tool("estimate_vram").call({"model": "70B", "method": "qlora"})
    values = result.charts[1]["data"]["values"]
    usable = {row["card"]: row["usable"] for row in values}
    peak = result.fact("peak_per_gpu").value / 1e9
    assert min(usable.values()) < peak < max(usable.values())
    for card in usable:
        assert sum(row["GB"] for row in values if row["card"] == card) == pytest.approx(peak, rel=0.01)
