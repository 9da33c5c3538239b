"""From a row of live bytes counted under fake tensors to a job and a recipe.

Such rows come from Hugging Face modules run on no device: bf16 weights, AdamW with foreach off the GPU, the second
step. There the attention takes an explicit mask (transformers skips it on a GPU), which repeats keys and values to all
heads and keeps the mask in the compute dtype for each layer; PEFT's adapters are fp32.
"""

from __future__ import annotations

from dataclasses import replace

from evals.measured_models import Row, architecture_of
from evals.measured_rows import Case
from tools.memory.profiles import recipe_for
from tools.workload import WorkloadInput, resolve


def read_allocation_row(row: Row, number: int) -> Case:
    """The case of row ``number`` (from 0) of a file in the format of the allocation counts."""
    open_points: list[str] = []
    lora = (row.get("method") or "full").strip() in ("lora", "dora")
    trained = float(row.get("trainable_params") or 0)
    base_params = float(row.get("total_params") or 0) - (trained if lora else 0)
    arch = architecture_of({**row, "params_b": str(base_params / 1e9)}, open_points)
    attention = (row.get("attention") or "sdpa").strip()
    given = {
        "model": {"params_b": 1},
        "method": (row.get("method") or "full").strip(),
        "precision": {"fp32": "fp32", "float32": "fp32"}.get((row.get("weight_dtype") or "bf16").strip(), "bf16"),
        "optimizer": (row.get("optimizer") or "adamw").strip(),
        "seq_len": int(float(row["seq_len"])),
        "micro_batch": int(float(row["micro_batch"])),
        "activation_checkpointing": "full" if row.get("activation_checkpointing", "no").startswith("y") else "none",
        "attention": attention,
        "framework": "hf",
        "sharding": "none",
        "n_gpus": 1,
    }
    if lora:
        given["lora_rank"] = int(float(row["lora_rank"]))
        given["lora_targets"] = row["lora_targets"]
    # Position tables are sometimes lengthened for a long sequence; the row's parameter count says so.
    extra = int(base_params - arch.total_params)
    if arch.learned_positions and 0 < extra < 0.2 * arch.total_params:
        arch = replace(arch, total_params=arch.total_params + extra)
    job = replace(resolve(WorkloadInput.model_validate(given)), arch=arch)
    recipe = replace(
        recipe_for(job), explicit_mask=True, kv_expand=True, loss="hf", dropout=False, lora_autocast=False,
        step_temp=4.0 if given["precision"] == "fp32" else 2.0
    )  # fmt: skip
    if arch.family == "stablelm" or (arch.family == "phi" and arch.gated_mlp):
        # Queries put together by concatenation are laid out by heads, and so is the CPU kernel's output.
        recipe = replace(recipe, copied_output=True)
    if arch.family == "opt":
        recipe = replace(recipe, explicit_mask=False)  # its mask is made once in the compute dtype
    return Case(
        id=str(number), job=job, recipe=recipe, kind="allocated", unit="B", unit_bytes=1.0, loose=bool(open_points),
        summed=False, reads=tuple(open_points),
    )  # fmt: skip
