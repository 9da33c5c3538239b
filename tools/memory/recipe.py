"""Recipes: how many bytes each framework keeps for a parameter, and which tensors its layers save.

Nothing here is fitted to a measurement: each figure is what the framework's code allocates. Names:
Bytes per parameter of full AdamW training (weights + gradients + states; the temporary at the step in brackets):

    pure bf16 (torch.optim on bf16 weights)               2 + 2 + 4  =  8 (+2)
    fp32 weights, bf16 autocast or FSDP mixed precision   4 + 4 + 8  = 16 (+4)
    DeepSpeed/Colossal ZeRO: bf16 weights, fp32 master    2 + 2 + 12 = 16, cut by stage
    Megatron with distributed optimizer                   2 + 4 + 12/DP = 6 + 12/DP
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Loss = Literal[
    "hf", "hf_trainer", "hf_kept", "fp32", "fused_ce", "chunked", "linear", "bf16", "bf16_shift", "autocast_shift",
    "bf16_shift_fused", "autocast_shift_fused",
    "titan", "fused_bf16", "vocab_parallel",
]  # fmt: skip
Convention = Literal["pure", "mixed", "master", "megatron"]

# NF4: 4 bits a weight and one fp32 constant per 64 (QLoRA paper, section 3); double quantisation brings that to an
# 8-bit constant per 64 and an fp32 one per 256 of those (4.127 bits). GPTQ/AWQ at group 128: fp16 scale, 4-bit zero.
QUANT_BYTES: dict[str, float] = {
    "nf4": 0.5 + 4 / 64,
    "nf4_double": 0.5 + 1 / 64 + 4 / (64 * 256),
    "fp4": 0.5 + 4 / 64,
    "int4": 0.5 + 2.5 / 128,
    "mxfp4": 0.5 + 1 / 32,
    "int8": 1.0 + 2 / 4096,
    "fp8": 1.0,
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """Dtypes in bytes and the layer implementation; everything the formulas need beside the job."""

    name: str
    convention: Convention = "mixed"
    quant: str | None = None  # key of QUANT_BYTES for a frozen base
    weight: float = 2.0  # trained weights as stored (sharded where sharding shards them)
    frozen: float = 2.0  # frozen weights that are not quantised: embeddings, head, norms under QLoRA
    compute: float = 2.0  # activations and matmul operands
    autocast: bool = False  # weights are cast at each use and the casts live until backward
    grad: float = 2.0
    grads_persist: bool = False  # gradient buffers allocated through forward and backward (Megatron, ZeRO buckets)
    master: float = 0.0
    state: float = 2.0  # one AdamW moment
    step_temp: float = 2.0  # foreach temporary a trained parameter at the optimizer step
    adapter: float = 4.0  # LoRA weights, gradients and moments
    gather: float = 2.0  # parameters gathered for use under FSDP/ZeRO-3
    gathered_units: float = 1.0  # blocks unsharded at once; recomputation gathers no second one ahead
    wgrad: float = 0.0  # bytes an entry of a weight gradient before it is added to a persistent buffer
    live_params: float = 0.0  # DeepSpeed ZeRO-3 keeps up to this many parameters gathered
    root_unsharded: bool = True  # embeddings, head and final norm stay gathered from forward to the end of backward
    flat_frozen_grads: bool = False  # FSDP1 flat parameters: frozen weights get unsharded gradients (2023 stacks)
    bucket: float = 0.0  # bytes of communication buckets
    # The layer implementation.
    residual: float = 2.0
    fp32_norm: bool = False  # Gemma scales in fp32, so the normalised value is kept in fp32
    activation: str = "native"
    inputs_on_host: bool = False  # checkpointed block inputs are moved to host memory
    tiled_mlp: bool = False  # the MLP runs over slices of the sequence (ALST)
    fused_norm: bool = False  # one kernel that saves its bf16 input instead of fp32 copies
    fused_mlp: bool = False  # activation and product recomputed in backward (Liger, Unsloth, Triton SwiGLU)
    fused_lora: bool = False  # LoRA without its own input copies
    lora_dropout: bool = False  # a mask byte beside each adapter's input
    lora_padding: bool = False  # adapters on part of a fused projection are padded out, and their output is kept
    linear_inputs: bool = False  # 4-bit kernels before bitsandbytes 0.42 keep each frozen layer's input as well
    linear_outputs: bool = False  # trained scales and biases on every linear layer (LLaMA-Adapter v2) keep its output
    extra_inputs: float = 0.0  # further copies of a block's input alive in backward under checkpointing
    lora_autocast: bool = False  # adapters run under autocast: their input copies are in the compute dtype
    fused_qkv: bool = False  # one projection, whose whole output lives as long as the values, a view into it
    rotary: bool = True  # rotated queries and keys are tensors of their own
    fused_gate: bool = False  # gate and up in one matrix, adapted as one
    shared_norm_input: bool = False
    untied: bool = False  # embeddings and head are separate modules even where the checkpoint ties them
    share_inputs: bool = True  # q, k, v (gate, up) save one input; autocast from fp32 casts one for each
    softmax: float = 4.0  # dtype of eager attention's softmax
    math_sdpa: bool = False  # SDPA falls back to plain products (fp32 scores kept), e.g. for a broadcast kv head
    copied_output: bool = False  # the attention output is copied once more for its projection
    expert_loop: bool = True  # experts run one after the other, not as one grouped product
    kv_expand: bool = False  # keys and values repeated to all heads before attention
    explicit_mask: bool = False  # a mask tensor in compute dtype saved by each SDPA call
    dropout: bool = False
    selective_saves: str = "attention"
    tp_regather: bool = True  # Megatron sequence parallel gathers inputs again in backward instead of saving them
    # Loss.
    loss: Loss = "hf_trainer"
    softcap: bool = False
    loss_parallel: bool = True  # the vocabulary stays cut over the tensor-parallel group in the loss
    pass_logits: float = 0.0  # bytes a vocabulary entry that a pass without gradient leaves alive
    reshard: bool = True  # False: gathered weights stay through the backward pass (like ZeRO-2)
