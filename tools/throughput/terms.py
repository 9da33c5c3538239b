"""The work of a training step on one GPU, per token of that GPU's share: FLOPs, bytes through memory, shapes.

"Share" means tokens a step divided by GPUs, so that model-parallel layouts compare: a tensor-parallel pair that
passes 4,096 tokens has done 2,048 a GPU. No achieved fraction enters here; ``efficiency`` and ``model`` bring those.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from knowledge.types import Gpu
from tools.memory.shapes import adapter_weights, shape_of
from tools.throughput.efficiency import compute_bits
from tools.throughput.flops import TokenFlops, hybrid, token_flops
from tools.workload import Job

# Bytes through device memory for what is not a matrix product, bf16, per layer: two norms, rotary, residual adds
# and the activation function read and write about 12 tensors of the hidden width and 3 of the FFN width forward;
# routed tokens are permuted to their experts and back, written and read both times.
HIDDEN_TENSORS, FFN_TENSORS, ROUTED_TENSORS = 12.0, 3.0, 4.0
BACKWARD_TRAFFIC = 1.5  # of the forward's, for elementwise kernels: they read the incoming gradient as well
SCORE_PASSES = 5.0  # over an unfused score matrix: write, scale and mask, softmax, dropout, read
HEAD_BYTES_PER_LOGIT = 16.0  # bf16 logits written, fp32 copy, softmax and its gradient (PyTorch cross-entropy)
FUSED_HEAD_BYTES_PER_LOGIT = 4.0
OPTIMIZER_BYTES_PER_PARAM = 30.0  # read and write fp32 weight and two moments, read gradient, write bf16 weight
DEQUANT_BYTES_PER_WEIGHT = 4.5  # read 4 bits, write bf16, read it again in the product
# Casting to 8 bits or fewer, bytes an element: Transformer Engine's fused kernel reads 16 bits and writes the narrow
# value and its transpose; torchao and plain recipes read once more for the largest value, since their scales follow
# the tensor at hand ("dynamic scaling").
CAST_BYTES, DYNAMIC_CAST_BYTES = 4.0, 6.0
FUSED_CASTS = ("megatron", "nemo", "maxtext")  # they also keep cast weights over the micro-batches of a step
PCIE_SHARE = 0.8  # of the nominal host link after protocol overhead
PCIE_FALLBACK = 12e9  # bytes/s, PCIe 3.0 x16 as achieved, where a card's link is not known
_SHARDED = ("zero1", "zero2", "zero3", "fsdp", "hsdp")
_STORED_SMALL = ("nf4", "int4", "fp4", "int8", "mxfp4")


@dataclass(frozen=True, slots=True)
class Terms:
    """Work per token of a GPU's share, and the shapes that decide how well kernels fill the chip."""

    flops: TokenFlops
    elementwise_bytes: float
    optimizer_bytes: float
    dequant_bytes: float
    offload_seconds: float  # over the host link
    bubble: float  # idle over busy time of a plain 1F1B pipeline: (stages - 1) / micro-batches
    uneven: float  # layers of the deepest pipeline stage over the mean, less 1: it paces the others
    tokens: float  # rows of a matrix product: tokens a micro-batch on one GPU
    width: float  # its narrow side: hidden size over tensor-parallel degree
    expert_tokens: float  # the same for one expert's product
    expert_width: float
    hybrid: float  # 1 where state-space mixers take the place of most attention layers


def work(job: Job, gpu: Gpu) -> Terms:
    """FLOPs and bytes that one token of a GPU's share costs, at nominal rates. A card whose host link is not known is
    taken to have PCIe 3.0 x16 where states are offloaded.
    """
    bits = compute_bits(job.precision, gpu, job.method != "qlora")
    return _work(job, bits, (gpu.pcie_bytes_per_s or PCIE_FALLBACK) if job.offload != "none" else 0.0)


@lru_cache(maxsize=2048)  # a search asks it of every card, and most cards are alike in all that counts here
def _work(job: Job, bits: int, pcie_bytes_per_s: float) -> Terms:
    arch, trained = job.arch, job.task == "train"
    tokens = job.tokens_per_micro_batch / job.cp
    share = max(1.0, tokens / (job.tp * job.pp))  # of a GPU, a micro-batch
    share_step = share * job.grad_accum
    recompute = 1.0 if job.checkpointing == "full" and trained else 0.0
    trainable = adapter_params(job) if job.is_adapter else float(arch.total_params)
    split = job.tp * job.pp * (job.dp if job.sharding in _SHARDED else 1)
    dequant = 0.0
    if job.is_adapter and job.precision in _STORED_SMALL:
        every = 1.0 + trained + recompute
        dequant = DEQUANT_BYTES_PER_WEIGHT * arch.total_params / (job.tp * job.pp) * every / share
    routed, width = 1e9, 2048.0
    if arch.moe is not None:
        routed = tokens * job.ep * arch.moe.experts_per_token / arch.moe.n_experts
        width = float(arch.moe.expert_ffn or 2048)
    return Terms(
        flops=token_flops(job),
        elementwise_bytes=_elementwise(job, trained, recompute) + _cast_bytes(job, bits, trained, recompute, share),
        optimizer_bytes=OPTIMIZER_BYTES_PER_PARAM * trainable / split / share_step if trained else 0.0,
        dequant_bytes=dequant,
        offload_seconds=_offload_seconds(job, pcie_bytes_per_s, trainable, split, share, share_step),
        bubble=(job.pp - 1) / max(1, job.grad_accum),
        uneven=-(-arch.n_layers // job.pp) * job.pp / arch.n_layers - 1.0 if job.pp > 1 and arch.n_layers else 0.0,
        tokens=max(1.0, tokens),
        width=(arch.hidden_size or 4096) / job.tp,
        expert_tokens=max(1.0, routed),
        expert_width=width,
        hybrid=float(hybrid(arch)),
    )


def adapter_params(job: Job) -> float:
    """Adapter weights, a count; where the layers' shapes are not published, those of a Llama-like layer."""
    found = adapter_weights(job.arch, job.lora_rank, job.lora_targets)
    if found:
        return found
    hidden, ffn, layers = job.arch.hidden_size or 4096, job.arch.ffn_size or 16384, job.arch.n_layers or 32
    return float(job.lora_rank * layers * (8 * hidden + 3 * (hidden + ffn)))


def _elementwise(job: Job, trained: bool, recompute: float) -> float:
    arch = job.arch
    hidden, layers = arch.hidden_size or 1, arch.n_layers or 1
    if hybrid(arch):  # one mixer a layer instead of attention and FFN
        layers = layers // 2
    passes = 1.0 + (BACKWARD_TRAFFIC if trained else 0.0) + recompute
    ffn, copies = float(arch.ffn_size), 0.0
    if arch.moe is not None:
        ffn = arch.moe.expert_ffn * arch.moe.experts_per_token + arch.moe.shared_ffn
        copies = ROUTED_TENSORS * arch.moe.experts_per_token
    tensors = (HIDDEN_TENSORS + copies) * hidden + FFN_TENSORS * ffn
    if job.attention == "eager":
        tensors += arch.n_heads * job.seq_len * SCORE_PASSES
    logits = FUSED_HEAD_BYTES_PER_LOGIT if job.fused_loss else HEAD_BYTES_PER_LOGIT
    return 2.0 * layers * tensors * passes + arch.vocab_size * logits


def _cast_bytes(job: Job, bits: int, trained: bool, recompute: float, share: float) -> float:
    """What products in 8 bits or fewer cost beside them, per token of a GPU's share: a pass over every input of a
    linear layer, again when it is recomputed, one over every gradient that enters its backward products, and one over
    the weights, each micro-batch unless the stack keeps them cast through the step. Attention, norms, embeddings, head
    and what is communicated stay in 16 bits.
    """
    if bits >= 16:
        return 0.0
    arch, fused = job.arch, job.framework in FUSED_CASTS
    ffn, copies = float(arch.ffn_size), 1.0
    if arch.moe is not None:
        ffn = arch.moe.expert_ffn * arch.moe.experts_per_token + arch.moe.shared_ffn
        copies = float(arch.moe.experts_per_token)
    wide = (2.0 + copies) * arch.hidden_size  # inputs of the projections, of the attention output, of the FFN
    inputs = arch.n_layers * (wide + ffn) * (1.0 + recompute)
    gradients = arch.n_layers * (wide + arch.hidden_size + 2.0 * ffn) * trained
    shape = shape_of(arch)
    held = (shape.linear_weights - shape.routed) / (job.tp * job.pp) + shape.routed / (job.pp * job.ep)
    kept = 0.0 if job.is_adapter else 1.0 / job.grad_accum  # a frozen base stays cast for good
    casts = held / share * (kept if fused else 1.0 + recompute)
    return (CAST_BYTES if fused else DYNAMIC_CAST_BYTES) * (inputs + gradients + casts)


def _offload_seconds(
    job: Job, pcie_bytes_per_s: float, trainable: float, split: int, share: float, share_step: float
) -> float:
    """Bytes over the host link: gradients down and weights up a step; with "all", weights every pass as well."""
    if job.offload == "none":
        return 0.0
    host = pcie_bytes_per_s * PCIE_SHARE
    seconds = 4.0 * trainable / split / host / share_step
    if job.offload in ("all", "nvme"):
        stored = 0.55 if job.method == "qlora" else 2.0
        seconds += 2.0 * stored * job.arch.total_params / split / host / share
    return seconds
