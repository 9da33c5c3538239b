"""The typed facts: model architectures, GPUs, instances, links, prices, sources.

Units are in the names: bytes, bytes per second (one direction), FLOP per second (dense), watts, USD per hour.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

T = TypeVar("T")

AttentionKind = Literal["mha", "gqa", "mqa", "mla", "ssm"]
NormKind = Literal["rmsnorm", "layernorm", "layernorm-no-bias", "nonparametric-layernorm"]
Modality = Literal["text", "vision-language", "encoder", "asr", "diffusion"]
ProviderClass = Literal["hyperscaler", "specialist", "marketplace"]
Billing = Literal["on_demand", "spot", "community", "secure", "reserved_1y", "reserved_3y"]


@dataclass(frozen=True, slots=True)
class Moe:
    """Mixture-of-experts shape; widths are intermediate sizes, ``shared_ffn`` the total of the always-on experts."""

    n_experts: int
    experts_per_token: int
    expert_ffn: int
    shared_ffn: int
    first_dense_layers: int
    every: int
    dense_ffn: int


@dataclass(frozen=True, slots=True)
class Mla:
    """Multi-head latent attention shape (DeepSeek-V2 paper, section 2.1)."""

    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int


@dataclass(frozen=True, slots=True)
class Architecture:
    """What a model is made of, as its published configuration says.

    ``total_params`` are the trainable weights; ``active_params`` those that one token passes through, with embeddings
    and output head. ``shape_known`` is false where only totals are published (hybrid or undisclosed layer shapes):
    then no activation can be derived from the fields.
    """

    id: str
    family: str
    modality: Modality
    total_params: int
    active_params: int
    n_layers: int
    hidden_size: int
    ffn_size: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    vocab_size: int
    tied_embeddings: bool
    gated_mlp: bool
    norm: NormKind
    norms_per_layer: int
    attention: AttentionKind
    max_seq_len: int | None
    qkv_bias: bool = False
    o_bias: bool = False
    mlp_bias: bool = False
    qk_norm: Literal["head", "full"] | None = None
    learned_positions: int = 0
    sliding_window: int | None = None
    full_attention_every: int | None = None  # linear-attention hybrids: one full-attention layer in this many
    mla: Mla | None = None
    moe: Moe | None = None
    vision_params: int = 0
    mtp_params: int = 0
    shape_known: bool = True
    licence: str | None = None
    gated: bool | None = None
    release_year: int | None = None
    basis: str = "read"
    source: str = ""
    as_of: str = ""
    notes: str | None = None
    source_ids: tuple[str, ...] = ()

    @property
    def is_moe(self) -> bool:
        """Whether some layers route tokens to experts."""
        return self.moe is not None

    @property
    def embedding_params(self) -> int:
        """Entries of the token embedding table (the output head is a second one unless tied)."""
        return self.vocab_size * self.hidden_size

    @property
    def head_params(self) -> int:
        """Entries of the output projection that are weights of their own (0 when tied)."""
        return 0 if self.tied_embeddings else self.vocab_size * self.hidden_size


@dataclass(frozen=True, slots=True)
class Gpu:
    """An accelerator; rates are dense, with fp32 accumulation (the rate that training sees), never sparse.

    ``memory_bytes`` is what the device holds (an "80 GB" card: 80 GiB), ``usable_bytes`` what is left for a process
    after the driver's reserve. ``dense_flops`` maps fp32, tf32, bf16, fp16, fp8, fp4 and int8 to FLOP/s or None.
    """

    id: str
    vendor: str
    architecture: str
    marketed_memory_gb: float
    memory_bytes: int
    usable_bytes: int
    memory_type: str
    bandwidth_bytes_per_s: float
    dense_flops: dict[str, float | None]
    nvlink_generation: int | None
    nvlink_bytes_per_s: float | None  # per GPU, one direction
    nvlink_note: str | None
    pcie_generation: float | None
    pcie_bytes_per_s: float | None  # one direction
    tdp_watts: float | None
    form: str
    tier: str
    compute_capability: str | None
    min_toolkit: str | None
    release_year: int | None
    source: str
    as_of: str
    notes: str | None = None
    aliases: tuple[str, ...] = ()
    scale_up_kind: str | None = None  # what joins accelerators without NVLink: Infinity Fabric, RoCE, ICI, NeuronLink
    scale_up_bytes_per_s: float | None = None  # per accelerator, one direction, to all its peers together
    source_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """An interconnect; both directions are kept apart so that nobody has to guess which one a figure means."""

    id: str
    kind: str
    bytes_per_s: float | None  # one direction, per GPU or per port as notes say
    bytes_per_s_bidirectional: float | None
    source: str
    as_of: str
    notes: str | None = None
    aliases: tuple[str, ...] = ()
    source_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Instance:
    """A cloud machine type with its GPUs and links."""

    provider: str
    instance_type: str
    gpu_id: str
    n_gpus: int
    intra_kind: str | None
    intra_bytes_per_s: float | None  # per GPU, one direction
    inter_kind: str | None
    inter_bytes_per_s_per_gpu: float | None  # GPU fabric only, one direction
    vcpus: int | None
    ram_bytes: float | None
    local_nvme_bytes: float | None
    source: str
    as_of: str
    notes: str | None = None
    aliases: tuple[str, ...] = ()
    source_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Offer:
    """One dated price observation of one machine with ``n_gpus`` GPUs."""

    id: int
    provider: str
    instance_type: str
    gpu_id: str
    n_gpus: int
    region: str
    billing: Billing
    usd_per_hour: float  # the whole machine
    usd_per_gpu_hour: float
    observed: str  # ISO date
    source: str
    locator: str
    vcpus: float | None = None
    ram_gb: float | None = None
    warnings: tuple[str, ...] = ()
    provider_class: ProviderClass = "specialist"
    live: bool = False  # fetched from a live source, not part of the snapshot


@dataclass(frozen=True, slots=True)
class Source:
    """Where a fact comes from."""

    id: str
    title: str
    locator: str
    licence: str | None
    as_of: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A found piece of an article or a checked claim."""

    id: str
    title: str
    text: str
    kind: Literal["article", "claim"]
    sources: tuple[str, ...]
    as_of: str
    score: float
    verdict: str | None = None


@dataclass(frozen=True, slots=True)
class Match(Generic[T]):
    """A name resolved: the thing, how it was read, and what else it could have meant.

    ``note`` is None for an exact or usual name, else the sentence to show ("A100 read as A100 80 GB SXM; ...").
    """

    value: T
    asked: str
    note: str | None = None
    alternatives: tuple[str, ...] = field(default=())
