"""The load script's distinct questions really differ, and each is one that the planner answers."""

from __future__ import annotations

from advisor.llm.planner.parse import parse
from evals.load_questions import QUESTIONS, distinct


def test_no_two_are_alike_and_none_is_one_of_the_fixed_ones() -> None:
    found = distinct(2000)
    assert len(found) == len(set(found)) == 2000
    assert not set(found) & set(QUESTIONS)
    assert found[:100] == distinct(100)


def test_each_kind_is_read_as_one_of_the_fixed_questions_kinds() -> None:
    for question, like in zip(distinct(16), QUESTIONS * 2, strict=True):
        read, wanted = parse(question), parse(like)
        assert set(wanted.intents) - {"concept"} <= set(read.intents), question
        assert ("time" in read.intents) == ("time" in wanted.intents), question
        assert bool(read.models) == bool(wanted.models)
        assert bool(read.gpus) == bool(wanted.gpus)
