"""The workload: what is trained and how. One input model shared by the tools, resolved once into a ``Job``.

Every default is written as an assumption of the result, so that nothing is silently chosen.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import ConfigDict, Field, field_validator

from knowledge.types import Architecture
from tools.architectures import resolve_architecture
from tools.errors import BadValue
from tools.frameworks import Framework, NamesFramework, usual_framework, usual_framework_why
from tools.result import Assumption
from tools.units import Unit, parse_count

Task = Literal["train", "inference"]
Method = Literal[
    "full", "pretrain", "continued_pretrain", "lora", "qlora", "dora", "dpo", "orpo", "kto", "grpo", "ppo", "reward"
]
Precision = Literal["bf16", "fp16", "fp32", "bf16_mixed", "fp16_mixed", "fp8", "int8", "int4", "nf4", "fp4", "mxfp4"]
Optimizer = Literal[
    "adamw",
    "adamw_8bit",
    "paged_adamw",
    "paged_adamw_8bit",
    "adafactor",
    "lion",
    "sgd",
    "sgd_momentum",
    "muon",
    "galore",
]
Checkpointing = Literal["none", "selective", "full"]
Attention = Literal["flash", "sdpa", "eager"]
Sharding = Literal["none", "ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp"]
Offload = Literal["none", "optimizer", "all", "nvme"]

_METHOD_ALIASES = {"sft": "full", "finetune": "full", "full_ft": "full", "pre-train": "pretrain", "rlhf": "ppo"}


class WorkloadInput(NamesFramework):
    """What is trained and how; every field but the model has a stated default."""

    model_config = ConfigDict(extra="forbid")

    model: str | dict[str, Any] = Field(
        description='Known name or hub id (llama-3.1-8b), a bare size (70B), or parameters: {"params_b": 7, ...}.'
    )
    task: Task = Field(default="train")
    method: Method | None = Field(
        default=None, description="full, pretrain, lora, qlora, dora, dpo, grpo, ...; default full (train)."
    )
    precision: Precision | None = Field(default=None, description="Compute and weight precision; default bf16.")
    optimizer: Optimizer | None = Field(default=None, description="Default adamw.")
    lora_rank: int | None = Field(default=None, ge=1, le=65536, description="Default 16.")
    lora_targets: str | list[str] | None = Field(
        default=None, description="'all-linear' (default), 'attention', 'qv', or module names such as q_proj."
    )
    seq_len: int | None = Field(default=None, ge=1, le=100_000_000, description="Tokens a sample; default 2048.")
    micro_batch: int | None = Field(default=None, ge=1, le=1_000_000, description="Samples a GPU a pass; default 1.")
    grad_accum: int | None = Field(default=None, ge=1, le=1_000_000, description="Passes a step; default 1.")
    activation_checkpointing: Checkpointing | bool | None = Field(
        default=None, description="none, selective or full; default full above 1B parameters, else none."
    )
    attention: Attention | None = Field(default=None, description="Attention kernel; default flash (or SDPA).")
    sharding: Sharding | None = Field(
        default=None, description="Default none on one GPU, fsdp on several, zero1 under pipeline parallelism."
    )
    n_gpus: int | None = Field(default=None, ge=1, le=1_000_000, description="Default 1.")
    tp: int = Field(default=1, ge=1, le=1024, description="Tensor parallel degree.")
    pp: int = Field(default=1, ge=1, le=1024, description="Pipeline parallel degree.")
    cp: int = Field(default=1, ge=1, le=1024, description="Context parallel degree.")
    ep: int = Field(default=1, ge=1, le=1024, description="Expert parallel degree.")
    cpu_offload: Offload | bool | None = Field(default=None, description="none, optimizer or all; default none.")
    framework: Framework | None = Field(
        default=None, description="Whose memory and precision conventions; default hf, megatron under tp, pp, cp or ep."
    )
    group_size: int | None = Field(default=None, ge=1, le=4096, description="GRPO: completions a prompt; default 8.")
    response_tokens: int | None = Field(
        default=None, ge=1, description="PPO, GRPO: mean tokens written a completion; default 3/4 of seq_len."
    )
    compile: bool | None = Field(default=None, description="torch.compile; default false.")
    fused_loss: bool | None = Field(default=None, description="Chunked or fused cross-entropy (Liger, Unsloth).")

    @field_validator("method", mode="before")
    @classmethod
    def _method_alias(cls, value: object) -> object:
        return _METHOD_ALIASES.get(value.lower(), value.lower()) if isinstance(value, str) else value

    @field_validator("seq_len", "micro_batch", "n_gpus", mode="before")
    @classmethod
    def _counts(cls, value: object, info: Any) -> object:
        return int(parse_count(value, info.field_name)) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Job:
    """A workload with every choice made; what the formulas take."""

    arch: Architecture
    task: Task
    method: Method
    precision: Precision
    optimizer: Optimizer
    lora_rank: int
    lora_targets: tuple[str, ...]
    seq_len: int
    micro_batch: int
    grad_accum: int
    checkpointing: Checkpointing
    attention: Attention
    sharding: Sharding
    n_gpus: int
    tp: int
    pp: int
    cp: int
    ep: int
    offload: Offload
    framework: Framework
    compile: bool
    fused_loss: bool
    adapter: bool = False  # adapters under a preference or reinforcement method
    group_size: int = 1  # completions written for a prompt
    response_tokens: int = 0  # mean tokens of one, part of seq_len
    framework_open: bool = False  # none was named, so each layout counts as the stack that can run it
    assumptions: tuple[Assumption, ...] = field(default=(), compare=False)

    @property
    def dp(self) -> int:
        """Data-parallel replicas, a count (ZeRO and FSDP shard over these times the context-parallel ranks)."""
        return self.n_gpus // (self.tp * self.pp * self.cp)

    @property
    def tokens_per_micro_batch(self) -> int:
        """Tokens one replica passes through at a time: samples of a micro-batch x tokens of a sample."""
        return self.micro_batch * self.seq_len

    @property
    def tokens_per_step(self) -> int:
        """Global batch in tokens: one optimizer step over all replicas and accumulated passes."""
        return self.tokens_per_micro_batch * self.grad_accum * self.dp

    @property
    def is_adapter(self) -> bool:
        """Whether only adapters are trained: LoRA, QLoRA, DoRA, or adapters under a preference or
        reinforcement method.
        """
        return self.adapter or self.method in ("lora", "qlora", "dora")


def laid_out(job: Job, **changes: Any) -> Job:
    """The job with another layout; where no framework was named, that of the stack which can lay it out so."""
    if job.framework_open:
        degrees = (changes.get(name, getattr(job, name)) for name in ("tp", "pp", "cp", "ep"))
        changes["framework"] = usual_framework(*degrees)
    return replace(job, **changes)


def resolve(given: WorkloadInput) -> Job:
    """Choose every default, checking what cannot be. Raises InputProblem."""
    arch, assumed = resolve_architecture(given.model)
    note = _Noter(assumed)
    method: Method = note("method", given.method, "full", "every weight is trained unless LoRA or QLoRA is named")
    adapter = _trains_adapters(given, method)
    if given.stack:
        why = f"the conventions nearest to those of {given.stack}"
        note.assumed.append(Assumption(name="framework", value=given.framework, why=why, argument="framework"))
    n_gpus: int = note(
        "n_gpus", given.n_gpus, max(1, given.tp * given.pp * given.cp), "no count was given",
        quiet=given.sharding in (None, "none"),
    )  # fmt: skip
    precision: Precision = note("precision", given.precision, *_precision(given, method, adapter))
    checkpointing = _checkpointing(given, arch, note)
    seq_len: int = note("seq_len", given.seq_len, *_usual_length(arch))
    job = Job(
        arch=arch,
        task=given.task,
        method=method,
        precision=precision,
        optimizer=note("optimizer", given.optimizer, "adamw", "what nearly everyone trains with"),
        lora_rank=note("lora_rank", given.lora_rank, 16, "PEFT recipes' usual rank", quiet=not adapter),
        lora_targets=_targets(given, adapter, note),
        seq_len=seq_len,
        micro_batch=note("micro_batch", given.micro_batch, 1, "the smallest: gradient accumulation does the rest"),
        grad_accum=note("grad_accum", given.grad_accum, 1, "", quiet=True),
        checkpointing=checkpointing,
        attention=note("attention", given.attention, "flash", "default kernel of current stacks"),
        sharding=note(
            "sharding", given.sharding, *_sharding_default(given, n_gpus), quiet=n_gpus == 1,
        ),
        n_gpus=n_gpus,
        tp=given.tp,
        pp=given.pp,
        cp=given.cp,
        ep=given.ep,
        offload=_offload(given.cpu_offload),
        framework=note("framework", given.framework, *usual_framework_why(given.tp, given.pp, given.cp, given.ep)),
        compile=bool(given.compile),
        fused_loss=note("fused_loss", given.fused_loss, False, "", quiet=True),
        adapter=adapter,
        group_size=_group_size(given, method, note),
        response_tokens=_response_tokens(given, method, seq_len, note),
        framework_open=given.framework is None,
        assumptions=tuple(note.assumed),
    )  # fmt: skip
    _check(job)
    return job


_UNITS: dict[str, Unit] = {"seq_len": "tokens", "n_gpus": "GPUs", "response_tokens": "tokens"}


class _Noter:
    """Takes a given value or its default, and writes the default down."""

    def __init__(self, assumed: list[Assumption]) -> None:
        self.assumed = list(assumed)

    def __call__(self, name: str, given: Any, default: Any, why: str, quiet: bool = False) -> Any:
        if given is not None:
            return given
        if not quiet:
            unit = _UNITS.get(name, "")
            self.assumed.append(Assumption(name=name, value=default, unit=unit, why=why, argument=name))
        return default


def _sharding_default(given: WorkloadInput, n_gpus: int) -> tuple[Sharding, str]:
    if n_gpus == 1:
        return "none", ""
    if given.pp > 1:
        return "zero1", "shards optimizer states; pipelines keep their weights whole"
    return "fsdp", "shards states over the GPUs"


def _usual_length(arch: Architecture) -> tuple[int, str]:
    """Tokens of a sample where none are given: the images or audio a model is made for, or a usual text length."""
    if arch.family in _IMAGE_TOKENS:
        return _IMAGE_TOKENS[arch.family], "patches of one 224 x 224 image and the class token"
    if arch.modality == "diffusion":
        return 4608, "4,096 latent tokens of 1024 x 1024 pixels and 512 of text"
    return min(2048, arch.max_seq_len or 2048), "common fine-tuning length"


_IMAGE_TOKENS = {"vit": 197, "clip": 257}


def _precision(given: WorkloadInput, method: str, adapter: bool) -> tuple[Precision, str]:
    if given.task == "inference":
        return "bf16", "the precision most models are published in"
    if method == "qlora":
        return "nf4", "QLoRA keeps the base in 4 bits"
    if adapter:
        return "bf16", "frozen weights in bf16"
    return "bf16_mixed", "bf16 compute with fp32 weights and AdamW states; pure bf16 ('bf16') takes half"


def _trains_adapters(given: WorkloadInput, method: str) -> bool:
    """LoRA by name, or a preference or reinforcement method with a rank, targets or a 4-bit base."""
    if method in ("lora", "qlora", "dora"):
        return True
    asked = given.lora_rank is not None or given.lora_targets is not None
    return method in _ON_ADAPTERS and (asked or given.precision in ("nf4", "int4", "fp4", "mxfp4", "int8"))


_ON_ADAPTERS = ("dpo", "orpo", "kto", "grpo", "ppo", "reward")


def _checkpointing(given: WorkloadInput, arch: Architecture, note: _Noter) -> Checkpointing:
    asked = given.activation_checkpointing
    if isinstance(asked, bool):
        return "full" if asked else "none"
    if asked is None and given.task == "inference":
        return "none"
    default = "full" if arch.total_params > 1e9 else "none"
    chosen: Checkpointing = note(
        "activation_checkpointing", asked, default, "usual above 1B parameters; recomputes the forward pass"
    )
    return chosen


def _targets(given: WorkloadInput, adapter: bool, note: _Noter) -> tuple[str, ...]:
    asked = given.lora_targets
    if asked is None:
        note(
            "lora_targets",
            None,
            "all-linear",
            "QLoRA paper: adapters on every linear layer",
            quiet=not adapter,
        )
        return ("all-linear",)
    if isinstance(asked, str):
        asked = [part for part in asked.replace(",", " ").split() if part]
    return tuple(asked)


def _group_size(given: WorkloadInput, method: Method, note: _Noter) -> int:
    if method != "grpo":
        return 1
    chosen: int = note("group_size", given.group_size, 8, "completions a prompt, TRL's default")
    return chosen


def _response_tokens(given: WorkloadInput, method: Method, seq_len: int, note: _Noter) -> int:
    if method not in ("grpo", "ppo") or given.task != "train":
        return 0
    if given.response_tokens is not None and given.response_tokens >= seq_len:
        raise BadValue(
            "no_room_for_the_prompt",
            f"A completion of {given.response_tokens} tokens leaves no prompt in sequences of {seq_len}.",
            field="response_tokens",
            hint="seq_len holds prompt and completion.",
            candidates=[str(max(1, seq_len * 3 // 4))],
        )
    chosen: int = note(
        "response_tokens", given.response_tokens, max(1, seq_len * 3 // 4),
        "mean completion, the rest of seq_len is prompt; the longest is taken to be twice that",
    )  # fmt: skip
    return chosen


def _offload(asked: Offload | bool | None) -> Offload:
    if asked is None or asked is False:
        return "none"
    return "all" if asked is True else asked


def _degrees(job: Job) -> str:
    """The tensor-parallel degrees that divide both the GPUs and the attention heads, in words."""
    heads = job.arch.n_heads or 0
    fit = [str(n) for n in range(1, min(job.n_gpus, _MOST_TENSOR) + 1) if job.n_gpus % n == 0 and heads % n == 0]
    return " or ".join((", ".join(fit[:-1]), fit[-1])) if len(fit) > 1 else fit[0]


_MOST_TENSOR = 64  # GPUs of the largest NVLink domain that a power of two fills; beyond a node it rarely pays


def _check(job: Job) -> None:
    shards = job.tp * job.pp * job.cp
    if job.n_gpus % shards:
        raise BadValue(
            "layout_does_not_divide",
            f"{job.n_gpus} GPUs cannot be split into tensor {job.tp} x pipeline {job.pp} x context {job.cp}.",
            field="n_gpus",
            hint=f"n_gpus must be a multiple of tp x pp x cp. On {job.n_gpus} GPUs tp can be {_degrees(job)}.",
            candidates=[str(max(1, job.n_gpus // shards) * shards)],
        )
    arch = job.arch
    if arch.n_heads and arch.n_heads % job.tp:
        degrees = [n for n in (1, 2, 4, 8, 16, 32, 64) if arch.n_heads % n == 0 and n <= job.tp]
        raise BadValue(
            "tp_does_not_divide_heads",
            f"Tensor parallel {job.tp} does not divide {arch.n_heads} attention heads of {arch.id}.",
            field="tp",
            hint=f"It must divide the heads and the GPUs: on {job.n_gpus} GPUs tp can be {_degrees(job)}.",
            candidates=[str(degrees[-1])],
        )
    if arch.n_layers and job.pp > arch.n_layers:
        raise BadValue(
            "more_stages_than_layers",
            f"{job.pp} pipeline stages for {arch.n_layers} layers.",
            field="pp",
            candidates=[str(arch.n_layers)],
        )
    if job.is_adapter and arch.hidden_size and job.lora_rank > arch.hidden_size:
        raise BadValue(
            "rank_above_hidden",
            f"LoRA rank {job.lora_rank} is above the hidden size of {arch.hidden_size}.",
            field="lora_rank",
            hint="Above the hidden size an adapter is larger than the layer it adapts.",
            candidates=["16", "64", str(arch.hidden_size)],
        )
    if job.ep > 1 and (arch.moe is None or arch.moe.n_experts % job.ep):
        experts = arch.moe.n_experts if arch.moe else 0
        fits = [str(n) for n in range(job.ep, 0, -1) if experts and experts % n == 0][:1] or ["1"]
        raise BadValue(
            "ep_does_not_divide_experts",
            f"Expert parallel {job.ep} does not divide {experts} experts of {arch.id}.",
            field="ep",
            candidates=fits,
        )
