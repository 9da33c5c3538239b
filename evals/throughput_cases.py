"""From a row of published measurements to what the model estimates: configuration columns only, free text and all.

No measured column is read here (``value``, ``notes`` and the source's own words stay shut), and no row is known by
its id. What a row leaves out gets the default that its class of software would use, each a function of the
configuration.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from knowledge.gpus import find_gpu
from knowledge.types import Architecture, Gpu
from tools.architectures import from_parameters, resolve_architecture
from tools.errors import InputProblem
from tools.frameworks import Framework
from tools.memory import estimate
from tools.network.fabric import Fabric, fabric_for
from tools.throughput import SoftwareClass
from tools.throughput.efficiency import Kernels, chip
from tools.workload import Attention, Checkpointing, Job, Method, Offload, Precision, Sharding

_TUNED = re.compile(
    r"megatron-bridge|megatron-core|megatron-lm\b|nemo|nvidia|ngc|maxtext|llmboost|transformerengine|vendor|rocm|mlperf",
    re.IGNORECASE,
)
_BENCHMARK = re.compile(
    r"llm-foundry|composer|torchtitan|fms|megatron|internevo|levanter|nanogpt|llm\.c|nanochat|deeplearningexamples|"
    r"colossal|easycontext|deepspeed|prime|metaseq|nanotron|internal|fork|sagemaker|pithtrain|jax",
    re.IGNORECASE,
)
_SUBMISSION = re.compile(r"mlcommons/training_results", re.IGNORECASE)
# Told by a part of the task's name, the more specific first; a task that is not told is pretraining.
_METHODS: tuple[tuple[str, Method], ...] = (
    ("qlora", "qlora"), ("dora", "dora"), ("lora", "lora"), ("adapter", "lora"), ("dpo", "dpo"),
    ("pretrain", "pretrain"), ("pre-train", "pretrain"), ("full", "full"), ("sft", "full"), ("fine", "full"),
    ("training", "pretrain"),
)  # fmt: skip


GPUS_UNTOLD = 64  # GPU-hours hardly depend on the count: a middling one where it is not told


class Unsupported(ValueError):
    """Why a row cannot be estimated."""


@dataclass(frozen=True, slots=True)
class Case:
    """A row read: everything the model takes."""

    job: Job
    gpu: Gpu
    fabric: Fabric
    software: SoftwareClass
    power_watts: float | None
    kernels: Kernels
    precision_guessed: bool

    @property
    def pcie(self) -> bool:
        """Whether the cards of a machine talk over PCIe, with or without peer-to-peer."""
        return self.fabric.intra_kind.startswith("pcie")


def read_case(row: Mapping[str, str]) -> Case:
    """The case that a row's configuration describes. Raises Unsupported."""
    gpu = _gpu(row)
    software = software_class(row)
    n_gpus = _count(row, "n_gpus")
    if n_gpus is None and text_of(row, "metric") == "gpu_hours":
        n_gpus = GPUS_UNTOLD
    if n_gpus is None:
        raise Unsupported("number of GPUs not given")
    method = _method(row)
    precision, guessed = _precision(row, gpu, software)
    job = _job(row, method, precision, n_gpus, software)
    stated = text_of(row, "micro_batch") and not text_of(row, "activation_checkpointing")
    if stated and software != "tuned" and job.checkpointing != "full" and estimate(job).peak_bytes > gpu.usable_bytes:
        job = replace(job, checkpointing="full")  # the stated micro-batch fits no other way
    fabric = _fabric(row, gpu, n_gpus)
    watts = re.search(r"\b(\d{2,4})\s*W\b", row.get("gpu") or "")
    return Case(job, gpu, fabric, software, float(watts[1]) if watts else None, _kernels(row), guessed)


def software_class(row: Mapping[str, str]) -> SoftwareClass:
    """Whose stack, from the framework's name and the kind of publication."""
    framework = row.get("framework") or ""
    if re.search(r"deeplearningexamples|megatron-(deepspeed|llama)", framework, re.IGNORECASE):
        return "benchmark"
    if _TUNED.search(framework) or _SUBMISSION.search(row.get("source_repo_or_paper") or ""):
        return "tuned"
    return "benchmark" if _BENCHMARK.search(framework) else "user"


def text_of(row: Mapping[str, str], column: str) -> str:
    """A cell's words, stripped; "" where the cell is absent or says that nothing is known."""
    value = (row.get(column) or "").strip()
    return "" if value.lower() in ("", "unknown", "n/a", "na", "none given", "?") else value


def number(row: Mapping[str, str], column: str) -> float | None:
    """The first number in a cell; "8k" is 8,192 where it is a length, 8,000 elsewhere."""
    match = re.search(r"(\d[\d,_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*([kK]\b)?", text_of(row, column))
    if not match:
        return None
    value = float(match[1].replace(",", "").replace("_", ""))
    return value * (1024 if column == "seq_len" else 1000) if match[2] else value


def _method(row: Mapping[str, str]) -> Method:
    task = text_of(row, "task").lower()
    if not task:
        return "pretrain"
    for part, method in _METHODS:
        if part in task:
            return method
    raise Unsupported(f"task {text_of(row, 'task')!r} is not training of a language model")


def _count(row: Mapping[str, str], column: str) -> int | None:
    value = number(row, column)
    return int(value) if value and value >= 1 else None


def _degree(row: Mapping[str, str], name: str) -> int | None:
    """A degree written into the sharding column, as in "zero1 dp2+tp2+pp4"."""
    match = re.search(rf"\b{name}\s*=?\s*(\d+)", text_of(row, "sharding"), re.IGNORECASE)
    return int(match[1]) if match else None


def _gpu(row: Mapping[str, str]) -> Gpu:
    name, form = text_of(row, "gpu"), text_of(row, "gpu_form")
    if not name:
        raise Unsupported("GPU not given")
    tries = [f"{name} {form}", name] if form.upper() in ("PCIE", "NVL") else [name]
    bare = re.sub(r"\(.*?\)|\b\d{2,4}\s*W\b|HBM\w*|\bNVIDIA\b|\bAMD\b", " ", name, flags=re.IGNORECASE)
    tries += [f"{bare} {form}"] if form.upper() in ("PCIE", "NVL") else []
    tries += [bare, re.sub(r"\b\d+\s*GB\b", " ", bare)]
    for text in tries:
        try:
            return find_gpu(" ".join(text.split())).value
        except InputProblem:
            continue
    raise Unsupported(f"GPU {name!r} is not known")


def _precision(row: Mapping[str, str], gpu: Gpu, software: SoftwareClass) -> tuple[Precision, bool]:
    text = text_of(row, "precision").lower()
    for part, name in (("fp4", "fp4"), ("fp8", "fp8"), ("bf16", "bf16"), ("fp16", "fp16"), ("fp32", "fp32"),
                       ("tf32", "fp32"), ("int8", "bf16"), ("mixed", "bf16")):  # fmt: skip
        if part in text:
            return name, False  # type: ignore[return-value]
    if software == "tuned" and chip(gpu) in ("hopper", "blackwell_dc", "blackwell_ultra", "cdna"):
        return "fp8", True  # what vendors' recipes for these chips run when they do not say
    return ("bf16" if gpu.dense_flops.get("bf16") else "fp16"), True


def _job(row: Mapping[str, str], method: Method, precision: Precision, n_gpus: int, software: SoftwareClass) -> Job:
    arch = _architecture(row)
    tp, pp, cp, ep = (_count(row, name) or _degree(row, name) for name in ("tp", "pp", "cp", "ep"))
    # A pretraining benchmark that does not tell its length ran at the model's own, in its framework's default of 8k.
    seq_len = _count(row, "seq_len") or min(8192, arch.max_seq_len or 2048)
    if tp is None and pp is None and not text_of(row, "sharding"):
        tp, pp = _usual_layout(arch.total_params, n_gpus, row)
    tp, pp, cp, ep = tp or 1, pp or 1, cp or 1, ep or 1
    if n_gpus % (tp * pp * cp):
        cp = 1
    if n_gpus % (tp * pp * cp):
        tp, pp = 1, 1
    replicas = n_gpus // (tp * pp * cp)
    micro_batch = _count(row, "micro_batch") or max(1, 8192 // seq_len)
    batch_tokens = number(row, "global_batch_tokens")
    if batch_tokens and tp * pp * cp == 1 and n_gpus > batch_tokens / seq_len > 0 and arch.total_params > 20e9:
        # Fewer samples than GPUs: the rest of the cards must share samples.
        share = 2 ** math.ceil(math.log2(n_gpus * seq_len / batch_tokens))
        if n_gpus % share == 0 and share <= 64:
            tp, cp = min(share, 8), max(1, share // 8)
            replicas = n_gpus // share
    if batch_tokens:
        while micro_batch > 1 and micro_batch * seq_len * replicas > 1.01 * batch_tokens:
            micro_batch = max(1, micro_batch // 2)
        accumulate = max(1, round(batch_tokens / (replicas * micro_batch * seq_len)))
    elif pp > 1 and software == "benchmark" and micro_batch > 1:  # local batch, cut into single samples for the stages
        accumulate, micro_batch = micro_batch, 1
    else:
        accumulate = 4 * pp if pp > 1 else 1
    return Job(
        arch=arch, task="train", method=method, precision="nf4" if method == "qlora" else precision,
        optimizer="adamw", lora_rank=16, lora_targets=("all-linear",), seq_len=seq_len, micro_batch=micro_batch,
        grad_accum=accumulate, checkpointing=_checkpointing(row, arch.total_params, software, method),
        attention=_attention(row), sharding=_sharding(row, n_gpus, tp * pp * cp, software), n_gpus=n_gpus, tp=tp, pp=pp,
        cp=cp, ep=ep if arch.moe is not None and arch.moe.n_experts % ep == 0 else 1, offload=_offload(row),
        framework=_framework(row),
        compile=False, fused_loss=software == "tuned",
    )  # fmt: skip


def _architecture(row: Mapping[str, str]) -> Architecture:
    name = text_of(row, "model")
    total, active = number(row, "total_params_b"), number(row, "active_params_b")
    for text in (name, re.sub(r"\(.*?\)", " ", name).strip(), name.replace("_", "-")):
        if not text:
            continue
        try:
            arch, _ = resolve_architecture(text)
        except InputProblem:
            continue
        if total is None or 0.7 < arch.total_params / (total * 1e9) < 1.45:
            return arch
    if total is None:
        raise Unsupported(f"model {name!r} is not known and its size is not given")
    given: dict[str, object] = {"params_b": total}
    if active is None and (_count(row, "ep") or 1) > 1:
        active = total / 12  # experts in parallel, so a mixture of experts; a dozen is today's sparsity
    if active and active < 0.9 * total:
        given |= {"n_experts": 128, "experts_per_token": 8, "active_params_b": active}
    elif total < 0.4 and "bert" in name.lower():
        given |= {"n_layers": 24, "hidden_size": 1024, "n_heads": 16, "vocab_size": 30522}
    try:
        arch, _ = from_parameters(given)
    except InputProblem as problem:
        raise Unsupported(str(problem)) from None
    if "bert" in name.lower():
        arch = replace(arch, modality="encoder")
    return arch


def _usual_layout(params: float, n_gpus: int, row: Mapping[str, str]) -> tuple[int, int]:
    """Tensor and pipeline degrees of large runs on NVIDIA cards that do not tell theirs."""
    if "tpu" in text_of(row, "gpu").lower() or n_gpus < 8 or params < 25e9 or _method(row) != "pretrain":
        return 1, 1
    tp = 4 if params < 100e9 else 8
    pp = 4 if params < 100e9 else 8
    while n_gpus % (tp * pp) and pp > 1:
        pp //= 2
    return (tp, pp) if n_gpus % (tp * pp) == 0 else (1, 1)


def _checkpointing(row: Mapping[str, str], params: float, software: SoftwareClass, method: Method) -> Checkpointing:
    text = text_of(row, "activation_checkpointing").lower()
    if text.startswith(("none", "no", "off", "false")):
        return "none"
    if "selective" in text or "moe" in text or "partial" in text:
        return "selective"
    if text:
        return "full"
    if software == "tuned":
        return "none"
    if software == "benchmark":
        return "selective" if params > 1.5e9 else "none"
    return "full" if params > 1e9 else "none"


_FRAMEWORKS: tuple[tuple[str, Framework], ...] = (
    ("megatron-bridge", "megatron"), ("megatron-core", "megatron"), ("megatron-lm", "megatron"), ("nemo", "nemo"),
    ("nvidia", "nemo"), ("ngc", "nemo"), ("maxtext", "maxtext"), ("llm-foundry", "llm-foundry"),
    ("deepspeed", "deepspeed"),
    ("torchtitan", "torchtitan"), ("torchtune", "torchtune"), ("litgpt", "litgpt"), ("fms", "fms"),
    ("axolotl", "axolotl"),
)  # fmt: skip


def _framework(row: Mapping[str, str]) -> Framework:
    text = text_of(row, "framework").lower()
    return next((name for part, name in _FRAMEWORKS if part in text), "hf")


def _kernels(row: Mapping[str, str]) -> Kernels:
    """Fused attention's second generation came in the second half of 2023 (Dao 2023, arXiv:2307.08691)."""
    return "first" if (_count(row, "year") or 2024) <= 2023 else "current"


def _attention(row: Mapping[str, str]) -> Attention:
    """Fused attention came in late 2022 (Dao et al.); stacks of before wrote the score matrix to memory."""
    year = _count(row, "year") or 2024
    old = year <= 2022 or "deeplearningexamples" in text_of(row, "framework").lower()
    return "eager" if old and "tpu" not in text_of(row, "gpu").lower() else "flash"


def _sharding(row: Mapping[str, str], n_gpus: int, shards: int, software: SoftwareClass) -> Sharding:
    text = text_of(row, "sharding").lower()
    if n_gpus == 1:
        return "none"
    for part, kind in (("zero-3", "zero3"), ("zero3", "zero3"), ("zero-2", "zero2"), ("zero2", "zero2"),
                       ("zero-1", "zero1"), ("zero1", "zero1"), ("distributed", "zero1"), ("fsdp", "fsdp"),
                       ("grad_op", "zero2"), ("ddp", "ddp")):  # fmt: skip
        if part in text and not ("shard_grad_op" in text and kind == "fsdp"):
            return kind  # type: ignore[return-value]
    megatron = re.search(r"megatron|nemo|deepspeed", text_of(row, "framework"), re.IGNORECASE)
    return "zero1" if software == "tuned" or shards > 1 or megatron else "fsdp"


def _offload(row: Mapping[str, str]) -> Offload:
    return "all" if "offload" in text_of(row, "sharding").lower() else "none"


def _fabric(row: Mapping[str, str], gpu: Gpu, n_gpus: int) -> Fabric:
    nodes = _count(row, "n_nodes")
    per_node = n_gpus // nodes if nodes and n_gpus % nodes == 0 else None
    intra, inter = text_of(row, "interconnect_intra"), text_of(row, "interconnect_inter")
    rack = gpu.id.startswith(("GB200", "GB300"))
    wide = rack or gpu.vendor == "Google"  # a rack or slice is one link domain, whatever the host count
    between = _inter(inter, rack)
    for intra_link, inter_link in ((_intra(intra), between), (None, between), (None, None)):
        try:
            return fabric_for(gpu, n_gpus, None if wide else per_node, intra_link, inter_link)[0]
        except InputProblem:
            continue
    return fabric_for(gpu, n_gpus)[0]


def _intra(text: str) -> str | None:
    return "PCIe" if "pcie" in text.lower() and "nvlink" not in text.lower() else None


def _inter(text: str, rack: bool = False) -> str | None:
    """A rate per GPU or node from words such as "RoCE 1600 Gb/s per node" or "8x ConnectX-7 IB NDR 400Gb/s"."""
    if not text or text.lower().startswith("none"):
        return None
    compute = re.search(r"compute:?\s*(.*)", text, re.IGNORECASE)
    text = compute[1] if compute else text
    measured = re.search(r"~\s*(\d+)\s*Gb/?s", text)
    if measured:
        return f"{measured[1]} Gb/s per node"
    several = re.search(r"(\d+)\s*x\s*(?:[\w\-]+ )*?(\d+)\s*Gb?\b", text)
    if several:
        ports, each = int(several[1]), int(several[2])
        return f"{each * ports // 4} Gb/s per GPU" if rack else f"{each * ports} Gb/s per node"
    rate = re.search(r"(\d+(?:\.\d+)?)\s*Gb/?s", text)
    if rate:
        where = "per GPU" if "per gpu" in text.lower() else "per node"
        return f"{rate[1]} Gb/s {where}"
    omni = re.search(r"omni-?path\s*(\d+)G?", text, re.IGNORECASE)
    if omni:
        return f"{omni[1]} Gb/s per node"
    return None
