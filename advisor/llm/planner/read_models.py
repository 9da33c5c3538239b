"""Which models a text names: closed ones, kinds that no sum is made for, known names, unknown names, bare sizes.

Nothing here guesses: names are resolved by ``knowledge.names``; a name that the tables do not hold becomes a mention
that says so, with its size where it states one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from advisor.llm.planner import grammar
from advisor.llm.planner.mentions import TOKEN, ModelMention, Span, joined, overlaps, tokens
from advisor.llm.planner.page import number_word
from knowledge.models import load_model
from knowledge.name_keys import model_key
from knowledge.names import Found, all_names, candidates, lookup

_LONGEST_NAME = 14  # tokens
_OPEN_MODELS = ("gpt-oss-120b", "llama-3.1-70b")  # named beside a model whose weights nobody has


def _pattern(name: str) -> re.Pattern[str]:
    return grammar.named(name, "models")


def find_models(text: str) -> list[ModelMention]:
    """Every model that lower-cased ``text`` names, in reading order: known, of the hub, unknown, or a bare size."""
    finder = _Finder(text)
    finder.closed()
    finder.hub_ids()
    finder.unmodelled()
    finder.known()
    finder.families()
    finder.other_names()
    finder.sizes()
    finder.size_apart()
    finder.sizes_beside()
    return sorted(finder.found, key=lambda mention: mention.start)


class _Finder:
    def __init__(self, text: str) -> None:
        self.text = text
        self.taken: list[Span] = []
        self.found: list[ModelMention] = []

    def add(self, mention: ModelMention, end: int) -> None:
        if not overlaps((mention.start, end), self.taken):
            self.found.append(mention)
            self.taken.append((mention.start, end))

    def free(self, match: re.Match[str]) -> bool:
        return not overlaps(match.span(), self.taken)

    def closed(self) -> None:
        for match in grammar.matcher("names", "closed").finditer(self.text):
            self.add(ModelMention(match[0].strip(), "closed", None, match.start(), nearest=_OPEN_MODELS), match.end())

    def unmodelled(self) -> None:
        for topic, match in grammar.found("names", "unmodelled", self.text):
            if self.free(match):
                size, end = self._size_beside(match.start(), match.end())
                mention = ModelMention(match[0].strip(), "unmodelled", None, match.start(), size=size, topic=topic)
                self.add(mention, end)

    def known(self) -> None:
        for start, end, hit in _spans(self.text):
            if _is_tool(self.text, start, end):
                continue
            name = self.text[start:end].strip()
            sized = None if _pattern("has_size").search(name) else self._with_size_before(start, end)
            if sized:
                self.add(sized, end)
            elif load_model(hit.id).modality == "diffusion":
                self.add(ModelMention(name, "unmodelled", None, start, topic="diffusion"), end)
            else:
                self.add(ModelMention(name, "known", hit.id, start, note=hit.note), end)

    def families(self) -> None:
        """A family's name with a size that the tables do not hold ("llama 9 500b")."""
        for match in _families().finditer(self.text):
            if not self.free(match) or _is_tool(self.text, match.start(), match.end()):
                continue
            sized = self._with_size_after(match.start(), match.end())
            if sized is None:
                before = self._with_size_before(match.start(), match.end())
                sized = (before, match.end()) if before else self._other_version(match.start(), match.end())
            if sized:
                self.add(*sized)

    def hub_ids(self) -> None:
        """Whole hub ids, before a family's name inside one is taken for the model."""
        for match in _pattern("hub_id").finditer(self.text):
            owner, _, name = match[1].partition("/")
            if (
                re.search(r"[a-z]{2}", name)
                and re.search(r"[a-z]{3}", owner + name)
                and re.search(r"\d|instruct|base|chat", match[1].split("/")[1])
            ):
                mention = _resolve(match[1], match.start())
                if mention.kind == "unknown":
                    mention = replace(mention, kind="hub", argument=match[1], size=_size_in(match[1]))
                self.add(mention, match.end())

    def other_names(self) -> None:
        """Words glued to a size ("zephyr-7b")."""
        plain = frozenset(grammar.data("names")["size_prefixes"])
        for match in _pattern("name_with_size").finditer(self.text):
            word = match[1].rstrip("-_.")
            glue = self.text[match.end(1) : match.start(2)]
            apart = glue == " " or (not glue and word.isalpha() and len(word) < 4)  # "serve 70b": no name
            if word in plain or len(word) < 3 or not self.free(match) or apart or (match[3] == "m" and not glue):
                continue
            self.add(_resolve(match[0], match.start(), match[2] + match[3]), match.end())

    def sizes(self) -> None:
        for match in _pattern("mixture").finditer(self.text):  # "67b-a2b": so much in all, so much for a token
            label = f"{match[1]}B-A{match[2]}B"
            self.add(ModelMention(match[0], "size", label, match.start(), size=f"{match[1]}B"), match.end())
        for match in _pattern("two_sizes").finditer(self.text):
            if self.free(match):
                self.found += [
                    ModelMention(f"{size}b", "size", f"{size}B", match.start(), size=f"{size}B")
                    for size in (match[1], match[2])
                ]
                self.taken.append(match.span())
        for match in _pattern("spelled_size").finditer(self.text):
            if count := number_word(match[1]):
                label = f"{count}B"
                self.add(ModelMention(match[0], "size", label, match.start(), size=label), match.end())
        for match in _pattern("size_in_words").finditer(self.text):
            amount, unit = (match[1], match[2]) if match[1] else (match[3], match[4])
            scale = grammar.data("numbers")["scales"].get(unit.rstrip("."), 1e9)
            label = f"{float(amount.replace(',', '.')) * float(scale) / 1e9:g}B"
            self.add(ModelMention(match[0], "size", label, match.start(), size=label), match.end())
        for match in _pattern("size").finditer(self.text):
            if _plausible(match):
                label = f"{match[1].replace(',', '.')}{match[2].upper()}"
                self.add(ModelMention(match[0].strip(), "size", label, match.start(), size=label), match.end())

    def size_apart(self) -> None:
        """A family and a size some words on are one model: "qwen lora 14b"; "llama vs 70b" are two."""
        if [mention.kind for mention in self.found] != ["known", "size"]:
            return
        family, size = self.found
        between = self.text[family.start + len(family.text) : size.start]
        named = _families().fullmatch(family.text) and family.start < size.start
        if named and _pattern("same_model").fullmatch(between):
            whole = _resolve(f"{family.text} {size.argument}", family.start, size.argument)
            self.found = [replace(whole, text=f"{family.text} {size.text}")]

    def sizes_beside(self) -> None:
        """A bare size set beside a model of a family is that family's, where it has one: "pythia-160m and 410m"."""
        self.found.sort(key=lambda mention: mention.start)
        for index in range(1, len(self.found)):
            named, size = self.found[index - 1 : index + 1]
            between = self.text[named.start + len(named.text) : size.start]
            if named.kind != "known" or size.kind != "size" or not _pattern("beside").fullmatch(between):
                continue
            name, changed = _pattern("a_size").subn(f"{size.argument}", named.text)
            hit = lookup("models", name) if changed == 1 and "x" not in named.text[-8:] else None
            if hit is not None and hit.id != named.argument:
                self.found[index] = replace(size, kind="known", argument=hit.id, note=hit.note)

    def _with_size_before(self, start: int, end: int) -> ModelMention | None:
        """A family with its size in front: "a 7b llama", "8b llama 3"."""
        before = _pattern("size_before").search(self.text[max(0, start - 9) : start])
        if not before:
            return None
        begin = start - len(before[0])
        mention = _resolve(f"{self.text[start:end]} {before[1]}b", begin, f"{before[1]}B")
        return replace(mention, text=self.text[begin:end])

    def _with_size_after(self, start: int, end: int) -> tuple[ModelMention, int] | None:
        match = _pattern("family_size").match(self.text, end)
        size = _pattern("size_at_end").search(match[0]) if match else None
        if not match or not size or not (size[1] or size[3]):
            return None  # a version without a size: the known names had their chance
        label = None if size[1] else f"{size[2]}{size[3].upper()}"
        return _resolve(self.text[start : match.end()].strip(), start, label), match.end()

    def _other_version(self, start: int, end: int) -> tuple[ModelMention, int] | None:
        """A version that the tables do not hold, with or without a size: "phi-7", "mistral huge 300b"."""
        match = _pattern("other_version").match(self.text, end)
        if not match:
            return None
        name = self.text[start : match.end()]
        return replace(_resolve(name, start, _size_in(name)), kind="unknown"), match.end()

    def _size_beside(self, start: int, end: int) -> tuple[str | None, int]:
        """A size right after or before a name is that name's, not a model of its own."""
        match = _pattern("size_after").match(self.text[end : end + 10])
        if match:
            return f"{match[1]}B", end + match.end()
        match = _pattern("size_before").search(self.text[max(0, start - 9) : start])
        if match:
            self.taken.append((start - len(match[0]), start))
            return f"{match[1]}B", end
        return None, end


@lru_cache(maxsize=1)
def _name_words() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Words that begin a model's name, words that stand in one, and those that name none alone."""
    names = [TOKEN.findall(name) for name in all_names("models")]
    ordinary = frozenset(grammar.data("names")["ordinary_starts"])
    inner = {token for parts in names for token in parts if token.isalpha()} | set(grammar.data("names")["name_words"])
    starts = {next((token for token in parts if token.isalpha()), "") for parts in names} | {"meta"}
    return frozenset(word for word in starts if len(word) > 1) | (ordinary & inner), frozenset(inner), ordinary


def _spans(text: str) -> Iterator[tuple[int, int, Found]]:
    """The longest piece of text at each place that the knowledge base knows as a model."""
    starts, inner, ordinary = _name_words()
    pieces = tokens(text)
    index = 0
    while index < len(pieces):
        begin, _end, word = pieces[index]
        glued = index + 1 < len(pieces) and pieces[index + 1][0] == _end and word + pieces[index + 1][2]
        if (word in starts or glued in ordinary) and not (begin and joined(text[begin - 1])):
            for stop, right in _ends(text, pieces, index, inner):
                if stop == index and (word in ordinary or len(word) < 3):
                    continue
                hit = lookup("models", text[begin:right])
                if hit is None:
                    continue
                if not _pattern("has_size").search(text[begin:right]) and _goes_on(text, right):
                    break
                yield begin, right, hit
                index = stop
                break
        index += 1


def _goes_on(text: str, end: int) -> bool:
    """The name that ends at ``end`` has more to it, so that the model known by its beginning is another."""
    return any(_pattern(name).match(text, end) for name in ("more_name", "other_version"))


def _ends(text: str, pieces: list[tuple[int, int, str]], index: int, inner: frozenset[str]) -> list[tuple[int, int]]:
    """Where a name that begins at ``index`` may end, the longest first."""
    ends = []
    for stop in range(index, min(index + _LONGEST_NAME, len(pieces))):
        left, right, piece = pieces[stop]
        readable = piece in inner if piece.isalpha() else piece in "-_./+" or piece[0].isdigit()
        if (stop > index and left - pieces[stop - 1][1] > 2) or not readable:
            break
        if piece[0].isalnum() and not joined(text[right : right + 1]):
            ends.append((stop, right))
    return ends[::-1]


@lru_cache(maxsize=1)
def _families() -> re.Pattern[str]:
    names = sorted(grammar.data("names")["families"], key=len, reverse=True)
    parts = "|".join(re.escape(name).replace("\\-", "[ _-]?") for name in names)
    return re.compile(rf"(?<![a-z0-9])(?:{parts})(?![a-z])", re.ASCII)


def _size_in(name: str) -> str | None:
    """The size that a hub id states ("some-lab/new-model-9b" -> 9B), as a bare size is written."""
    count, _rest = model_key(name).without_size()
    return f"{count / 1e9:g}B" if count else None


def _resolve(name: str, start: int, size: str | None = None) -> ModelMention:
    hit = lookup("models", name)
    if hit is not None:
        return ModelMention(name, "known", hit.id, start, note=hit.note)
    label = size.upper() if size else None
    return ModelMention(name, "unknown", label, start, size=label, nearest=tuple(candidates("models", name, 3)))


def _is_tool(text: str, start: int, end: int) -> bool:
    """Tools such as "llama-factory", "llama.cpp" and "lit-llama" are no models."""
    if _pattern("ends_as_a_model").search(text[max(0, start - 9) : end]):
        return True
    return _pattern("a_tool").match(text[end : end + 12]) is not None


def _plausible(match: re.Match[str]) -> bool:
    value = float(match[1].replace(",", "."))
    return {"m": 10 <= value <= 9999, "t": value <= 20, "b": True}[match[2]]
