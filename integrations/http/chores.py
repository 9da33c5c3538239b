"""Small jobs that chat clients give a model on the side (titles, tags, follow-ups, search words): answered without one.

Open WebUI marks them with ``### Task:`` and wants JSON; LibreChat asks for a title in words.
"""

from __future__ import annotations

import json
import re

_LINE = re.compile(r"^[ \t]{0,20}(?:USER|User|Human)[ \t]{0,20}:\s{0,20}(.+)$", re.MULTILINE)
_QUOTED = re.compile(r"<chat_history>(.*?)</chat_history>", re.DOTALL)
_TITLE = re.compile(
    r"\b(?:title|name)\b.{0,80}\b(?:conversation|chat)\b|\b(?:conversation|chat)\b.{0,80}\btitle\b", re.I
)
_WORDS = re.compile(r"[\w.+-]+")
_DULL = re.compile(
    r"an?|and|are|can|could|do(?:es)?|for|from|how|i|in|is|it|many|me|much|my|need|of|on|or|our|should|that|the|to|us|"
    r"want|we|what|which|will|with|would|you|your",
    re.I,
)
LONGEST_TITLE = 48
_KINDS = (
    ("follow_ups", re.compile(r"follow[- ]?ups?\b", re.I)),
    ("queries", re.compile(r"\bsearch quer|\"queries\"", re.I)),
    ("tags", re.compile(r"\btags?\b", re.I)),
    ("title", re.compile(r"\btitle\b", re.I)),
    ("text", re.compile(r"autocomplet", re.I)),
)
_EMPTY: dict[str, object] = {"follow_ups": [], "queries": [], "tags": [], "text": ""}


def chore_reply(text: str) -> str | None:
    """The reply to such a job, JSON or a title in words; None for a question of a person, which a model is to answer.
    Pure and free of cost.
    """
    if text.lstrip().startswith("### Task:"):
        head = text.split("### Guidelines", 1)[0][:600]
        kind = next((name for name, pattern in _KINDS if pattern.search(head)), None)
        if kind == "title":
            return json.dumps({"title": title_of(text)}, ensure_ascii=False)
        if kind == "tags":
            return json.dumps({"tags": tags_of(text)}, ensure_ascii=False)
        return json.dumps({kind: _EMPTY[kind]}) if kind else None
    asks_for_title = len(text) < 20_000 and _TITLE.search(text[:400]) and re.search(r"\b\d(?:-\d)?[- ]words?\b", text)
    return title_of(text) if asks_for_title else None


def title_of(text: str) -> str:
    """The first question of the conversation that is quoted, cut at a word."""
    line = _question_of(text)
    if len(line) <= LONGEST_TITLE:
        return line.rstrip("?.! ") or "GPU sizing"
    return line[:LONGEST_TITLE].rsplit(" ", 1)[0].rstrip(",;:?.! ") + "…"


def tags_of(text: str) -> list[str]:
    """Up to three telling words of the first question, in its order; ["GPU"] where it has none."""
    words = [word for word in _WORDS.findall(_question_of(text)) if not _DULL.fullmatch(word)]
    return list(dict.fromkeys(words))[:3] or ["GPU"]


def _question_of(text: str) -> str:
    quoted = _QUOTED.search(text)
    found = _LINE.search(quoted.group(1) if quoted else text)
    return " ".join(found.group(1).split()) if found else ""
