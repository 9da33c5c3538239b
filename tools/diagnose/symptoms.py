"""When no message is pasted: what a description in words says of the moment and the kind of memory that ended."""

from __future__ import annotations

import re

from tools.diagnose.patterns import Kind, Report

_HOST = (
    r"\b(?:got |was |gets )?killed\b|\b-9\b|\b(?:host|system|cpu|machine|main)[ -](?:ram|memory|oom)\b|\btb of ram\b"
    r"|\b(?:all|eats?|uses?|takes?|out of|wants?)\b[^.?!]{0,24}(?<!v)\bram\b|\bgb (?:of )?ram\b|oom[ -]?killer"
)
_GPU = r"\bon (?:the )?gpu\b|\bcuda\b|\bvram\b|\bcard\b"
# Moments, the telling ones first.
_MOMENTS = (
    ("save", r"\bsav(?:e|es|ed|ing)\b(?! (?:memory|v?ram|space|money))|save_|state_dict"),
    ("kept", r"\b(?:metrics?|logging|logged|tensorboard|wandb)\b"),
    ("eval", r"\beval(?:uation|uating)?\b|\bvalidation\b|compute_metrics"),
    ("climbs", r"\b(?:climb|creep|grow|grew|ris(?:e|es|ing)\b|increas|leak|keeps? going up|goes up)\w*|over time"),
    ("load", r"\bload(?:s|ed|ing)?\b(?!er)|from_pretrained"),
    ("varying", r"\b(?:at|on|after|around|by) (?:step|iter\w*) (?:[3-9]\b|\d{2,})|\bafter \d{2,} steps"),
    ("second", r"\b(?:at|on|after) (?:the )?(?:first|second|step [12]\b)|optimizer\.?step"),
)  # fmt: skip
_VARYING = r"\bvar(?:iable|ying|ied)?[ -]?len|no packing|without packing|unpacked|dynamic padding|different lengths?"


def described(text: str) -> Report | None:
    """A report of kind "host" or "described", without figures, whose ``place`` is the moment that the words name; None
    where they name neither a moment nor host memory.
    """
    lower = text.lower()
    moment = next((name for name, pattern in _MOMENTS if re.search(pattern, lower)), None)
    host = re.search(_HOST, lower) is not None and not (moment and re.search(_GPU, lower))
    if moment == "climbs" and re.search(_VARYING, lower):
        moment = "varying"
    if moment is None and not host:
        return None
    kind: Kind = "host" if host else "described"
    return Report(kind, "a description", place=moment)
