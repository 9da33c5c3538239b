"""An answer as data and as text is the same, and always JSON that anybody can read."""

from __future__ import annotations

import json
import math

from advisor.answer import Answer, AnswerFact, ToolRecord, finite
from advisor.events import Done


def answer() -> Answer:
    return Answer(
        conversation_id="c",
        turn_id="t",
        status="answered",
        answer="ü 漢",
        model="planner",
        tool_calls=[
            ToolRecord(
                id="t1", name="a", arguments={"x": math.inf}, result={"facts": [{"value": math.nan}], "none": None}
            ),
            ToolRecord(id="t2", name="b", arguments={}, error={"code": "bad", "field": None}),
        ],
        facts=[AnswerFact(id="t1.a", name="a", value=-math.inf, low=math.nan, tool_call="t1")],
        charts=[{"values": [1, math.inf]}],
    )


def refuse(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def test_text_and_data_are_the_same() -> None:
    assert json.loads(answer().as_text(), parse_constant=refuse) == answer().as_json()
    done = json.loads(Done(answer=answer()).model_dump_json(), parse_constant=refuse)
    assert done["answer"] == answer().as_json()


def test_what_json_cannot_hold_is_null() -> None:
    data = answer().as_json()
    assert data["facts"][0]["value"] is None
    assert data["charts"] == [{"values": [1, None]}]
    assert data["tool_calls"][0]["result"] == {"facts": [{"value": None}], "none": None}


def test_a_call_holds_its_result_or_its_error() -> None:
    first, second = answer().as_json()["tool_calls"]
    assert "error" not in first
    assert second["error"] == {"code": "bad", "field": None}
    assert "result" not in second


def test_the_text_kept_is_made_again_after_a_warning_and_is_no_part_of_the_answer() -> None:
    first, second = answer(), answer()
    text = first.as_text()
    assert first == second
    assert Done(answer=first).model_dump_json() == Done(answer=second).model_dump_json()
    first.warn("not_saved", "This turn could not be saved.")
    assert first.as_text() != text
    assert json.loads(first.as_text())["warnings"] == [{"code": "not_saved", "text": "This turn could not be saved."}]


def test_finite_gives_back_what_holds_nothing_to_mend() -> None:
    kept = {"a": [1.0, {"b": None}]}
    assert finite(kept) is kept
    assert finite({"a": [math.nan, {"b": (1, 2)}]}) == {"a": [None, {"b": (1, 2)}]}
