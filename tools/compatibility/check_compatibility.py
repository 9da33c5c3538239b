"""``check_compatibility``: does this card run with this driver, CUDA, PyTorch, library, number format and attention?"""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from knowledge.compatibility import Origin, capabilities, cuda_releases, torch_releases, version
from knowledge.gpus import all_gpus, find_gpu
from knowledge.types import Gpu
from tools.compatibility.errors_seen import Meaning, capability_in, meaning
from tools.compatibility.rules import ATTENTIONS, PRECISIONS, Check, Setup, checks, newest_wheel
from tools.compatibility.versions import Stack, known_torch, parse_cuda, parse_driver, parse_stack
from tools.errors import BadValue, MissingValue, UnknownName, nearest
from tools.registry import tool
from tools.result import Assumption, Column, Fact, SourceRef, Table, ToolResult, Warn

Outcome = Literal["works", "does_not_work", "unknown"]
_NAMES = {
    "minimum_cuda": "CUDA", "minimum_driver": "driver", "minimum_rocm": "ROCm", "minimum_torch": "PyTorch",
}  # fmt: skip
_MARK = {True: "yes", False: "no", None: "not decided"}


class CheckCompatibilityInput(BaseModel):
    """Any part of a software stack and a card; what is not said is answered with the minimum."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    gpu: str | None = Field(default=None, description="Card, e.g. 'RTX 5090', 'V100', 'MI300X'.")
    framework: str | None = Field(
        default=None, description="PyTorch with its version and wheel ('torch 2.6+cu124') and libraries (bitsandbytes)."
    )
    cuda: str | None = Field(default=None, description="CUDA version, e.g. 12.4 or cu128.")
    driver: str | None = Field(default=None, description="NVIDIA driver, e.g. 535 or 570.124.06.")
    precision: str | None = Field(default=None, description="fp32, tf32, fp16, bf16, fp8, mxfp8, nvfp4, int8, nf4.")
    attention: str | None = Field(default=None, description="flash, flash3, sdpa, xformers or eager.")
    error: str | None = Field(default=None, description="The message that was printed, pasted.", max_length=100_000)


class CheckCompatibilityResult(ToolResult):
    """Whether it works, the minimum versions and the fix."""

    outcome: Outcome
    failing: list[str] = Field(default_factory=list, description="The checks that failed.")
    fixes: list[str] = Field(default_factory=list)
    install_command: str | None = None


@tool(
    "check_compatibility",
    examples=[
        {"gpu": "RTX 5090", "framework": "torch 2.6+cu124"},
        {"gpu": "V100", "precision": "bf16", "attention": "flash"},
        {"driver": "535", "cuda": "12.8"},
    ],
)
def check_compatibility(given: CheckCompatibilityInput) -> CheckCompatibilityResult:
    """Does it run together: GPU architecture, driver, CUDA, PyTorch wheel, library, number format, attention kernel.

    Each pair is checked against a dated fact with its source: compute capability and the kernels in a wheel, the
    lowest driver of a CUDA version, the chips with bf16, fp8 or FlashAttention. Driver, toolkit and wheel runtime are
    three versions: a wheel needs only a driver new enough. Not covered: Windows and Jetson builds, nightly wheels.
    """
    setup, notes = _setup(given)
    found = list(checks(setup))
    said = meaning(given.error) if given.error else None
    failing = [check for check in found if check.ok is False]
    outcome: Outcome = "does_not_work" if failing or said else "unknown" if not found else "works"
    if outcome == "works" and all(check.ok is None for check in found):
        outcome = "unknown"
    result = CheckCompatibilityResult(
        assumptions=notes, outcome=outcome, failing=[check.what for check in failing], fixes=_fixes(failing, said)
    )
    _facts(result, setup, outcome)
    result.sources = _sources(found)
    if found:
        result.tables.append(_table(found))
    result.warnings = _warnings(found, setup)
    _say(result, setup, found, failing, said)
    return result


def _setup(given: CheckCompatibilityInput) -> tuple[Setup, list[Assumption]]:
    if not any((given.gpu, given.framework, given.cuda, given.driver, given.error)):
        raise MissingValue(
            "missing_argument", "Name a card, a driver, a CUDA version or a framework.", field="gpu",
            hint="E.g. gpu='RTX 5090', framework='torch 2.6+cu124'.",
        )  # fmt: skip
    stack = parse_stack(given.framework) if given.framework else Stack()
    notes = []
    if stack.torch:
        known_torch(stack.torch)
    gpu: Gpu | None = None
    named = capability_in(given.error or "")
    if given.gpu:
        match = find_gpu(given.gpu)
        gpu = match.value
        if match.note:
            notes.append(Assumption(name="gpu", value=gpu.id, why=match.note, argument="gpu"))
    elif named:
        gpu = _gpu_in(given.error or "", named)
        if gpu:
            why = f"a card of the architecture that the message names ({named})"
            notes.append(Assumption(name="gpu", value=gpu.id, why=why, argument="gpu"))
    setup = Setup(
        gpu=gpu,
        stack=stack,
        cuda=parse_cuda(given.cuda) if given.cuda else None,
        driver=parse_driver(given.driver) if given.driver else None,
        precision=_choice("precision", given.precision, PRECISIONS, "precision"),
        attention=_choice("attention", given.attention, ATTENTIONS, "attention"),
    )
    if stack.torch and not stack.wheel_cuda and not setup.cuda and (gpu is None or gpu.vendor == "NVIDIA"):
        why = f"what `pip install torch` gives for {stack.torch} on Linux"
        notes.append(Assumption(name="cuda", value=setup.runtime, why=why, argument="cuda"))
    return setup, notes


def _gpu_in(error: str, capability: str) -> Gpu | None:
    """The card that a message names, else any of its architecture."""
    name = re.search(r"NVIDIA (?:GeForce )?([\w ]{2,40}?) with CUDA capability", error)
    if name:
        try:
            return find_gpu(name[1]).value
        except UnknownName:
            pass
    return next((each for each in all_gpus() if each.compute_capability == capability), None)


def _choice(field: str, asked: str | None, aliases: dict[str, str], kind: str) -> str | None:
    if asked is None:
        return None
    name = aliases.get(asked.casefold(), asked.casefold())
    known = capabilities(kind)
    if name not in known:
        raise BadValue(
            "not_a_choice", f"{field!r} cannot be {asked[:40]!r}.", field=field,
            hint="One of: " + ", ".join(known) + ".", candidates=nearest(name, known) or list(known)[:4],
        )  # fmt: skip
    return name


def _fixes(failing: list[Check], said: Meaning | None) -> list[str]:
    fixes = [check.fix for check in failing if check.fix]
    if said is not None:
        fixes.append(said.fix)
    return list(dict.fromkeys(fixes))


def _facts(result: CheckCompatibilityResult, setup: Setup, outcome: Outcome) -> None:
    gpu, chip = setup.gpu, setup.chip
    about = [gpu.id] if gpu else []
    result.facts.append(
        Fact(id="outcome", name="outcome", value=outcome, kind="quoted", label="does it work", about=about)
    )
    minimums = []
    if chip is not None and gpu is not None:
        minimums = [
            ("minimum_cuda", "lowest CUDA", chip.cuda), ("minimum_driver", "lowest driver", chip.driver),
            ("minimum_rocm", "lowest ROCm", chip.rocm), ("minimum_torch", "lowest PyTorch", chip.torch),
        ]  # fmt: skip
        result.facts.append(
            Fact(id="architecture", name="architecture", value=f"{chip.name} ({gpu.compute_capability})", kind="quoted",
                 label="architecture", about=about, as_of=gpu.as_of, basis=gpu.source)
        )  # fmt: skip
    for name, label, value in minimums:
        if value and chip is not None and gpu is not None:
            result.facts.append(
                Fact(id=name, name=name, value=value, kind="quoted", label=f"{label} for {gpu.id}", about=about,
                     basis=f"{chip.origin.id} ({chip.origin.basis})", as_of=chip.origin.as_of)
            )  # fmt: skip
    rule = next((rule for rule in cuda_releases() if rule.version == setup.runtime), None)
    if rule is not None and (gpu is None or gpu.vendor == "NVIDIA"):
        for name, label, value in (
            ("cuda_minimum_driver", f"lowest driver that runs CUDA {rule.version}", rule.minimum),
            ("cuda_native_driver", f"driver that CUDA {rule.version} ships with", rule.native),
        ):
            result.facts.append(
                Fact(id=name, name=name, value=value, kind="quoted", label=label, basis=rule.origin.id,
                     as_of=rule.origin.as_of)
            )  # fmt: skip
    wheel = newest_wheel(setup) if gpu is None or gpu.vendor == "NVIDIA" else None
    if wheel and (gpu is not None or setup.driver):
        tag = "cu" + wheel[1].replace(".", "")
        command = f"pip install torch=={wheel[0]}.*, the {tag} build (PyTorch's install page names its index)"
        result.install_command = command
    elif gpu is not None and gpu.vendor == "AMD":
        newest = torch_releases()[-1]
        command = f"pip install torch, the rocm{newest.rocm} build (PyTorch's install page names its index)"
        result.install_command = command
    if result.install_command:
        result.facts.append(
            Fact(id="install_command", name="install_command", value=result.install_command, kind="quoted",
                 label="newest wheel that this card and driver run", as_of=torch_releases()[-1].origin.as_of)
        )  # fmt: skip


def _sources(found: list[Check]) -> list[SourceRef]:
    origins = {check.origin.id: check.origin for check in found if check.origin.url}
    return [SourceRef(id=o.id, title=o.title, as_of=o.as_of, url=o.url) for o in origins.values()]


def _table(found: list[Check]) -> Table:
    rows: list[list[float | int | str | bool | None]] = [
        [check.what, _MARK[check.ok], check.have, check.need, check.fix, _words(check.origin)] for check in found
    ]
    return Table(
        id="checks",
        title="What was checked",
        columns=[
            Column(key="what", label="check"), Column(key="ok", label="works"), Column(key="have", label="with"),
            Column(key="need", label="needs"), Column(key="fix", label="remark"), Column(key="source", label="source"),
        ],
        rows=rows,
    )  # fmt: skip


def _words(origin: Origin) -> str:
    recalled = "recalled, " if origin.basis == "recalled" else ""
    return f"{recalled}{origin.id}, {origin.as_of}"


def _warnings(found: list[Check], setup: Setup) -> list[Warn]:
    warnings = []
    recalled = sorted({check.what for check in found if check.origin.basis == "recalled"})
    if recalled:
        warnings.append(
            Warn(code="recalled_fact", text="From memory, not read in a source: " + ", ".join(recalled) + ".")
        )
    if setup.chip and setup.chip.torch_last_cuda:
        warnings.append(
            Warn(code="chip_leaves_support",
                 text=f"{setup.chip.name} lives on PyTorch's CUDA {setup.chip.torch_last_cuda} wheels, which PyTorch "
                 "plans to end with release 2.15.")
        )  # fmt: skip
    return warnings


def _agreement(found: list[Check]) -> str:
    """What works with what: the named libraries, kernels and formats, else the versions."""
    passed = [check for check in found if check.ok]
    named = [check for check in passed if ": " in check.what]
    if named:
        verb = "works" if len(named) == 1 else "work"
        return f"Yes, {' and '.join(check.what.partition(': ')[2] for check in named)} {verb} with {named[0].have}"
    return f"Yes, {' and '.join(passed[0].have.split(', '))} go together" if passed else "Yes, it works"


def _refusal(check: Check) -> str:
    """What does not go with what, and what it needs."""
    kind, _, name = check.what.partition(": ")
    pair = " and ".join(check.have.split(", "))
    if name:
        return f"{name} does not run on {check.have}: it needs {check.need}."
    if pair == check.have:
        return f"{kind} do not go together ({check.have}): {check.need} is needed."
    return f"{pair} do not go together: {check.need} is needed."


def _say(
    result: CheckCompatibilityResult, setup: Setup, found: list[Check], failing: list[Check], said: Meaning | None
) -> None:
    gpu = setup.gpu
    if failing:
        first = failing[0]
        result.verdict = f"No: {_refusal(first)}"
    elif said is not None:
        result.verdict = f"The message means: {said.cause}."
    elif result.outcome == "works":
        limits = [check for check in found if check.fix]
        result.verdict = _agreement(found) + (", with a remark below." if limits else ".")
        result.next_steps += [check.fix for check in limits]
    elif gpu is not None:
        parts = [
            f"{_NAMES.get(fact.name, fact.label or fact.name)} [[{fact.id}]]"
            for fact in result.facts
            if fact.name.startswith("minimum_")
        ]
        told = ", ".join(parts[:-1]) + " and " * bool(parts[:-1]) + "".join(parts[-1:])
        result.verdict = f"{gpu.id} needs {told}, or later." if parts else "No fact decides this."
    else:
        result.verdict = "No fact that I hold decides this; name the card as well."
    if said is not None and failing:
        result.next_steps.append(f"The message means: {said.cause}.")
    result.next_steps += result.fixes
    if result.install_command and (failing or said or result.outcome == "unknown"):
        result.next_steps.append("Install: [[install_command]]")
    if setup.driver or (said and "driver" in said.cause):
        result.next_steps.append(
            "Three versions live side by side: nvidia-smi prints the newest CUDA that the driver supports, nvcc the "
            "toolkit, torch.version.cuda the wheel's own runtime. A wheel needs only the driver; nvcc is for builds."
        )
    if setup.gpu and version(setup.chip.cuda or "0") >= (12, 8) if setup.chip else False:
        result.next_steps.append(
            "Compiled extensions (flash-attn, bitsandbytes, xformers) must be new enough for this chip too; PyTorch's "
            "own SDPA needs no build."
        )
    result.suggestions += ["Which attention kernel should I use on it?", "Does it support fp8?"]
