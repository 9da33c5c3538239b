"""Addresses in an answer: those of the sources that we hold stand as they are, any other is no link and is taken out.

A model, a passage or a price feed that may put an address of its own before a reader can send what the answer says to
whoever owns it, by a click or by a client that fetches previews.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from knowledge.sources import all_sources

# With a scheme, as a link's target, or a host with a path; quantifiers are bounded, since any text is searched.
LINKS = re.compile(
    r"(?:https?|ftps?|wss?|file)://[^\s)>\]]+|(?<=\]\()\s{0,9}<?[^\s)>]+|\bwww\.[^\s)>\]]+"
    r"|(?<![a-z0-9-])(?:[a-z0-9-]{1,63}\.){1,9}[a-z]{2,12}/[^\s)>\]|`*,;]+",
    re.IGNORECASE,
)
_MARKDOWN = re.compile(r"!?\[([^\[\]\n]{0,400})\]\(\s{0,9}<?([^\s)>]{0,2000})[^)\n]{0,400}\)")
REMOVED = "(address removed)"


def is_held(address: str, cited: Iterable[str] = ()) -> bool:
    """Whether an address is that of a source of the knowledge base, or stands in ``cited`` (lower case)."""
    bare = address.strip("<> \t.,;:!?'\"*_`)").casefold()
    return bool(bare) and any(bare in place for place in (*_held(), *cited))


def unlinked(text: str, cited: Iterable[str] = ()) -> str:
    """``text`` with every address that is not held taken out; of a link its words stay."""
    if "." not in text and ":" not in text and "](" not in text:
        return text
    known = tuple(cited)

    def words(match: re.Match[str]) -> str:
        return match[0] if is_held(match[2], known) else f"{match[1]} {REMOVED}".strip()

    def bare(match: re.Match[str]) -> str:
        return match[0] if is_held(match[0], known) else REMOVED

    return LINKS.sub(bare, _MARKDOWN.sub(words, text))


@lru_cache(maxsize=1)
def _held() -> tuple[str, ...]:
    return tuple(source.locator.casefold() for source in all_sources().values() if source.locator)
