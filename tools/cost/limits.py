"""Deadlines and budgets as people give them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from tools.errors import BadValue, MissingValue
from tools.units import parse_seconds

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DOLLARS = re.compile(
    r"(?:usd|us\$|\$)?\s{0,4}([\d,_.]{1,40})\s{0,4}([kKmM]?)\s{0,4}(?:usd|dollars?|\$)?", re.IGNORECASE
)


def deadline_hours(deadline: float | str, now: str | None) -> float:
    """Hours left: from 48, "48h", "3 days", an ISO date or time, or a weekday; a day counts to its end. Dates need
    ``now``, the asker's ISO date or time. Raises MissingValue without it, BadValue for what cannot be read and for a
    deadline of 0 hours or in the past.
    """
    if isinstance(deadline, (int, float)):
        hours = float(deadline)
    else:
        text = deadline.strip().lower().removeprefix("by ").removeprefix("next ")
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}.*", text):
            hours = (_when(text, "deadline", end_of_day=True) - _now(now)).total_seconds() / 3600
        elif text in _DAYS or text in ("today", "tomorrow"):
            hours = _weekday(text, _now(now))
        elif re.fullmatch(r"\d{1,12}\.?\d{0,12}|\.\d{1,12}", text):
            hours = float(text)
        else:
            hours = parse_seconds(text, "deadline") / 3600
    if hours <= 0:
        raise BadValue(
            "deadline_in_the_past",
            "The deadline has passed already." if hours < 0 else "A deadline of 0 hours leaves no time.",
            field="deadline",
            hint="Give hours from now (72), a span (3 days) or a later date.",
            candidates=["72", "7 days"],
        )
    return hours


def budget_usd(budget: float | str, field: str = "budget") -> float:
    """USD from 500, "$500", "5k", "1.2M". Raises BadValue, naming ``field``, for what is no amount of dollars, for a
    negative one and for 0.
    """
    match = _DOLLARS.fullmatch(str(budget).strip())
    try:
        value = float(match[1].replace(",", "").replace("_", "")) if match else -1.0
    except ValueError:
        value = -1.0
    if match is None or value < 0:
        raise BadValue(
            "not_a_number", f"{field!r} cannot be {budget!r} dollars.", field=field, candidates=["500", "10k"]
        )
    value *= {"k": 1e3, "m": 1e6}.get(match[2].lower(), 1.0)
    if value == 0:
        raise BadValue("out_of_range", "A budget of 0 buys nothing.", field=field, candidates=["500"])
    return value


def _when(text: str, field: str, end_of_day: bool = False) -> datetime:
    try:
        found = datetime.fromisoformat(text.strip().upper().replace("Z", "+00:00"))
    except ValueError:
        raise BadValue(
            "not_a_date", f"{text!r} is not a date.", field=field, hint="Write it as 2026-12-04 or 2026-12-04T18:00."
        ) from None
    found = found.replace(tzinfo=None)
    whole_day = len(text.strip()) == 10
    return found + timedelta(days=1) if whole_day and end_of_day else found


def _now(now: str | None) -> datetime:
    if not now:
        raise MissingValue(
            "missing_now", "A date as deadline needs today's date.", field="now",
            hint="Give now as an ISO date, or the deadline in hours.", candidates=["72"],
        )  # fmt: skip
    return _when(now, "now")


def _weekday(word: str, now: datetime) -> float:
    if word == "today":
        days = 1
    elif word == "tomorrow":
        days = 2
    else:
        ahead = (_DAYS.index(word) - now.weekday()) % 7 or 7
        days = ahead + 1  # until the end of that day
    end = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=days)
    return (end - now).total_seconds() / 3600
