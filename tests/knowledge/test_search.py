"""Search: finds what people mean, quotes nothing that was not claimed, and never fails on any string."""

import random
import re
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

import evals
from knowledge import topic_model
from knowledge.article_tables import DATA, read_article, read_yaml
from knowledge.search import SURE, article, claim, claim_proof, search
from knowledge.topic_features import run_counts, term_counts, weighted

CASES = yaml.safe_load((Path(evals.__file__).parent / "data" / "retrieval.yaml").read_text(encoding="utf-8"))
TITLES = {file.stem: read_article(file)["title"] for file in (DATA / "articles").glob("*.md")}
_STOP = {
    "a", "an", "the", "of", "to", "do", "you", "is", "and", "for", "in", "on", "which", "what", "how", "why", "or",
    "be",
    "may", "where", "it", "with", "from", "vs", "per",
}  # fmt: skip


def recall_at_3(rows):
    missed = []
    for row in rows:
        wanted = row["article"] if isinstance(row["article"], list) else [row["article"]]
        found = [passage.id for passage in search(row["ask"], 8) if passage.kind == "article"][:3]
        if not set(wanted) & set(found):
            missed.append((row["ask"], wanted, found))
    return 1 - len(missed) / len(rows), missed


def test_articles_are_found_by_the_words_people_use():
    recall, missed = recall_at_3(CASES["suite"])
    assert len(CASES["suite"]) >= 120
    assert recall >= 0.95, missed


def test_they_are_found_with_real_questions_added():
    # The real ones were a hold-out first: 74 % at first sight for 42 forum questions, 84 % for 44 others.
    recall, missed = recall_at_3([*CASES["suite"], *CASES["real"]])
    assert len(CASES["real"]) >= 80
    assert recall >= 0.95, missed


def test_held_out_phrasings_find_their_article():
    # Written after the synonyms and oblique on purpose. BM25 alone: 76 %; the topic model at first sight: 98 %.
    recall, missed = recall_at_3(CASES["holdout"])
    assert len(CASES["holdout"]) >= 30
    assert recall >= 0.95, missed


def test_a_strangers_phrasings_find_their_article():
    # By an author who had not seen the search. BM25 alone: 85 %, sentence embeddings (all-MiniLM-L6-v2) of the same
    # texts 78 %, ranks fused 84 %; the topic model 96 %, and with embeddings added one question more of 122, which
    # does not earn a package of 84 MB that brings torch.
    recall, missed = recall_at_3(CASES["oblique"])
    assert len(CASES["oblique"]) == 80
    assert recall >= 0.95, missed


def test_what_no_article_answers_is_not_answered():
    sure = [ask for ask in CASES["off_topic"] if any(p.score >= SURE for p in search(ask, 3))]
    shown = [ask for ask in CASES["off_topic"] if search(ask, 3)]
    assert len(CASES["off_topic"]) >= 39
    assert len(sure) <= 5, sure
    assert len(shown) <= 20, shown


def test_what_an_article_answers_is_answered_without_hedging():
    asked = [row["ask"] for name in ("suite", "real", "holdout", "oblique") for row in CASES[name]]
    hedged = [ask for ask in asked if not any(p.score >= SURE for p in search(ask, 3))]
    assert len(hedged) <= 0.05 * len(asked), hedged


@pytest.mark.slow
def test_the_topic_model_has_learnt_more_than_its_own_lines():
    # A fifth of the phrasings of every article is kept back, the model fitted without them, and asked with them. Each
    # has one right article only, although two often answer, so this is a lower bound. BM25 on the articles finds 74 %.
    articles = [read_article(file) for file in sorted((DATA / "articles").glob("*.md"))]
    held = [(ask, number) for number, whole in enumerate(articles) for ask in whole["asked"][::5]]
    kept = [{**whole, "asked": [ask for place, ask in enumerate(whole["asked"]) if place % 5]} for whole in articles]
    said = [(phrase, " ".join(meant)) for phrase, meant in read_yaml("synonyms").items()]
    lines = [line for number, whole in enumerate(kept) for line in topic_model.lines(whole, number)]
    rarity, table = topic_model.fit(lines, len(articles), said)
    place = {feature: row for row, feature in enumerate(rarity)}
    found = 0
    for ask, number in held:
        values = weighted(term_counts(ask, said), rarity) | weighted(run_counts(ask), rarity)
        scores = sum(value * table[place[feature]] for feature, value in values.items())
        found += number in np.argsort(-np.asarray(scores))[:3] if values else 0
    assert found >= 0.79 * len(held), found / len(held)


def test_no_phrasing_shares_a_word_with_its_title():
    def stems(text):
        words = set(re.findall(r"[a-z0-9]+", text.lower())) - _STOP
        return {re.sub(r"(?:ing|ies|ed|es|s|ly)$", "", word) if len(word) > 5 else word for word in words}

    for row in [*CASES["suite"], *CASES["real"], *CASES["holdout"]]:
        for wanted in row["article"] if isinstance(row["article"], list) else [row["article"]]:
            assert not stems(row["ask"]) & stems(TITLES[wanted]), (row["ask"], TITLES[wanted])


def test_a_repeated_claim_is_found_checked():
    missed = []
    for row in CASES["quotes"]:
        found = [passage.id for passage in search(row["ask"], 4) if passage.kind == "claim"]
        if row["claim"] not in found[:2]:
            missed.append((row["ask"], row["claim"], found))
    assert len(CASES["quotes"]) >= 40
    assert len(missed) <= 0.05 * len(CASES["quotes"]), missed


@pytest.mark.parametrize("ask", CASES["no_claim"])
def test_a_question_that_claims_nothing_gets_no_verdict(ask):
    assert [passage.id for passage in search(ask, 4) if passage.kind == "claim"] == []


def test_every_claim_is_found_by_its_own_words_with_its_verdict():
    for row in read_yaml("claims"):
        found = search(f"{row['claim']} {row['figures']}", 6)
        mine = [passage for passage in found if passage.id == row["id"]]
        assert mine, row["id"]
        assert mine[0].verdict == row["verdict"]


def test_mistyped_words_still_find_the_article():
    assert "checkpoint-interval" in [p.id for p in search("how often to save a chekpoint, yung formula", 3)]
    assert "spot" in [p.id for p in search("preemptable instnces", 3)]


@pytest.mark.parametrize(
    "query",
    ["", "   ", "'", '"', "AND OR NOT NEAR", "col:val", "a*", "^x", "((((", "\x00", "\ud800", "🦙" * 500, "-" * 5000,
     "select * from articles; drop table claims", "NEAR(a b)", "{x y}: z", "l'été",
     "显存 不够", "٣٫٥ GB", "x" * 100_000],
)  # fmt: skip
def test_awkward_queries_are_only_queries(query):
    for passage in search(query, 3):
        assert passage.id


@pytest.mark.parametrize("strings", [4_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_thousands_of_random_strings_raise_nothing(strings):
    rng = random.Random(20261130 + strings)
    alphabet = [*map(chr, range(32, 127)), *"\"'*^:(){}-+\\/%_\n\t\0", *"éßЖ漢字٣🦙\u202e\ufeff"]
    words = ["vram", "NOT", "AND", "NEAR/3", "70B", "8xH100", "1e400", "ring", "lora", "$2.40", "checkpoint"]
    deadline = time.process_time() + 60
    for number in range(strings):
        if number % 2:
            text = "".join(rng.choices(alphabet, k=rng.randint(0, 24)))
        else:
            text = " ".join(rng.choices([*words, "".join(rng.choices(alphabet, k=4))], k=rng.randint(1, 3)))
        assert isinstance(search(text, 2), list)
    assert time.process_time() < deadline  # of this process: other work on the machine does not count


def test_limits_are_kept_and_results_are_dated_and_sourced():
    for limit in (1, 2, 5):
        found = search("why does training run out of memory", limit)
        assert len(found) == limit
        assert all(passage.as_of and passage.sources and passage.text for passage in found)
    assert search("memory", 0) == []


def test_an_article_or_claim_can_be_read_by_id():
    whole = article("lora")
    assert whole is not None
    assert "NF4" in whole.text
    checked = claim("S000-26")
    assert checked is not None
    assert (checked.kind, checked.verdict) == ("claim", "wrong")
    assert article("no-such") is None
    assert claim("no-such") is None
    proof = claim_proof("S000-26")
    assert proof is not None
    assert proof["result"] == 3686
    assert claim_proof("S000-07") is None
