"""One writer a launcher: from a target to its files and the command that starts it.

Key names follow the releases named in ``tools.launch.checked``; a file that no real parser has read says so.
"""

from __future__ import annotations

from collections.abc import Callable

from tools.launch.direct import TITAN, Written, accelerate, deepspeed, torchrun, torchtitan
from tools.launch.recipes import axolotl, llamafactory
from tools.launch.scheduled import skypilot, slurm
from tools.launch.target import Launcher, Target

__all__ = ["TITAN", "write"]


def write(target: Target) -> Written:
    """The files of this target's launcher and its commands, in order; texts only, nothing is written to disk."""
    return _WRITERS[target.launcher](target)


_WRITERS: dict[Launcher, Callable[[Target], Written]] = {
    "torchrun": torchrun, "accelerate": accelerate, "fsdp": accelerate, "deepspeed": deepspeed,
    "torchtitan": torchtitan, "axolotl": axolotl, "llama-factory": llamafactory, "skypilot": skypilot,
    "slurm": slurm,
}  # fmt: skip
