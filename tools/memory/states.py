"""Weights, gradients and optimizer states of one GPU, by how they are cut.

ZeRO (Rajbhandari et al. 2020, section 3): stage 1 cuts optimizer states, 2 also gradients, 3 (and FSDP) also weights,
each over the data-parallel group; tensor and pipeline parallelism cut the model itself; experts are cut over the
expert-parallel group, and their states over what is left of the data-parallel one.
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.memory.recipe import QUANT_BYTES, Recipe
from tools.memory.shapes import Shape, adapter_linears
from tools.workload import Job, Optimizer

HSDP_NODE = 8  # hybrid sharding shards inside a node


@dataclass(frozen=True, slots=True)
class Cut:
    """Over how many GPUs each kind of state is cut."""

    weights: int
    grads: int
    optimizer: int
    expert_extra: float  # how much further experts' weights are cut by expert parallelism
    expert_optimizer: int


@dataclass(frozen=True, slots=True)
class States:
    """Bytes on one GPU; ``trained`` is the count of trained parameters held there before data-parallel cutting."""

    weights: float
    adapters: float
    grads: float
    optimizer: float
    step_temp: float
    trained: float
    local_params: float
    adapter_params: float


def cut_of(job: Job) -> Cut:
    """Over how many GPUs each kind of state of the job is cut (ZeRO, Rajbhandari et al. 2020, section 3).
    Context-parallel ranks count into the group, since they hold the same weights; HSDP shards over at most one node of
    8.
    """
    group = max(1, job.n_gpus // (job.tp * job.pp))
    if job.sharding == "hsdp":
        group = min(group, HSDP_NODE)
    expert_group = max(1, group // job.ep)
    weights = group if job.sharding in ("zero3", "fsdp", "hsdp") else 1
    grads = group if job.sharding in ("zero2", "zero3", "fsdp", "hsdp") else 1
    optimizer = group if job.sharding in ("zero1", "zero2", "zero3", "fsdp", "hsdp") else 1
    return Cut(weights, grads, optimizer, float(job.ep), min(optimizer, expert_group))


# Bytes a trained parameter of the moments, as a function of one fp32/bf16 moment's bytes. 8-bit states carry an fp32
# constant per 256 values (Dettmers et al. 2021); Adafactor keeps row and column sums (Shazeer and Stern 2018), which
# are below 1 % of a matrix; Muon one momentum (Jordan 2024) for matrices, AdamW elsewhere; Lion one (Chen 2023).
_MOMENTS: dict[Optimizer, float] = {
    "adamw": 2, "paged_adamw": 2, "lion": 1, "sgd": 0, "sgd_momentum": 1, "adafactor": 0.01, "muon": 1, "galore": 2,
}  # fmt: skip
EIGHT_BIT = 1 + 4 / 256
GALORE_RANK = 128
GPUS_PER_NODE = 8


def host_bytes(job: Job, shape: Shape) -> float:
    """Host memory of one node for offloaded states: fp32 master, two moments and gradients (ZeRO-Offload, Ren et al.
    2021, section 4: 16 bytes a parameter), and bf16 weights too when parameters are offloaded; each node holds its
    GPUs' share. NVMe offload leaves only pinned buffers, about one gathered block a GPU.
    """
    if job.offload == "none":
        return 0.0
    nodes = max(1, -(-job.n_gpus // GPUS_PER_NODE))
    if job.offload == "nvme":
        return 4.0 * shape.block * min(job.n_gpus, GPUS_PER_NODE)
    if job.is_adapter:
        return 2.0 * shape.total / nodes if job.offload == "all" else 0.0
    return (18.0 if job.offload == "all" else 16.0) * shape.total / nodes


def moment_bytes(optimizer: Optimizer, state: float, shape: Shape) -> float:
    """Optimizer bytes a trained parameter, without a master copy; ``state`` is the bytes of one moment. A mean over the
    shape's parameters where block matrices are treated otherwise (Muon, GaLore). Sources beside ``_MOMENTS``.
    """
    if optimizer in ("adamw_8bit", "paged_adamw_8bit"):
        return 2 * EIGHT_BIT
    if optimizer == "galore" and shape.hidden:
        # GaLore (Zhao et al. 2024): moments of the rank-r projection and the projector, for block matrices.
        share = min(1.0, GALORE_RANK / shape.hidden)
        blocks = shape.linear_weights / max(1, shape.total)
        return state * (blocks * 3 * share + (1 - blocks) * 2)
    if optimizer == "muon":
        blocks = shape.linear_weights / max(1, shape.total)
        return state * (blocks * 1 + (1 - blocks) * 2)
    return _MOMENTS[optimizer] * state


def stage_layers(shape: Shape, job: Job, first: bool) -> tuple[int, int]:
    """Dense and expert blocks of the first or of a later pipeline stage; a model's dense blocks come first."""
    layers = -(-shape.layers // job.pp)
    if job.pp == 1:
        return shape.dense_layers, shape.moe_layers
    dense = min(layers, shape.dense_layers) if first or not shape.moe_layers else 0
    return dense, layers - dense


def stage_params(shape: Shape, job: Job, first: bool, last: bool, untied: bool) -> tuple[float, float, float]:
    """Parameters on one GPU of a pipeline stage, after tensor and expert parallelism: in blocks without routed experts,
    routed experts, and outside blocks.
    """
    tp = job.tp
    dense, moe = stage_layers(shape, job, first)
    if shape.linears:
        blocks = (
            dense * shape.dense_block + moe * shape.attention_block + min(0, shape.other) * (dense + moe) / shape.layers
        )
    else:
        blocks = float(shape.block * (dense + moe))
    experts = moe * shape.experts_block / job.ep
    outside = (shape.embed + max(0, shape.other)) * first + (shape.head or shape.embed * (job.pp > 1)) * last
    if first and last and shape.tied:
        outside = shape.embed * (2 if untied else 1) + max(0, shape.other)
    return blocks / tp, experts / tp, outside / tp


def states_of(job: Job, shape: Shape, recipe: Recipe, cut: Cut, first: bool, last: bool) -> States:
    """Bytes of weights, gradients and optimizer on one GPU of a pipeline stage, which may be ``first``, ``last`` or
    both. Offloaded states count as 0 here; what the host holds of them is ``host_bytes``.
    """
    blocks, experts, outside = stage_params(shape, job, first, last, recipe.untied)
    local = blocks + experts + outside
    if job.is_adapter:
        return _adapter_states(job, shape, recipe, cut, blocks + experts, outside)
    dense = blocks + outside
    per_param = recipe.master + moment_bytes(job.optimizer, recipe.state, shape)
    optimizer = dense * per_param / cut.optimizer + experts * per_param / cut.expert_optimizer
    expert_weights = cut.expert_optimizer if cut.weights > 1 else 1
    expert_grads = cut.expert_optimizer if cut.grads > 1 else 1
    weights = recipe.weight * (dense / cut.weights + experts / expert_weights)
    grads = recipe.grad * (dense / cut.grads + experts / expert_grads)
    temp = recipe.step_temp * (dense / cut.optimizer + experts / cut.expert_optimizer)
    if job.offload != "none":
        optimizer, temp = 0.0, 0.0
        if job.offload in ("all", "nvme"):
            weights = 0.0 if job.sharding in ("none", "zero3", "fsdp", "hsdp") else weights
            grads = 0.0
    return States(weights, 0.0, grads, optimizer, temp, local, local, 0.0)


def adapter_params(job: Job, recipe: Recipe) -> int:
    """LoRA entries: r * (in + out) for each adapted matrix (Hu et al. 2021); DoRA adds a magnitude an output row."""
    total = 0
    for linear in adapter_linears(job.arch, job.lora_targets, recipe.fused_qkv, recipe.fused_gate):
        extra = linear.outputs if job.method == "dora" else 0
        total += (job.lora_rank * (linear.inputs + linear.outputs) + extra) * linear.blocks * linear.copies
    return total


def _adapter_states(job: Job, shape: Shape, recipe: Recipe, cut: Cut, blocks: float, outside: float) -> States:
    quantised = min(blocks, blocks * shape.linear_weights / max(1, shape.linear_weights + shape.norm_weights))
    if recipe.quant:
        weights = quantised * QUANT_BYTES[recipe.quant] + (blocks - quantised + outside) * recipe.frozen
    else:
        weights = (blocks + outside) * recipe.frozen
    count = adapter_params(job, recipe) / (job.tp * job.pp)
    weights /= cut.weights
    adapters = count * recipe.adapter / cut.weights
    grads = count * recipe.adapter / cut.grads
    moments = moment_bytes(job.optimizer, recipe.adapter, shape) * count / cut.optimizer
    temp = (recipe.adapter if recipe.step_temp else 0.0) * count / cut.optimizer
    if job.offload != "none":
        moments, temp = 0.0, 0.0
        if job.offload in ("all", "nvme"):
            weights = 0.0 if cut.weights > 1 else weights
    return States(weights, adapters, grads, moments, temp, count, blocks + outside, count)
