"""Which launch files real parsers have read: recorded by ``python -m evals.check_launch_files``.

A file not named here is written from documentation and marked unchecked.
"""

from __future__ import annotations

AS_OF = "2026-11-30"
CHECKED: dict[str, str] = {
    "accelerate.yaml": "accelerate 1.15.0",
    "accelerate_fsdp.yaml": "accelerate 1.15.0",
    "axolotl.yaml": "axolotl 0.19.0 (field names)",
    "ds_config.json": "deepspeed 0.19.8",
    "fsdp.json": "transformers 5.24.0",
    "llamafactory.yaml": "llamafactory 0.9.5 (field names)",
    "run.sh": "bash -n; flags by torch 2.14.1, torchtitan 0.3.0, trl 1.16.0",
    "task.yaml": "skypilot 0.14.1 (JSON schema)",
    "train.py": "python (syntax)",
    "train.sbatch": "bash -n; flags by torch 2.14.1, trl 1.16.0; sbatch itself has not read it",
}


def checked(launcher: str, path: str) -> str:
    """The real parser and its version that has read such a file, and the ISO date; '' where none has. No
    I/O: a record.
    """
    if path == "run.sh" and launcher in ("axolotl", "llama-factory", "deepspeed", "accelerate", "fsdp"):
        return f"bash -n, {AS_OF}"
    return f"{CHECKED[path]}, {AS_OF}" if path in CHECKED else ""
