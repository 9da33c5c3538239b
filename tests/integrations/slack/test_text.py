"""Nothing an answer says can ping, link or mark up; long answers stay within Slack's limits."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.slack.blocks import answer_post, fallback_text, plain_post, sums_view
from integrations.slack.chart import native_chart
from integrations.slack.escape import markdown, mrkdwn, typed
from tests.integrations.slack.limits import problems

TOKENS = re.compile(r"<(?:!|@|#|https?:|mailto:)[^>]*>")
SPELLS = [
    "<!channel>", "<!here>", "<!everyone>", "<!subteam^S1>", "<@U1>", "<#C1|general>", "<https://evil.example|https://ok>",
    "<!date^1^{date}|x>", "<mailto:a@b|x>", "[https://ok.example](https://evil.example)", "![x](https://evil.example)",
]  # fmt: skip
_pieces = st.lists(st.one_of(st.sampled_from(SPELLS), st.text(max_size=20)), max_size=8).map("".join)


def _answer(text: str, **more: Any) -> dict[str, Any]:
    return {"answer": text, "turn_id": "t_1", "tool_calls": [], "citations": [], "charts": [], **more}


@given(_pieces)
def test_no_text_holds_a_token_after_escaping(text: str) -> None:
    for shown in (mrkdwn(text), markdown(text), fallback_text(text)):
        assert not TOKENS.search(shown)
        assert "<" not in shown


@given(_pieces)
def test_no_block_of_an_answer_holds_a_token(text: str) -> None:
    table = f"| a | b |\n|---|---:|\n| {text.replace(chr(10), ' ')} | 1 |"
    citations = [{"title": text, "as_of": "2026-11-30"}]
    post = answer_post(_answer(f"**{text}**\n\n{table}\n\n{text}", citations=citations))
    assert not TOKENS.search(repr([block for block in post.blocks if block["type"] != "table"]))
    assert not TOKENS.search(post.text)


def test_a_link_shows_where_it_leads() -> None:
    assert markdown("[https://ok.example](https://evil.example)") == "https://ok.example (https://evil.example)"


@given(st.text(max_size=400).map(lambda text: text * 60), st.integers(min_value=1, max_value=120))
def test_any_answer_stays_within_the_limits(text: str, rows: int) -> None:
    table = "| a | b |\n|---|---:|\n" + "\n".join(f"| row {number} | {number} GB |" for number in range(rows))
    answer = _answer(f"**{text}**\n\n{table}\n\n{text}\n\n{table}", tool_calls=[{"name": "x"}])
    for post in (answer_post(answer), plain_post(answer)):
        assert problems(post.blocks) == []
        assert 0 < len(post.text) <= 16_000


def test_sums_are_a_modal_within_the_limits() -> None:
    step = {"symbol": "peak", "expression": "a + b " * 300, "value": 1.5, "unit": "B"}
    view = sums_view(_answer("x", tool_calls=[{"name": "estimate_vram", "result": {"steps": [step] * 40}}]))
    assert problems(view["blocks"], 100) == []


def test_a_bar_chart_becomes_a_native_one() -> None:
    spec = {
        "title": "Memory per GPU of something with a very long name that Slack would refuse",
        "mark": "bar",
        "data": {"values": [{"part": f"a part with a long name {n}", "GB": n + 0.5} for n in range(30)]},
        "encoding": {"y": {"field": "part", "type": "nominal"}, "x": {"field": "GB", "type": "quantitative"}},
    }
    block = native_chart(spec)
    assert block is not None
    assert problems([block]) == []
    assert block["chart"]["series"][0]["data"][0]["value"] == 0.5


@pytest.mark.parametrize(
    "spec", [{}, {"mark": "bar"}, {"mark": "point", "data": {"values": [{"a": 1}]}}, {"layer": []}]
)
def test_a_chart_of_another_shape_is_left_out(spec: dict[str, Any]) -> None:
    assert native_chart(spec) is None


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        ("<@U0BOT> what GPU for 70B QLoRA?", "what GPU for 70B QLoRA?"),
        ("is 4 &lt; 5 &amp; 6 &gt; 2", "is 4 < 5 & 6 > 2"),
        ("see <https://example.org/x|this>", "see https://example.org/x"),
        ("<!here> in <#C1|gpu-talk>", "in #gpu-talk"),
    ],
)
def test_what_people_type_is_read_without_mark_up(raw: str, read: str) -> None:
    assert typed(raw) == read
