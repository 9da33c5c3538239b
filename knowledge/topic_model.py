"""Which article a question is about, learnt at build time from how people ask: a softmax regression on word features.

Every line of an article is an example of its topic: title, synonyms, the questions under ``asked``, each sentence. The
weights are fitted by plain stochastic gradient descent in a fixed order, so that the same data give the same table. It
beats BM25 on phrasings that it has not seen (``evals/data/retrieval.yaml``), needs no package and answers in a
millisecond: a question's features select rows of the table, and their weighted sum ranks the articles. One more topic,
the last, is none of them: it learns from questions that no article answers, and where it wins nothing is shown.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from knowledge.topic_features import run_counts, term_counts, weighted
from knowledge.words import WORD

_EPOCHS = 6
_RATE = 1.5  # of the first pass; falls as 1 / (1 + pass)
_SENTENCE_WEIGHT = 0.5  # a sentence of the text is a weaker example than something that people ask
_LEAST_LINES = 2  # of pairs and letter runs; one that occurs once tells nothing and makes two thirds of the table
_SEED = 1
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
Line = tuple[str, int, float]  # text, number of its article, weight as an example


def add_topics(
    db: Any, articles: Sequence[dict[str, Any]], synonyms: Sequence[tuple[str, str]], off_topic: Sequence[str]
) -> None:
    """Write the one row of ``topic_model``: features by line; rarity (float32); weights (float16), features × topics.

    Topics are the articles in rowid order, then none of them.
    """
    said = [(" ".join(WORD.findall(phrase)), meant) for phrase, meant in synonyms]
    examples = [line for number, article in enumerate(articles) for line in lines(article, number)]
    examples += [(text, len(articles), 1.0) for text in off_topic]
    rarity, weights = fit(examples, len(articles) + 1, said)
    rare = np.array(list(rarity.values()), dtype=np.float32)
    db["topic_model"].insert(
        {"features": "\n".join(rarity), "rarity": rare.tobytes(), "weights": weights.astype(np.float16).tobytes()}
    )


def fit(
    lines: Sequence[Line], n_topics: int, synonyms: Sequence[tuple[str, str]]
) -> tuple[dict[str, float], npt.NDArray[np.float32]]:
    """Rarity of each feature, ln(1 + lines / lines with it), and its weights, float32 of shape (features,
    ``n_topics``): softmax regression by stochastic gradient descent in a fixed order.
    """
    terms = [term_counts(text, synonyms) for text, _topic, _weight in lines]
    runs = [run_counts(text) for text, _topic, _weight in lines]
    seen = Counter(feature for counts in (*terms, *runs) for feature in counts)
    rarity = {
        feature: math.log(1 + len(lines) / n)
        for feature, n in sorted(seen.items())
        if n >= _LEAST_LINES or feature.startswith("w:")
    }
    place = {feature: number for number, feature in enumerate(rarity)}
    examples = []
    for counts, letters, (_text, topic, weight) in zip(terms, runs, lines, strict=True):
        values = weighted(counts, rarity) | weighted(letters, rarity)
        columns = np.array([place[feature] for feature in values], dtype=np.intp)
        examples.append((columns, np.array(list(values.values()), dtype=np.float32), topic, weight))
    table = np.zeros((len(rarity), n_topics), dtype=np.float32)
    order, rng = list(range(len(examples))), random.Random(_SEED)
    for epoch in range(_EPOCHS):
        rng.shuffle(order)
        rate = _RATE / (1 + epoch)
        for number in order:
            columns, value, topic, weight = examples[number]
            error = softmax(value @ table[columns])
            error[topic] -= 1.0
            table[columns] -= rate * weight * value[:, None] * error[None, :]
    return rarity, table


def softmax(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """exp(s) over its sum, shape as ``scores``; the highest score is taken off first, so that nothing overflows."""
    powers = np.exp(scores - scores.max())
    shares: npt.NDArray[np.float32] = powers / powers.sum()
    return shares


def lines(article: dict[str, Any], number: int) -> list[Line]:
    """The examples of one article: what it is called and asked, and each of its sentences."""
    asked = [article["title"], *map(str, article["synonyms"]), *article["asked"]]
    sentences = _SENTENCE_END.split(f"{article['summary']}\n{article['body']}")
    return [(text, number, 1.0) for text in asked] + [
        (text, number, _SENTENCE_WEIGHT) for text in sentences if len(text) > 20
    ]
