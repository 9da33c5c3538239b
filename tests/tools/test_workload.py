"""A workload resolved: defaults written down, contradictions named."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.errors import InputProblem
from tools.architectures import from_parameters, resolve_architecture
from tools.workload import WorkloadInput, resolve


def count_parameters(arch) -> int:  # type: ignore[no-untyped-def]
    """Decoder with gated MLP, no biases: embeddings, attention, MLP, two norms a layer, final norm, head."""
    h, d = arch.hidden_size, arch.head_dim
    attention = h * arch.n_heads * d * 2 + h * arch.n_kv_heads * d * 2
    layer = attention + 3 * h * arch.ffn_size + 2 * h
    return int(arch.n_layers * layer + h + arch.vocab_size * h * (1 if arch.tied_embeddings else 2))


@given(st.floats(min_value=0.2, max_value=900))
def test_a_typical_shape_has_the_parameters_asked_for(params_b: float) -> None:
    arch, assumed = from_parameters({"params_b": params_b})
    assert count_parameters(arch) == pytest.approx(params_b * 1e9, rel=0.03)
    assert assumed[0].argument == "model"


def test_a_bare_size_is_read_as_a_typical_dense_model_and_says_so() -> None:
    arch, assumed = resolve_architecture("70B")
    assert arch.total_params == 70_000_000_000
    assert arch.n_layers == 80
    assert "typical" in assumed[0].why


def test_every_default_that_matters_is_an_assumption() -> None:
    job = resolve(WorkloadInput(model="llama-3.1-8b", method="lora"))
    names = {assumption.name for assumption in job.assumptions}
    assert {"seq_len", "micro_batch", "optimizer", "precision", "lora_rank", "activation_checkpointing"} <= names
    given_all = resolve(WorkloadInput(model="llama-3.1-8b", method="lora", seq_len=4096))
    assert "seq_len" not in {assumption.name for assumption in given_all.assumptions}


def test_data_parallel_ranks_are_what_the_other_degrees_leave() -> None:
    job = resolve(
        WorkloadInput(model="llama-3.1-70b", n_gpus=64, tp=8, pp=2, micro_batch=2, grad_accum=4, seq_len=4096)
    )
    assert job.dp == 4
    assert job.tokens_per_step == 2 * 4096 * 4 * 4


@pytest.mark.parametrize(
    ("given_input", "field"),
    [
        ({"model": ""}, "model"),
        ({"model": {"params_b": -7}}, "model"),
        ({"model": {"params_b": 1e18}}, "model"),
        ({"model": {"params_b": float("nan")}}, "model"),
        ({"model": {"hidden_size": 4096}}, "model"),
        ({"model": {"params_b": 7, "hidden_size": 4096, "n_heads": 30}}, "model"),
        ({"model": "llama-3.1-8b", "n_gpus": 6, "tp": 4}, "n_gpus"),
        ({"model": "llama-3.1-8b", "n_gpus": 5, "tp": 5}, "tp"),
        ({"model": "llama-3.1-8b", "method": "lora", "lora_rank": 8192}, "lora_rank"),
        ({"model": "llama-3.1-8b", "n_gpus": 64, "pp": 64}, "pp"),
        ({"model": "llama-3.1-8b", "n_gpus": 8, "ep": 8}, "ep"),
    ],
)
def test_what_cannot_be_names_its_field(given_input: dict[str, object], field: str) -> None:
    with pytest.raises(InputProblem) as caught:
        resolve(WorkloadInput.model_validate(given_input))
    assert caught.value.field == field


@settings(deadline=None)
@given(st.floats(2, 2000), st.floats(0.02, 0.9))
def test_a_mixture_named_by_its_sizes_has_them(total_b: float, share: float) -> None:
    name = f"{total_b:.1f}B-A{max(0.1, total_b * share):.1f}B"
    arch, notes = resolve_architecture(name)
    total, active = (float(part.strip("AB")) * 1e9 for part in name.split("-"))
    assert (arch.total_params, arch.active_params) == (pytest.approx(total), pytest.approx(active))
    assert arch.moe is not None
    spare = arch.moe.n_experts - arch.moe.experts_per_token
    width = (total - active) / (3 * (arch.hidden_size or 0) * (arch.n_layers or 0) * spare)
    assert arch.moe.expert_ffn == pytest.approx(width, abs=64)
    assert notes[0].value == arch.id


def test_a_mixture_cannot_use_more_than_it_has() -> None:
    with pytest.raises(InputProblem, match="cannot be active"):
        resolve_architecture("3B-A30B")
