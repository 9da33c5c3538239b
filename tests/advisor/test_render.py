from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from advisor.render import (
    MAX_SOURCES,
    Sources,
    assumptions_line,
    compose,
    error_words,
    markdown_table,
    plain,
    render,
    rich_parts,
    sources_line,
    split_blocks,
)
from advisor.tool_payload import MAX_FACTS, MAX_ROWS, error_payload, payload, prefix_references
from tests.advisor.toys import MemoryInput, toy_memory
from tools.result import Assumption, Column, Fact, Table, ToolResult

RESULT = toy_memory(MemoryInput(model="meta-llama/Llama-3.1-70B"))


@pytest.fixture
def sources() -> Sources:
    found = Sources()
    found.add("t1", RESULT)
    return found


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[[t1.peak_per_gpu]]", "45.3 GB"),
        ("[[ t1.peak_per_gpu ]]", "45.3 GB"),
        ("[[t1.peak_per_gpu|range]]", "41.2–49.8 GB"),
        ("[[t1.peak_per_gpu|GiB]]", "42.2 GiB"),
        ("[[peak_per_gpu]]", "45.3 GB"),
        ("[[t1.headroom|range]]", "43.4 %"),
        ("[[t1.headroom|GiB]]", "43.4 %"),
        ("[[t1.peak_per_gpu|days]]", "45.3 GB"),
        ("[[t1.peak_per_gpu]] ([[t1.peak_per_gpu|range]]).", "45.3 GB (41.2–49.8 GB)."),
        ("[[t1.headroom]] ([[t1.headroom|range]]).", "43.4 %."),
        ("a [[t1.headroom]] b [[t1.headroom]]", "a 43.4 % b 43.4 %"),
    ],
)
def test_references_print_the_fact(sources: Sources, text: str, shown: str) -> None:
    assert render(text, sources).text == shown


def test_a_reference_to_nothing_is_reported_and_prints_no_number(sources: Sources) -> None:
    done = render("It is [[t1.nonsense]] and [[table:t9.x]].", sources)
    assert done.unknown == ["t1.nonsense", "table:t9.x"]
    assert not any(letter.isdigit() for letter in done.text)


def test_a_short_reference_that_two_calls_answer_is_not_guessed(sources: Sources) -> None:
    sources.add("t2", RESULT.model_copy(deep=True))
    assert render("[[peak_per_gpu]]", sources).unknown == ["peak_per_gpu"]
    assert render("[[t2.peak_per_gpu]]", sources).text == "45.3 GB"


def test_a_table_reference_prints_the_table(sources: Sources) -> None:
    done = render("Here:\n[[table:t1.bill]]\nThat is all.", sources)
    assert done.tables == ["t1.bill"]
    assert "| Part | Bytes |\n|---|---:|\n| weights | 35.3 GB |" in done.text


def test_cells_cannot_break_out_of_their_table() -> None:
    table = Table(id="t", title="a|b", columns=[Column(key="x", label="x|y")], rows=[["1|2\n| evil |"], [None], [True]])
    lines = markdown_table(table).splitlines()
    assert lines[2:] == ["| x\\|y |", "|---|", "| 1\\|2 \\| evil \\| |", "| – |", "| yes |"]


def test_plain_text_has_no_marks_and_aligned_columns(sources: Sources) -> None:
    text = plain(render("# Verdict\n**Yes**, `x`, see [docs](https://a.b/c)\n\n[[table:t1.bill]]", sources).text)
    assert text.startswith("Verdict\nYes, x, see docs (https://a.b/c)\n")
    assert "weights  35.3 GB" in text
    assert "states     10 GB" in text
    assert "*" not in text


def test_rich_prints_the_same_numbers(sources: Sources) -> None:
    out = io.StringIO()
    console = Console(file=out, width=80)
    for part in rich_parts(render("**Yes**: [[t1.peak_per_gpu]]\n\n[[table:t1.bill]]", sources).text):
        console.print(part)
    assert "45.3 GB" in out.getvalue()
    assert "35.3 GB" in out.getvalue()


def test_code_is_left_as_it_is() -> None:
    text = "Run:\n```bash\n| not a table |\n**x**\n```\nDone."
    assert [kind for kind, _block in split_blocks(text)] == ["text", "code", "text"]
    assert "**x**" in plain(text)


@given(st.text(alphabet="|`*#[]\n ab1.", max_size=120))
@settings(max_examples=300, deadline=None)
def test_any_markdown_can_be_printed(text: str) -> None:
    assert "\n".join(block for _kind, block in split_blocks(text)) == text
    plain(text)
    rich_parts(text)


def test_assumptions_are_named_by_their_argument_and_only_names_keep_their_reason() -> None:
    line = assumptions_line(
        [
            Assumption(name="seq_len", value=2048, unit="tokens", why="common", argument="seq_len"),
            Assumption(name="gpu", value="H100-SXM5", why="'H100' read as H100-SXM5.", argument="gpu"),
        ]
    )
    assert line == (
        "**Assumed** (say so to change any): sequence length 2,048 tokens; gpu H100-SXM5 ('H100' read as H100-SXM5)."
    )
    assert assumptions_line([]) == ""


def test_sources_carry_their_dates_and_a_long_list_says_where_the_rest_is() -> None:
    assert sources_line([("Book", "2026-08-21"), ("Paper of 2020-01-01", "2020-01-01")]) == (
        "**Sources:** Book (2026-08-21); Paper of 2020-01-01."
    )
    assert "citations" in sources_line([(f"s{number}", "2026") for number in range(MAX_SOURCES + 1)])


def test_an_answer_composed_from_results_has_verdict_bill_and_knobs(sources: Sources) -> None:
    data = [payload("t1", "toy_memory", RESULT), error_payload("t2", "x", {"message": "No.", "candidates": ["a", "b"]})]
    text = render(compose(data), sources).text
    assert text.startswith("**Yes: 45.3 GB of 80 GB.**")
    assert "| weights | 35.3 GB |" in text
    assert "- With a shorter sequence it is less than 42.2 GiB." in text
    assert text.endswith("No. Nearest: a, b.")


def test_a_result_without_a_verdict_is_composed_from_its_facts() -> None:
    result = ToolResult(facts=[Fact(id="n_gpus", name="n_gpus", value=8, unit="GPUs", label="cards")])
    assert compose([payload("t1", "x", result)]) == "- cards: [[t1.n_gpus]]"


def test_error_words_hold_what_to_do() -> None:
    assert error_words({"message": "Bad.", "hint": "Do this.", "candidates": []}) == "Bad. Do this."


def test_references_are_given_the_calls_prefix() -> None:
    assert prefix_references("t3", "a [[x|GiB]] [[table:b]]") == "a [[t3.x|GiB]] [[table:t3.b]]"


def test_what_a_model_reads_of_a_result_is_short() -> None:
    many = ToolResult(
        facts=[Fact(id=f"f{number}", name="f", value=number) for number in range(200)],
        tables=[Table(id="t", title="T", columns=[Column(key="x", label="X")], rows=[[n] for n in range(100)])],
        charts=[{"mark": "bar"}],
    )
    data = payload("t1", "x", many)
    assert len(data["facts"]) == MAX_FACTS
    assert data["facts_left_out"] == 200 - MAX_FACTS
    assert len(data["tables"][0]["rows"]) == MAX_ROWS
    assert "charts" not in data
    assert payload("t1", "toy_memory", RESULT)["facts"][0]["shown_range"] == "41.2–49.8 GB"
