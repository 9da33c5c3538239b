"""Days as deadlines: what is read, how many hours are left by the calendar, and what the answer makes of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.llm.planner import Planner
from advisor.llm.planner.parse import parse
from advisor.llm.planner.read_dates import Due, hours_left
from advisor.llm.protocol import Message, ModelRequest, ToolCall
from advisor.prompt import schema_of, system_prompt
from tools.registry import tool_names

MONDAY = datetime(2026, 11, 30, 16, 0, tzinfo=UTC)
TOOLS = tuple(schema_of(name) for name in tool_names())


@pytest.mark.parametrize(
    ("said", "until"),
    [
        ("8B lora under $500 by Friday", "2026-12-05T00:00"),
        ("by friday 5pm", "2026-12-04T17:00"),
        ("needs to be done by next friday at 17:30", "2026-12-04T17:30"),
        ("friday deadline, 7B full", "2026-12-05T00:00"),
        ("deadline is monday morning", "2026-12-07T09:00"),
        ("by monday", "2026-12-08T00:00"),
        ("by monday 18:00", "2026-11-30T18:00"),
        ("by eod wed", "2026-12-03T00:00"),
        ("by end of this week", "2026-12-05T00:00"),
        ("before dec 15", "2026-12-15T00:00"),
        ("by Dec 15th", "2026-12-16T00:00"),
        ("finish by 3rd of january", "2027-01-04T00:00"),
        ("by 2026-12-24", "2026-12-25T00:00"),
        ("by dec 31 2027", "2028-01-01T00:00"),
        ("by end of february", "2027-03-01T00:00"),
        ("by the end of the month", "2026-12-01T00:00"),
        ("by the end of the quarter", "2027-01-01T00:00"),
        ("until tomorrow", "2026-12-02T00:00"),
        ("by tonight", "2026-12-01T00:00"),
        ("bis Freitag 17 uhr", "2026-12-04T17:00"),
        ("avant vendredi", "2026-12-04T00:00"),
        ("antes del viernes", "2026-12-04T00:00"),
        ("周五之前", "2026-12-05T00:00"),
        ("金曜日まで", "2026-12-05T00:00"),
    ],
)
def test_a_day_is_counted_from_the_moment_of_the_question(said: str, until: str) -> None:
    due = parse(said).get("due")
    expected = (datetime.fromisoformat(until).replace(tzinfo=UTC) - MONDAY).total_seconds() / 3600
    assert due is not None
    assert hours_left(due, MONDAY) == pytest.approx(expected)


@pytest.mark.parametrize(
    "said",
    ["by 7B tokens", "sort by march madness", "until 4k seq", "trained on friday", "by may 4k rows", "in 3 days"],
)
def test_what_is_no_day_is_not_read_as_one(said: str) -> None:
    assert parse(said).get("due") is None


def test_a_date_that_there_is_not_is_no_deadline() -> None:
    assert hours_left(Due(month=2, day=31), MONDAY) is None


def test_another_zone_s_clock_counts_the_same_hours() -> None:
    there = MONDAY.astimezone(timezone(timedelta(hours=-8)))
    assert hours_left(Due(weekday=4), there) == hours_left(Due(weekday=4), MONDAY)


@given(
    st.integers(0, 20 * 365 * 24 * 60).map(lambda minutes: MONDAY + timedelta(minutes=minutes)),
    st.integers(0, 6),
    st.none() | st.floats(0, 24),
)
def test_a_week_day_is_ahead_and_within_eight_days(now: datetime, weekday: int, hour: float | None) -> None:
    hours = hours_left(Due(weekday=weekday, hour=hour), now)
    assert hours is not None
    assert 0 < hours <= 8 * 24


def _calls(question: str, now: datetime | None = MONDAY) -> dict[str, dict[str, object]]:
    request = ModelRequest((Message("user", question),), TOOLS, 1e12, now=now)
    return {event.name: event.arguments for event in Planner().reply(request) if isinstance(event, ToolCall)}


def test_plans_are_held_against_the_day() -> None:
    calls = _calls("llama 3.1 8b lora on 500M tokens under $500 by Friday")
    assert (calls["select_gpu"]["deadline"], calls["select_gpu"]["budget"]) == ("104h", 500)
    assert "deadline" not in _calls("llama 3.1 8b lora on 500M tokens under $500 by Friday", None)["select_gpu"]


def test_a_day_that_is_over_is_no_deadline() -> None:
    assert "deadline" not in _calls("which gpu for llama 3.1 8b lora on 500M tokens by 2026-11-01")["select_gpu"]


def test_a_provider_s_model_is_told_the_hour_last() -> None:
    prompt = system_prompt(TOOLS, MONDAY)
    assert prompt.endswith("It is Monday 2026-11-30T16:00, UTC.")
    assert prompt.startswith(system_prompt(TOOLS))
