"""From a row of measurements as people publish them to a job and a recipe.

Only configuration columns are read. ``notes`` and the framework text are searched for the names of options (Liger,
chunked loss, tensor-parallel degrees), never for a number that was measured. What a row leaves open takes the
framework's default, and the row is then marked as loosely specified.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, get_args

from evals.measured_models import Row, architecture_of
from knowledge.types import Architecture
from tools.frameworks import Framework
from tools.memory.profiles import HF_FRAMEWORKS, recipe_for, upcast_for_kbit
from tools.memory.recipe import Recipe
from tools.workload import Checkpointing, Job, Optimizer, WorkloadInput, resolve


@dataclass(frozen=True, slots=True)
class Case:
    """A row read: what to estimate and in which terms it was measured."""

    id: str
    job: Job
    recipe: Recipe
    kind: str  # allocated, reserved, nvidia-smi, fits, oom, unknown
    unit: str
    unit_bytes: float
    loose: bool  # the row leaves a driver of memory open, or the architecture is a guess
    summed: bool  # the figure is the sum over GPUs
    reads: tuple[str, ...]


def read_row(row: Row) -> Case:
    """The case of a row: job, recipe, and the terms in which it was measured (bytes of the unit, summed over GPUs or
    not). Raises Unsupported with the reason, and InputProblem for a job that cannot be.
    """
    text = " ".join((row.get(key) or "") for key in ("framework", "notes", "source_locator", "trainable_dtype_notes"))
    open_points: list[str] = []
    arch = architecture_of(row, open_points)
    framework = framework_of(row)
    adapter_like = (row.get("method") or "").strip().lower() in ("lora", "qlora", "dora") or "adapter v" in text.lower()
    adapter_like = adapter_like or bool(re.fullmatch(r"\d+", (row.get("lora_rank") or "").strip()))
    seq = _first_number(row.get("seq_len"), open_points, "seq_len", 2048)
    batch = _first_number(row.get("micro_batch"), open_points, "micro_batch", 1)
    n_gpus = _first_number(row.get("n_gpus"), open_points, "n_gpus", 1)
    tp, pp, cp, ep = _parallel(row, text, open_points)
    n_gpus = max(n_gpus, tp * pp * cp)
    passes = _grad_accum(row, pp)
    if pp > 1 and "local batch" in (row.get("micro_batch") or "").lower():
        batch, passes = 1, batch  # torchtitan cuts a local batch into micro-batches of one
    given: dict[str, Any] = {
        "model": {"params_b": 1},
        "method": _method(row, adapter_like),
        "precision": _precision(row, adapter_like, framework),
        "optimizer": _optimizer(row),
        "seq_len": seq,
        "micro_batch": batch,
        "grad_accum": passes,
        "activation_checkpointing": _checkpointing(row, framework, open_points),
        "attention": _attention(row, arch),
        "sharding": _sharding(row, n_gpus),
        "n_gpus": n_gpus,
        "cpu_offload": _offload(row),
        "framework": framework,
        "compile": (row.get("compile") or "").startswith("yes"),
        "fused_loss": _fused_loss(text),
    }
    rank = re.search(r"\d+", row.get("lora_rank") or "")
    if adapter_like:
        given["lora_rank"] = int(rank[0]) if rank else 16
        given["lora_targets"] = _targets(row, open_points)
    base = resolve(WorkloadInput.model_validate({k: v for k, v in given.items() if v is not None}))
    job = replace(base, arch=arch, tp=tp, pp=pp, cp=cp, ep=ep)
    recipe = _recipe(row, job, text)
    kind = (row.get("kind") or "unknown").strip()
    if kind in ("unknown", "nvidia-smi"):
        open_points.append("how it was measured")
    unit = (row.get("unit") or "GB").strip()
    return Case(
        id=row.get("id") or "", job=job, recipe=recipe, kind=kind, unit=unit,
        unit_bytes=2.0**30 if "i" in unit else 1e9, loose=bool(open_points),
        summed="sum over" in text.lower() and n_gpus > 1, reads=tuple(open_points),
    )  # fmt: skip


# ---- columns --------------------------------------------------------------------------------------------------------

_FRAMEWORKS: tuple[tuple[str, Framework], ...] = (
    ("fms-hf-tuning", "fms"), ("megatron", "megatron"), ("torchtitan", "torchtitan"), ("torchtrain", "torchtitan"),
    ("torchtune", "torchtune"), ("litgpt", "litgpt"), ("composer", "llm-foundry"), ("llm-foundry", "llm-foundry"),
    ("colossal", "deepspeed"), ("arctic", "deepspeed"), ("unsloth", "unsloth"), ("axolotl", "axolotl"),
    ("llama-factory", "llama-factory"), ("trl", "trl"), ("nemo", "nemo"), ("maxtext", "maxtext"),
    ("nanogpt", "nanogpt"), ("deepspeed", "deepspeed"),
)  # fmt: skip


def framework_of(row: Row) -> Framework:
    """The framework whose conventions a row follows; Hugging Face's where the text names none that is known."""
    text = (row.get("framework") or "").lower()
    for word, name in _FRAMEWORKS:
        if word in text:
            return name
    return "hf"


def _first_number(text: str | None, open_points: list[str], name: str, default: int) -> int:
    match = re.search(r"\d[\d,]*(?:\.\d+)?", text or "")
    if not match:
        open_points.append(name)
        return default
    if re.search(r"dynamic|unknown|default|short|any|local", (text or "").lower()) and name != "n_gpus":
        open_points.append(name)
    return max(1, int(float(match[0].replace(",", ""))))


def _parallel(row: Row, text: str, open_points: list[str]) -> tuple[int, int, int, int]:
    degrees = []
    for name in ("tp", "pp", "cp"):
        match = re.search(r"\d+", row.get(name) or "")
        if not match:
            open_points.append(name)
        degrees.append(int(match[0]) if match else 1)
    experts = re.search(r"\bEP\s?=?(\d+)", f"{row.get('sharding') or ''} {text}")
    return degrees[0], degrees[1], degrees[2], int(experts[1]) if experts else 1


def _method(row: Row, adapter_like: bool) -> str:
    method = (row.get("method") or "").strip().lower()
    notes = (row.get("notes") or "").lower()
    if method in ("lora", "qlora", "dora", "dpo", "orpo", "kto", "grpo", "ppo", "pretrain", "full", "reward"):
        return method
    if adapter_like:
        return "qlora" if _quant(row) else "lora"
    if "simpo" in notes:
        return "orpo"  # like ORPO, chosen and rejected without a reference model
    found = re.search(r"\b(orpo|kto|dpo|grpo)\b", notes)
    return found[1] if found else "full"


def _quant(row: Row) -> str | None:
    dtype = (row.get("weight_dtype") or "").lower()
    if "gptq" in dtype or "awq" in dtype or "hqq" in dtype:
        return "int8" if "int8" in dtype else "int4"
    if "nf4" in dtype or "bnb-4bit" in dtype:
        return "nf4"
    if "int8" in dtype:
        return "int8"
    if "mxfp4" in dtype:
        return "mxfp4"
    return "fp4" if "fp4" in dtype else None


def _precision(row: Row, adapter_like: bool, framework: Framework) -> str:
    dtype = (row.get("weight_dtype") or "").lower()
    quant = _quant(row)
    if quant and adapter_like:
        return quant
    if dtype == "fp32" and not re.search(r"bf16|fp16|amp|mixed", (row.get("trainable_dtype_notes") or "").lower()):
        return "fp32"
    if "fp32" in dtype or "amp" in dtype:
        return "bf16_mixed"
    if (row.get("method") or "") == "qlora":
        return "nf4"
    return "bf16"


def _optimizer(row: Row) -> Optimizer:
    text = (row.get("optimizer") or "").lower()
    if "galore" in text or "apollo" in text:
        return "galore"
    if "muon" in text:
        return "muon"
    eight = "8bit" in text or "8-bit" in text or (row.get("optimizer_state_dtype") or "") == "int8"
    if "paged" in text:
        return "paged_adamw_8bit" if eight else "paged_adamw"
    for name in get_args(Optimizer):
        if name in ("adafactor", "lion") and name in text:
            return name  # type: ignore[no-any-return]
    if "sgd" in text and "adam" not in text:
        return "sgd"
    return "adamw_8bit" if eight else "adamw"


def _grad_accum(row: Row, pp: int) -> int:
    match = re.fullmatch(r"\s*(\d+)\s*", row.get("grad_accum") or "")
    return int(match[1]) if match else 1


def _checkpointing(row: Row, framework: Framework, open_points: list[str]) -> Checkpointing:
    text = (row.get("activation_checkpointing") or "").strip().lower()
    if text in ("yes", "true", "full"):
        return "full"
    if text in ("no", "false", "none"):
        return "none"
    if text.startswith("select"):
        return "selective"
    open_points.append("activation_checkpointing")
    return "selective" if framework == "torchtitan" else "full"


def _attention(row: Row, arch: Architecture) -> str:
    text = (row.get("attention") or "").lower()
    if "eager" in text or (arch.modality == "encoder" and "flash" not in text and "sdpa" not in text):
        return "eager"  # encoders had no other kernel in the libraries that such rows come from
    return "flash" if "flash" in text else "sdpa"


def _sharding(row: Row, n_gpus: int) -> str:
    text = (row.get("sharding") or "").lower()
    if "shard_grad_op" in text:
        return "zero2"
    for name in ("zero1", "zero2", "zero3", "hsdp", "ddp"):
        if name in text:
            return name
    if "gemini" in text:
        return "zero3"
    if "fsdp" in text:
        return "fsdp"
    return "none" if n_gpus == 1 or "none" in text or "device_map" in text else "fsdp"


def _offload(row: Row) -> str:
    text = (row.get("cpu_offload") or "").lower()
    if not text or text in ("no", "unknown") or text.startswith("activation"):
        return "none"
    return "all" if "param" in text or text == "yes" else "optimizer"


def _fused_loss(text: str) -> bool:
    low = re.sub(r"\S*liger\.csv|no liger", "", text.lower())
    return bool(re.search(r"liger|fused-linear|\bcce\b|fused linear cross", low))


def _targets(row: Row, open_points: list[str]) -> list[str]:
    text = (row.get("lora_targets") or "").strip().lower()
    if text in ("", "unknown"):
        open_points.append("lora_targets")
        return ["all-linear"]
    if text.startswith("default"):
        return ["qkvo"] if "qkvo" in text else ["qv"]
    if text == "n/a":  # other adapters (prompts, scales and biases): nothing beside the linear layers
        return ["none"]
    return [part for part in re.split(r"[\s,]+", text) if part]


# ---- recipes --------------------------------------------------------------------------------------------------------


_BF16_LOSS = frozenset({"gpt_bigcode-santacoder", "bigcode/starcoder"})  # modeling_gpt_bigcode before 4.45


def _recipe(row: Row, job: Job, text: str) -> Recipe:
    """The framework's recipe with the options that a row names."""
    low = text.lower()
    recipe = _loss(_adapters(recipe_for(job), row, job, low), job, low)
    if job.optimizer == "adamw" and (job.framework in HF_FRAMEWORKS or job.framework == "litgpt"):
        recipe = replace(recipe, step_temp=recipe.state)  # AdamW with foreach was the default when these were measured
    if "foak" in low:
        recipe = replace(recipe, fused_norm=True)
    if "colossal" in low:
        # coati: the caller holds the fp32 outputs; passes without gradient leave logits and log-softmax; small buckets.
        recipe = replace(recipe, loss="hf_kept", pass_logits=8.0, bucket=0.0)
    if "activation" in (row.get("cpu_offload") or "").lower():
        recipe = replace(recipe, inputs_on_host=True)
    elif job.framework == "unsloth":
        recipe = replace(recipe, inputs_on_host=False)
    optimizer = f"{row.get('optimizer') or ''} {row.get('notes') or ''}".lower()
    if re.search(r"layerwise|per.layer|optimi[sz]er.in.(bwd|backward)|in.backward", optimizer) and not job.is_adapter:
        recipe = replace(recipe, grad=0.0, step_temp=0.0)  # each gradient is used and freed as it comes
    if "tiledmlp" in low or "tiled mlp" in low:
        recipe = replace(recipe, tiled_mlp=True)
    if "reshard_after_forward=never" in low:
        recipe = replace(recipe, reshard=False)
    if "torchtrain" in low:
        recipe = replace(recipe, loss_parallel=False)  # before torchtitan had it
    return recipe


def _loss(recipe: Recipe, job: Job, low: str) -> Recipe:
    if recipe.loss == "linear":
        return recipe
    fused = "foak" in low  # fms-acceleration's fused operations and Triton kernels
    if job.arch.id in _BF16_LOSS:
        name = "autocast_shift" if "bf16 flag true" in low else "bf16_shift"
        return replace(recipe, loss=f"{name}_fused" if fused else name)  # type: ignore[arg-type]
    if fused:
        return replace(recipe, loss="fused_ce")
    if job.framework == "torchtitan" and "non-chunked" not in low and "chunked cross" in low:
        return replace(recipe, loss="chunked")
    return recipe


def _adapters(recipe: Recipe, row: Row, job: Job, low: str) -> Recipe:
    if not job.is_adapter:
        return recipe
    if (row.get("optimizer_state_dtype") or "").lower().startswith("bf16") or "pure bf16" in low:
        recipe = replace(recipe, adapter=2.0)
    if recipe.quant == "nf4_double" and (row.get("weight_dtype") or "").strip().lower() == "nf4":
        recipe = replace(recipe, quant="nf4")
    if "bf16 flag unset" in low and "fp16 flag unset" in low:
        recipe = replace(recipe, lora_autocast=False)
    if "baseline-peft" in low and recipe.quant and job.n_gpus == 1:
        recipe = upcast_for_kbit(recipe)
    if job.framework == "litgpt":
        if recipe.quant and "bnb 0.41" in low:
            recipe = replace(recipe, compute=2.0, residual=2.0, linear_inputs=True)
        if re.search(r"adapter v2|adapter_v2", low):
            recipe = replace(recipe, linear_outputs=True)
        if job.sharding == "fsdp" and "torch 2.1" in low:
            recipe = replace(recipe, flat_frozen_grads=True)  # FSDP1 of 2023: frozen flat parameters got gradients
    return recipe
