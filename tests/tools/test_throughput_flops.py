"""FLOPs per token against hand derivations and published formulas."""

from __future__ import annotations

import pytest

from knowledge.gpus import find_gpu
from tools.throughput import estimate_throughput, token_flops
from tools.throughput.flops import six_nd_hours, weights
from tools.workload import Job, WorkloadInput, resolve


def _job(model: str, **more: object) -> Job:
    return resolve(WorkloadInput.model_validate({"model": model, "activation_checkpointing": "none", **more}))


def test_llama_2_7b_at_4k_needs_what_the_layer_shapes_add_up_to() -> None:
    # By hand: 32 layers of 4 x 4096^2 attention and 3 x 4096 x 11008 FFN weights, head 4096 x 32000.
    layer = 4 * 4096**2 + 3 * 4096 * 11008
    linear = 32 * layer + 4096 * 32000
    attention = 12 * 32 * 4096 * 4096 / 2  # 12·L·d·s (Megatron's count), halved for the causal mask
    found = token_flops(_job("llama-2-7b", seq_len=4096)).model
    assert found == pytest.approx(6 * linear + attention, rel=1e-3)


def test_lora_drops_the_weight_gradients_and_full_recomputation_adds_a_forward_pass() -> None:
    full = token_flops(_job("llama-2-7b", seq_len=1))
    lora = token_flops(_job("llama-2-7b", seq_len=1, method="lora"))
    again = token_flops(_job("llama-2-7b", seq_len=1, activation_checkpointing="full"))
    assert lora.model / full.model == pytest.approx(4 / 6, rel=1e-4)
    assert again.model == full.model  # recomputation is no work of the model's: MFU and HFU differ
    assert again.dense / full.dense == pytest.approx(8 / 6, rel=1e-4)


def test_a_mixture_of_experts_counts_only_the_experts_a_token_visits() -> None:
    job = _job("qwen3-30b-a3b", seq_len=1)
    part = weights(job.arch)
    # 48 layers x 8 of 128 experts x 3 x 2048 x 768
    assert part.routed == pytest.approx(48 * 8 * 3 * 2048 * 768, rel=1e-9)
    assert token_flops(job).model < 6.2 * job.arch.active_params


def test_a_sliding_window_caps_attention() -> None:
    windowed = _job("mistral-7b-v0.1", seq_len=32768)
    assert windowed.arch.sliding_window == 4096
    core = token_flops(windowed).attention
    half = token_flops(_job("mistral-7b-v0.1", seq_len=4096)).attention
    assert core == pytest.approx(half * (1 - 4096 / 65536) / 0.5, rel=1e-6)


def test_seventy_billion_on_a_hundred_billion_tokens_takes_3686_hours_not_37() -> None:
    assert six_nd_hours(70e9, 100e9, 8, 989.4e12, 0.40) == pytest.approx(3684.8, abs=2)
    assert six_nd_hours(70e9, 100e9, 8, 989e12, 0.40) == pytest.approx(3686, abs=1)


def test_the_whole_is_the_sum_of_its_parts() -> None:
    gpu = find_gpu("h100").value
    job = _job("llama-3.1-70b", n_gpus=64, tp=8, pp=2, micro_batch=1, grad_accum=16)
    found = estimate_throughput(job, gpu, software="tuned")
    assert found.step_seconds == pytest.approx(found.parts.total * job.tokens_per_step / 64)
    assert 0.1 < found.mfu < 0.6
    assert found.hfu >= found.mfu


def test_a_faster_chip_of_the_same_kind_is_never_slower() -> None:
    job = _job("llama-3.1-8b", n_gpus=8)
    a100, h100, b200 = (estimate_throughput(job, find_gpu(name).value) for name in ("a100", "h100", "b200"))
    assert a100.tokens_per_second < h100.tokens_per_second < b200.tokens_per_second
