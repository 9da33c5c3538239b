"""Published configurations read as architectures: the counts must be the ones that the hub states."""

from __future__ import annotations

from typing import Any

import pytest

from integrations.hub.config import record
from knowledge.errors import BadValue
from knowledge.models import architecture, find_model

DAY = "2026-12-01"


def _llama(**changes: Any) -> dict[str, Any]:
    base = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False,
            "max_position_embeddings": 131072, "attention_bias": False, "mlp_bias": False}  # fmt: skip
    return {**base, **changes}


# (configuration as saved on the hub, weights that the hub's safetensors summary states)
PUBLISHED = {
    "llama-3.1-8b": (_llama(), 8_030_261_248),
    "llama-3.2-1b": (_llama(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, head_dim=64,
                            tie_word_embeddings=True), 1_235_814_400),
    "qwen2.5-7b": ({"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
                    "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064,
                    "tie_word_embeddings": False, "use_sliding_window": False, "sliding_window": 131072},
                   7_615_616_512),
    "qwen3-8b": ({"model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36,
                  "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
                  "attention_bias": False, "tie_word_embeddings": False}, 8_190_735_360),
    "mistral-7b-v0.3": ({"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336,
                         "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
                         "vocab_size": 32768, "sliding_window": None, "tie_word_embeddings": False}, 7_248_023_552),
    "mixtral-8x7b": ({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
                      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000,
                      "num_local_experts": 8, "num_experts_per_tok": 2, "tie_word_embeddings": False}, 46_702_792_704),
    "qwen3-30b-a3b": ({"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144,
                       "moe_intermediate_size": 768, "num_hidden_layers": 48, "num_attention_heads": 32,
                       "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8,
                       "decoder_sparse_step": 1, "vocab_size": 151936, "tie_word_embeddings": False}, 30_532_122_624),
    "deepseek-v2-lite": ({"model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944,
                          "moe_intermediate_size": 1408, "num_hidden_layers": 27, "num_attention_heads": 16,
                          "num_key_value_heads": 16, "n_routed_experts": 64, "n_shared_experts": 2,
                          "num_experts_per_tok": 6, "first_k_dense_replace": 1, "moe_layer_freq": 1,
                          "kv_lora_rank": 512, "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
                          "v_head_dim": 128, "vocab_size": 102400, "tie_word_embeddings": False}, 15_706_484_224),
    "gemma-2-9b": ({"model_type": "gemma2", "hidden_size": 3584, "intermediate_size": 14336, "num_hidden_layers": 42,
                    "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "vocab_size": 256000},
                   9_241_705_984),
    "phi-2": ({"model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32,
               "num_attention_heads": 32, "vocab_size": 51200, "tie_word_embeddings": False}, 2_779_683_840),
    "starcoder2-7b": ({"model_type": "starcoder2", "hidden_size": 4608, "intermediate_size": 18432,
                       "num_hidden_layers": 32, "num_attention_heads": 36, "num_key_value_heads": 4,
                       "vocab_size": 49152, "use_bias": True}, 7_173_923_840),
    "gpt2": ({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
              "vocab_size": 50257}, 124_439_808),
    "pythia-1.4b": ({"model_type": "gpt_neox", "hidden_size": 2048, "intermediate_size": 8192,
                     "num_hidden_layers": 24, "num_attention_heads": 16, "vocab_size": 50304,
                     "tie_word_embeddings": False}, 1_414_647_808),
    "falcon-7b": ({"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
                   "multi_query": True, "new_decoder_architecture": False, "vocab_size": 65024}, 6_921_720_704),
    "bloom-560m": ({"model_type": "bloom", "hidden_size": 1024, "n_layer": 24, "num_attention_heads": 16,
                    "vocab_size": 250880}, 559_214_592),
    "opt-1.3b": ({"model_type": "opt", "hidden_size": 2048, "ffn_dim": 8192, "num_hidden_layers": 24,
                  "num_attention_heads": 32, "max_position_embeddings": 2048, "vocab_size": 50272}, 1_315_758_080),
    "gpt-oss-20b": ({"model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 24,
                     "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "num_local_experts": 32,
                     "num_experts_per_tok": 4, "vocab_size": 201088, "attention_bias": True,
                     "tie_word_embeddings": False}, 20_914_757_184),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_the_count_from_the_configuration_is_the_published_one(name: str) -> None:
    config, stated = PUBLISHED[name]
    row = record(f"org/{name}", config, {}, DAY)
    assert row["total_params"] == pytest.approx(stated, rel=1e-4)


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_the_shape_is_that_of_the_row_we_hold(name: str) -> None:
    read, held = architecture(record("org/x", PUBLISHED[name][0], {}, DAY)), find_model(name).value
    for field in ("n_layers", "hidden_size", "n_heads", "n_kv_heads", "head_dim", "vocab_size", "tied_embeddings",
                  "gated_mlp", "norms_per_layer", "attention", "moe", "mla"):  # fmt: skip
        if field == "head_dim" and read.attention == "mla":
            continue  # our table keeps query and key width; latent attention has several
        if field == "moe" and read.moe and held.moe:
            assert (read.moe.n_experts, read.moe.experts_per_token, read.moe.expert_ffn, read.moe.shared_ffn) == (
                held.moe.n_experts, held.moe.experts_per_token, held.moe.expert_ffn, held.moe.shared_ffn,
            )  # fmt: skip
            continue
        assert getattr(read, field) == getattr(held, field), field
    assert read.active_params == pytest.approx(held.active_params, rel=0.002)


def test_the_hub_s_total_is_used_where_the_shape_explains_it_only_in_part() -> None:
    row = record("org/odd", _llama(model_type="newformer"), {"safetensors": {"total": 9_500_000_000}}, DAY)
    assert row["total_params"] == 9_500_000_000
    assert "account for" in row["notes"]
    assert "taken as Llama's" in row["fields_basis"]


def test_a_quantised_repository_keeps_the_shape_s_count() -> None:
    config = _llama(quantization_config={"quant_method": "gptq"})
    row = record("org/q", config, {"safetensors": {"total": 1_900_000_000}}, DAY)
    assert row["total_params"] == 8_030_261_248
    assert "quantised" in row["notes"]


def test_the_text_part_of_a_vision_model_is_read_and_the_rest_counted() -> None:
    config = {"model_type": "some_vl", "text_config": _llama(), "vision_config": {"hidden_size": 1024}}
    row = record("org/vl", config, {"safetensors": {"total": 8_500_000_000}}, DAY)
    arch = architecture(row)
    assert (arch.modality, arch.total_params, arch.vision_params) == ("vision-language", 8_500_000_000, 469_738_752)


@pytest.mark.parametrize(
    "config",
    [{}, {"model_type": "unet"}, _llama(hidden_size="4096"), _llama(num_hidden_layers=0), _llama(hidden_size=-1),
     _llama(num_hidden_layers=10**9), _llama(vocab_size=True)],
)  # fmt: skip
def test_configurations_without_a_possible_shape_say_what_to_give_instead(config: dict[str, Any]) -> None:
    with pytest.raises(BadValue):
        record("org/x", config, {}, DAY)
