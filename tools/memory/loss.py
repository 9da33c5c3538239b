"""Logits and loss: bytes a token and vocabulary entry at the end of the forward pass and at the height of backward.

Counted from the code of each loss: bf16 logits 2, an fp32 copy 4, log-softmax 4 and the gradient of each. With 128 to
256 thousand entries this is often the peak of the whole step.
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.memory.recipe import Recipe
from tools.memory.shapes import Shape

# name: (kept after forward, height in forward, height in backward), bytes an entry
LOSS_BYTES: dict[str, tuple[float, float, float]] = {
    "hf": (6, 10, 14),  # logits kept in the output, log-softmax; fp32 copy in forward; two fp32 gradients in backward
    "hf_trainer": (4, 12, 12),  # the same once the Trainer has dropped the outputs
    "fp32": (6, 10, 14),
    "fused_ce": (8, 8, 8),  # fp32 logits and the shifted copy, which the kernel turns into its gradient in place
    "bf16_shift": (6, 6, 8),  # transformers before 4.45, models without an fp32 cast: all in bf16, one shifted copy
    "autocast_shift": (8, 14, 18),  # the same under autocast, which runs the loss in fp32
    "bf16_shift_fused": (6, 6, 6),  # both with a kernel that turns the logits into their gradient in place
    "autocast_shift_fused": (8, 14, 14),
    "chunked": (6, 7.25, 9),  # logits in 8 chunks: each chunk's log-softmax stays, one chunk's gradients at a time
    "bf16": (4, 6, 8),
    "titan": (8, 10, 16),  # the model returns fp32 logits and the caller holds them
    "hf_kept": (8, 12, 16),  # transformers before 4.45 with the outputs held by the caller
    "fused_bf16": (2, 2, 4),  # a fused kernel on bf16 logits, gradient beside them (flash-attn's, llm-foundry)
    "vocab_parallel": (6, 6, 6),  # fp32 logits become their softmax and gradient in place, then bf16
}


@dataclass(frozen=True, slots=True)
class LossCost:
    """Bytes on one GPU."""

    kept: float
    forward: float
    backward: float


def loss_cost(shape: Shape, recipe: Recipe, tokens: float, tp: int, trained: bool, passes: float = 0.0) -> LossCost:
    """Bytes of logits and loss of ``tokens`` tokens on one GPU, by bytes a token and vocabulary entry (``LOSS_BYTES``,
    counted from each loss's code); the vocabulary is cut over the tensor-parallel group where the recipe says so.
    ``passes``: passes without gradient whose logits may stay.
    """
    entries = tokens * shape.vocab / (tp if recipe.loss_parallel else 1)
    if recipe.loss == "linear":
        # Liger, Unsloth, CCE: chunks of about tokens*hidden entries in bf16 and fp32; the gradient of the input stays.
        chunk = tokens * shape.hidden / tp * 6
        grad = tokens * shape.hidden * recipe.compute
        weight = shape.vocab * shape.hidden / tp * recipe.compute if trained else 0.0
        return LossCost(grad + weight, chunk + grad + weight, grad + weight)
    kept, forward, backward = (n + recipe.pass_logits * passes for n in LOSS_BYTES[recipe.loss])
    if recipe.softcap:
        kept, forward, backward = kept + 2, forward + 2, backward + 2
    return LossCost(kept * entries, forward * entries, backward * entries)
