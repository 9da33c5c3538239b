"""Check the memory model on your own card: one real training step of a randomly initialised model, beside the estimate.

    python -m evals.measure --model llama-3.2-1b --method lora --seq-len 2048 --micro-batch 2 --out mine.csv

On a GPU it trains a few steps and reads torch's peak counters and the time; without one it counts live bytes under
fake tensors, which needs neither device nor weights. Either way a row in the format of ``data/measured_memory.csv`` is
appended (and with ``--throughput FILE`` one for the throughput file). Needs torch, transformers and, for LoRA, peft:
``pip install 'training-infrastructure-advisor[measure]'``. Local measurements are labelled so and never enter an
estimate.
"""

from __future__ import annotations

import argparse
import csv
import gc
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from knowledge.types import Architecture
from tools.errors import BadValue, InputProblem
from tools.memory import estimate, recipe_for
from tools.memory.overhead import LIVE_FIXED_BYTES
from tools.units import format_range, format_value
from tools.workload import Job, WorkloadInput, resolve

MEMORY_COLUMNS = (
    "id", "model", "params_b", "method", "weight_dtype", "trainable_dtype_notes", "optimizer", "optimizer_state_dtype",
    "lora_rank", "lora_targets", "seq_len", "micro_batch", "grad_accum", "activation_checkpointing", "attention",
    "sharding", "n_gpus", "tp", "pp", "cp", "cpu_offload", "gpu", "measured_peak_gb", "unit", "kind", "framework",
    "compile", "source_repo_or_paper", "source_locator", "notes",
)  # fmt: skip
SPEED_COLUMNS = ("id", "model", "params_b", "method", "seq_len", "micro_batch", "gpu", "n_gpus", "tokens_per_s_per_gpu")
STEPS = 4  # the first ones fill optimizer states and caches


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run gave."""

    peak_bytes: int
    reserved_bytes: int | None
    tokens_per_second: float | None
    device: str


def measure(job: Job, fake: bool) -> Measured:
    """Train ``STEPS`` steps of the job's model on the GPU, or count two under fake tensors."""
    import torch

    if fake:
        return Measured(_count(job), None, None, "none (fake tensors)")
    model, parameters = _build(job, "cuda")
    optimizer = torch.optim.AdamW(parameters, lr=1e-5, fused=True)
    ids = torch.randint(0, job.arch.vocab_size, (job.micro_batch, job.seq_len), device="cuda")
    seconds = []
    for step in range(STEPS):
        if step == 1:
            torch.cuda.reset_peak_memory_stats()
        torch.cuda.synchronize()
        start = time.perf_counter()
        _step(model, optimizer, ids)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    tokens = job.micro_batch * job.seq_len / min(seconds[1:])
    return Measured(
        torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), tokens, torch.cuda.get_device_name()
    )


def _count(job: Job) -> int:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from evals.live_bytes import LiveBytes

    with FakeTensorMode(allow_non_fake_inputs=True):
        model, parameters = _build(job, "cpu")
        gc.collect()
        with LiveBytes() as counter:
            counter.adopt([*model.parameters(), *model.buffers()])
            optimizer = torch.optim.AdamW(parameters, lr=1e-5, foreach=True)
            ids = torch.zeros(job.micro_batch, job.seq_len, dtype=torch.long)
            _step(model, optimizer, ids)
            gc.collect()
            counter.restart()
            _step(model, optimizer, ids)
            return int(counter.peak)


def _step(model: Any, optimizer: Any, ids: Any) -> None:
    model(input_ids=ids, labels=ids).loss.backward()  # outputs dropped before backward, as the Trainer does
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def _build(job: Job, device: str) -> tuple[Any, list[Any]]:
    """A randomly initialised model of the job's widths in bf16, with adapters and checkpointing as asked."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    kind, settings = _configuration(job.arch)
    config = AutoConfig.for_model(kind, **settings)
    attention = {"flash": "sdpa", "sdpa": "sdpa", "eager": "eager"}[job.attention]
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, attn_implementation=attention)
    torch.set_default_dtype(torch.float32)
    model.config.use_cache = False
    model.train()
    if job.checkpointing == "full":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if job.is_adapter:
        model = _with_adapters(model, job)
    return model, [one for one in model.parameters() if one.requires_grad]


def _with_adapters(model: Any, job: Job) -> Any:
    import torch
    from peft import LoraConfig, get_peft_model
    from peft.tuners.tuners_utils import BaseTunerLayer

    if job.checkpointing == "full":
        model.enable_input_require_grads()
    targets = "all-linear" if job.lora_targets == ("all-linear",) else list(job.lora_targets)
    config = LoraConfig(r=job.lora_rank, lora_alpha=2 * job.lora_rank, target_modules=targets, task_type="CAUSAL_LM")
    # Under fake tensors parameters cannot be moved in place; the adapters are made where they belong anyway.
    move, to = BaseTunerLayer._move_adapter_to_device_of_base_layer, torch.nn.Module.to
    fake = not torch.cuda.is_available()
    if fake:
        BaseTunerLayer._move_adapter_to_device_of_base_layer = lambda self, *_args, **_kwargs: None
        torch.nn.Module.to = lambda self, *_args, **_kwargs: self
    try:
        return get_peft_model(model, config)
    finally:
        BaseTunerLayer._move_adapter_to_device_of_base_layer, torch.nn.Module.to = move, to


_KINDS = {"gemma": "gemma", "qwen2": "qwen2", "qwen2.5": "qwen2", "qwen3": "qwen3", "mistral": "mistral", "phi": "phi"}


def _configuration(arch: Architecture) -> tuple[str, dict[str, Any]]:
    """The transformers model type of the family, a Llama of the same widths where it has none here."""
    if arch.modality != "text" or not arch.shape_known or arch.moe is not None or arch.mla is not None:
        raise BadValue(
            "cannot_measure", f"{arch.id} cannot be built from widths alone.", field="model",
            hint="Dense text decoders can be measured.", candidates=["llama-3.2-1b", "qwen2.5-0.5b", "gpt2"],
        )  # fmt: skip
    if arch.family == "gpt2":
        return "gpt2", {
            "n_embd": arch.hidden_size, "n_layer": arch.n_layers, "n_head": arch.n_heads, "vocab_size": arch.vocab_size,
            "n_positions": max(arch.learned_positions, 8192), "attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
        }  # fmt: skip
    kind = "gemma2" if "gemma-2-" in arch.id.lower() else _KINDS.get(arch.family, "llama")
    if kind == "phi" and arch.gated_mlp:
        kind = "llama"
    settings: dict[str, Any] = {
        "hidden_size": arch.hidden_size, "intermediate_size": arch.ffn_size, "num_hidden_layers": arch.n_layers,
        "num_attention_heads": arch.n_heads, "num_key_value_heads": arch.n_kv_heads, "vocab_size": arch.vocab_size,
        "tie_word_embeddings": arch.tied_embeddings, "max_position_embeddings": 131072,
    }  # fmt: skip
    if arch.head_dim * arch.n_heads != arch.hidden_size:
        settings["head_dim"] = arch.head_dim
    return kind, settings


def memory_row(job: Job, found: Measured) -> dict[str, str]:
    """A row in the columns of the published measurements, sizes in GB of 1e9 bytes, labelled as a local measurement."""
    name = job.arch.id.rpartition("/")[2]
    return dict.fromkeys(MEMORY_COLUMNS, "") | {
        "id": f"local-{name}-{job.method}-{job.seq_len}x{job.micro_batch}", "model": name,
        "params_b": f"{job.arch.total_params / 1e9:.3f}", "method": job.method, "weight_dtype": "bf16",
        "trainable_dtype_notes": "pure bf16" if not job.is_adapter else "fp32 adapters, no autocast",
        "optimizer": f"adamw({'foreach' if found.reserved_bytes is None else 'fused'})",
        "lora_rank": str(job.lora_rank) if job.is_adapter else "n/a",
        "lora_targets": " ".join(job.lora_targets) if job.is_adapter else "n/a", "seq_len": str(job.seq_len),
        "micro_batch": str(job.micro_batch), "grad_accum": "1",
        "activation_checkpointing": "yes" if job.checkpointing == "full" else "no", "attention": job.attention,
        "sharding": "none", "n_gpus": "1", "tp": "1", "pp": "1", "cp": "1", "cpu_offload": "no", "gpu": found.device,
        "measured_peak_gb": f"{found.peak_bytes / 1e9:.4f}", "unit": "GB", "kind": "allocated", "framework": "HF",
        "compile": "no", "source_repo_or_paper": "local measurement", "source_locator": "python -m evals.measure",
        "notes": "measured here, not published",
    }  # fmt: skip


def expected(job: Job, fake: bool) -> tuple[float, float, float]:
    """Expected, low and high live bytes in the same terms as the measurement: fake runs carry an explicit mask and
    repeated kv heads, and no libraries' workspaces.
    """
    recipe = replace(recipe_for(job), dropout=False)
    if job.is_adapter:
        recipe = replace(recipe, lora_autocast=False)
    if fake:
        recipe = replace(recipe, explicit_mask=True, kv_expand=True, step_temp=2.0)
    bill = estimate(job, recipe)
    fixed = LIVE_FIXED_BYTES if fake else 0.0  # no libraries, no workspaces
    return bill.live_bytes - fixed, bill.live_low - fixed, bill.live_high - fixed


def append(path: Path, columns: tuple[str, ...], row: dict[str, str]) -> None:
    """Add a row to a CSV file, with the heading when the file is new; columns that ``row`` lacks stay empty."""
    new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, fieldnames=columns)
        if new:
            writer.writeheader()
        writer.writerow(row)


def main(arguments: list[str] | None = None) -> int:
    """The command: 0, or 2 where torch or transformers is missing or the job cannot be. Trains on the GPU where there
    is one.
    """
    parser = argparse.ArgumentParser(prog="python -m evals.measure", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--method", default="full", choices=["full", "lora"])
    parser.add_argument("--seq-len", type=int, default=2048)
    parser.add_argument("--micro-batch", type=int, default=1)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--targets", default="all-linear")
    parser.add_argument("--attention", default="sdpa", choices=["sdpa", "eager"])
    parser.add_argument("--no-checkpointing", action="store_true")
    parser.add_argument("--fake", action="store_true", help="count under fake tensors even where there is a GPU")
    parser.add_argument("--out", type=Path, help="append the memory row to this CSV")
    parser.add_argument("--throughput", type=Path, help="append a tokens/s row to this CSV")
    asked = parser.parse_args(arguments)
    try:
        import torch
        import transformers  # noqa: F401
    except ImportError as missing:
        sys.stderr.write(f"{missing.name} is not installed: pip install torch transformers peft\n")
        return 2
    try:
        job = _job(asked)
        fake = asked.fake or not torch.cuda.is_available()
        found = measure(job, fake)
    except InputProblem as problem:
        sys.stderr.write(f"{problem.message} {problem.hint or ''}\n")
        return 2
    value, low, high = expected(job, fake)
    sys.stdout.write(
        f"measured here ({found.device}): {format_value(found.peak_bytes, 'B')} live\n"
        f"estimated: {format_value(value, 'B')} ({format_range(low, high, 'B')}), "
        f"{100 * (value / found.peak_bytes - 1):+.1f} %\n"
    )
    if asked.out:
        append(asked.out, MEMORY_COLUMNS, memory_row(job, found))
    if found.tokens_per_second:
        sys.stdout.write(f"speed here: {format_value(found.tokens_per_second, 'tokens/s')}\n")
        if asked.throughput:
            row = memory_row(job, found) | {"tokens_per_s_per_gpu": f"{found.tokens_per_second:.1f}"}
            append(asked.throughput, SPEED_COLUMNS, {name: row[name] for name in SPEED_COLUMNS})
    return 0


def _job(asked: argparse.Namespace) -> Job:
    given: dict[str, Any] = {
        "model": asked.model, "method": asked.method, "precision": "bf16", "seq_len": asked.seq_len,
        "micro_batch": asked.micro_batch, "attention": asked.attention,
        "activation_checkpointing": "none" if asked.no_checkpointing else "full",
    }  # fmt: skip
    if asked.method == "lora":
        given |= {"lora_rank": asked.rank, "lora_targets": asked.targets}
    return resolve(WorkloadInput.model_validate(given))


if __name__ == "__main__":
    sys.exit(main())
