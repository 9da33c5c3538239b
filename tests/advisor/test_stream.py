from __future__ import annotations

from typing import Any

import pytest

from advisor.llm.protocol import ToolCall
from advisor.llm.stream import CallFolder, MarkReader, whole_call
from advisor.stream_blocks import complete_blocks


def delta(index: int | None = None, call_id: str | None = None, name: str | None = None, text: Any = None) -> Any:
    return {"index": index, "id": call_id, "function": {"name": name, "arguments": text}}


TWO = [ToolCall("a", "f", {"x": 1}), ToolCall("b", "g", {"y": 2})]
CASES: dict[str, tuple[list[list[Any]], list[ToolCall]]] = {
    "ids only on the first delta": (
        [[delta(0, "a", "f", "")], [delta(0, text='{"x"')], [delta(0, text=": 1}")]], TWO[:1],
    ),
    "two calls interleaved": (
        [[delta(0, "a", "f")], [delta(1, "b", "g")], [delta(0, text='{"x":'), delta(1, text='{"y":')],
         [delta(1, text="2}"), delta(0, text="1}")]], TWO,
    ),
    "id on every delta": ([[delta(0, "a", "f", '{"x"')], [delta(0, "a", None, ": 1}")]], TWO[:1]),
    "a summary repeats the whole call": (
        [[delta(0, "a", "f", '{"x"')], [delta(0, "a", None, ": 1}")], [delta(0, "a", "f", '{"x": 1}')]], TWO[:1],
    ),
    "one index for both calls": (
        [[delta(0, "a", "f", '{"x": 1}')], [delta(0, "b", "g", '{"y": 2}')]], TWO,
    ),
    "no index at all": ([[delta(None, "a", "f", '{"x": 1}')], [delta(None, "b", "g", '{"y": 2}')]], TWO),
    "no ids at all": (
        [[delta(0, None, "f", '{"x": 1}')], [delta(1, None, "g", '{"y": 2}')]],
        [ToolCall("call_0", "f", {"x": 1}), ToolCall("call_1", "g", {"y": 2})],
    ),
    "no ids and one index": (
        [[delta(0, None, "f", '{"x": 1}')], [delta(0, None, "g", '{"y": 2}')]],
        [ToolCall("call_0", "f", {"x": 1}), ToolCall("call_1", "g", {"y": 2})],
    ),
    "the whole call in one delta": ([[delta(0, "a", "f", '{"x": 1}'), delta(1, "b", "g", '{"y": 2}')]], TWO),
    "arguments as an object": ([[delta(0, "a", "f", {"x": 1})]], TWO[:1]),
    "no arguments": ([[delta(0, "a", "f", None)]], [ToolCall("a", "f")]),
    "empty arguments": ([[delta(0, "a", "f", "")]], [ToolCall("a", "f")]),
    "null arguments": ([[delta(0, "a", "f", "null")]], [ToolCall("a", "f")]),
    "encoded twice": ([[delta(0, "a", "f", '"{\\"x\\": 1}"')]], TWO[:1]),
    "cut short": ([[delta(0, "a", "f", '{"x": ')]], [ToolCall("a", "f", unreadable='{"x": ')]),
    "a list": ([[delta(0, "a", "f", "[1]")]], [ToolCall("a", "f", unreadable="[1]")]),
    "nothing": ([[]], []),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda name: name.replace(" ", "_"))
def test_deltas_fold_into_whole_calls(case: str) -> None:
    deltas, expected = CASES[case]
    folder = CallFolder()
    for batch in deltas:
        folder.feed(batch)
    assert folder.calls() == expected


@pytest.mark.parametrize("size", [1, 2, 3, 5, 50])
def test_argument_text_may_be_cut_anywhere(size: int) -> None:
    text = '{"model": "70B — größer", "n": [1, 2], "s": "a\\"b"}'
    folder = CallFolder()
    folder.feed([delta(0, "a", "f", "")])
    for start in range(0, len(text), size):
        folder.feed([delta(0, text=text[start : start + size])])
    assert folder.calls() == [whole_call("a", "f", text)]
    assert folder.calls()[0].arguments["n"] == [1, 2]


def test_deeply_nested_arguments_are_unreadable_and_do_no_harm() -> None:
    assert whole_call("a", "f", "[" * 100_000).unreadable


@pytest.mark.parametrize("size", [1, 4, 100])
@pytest.mark.parametrize(
    ("text", "status", "rest"),
    [
        ("[[needs_input]] Which GPU?", "needs_input", "Which GPU?"),
        ("  [[declined]]\nNo.", "declined", "No."),
        ("[[t1.x]] is it.", "answered", "[[t1.x]] is it."),
        ("Plain.", "answered", "Plain."),
        ("[[need", "answered", "[[need"),
    ],
)
def test_a_leading_mark_is_taken_off_however_the_text_is_cut(size: int, text: str, status: str, rest: str) -> None:
    reader = MarkReader()
    passed = "".join(reader.feed(text[start : start + size]) for start in range(0, len(text), size)) + reader.rest()
    assert (reader.status, passed.strip()) == (status, rest)


def test_paragraphs_end_at_blank_lines_outside_code() -> None:
    assert complete_blocks("one\n\ntwo") == (["one"], "two")
    assert complete_blocks("```\na\n\nb\n```\n\nrest") == (["```\na\n\nb\n```"], "rest")
    assert complete_blocks("```\na\n\nb") == ([], "```\na\n\nb")
    assert complete_blocks("no end") == ([], "no end")
