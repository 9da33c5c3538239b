"""A day by which something must be done ("by Friday 5pm", "before Dec 15", "by the end of the month"), and its hours.

Reading needs no clock: what was said is kept as a ``Due``. ``hours_left`` counts from the moment of the question, so
that the same words mean another span tomorrow. Days end at midnight, UTC.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from advisor.llm.planner import grammar
from advisor.llm.planner.page import Page

_DAY = timedelta(days=1)
_WORKWEEK_ENDS = 4  # Friday


@dataclass(frozen=True, slots=True)
class Due:
    """What was said: a week day (0 is Monday), a date, or a word such as "tomorrow" or "month"."""

    weekday: int | None = None
    month: int | None = None
    day: int | None = None
    year: int | None = None
    word: str = ""
    hour: float | None = None  # of that day; None: its end, or its begin with ``before``
    before: bool = False


def read_due(page: Page) -> Due | None:
    """The first day that the message gives as a deadline, forgotten from the page; None for none."""
    for name, reader in (("due_date", _date), ("due_weekday", _weekday), ("due_word", _word)):
        for match in page.all(name):
            found = reader(match)
            if found:
                page.blank(*match.span())
                return found
    return None


def hours_left(due: Due, now: datetime) -> float | None:
    """Hours from ``now`` (aware, or taken as UTC) to ``due``; None for a date that there is not."""
    now = now.astimezone(UTC).replace(tzinfo=None) if now.tzinfo else now
    try:
        day = _day_of(due, now.replace(hour=0, minute=0, second=0, microsecond=0))
    except ValueError:  # the 31st of a shorter month
        return None
    if due.hour is not None:
        end = day + timedelta(hours=due.hour)
        if due.weekday is not None and end <= now:
            end += 7 * _DAY
    else:
        end = day if due.before else day + _DAY
    return (end - now).total_seconds() / 3600


def _day_of(due: Due, today: datetime) -> datetime:
    """Midnight at the begin of the day that is meant."""
    if due.weekday is not None:
        ahead = (due.weekday - today.weekday()) % 7
        return today + _DAY * (ahead or (0 if due.hour is not None else 7))
    if due.month is not None:
        year = due.year or today.year
        day = today.replace(year=year, month=due.month, day=due.day or 1)
        if not due.day:
            day = _last_day(day)
        return day.replace(year=year + 1) if not due.year and day < today else day
    if due.word == "tomorrow":
        return today + _DAY
    if due.word == "week":
        return today + _DAY * ((_WORKWEEK_ENDS - today.weekday()) % 7)
    if due.word == "month":
        return _last_day(today)
    if due.word == "quarter":
        return _last_day(today.replace(month=(today.month - 1) // 3 * 3 + 3, day=1))
    if due.word == "year":
        return today.replace(month=12, day=31)
    return today


def _last_day(day: datetime) -> datetime:
    return (day.replace(day=28) + timedelta(days=4)).replace(day=1) - _DAY


def _weekday(match: re.Match[str]) -> Due | None:
    name = match["day"] or match["led"]
    hour = _hour(match)
    return Due(weekday=grammar.data("numbers")["weekdays"][name], hour=hour, before=_is_before(match, hour))


def _date(match: re.Match[str]) -> Due | None:
    months = grammar.data("numbers")["months"]
    if match["iso"]:
        year, month, day = (int(part) for part in match["iso"].split("-"))
        return Due(year=year, month=month, day=day, before=_is_before(match, None))
    named = match["month"] or match["month_after"] or match["month_alone"]
    of_month = match["day_of"] or match["day_before"]
    return Due(
        month=months[named],
        day=int(of_month) if of_month else None,
        year=int(match["year"]) if match["year"] else None,
        before=_is_before(match, None),
    )


def _word(match: re.Match[str]) -> Due | None:
    said = next(word for word, forms in grammar.data("numbers")["due_words"].items() if match["word"] in forms)
    return Due(word=said)


def _is_before(match: re.Match[str], hour: float | None) -> bool:
    return hour is None and match[0].lstrip().startswith(("before", "vor ", "avant", "antes"))


def _hour(match: re.Match[str]) -> float | None:
    """The hour of the day that stands beside the day."""
    if match["clock"]:
        return float(grammar.data("numbers")["hours_words"][match["clock"]])
    if not match["hour"]:
        return None
    hour = int(match["hour"])
    if match["half"] in ("am", "pm"):
        hour = hour % 12 + (12 if match["half"] == "pm" else 0)
    return hour + int(match["minute"] or 0) / 60 if hour <= 24 else None
