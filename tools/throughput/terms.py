"""The work of a training step on one GPU, per token of that GPU's share: FLOPs, bytes through memory and over links.

"Share" means tokens a step divided by GPUs, so that model-parallel layouts compare: a tensor-parallel pair that
passes 4,096 tokens has done 2,048 a GPU. No achieved fraction enters here; ``efficiency`` and ``model`` bring those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from knowledge.types import Gpu
from tools.throughput.flops import TokenFlops, token_flops
from tools.workload import Job

# Bytes through device memory for what is not a matrix product, bf16, per layer: two norms, rotary, residual adds
# and the activation function read and write about 12 tensors of the hidden width and 3 of the FFN width forward.
HIDDEN_TENSORS, FFN_TENSORS = 12.0, 3.0
BACKWARD_TRAFFIC = 1.5  # of the forward's, for elementwise kernels: they read the incoming gradient as well
HEAD_BYTES_PER_LOGIT = 16.0  # bf16 logits written, fp32 copy, softmax and its gradient (PyTorch cross-entropy)
FUSED_HEAD_BYTES_PER_LOGIT = 4.0
OPTIMIZER_BYTES_PER_PARAM = 30.0  # read and write fp32 weight and two moments, read gradient, write bf16 weight
DEQUANT_BYTES_PER_WEIGHT = 4.5  # read 4 bits, write bf16, read it again in the product
PCIE_FALLBACK = 12e9  # bytes/s, PCIe 3.0 x16 as achieved, where a card's link is not known
NVLINK_DOMAIN_GPUS = {"GB200": 72, "GB300": 72}


class FabricLike(Protocol):
    """What a fabric tells: rates are nominal bytes/s per GPU in one direction."""

    @property
    def gpus_per_node(self) -> int: ...  # noqa: D102

    @property
    def intra_bytes_per_s(self) -> float: ...  # noqa: D102

    @property
    def inter_bytes_per_s(self) -> float: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Terms:
    """Work per token of a GPU's share, and the shape of the schedule around it."""

    flops: TokenFlops
    elementwise_bytes: float
    optimizer_bytes: float
    dequant_bytes: float
    offload_seconds: float
    tensor_seconds: float  # tensor-parallel all-reduces, never hidden by default
    shard_seconds: float  # data-parallel gathers and reductions, mostly hidden
    expert_seconds: float  # expert all-to-all
    bubble: float  # idle over busy time of a plain 1F1B pipeline: (stages - 1) / micro-batches
    nodes: float


def work(job: Job, gpu: Gpu, fabric: FabricLike | None = None) -> Terms:
    """What one token of a GPU's share costs in FLOPs, bytes and link seconds at nominal link rates."""
    flops = token_flops(job)
    arch, shards = job.arch, job.tp * job.pp * job.cp
    share = max(1.0, job.tokens_per_micro_batch / shards)  # tokens a GPU, a micro-batch
    share_step = share * job.grad_accum
    trained = job.task == "train"
    recompute = 1.0 if job.checkpointing == "full" and trained else 0.0
    passes = 1.0 + (BACKWARD_TRAFFIC if trained else 0.0) + recompute

    hidden, layers = arch.hidden_size or 1, arch.n_layers or 1
    ffn = _active_ffn(job)
    elementwise = 2.0 * layers * (HIDDEN_TENSORS * hidden + FFN_TENSORS * ffn) * passes
    elementwise += arch.vocab_size * (FUSED_HEAD_BYTES_PER_LOGIT if job.fused_loss else HEAD_BYTES_PER_LOGIT)
    if job.attention == "eager":  # the score matrix goes through memory: about 5 passes forward, twice that backward
        elementwise += layers * arch.n_heads * job.seq_len * 2.0 * 5.0 * passes
    total = float(arch.total_params)
    trainable = _adapter_params(job) if job.is_adapter else total
    optimizer = 0.0
    if trained:
        held = trainable / (job.tp * job.pp) / (job.dp if job.sharding in _SHARDED else 1)
        optimizer = OPTIMIZER_BYTES_PER_PARAM * held / share_step
    dequant = 0.0
    if job.precision in ("nf4", "int4", "fp4", "int8", "mxfp4") and job.method in ("qlora", "lora", "dora"):
        dequant = DEQUANT_BYTES_PER_WEIGHT * total / (job.tp * job.pp) * (1.0 + trained + recompute) / share
    links = _Links.of(job, gpu, fabric)
    return Terms(
        flops=flops,
        elementwise_bytes=elementwise,
        optimizer_bytes=optimizer,
        dequant_bytes=dequant,
        offload_seconds=_offload_seconds(job, gpu, trainable, share, share_step),
        tensor_seconds=_tensor_bytes(job, trained, recompute) / links.intra,
        shard_seconds=_shard_bytes(job, trainable, share, share_step) / links.data,
        expert_seconds=_expert_bytes(job, trained) / links.expert,
        bubble=(job.pp - 1) / max(1, job.grad_accum),
        nodes=links.nodes,
    )


_SHARDED = ("zero1", "zero2", "zero3", "fsdp", "hsdp")
_GATHERED = ("zero3", "fsdp", "hsdp")


@dataclass(frozen=True, slots=True)
class _Links:
    intra: float
    data: float
    expert: float
    nodes: float

    @staticmethod
    def of(job: Job, gpu: Gpu, fabric: FabricLike | None) -> _Links:
        domain = NVLINK_DOMAIN_GPUS.get(gpu.id, 8)
        per_node = fabric.gpus_per_node if fabric else min(job.n_gpus, domain)
        intra = (fabric.intra_bytes_per_s if fabric else None) or gpu.nvlink_bytes_per_s or _pcie(gpu)
        inter = (fabric.inter_bytes_per_s if fabric else None) or 50e9
        nodes = max(1.0, job.n_gpus / max(1, per_node))
        if nodes <= 1.0:
            return _Links(intra, intra, intra, 1.0)
        # Every GPU of a node that works for the same data-parallel ring brings its own network card.
        rails = max(1, per_node // max(1, job.tp * job.cp))
        data = min(intra, inter * rails)
        expert = intra if job.ep <= per_node else inter
        tensor = intra if job.tp <= per_node else inter
        return _Links(tensor, data, expert, nodes)


def _pcie(gpu: Gpu) -> float:
    return (gpu.pcie_bytes_per_s or PCIE_FALLBACK) * 0.8


def _active_ffn(job: Job) -> float:
    arch = job.arch
    if arch.moe is None:
        return float(arch.ffn_size)
    return arch.moe.expert_ffn * arch.moe.experts_per_token + arch.moe.shared_ffn


def _adapter_params(job: Job) -> float:
    """Adapter weights on every linear layer: rank x (in + out), summed (Hu et al. 2021, arXiv:2106.09685)."""
    arch = job.arch
    per_layer = 2.0 * (2 * arch.hidden_size) + 3.0 * (arch.hidden_size + arch.ffn_size)
    return job.lora_rank * (arch.n_layers or 1) * per_layer


def _tensor_bytes(job: Job, trained: float, recompute: float) -> float:
    """Two all-reduces a layer and pass of the hidden state, ring (Shoeybi et al. 2019, arXiv:1909.08053)."""
    if job.tp == 1:
        return 0.0
    reduces = 2.0 * (1.0 + trained + recompute) * (job.arch.n_layers or 1)
    return reduces * 2.0 * 2.0 * (job.arch.hidden_size or 1) * (job.tp - 1)


def _shard_bytes(job: Job, trainable: float, share: float, share_step: float) -> float:
    """Ring volumes: gradients reduced once a step; under ZeRO-3 weights gathered twice and reduced each pass."""
    ranks = job.dp * job.cp
    if ranks <= 1:
        return 0.0
    part = (ranks - 1) / ranks / (job.tp * job.pp)
    stored = 0.55 if job.method == "qlora" else 2.0
    if job.sharding in _GATHERED:
        if job.pp > 1:  # pipelined FSDP keeps gathered weights through the step (torchtitan's default)
            share = share_step
        gathers = 2.0 * stored * job.arch.total_params * part / share
        return gathers + 2.0 * trainable * part / share
    return 2.0 * 2.0 * trainable * part / share_step


def _expert_bytes(job: Job, trained: float) -> float:
    """Dispatch and combine each way of the hidden state of every routed copy that leaves the GPU."""
    moe = job.arch.moe
    if moe is None or job.ep == 1:
        return 0.0
    layers = max(0, job.arch.n_layers - moe.first_dense_layers) / max(1, moe.every)
    copies = min(moe.experts_per_token, job.ep) * (job.ep - 1) / job.ep
    return 2.0 * (1.0 + trained) * layers * copies * 2.0 * job.arch.hidden_size


def _offload_seconds(job: Job, gpu: Gpu, trainable: float, share: float, share_step: float) -> float:
    """Bytes over the host link: gradients down and weights up a step; with "all", weights every pass as well."""
    if job.offload == "none":
        return 0.0
    host = _pcie(gpu)
    split = job.tp * job.pp * (job.dp if job.sharding in _SHARDED else 1)
    seconds = 4.0 * trainable / split / host / share_step
    if job.offload in ("all", "nvme"):
        stored = 0.55 if job.method == "qlora" else 2.0
        seconds += 2.0 * stored * job.arch.total_params / split / host / share
    return seconds
