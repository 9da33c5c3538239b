"""Which models and GPUs a text names: alias windows over the catalogue first, then patterns, then near misses.

Nothing here guesses: a name that the tables do not hold becomes a mention that says so. Names are resolved by
``knowledge.models`` and ``knowledge.gpus``; this file only finds where in a sentence a name stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from rapidfuzz import process
from rapidfuzz.distance import OSA

from advisor.llm.planner import grammar
from knowledge.errors import InputProblem
from knowledge.gpus import find_gpu, load_gpu
from knowledge.instances import find_instance
from knowledge.models import load_model
from knowledge.names import Found, all_names, candidates, find_id, lookup

ModelKind = Literal["known", "size", "unknown", "closed", "unmodelled"]
GpuKind = Literal["known", "unknown", "memory"]


@dataclass(frozen=True, slots=True)
class ModelMention:
    """A model named in the text. ``argument`` is what a tool takes; None where nothing can be computed."""

    text: str
    kind: ModelKind
    argument: str | None
    start: int
    size: str | None = None
    nearest: tuple[str, ...] = ()
    topic: str | None = None  # unmodelled: vision, diffusion, robotics, other
    note: str | None = None


@dataclass(frozen=True, slots=True)
class GpuMention:
    """A card named in the text, with how many of it. ``argument`` is what a tool takes."""

    text: str
    kind: GpuKind
    argument: str | None
    start: int
    end: int
    count: int | None = None
    nodes: int | None = None
    memory_gb: float | None = None
    nearest: tuple[str, ...] = ()
    note: str | None = None


_TOKEN = re.compile(r"(?<=\d)x(?=[a-z])|[a-z]+|\d+(?:\.\d+)?|[^\s\w]|[^\x00-\x7f]", re.ASCII)
_WORDISH = re.compile(r"[^a-z0-9.]+", re.ASCII)


def squeeze(name: str) -> str:
    """A name without case, spaces and dashes: "RTX 3090-Ti" and "rtx3090ti" are one."""
    return _WORDISH.sub("", name.lower())


@lru_cache(maxsize=2)
def _aliases(kind: str) -> tuple[dict[str, str], int]:
    """Squeezed alias -> id, and the longest alias in tokens."""
    table: dict[str, str] = {}
    longest = 1
    for name, key in all_names(kind).items():
        squeezed = squeeze(name)
        if len(squeezed) < 2 or squeezed in _AMBIGUOUS:
            continue
        table.setdefault(squeezed, key)
        longest = max(longest, len(_TOKEN.findall(name.lower())))
    return table, min(longest, 14)


# Aliases that are ordinary words, or shorter than what can be told from one, unless something else names the kind.
_AMBIGUOUS = frozenset(
    {"m4", "spark", "solar", "clip", "yi", "phi", "opt", "scout", "maverick", "r1", "vit", "t5", "kimi1t"}
)


def _windows(text: str, kind: str) -> Iterator[tuple[int, int, str, str]]:
    """Longest alias at each place: (start, end, alias id, squeezed text); what is matched is not read again."""
    table, longest = _aliases(kind)
    tokens = [(match.start(), match.end(), match[0]) for match in _TOKEN.finditer(text)]
    index = 0
    while index < len(tokens):
        start = tokens[index][0]
        # A name starts at a word's start, or after a count's "x" ("8xh100").
        if start and text[start - 1].isascii() and text[start - 1].isalnum() and not _after_count(text, start):
            index += 1
            continue
        joined, best = "", None
        for stop in range(index, min(index + longest, len(tokens))):
            left, right, piece = tokens[stop]
            gap = text[tokens[stop - 1][1] : left] if stop > index else ""
            if stop > index and ("\n" in gap or len(gap) > 2):
                break
            if piece in "-_ ./()+" or not piece.isascii():
                if piece not in "-_./+":
                    break
                joined += "." if piece == "." else ""
                continue
            joined += piece
            after = text[right : right + 1]
            ends = not (after.isascii() and after.isalnum()) or _plural(text, right)
            if ends and joined in table:
                best = (stop, right, joined)
        if best:
            yield start, best[1], table[best[2]], best[2]
            index = best[0] + 1
        else:
            index += 1


def _after_count(text: str, start: int) -> bool:
    return bool(re.search(r"\d[x×*]$", text[max(0, start - 4) : start]))


def _plural(text: str, end: int) -> bool:
    return text[end : end + 1] == "s" and not text[end + 1 : end + 2].isalnum()


# --- GPUs -----------------------------------------------------------------------------------------------------------

_MEMORY_AFTER = re.compile(
    r"[\s\-_/(\[]{0,2}(\d{1,3})(?:\.0)?\s?(gib|gb|go|g|vram)?(?![\w.]|\s?(?:x|k|tok|b\b))", re.ASCII
)
_CARD_SIZES = frozenset(
    {4, 6, 8, 10, 11, 12, 16, 20, 22, 24, 32, 40, 44, 48, 64, 80, 94, 95, 96, 128, 141, 144, 180, 186, 192, 256, 288}
)
_FORMS = re.compile(r"[\s\-_/(]{0,2}(sxm\d?|pcie|nvl(?:72)?|hbm3e?|oam)\b", re.ASCII)
_NOT_A_CARD = re.compile(
    r"\s?(?:tok\w*|tokens?|steps?|rows?|samples?|examples?|images?|imgs?|epochs?|eur|euros?|usd|dollars?|\$|€|lines?|hours?|h\b|min\b|mb/s|gb/s|ms\b|params?|records?|docs?|files?|it\b|%)",
    re.ASCII,
)
_PURE_NUMBER = re.compile(r"\d{4}", re.ASCII)


def _count_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    table = grammar.data("numbers")
    number = rf"\d{{1,6}}|{'|'.join(sorted(table['words'], key=len, reverse=True))}|{'|'.join(sorted(table['cjk'], key=len, reverse=True))}"  # noqa: E501
    fill = "|".join([*table["fillers"]])
    counter = "|".join(table["counters"])
    nodes = r"nodes?|machines?|servers?|box(?:es)?|hosts?|台|ノード|节点|knoten|noeuds?|nœuds?|nodos?|serveurs?|servidores?|rechnern?"  # noqa: E501
    before = re.compile(
        rf"(?:(?<![\w.,])(?P<nodes>{number})\s?(?:(?:{nodes})\s?(?:of|with|à|mit|con|de|,|x|×|\*|の)?\s?(?:each\s)?|[x×*]\s?(?=\d)))?"
        rf"(?<![\w.,])(?P<count>{number})\s?(?:[x×*]|{counter})?[\s\-]?(?:のの?|的|本の)?\s?(?:(?:{fill})\s){{0,3}}(?:rtx[\s\-]?)?$",
        re.ASCII,
    )
    after = re.compile(
        rf"s?\s?(?:gpus?\s?)?(?:[x×*]\s?(?P<x>\d{{1,5}})(?![\w.])|[\s(]?(?P<cjk>\d{{1,4}}|[{''.join(k for k in table['cjk'] if len(k) == 1)}])\s?(?:{counter}))",  # noqa: E501
        re.ASCII,
    )
    return before, after


@lru_cache(maxsize=1)
def _counts() -> tuple[re.Pattern[str], re.Pattern[str]]:
    return _count_patterns()


def number_word(text: str) -> int | None:
    """An integer from digits or a number word of the grammar."""
    if text.isdecimal():
        return int(text[:9])
    table = grammar.data("numbers")
    value = table["words"].get(text, table["cjk"].get(text))
    return int(value) if value and value >= 1 else None


def find_gpus(text: str) -> list[GpuMention]:
    """Every card that lower-cased ``text`` names, in order."""
    taken: list[tuple[int, int]] = []
    found: list[GpuMention] = []
    for start, end, key, squeezed in _windows(text, "gpus"):
        if _PURE_NUMBER.fullmatch(squeezed) and not _bare_number_is_card(text, start, end):
            continue
        found.append(_gpu(text, start, end, key))
        taken.append((start, found[-1].end))
    for word, regex in (("spark", r"(?:dgx )?spark(?= |$)"), ("m4", r"\bm4\b")):
        if word in text:
            for match in re.finditer(regex, text):
                if word == "spark" and re.search(r"spark (?:sql|streaming|job|cluster)|apache spark", text):
                    continue
                if word == "m4" and not re.search(r"\bmac|\bm4 (?:max|pro)|apple", text):
                    continue
                if not _overlaps(match.span(), taken):
                    found.append(_gpu(text, match.start(), match.end(), "GB10" if word == "spark" else "Apple-M4"))
                    taken.append(match.span())
    for value, match in grammar.found("names", "gpu_words", text):
        if not _overlaps(match.span(), taken):
            found.append(_gpu(text, match.start(), match.end(), value))
            taken.append((match.start(), found[-1].end))
    for match in _other_gpus().finditer(text):
        if not _overlaps(match.span(), taken) and not _model_like(text, match):
            name = match[0].strip()
            count, nodes = _count(text, match.start(), match.end())
            near = tuple(candidates("gpus", name, 3))
            memory, end = _memory_after(text, match.end())
            found.append(GpuMention(name, "unknown", None, match.start(), end, count, nodes, memory, near))
            taken.append((match.start(), end))
    return sorted(found, key=lambda mention: mention.start)


_MACHINE = re.compile(r"(?<![\w.\-])[a-z]{1,12}[\w.×\-]*\d[\w.×\-]*(?![\w])", re.ASCII)


def find_machines(text: str) -> list[tuple[GpuMention, str]]:
    """Cloud machine types named exactly ("p5.48xlarge"): the cards in them, and their provider."""
    found = []
    for match in _MACHINE.finditer(text):
        name = match[0].rstrip(".-").replace("×", "x")
        if not re.search(r"[.\-_]", name) or not find_id("instances", name):
            continue
        machine = find_instance(name).value
        mention = GpuMention(name, "known", machine.gpu_id, match.start(), match.end(), machine.n_gpus)
        found.append((mention, machine.provider.lower()))
    return found


@lru_cache(maxsize=1)
def _other_gpus() -> re.Pattern[str]:
    # A count may stand right before the name ("2x6090"), so the left border is looser than a word's.
    parts = "|".join(f.replace(" ?", r"[\s_\-]{0,2}") for f in grammar.data("names")["other_gpus"])
    return re.compile(rf"(?:(?<![a-z0-9.])|(?<=\dx))(?:{parts})(?=s?(?![a-z0-9]))", re.ASCII)


def _model_like(text: str, match: re.Match[str]) -> bool:
    """Numbers such as "6090 rows" or "$2080", and letters such as "r100" inside other words, are no cards."""
    if match[0][0].isdigit():
        return not _bare_number_is_card(text, match.start(), match.end())
    return bool(re.match(r"[\s_\-]?\d*\.?\d*b\b", text[match.end() : match.end() + 5])) and match[0][0] != "h"


def _bare_number_is_card(text: str, start: int, end: int) -> bool:
    before = text[max(0, start - 16) : start]
    if re.search(
        r"[$€£¥]\s?$|(?:seq\w*|len\w*|length|step|steps|ctx|rank|port|pid|line|budget|version|v)[\s:=]*$", before
    ):
        return False
    return not _NOT_A_CARD.match(text[end : end + 12].removeprefix("s")) and not re.match(
        r"[.,]\d", text[end : end + 2]
    )


def _gpu(text: str, start: int, end: int, key: str) -> GpuMention:
    name = text[start:end]
    form = _FORMS.match(text, end)
    if form and not _FORMS.search(" " + name):
        better = _resolve_gpu(f"{name} {form[1]}")
        if better:
            key, end, name = better, form.end(), f"{name} {form[1]}"
    memory, stop = _memory_after(text, end)
    kept: float | None = None
    if memory is not None:
        better = _resolve_gpu(f"{name} {memory:g}gb")
        if better:
            key = better
        if better or memory == load_gpu(key).marketed_memory_gb:
            end, name = stop, text[start:stop].strip(" (")
        elif memory in _CARD_SIZES and re.search(r"\d\s?g", text[end:stop]):
            kept, end = memory, stop
    if not _FORMS.search(name):  # "a100 80 sxm"
        form = _FORMS.match(text, end)
        better = _resolve_gpu(f"{name} {form[1]}") if form else None
        if form and better:
            key, end = better, form.end()
    count, nodes = _count(text, start, end)
    said = text[start:end].strip(" (")
    return GpuMention(said, "known", key, start, end, count, nodes, kept, note=_reading(said, key))


def _memory_after(text: str, end: int) -> tuple[float | None, int]:
    match = _MEMORY_AFTER.match(text, end + (1 if _plural(text, end) else 0))
    if not match or (int(match[1]) not in _CARD_SIZES and not match[2]):
        return None, end
    return float(match[1]), match.end()


def _reading(said: str, key: str) -> str | None:
    """How an ambiguous name was read ("A100": which memory, which form)."""
    try:
        match = find_gpu(said)
    except InputProblem:
        return None
    return match.note if match.value.id == key else None


def _resolve_gpu(name: str) -> str | None:
    try:
        return find_gpu(re.sub(r"[\s(]+", " ", name)).value.id
    except InputProblem:
        return None


def _count(text: str, start: int, end: int) -> tuple[int | None, int | None]:
    before, after = _counts()
    match = before.search(text[max(0, start - 40) : start])
    count = number_word(match["count"]) if match else None
    nodes = number_word(match["nodes"]) if match and match["nodes"] else None
    if count is not None and re.match(r"s?[\s\-]?(?:gpu[\s\-]?)?(?:hours?|hrs?|h)(?![a-z])", text[end : end + 12]):
        return None, None  # "300 A100 hours": that many hours, not cards
    if count is None:
        match = after.match(text, end)
        if match:
            count = number_word(match["x"] or match["cjk"])
    return (count if count and count < 10_000_000 else None), nodes


def _overlaps(span: tuple[int, int], taken: list[tuple[int, int]]) -> bool:
    return any(span[0] < end and start < span[1] for start, end in taken)


# --- models ---------------------------------------------------------------------------------------------------------

SIZE = re.compile(
    r"(?<![\w.$€£¥/=*])~?-?(\d{1,5}(?:[.,]\d{1,3})?)\s?([bmt])(?:illion|il|n)?(?:[\s\-]?(?:params?|parameters?|parametern?|paramètres|parámetros|parâmetros|パラメータ|参数|model\w*|modell\w*|模型|モデル|모델))?(?![\w/%$]|\s?(?:active|activated|tok|steps?\b|rows|samples|examples|images|imgs|/s|users|lines|docs|records|conversations|pairs))",
    re.ASCII,
)
_SIZE_WORDS = re.compile(
    r"(?<![\w.])(\d{1,4}(?:[.,]\d+)?)\s?(billion|milliarden?|milliards?|mrd\.?|mil millones|bilhões|bilhoes|miliardi|亿|億|십억|억|百亿|千亿)(?:\s?(?:de\s)?(?:param\w*|paramètres|parámetros|parâmetros|parametern?|weights|パラメータ|参数|个参数|モデル|模型|模型参数|파라미터)|[\s\-]?(?:model|llm))",  # noqa: E501
    re.ASCII,
)
_SIZE_LIST = re.compile(
    r"(?<![\w.])(\d{1,4}(?:\.\d+)?)\s?(?:-|–|to|bis|à|~)\s?(\d{1,4}(?:\.\d+)?)\s?b(?!\w|/s| ?tok)", re.ASCII
)
_HUB_ID = re.compile(r"(?<![\w./])([a-z][\w\-]{1,38}/[\w\-.]{2,80})(?![\w/])", re.ASCII)
_NAME_SIZE = re.compile(
    r"(?<![\w./])([a-z][a-z0-9]*(?:[\-_.][a-z0-9]+)*?)[\-_ ]?(?<!\d)(\d{1,4}(?:\.\d+)?)([bm])(?:[\-_][a-z0-9.\-_]+)?(?![\w])",  # noqa: E501
    re.ASCII,
)
_FAMILY_SIZE = re.compile(
    r"[\s\-_]{0,2}(?:v?\d+(?:\.\d+)*[\s\-_]{1,2})?(?:vl[\s\-_])?(?:\d+\s?x\s?)?\d{1,4}(?:\.\d+)?\s?[bm]?(?![\w.])",
    re.ASCII,
)


def find_models(text: str) -> list[ModelMention]:
    """Every model that lower-cased ``text`` names, in order; bare sizes included."""
    taken: list[tuple[int, int]] = []
    found: list[ModelMention] = []

    def add(mention: ModelMention, end: int) -> None:
        if not _overlaps((mention.start, end), taken):
            found.append(mention)
            taken.append((mention.start, end))

    for match in grammar.matcher("names", "closed").finditer(text):
        add(
            ModelMention(match[0].strip(), "closed", None, match.start(), nearest=("gpt-oss-120b", "llama-3.1-70b")),
            match.end(),
        )
    for topic, match in grammar.found("names", "unmodelled", text):
        if not _overlaps(match.span(), taken):
            size, end = _size_near(text, match.start(), match.end(), taken)
            add(ModelMention(match[0].strip(), "unmodelled", None, match.start(), size=size, topic=topic), end)
    for start, end, hit in _model_spans(text):
        if _is_framework(text, start, end):
            continue
        name = text[start:end].strip()
        sized = None if re.search(r"\d\s?[bm](?![a-z])", name) else _with_size_before(text, start, end)
        if sized:
            add(sized, end)
        elif load_model(hit.id).modality == "diffusion":
            add(ModelMention(name, "unmodelled", None, start, topic="diffusion"), end)
        else:
            add(ModelMention(name, "known", hit.id, start, note=hit.note), end)
    for match in _families().finditer(text):
        if _overlaps(match.span(), taken) or _is_framework(text, match.start(), match.end()):
            continue
        family = _family_with_size(text, match.start(), match.end())
        if family:
            add(*family)
            continue
        before = _with_size_before(text, match.start(), match.end())
        if before:
            add(before, match.end())
    for match in _HUB_ID.finditer(text):
        if re.search(r"[a-z]{3}", match[1]) and re.search(r"\d|instruct|base|chat", match[1].split("/")[1]):
            add(_resolve_model(match[1], match.start()), match.end())
    for match in _NAME_SIZE.finditer(text):
        word = match[1].rstrip("-_.")
        if word in _plain_words() or len(word) < 3 or _overlaps(match.span(), taken):
            continue
        if match[3] == "m" and "-" not in match[0]:
            continue
        joined = text[match.end(1) : match.start(2)]
        if joined == " " or (not joined and word.isalpha() and len(word) < 4):
            continue  # "serve 70b": a sentence, not a name
        add(_resolve_model(match[0], match.start(), match[2] + match[3]), match.end())
    for match in _SIZE_LIST.finditer(text):
        if not _overlaps(match.span(), taken):
            for number in (match[1], match[2]):
                found.append(ModelMention(f"{number}b", "size", f"{number}B", match.start(), size=f"{number}B"))
            taken.append(match.span())
    for match in _SIZE_WORDS.finditer(text):
        scale = grammar.data("numbers")["scales"].get(match[2].rstrip("."), 1e9)
        billions = float(match[1].replace(",", ".")) * float(scale) / 1e9
        add(ModelMention(match[0], "size", f"{billions:g}B", match.start(), size=f"{billions:g}B"), match.end())
    for match in SIZE.finditer(text):
        if _plausible_size(match):
            label = f"{match[1].replace(',', '.')}{match[2].upper()}"
            add(ModelMention(match[0].strip(), "size", label, match.start(), size=label), match.end())
    return sorted(found, key=lambda mention: mention.start)


@lru_cache(maxsize=1)
def _name_words() -> tuple[frozenset[str], frozenset[str]]:
    """Words that begin a model's name, and all words that stand in one."""
    names = [_TOKEN.findall(name) for name in all_names("models")]
    inner = {token for tokens in names for token in tokens if token.isalpha()}
    inner |= {"it", "instruct", "chat", "base", "hf", "v", "b", "m", "x", "a", "e", "meta", "preview", "bit", "gguf"}
    starts = {next((t for t in tokens if t.isalpha()), "") for tokens in names} | {"meta"}
    return frozenset(starts - _ORDINARY), frozenset(inner)


# Words that begin a name and are ordinary ones: a name that is nothing but one of them is none.
_ORDINARY = frozenset({"", "all", "open", "command", "code", "distil", "tiny", "a", "b", "e", "v", "x", "m", "sd"})


def _model_spans(text: str) -> Iterator[tuple[int, int, Found]]:
    """The longest piece of text at each place that the knowledge base knows as a model."""
    starts, inner = _name_words()
    starts = starts | {"open", "command", "code", "distil", "tiny", "sd", "all"}
    tokens = [(match.start(), match.end(), match[0]) for match in _TOKEN.finditer(text)]
    index = 0
    while index < len(tokens):
        begin, _end, word = tokens[index]
        if word not in starts or (begin and _joined(text[begin - 1])):
            index += 1
            continue
        ends: list[tuple[int, int]] = []
        for stop in range(index, min(index + 14, len(tokens))):
            left, right, piece = tokens[stop]
            gap = text[tokens[stop - 1][1] : left] if stop > index else ""
            if (
                len(gap) > 2
                or (piece.isalpha() and piece not in inner)
                or (piece not in "-_./+" and not piece[0].isalnum())
            ):
                break
            if piece[0].isalnum() and not _joined(text[right : right + 1]):
                ends.append((stop, right))
        for stop, right in reversed(ends):
            name = text[begin:right]
            if stop == index and (word in _AMBIGUOUS or word in _ORDINARY or len(word) < 3):
                continue
            hit = lookup("models", name)
            if hit is not None and not re.search(r"\d\s?[bm](?![a-z])", name) and _MORE_NAME.match(text, right):
                break  # "llama 9 500b": a name that goes on is not the part of it that is known
            if hit is not None:
                yield begin, right, hit
                index = stop
                break
        index += 1


_MORE_NAME = re.compile(
    r"[\s\-_]?\d+(?:\.\d+)?(?:[bm](?![a-z])|(?![a-z0-9.]|\s?(?:gb|gib|g\b|k\b|x|×|%|gpu|tok|card|node|epoch|ep\b|row|sample|step|h100|a100)))",
    re.ASCII,
)


def _joined(char: str) -> bool:
    return char.isascii() and char.isalnum()


def _with_size_before(text: str, start: int, end: int) -> ModelMention | None:
    """A family with its size in front: "a 7b llama", "8b llama 3"."""
    before = re.search(r"(?<![\w.])(\d{1,4}(?:\.\d+)?)\s?b\s{1,2}$", text[max(0, start - 9) : start])
    if not before:
        return None
    begin = start - len(before[0])
    mention = _resolve_model(f"{text[start:end]} {before[1]}b", begin, f"{before[1]}B")
    return replace(mention, text=text[begin:end])


@lru_cache(maxsize=1)
def _families() -> re.Pattern[str]:
    names = sorted(grammar.data("names")["families"], key=len, reverse=True)
    return re.compile(
        rf"(?<![a-z0-9])(?:{'|'.join(re.escape(n).replace('-', '[ _-]?') for n in names)})(?![a-z])", re.ASCII
    )


@lru_cache(maxsize=1)
def _plain_words() -> frozenset[str]:
    return frozenset(grammar.data("names")["size_prefixes"])


def _family_with_size(text: str, start: int, end: int) -> tuple[ModelMention, int] | None:
    match = _FAMILY_SIZE.match(text, end)
    size = re.search(r"(?:(\d+)\s?x\s?)?(\d{1,4}(?:\.\d+)?)\s?([bm])?$", match[0]) if match else None
    if not match or not size:
        return None
    stop = match.end()
    name = text[start:stop].strip()
    label = f"{size[2]}{(size[3] or 'b').upper()}" if size[3] and not size[1] else None
    if label is None and not size[1]:
        return None  # a version without a size: the alias windows had their chance
    return _resolve_model(name, start, label), stop


def _resolve_model(name: str, start: int, size: str | None = None) -> ModelMention:
    hit = lookup("models", name)
    if hit is not None:
        return ModelMention(name, "known", hit.id, start, note=hit.note)
    near = tuple(candidates("models", name, 3))
    label = size.upper() if size else None
    return ModelMention(name, "unknown", label, start, size=label, nearest=near)


def _is_framework(text: str, start: int, end: int) -> bool:
    """Tools such as "llama-factory" and "llama.cpp" are no models."""
    return bool(re.match(r"[\s\-_.]?(?:factory|cpp|c(?![a-z0-9])|index|recipes|cookbook|stack)", text[end : end + 12]))


def _size_near(text: str, start: int, end: int, taken: list[tuple[int, int]]) -> tuple[str | None, int]:
    """A size right after or before a name is that name's, not a model of its own."""
    match = re.match(r"[\s\-]{1,2}(\d{1,4}(?:\.\d+)?)\s?b(?![a-z0-9])", text[end : end + 10])
    if match:
        return f"{match[1]}B", end + match.end()
    match = re.search(r"(?<![\w.])(\d{1,4}(?:\.\d+)?)\s?b\s{1,2}$", text[max(0, start - 9) : start])
    if match:
        taken.append((start - len(match[0]), start))
        return f"{match[1]}B", end
    return None, end


def _plausible_size(match: re.Match[str]) -> bool:
    value = float(match[1].replace(",", "."))
    if match[2] == "m":
        return 10 <= value <= 9999
    if match[2] == "t":
        return value <= 20
    return value <= 99999


# --- spelling -------------------------------------------------------------------------------------------------------

_SPELL_TARGETS = ("qlora", "lora", "vram", "llama", "qwen", "mistral", "mixtral", "gemma", "falcon", "deepseek", "whisper",  # noqa: E501
                  "pretrain", "finetune", "infiniband", "nvlink", "deepspeed", "checkpoint", "spot", "runpod", "blackwell")  # fmt: skip  # noqa: E501
_RIGHT = frozenset(
    [
        "spit",
        "shot",
        "sport",
        "slot",
        "soot",
        "post",
        "stop",
        "lord",
        "lore",
        "flora",
        "loan",
        "load",
        "local",
        "learn",
        "later",
        "lama",
        "latter",
        "large",
        "gamma",
        "alarm",
        "drama",
        "gram",
        "queen",
        "when",
        "then",
        "open",
        "seven",
        "even",
        "mistake",
        "minstrel",
        "central",
        "whisker",
        "fell",
        "fall",
        "vrm",
        "wrap",
        "vary",
        "deep",
        "speed",
        "checkpoints",
        "pretrained",
        "fine",
        "tune",
        "finetuned",
        "finetunes",
        "qloras",
        "loras",
        "spots",
        "steep",
        "shop",
        "sort",
        "port",
        "soft",
        "slow",
        "snow",
        "show",
        "host",
        "most",
        "cost",
        "lost",
        "boot",
        "root",
        "dora",
        "prem",
        "clam",
        "mixture",
        "mixed",
        "spat",
        "mist",
        "misc",
        "distal",
        "metal",
        "total",
        "lira",
        "lara",
        "flow",
        "floor",
        "laura",
        "lori",
        "look",
        "lock",
        "long",
        "pora",
        "para",
        "loras",
        "lorax",
        "aurora",
        "flora",
        "lorem",
        "loss",
        "logs",
    ]
)


def fix_spelling(text: str) -> str:
    """Mend one slip (a letter dropped, doubled, changed or two swapped) in the field's commonest words."""

    def mend(match: re.Match[str]) -> str:
        word = match[0]
        if word in _SPELL_TARGETS or word in _RIGHT or len(word) > 12:
            return word
        hit = process.extractOne(word, _SPELL_TARGETS, scorer=OSA.distance, score_cutoff=1)
        if not hit or (word[0] != hit[0][0] and sorted(word) != sorted(hit[0])):
            return word
        if len(hit[0]) <= 4 and not (
            sorted(word) == sorted(hit[0]) or (word in ("qwn", "qwem", "quen", "vrm", "vrram"))
        ):
            return word
        return str(hit[0])

    return re.sub(r"(?<![\w.\-/])[a-z]{3,12}(?![\w/])", mend, text)
