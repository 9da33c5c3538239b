"""Questions of every kind, each with the tools or statuses with which a good answer can be given."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from advisor.turn import Desk, answer

GROUPS = yaml.safe_load((Path(__file__).parent / "wide_questions.yaml").read_text(encoding="utf-8"))
QUESTIONS = [(tuple(group["accept"]), text) for group in GROUPS for text in group["questions"]]


@pytest.mark.parametrize(("accepted", "question"), QUESTIONS)
def test_a_question_gets_a_tool_that_can_answer_it(
    planner_desk: Desk, accepted: tuple[str, ...], question: str
) -> None:
    got = answer(question, None, "planner", desk=planner_desk)
    assert not got.grounding.repaired
    assert got.status in accepted or {call.name for call in got.tool_calls} & set(accepted)


def test_the_questions_are_many_and_different() -> None:
    texts = [text for _accepted, text in QUESTIONS]
    assert len(texts) == len(set(texts)) > 300
