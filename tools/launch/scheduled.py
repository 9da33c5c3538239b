"""Files of schedulers that find the machines and run torchrun on them: SkyPilot and Slurm."""

from __future__ import annotations

from typing import Any

from tools.launch.direct import Written, torchrun
from tools.launch.environment import environment, exports
from tools.launch.target import Target
from tools.launch.yaml_text import to_yaml
from tools.result import FileText

_SKY_NAMES = {
    "H100-SXM5": "H100", "H100-PCIe": "H100", "H200-SXM": "H200", "B200-SXM": "B200", "GB200": "GB200",
    "B300-SXM": "B300",
    "A100-SXM4-80GB": "A100-80GB", "A100-PCIe-80GB": "A100-80GB", "A100-SXM4-40GB": "A100", "A100-PCIe-40GB": "A100",
    "L40S": "L40S", "L4": "L4", "A10G": "A10G", "A10": "A10", "T4": "T4", "V100-SXM2-16GB": "V100",
    "V100-SXM2-32GB": "V100-32GB", "RTX-4090": "RTX4090", "RTX-3090": "RTX3090", "RTX-A6000": "RTXA6000",
    "RTX-6000-Ada": "RTX6000-Ada", "MI300X": "MI300X",
}  # fmt: skip


def skypilot_task(target: Target) -> dict[str, Any]:
    """A SkyPilot task: machines, idle stop, recovery, and the same torchrun command on every node."""
    name = _SKY_NAMES.get(target.gpu.id, target.gpu.id)
    resources: dict[str, Any] = {"accelerators": f"{name}:{target.per_node}", "disk_size": 1024}
    if target.nodes > 1 and target.fabric.inter_kind in ("infiniband", "roce", "efa", "gcp-tcp"):
        resources["network_tier"] = "best"
    if target.spot:
        resources |= {"use_spot": True, "job_recovery": {"strategy": "EAGER_NEXT_REGION", "max_restarts_on_errors": 2}}
    resources["autostop"] = {"idle_minutes": target.idle_minutes, "down": True}
    files, _commands = torchrun(target)
    run = next(file.text for file in files if file.path == "run.sh").split("\n\n", 1)[1].strip()
    if target.nodes > 1:
        run = 'export MASTER_ADDR=$(echo "$SKYPILOT_NODE_IPS" | head -n1)\n' + run
    envs = {key: value for key, value in environment(target).items() if key != "MASTER_ADDR"}
    return {
        "name": "train",
        "resources": resources,
        "num_nodes": target.nodes,
        "workdir": ".",
        "envs": envs,
        "secrets": {"HF_TOKEN": None},
        "setup": "pip install -q torch transformers trl peft datasets bitsandbytes\n",
        "run": run + "\n",
    }


def skypilot(target: Target) -> Written:
    """task.yaml beside torchrun's files, and the commands in order: a managed job that recovers on spot machines, else
    a cluster of one's own.
    """
    files = [file for file in torchrun(target)[0] if file.path != "run.sh"]
    files.insert(0, FileText(path="task.yaml", language="yaml", text=to_yaml(skypilot_task(target))))
    if target.spot:
        return files, ["sky jobs launch --secret HF_TOKEN task.yaml"]
    return files, ["sky launch -c train --secret HF_TOKEN task.yaml", "sky logs train"]


def slurm(target: Target) -> Written:
    """train.sbatch beside torchrun's files, with 8 CPUs a GPU, 24 h and a requeue after a signal 5 minutes before the
    end; and the command that submits it.
    """
    files, _commands = torchrun(target)
    run = next(file.text for file in files if file.path == "run.sh").split("\n\n", 1)[1].strip()
    if target.nodes == 1:
        own = "--nnodes=1 --rdzv-id=$SLURM_JOB_ID --rdzv-backend=c10d --rdzv-endpoint=localhost:0"
        run = run.replace("--standalone", own)
    run = run.replace("--rdzv-id=job1", "--rdzv-id=$SLURM_JOB_ID")
    lines = [
        "#!/usr/bin/env bash",
        "#SBATCH --job-name=train",
        f"#SBATCH --nodes={target.nodes}",
        "#SBATCH --ntasks-per-node=1",
        f"#SBATCH --gpus-per-node={target.per_node}",
        f"#SBATCH --cpus-per-task={8 * target.per_node}",
        "#SBATCH --exclusive",
        "#SBATCH --time=24:00:00",
        "#SBATCH --output=%x-%j.log",
        "#SBATCH --signal=B:USR1@300",
        "#SBATCH --requeue",
        "",
        "set -euo pipefail",
    ]
    if target.nodes > 1:
        lines.append('export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)')
    lines += [exports(target, ("MASTER_ADDR",)), "", "srun " + run]
    kept = [file for file in files if file.path != "run.sh"]
    kept.insert(0, FileText(path="train.sbatch", language="bash", text="\n".join(lines) + "\n"))
    return kept, ["sbatch train.sbatch"]
