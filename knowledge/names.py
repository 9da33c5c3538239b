"""Resolving what people call things: exact keys first, then what was left out, then "did you mean".

Never a silent wrong match: every number in the asked name must be in the found one, a guess is written in
``Match.note`` with the alternatives, and anything else raises UnknownName with the nearest known names.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

from rapidfuzz import fuzz, process
from rapidfuzz.distance import DamerauLevenshtein

from knowledge.errors import BadValue, UnknownName
from knowledge.name_keys import GRAMMAR, ModelKey, fold, gpu_key, model_key, squash
from knowledge.store import connection

_LABEL = {"models": "a model", "gpus": "a GPU", "instances": "a machine type", "links": "an interconnect"}
_COUNTED = re.compile(
    r"^\s*(\d{1,5})\s*[x×*]\s*(?=[a-z0-9])|^\s*(\d{1,5})\s+(?=(?:rtx|a\d|h\d|b\d|v\d|l\d|mi\d))", re.I
)
_USUAL_SIZE = 8e9  # the size most fine-tuning questions are about; decides among sizes when none was given


@dataclass(frozen=True, slots=True)
class Found:
    """An id, the sentence to show when it was a guess, and what else it could have been."""

    id: str
    note: str | None = None
    alternatives: tuple[str, ...] = ()
    memory_gb: float | None = None  # stated size of a system-on-chip sold with several


def find(kind: str, asked: str, field: str, hint: str) -> Found:
    """The id that ``asked`` means. Raises UnknownName, or BadValue where a GPU's stated memory contradicts it."""
    name = asked if isinstance(asked, str) else str(asked)
    try:
        found = lookup(kind, name)
    except BadValue as problem:
        problem.field = field
        raise
    if found is None:
        raise unknown(kind, name, field, hint)
    return found


def lookup(kind: str, asked: str) -> Found | None:
    """What ``asked`` means, or None: for readers that try many pieces of a text and need no suggestions."""
    if not asked.strip() or len(asked) > 200:
        return None
    if kind == "models":
        return _find_model(asked)
    return _find_gpu(asked) if kind == "gpus" else _find_squashed(kind, asked)


def find_id(kind: str, asked: str) -> str | None:
    """The id meant without any guess; None for an unknown name, a contradiction, or what only a guess would resolve."""
    try:
        found = find(kind, asked, kind, "")
    except (UnknownName, BadValue):
        return None
    return found.id if found.note is None else None


def unknown(kind: str, asked: str, field: str, hint: str) -> UnknownName:
    """The error to raise for a name that is not held, with the nearest names of its kind; a count before a card ("8x
    H100") is pointed out in place of ``hint``.
    """
    label = _LABEL[kind]
    counted = _COUNTED.match(asked) if kind == "gpus" else None
    if counted:
        card, count = asked[counted.end() :].strip(), counted[1] or counted[2]
        hint = f"Give the card and the count apart: gpu={card!r}, n_gpus={count}."
    return UnknownName(
        f"unknown_{kind.removesuffix('s')}",
        f"I do not know {label} called {asked[:60]!r}.",
        field=field,
        hint=hint,
        candidates=candidates(kind, asked),
    )


def candidates(kind: str, asked: str, limit: int = 4) -> list[str]:
    """At most ``limit`` ids whose names are most like ``asked``, best first; [] where none is alike (rapidfuzz ratio of
    at least 50 for GPUs, weighted ratio of 60 else).
    """
    names = all_names(kind)
    asked = _COUNTED.sub("", asked) if kind == "gpus" else asked
    if kind == "models":
        text = model_key(asked).text or fold(asked)
    else:
        text = fold(asked) if kind == "gpus" else squash(asked, kind)
    scorer, floor = (fuzz.ratio, 50) if kind == "gpus" else (fuzz.WRatio, 60)  # short card names: whole ones compared
    found = process.extract(text[:80], names.keys(), scorer=scorer, limit=limit * 8, score_cutoff=floor)
    return list(dict.fromkeys(names[name] for name, _score, _index in found))[:limit]


@lru_cache(maxsize=8)
def all_names(kind: str) -> dict[str, str]:
    """Every exact name of a kind ("models", "gpus", "instances", "links"), folded, with the id it stands for. Cached:
    do not change it.
    """
    rows = connection().execute("select name, id from names where kind = ? and how = 'exact' order by rowid", (kind,))
    return {str(row["name"]): str(row["id"]) for row in rows}


def short(name: str) -> str:
    """An id as people say it: without the owner and without Hugging Face's "-hf"."""
    return name.rsplit("/", 1)[-1].removesuffix("-hf")


@dataclass(frozen=True, slots=True)
class _Row:
    id: str
    how: str
    size: float
    year: int
    text: bool


def _rows(kind: str, key: str, how: str | None = None) -> list[_Row]:
    where = " and how = ?" if how else ""
    arguments = (kind, key, how) if how else (kind, key)
    found = connection().execute(
        f"select id, how, size, year, text from names where kind = ? and name = ?{where} order by rowid", arguments
    )
    return [_Row(str(r["id"]), str(r["how"]), float(r["size"]), int(r["year"]), bool(r["text"])) for r in found]


@lru_cache(maxsize=4096)
def _find_model(asked: str) -> Found | None:
    whole = _rows("models", fold(asked), "id")
    if whole:
        return Found(whole[0].id)
    for name, remark in _spellings(asked):
        key = model_key(name)
        found = _match_model(asked, key)
        if found is None:
            again = _reworded(key)
            found = _match_model(asked, again) if again else None
            remark = remark or again is not None
        if found is None:
            continue
        note = found.note
        if note is None and key.quantised:
            note = f"{asked!r} has the architecture of {short(found.id)}; give the precision to size quantised weights."
        elif note is None and remark:
            note = f"{asked!r} read as {short(found.id)}."
        return Found(found.id, note, found.alternatives)
    return None


def _spellings(asked: str) -> list[tuple[str, bool]]:
    """The name, then with "_" between digits as a blank ("LLAMA3_8B"), then without a remark in brackets."""
    out = [(asked, False)]
    if re.search(r"\d_\d", asked):
        out.append((asked.replace("_", " "), False))
    bare = re.sub(r"\s{0,9}\([^()]*\)", " ", asked)
    if bare.strip() and bare != asked:
        out.append((bare, True))
    return out


def _match_model(asked: str, key: ModelKey) -> Found | None:
    keys = [tried for tried in dict.fromkeys((key, key.stripped())) if tried.tokens]
    rows = {tried.text: _rows("models", tried.text) for tried in keys}
    for found in rows.values():
        guess = [row.id for row in found if row.how == "ambiguous"]
        if guess:
            return _guessed(asked, guess[0], guess[1:])
        exact = [row.id for row in found if row.how == "exact"]
        if exact:
            return Found(exact[0])
    for found in rows.values():
        variant = [row.id for row in found if row.how == "variant"]
        if variant:
            return Found(variant[0], f"{asked!r} has the architecture of {short(variant[0])}.")
    for found in rows.values():
        loose = [row for row in found if row.how != "id"]
        if loose:
            best, others = _best_of(loose)
            return _guessed(asked, best, others) if others or loose[0].how != "active" else Found(best)
    return _with_size_said_twice(keys[-1]) if keys else None


def _with_size_said_twice(key: ModelKey) -> Found | None:
    """For "GPT-2 XL 1.5B": the name without its size is known, and the size agrees within 6 %."""
    size, rest = key.without_size()
    if not size or not rest.tokens:
        return None
    known = [row for row in _rows("models", rest.text, "exact") if abs(row.size / size - 1) < 0.06]
    return Found(known[0].id) if known else None


def _best_of(rows: list[_Row]) -> tuple[str, list[str]]:
    """What to take when a size or generation was left out: text models, the usual size, then the newest."""
    by_size = any("size" in row.how for row in rows)

    def rank(row: _Row) -> tuple[bool, float, int]:
        distance = abs(math.log(row.size / _USUAL_SIZE)) if by_size and row.size else 0.0
        return (not row.text, round(distance, 1), -row.year)

    ordered = list(dict.fromkeys(row.id for row in sorted(rows, key=rank)))
    return ordered[0], ordered[1:]


def _guessed(asked: str, best: str, others: list[str]) -> Found:
    rest = tuple(other for other in others if other != best)
    note = f"{asked!r} read as {short(best)}"
    if rest:
        shown = [other if short(other).casefold() == asked.casefold() else short(other) for other in rest[:4]]
        note += "; it could also mean " + _either(shown)
    return Found(best, note + ".", rest)


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def _reworded(key: ModelKey) -> ModelKey | None:
    """The key with a bare last number read as a size ("falcon 180"), the size put last ("70b llama"), or one family
    word put right ("lama" -> "llama"); the numbers stay what they are.
    """
    tokens = list(key.tokens)
    bare = [n for n, token in enumerate(tokens) if re.fullmatch(r"\d{2,3}", token)]
    if bare and key.without_size()[0] is None:
        tokens[bare[-1]] += "b"
        return ModelKey(tuple(tokens), key.quantised)
    moved = key.with_size_last()
    if moved != key:
        return moved
    words = _vocabulary()
    for n, token in enumerate(tokens):
        if token.isalpha() and len(token) >= 4 and token not in words:
            reach = 1 if len(token) < 7 else 2
            near = sorted((DamerauLevenshtein.distance(token, word, score_cutoff=reach), word) for word in words)
            near = [pair for pair in near if pair[0] <= reach]
            if near and (len(near) == 1 or near[0][0] < near[1][0]):
                tokens[n] = near[0][1]
                return ModelKey(tuple(tokens), key.quantised)
            return None
    return None


@lru_cache(maxsize=1)
def _vocabulary() -> frozenset[str]:
    return frozenset(t for name in all_names("models") for t in name.split() if t.isalpha() and len(t) >= 4)


@lru_cache(maxsize=4096)
def _find_gpu(asked: str) -> Found | None:
    if _COUNTED.match(asked):
        return None
    found = _match_gpu(asked, asked)
    bare = re.sub(r"\s{0,9}\([^()]*\)", " ", asked)
    if found is None and bare.strip() and bare != asked:  # a remark in brackets, as in "H100 (form not stated)"
        found = _match_gpu(asked, bare)
        if found and found.note is None:
            found = Found(found.id, f"{asked!r} read as {found.id}.", found.alternatives, found.memory_gb)
    return found


def _match_gpu(asked: str, name: str) -> Found | None:
    key = gpu_key(name)
    stored = connection().execute(
        "select id, memory, form, memory_type, socket, how from gpu_names where card = ? order by rowid", (key.card,)
    )
    rows = [_Card(r["id"], float(r["memory"]), r["form"], r["memory_type"], r["socket"], r["how"]) for r in stored]
    guess = [row.id for row in rows if row.how == "ambiguous"]
    if guess and key.form is None:
        return _guessed(asked, guess[0], guess[1:])
    if not rows:
        return None
    fitting, chosen = _with_memory(asked, key.memory, rows)
    if key.form:
        fitting = [row for row in fitting if row.form == key.form]
    if key.memory_type:
        fitting = [row for row in fitting if row.memory_type == key.memory_type] or fitting
    ids = list(dict.fromkeys(row.id for row in fitting))
    if not ids:
        return None
    preferred = [gpu_id for gpu_id in GRAMMAR["gpus"]["defaults"].get(key.card, ()) if gpu_id in ids]
    best = (preferred or ids)[0]
    socket = next(row.socket for row in fitting if row.id == best)
    if key.socket and socket and socket != key.socket:
        return Found(best, f"{asked!r} read as {best}, whose socket is {socket}.", tuple(ids[1:]))
    return _guessed(asked, best, ids) if len(ids) > 1 else Found(best, memory_gb=chosen)


@dataclass(frozen=True, slots=True)
class _Card:
    id: str
    memory: float
    form: str | None
    memory_type: str | None
    socket: str | None
    how: str


def _with_memory(asked: str, stated: float | None, rows: list[_Card]) -> tuple[list[_Card], float | None]:
    """The cards that have the stated memory (None: the usual ones); an error where none ever had that much."""
    if stated is None:
        usual = [row for row in rows if row.id not in GRAMMAR["gpus"]["only_when_stated"]]
        return usual or rows, None
    off = {row.id: min(abs(stated / size - 1) for size in _sizes(row.id, row.memory)) for row in rows}
    nearest = min(off.values())
    if nearest <= 0.02:
        return [row for row in rows if off[row.id] == nearest], None
    if all(row.form == "soc" for row in rows) and stated <= max(row.memory for row in rows):
        return rows, stated
    usual = GRAMMAR["gpus"]["defaults"].get(gpu_key(asked).card, ())
    ids = list(dict.fromkeys([*usual, *(row.id for row in rows)]))
    has = _either([f"{size:g} GB" for size in sorted({row.memory for row in rows})])
    same = connection().execute("select distinct id from gpu_names where memory = ? order by rowid", (stated,))
    raise BadValue(
        "memory_contradicts_gpu",
        f"{asked[:60]!r}: that card has {has}, not {stated:g} GB.",
        field="gpu",
        hint="Leave the memory out, or name the card that has it.",
        candidates=[*ids[:3], *[str(row["id"]) for row in same][:3]],
    )


def _sizes(gpu_id: str, memory: float) -> list[float]:
    return [memory, *GRAMMAR["gpus"]["memory_names"].get(gpu_id, [])]


@lru_cache(maxsize=2048)
def _find_squashed(kind: str, asked: str) -> Found | None:
    key = squash(asked, kind)
    rows = _rows(kind, key) if key else []
    exact = {row.id for row in rows if row.how == "exact"}
    if len(exact) == 1:
        return Found(exact.pop())
    other = list(dict.fromkeys(row.id for row in rows))
    return _guessed(asked, other[0], other[1:]) if other else None
