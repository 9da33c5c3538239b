"""The fact tables: ranges, units, unique names, known sources, and parameter counts recomputed from the shapes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import knowledge
from knowledge.gpus import all_gpus
from knowledge.instances import all_instances, all_links
from knowledge.models import all_models, load_model
from knowledge.sources import all_sources

DATA = Path(knowledge.__file__).parent / "data"


def _rows(name: str) -> list[dict[str, Any]]:
    return [
        row for row in json.loads((DATA / f"{name}.json").read_text()) if not str(row.get("id", "")).startswith("_")
    ]


MODELS = _rows("models")
DECODERS = [row for row in MODELS if (row["param_terms"] or {}).get("formula") == "decoder"]


def _attention(m: dict[str, Any], layer: int) -> int:
    """Weights of one layer's token mixing, by the published layer definitions."""
    t, a = m["param_terms"], m["attention"]
    h, heads, kv, d = m["hidden_size"], m["num_attention_heads"], m["num_kv_heads"], m["head_dim"]
    linear = a.get("linear_attention")
    if linear and (layer + 1) % linear["full_attention_every"]:  # gated delta net, Qwen3-Next
        keys = linear["linear_num_key_heads"] * linear["linear_key_head_dim"]
        values = linear["linear_num_value_heads"] * linear["linear_value_head_dim"]
        mixed = 2 * keys + values
        per_head = 2 * linear["linear_num_value_heads"]  # A_log and dt_bias
        in_out = h * (mixed + values) + h * per_head + values * h
        return in_out + mixed * linear["conv_kernel"] + per_head + linear["linear_value_head_dim"]
    if a["type"] == "mla":  # DeepSeek-V2 paper, section 2.1
        rank, nope, rope, v = a["kv_lora_rank"], a["qk_nope_head_dim"], a["qk_rope_head_dim"], a["v_head_dim"]
        q_rank = a["q_lora_rank"]
        queries = q_rank * (h + 1 + heads * (nope + rope)) if q_rank else h * heads * (nope + rope)
        total = queries + h * (rank + rope) + rank + rank * heads * (nope + v) + heads * v * h
        if t["dsa_indexer_heads_dim"]:  # DeepSeek-V3.2: queries from the compressed query, one key, a layer norm
            n, width = t["dsa_indexer_heads_dim"]
            total += q_rank * n * width + h * width + h * n + 2 * width
        return total
    total = h * heads * d * (2 if t["attn_output_gate"] else 1) + 2 * h * kv * d + heads * d * h
    total += (heads + 2 * kv) * d if t["qkv_bias"] else 0
    total += h if t["o_bias"] else 0
    total += {"head": 2 * d, "full": heads * d + kv * d}.get(t["qk_norm"], 0)
    return total + (heads if t["attn_sinks"] else 0)


def _feed_forward(m: dict[str, Any], layer: int) -> int:
    t, h, moe = m["param_terms"], m["hidden_size"], m["moe"]
    matrices = 3 if m["mlp_type"] == "gated" else 2

    def dense(width: int) -> int:
        return matrices * h * width + ((matrices - 1) * width + h if t["mlp_bias"] else 0)

    if not moe:
        return dense(m["intermediate_size"])
    every = moe["moe_layer_every"] or 1
    if layer < (moe["first_dense_layers"] or 0) or (every > 1 and layer % every != every - 1):
        return dense(moe["dense_intermediate_size"])
    experts, width, shared = moe["num_experts"], moe["moe_intermediate_size"], moe["shared_intermediate_size"] or 0
    expert = matrices * h * width + ((matrices - 1) * width + h if t["expert_bias"] else 0)
    total = h * experts + experts * expert + matrices * h * shared
    return total + (experts if t["router_bias"] else 0) + (h if t["shared_expert_gate"] else 0)


def _count(m: dict[str, Any]) -> int:
    t, h, vocab = m["param_terms"], m["hidden_size"], m["vocab_size"]
    norm = {"layernorm": 2 * h, "nonparametric-layernorm": 0}.get(m["norm"], h)
    total = vocab * h * (1 if m["tie_word_embeddings"] else 2) + t["learned_position_rows"] * h
    total += (vocab if t["head_bias"] else 0) + (2 * h if t["embedding_layernorm"] else 0)
    total += norm if t["final_norm"] else 0
    for layer in range(m["num_layers"]):
        total += _attention(m, layer) + _feed_forward(m, layer) + t["norms_per_layer"] * norm
    return int(total + t["vision_params"] + t["other_params"])


@pytest.mark.parametrize("row", DECODERS, ids=[row["id"] for row in DECODERS])
def test_parameters_recomputed_from_the_shape_agree_within_half_a_percent(row: dict[str, Any]) -> None:
    assert _count(row) == pytest.approx(row["total_params"], rel=0.005)


# Figures that are round numbers or names, not counts: "67B", "314B", a benchmark's label.
ROUND_NUMBERS = {"deepseek-ai/deepseek-llm-67b-base", "xai-org/grok-1", "megatron/gpt-1.7b", "megatron/gpt-3.6b",
                 "nemo/gpt3-5b", "nemo/gpt3-20b"}  # fmt: skip


@pytest.mark.parametrize("row", DECODERS, ids=[row["id"] for row in DECODERS])
def test_the_shape_agrees_with_the_published_count(row: dict[str, Any]) -> None:
    if row["published_params"] is None or row["id"] in ROUND_NUMBERS:
        return
    assert row["published_counts_like"] == pytest.approx(row["published_params"], rel=0.005)


def test_counts_of_well_known_models_are_the_published_ones() -> None:
    # Hub safetensors totals and papers.
    assert load_model("meta-llama/Llama-3.1-8B").total_params == 8_030_261_248
    assert load_model("meta-llama/Llama-3.1-70B").total_params == 70_553_706_496
    assert load_model("mistralai/Mixtral-8x7B-v0.1").total_params == 46_702_792_704
    assert load_model("mistralai/Mixtral-8x7B-v0.1").active_params == pytest.approx(12.9e9, rel=0.005)
    assert load_model("deepseek-ai/DeepSeek-V3").active_params == pytest.approx(37e9, rel=0.03)
    assert load_model("openai-community/gpt2").total_params == 124_439_808


def test_recalled_shapes_say_so() -> None:
    for row in MODELS:
        assert row["fields_basis"], row["id"]
        if row["id"].split("/")[0] in ("truncated", "megatron", "llm-foundry", "nemo"):
            assert "recalled" in row["fields_basis"], row["id"]
            assert row["notes"], row["id"]


@pytest.mark.parametrize("kind", ["models", "gpus", "instances", "links"])
def test_every_row_has_known_sources_and_a_date(kind: str) -> None:
    known = all_sources()
    for row in _rows(kind):
        assert row["sources"], row
        assert set(row["sources"]) <= set(known), row["sources"]
        assert row["as_of"][:2] == "20"
        assert len(row["as_of"]) == 10


def test_sources_are_unique_and_say_their_licence() -> None:
    rows = yaml.safe_load((DATA / "sources.yaml").read_text())
    assert len({row["id"] for row in rows}) == len(rows)
    assert all(row["licence"] and row["title"] and row["locator"] for row in rows)


def test_ids_are_unique_and_aliases_mean_one_gpu() -> None:
    for kind in ("models", "gpus", "links"):
        ids = [row["id"] for row in _rows(kind)]
        assert len(set(ids)) == len(ids)
    owners: dict[str, str] = {}
    for row in _rows("gpus"):
        for alias in row["aliases"]:
            assert owners.setdefault(alias.casefold(), row["id"]) == row["id"], alias


def test_model_shapes_are_possible() -> None:
    for model in all_models():
        assert 1e6 < model.total_params < 1e13
        assert 0 < model.active_params <= model.total_params
        if model.shape_known and model.attention != "ssm":
            assert model.n_heads % model.n_kv_heads == 0, model.id
            assert 16 <= model.head_dim <= 512, model.id
            assert 1 <= model.n_layers <= 300
            assert model.hidden_size <= model.vocab_size or model.modality != "text"
        if model.moe:
            assert 1 <= model.moe.experts_per_token <= model.moe.n_experts
            assert model.active_params < model.total_params


def test_gpu_figures_are_in_range_and_dense() -> None:
    for gpu in all_gpus():
        assert 4 <= gpu.marketed_memory_gb <= 512, gpu.id
        assert gpu.usable_bytes < gpu.memory_bytes <= 1.08 * gpu.marketed_memory_gb * 1e9, gpu.id
        assert 90e9 <= gpu.bandwidth_bytes_per_s <= 9e12, gpu.id
        rates = gpu.dense_flops
        bf16, fp8, fp16 = rates["bf16"], rates["fp8"], rates["fp16"]
        if bf16 and fp8 and gpu.vendor == "NVIDIA":
            assert fp8 <= 4.1 * bf16, gpu.id  # GeForce: fp16-accumulate fp8 against fp32-accumulate bf16
        if bf16 and fp16 and gpu.vendor in ("NVIDIA", "AMD") and gpu.id != "MI100":  # CDNA 1 runs bf16 at half rate
            assert bf16 == pytest.approx(fp16, rel=0.01), gpu.id
        if gpu.compute_capability in ("sm_60", "sm_61", "sm_70", "sm_75"):
            assert bf16 is None, gpu.id
        if gpu.compute_capability in ("sm_80", "sm_86"):
            assert fp8 is None, gpu.id


def test_the_rates_people_get_wrong_are_the_dense_ones() -> None:
    from knowledge.gpus import load_gpu

    # NVIDIA data sheets, dense: half of the sparse headline; GeForce at half rate for fp32 accumulation.
    assert load_gpu("A100-SXM4-80GB").dense_flops["bf16"] == pytest.approx(312e12)
    assert load_gpu("H100-SXM5").dense_flops["bf16"] == pytest.approx(989e12, rel=0.001)
    assert load_gpu("H100-SXM5").dense_flops["fp8"] == pytest.approx(1979e12, rel=0.001)
    assert load_gpu("RTX-4090").dense_flops["bf16"] == pytest.approx(165e12, rel=0.01)
    assert load_gpu("RTX-3090").dense_flops["bf16"] == pytest.approx(71e12, rel=0.01)
    assert load_gpu("A16").marketed_memory_gb == 16


def test_instances_use_known_gpus_and_plausible_sizes() -> None:
    known = {gpu.id for gpu in all_gpus()}
    for machine in all_instances():
        assert machine.gpu_id in known
        assert 1 <= machine.n_gpus <= 16
        if machine.inter_bytes_per_s_per_gpu:
            assert 0.1e9 <= machine.inter_bytes_per_s_per_gpu <= 125e9, machine


def test_link_rates_are_half_of_the_sum_of_both_directions() -> None:
    for link in all_links():
        if link.bytes_per_s and link.bytes_per_s_bidirectional:
            assert link.bytes_per_s_bidirectional == pytest.approx(2 * link.bytes_per_s, rel=0.01), link.id
