"""``search_knowledge``: a direct answer with citations; a quoted claim gets its verdict and its sum."""

import pytest

from tools.errors import InputProblem
from tools.registry import get_tool

SEARCH = get_tool("search_knowledge")


def test_a_question_is_answered_from_the_best_article_with_its_sources():
    result = SEARCH.call({"query": "is 100gbe enough for two nodes"})
    assert result.verdict.startswith("[[passage_1]]")
    assert result.passages[0].id == "need-infiniband"
    assert "LoRA never needs it" in result.fact("passage").value
    cited = {source.id for source in result.sources}
    assert {"kb:need-infiniband", "paper-zero"} <= cited
    assert all(source.as_of for source in result.sources)


def test_a_wrong_claim_is_called_wrong_and_its_sum_shown():
    result = SEARCH.call({"query": "70B on 100B tokens with 8xH100 at 40% MFU takes 37 hours"})
    assert result.verdict == "“[[claim_1]]” is wrong. [[passage_1]]"
    assert result.fact("claim_verdict").value == "wrong"
    # 6 × 70e9 × 100e9 / (8 × 989e12 × 0.4) / 3600
    assert result.fact("claim_result").value == pytest.approx(3686, rel=0.001)
    assert result.fact("claim_result").unit == "h"
    assert "154 days" in result.fact("passage").value
    assert result.steps


def test_a_claim_in_gigabytes_is_a_fact_in_bytes():
    result = SEARCH.call({"query": "full fine-tuning of 7B needs around 80 GB"})
    fact = result.fact("claim_result")
    assert (fact.value, fact.unit) == (112e9, "B")


def test_a_right_claim_is_called_right():
    result = SEARCH.call({"query": "Adam state in FP32 takes 8 bytes per parameter"})
    assert "is right." in result.verdict


def test_nothing_close_is_said_so_and_not_made_up():
    result = SEARCH.call({"query": "zzqx wvut"})
    assert result.facts == []
    assert "nothing" in result.verdict


def test_an_empty_query_is_one_clear_error():
    with pytest.raises(InputProblem) as caught:
        SEARCH.call({"query": "  "})
    assert caught.value.field == "query"


def test_fact_ids_are_unique_and_references_resolve():
    for query in ("mixed precision halves vram", "what fills gpu memory", "spot saves 50-80%"):
        result = SEARCH.call({"query": query, "limit": 6})
        ids = [fact.id for fact in result.facts]
        assert len(set(ids)) == len(ids)
        assert "passage_1" in ids
        assert SEARCH.call({"query": query, "limit": 6}).model_dump() == result.model_dump()


def test_what_the_summary_leaves_out_is_added_in_one_sentence():
    result = SEARCH.call({"query": "how much is egress of data from AWS per GB"})
    assert result.verdict == "[[passage_1]] [[detail]]"
    assert "AWS 0.09" in result.fact("detail").value
    assert len(result.fact("detail").value) <= 320


def test_a_concept_is_not_answered_with_a_verdict_on_one_claim_about_it():
    assert SEARCH.call({"query": "what is QLoRA?"}).passages[0].id == "lora"


def test_a_claim_turned_into_a_question_is_answered_with_the_claim_it_checks():
    result = SEARCH.call({"query": "does gradient accumulation need more memory?"})
    assert result.verdict.startswith("“[[claim_1]]” is right")
    assert "without more memory" in result.fact("claim").value
