"""States and gather buffers against sums written out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tools.memory import estimate, recipe_for
from tools.memory.shapes import adapter_linears, shape_of
from tools.memory.states import cut_of, states_of
from tools.workload import Job, WorkloadInput, resolve


def job(**given: object) -> Job:
    return resolve(WorkloadInput.model_validate({"model": "llama-2-7b", **given}))


def test_every_parameter_of_the_published_count_has_a_place() -> None:
    shape = shape_of(job().arch)
    # Llama-2-7B, table of the paper: 32 layers of 4*4096^2 + 3*4096*11008 + two norms, two 32000x4096 matrices, a norm.
    block = 4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096
    assert shape.block == block
    assert shape.total == 32 * block + 2 * 32000 * 4096 + 4096 == 6_738_415_616


def test_pure_bf16_adamw_takes_eight_bytes_a_parameter_and_two_more_at_a_foreach_step() -> None:
    one = job(method="full", precision="bf16", seq_len=512)
    assert estimate(one).phases["step"] == pytest.approx(8 * 6_738_415_616)  # fused AdamW, today's default
    foreach = replace(recipe_for(one), step_temp=2.0)
    bill = estimate(one, foreach)
    assert bill.phase == "step"
    assert bill.phases["step"] == pytest.approx(10 * 6_738_415_616)


def test_deepspeed_zero_stages_cut_the_sixteen_bytes_as_the_paper_says() -> None:
    for stage, expected in (("zero1", 2 + 2 + 12 / 8), ("zero2", 2 + (2 + 12) / 8), ("zero3", 16 / 8)):
        one = job(method="full", n_gpus=8, sharding=stage)
        shape, recipe = shape_of(one.arch), recipe_for(one)
        states = states_of(one, shape, recipe, cut_of(one), True, True)
        assert states.weights + states.grads + states.optimizer == pytest.approx(expected * 6_738_415_616)


def test_lora_on_all_linear_layers_of_llama_2_7b_at_rank_16_has_40_million_entries() -> None:
    linears = adapter_linears(job().arch, ("all-linear",))
    count = sum(16 * (x.inputs + x.outputs) * x.blocks for x in linears)
    assert count == 39_976_960  # what PEFT reports for it


def test_qlora_base_is_four_bits_with_constants_and_16_bit_embeddings() -> None:
    one = job(method="qlora")
    shape = shape_of(one.arch)
    states = states_of(one, shape, recipe_for(one), cut_of(one), True, True)
    # 6.476e9 entries at 4.127 bits (QLoRA paper: 0.127 bits a parameter of constants), the rest in bf16.
    assert states.weights == pytest.approx(6_476_005_376 * 4.127 / 8 + (6_738_415_616 - 6_476_005_376) * 2, rel=1e-3)


def test_components_sum_to_the_peak_in_every_phase() -> None:
    for given in ({"method": "full"}, {"method": "lora", "micro_batch": 8}, {"method": "qlora", "fused_loss": True}):
        bill = estimate(job(**given))
        assert sum(bill.components.values()) == pytest.approx(bill.peak_bytes)


def test_gradient_accumulation_keeps_gradients_through_the_forward_pass() -> None:
    one = job(method="full", precision="bf16", micro_batch=8)
    more = replace(one, grad_accum=4)
    assert estimate(more).phases["loss"] - estimate(one).phases["loss"] == pytest.approx(2 * 6_738_415_616)
