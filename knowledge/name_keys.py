"""The one normaliser of names: what people write -> keys to look up. Pure; the words are in ``data/names.json``.

A model name becomes tokens ("Llama-3.1-70B-Instruct" -> llama 3.1 70b instruct), so that spelling, case, separators
and glued digits do not matter while every number does. A GPU name is split into card, memory and form. Instance and
link names are squashed to letters and digits.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

GRAMMAR: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "names.json").read_text(encoding="utf-8"))
MAX_NAME = 120  # characters; longer input is no name

_MODEL = GRAMMAR["models"]
_QUANTISED, _TUNING, _FILLER = (frozenset(_MODEL[word]) for word in ("quantised", "tuning", "filler"))
_QUANT_SUFFIX = re.compile(
    r"(?:^|[\s\-_.:(])(?:unsloth-bnb|bnb-4bit|[2-8]-?bit|i?q\d(?:_[a-z0-9]+)*|w\d+a\d+)(?=$|[\s\-_.:)])"
)
_QUANT_WORD = re.compile(
    r"(?<![a-z0-9])(?:" + "|".join(word for word in sorted(_QUANTISED, key=len, reverse=True)) + r")(?![a-z0-9])"
)
_MODEL_TOKEN = re.compile(
    r"\d+x\d+(?:\.\d+)?b?"  # 8x7b
    r"|[ae]\d+(?:\.\d+)?b(?![a-z0-9])"  # a3b active, e4b effective
    r"|\d+(?:\.\d+)?[bmkt](?:n|illion)?\d?(?![a-z0-9])"  # 70b, 125m, 7b1
    r"|\d+(?:\.\d+)*"
    r"|[a-z]+"
)
_SIZE = re.compile(r"\d{1,9}(?:\.\d{1,9})?[bmkt]\d?|\d{1,9}x\d{1,9}(?:\.\d{1,9})?b")
_ACTIVE = re.compile(r"[ae]\d+(?:\.\d+)?b")
_VERSION = re.compile(r"\d+(?:\.\d+)*")
_OWNED = re.compile(r"[\w.\-]+")
_LETTER = re.compile(r"[A-Za-z]")
_CONTEXT = re.compile(r"\d{1,9}k")  # "128k": a longer context of the same architecture
_DATE = re.compile(r"(?:0[1-9]|1[0-2])[0-3]\d|2[3-6](?:0[1-9]|1[0-2])|20\d{4,6}")

_GPU = GRAMMAR["gpus"]
_GPU_FILLER, _SXM_WORDS = frozenset(_GPU["filler"]), frozenset(_GPU["sxm_words"])
_GPU_MEMORY = re.compile(r"(?<![a-z0-9.])(\d{1,4}(?:\.\d+)?)\s*(?:gi?b?|gigs?|gigabytes?)(?![a-z0-9])")
_GPU_FORM = re.compile(r"(?<![a-z])(sxm|oam|nvl(?!\d)|pci\s?-?\s?e(?:xpress)?)(?![a-z])(?:\s?([2-6])(?!\d))?")
_MEMORY_SIZES = frozenset({4, 6, 8, 10, 11, 12, 16, 20, 22, 24, 32, 40, 48, 64, 72, 80, 94, 95, 96, 128, 141, 144, 180,
                           186, 192, 256, 288, 512})  # fmt: skip


def fold(text: str) -> str:
    """Case-folded, compatibility forms and digits of any script made plain, outer blanks off, at most MAX_NAME long."""
    text = unicodedata.normalize("NFKC", text[: 2 * MAX_NAME]).casefold()
    text = "".join(str(unicodedata.digit(c)) if c.isdigit() and not c.isascii() else c for c in text)
    return " ".join(text.split())[:MAX_NAME]


@dataclass(frozen=True, slots=True)
class ModelKey:
    """A model name as tokens; ``quantised`` when the name says that the weights are."""

    tokens: tuple[str, ...]
    quantised: bool

    @property
    def text(self) -> str:
        """The tokens with blanks between: what the table of names is asked for."""
        return " ".join(self.tokens)

    def without_size(self) -> tuple[float | None, ModelKey]:
        """(parameters as a count, the key without that token): 8e9 for "8b". (None, the key itself) where no size or
        more than one is stated.
        """
        size = [t for t in self.tokens if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?[bmt]", t)]
        if len(size) != 1:
            return None, self
        scale = {"m": 1e6, "b": 1e9, "t": 1e12}[size[0][-1]]
        return float(size[0][:-1]) * scale, ModelKey(tuple(t for t in self.tokens if t != size[0]), self.quantised)

    def with_size_last(self) -> ModelKey:
        """Words and versions first, then sizes: "70b llama" -> llama 70b."""
        sizes = [t for t in self.tokens if _SIZE.fullmatch(t) or _ACTIVE.fullmatch(t)]
        return ModelKey((*[t for t in self.tokens if t not in sizes], *sizes), self.quantised)

    def stripped(self) -> ModelKey:
        """Without words that do not change the architecture: instruct, chat, base, dates, context length, filler."""

        def idle(token: str) -> bool:
            dated = len(token) >= 4 and _DATE.fullmatch(token)
            return token in _TUNING | _FILLER or bool(dated) or bool(_CONTEXT.fullmatch(token))

        return ModelKey(tuple(token for token in self.tokens if not idle(token)), self.quantised)


def model_key(text: str) -> ModelKey:
    """The tokens of a model name, its owner ("meta-llama/") and quantisation suffix taken off."""
    name = fold(text).rsplit("/", 1)[-1] if _has_owner(text) else fold(text)
    without = _QUANT_WORD.sub(" ", _QUANT_SUFFIX.sub(" ", name))
    quantised = without != name
    plain = re.sub(r"(?<=\d)_(?=\d)", ".", without)
    plain = re.sub(r"(?<![a-z])v(?=\d)", "", plain)
    tokens = [t.rstrip("n") if re.fullmatch(r"[\d.]{1,20}bn", t) else t for t in _MODEL_TOKEN.findall(plain)]
    tokens = [re.sub(r"illion$", "", t) if t[0].isdigit() else t for t in tokens]
    joined: list[str] = []
    for token in tokens:
        if token in ("b", "bn", "billion") and joined and _VERSION.fullmatch(joined[-1]):
            joined[-1] += "b"
        elif re.fullmatch(r"\d{1,9}x\d{1,9}(?:\.\d{1,9})?", token):
            joined.append(token + "b")
        else:
            joined.append(token)
    kept = [t for t in joined if t not in _QUANTISED]
    return ModelKey(tuple(kept), quantised or len(kept) < len(joined))


def looser_model_keys(key: ModelKey) -> dict[str, str]:
    """Keys under which a model may be asked for with something left out -> what is left out."""
    size = [t for t in key.tokens if _SIZE.fullmatch(t)]
    active = [t for t in key.tokens if _ACTIVE.fullmatch(t)]
    version = [t for t in key.tokens if _VERSION.fullmatch(t)]
    out: dict[str, str] = {}
    for drop, what in (
        (active, "active"),
        (version, "version"),
        (active + version, "version"),
        (size + active, "size"),
        (size + active + version, "size and version"),
    ):
        rest = tuple(t for t in key.tokens if t not in drop)
        if drop and rest and any(t.isalpha() for t in rest) and rest != key.tokens:
            out.setdefault(" ".join(rest), what)
    for word in _MODEL["not_a_family"]:
        out.pop(word, None)
    return out


@dataclass(frozen=True, slots=True)
class GpuKey:
    """A GPU name split up: the card squashed to letters and digits, stated memory in GB or GiB, stated form."""

    card: str
    memory: float | None
    form: str | None
    memory_type: str | None
    socket: str | None = None  # "SXM5" where the generation of the form was written too


@lru_cache(maxsize=4096)
def gpu_key(text: str) -> GpuKey:
    """Read "NVIDIA A100-SXM4-80GB" -> (a100, 80, sxm); "a100 80" -> (a100, 80, none)."""
    name = re.sub(r"[_\-/,;:()\[\]]+", " ", fold(text))
    memory: float | None = None
    found = _GPU_MEMORY.search(name)
    if found:
        memory = float(found[1])
        name = name[: found.start()] + " " + name[found.end() :]
    found = re.search(r"(?<![a-z])(hbm2e|hbm2|hbm3e|hbm3)(?![a-z0-9])", name)
    memory_type = {"hbm2": "HBM2", "hbm2e": "HBM2e", "hbm3": "HBM3", "hbm3e": "HBM3e"}[found[1]] if found else None
    name = re.sub(r"(?<![a-z0-9])\d{2,4}\s?w(?:atts?)?(?![a-z0-9])", " ", name)
    form = socket = None
    found = _GPU_FORM.search(name)
    if found:
        form = "pcie" if found[1].startswith("pci") else found[1]
        socket = f"SXM{found[2]}" if form == "sxm" and found[2] else None
        name = name[: found.start()] + " " + name[found.end() :]
    words = name.split()
    if any(word in _SXM_WORDS for word in words) and len(words) > 1 and "spark" not in words:
        words, form = [word for word in words if word not in _SXM_WORDS], form or "sxm"
    kept = [word for word in words if word not in _GPU_FILLER] or words
    if memory is None and len(kept) > 1 and kept[-1].isdigit() and int(kept[-1]) in _MEMORY_SIZES:
        memory = float(kept.pop())
    card = re.sub(r"[^a-z0-9+]", "", "".join(kept))
    return GpuKey(card, memory, form, memory_type, socket)


def squash(text: str, kind: str) -> str:
    """Letters, digits and decimal points only, without this kind's filler words ("ND H100 v5" -> "ndh100v5")."""
    filler = GRAMMAR[kind]["filler"]
    name = re.sub(r"(?<=\d)\.0(?!\d)", "", fold(text))
    words = [word for word in re.split(r"[\s_\-/,()]+", name) if word not in filler] or [name]
    return re.sub(r"[^a-z0-9.]|(?<!\d)\.|\.(?!\d)", "", " ".join(words)).replace(" ", "")


def _has_owner(text: str) -> bool:
    """Whether this is "owner/name" rather than a name with a slash in it ("vit-b/16")."""
    owner, slash, name = text[: 2 * MAX_NAME].strip().partition("/")
    return bool(
        slash
        and not owner.startswith((".", "-"))
        and all(_OWNED.fullmatch(part) and _LETTER.search(part) for part in (owner, name))
    )
