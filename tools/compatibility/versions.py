"""Reading versions as people write them: "torch 2.4.1+cu121", "cu128", "driver 535.104", "CUDA 12.4"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from knowledge.compatibility import capabilities, cuda_releases, torch_releases
from tools.errors import BadValue, UnknownName, nearest
from tools.frameworks import counted_as

_TORCH_STACKS = (
    "hf", "transformers", "trl", "axolotl", "llama-factory", "torchtune", "torchtitan", "litgpt", "llm-foundry",
    "megatron", "nemo", "fms", "nanogpt", "accelerate", "peft", "lightning", "fsdp", "pytorch", "torch",
)  # fmt: skip
_FILLER = re.compile(r"v?\d|cu\d|rocm|cuda|with|and|wheel|build")
_ALIASES = {
    "bnb": "bitsandbytes", "flash-attention": "flash-attn", "flash_attn": "flash-attn", "te": "transformer-engine",
    "transformer_engine": "transformer-engine",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stack:
    """What a framework argument names: a PyTorch version, the CUDA or ROCm of its wheel, and libraries."""

    torch: str | None = None
    wheel_cuda: str | None = None
    wheel_rocm: str | None = None
    libraries: tuple[str, ...] = ()


def parse_stack(text: str) -> Stack:
    """A framework argument ("torch 2.4.1+cu121 bitsandbytes") as versions (PyTorch and CUDA as major.minor) and the
    libraries named; what it does not say is None. Raises UnknownName, with the nearest known, for a library that no
    facts are held on.
    """
    lowered = text.casefold()
    torch = re.search(r"(?:py)?torch(?:==|[\s=v-]*)(\d+\.\d+)", lowered)
    wheel = re.search(r"\+?cu(\d{2})(\d)\b", lowered)
    rocm = re.search(r"rocm\s*(\d+(?:\.\d+)+)", lowered)
    known = capabilities("libraries")
    libraries = []
    for word in re.split(r"[\s,;+&/]+", re.sub(r"==?\s*[\w.]+", " ", lowered)):
        name = _ALIASES.get(word, word)
        if name in known:
            libraries.append(name)
        elif re.match(r"[a-z]", name) and not _FILLER.match(name) and not _on_torch(name):
            raise UnknownName(
                "unknown_framework",
                f"I hold no compatibility facts on {word[:40]!r}.",
                field="framework",
                hint="Name PyTorch with its version (torch 2.7+cu128) or a library.",
                candidates=nearest(name, [*known, *_TORCH_STACKS]) or ["torch 2.7+cu128", "bitsandbytes"],
            )
    return Stack(
        torch[1] if torch else None,
        f"{wheel[1]}.{wheel[2]}" if wheel else None,
        rocm[1] if rocm else None,
        tuple(dict.fromkeys(libraries)),
    )


def _on_torch(name: str) -> bool:
    """Whether this is a training stack on PyTorch, whose version decides; it adds no condition of its own."""
    return name.rstrip("0123456789.") in _TORCH_STACKS or counted_as(name) not in (None, "maxtext")


def parse_cuda(text: str | float) -> str:
    """A CUDA version as "major.minor", from 12.8, "cu128" or "CUDA 12"; a missing minor is 0. Raises BadValue where
    there is none or its major is outside 8 to 15; whether facts are held on it is not asked.
    """
    found = re.search(r"cu(\d{2})(\d)\b|(\d{1,2})(?:\.(\d{1,2}))?", str(text).casefold())
    if not found:
        raise BadValue("not_a_version", f"{text!r} is not a CUDA version.", field="cuda", candidates=["12.8", "13.0"])
    major, minor = (found[1], found[2]) if found[1] else (found[3], found[4] or "0")
    known = [release.version for release in cuda_releases()]
    if not 8 <= int(major) <= 15:
        raise BadValue("out_of_range", f"There is no CUDA {major}.{minor}.", field="cuda", candidates=known[-3:])
    return f"{int(major)}.{int(minor)}"


def parse_driver(text: str | float) -> str:
    """The first NVIDIA driver version in the text, as written there: "570" or "535.104.05". Raises BadValue where no
    number of three digits begins one.
    """
    found = re.search(r"\d{3}(?:\.\d+)*", str(text))
    if not found:
        raise BadValue(
            "not_a_version", f"{text!r} is not an NVIDIA driver version.", field="driver", candidates=["570", "580"],
            hint="nvidia-smi prints it in its first line.",
        )  # fmt: skip
    return found[0]


def known_torch(version: str) -> str:
    """``version`` itself ("2.7", major.minor). Raises BadValue, with the nearest held, where no facts are
    held on it.
    """
    known = [release.version for release in torch_releases()]
    if version not in known:
        raise BadValue(
            "unknown_version", f"I hold no facts on PyTorch {version}.", field="framework",
            candidates=nearest(version, known) or [known[-1]],
        )  # fmt: skip
    return version
