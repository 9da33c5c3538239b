"""Inference: weights by their quantisation, the key-value cache, and a little room for activations.

Cache bytes a token = layers * (keys + values over the kv heads) * bytes (Pope et al. 2022); MLA caches one compressed
vector and the shared rotary key a layer (DeepSeek-V2, section 2.1.3); layers with a sliding window keep at most the
window; linear-attention layers keep a constant state.
"""

from __future__ import annotations

from tools.memory import overhead
from tools.memory.bill import MemoryBill
from tools.memory.recipe import QUANT_BYTES
from tools.memory.shapes import Shape, shape_of
from tools.workload import Job

_PLAIN = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "bf16_mixed": 2.0, "fp16_mixed": 2.0}
# Gemma-2 alternates windowed and full layers, Gemma-3 has one full in six, gpt-oss alternates (their papers).
_FULL_EVERY = {"gemma2": 2, "gemma-2": 2, "gemma3": 6, "gemma-3": 6, "gpt-oss": 2, "gpt_oss": 2}


def weight_bytes(job: Job, shape: Shape) -> float:
    """Bytes of the whole model at the job's precision; quantised formats leave embeddings and head in 16 bits (QLoRA,
    Dettmers et al. 2023, section 3, for the constants of a block).
    """
    if job.precision in _PLAIN:
        return shape.total * _PLAIN[job.precision]
    key = {"nf4": "nf4_double"}.get(job.precision, job.precision)
    return shape.linear_weights * QUANT_BYTES[key] + (shape.total - shape.linear_weights) * 2.0


def cache_bytes(job: Job, shape: Shape) -> float:
    """Bytes of the 16-bit key-value cache of ``micro_batch`` sequences of ``seq_len`` tokens over all layers, on all
    GPUs together (Pope et al. 2022; DeepSeek-V2, section 2.1.3 for MLA). 0 for state-space models.
    """
    arch, length = job.arch, job.seq_len
    layers = shape.layers
    if arch.attention == "ssm":
        return 0.0
    per_layer = 2.0 * (shape.k + shape.v)
    if arch.mla is not None:
        per_layer = 2.0 * (arch.mla.kv_lora_rank + arch.mla.qk_rope_head_dim)
    if arch.full_attention_every:
        layers = layers // arch.full_attention_every
    total = layers * per_layer * length
    if arch.sliding_window and arch.sliding_window < length:
        full = layers // _FULL_EVERY[arch.family] if arch.family in _FULL_EVERY else 0
        total = per_layer * (full * length + (layers - full) * arch.sliding_window)
    return total * job.micro_batch


def estimate_inference(job: Job) -> MemoryBill:
    """The bill of serving, bytes a GPU: weights and cache cut over tensor and pipeline parallelism, at least one kv
    head a GPU; a prefill of at most 8,192 tokens at once.
    """
    shape = shape_of(job.arch)
    gpus = job.tp * job.pp
    weights = weight_bytes(job, shape) / gpus
    spread = job.pp * (1 if job.arch.mla is not None else max(1, min(job.tp, job.arch.n_kv_heads)))
    cache = cache_bytes(job, shape) / spread
    # A prefill of at most 8,192 tokens at once (vLLM's default budget of batched tokens).
    tokens = min(job.micro_batch * job.seq_len, 8192)
    widest = max(shape.ffn, shape.expert_ffn * shape.top_k) / job.tp
    activations = tokens * (4.0 * shape.hidden + 2.0 * (3 * widest + shape.q / job.tp))
    logits = job.micro_batch * shape.vocab * 6.0 / job.tp
    live = weights + cache + activations + logits + overhead.LIVE_FIXED_BYTES
    context = overhead.context_bytes(gpus)
    card = live * (1 + overhead.RESERVED_SHARE / 2) + context  # servers allocate their cache once, in one piece
    parts = {
        "weights": weights, "kv_cache": cache, "gradients": 0.0, "optimizer_states": 0.0,
        "activations": activations, "logits": logits,
    }  # fmt: skip
    parts["overhead"] = card - sum(parts.values())
    return MemoryBill(
        peak_bytes=card, low_bytes=card * overhead.CARD_LOW, high_bytes=card * overhead.CARD_HIGH, live_bytes=live,
        reserved_bytes=card - context, components=parts, phase="decode", phases={"decode": live}, host_ram_bytes=0.0,
        live_low=live * overhead.LIVE_LOW, live_high=live * overhead.LIVE_HIGH, convention="inference",
        states_bytes_per_param=weights * gpus / max(1, shape.total),
    )  # fmt: skip
