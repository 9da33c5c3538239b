"""What is to be launched: the job on its machines, with the names that launch files need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from knowledge.types import Gpu
from tools.network.fabric import Fabric
from tools.throughput import SoftwareClass
from tools.workload import Job

Launcher = Literal[
    "torchrun", "accelerate", "deepspeed", "fsdp", "torchtitan", "axolotl", "llama-factory", "skypilot", "slurm"
]
PORT = 29500  # torch.distributed's default rendezvous port


@dataclass(frozen=True, slots=True)
class Target:
    """A job, its machines, its data and how often to save."""

    job: Job
    gpu: Gpu
    fabric: Fabric
    software: SoftwareClass
    launcher: Launcher
    dataset: str
    steps: int | None
    save_steps: int
    spot: bool
    idle_minutes: int

    @property
    def nodes(self) -> int:
        """Machines, rounded up; a rack of 72 is 18 of them with 4 GPUs (NVIDIA GB200 NVL72)."""
        return -(-self.job.n_gpus // self.per_node)

    @property
    def per_node(self) -> int:
        """GPUs of a machine, as the operating system counts them."""
        if self.fabric.intra_kind == "nvlink-rack" and self.job.n_gpus > 4:
            return 4
        return min(self.fabric.gpus_per_node, self.job.n_gpus)

    @property
    def model(self) -> str:
        """The hub id, or a placeholder for a model given by its parameters."""
        name = self.job.arch.id
        return name if "/" in name else "ORG/MODEL"

    @property
    def four_bit(self) -> bool:
        """Whether the base is loaded in 4 bits, which only QLoRA asks of these launchers."""
        return self.job.method == "qlora"

    @property
    def adapter(self) -> bool:
        """Whether adapters are trained in place of the weights: LoRA by name or under another method."""
        return self.job.is_adapter

    @property
    def sharded(self) -> bool:
        """Whether weights are sharded over the data-parallel group."""
        return self.job.sharding in ("zero2", "zero3", "fsdp", "hsdp")

    @property
    def precision(self) -> str:
        """What Trainer-like stacks call the compute precision: "bf16", "fp16", or "no" for fp32."""
        if self.job.precision in ("fp16", "fp16_mixed"):
            return "fp16"
        return "no" if self.job.precision == "fp32" else "bf16"

    @property
    def lora_modules(self) -> str:
        """PEFT's target_modules: module names separated by commas, or "all-linear"; our groups are spelled out."""
        targets = self.job.lora_targets
        groups = {
            "attention": "q_proj,k_proj,v_proj,o_proj",
            "qv": "q_proj,v_proj",
            "qkvo": "q_proj,k_proj,v_proj,o_proj",
        }
        if len(targets) == 1:
            return groups.get(targets[0], targets[0])
        return ",".join(targets)
