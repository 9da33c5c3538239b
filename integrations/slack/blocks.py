"""From an answer to Block Kit: verdict, bill as a table, the rest as text, a chart, sources, buttons. Pure.

Limits are Slack's: 50 blocks, 3,000 characters a section, 12,000 of markdown a message, one table of 100 rows x 20
columns, a chart title of 50 characters, labels of 20, 6 series (docs.slack.dev, Block Kit reference, June 2026).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from advisor.render import plain as as_plain
from advisor.render import split_blocks
from integrations.slack.chart import native_chart
from integrations.slack.escape import cut, markdown, mrkdwn, plain

Block = dict[str, Any]
SECTION_CHARS = 2900
MARKDOWN_CHARS = 8000
TABLE_ROWS, TABLE_COLUMNS = 50, 10
FALLBACK_CHARS = 2800
# What a button asks in the thread; the planner reads them like any follow-up.
FOLLOW_UPS = {"cheaper": "what is cheaper?", "faster": "what is faster?", "launch": "give me the launch command"}


@dataclass(frozen=True, slots=True)
class Post:
    """A message: blocks, and the text that notifications and old clients show."""

    blocks: list[Block]
    text: str


def answer_post(answer: dict[str, Any]) -> Post:
    """The message for an ``ask --json`` object: at most 50 blocks and a fallback text, all escaped and within Slack's
    limits. KeyError for an object of another shape.
    """
    pieces = [(kind, block) for kind, block in split_blocks(answer["answer"]) if block.strip()]
    verdict, rest = _verdict(pieces)
    blocks: list[Block] = [section(f"*{mrkdwn(part)}*") for part in _parts(verdict, SECTION_CHARS - 2)[:2]]
    blocks += _body(rest)
    blocks += [chart for spec in answer.get("charts", ())[:2] if (chart := native_chart(spec))][:1]
    if answer.get("citations"):
        blocks.append(_sources(answer["citations"]))
    if answer.get("tool_calls"):
        blocks.append(_buttons(answer["turn_id"]))
    blocks.append(_feedback(answer["turn_id"]))
    return Post(blocks[:50], fallback_text(answer["answer"]))


def plain_post(answer: dict[str, Any]) -> Post:
    """The same in sections alone, for workspaces that do not know the newer blocks yet."""
    text = as_plain(answer["answer"])
    blocks = [section(f"```{mrkdwn(part)}```") for part in _parts(text, SECTION_CHARS - 200)[:8]]
    return Post(blocks, fallback_text(answer["answer"]))


def words_post(text: str) -> Post:
    """A message of a sentence or two; ``text`` is not escaped yet and is cut to a section's 3,000 characters."""
    return Post([section(mrkdwn(cut(text, SECTION_CHARS)))], mrkdwn(cut(text, FALLBACK_CHARS)))


def section(text: str) -> Block:
    """A mrkdwn section block; ``text`` is escaped already and at most 3,000 characters long."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def fallback_text(answer: str) -> str:
    """The whole answer, Markdown, as escaped text within the limit of a notification; "Answered." where nothing is
    left.
    """
    return mrkdwn(cut(as_plain(answer).strip(), FALLBACK_CHARS)) or "Answered."


def sums_view(answer: dict[str, Any]) -> dict[str, Any]:
    """A modal with the sum of every tool call of an ``ask --json`` object, at most 100 blocks; a sentence where none
    has one.
    """
    blocks: list[Block] = []
    for call in answer["tool_calls"]:
        steps = (call.get("result") or {}).get("steps") or []
        if not steps:
            continue
        blocks.append({"type": "header", "text": {"type": "plain_text", "text": plain(_words(call["name"]), 150)}})
        lines = [f"{step['symbol']} = {step['expression']} = {_number(step['value'])} {step['unit']}" for step in steps]
        blocks += [section(mrkdwn(part)) for part in _parts("\n".join(f"• {line}" for line in lines), SECTION_CHARS)]
    blocks = blocks or [section("This answer rests on quoted facts; there is no sum to show.")]
    return {"type": "modal", "title": _title("The sums"), "close": _title("Close"), "blocks": blocks[:100]}


def _title(text: str) -> Block:
    return {"type": "plain_text", "text": plain(text, 24)}


def _verdict(pieces: Sequence[tuple[str, str]]) -> tuple[str, list[tuple[str, str]]]:
    if not pieces or pieces[0][0] != "text":
        return "The answer", list(pieces)
    first, _, more = pieces[0][1].strip().partition("\n\n")
    rest = [("text", more)] if more.strip() else []
    return first.replace("**", "").strip(), [*rest, *pieces[1:]]


def _body(pieces: Iterable[tuple[str, str]]) -> list[Block]:
    """One native table, since Slack takes one a message; later tables as text, all text within the limit."""
    blocks: list[Block] = []
    left, tabled = MARKDOWN_CHARS, False
    for kind, block in pieces:
        if kind == "table" and not tabled:
            blocks.append(_table(block))
            tabled = True
            continue
        text = f"```\n{as_plain(block).strip()}\n```" if kind == "table" else block.strip()
        text = markdown(text)
        if not text.strip():
            continue
        if len(text) > left:
            note = "_The rest is in the sums and on the web page._"
            if left > 200 and kind == "text":
                blocks.append({"type": "markdown", "text": cut(text, left - 100)})
            blocks.append({"type": "markdown", "text": note})
            break
        left -= len(text)
        blocks.append({"type": "markdown", "text": text})
    return blocks


def _table(block: str) -> Block:
    lines = [line.strip().strip("|") for line in block.strip().split("\n")]
    rule = [cell.strip() for cell in lines[1].split("|")] if len(lines) > 1 else []
    rows = [[_cell(cell) for cell in line.split("|")] for number, line in enumerate(lines) if number != 1]
    width = min(TABLE_COLUMNS, len(rows[0]))
    rows = [(row + [_cell("")] * width)[:width] for row in rows[: TABLE_ROWS + 1]]
    settings = [{"align": "right" if mark.endswith(":") else "left", "is_wrapped": True} for mark in rule[:width]]
    return {"type": "table", "rows": rows, "column_settings": settings}


def _cell(text: str) -> Block:
    shown = plain(text.strip().replace("**", ""), 200)
    return {"type": "raw_text", "text": shown or "–"}


def _sources(citations: Sequence[dict[str, Any]]) -> Block:
    titles = [f"{one['title']} ({one['as_of']})" if one.get("as_of") else one["title"] for one in citations[:4]]
    more = f" and {len(citations) - 4} more" if len(citations) > 4 else ""
    return {
        "type": "context",
        "elements": [{"type": "mrkdwn", "text": mrkdwn(cut("Sources: " + "; ".join(titles) + more, 1900))}],
    }


def _buttons(turn_id: str) -> Block:
    labels = [("cheaper", "Cheaper"), ("faster", "Faster"), ("sums", "Show the sums"), ("launch", "Launch command")]
    return {
        "type": "actions",
        "elements": [
            {
                "type": "button",
                "action_id": f"follow_{name}",
                "text": {"type": "plain_text", "text": label},
                "value": turn_id,
            }
            for name, label in labels
        ],
    }


def _feedback(turn_id: str) -> Block:
    def button(text: str, rating: int) -> Block:
        return {"text": {"type": "plain_text", "text": text}, "value": f"{turn_id} {rating}"}

    return {
        "type": "context_actions",
        "elements": [
            {
                "type": "feedback_buttons",
                "action_id": "feedback",
                "positive_button": button("Good answer", 1),
                "negative_button": button("Bad answer", -1),
            }
        ],
    }


def _parts(text: str, most: int) -> list[str]:
    """``text`` in pieces within ``most`` characters once escaped, cut at line ends where possible."""
    parts: list[str] = []
    current = ""
    for line in text.split("\n"):
        while len(mrkdwn(line)) > most:
            parts += [current] if current else []
            current, line = "", line
            parts.append(line[: most // 5])
            line = line[most // 5 :]
        joined = f"{current}\n{line}" if current else line
        if len(mrkdwn(joined)) > most:
            parts.append(current)
            joined = line
        current = joined
    return [part for part in [*parts, current] if part.strip()] or ["–"]


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _number(value: Any) -> str:
    return f"{value:,.6g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)
