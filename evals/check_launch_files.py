"""Let the real libraries read the launch files: ``python -m evals.check_launch_files`` where they are installed.

For every launcher and a spread of jobs the files are written and handed to the library's own parser: accelerate's
config loader, DeepSpeed's config class, Transformers' and TRL's argument parsers, torchrun's argparse, torchtitan's
config dataclasses, LLaMA-Factory's parsers, axolotl's schema, SkyPilot's JSON schema, PyYAML and bash -n. A library
that is not installed is reported as unchecked. Copy the last lines into ``tools/launch/checked.py``.
"""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from tools.launch.launch_plan import LaunchPlanResult
from tools.registry import get_tool

JOBS: tuple[dict[str, Any], ...] = (
    {"model": "llama-3.1-8b", "method": "full", "n_gpus": 8, "sharding": "fsdp"},
    {"model": "llama-3.1-8b", "method": "full", "n_gpus": 32, "sharding": "hsdp", "tokens": "1B"},
    {"model": "llama-3.1-70b", "method": "full", "n_gpus": 64, "sharding": "zero3", "cpu_offload": "optimizer"},
    {"model": "qwen3-8b", "method": "lora", "n_gpus": 2, "gpu": "RTX 4090", "sharding": "ddp"},
    {"model": "llama-3.1-70b", "method": "qlora", "n_gpus": 4, "sharding": "fsdp", "spot": True},
    {"model": "mistral-7b", "method": "lora", "n_gpus": 1, "lora_targets": "qv"},
    {
        "model": "llama-3.1-70b",
        "method": "pretrain",
        "n_gpus": 64,
        "tp": 8,
        "pp": 2,
        "sharding": "zero1",
        "grad_accum": 16,
    },
    {"model": "qwen3-30b-a3b", "method": "full", "n_gpus": 32, "ep": 8, "sharding": "fsdp"},
)
LAUNCHERS = (
    "torchrun",
    "accelerate",
    "fsdp",
    "deepspeed",
    "torchtitan",
    "axolotl",
    "llama-factory",
    "skypilot",
    "slurm",
)


class Unchecked(Exception):
    """The library is not here."""


def plans() -> Iterator[tuple[str, LaunchPlanResult]]:
    """(launcher, plan) of every launcher for every job; the tool computes each, nothing is written."""
    for launcher in LAUNCHERS:
        for job in JOBS:
            result = get_tool("launch_plan").call({**job, "launcher": launcher})
            assert isinstance(result, LaunchPlanResult)
            yield launcher, result


def _need(module: str) -> Any:
    if importlib.util.find_spec(module.partition(".")[0]) is None:
        raise Unchecked(module.partition(".")[0])
    return importlib.import_module(module)


def _fields_of(path: Path, *classes: str) -> set[str]:
    """Annotated names of the classes in a source file: for packages too heavy to import."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and (not classes or node.name in classes):
            found |= {
                item.target.id
                for item in node.body
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
            }
    return found


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise Unchecked(name)
    return Path(next(iter(spec.submodule_search_locations)))


def accelerate_yaml(text: str) -> str:
    """Accelerate's loader, which refuses unknown keys. Returns what read it; raises Unchecked where it is not
    installed.
    """
    module = _need("accelerate.commands.config.config_args")
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as file:
        file.write(text)
    config = module.load_config_from_file(file.name)
    assert config.num_processes == yaml.safe_load(text)["num_processes"]
    return "accelerate"


def deepspeed_json(text: str) -> str:
    """DeepSpeed's ZeRO and precision config models, which refuse unknown keys. Raises Unchecked where it is not
    installed.
    """
    data = json.loads(text)
    zero = _need("deepspeed.runtime.zero.config")
    zero.DeepSpeedZeroConfig(**data["zero_optimization"])
    known = importlib.import_module("deepspeed.runtime.constants")
    names = {str(value) for key, value in vars(known).items() if key.isupper()}
    assert set(data) - {"zero_optimization"} <= names, set(data) - names
    return "deepspeed"


def trainer_flags(text: str) -> str:
    """TRL's and Transformers' dataclass parser on the flags of train.py."""
    trl, transformers = _need("trl"), _need("transformers")
    flags = _flags_after(text, "train.py")
    flags = [flag for flag in flags if flag != "--deepspeed" and not flag.endswith("ds_config.json")]
    parser = transformers.HfArgumentParser((trl.ScriptArguments, trl.SFTConfig, trl.ModelConfig))
    # Only names and types are of interest: this machine has no GPU for bf16 to be allowed on.
    parser.parse_args_into_dataclasses([*flags, "--use_cpu", "true"])
    return "trl"


def torchrun_flags(text: str) -> str:
    """Torchrun's own argparse, which exits (SystemExit) on unknown flags. Raises Unchecked where torch is not
    installed.
    """
    run = _need("torch.distributed.run")
    words = _words(text)
    start = words.index("torchrun") + 1
    parsed = run.get_args_parser().parse_args([word.replace("$MASTER_ADDR", "node0") for word in words[start:]])
    assert parsed.training_script in ("train.py", "torchtitan.train")
    return "torch"


def titan_flags(text: str) -> str:
    """Torchtitan's config dataclasses and registered configurations, read from its source."""
    root = _package("torchtitan")
    sections = {
        "training": _fields_of(root / "config" / "configs.py", "TrainingConfig"),
        "parallelism": _fields_of(root / "config" / "configs.py", "ParallelismConfig"),
        "compile": _fields_of(root / "config" / "configs.py", "CompileConfig"),
        "checkpoint": set().union(*(_fields_of(file) for file in (root / "components" / "checkpointer").glob("*.py"))),
    }
    flags = _flags_after(text, "torchtitan.train")
    module, config = flags[flags.index("--module") + 1], flags[flags.index("--config") + 1]
    registry = (root / "models" / module / "config_registry.py").read_text(encoding="utf-8")
    assert f"def {config}(" in registry, config
    for flag in flags:
        if flag.startswith("--") and "." in flag:
            section, _, name = flag[2:].partition(".")
            assert name in sections[section], flag
    return "torchtitan"


def axolotl_yaml(text: str) -> str:
    """Axolotl's schema fields, read from its source. AssertionError with the keys it lacks; Unchecked where not
    installed.
    """
    root = _package("axolotl") / "utils" / "schemas"
    known: set[str] = set()
    for file in root.glob("*.py"):
        known |= _fields_of(file)
    data = yaml.safe_load(text)
    assert set(data) <= known, set(data) - known
    assert set(data.get("fsdp_config", {})) <= _fields_of(root / "fsdp.py", "FSDPConfig")
    return "axolotl"


def llamafactory_yaml(text: str) -> str:
    """LLaMA-Factory's argument dataclasses (its own and the Trainer's)."""
    transformers = _need("transformers")
    root = _package("llamafactory") / "hparams"
    known = set(transformers.Seq2SeqTrainingArguments.__dataclass_fields__)
    for file in root.glob("*_args.py"):
        known |= _fields_of(file)
    data = yaml.safe_load(text)
    assert set(data) <= known, set(data) - known
    return "llamafactory"


def sky_yaml(text: str) -> str:
    """SkyPilot's JSON schemas of a task and its resources. Raises ValidationError, or Unchecked where not installed."""
    jsonschema = _need("jsonschema")
    schemas = _sky_schemas()
    data = yaml.safe_load(text)
    jsonschema.validate(data, schemas.get_task_schema())
    jsonschema.validate(data["resources"], schemas.get_resources_schema())
    return "skypilot"


def _sky_schemas() -> Any:
    _package("sky")
    try:
        return importlib.import_module("sky.utils.schemas")
    except ImportError as error:
        raise Unchecked(f"sky ({error})") from None


def shell(text: str) -> str:
    """Bash's parser (bash -n), which runs nothing. Raises CalledProcessError for what it cannot read."""
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    return "bash"


def python_source(text: str) -> str:
    """Python's own parser; nothing is run. Raises SyntaxError."""
    ast.parse(text)
    return "python"


def _words(text: str) -> list[str]:
    return text.replace("\\\n", " ").replace('"', "").split()


def _flags_after(text: str, name: str) -> list[str]:
    words = _words(text)
    return words[words.index(name) + 1 :]


def _checks(launcher: str, path: str, text: str) -> list[Callable[[str], str]]:
    if path.startswith("accelerate"):
        return [accelerate_yaml]
    if path == "ds_config.json":
        return [deepspeed_json]
    if path == "axolotl.yaml":
        return [axolotl_yaml]
    if path == "llamafactory.yaml":
        return [llamafactory_yaml]
    if path == "task.yaml":
        return [sky_yaml]
    if path == "train.py":
        return [python_source]
    if path in ("run.sh", "train.sbatch"):
        found: list[Callable[[str], str]] = [shell]
        if "torchrun " in text and "axolotl" not in text:
            found.append(torchrun_flags)
        if "torchtitan.train" in text:
            found.append(titan_flags)
        elif "train.py" in text:
            found.append(trainer_flags)
        return found
    return []


def main() -> None:
    """Check every file; print failures, what was unchecked, and the lines to record. Exits 1 where a file
    was refused.
    """
    passed: dict[str, set[str]] = {}
    missing: set[str] = set()
    failed = 0
    for launcher, result in plans():
        os.chdir(tempfile.mkdtemp())  # so that files find each other by name
        for file in result.files:
            Path(file.path).write_text(file.text, encoding="utf-8")
        for file in result.files:
            for check in _checks(launcher, file.path, file.text):
                try:
                    passed.setdefault(file.path, set()).add(check(file.text))
                except Unchecked as error:
                    missing.add(f"{file.path}: {error} is not installed")
                except (Exception, SystemExit) as error:
                    failed += 1
                    sys.stdout.write(f"FAILED {launcher} {file.path} {check.__name__}: {error!s:.300}\n")
    for line in sorted(missing):
        sys.stdout.write(f"unchecked {line}\n")
    for path, names in sorted(passed.items()):
        versions = ", ".join(f"{name} {_version(name)}".strip() for name in sorted(names))
        sys.stdout.write(f'    "{path}": "{versions}",\n')
    sys.exit(1 if failed else 0)


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


if __name__ == "__main__":
    main()
