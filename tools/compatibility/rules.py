"""The checks, one fact against another; each says what is there, what is needed, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from knowledge.compatibility import (
    Capability,
    Chip,
    Origin,
    TorchRelease,
    capabilities,
    chip,
    cuda_releases,
    torch_releases,
    version,
    wheel_capabilities,
)
from knowledge.types import Gpu
from tools.compatibility.versions import Stack

PRECISIONS = {
    "bf16_mixed": "bf16", "fp16_mixed": "fp16", "int4": "nf4", "fp4": "nf4", "qlora": "nf4", "4bit": "nf4",
    "8bit": "int8", "mxfp4": "nvfp4",
}  # fmt: skip
ATTENTIONS = {
    "flash2": "flash", "flash_attention_2": "flash", "flash-attn": "flash", "fa2": "flash", "fa3": "flash3",
    "flash_attention_3": "flash3", "flash-attn-3": "flash3",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Check:
    """One question and its answer: ``ok`` None where no fact decides."""

    what: str
    ok: bool | None
    have: str
    need: str
    fix: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Setup:
    """What was asked about, read."""

    gpu: Gpu | None
    stack: Stack
    cuda: str | None
    driver: str | None
    precision: str | None
    attention: str | None

    @property
    def capability(self) -> tuple[int, ...] | None:
        """Compute capability of an NVIDIA card as numbers, e.g. (12, 0)."""
        text = self.gpu.compute_capability if self.gpu else None
        if not text or not text.startswith("sm_"):
            return None
        digits = text[3:]
        return int(digits[:-1]), int(digits[-1])

    @property
    def chip(self) -> Chip | None:
        """What the knowledge base holds of the card's architecture; None without a card or where it holds nothing."""
        return chip(self.gpu.compute_capability) if self.gpu else None

    @property
    def runtime(self) -> str | None:
        """The CUDA that runs: the wheel's own, else the one named, else the default wheel of the release."""
        if self.stack.wheel_cuda or self.cuda:
            return self.stack.wheel_cuda or self.cuda
        found = release(self.stack.torch)
        return found.pypi if found else None


def checks(setup: Setup) -> Iterator[Check]:
    """Every check that the given facts allow, lazily: chip, driver, wheel, precision, attention, libraries.

    A card that is neither NVIDIA's, AMD's nor Apple's gets one check, without verdict. What was not given is not
    checked.
    """
    gpu = setup.gpu
    if gpu is not None and gpu.vendor not in ("NVIDIA", "AMD", "Apple"):
        origin = Origin("recalled", "from memory", "", gpu.as_of, "recalled")
        yield Check(
            f"{gpu.id} and PyTorch", None, gpu.vendor, "its vendor's plugin", "Ask the vendor's release notes.", origin
        )
        return
    if gpu is not None and gpu.vendor != "NVIDIA":
        yield from _not_nvidia(setup, gpu)
    else:
        yield from _chip_checks(setup)
        yield from _driver_checks(setup)
    yield from _torch_wheel(setup)
    for kind, name in (("precision", setup.precision), ("attention", setup.attention)):
        if name is not None:
            yield from _capability(setup, capabilities(kind)[name], kind)
    for library in setup.stack.libraries:
        yield from _capability(setup, capabilities("libraries")[library], "library")


def release(torch: str | None) -> TorchRelease | None:
    """The facts of a PyTorch release by its version as held ("2.7"); None where it was not given or is not held."""
    return next((found for found in torch_releases() if found.version == torch), None)


def newest_wheel(setup: Setup) -> tuple[str, str] | None:
    """The newest PyTorch and CUDA wheel that this card and driver run, preferring a driver-native CUDA."""
    capability = setup.capability
    for found in reversed(torch_releases()):
        # With no driver named, wheels of CUDA 12: they run on every driver since R525.
        usable = found.cuda if setup.driver else [cuda for cuda in found.cuda if cuda.startswith("12")]
        for cuda in reversed(usable):
            if capability and not _wheel_holds(found.version, cuda, capability):
                continue
            rule = next((rule for rule in cuda_releases() if rule.version == cuda), None)
            if setup.driver and rule and not _reaches(setup.driver, rule.minimum):
                continue
            return found.version, cuda
    return None


def _wheel_holds(torch: str, cuda: str, capability: tuple[int, ...]) -> bool:
    lowest, highest, _origin = wheel_capabilities(torch, cuda)
    return version(lowest) <= capability <= version(highest)


def _chip_checks(setup: Setup) -> Iterator[Check]:
    facts, gpu, cuda = setup.chip, setup.gpu, setup.runtime
    if facts is None or gpu is None:
        return
    name = f"{gpu.id} ({gpu.compute_capability})"
    if cuda and facts.cuda:
        ok = version(cuda) >= version(facts.cuda)
        fix = f"Use CUDA {facts.cuda} or later (a wheel such as cu{facts.cuda.replace('.', '')})."
        yield Check(
            "card and CUDA", ok, f"{name}, CUDA {cuda}", f"CUDA {facts.cuda} or later", "" if ok else fix, facts.origin
        )
        if facts.cuda_last and version(cuda) > version(facts.cuda_last):
            need = f"CUDA up to {facts.cuda_last}"
            fix = f"{facts.name} ended with CUDA {facts.cuda_last}: use PyTorch's cu126 wheels."
            yield Check("card and CUDA", False, f"{name}, CUDA {cuda}", need, fix, facts.origin)
    torch = setup.stack.torch
    if torch:
        ok = version(torch) >= version(facts.torch)
        fix = "" if ok else f"Use PyTorch {facts.torch} or later."
        yield Check(
            "card and PyTorch", ok, f"{name}, PyTorch {torch}", f"PyTorch {facts.torch} or later", fix, facts.origin
        )
        if ok and cuda and setup.capability:
            lowest, highest, origin = wheel_capabilities(torch, cuda)
            holds = _wheel_holds(torch, cuda, setup.capability)
            need = f"a wheel with {gpu.compute_capability}; this one holds {lowest} to {highest}"
            yield Check("kernels in the wheel", holds, f"PyTorch {torch} cu{cuda.replace('.', '')}", need,
                        "" if holds else _wheel_fix(setup), origin)  # fmt: skip


def _wheel_fix(setup: Setup) -> str:
    found = release(setup.stack.torch)
    capability = setup.capability
    if found and capability:
        for cuda in found.cuda:
            if _wheel_holds(found.version, cuda, capability):
                return f"Install the cu{cuda.replace('.', '')} wheel of PyTorch {found.version}."
    newest = newest_wheel(setup)
    return f"Install PyTorch {newest[0]} with CUDA {newest[1]}." if newest else "No PyTorch wheel holds this chip."


def _driver_checks(setup: Setup) -> Iterator[Check]:
    driver, facts = setup.driver, setup.chip
    if driver is None:
        return
    if facts is not None and facts.driver and setup.gpu:
        ok = _reaches(driver, facts.driver)
        yield Check("card and driver", ok, f"{setup.gpu.id}, driver {driver}", f"driver {facts.driver} or later",
                    "" if ok else f"Update the driver to R{facts.driver} or later (kernel modules reload: a reboot).",
                    facts.origin)  # fmt: skip
    cuda = setup.runtime
    rule = next((rule for rule in cuda_releases() if rule.version == cuda), None)
    if rule is None:
        return
    ok = _reaches(driver, rule.minimum)
    need = f"driver {rule.minimum} or later ({rule.native} is the one it ships with)"
    if not ok:
        major = version(rule.native)[0]
        fix = f"Update the driver to R{major} or later, or use a wheel or container of an older CUDA major version."
    elif not _reaches(driver, rule.native):
        fix = (
            f"It runs by minor-version compatibility; features and PTX that need R{version(rule.native)[0]} do not. "
            "Upgrading the toolkit alone needs no reboot; a new driver does."
        )
    else:
        fix = ""
    yield Check("driver and CUDA", ok, f"driver {driver}, CUDA {cuda}", need, fix, rule.origin)


def _reaches(driver: str, needed: str) -> bool:
    """Whether a driver is at least the needed one; a bare branch ("535") counts as its last release."""
    have = version(driver)
    return have >= version(needed)[: len(have)]


def _torch_wheel(setup: Setup) -> Iterator[Check]:
    found = release(setup.stack.torch)
    cuda = setup.stack.wheel_cuda or setup.cuda
    if found is None or cuda is None or (setup.gpu is not None and setup.gpu.vendor != "NVIDIA"):
        return
    ok = cuda in found.cuda
    tags = ", ".join("cu" + each.replace(".", "") for each in found.cuda)
    if ok:
        fix = ""
    elif setup.stack.wheel_cuda:
        fix = f"PyTorch {found.version} has wheels for {tags}."
    else:
        fix = f"A wheel brings its own CUDA ({tags}): the installed toolkit matters only for builds from source."
    # A toolkit beside the wheel is not at odds with it, so a mismatch is a remark, not a failure.
    verdict: bool | None = ok if setup.stack.wheel_cuda else (ok or None)
    yield Check(
        "PyTorch and CUDA wheel", verdict, f"PyTorch {found.version}, CUDA {cuda}", f"one of {tags}", fix, found.origin
    )


def _not_nvidia(setup: Setup, gpu: Gpu) -> Iterator[Check]:
    facts = setup.chip
    asked = setup.cuda or setup.stack.wheel_cuda
    if asked:
        other = "ROCm" if gpu.vendor == "AMD" else "Metal (PyTorch's mps device, or MLX)"
        fix = f"Install the {'ROCm' if gpu.vendor == 'AMD' else 'macOS'} build of PyTorch."
        origin = facts.origin if facts else Origin("recalled", "from memory", "", gpu.as_of, "recalled")
        yield Check("card and CUDA", False, f"{gpu.id}, CUDA {asked}", other, fix, origin)
    if facts is None:
        return
    if setup.stack.torch:
        ok = version(setup.stack.torch) >= version(facts.torch)
        need = f"PyTorch {facts.torch} or later on ROCm {facts.rocm} or later"
        fix = "" if ok else f"Use PyTorch {facts.torch} or later."
        yield Check("card and PyTorch", ok, f"{gpu.id}, PyTorch {setup.stack.torch}", need, fix, facts.origin)
    if setup.stack.wheel_rocm and facts.rocm:
        ok = version(setup.stack.wheel_rocm) >= version(facts.rocm)
        fix = "" if ok else f"Use ROCm {facts.rocm} or later."
        yield Check(
            "card and ROCm",
            ok,
            f"{gpu.id}, ROCm {setup.stack.wheel_rocm}",
            f"ROCm {facts.rocm} or later",
            fix,
            facts.origin,
        )


def _capability(setup: Setup, row: Capability, kind: str) -> Iterator[Check]:
    gpu = setup.gpu
    if gpu is None:
        return
    note = f" ({row.note})" if row.note else ""
    instead = f"Use {row.instead} instead." if row.instead else f"It does not run on {gpu.id}."
    have = f"{gpu.id} ({gpu.compute_capability})"
    if gpu.vendor == "NVIDIA":
        ok, need = _on_nvidia(setup, row)
    elif gpu.vendor == "AMD":
        ok = any((gpu.compute_capability or "").startswith(target) for target in row.amd)
        need = "one of " + ", ".join(row.amd) if row.amd else "an NVIDIA card"
    else:
        ok = row.apple or row.name in ("fp32", "fp16", "bf16", "sdpa", "eager")
        need = "Apple silicon support"
        if ok and row.apple and row.name != "mlx":
            instead = "Only recent releases do; MLX is the usual way to fine-tune on a Mac."
    fix = "" if ok and gpu.vendor != "Apple" else instead if not ok or row.apple else ""
    yield Check(f"{kind}: {row.words}", ok, have, need + note, fix, row.origin)
    if ok and row.cuda and setup.runtime and version(setup.runtime) < version(row.cuda):
        fix = f"Use CUDA {row.cuda} or later."
        yield Check(
            f"{row.words} and CUDA", False, f"CUDA {setup.runtime}", f"CUDA {row.cuda} or later", fix, row.origin
        )
    if row.torch and setup.stack.torch and version(setup.stack.torch) < version(row.torch):
        fix = f"Use PyTorch {row.torch} or later, or an older {row.words}."
        have = f"PyTorch {setup.stack.torch}"
        yield Check(f"{row.words} and PyTorch", False, have, f"PyTorch {row.torch} or later", fix, row.origin)


def _on_nvidia(setup: Setup, row: Capability) -> tuple[bool | None, str]:
    capability = setup.capability
    if row.nvidia is None:
        return False, "Apple silicon" if row.apple else "another vendor's card"
    if capability is None:
        return None, f"compute capability {row.nvidia} or later"
    if f"{capability[0]}.{capability[1]}" in row.partial:
        return None, f"full support from data-centre chips of capability {row.nvidia}; here in part"
    if row.nvidia_last and capability > version(row.nvidia_last):
        return False, f"compute capability {row.nvidia} to {row.nvidia_last}"
    return capability >= version(row.nvidia), f"compute capability {row.nvidia} or later"
