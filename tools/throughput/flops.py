"""FLOPs per token of a training step: what the model needs (for MFU) and what the hardware does (for HFU and time).

Conventions, with N the weights in matrix products that a token passes through (embedding look-up excluded):

- forward 2N, backward 4N: 2N for the gradient of the inputs and 2N for that of the weights (Kaplan et al. 2020,
  arXiv:2001.08361, section 2.1). A frozen base under LoRA needs no weight gradient: 4N in all.
- attention core, per layer and token: scores and weighted sum, 2·2·s·width forward, halved because a causal kernel
  skips the upper triangle; a sliding window caps s. Backward twice that; flash kernels recompute the scores,
  5 products instead of 4 (Dao 2022, arXiv:2205.14135, appendix B), which only the hardware count has.
- full activation checkpointing repeats the layers' forward pass; selective repeats the attention core
  (Korthikanti et al. 2022, arXiv:2205.05198). Recomputation counts for the hardware, never for the model.
- mixture of experts: only routed and shared experts that a token visits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from knowledge.types import Architecture
from tools.workload import Job

# Hybrids of state-space, expert and few attention layers, one mixer a layer: Nemotron-H's 52 layers hold 6 with
# attention and about 45 % with an FFN (arXiv:2504.03624).
HYBRID_ATTENTION_SHARE, HYBRID_EXPERT_SHARE = 6 / 52, 0.45
# Forward passes beside the trained one: a frozen reference model scores the same tokens under DPO and KTO
# (Rafailov et al. 2023, arXiv:2305.18290); reference and old policy under GRPO (Shao et al. 2024, arXiv:2402.03300);
# these, the reward model and the critic's values under PPO, whose critic is trained as well (Ouyang et al. 2022).
EXTRA_FORWARDS = {"dpo": 1.0, "kto": 1.0, "grpo": 2.0, "ppo": 4.0}
TRAINED_BESIDE = {"ppo": 1.0}  # models of the same size that are trained on the same tokens
FLASH_BACKWARD = 2.5  # attention-core backward over forward, with the scores recomputed


# Models that interleave windowed with global layers: one global layer in this many (their papers and configurations);
# a model with a window and no entry windows every layer (Mistral 7B v0.1, StarCoder2, Phi-3 mini).
_GLOBAL_LAYER_EVERY = (
    ("gemma-2", 2), ("gemma-3", 6), ("gemma-4", 6), ("gpt-oss", 2), ("gpt-neo-", 2), ("llama-4", 4), ("olmo-3", 4),
    ("modernbert", 3),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights in matrix products, per token, and the width of the attention core."""

    dense: float  # attention projections, dense and shared FFNs, routers
    routed: float  # experts a token is sent to
    head: float  # output projection
    attention_width: float  # sum over layers of heads x (query-key + value) width / 2
    windowed_share: float  # share of that width whose span is capped by the sliding window
    window: int


@dataclass(frozen=True, slots=True)
class TokenFlops:
    """FLOPs of one trained token; ``model`` is the MFU numerator, the rest what the hardware executes."""

    model: float
    dense: float
    routed: float
    attention: float
    head: float

    @property
    def hardware(self) -> float:
        """FLOPs per trained token that the hardware executes, recomputation included: the numerator of HFU."""
        return self.dense + self.routed + self.attention + self.head


@lru_cache(maxsize=1024)
def weights(arch: Architecture) -> Weights:
    """Active parameters split by the kernel they run in, per token; embedding look-ups and vision towers are left out.
    Where the published total contradicts the shape, or expert widths are not published, half of the active parameters
    of a mixture of experts are taken as routed. Cached by architecture.
    """
    hidden, layers = arch.hidden_size, float(arch.n_layers)
    if hybrid(arch):
        layers *= HYBRID_EXPERT_SHARE
    head = float(arch.vocab_size * hidden) if arch.modality not in ("diffusion",) else 0.0
    looked_up = float(arch.embedding_params) + arch.learned_positions * hidden + arch.vision_params
    routed = 0.0
    if arch.moe is not None and arch.moe.expert_ffn:
        moe_layers = max(0.0, layers - arch.moe.first_dense_layers) / max(1, arch.moe.every)
        matrices = 3 if arch.gated_mlp else 2
        routed = matrices * hidden * arch.moe.expert_ffn * arch.moe.experts_per_token * moe_layers
    dense = arch.active_params - looked_up - arch.head_params - routed
    if dense <= 0.2 * arch.active_params:  # totals that contradict the shape: spread what is known
        routed = 0.5 * arch.active_params if sparse(arch) else 0.0
        dense = max(arch.active_params - routed - head, 0.25 * arch.active_params)
    elif sparse(arch) and not routed:  # a mixture of experts whose expert width is not published
        routed = 0.5 * arch.active_params
        dense -= routed
    width, share, window = _attention_width(arch)
    return Weights(dense, routed, head, width, share, window)


def hybrid(arch: Architecture) -> bool:
    """Whether most layers are state-space or linear mixers beside few attention layers."""
    return not arch.shape_known and "hybrid" in (arch.notes or "").lower()


def sparse(arch: Architecture) -> bool:
    """Whether a token visits only part of the weights, also where the expert shape is not published."""
    return arch.is_moe or arch.active_params < 0.7 * arch.total_params


def token_flops(job: Job) -> TokenFlops:
    """FLOPs per trained token: forward 2N, backward 4N (2N under adapters), attention and recomputation apart (Kaplan
    et al. 2020, section 2.1; Dao 2022, appendix B; Korthikanti et al. 2022). Passes of reference models and critics
    count by method; inference has the forward pass alone.
    """
    part = weights(job.arch)
    causal = 1.0 if job.arch.modality in ("encoder", "diffusion") else 0.5
    span = job.seq_len
    full_span = span * causal
    window_span = full_span
    if part.window and part.window < span:  # mean over positions of min(position, window) when causal
        window_span = part.window * (1 - part.window / (2.0 * span)) if causal < 1 else float(part.window)
    span_mean = (1 - part.windowed_share) * full_span + part.windowed_share * window_span
    core = 4.0 * part.attention_width * span_mean
    linear = 2.0 * (part.dense + part.routed)
    head = 2.0 * part.head

    backward = 1.0 if job.is_adapter else 2.0
    extra, beside = EXTRA_FORWARDS.get(job.method, 0.0), TRAINED_BESIDE.get(job.method, 0.0)
    if job.task == "inference":
        backward, extra, beside = 0.0, 0.0, 0.0
    again = 1.0 if job.checkpointing == "full" and job.task == "train" else 0.0
    core_again = 1.0 if job.checkpointing != "none" and job.task == "train" else 0.0
    core_backward = 2.0 if backward else 0.0
    core_executed = FLASH_BACKWARD if backward else 0.0

    trained = 1.0 + beside
    passes = trained * (1.0 + backward) + extra
    model = (linear + head) * passes + core * (trained * (1.0 + core_backward) + extra)
    return TokenFlops(
        model=model,
        dense=2.0 * part.dense * (passes + trained * again),
        routed=2.0 * part.routed * (passes + trained * again),
        attention=core * (trained * (1.0 + core_executed + core_again) + extra),
        head=head * passes,
    )


def six_nd_hours(params: float, tokens: float, n_gpus: int, peak_flops: float, mfu: float) -> float:
    """The back-of-envelope check in hours, 6·N·D / (GPUs · peak · MFU) (Kaplan et al. 2020, section 2.1), with peak in
    FLOP/s and the MFU above 0 and up to 1.
    """
    return 6.0 * params * tokens / (n_gpus * peak_flops * mfu) / 3600.0


def _attention_width(arch: Architecture) -> tuple[float, float, int]:
    layers = float(arch.n_layers)
    if not layers or not arch.n_heads or arch.attention == "ssm":
        return 0.0, 0.0, 0
    if arch.mla is not None:
        width = arch.n_heads * (arch.mla.qk_nope_head_dim + arch.mla.qk_rope_head_dim + arch.mla.v_head_dim) / 2
    else:
        width = float(arch.n_heads * arch.head_dim)
    if hybrid(arch):
        return layers * HYBRID_ATTENTION_SHARE * width, 0.0, 0
    if arch.sliding_window:
        every = next((n for name, n in _GLOBAL_LAYER_EVERY if name in arch.id.lower()), arch.full_attention_every)
        return layers * width, 1.0 - (1.0 / every if every else 0.0), arch.sliding_window
    if arch.full_attention_every:  # linear-attention hybrid: the other layers have no quadratic core
        return layers / arch.full_attention_every * width, 0.0, 0
    return layers * width, 0.0, 0
