"""Spotting the catalogue's names in a text: models, GPUs, instances, links and providers, and technical terms.

The number check uses it twice: digits inside a name are not quantities, and a number must stand beside the entity it
belongs to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from knowledge.names import all_names
from knowledge.store import connection

KINDS = ("gpus", "models", "instances", "links")
MAX_WORDS = 9
_WORD = re.compile(r"[A-Za-z0-9]+(?:\.[A-Za-z0-9]+)*\+?")
# How a name may be joined on: "8xH100" is a count and a name.
_COUNTED_NAME = re.compile(r"\dx[a-z]", re.IGNORECASE)
_COUNT_PREFIX = re.compile(r"^(\d+)x(?=[a-z])")
_ONLY_SIZE = re.compile(r"^\d+(?:\.\d+)?\s*[kmbt]?$")
_SEPARATORS = re.compile(r"[\s\-_/]*")

# Names of formats, methods, standards and generations that hold digits and are no quantities.
_TERMS = re.compile(
    r"""(?<![A-Za-z0-9.,])(?:
      zero[\ -]?(?:stage[\ -]?)?[0-3](?!\d|\.\d)|zero\+\+|stage[\ -][1-3](?=[\s,.;:)]) |
      (?:bf|fp|tf|int|uint|nf|mxfp|mxint|nvfp|float|bfloat)[\ -]?(?:4|6|8|16|19|32|64)(?:_?e\dm\d\w*)?(?:[\ _-]mixed)? |
      e[2-8]m[1-7](?:fn)? | (?:1|2|3|4|5|6|8|16|32|64)[\ -]bits? |
      (?:1|2|3|4|5)[\ -]?d(?=[\ -](?:parallel\w*|layout|mesh|torus|tensor)) | 1f1b | 24/7 | 2:4(?=\s+spars) |
      q[2-8](?:_[k0-9])?(?:_[sml01])? | sm_?\d{2,3}a? | hbm[1-4]?e? | gddr[5-7]x? | lpddr[45]x? | ddr[3-5] |
      pci(?:e|[\ -]express)[\ -]?(?:gen[\ -]?)?[3-6](?:\.0)?(?:[\ -]?x(?:1|4|8|16))?(?!\d|\.\d) |
      gen[\ -]?[3-6](?!\d|\.\d) |
      nvlink[\ -]?[1-6](?:\.0)?(?!\d|\.\d) | nvswitch[\ -]?[1-6]? | xgmi[\ -]?[1-4]? | rocev?2? | sxm[2-6]? | oam |
      (?:hdr|ndr|xdr|edr|fdr)[\ -]?(?:100|200|400|800)? | cx[\ -]?[4-9] | connectx[\ -]?[4-9] | bluefield[\ -]?[2-4] |
      flash[\ -]?(?:attention|attn)?[\ -]?v?[1-4] | fa[1-4] | fsdp[12]? | mig\ \dg\.\d+gb |
      adam(?:w)?[\ _-]?(?:8|4|32)bit |
      efa(?:[\ -]?v[1-4])? | gpudirect | s3 | ec2 | k8s | x86(?:_64)? | arm64 | co2e? | r2 | l[1-3]\ cache | h2d | d2h |
      rfc\ ?\d+ | v[1-9](?:\.0)?(?!\d|\.\d)
    )(?![A-Za-z0-9])""",
    re.IGNORECASE | re.VERBOSE,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mention:
    """A catalogue name in a text; ``ids`` are what it may stand for, ``words`` its parts, lower case."""

    start: int
    end: int
    kind: str
    id: str
    words: frozenset[str]

    def fits(self, entity: str) -> bool:
        """Whether the name may speak of this entity: the same, or a shorter way of saying it (H100, H100-SXM)."""
        if entity.casefold() == self.id.casefold():
            return True
        return self.words <= words_of(entity)


def mentions(text: str) -> list[Mention]:
    """The catalogue names in ``text``, longest first at each place, none overlapping."""
    first = _first_words()
    if text.isascii() and first.isdisjoint(_WORD.findall(text.lower())) and not _COUNTED_NAME.search(text):
        return []  # most texts name nothing, and this is the quick way to tell
    words: list[tuple[int, int, str]] = []
    begins = []  # the words that a name may begin with: few, so the rest costs nothing more
    for match in _WORD.finditer(text):
        start, end = match.span()
        word = match[0].lower()
        if "x" in word:
            start, end, word = _without_count(start, end, word)
        if word in first:
            begins.append(len(words))
        words.append((start, end, word))
    found: list[Mention] = []
    index = _index()
    position = 0  # the first word that is in no name yet
    for begin in begins:
        longest = _longest(text, words, begin, index) if begin >= position else None
        if longest:
            found.append(longest[1])
            position = begin + longest[0]
    return found


def term_spans(text: str) -> list[tuple[int, int]]:
    """(start, end) of the technical terms of ``text`` that hold digits and are no quantities, in order."""
    return [match.span() for match in _TERMS.finditer(text)]


@lru_cache(maxsize=4096)
def kind_of(entity: str) -> str | None:
    """Which kind of thing an entity id or alias is; None when the catalogue does not hold it."""
    found = _index().get(" ".join(_parts(entity)))
    return found[0] if found else None


@lru_cache(maxsize=4096)
def id_of(entity: str) -> str:
    """The catalogue's id for an entity's name, or the name itself."""
    found = _index().get(" ".join(_parts(entity)))
    return found[1] if found else entity


@lru_cache(maxsize=4096)
def words_of(entity: str) -> frozenset[str]:
    """The parts of a name or id, lower case; a maker's prefix ("meta-llama") included."""
    return frozenset(_parts(entity))


def _longest(
    text: str, words: list[tuple[int, int, str]], position: int, index: dict[str, tuple[str, str]]
) -> tuple[int, Mention] | None:
    """The longest name that begins with this word, and how many words it has."""
    best = None
    key = ""
    for count in range(1, MAX_WORDS + 1):
        last = position + count - 1
        if last >= len(words):
            break
        if count > 1 and not _SEPARATORS.fullmatch(text, words[last - 1][1], words[last][0]):
            break
        key = f"{key} {words[last][2]}" if key else words[last][2]
        for name in (key, key[:-1] if key.endswith("s") else key):
            entry = index.get(name)
            if entry:
                start, end = words[position][0], words[last][1]
                best = (count, Mention(start, end, entry[0], entry[1], frozenset(name.split())))
                break
    return best


def _without_count(start: int, end: int, word: str) -> tuple[int, int, str]:
    prefix = _COUNT_PREFIX.match(word)
    return (start + prefix.end(), end, word[prefix.end() :]) if prefix else (start, end, word)


def _parts(name: str) -> Iterable[str]:
    return (match[0].lower() for match in _WORD.finditer(name))


@lru_cache(maxsize=1)
def _index() -> dict[str, tuple[str, str]]:
    """Every name, its parts joined by spaces, with its kind and id. Bare sizes ("70b") are no names."""
    index: dict[str, tuple[str, str]] = {}

    def add(name: str, kind: str, key: str) -> None:
        joined = " ".join(_parts(name))
        if joined and not (_ONLY_SIZE.match(joined) and kind != "gpus"):
            index.setdefault(joined, (kind, key))

    for kind in KINDS:
        for key, aliases, machine in connection().execute(
            f"select id, json_extract(record, '$.aliases'), json_extract(record, '$.instance_type') from {kind}"
        ):
            for name in (key, key.rpartition("/")[2], machine or "", *json.loads(aliases or "[]")):
                add(name, kind, key)
        for name, key in all_names(kind).items():
            add(name, kind, key)
    for row in connection().execute("select distinct provider from prices"):
        for name in {str(row[0]), str(row[0]).replace("-", " ")}:
            index.setdefault(" ".join(_parts(name)), ("providers", str(row[0])))
    for name, key in _PROVIDER_NAMES.items():
        index.setdefault(name, ("providers", key))
    return index


@lru_cache(maxsize=1)
def _first_words() -> frozenset[str]:
    """What a name may begin with, its plural included: most words of a text are told apart by this alone."""
    first = {name.partition(" ")[0] for name in _index()}
    return frozenset(first | {word + "s" for word in first})


_PROVIDER_NAMES = {
    "amazon": "aws", "google cloud": "gcp", "lambda labs": "lambda", "oracle cloud": "oci", "oracle": "oci",
    "vast ai": "vastai", "vast.ai": "vastai", "digital ocean": "digitalocean", "together ai": "together",
    "microsoft azure": "azure", "ovhcloud": "ovh", "sf compute": "sfcompute", "datacrunch": "verda",
    "fly.io": "fly-io", "core weave": "coreweave", "thunder compute": "thundercompute",
}  # fmt: skip
