"""The one place where text becomes Slack text: nothing in it can ping, link or mark up what its author did not mean.

Slack reads ``<!channel>``, ``<@U…>``, ``<#C…>`` and ``<url|label>`` in mrkdwn and inside markdown blocks as well;
without angle brackets none of them is a token. In mrkdwn ``&`` is escaped too, as Slack asks; in markdown it is left,
since an escaped one breaks the addresses of links.
"""

from __future__ import annotations

import re

_MARKDOWN_LINK = re.compile(r"!?\[([^\[\]\n]{0,400})\]\(([^)\s]{0,2000})[^)\n]{0,400}\)")
_MENTION = re.compile(r"<@[UW][A-Z0-9]+(?:\|[^>]*)?>")
_LINK = re.compile(r"<(https?://[^|>\s]+)(?:\|([^>]*))?>")
_CHANNEL = re.compile(r"<#[CG][A-Z0-9]+(?:\|([^>]*))?>")
_SPECIAL = re.compile(r"<![^>]*>")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def mrkdwn(text: str) -> str:
    """Words for a mrkdwn field: entities escaped, nothing else changed."""
    return _clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def markdown(text: str) -> str:
    """Markdown for a markdown block: links show where they lead, brackets cannot form a token."""
    return _MARKDOWN_LINK.sub(_shown, _clean(text)).replace("<", "&lt;").replace(">", "&gt;")


def plain(text: str, most: int) -> str:
    """One line of words for a plain_text field, control characters out and cut to ``most`` characters."""
    return cut(_clean(text).replace("\n", " "), most)


def cut(text: str, most: int) -> str:
    """``text`` within ``most`` characters, the cut marked by an ellipsis that counts among them."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def typed(text: str) -> str:
    """What a person typed, without Slack's mark-up: no mentions, links as their address, entities as characters."""
    text = _MENTION.sub(" ", text)
    text = _LINK.sub(lambda match: match[1], text)
    text = _CHANNEL.sub(lambda match: f"#{match[1] or 'channel'}", text)
    text = _SPECIAL.sub(" ", text)
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        text = text.replace(entity, character)
    return "\n".join(" ".join(line.split(" ")).strip() for line in text.split("\n")).strip()


def _shown(match: re.Match[str]) -> str:
    label, address = match[1].strip(), match[2]
    return address if label in ("", address) else f"{label} ({address})"


def _clean(text: str) -> str:
    return _CONTROL.sub("", text.replace("\r\n", "\n"))
