from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from advisor.answer import Answer
from evals.question_grades import DATA, grade, summary
from evals.questions import run_file
from tools.errors import MissingValue


def answered(text: str, conversation: str | None, model: str | None) -> Answer:
    if not text:
        raise MissingValue("empty_question", "There is no question.", field="question")
    if text == "crash":
        raise RuntimeError("boom")
    return Answer(conversation_id=conversation or "c1", turn_id="t1", status="answered", answer=text, model="planner")


def run(tmp_path: Path, *lines: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    file, rows = tmp_path / "questions.jsonl", tmp_path / "rows.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    done = run_file(file, rows, ask=answered)
    return [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()], done.as_dict()


def test_each_question_gives_one_line_with_one_result_a_turn(tmp_path: Path) -> None:
    rows, done = run(tmp_path, '{"id": "A", "text": "one"}', '{"id": "B", "text": "x", "turns": ["one", "two"]}')
    assert [(row["id"], len(row["results"])) for row in rows] == [("A", 1), ("B", 2)]
    assert [result["answer"] for result in rows[1]["results"]] == ["one", "two"]
    assert done["statuses"] == {"answered": 3}


def test_a_crash_is_a_failed_result_and_the_run_goes_on(tmp_path: Path) -> None:
    rows, done = run(tmp_path, '{"id": "A", "turns": ["crash", "after"]}', '{"id": "B", "text": "next"}')
    assert [result["status"] for result in rows[0]["results"]] == ["failed", "answered"]
    assert "boom" not in rows[0]["results"][0]["answer"]
    assert rows[1]["results"][0]["status"] == "answered"
    assert done["crashed"] == ["A"]


def test_an_empty_turn_is_an_error_in_words_not_a_crash(tmp_path: Path) -> None:
    rows, _done = run(tmp_path, '{"id": "A", "turns": ["make it bf16", "", "?"]}')
    assert [result["status"] for result in rows[0]["results"]] == ["answered", "needs_input", "answered"]
    assert rows[0]["results"][1]["error"]["code"] == "empty_question"


def test_a_line_that_is_no_question_does_not_stop_the_run(tmp_path: Path) -> None:
    rows, _done = run(tmp_path, "not json", '{"id": "B", "text": "next"}')
    assert [row["id"] for row in rows] == ["line 1", "B"]


def test_every_failed_or_empty_result_has_the_agreed_keys(tmp_path: Path) -> None:
    rows, _done = run(tmp_path, '{"id": "A", "turns": ["one", "crash"]}')
    assert set(rows[0]["results"][0]) == set(rows[0]["results"][1])


@pytest.fixture(scope="module")
def keys() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DATA / "question_keys.yaml").read_text(encoding="utf-8"))
    return loaded


def test_every_question_of_the_file_has_a_key_for_its_intent(keys: dict[str, Any]) -> None:
    lines = (DATA / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line) for line in lines]
    ids = {question["id"] for question in questions}
    assert len(ids) == len(questions)
    assert {question["intent"] for question in questions} <= set(keys["intents"])
    assert set(keys["questions"]) | set(keys["unknown"]) | set(keys["outcomes"]) | set(keys["unstated"]) <= ids


def result(*calls: tuple[str, dict[str, Any]], status: str = "answered", answer: str = "") -> dict[str, Any]:
    made = [{"name": name, "arguments": arguments, "result": {}} for name, arguments in calls]
    return {"status": status, "answer": answer, "tool_calls": made, "facts": []}


def test_grades_see_a_wrong_tool_a_missed_slot_and_an_answered_unknown(keys: dict[str, Any]) -> None:
    question = {"id": "Q289", "intent": "fit", "slots": {"params": "7B", "n_gpus": 2}}
    marks = {**keys, "questions": {}}
    good = grade(question, [result(("estimate_vram", {"model": "7B", "n_gpus": 2}))], marks)
    assert (good.tools_right, good.slots) == (True, {"params": True, "n_gpus": True})
    bad = grade(question, [result(("estimate_vram", {"model": "70B"}))], marks)
    assert bad.slots == {"params": False, "n_gpus": False}
    assert bad.unknown_ok is False
    assert grade(question, [result(("lookup_prices", {}))], marks).tools_right is False
    assert summary([good, bad])["slots_read"].startswith("2/4")


def _read_of(
    keys: dict[str, Any], slots: dict[str, Any], calls: list[tuple[str, dict[str, Any]]], answer: str = ""
) -> dict[str, bool]:
    result = {
        "status": "answered",
        "answer": answer,
        "facts": [],
        "tool_calls": [{"name": name, "arguments": arguments} for name, arguments in calls],
    }
    question = {"id": "X", "intent": "fit", "text": "", "slots": slots, "accept": ["estimate_vram"]}
    return grade(question, [result], keys).slots


@pytest.mark.parametrize(
    ("slots", "arguments", "read"),
    [
        ({"method": "sft"}, {"method": "full"}, True),
        ({"method": "sft"}, {"method": "lora"}, False),
        ({"method": "pretrain"}, {"method": "continued_pretrain"}, True),
        ({"method": "pretrain"}, {"method": "full"}, False),
        ({"method": "dpo-lora"}, {"method": "dpo"}, True),
        ({"framework": "megatron-lm"}, {"framework": "megatron"}, True),
        ({"framework": "xtuner"}, {"framework": "trl"}, False),
        ({"model": "llava-34b"}, {"model": "34B"}, True),
        ({"model": "llava-34b"}, {"model": "13B"}, False),
        ({"model": "llama-3.1-8b"}, {"model": "70B"}, False),
        ({"gpu": "a100-80gb", "gpu_vram": "80GB"}, {"gpu": "A100-SXM4-80GB"}, True),
        ({"gpu": "v100", "gpu_vram": "32GB"}, {"gpu": "V100-SXM2-16GB"}, False),
        ({"parallelism": "tp8 pp2"}, {"tp": 8, "pp": 2}, True),
        ({"parallelism": "tp8 pp2"}, {"tp": 8, "pp": 4}, False),
        ({"parallelism": "tp8 pp2"}, {"tp": 8}, False),
        ({"parallelism": "ep8|fsdp"}, {"ep": 8, "sharding": "fsdp"}, True),
        ({"parallelism": "fsdp|deepspeed"}, {"sharding": "fsdp"}, True),
        ({"parallelism": "zero3-offload"}, {"sharding": "zero3"}, True),
        ({"parallelism": "zero3"}, {"sharding": "zero2"}, False),
        ({"parallelism": "fsdp2"}, {"sharding": "fsdp"}, True),
        ({"precision": "awq"}, {"precision": "int4"}, True),
        ({"precision": "awq"}, {"precision": "int8"}, False),
        ({"precision": "mixed"}, {"precision": "bf16"}, True),
        ({"precision": "mixed"}, {"precision": "fp32"}, False),
        ({"method": "galore"}, {"method": "full", "optimizer": "galore"}, True),
        ({"method": "galore"}, {"method": "full", "optimizer": "adamw"}, False),
        ({"model": "mistral-7b"}, {"model": "mistralai/Mistral-7B-v0.1"}, True),
        ({"model": "mistral-7b"}, {"model": "mistralai/Mistral-Nemo-Base-2407"}, False),
    ],
)
def test_a_slot_is_read_where_a_call_carries_what_was_said(
    keys: dict[str, Any], slots: dict[str, Any], arguments: dict[str, Any], read: bool
) -> None:
    found = _read_of(keys, slots, [("estimate_vram", arguments)])
    assert all(found.values()) is read, found


def test_a_price_may_be_an_offer_a_cap_or_a_range(keys: dict[str, Any]) -> None:
    cap = [("select_gpu", {"max_usd_per_gpu_hour": 0.6})]
    assert _read_of(keys, {"price": "$0.60/hr"}, cap) == {"price": True}
    assert _read_of(keys, {"price": "$0.90/hr"}, cap) == {"price": False}
    owned = [("compare_ownership", {"cloud_price": 15.0, "utilisation": 0.85})]
    assert _read_of(keys, {"price": "$15-30/h", "utilisation": "85%"}, owned) == {"price": True, "utilisation": True}
    assert _read_of(keys, {"price": "$16-30/h", "utilisation": "8%"}, owned) == {"price": False, "utilisation": False}


def test_what_no_argument_holds_is_left_out(keys: dict[str, Any]) -> None:
    assert _read_of(keys, {"parallelism": "pp|tp"}, [("estimate_vram", {"gpu": "A100"})]) == {}
    assert _read_of(keys, {"price": "12 CNY"}, [("compare_ownership", {"cloud_price": None})]) == {}


def test_a_month_is_thirty_days_or_730_hours(keys: dict[str, Any]) -> None:
    for hours, read in (("730h", True), ("720h", True), ("700h", True), ("690h", False)):
        assert _read_of(keys, {"deadline": "30d"}, [("select_gpu", {"deadline": hours})]) == {"deadline": read}


def test_a_memory_that_the_named_card_does_not_have_is_a_claim_and_no_slot(keys: dict[str, Any]) -> None:
    calls = [("estimate_vram", {"gpu": "H200-SXM"})]
    assert "gpu_vram" not in _read_of(keys, {"gpu": "h200", "gpu_vram": "192GB"}, calls)


def test_a_card_that_is_not_held_is_read_where_the_answer_names_it(keys: dict[str, Any]) -> None:
    calls = [("estimate_vram", {"model": "13B"})]
    assert _read_of(keys, {"gpu": "h150"}, calls, 'I do not have a GPU called "h150".') == {"gpu": True}
    assert _read_of(keys, {"gpu": "h150"}, calls, "Yes, it fits.") == {"gpu": False}
    assert _read_of(keys, {"gpu": "h20-141gb"}, calls, "An H20 has 96 GB.") == {"gpu": False}
