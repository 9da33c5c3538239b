"""A second, plainer check for numbers that rest on nothing, so that grading does not stand on the product's own check.

Reads every decimal number of a text with its prefix, and looks for its digits' value, at the rounding it is shown
with, among all numbers of the turn's results (scaled by the prefixes and by time) and all numbers that the user typed.
It knows nothing of entities or dimensions, so it misses much; what it does find is certainly not grounded.
"""

from __future__ import annotations

import json
import re
from typing import Any

from evals.transcript import Happened

_NUMBER = re.compile(r"(?<![\w.,/-])(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?![\w]*[-.]?\w*\d[A-Za-z])")
_SCALES = (1.0, 1e2, 1e3, 1e6, 1e9, 1e12, 1e15, 1e18, 2.0**10, 2.0**20, 2.0**30, 2.0**40, 1e-2, 1e-3, 1e-6)
_TIMES = (1.0, 60.0, 3600.0, 86400.0, 24.0, 1 / 60, 1 / 3600, 1 / 86400, 1 / 24, 0.125, 1.25e8, 8.0)
_PLAIN_BELOW = 13  # list positions, counts of knobs, hours of the day: too common to hold against a text


def stray_numbers(happened: Happened, said: list[str]) -> list[str]:
    """Numbers of the text that no result holds in any unit and the user did not type."""
    known = sorted(_known(happened, said))
    return [
        match[0]
        for match in _NUMBER.finditer(_bare(happened.text))
        if not _stands(float((match[1] + (match[2] or "")).replace(",", "")), len(match[2] or ".") - 1, known)
    ]


def _bare(text: str) -> str:
    """The text without what only looks like numbers: code, links, dates, and names with digits in them."""
    text = re.sub(r"```.*?```|`[^`]*`|https?://\S+", " ", text, flags=re.DOTALL)
    text = re.sub(r"\b(?:19|20)\d\d(?:-\d\d(?:-\d\d)?)?\b", " ", text)
    text = re.sub(r"\b(?:RTX|GTX|RX|PRO|Quadro|Radeon|Titan|Gaudi|Xeon|Ultra|Max)\s(?:\w+\s)?\d{1,4}\b", " ", text)
    return re.sub(r"\b[A-Za-z]+[-\w.]*\d[-\w.]*|\b\d+[xX](?=[\s×]*[A-Z])|\b\d[\w.]*[A-Za-z]\w*\b", " ", text)


def _known(happened: Happened, said: list[str]) -> set[float]:
    found: set[float] = set()
    for call in happened.calls:
        _collect(call.get("result") or call.get("error") or {}, found)
        _collect(call["arguments"], found)
    if happened.answer:
        _collect([warn["text"] for warn in happened.answer["warnings"]], found)
        _collect(happened.answer["turn_id"], found)
    _collect(said, found)
    return found


def _collect(value: Any, found: set[float]) -> None:
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, (int, float)):
        found.add(abs(float(value)))
    elif isinstance(value, str):
        for match in re.finditer(r"(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(e[+-]?\d+)?", value):
            found.add(float(match[0].replace(",", "")))
    elif isinstance(value, dict):
        for item in value.values():
            _collect(item, found)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, found)
    else:
        _collect(json.loads(json.dumps(value, default=str)), found)


def _stands(shown: float, decimals: int, known: list[float]) -> bool:
    if shown < _PLAIN_BELOW and decimals == 0:
        return True
    step = 10.0**-decimals
    if decimals == 0 and shown >= 100:
        step = max(1.0, 10.0 ** (len(str(int(shown))) - 3))  # three significant digits
    for value in known:
        for scale in _SCALES:
            for time in _TIMES:
                if abs(value / scale * time - shown) <= 0.5 * step + 1e-9 * shown:
                    return True
    return False
