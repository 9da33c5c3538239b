"""Which cards a text names and how many: alias windows over the catalogue first, then cards that it does not hold.

Nothing here guesses: a card that the tables do not hold becomes a mention that says so. Names are resolved by
``knowledge.gpus``; this file only finds where in a sentence a name stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from advisor.llm.planner import grammar
from advisor.llm.planner.mentions import TOKEN, GpuMention, Span, joined, overlaps, tokens
from advisor.llm.planner.page import number_word
from knowledge.errors import InputProblem
from knowledge.gpus import find_gpu, load_gpu
from knowledge.instances import find_instance
from knowledge.names import all_names, candidates, lookup

_MOST_CARDS = 10_000_000
_CARD_SIZES = frozenset(
    {4, 6, 8, 10, 11, 12, 16, 20, 22, 24, 32, 40, 44, 48, 64, 80, 94, 95, 96, 128, 141, 144, 180, 186, 192, 256, 288}
)
_ONE_CORE = ("v5e", "v6e")  # one tensor core a chip (Google Cloud, TPU versions); the others have two
_CORES_A_CHIP = 2
_USUAL_NODE = 8  # cards; of "4机32卡" the larger figure is the whole
_PLURALS = ("s", "er", "ern", "'s")
_NAMED_ULTRA = ("Apple", "B300", "GB300", "TPU")  # "Ultra" is part of their families' names
# Aliases that are also ordinary words or letters: read only where something else says that a card is meant.
_SOFT = {"spark": "GB10", "m4": "Apple-M4"}


@dataclass(frozen=True, slots=True)
class Head:
    """A count in front of a name: the word it was, where it starts, and the nodes in front of it."""

    count: int
    word: str
    start: int
    nodes: int | None


def _pattern(name: str) -> re.Pattern[str]:
    return grammar.named(name, "cards")


def find_gpus(text: str) -> list[GpuMention]:
    """Every card that lower-cased ``text`` names, in reading order, with its count; unknown ones among them."""
    taken: list[Span] = []
    found: list[GpuMention] = []

    def add(mention: GpuMention) -> None:
        found.append(mention)
        taken.append((mention.start, mention.end))

    for start, end, key, squeezed in _windows(text):
        if re.fullmatch(r"\d{4}", squeezed) and not _number_is_card(text, start, end):
            continue
        if _pattern("a_number").match(text, start):  # "a 100 GB disk", "a 10 gig link"
            continue
        sibling = _pattern("sibling").match(text, end) if not key.startswith(_NAMED_ULTRA) else None
        add(_unknown(text, start, sibling.end()) if sibling else _known(text, start, end, key))
    found += _other_form(text, found)
    for word, key in _SOFT.items():
        for match in _pattern(word).finditer(text) if word in text else ():
            apple = word != "m4" or _pattern("apple").search(text)
            if apple and not overlaps(match.span(), taken):
                add(_known(text, match.start(), match.end(), key))
    for match in _pattern("tpu_slice").finditer(text) if "tpu" in text else ():
        slice_of = _resolved(f"tpu {match[0]}")
        if slice_of and not overlaps(match.span(), taken):
            add(_known(text, match.start(), match.end(), slice_of))
    for match in _other_gpus().finditer(text):
        if not overlaps(match.span(), taken) and not _no_card(text, match):
            add(_unknown(text, match.start(), match.end()))
    return sorted(found, key=lambda mention: mention.start)


def _other_form(text: str, found: list[GpuMention]) -> list[GpuMention]:
    """The second of two forms of one card set beside each other: "sxm vs pcie h100" names two cards."""
    match = _pattern("forms_beside").search(text)
    cards = {mention.argument for mention in found}
    if not match or len(cards) != 1 or match[1][:3] == match[2][:3]:
        return []
    mention = found[0]
    family = str(mention.argument).split("-")[0]
    named = [key for form in (match[1], match[2]) if (key := _resolved(f"{family} {form}"))]
    if len(set(named)) != 2:
        return []
    found[0] = replace(mention, argument=named[0], note=None)
    return [GpuMention(match[2], "known", named[1], match.start(2), match.end(2))]


def find_machines(text: str) -> list[tuple[GpuMention, str]]:
    """Cloud machine types ("p5.48xlarge", and "p5" beside "aws"): the cards in them, and their provider."""
    spots = [match for match in _pattern("machine").finditer(text) if re.search(r"[.\-_]", match[0].rstrip(".-"))]
    if _pattern("names_machines").search(text):
        spots += _pattern("machine_family").finditer(text)
    found = []
    for match in spots:
        name = match[0].rstrip(".-").replace("×", "x").removeprefix("ml.")  # as SageMaker writes them
        hit = lookup("instances", name)
        if hit is None or (hit.note and match.re is _pattern("machine")):
            continue
        machine = find_instance(hit.id).value
        count = machine.n_gpus if not hit.alternatives else None  # "g5" comes in several sizes
        end, head = match.end(), count_before(text, match.start())
        times = re.match(r"\s{0,4}[x×*]\s{0,4}(\d{1,4})\b", text[end:])
        nodes = int(times[1]) if times else head.count if head else 1
        mention = GpuMention(
            name, "known", machine.gpu_id, match.start(), end, count, nodes if nodes > 1 and count else None,
            note=hit.note,
        )  # fmt: skip
        found.append((mention, machine.provider.lower()))
    return found


def count_before(text: str, start: int) -> Head | None:
    """The count, and nodes where named, that stand right before ``start``; None where none does."""
    match = _pattern("count_before").search(text[max(0, start - 40) : start])
    count = number_word(match["count"]) if match else None
    if not match or count is None or count >= _MOST_CARDS:
        return None
    begin = max(0, start - 40) + match.start("count")
    nodes = number_word(match["nodes"]) if match["nodes"] else None
    if nodes and count > _USUAL_NODE and not count % nodes and _pattern("counts_all").search(match[0]):
        count //= nodes
    return Head(count, match["count"], begin, nodes)


@lru_cache(maxsize=1)
def _aliases() -> tuple[dict[str, str], int]:
    """Squeezed alias -> id, and the longest alias in tokens."""
    table: dict[str, str] = {}
    longest = 1
    for name, key in all_names("gpus").items():
        squeezed = re.sub(r"[^a-z0-9.]+", "", name.lower())
        if len(squeezed) > 1 and squeezed not in _SOFT:
            table.setdefault(squeezed, key)
            longest = max(longest, len(TOKEN.findall(name.lower())))
    return table, min(longest, 14)


def _windows(text: str) -> Iterator[tuple[int, int, str, str]]:
    """Longest alias at each place: (start, end, id, squeezed alias); what is matched is not read again."""
    table, longest = _aliases()
    pieces = tokens(text)
    index = 0
    while index < len(pieces):
        start = pieces[index][0]
        best = None
        if not (start and joined(text[start - 1])):
            squeezed = ""
            for stop in range(index, min(index + longest, len(pieces))):
                left, right, piece = pieces[stop]
                if stop > index and left - pieces[stop - 1][1] > 2:
                    break
                if not piece[0].isalnum() or not piece.isascii():
                    if piece not in "-_./+":
                        break
                    squeezed += "." if piece == "." else ""
                    continue
                squeezed += piece
                if squeezed in table and (not joined(text[right : right + 1]) or _plural(text, right)):
                    best = (stop, right, squeezed)
        if best:
            yield start, best[1], table[best[2]], best[2]
            index = best[0]
        index += 1


def _plural(text: str, end: int) -> int:
    """The length of a plural's ending at ``end``: "4090s", "3090er"; 0 where there is none."""
    for ending in _PLURALS:
        after = end + len(ending)
        if text.startswith(ending, end) and not joined(text[after : after + 1]):
            return len(ending)
    return 0


def _unknown(text: str, start: int, end: int) -> GpuMention:
    """A card that the tables do not hold, with its count and memory, and the nearest that they hold."""
    count, nodes = _count(text, start, end)
    memory, stop = _memory_after(text, end)
    if memory is not None and not count:
        count, nodes = _count(text, start, stop)
    name = text[start:end].strip()
    return GpuMention(name, "unknown", None, start, stop, count, nodes, memory, tuple(candidates("gpus", name, 3)))


def _known(text: str, start: int, end: int, key: str) -> GpuMention:
    """A card with the form and memory that stand behind its name ("a100 80 sxm", "h100 pcie", "3060 12g")."""
    name = text[start:end]
    key, end, name = _with_form(text, start, end, key, name)
    memory, stop = (None, end) if key.startswith("TPU") else _memory_after(text, end)  # "v5e-16" is a slice
    kept: float | None = None
    if memory is None:
        start, key, name = _with_memory_before(text, start, key, name)
        linked = _pattern("memory_linked").match(text, end)  # "A100 de 40GB", "a 3060 with 8 gigs"
        better = _resolved(f"{name} {linked[1]}gb") if linked else None
        key, end = (better, linked.end()) if linked and better else (key, end)
    if memory is not None:
        better = _resolved(f"{name} {memory:g}gb")
        key = better or key
        if better or memory == load_gpu(key).marketed_memory_gb:
            end, name = stop, text[start:stop].strip(" (")
        elif memory in _CARD_SIZES and re.search(r"\d\s?g", text[end:stop]):
            kept, end = memory, stop
    key, end, name = _with_form(text, start, end, key, name)
    count, nodes = _count(text, start, end)
    said = text[start:end].strip(" (")
    if key.startswith("Apple"):
        return GpuMention(said, "known", _sized(key, said), start, end, count, nodes, kept, note=_reading(said, key))
    chips = _pattern("chips").match(text, end) if key.startswith("TPU") and not count else None
    if chips:  # a slice is named by its size: v5e-64 has 64 chips, v4-64 and v5p-64 so many cores, two a chip
        per_chip = 1 if key.endswith(_ONE_CORE) else _CORES_A_CHIP
        count, end = max(1, int(chips[1]) // per_chip), chips.end()
    return GpuMention(said, "known", key, start, end, count, nodes, kept, note=_reading(said, key))


def _sized(key: str, said: str) -> str:
    """A machine of shared memory by the size that ``said`` gives it: "m3 ultra 256gb" is not the largest one."""
    size = _pattern("shared_memory").search(said)
    name = f"{key} {size[1]}GB" if size else key
    return name if size and _resolved(name) and float(size[1]) != load_gpu(key).marketed_memory_gb else key


def with_shared_memory(gpus: list[GpuMention], values: dict[str, Any]) -> list[GpuMention]:
    """The one machine of shared memory named, with a memory that is stated apart from it."""
    memory = values.get("gpu_memory_gb") or values.get("ram_gb")
    if len(gpus) != 1 or not memory or gpus[0].argument is None or not gpus[0].argument.startswith("Apple"):
        return gpus
    return [replace(gpus[0], argument=_sized(gpus[0].argument.split()[0], f"{memory:g}gb"))]


def _with_memory_before(text: str, start: int, key: str, name: str) -> tuple[int, str, str]:
    """The card whose memory stands in front: "a 32GB V100", "8x 80GB A100"."""
    begin = max(0, start - 32)
    match = _pattern("memory_before").search(text[begin:start])
    if not match:
        return start, key, name
    better = _resolved(f"{name} {match[1]}gb")
    if better is None and float(match[1]) != load_gpu(key).marketed_memory_gb:
        return start, key, name
    return begin + match.start(), better or key, f"{name} {match[1]}gb"


def _with_form(text: str, start: int, end: int, key: str, name: str) -> tuple[str, int, str]:
    form = _pattern("form").match(text, end)
    if not form or _pattern("form").search(" " + name):
        return key, end, name
    better = _resolved(f"{name} {form[1]}")
    return (better, form.end(), f"{name} {form[1]}") if better else (key, end, name)


def _memory_after(text: str, end: int) -> tuple[float | None, int]:
    match = _pattern("memory_after").match(text, end + _plural(text, end))
    if not match or (int(match[1]) not in _CARD_SIZES and not match[2]):
        return None, end
    return float(match[1]), match.end()


def _reading(said: str, key: str) -> str | None:
    """How an ambiguous name was read ("A100": which memory, which form)."""
    try:
        match = find_gpu(re.sub(r"(?<=\d)\s?g(?:i?b)?(?![a-z])", "GB", said))  # "80g" is no quantity of anything
    except InputProblem:
        return None
    return match.note if match.value.id == key else None


def _resolved(name: str) -> str | None:
    try:
        return find_gpu(re.sub(r"[\s(]+", " ", name)).value.id
    except InputProblem:
        return None


def _count(text: str, start: int, end: int) -> tuple[int | None, int | None]:
    head = count_before(text, start)
    after = _pattern("count_after").match(text, end)
    if boxed := _pattern("a_box").search(text[max(0, start - 5) : start]):  # a DGX or HGX has eight
        head = count_before(text, start - len(boxed[0]))
        return _USUAL_NODE, head.count if head and head.count > 1 else None
    if head and after and after["x"] and not head.nodes and not after["nodes"]:
        return int(after["x"]), head.count  # "4台A800-80G*8"
    if head:
        if _pattern("hours_after").match(text[end : end + 12]):
            return None, None  # "300 A100 hours": that many hours, not cards
        return head.count, head.nodes
    count = number_word(after["x"] or after["cjk"] or after["paren"] or after["set"]) if after else None
    nodes = int(after["nodes"]) if after and after["nodes"] else None
    if after and after["inner"]:  # "H100 一台8卡"
        return int(after["inner"]), count if count and count > 1 else None
    return (count if count and count < _MOST_CARDS else None), nodes


@lru_cache(maxsize=1)
def _other_gpus() -> re.Pattern[str]:
    """Cards that exist, or sound as if, and that the tables do not hold."""
    parts = "|".join(f.replace(" ?", r"[\s_\-]{0,2}") for f in grammar.data("names")["other_gpus"])
    return re.compile(rf"(?<![a-z0-9.])(?:{parts})(?=s?(?![a-z0-9]))", re.ASCII)


def _no_card(text: str, match: re.Match[str]) -> bool:
    """Numbers such as "6090 rows" or "$2080", and letters such as "r100" before a size, are no cards."""
    if match[0][0].isdigit():
        return not _number_is_card(text, match.start(), match.end())
    if not _pattern("letter_and_hundreds").fullmatch(match[0]) or count_before(text, match.start()):
        return False
    return bool(_pattern("size_follows").match(text[match.end() : match.end() + 5]))


def _number_is_card(text: str, start: int, end: int) -> bool:
    if _pattern("no_card_before").search(text[max(0, start - 16) : start]):
        return False
    return not _pattern("no_card_after").match(text[end : end + 12])
