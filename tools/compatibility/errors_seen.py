"""Messages that stacks print when versions do not match, and what each means."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Meaning:
    """A message recognised: its cause and what to do."""

    cause: str
    fix: str


# (pattern, cause, fix); the first that matches counts.
_KNOWN = (
    (r"no kernel image is available|is not compatible with the current pytorch installation",
     "the installed PyTorch wheel holds no kernels for this card's architecture",
     "Install a wheel that does (see install command); rebuild flash-attn and other compiled extensions after it."),
    (r"driver.{0,60}(?:too old|insufficient)|found version (\d{4,5})",
     "the NVIDIA driver is older than the CUDA of the wheel or container",
     "Update the driver on the host, or use a wheel or image of an older CUDA; reinstalling PyTorch does nothing."),
    (r"flashattention only supports ampere",
     "FlashAttention-2 needs compute capability 8.0 (Ampere) or later", "Use SDPA: attn_implementation=\"sdpa\"."),
    (r"doesn't support bf16|bf16.{0,40}not supported|bfloat16 is only supported",
     "the card has no bf16 hardware", "Use fp16 with loss scaling (fp16=True)."),
    (r"flash_attn.{0,200}undefined symbol|undefined symbol.{0,200}flash",
     "flash-attn was built for another PyTorch",
     "Reinstall it against this PyTorch: pip install flash-attn --no-build-isolation."),
    (r"no gpu found|torch not compiled with cuda|cuda.{0,20}is_available\(?\)?.{0,10}false",
     "this PyTorch sees no CUDA: a CPU-only wheel, no driver, or a card without CUDA",
     "Check nvidia-smi, then install a CUDA wheel; on a Mac use MPS or MLX."),
    (r"nvidia-smi has failed|driver/library version mismatch|nvml: driver",
     "the loaded kernel module and the installed driver differ", "Reload the modules or reboot after a driver update."),
    (r"nccl.{0,80}(?:hang|stuck|p2p)|all_?reduce.{0,40}(?:hang|stuck)",
     "GeForce cards have no peer-to-peer over PCIe, which some drivers report wrongly",
     "Set NCCL_P2P_DISABLE=1, and update the driver (R570 or later)."),
)  # fmt: skip


def meaning(text: str) -> Meaning | None:
    """What a pasted message says, or None where none is recognised."""
    flat = " ".join(text.casefold().split())[:20000]
    for pattern, cause, fix in _KNOWN:
        if re.search(pattern, flat):
            return Meaning(cause, fix)
    return None


def capability_in(text: str) -> str | None:
    """The NVIDIA architecture that a pasted message names, as PyTorch prints it (sm_120); None where it names none."""
    found = re.search(r"capability (sm_\d{2,3})|\b(sm_1[02]\d)\b", text)
    return (found[1] or found[2]) if found else None
