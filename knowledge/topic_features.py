"""What of a text tells its topic: stems, pairs of neighbouring stems, and runs of 3 to 5 letters.

Letter runs catch what stemming does not: mistyped words, compounds ("multigpu"), endings. Used when the topic model is
built and when a question is asked, so that both see the same features.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from knowledge.words import WORD, folded, stem

# Words too common to tell anything. Shorter than the list for claims: "why", "not", "only" and "more" carry meaning
# in a question ("why only half", "not enough").
_SMALL = frozenset(
    """a an the of to is are be am was i my me we our you your it its this that do does did in on at for with and or but
    if so as by from can could will would should have has had""".split()  # noqa: SIM905
)
_RUNS = (3, 4, 5)
_MEANT_WEIGHT = 0.5  # a word added by the synonyms counts half of one that was said


def term_counts(text: str, synonyms: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Counts of stems and stem pairs; ``synonyms`` are (phrase said, words meant), added where the phrase occurs."""
    said = WORD.findall(folded(text).replace("'", ""))
    joined = f" {' '.join(said)} "
    stems = [stem(word) for word in said if word not in _SMALL]
    counts: dict[str, float] = {}
    for one in stems:
        counts[f"w:{one}"] = counts.get(f"w:{one}", 0.0) + 1.0
    for phrase, meant in synonyms:
        if f" {phrase} " in joined:
            for word in WORD.findall(meant):
                counts.setdefault(f"w:{stem(word)}", _MEANT_WEIGHT)
    for first, second in pairwise(stems):
        counts[f"b:{first} {second}"] = counts.get(f"b:{first} {second}", 0.0) + 1.0
    return counts


def run_counts(text: str) -> dict[str, float]:
    """Counts of the runs of 3 to 5 letters of a text, word borders included, as "c:run". Only what a question may be
    long is read.
    """
    line = f" {' '.join(WORD.findall(folded(text)))} "
    counts: dict[str, float] = {}
    for length in _RUNS:
        for start in range(len(line) - length + 1):
            run = line[start : start + length]
            if len(run.strip()) > 1:
                counts[f"c:{run}"] = counts.get(f"c:{run}", 0.0) + 1.0
    return counts


def weighted(counts: dict[str, float], rarity: dict[str, float]) -> dict[str, float]:
    """Known features with their weight, (1 + ln count) × rarity, scaled to a Euclidean length of 1; features that
    ``rarity`` has not are left out, {} for none.
    """
    raw = {
        feature: (1.0 + float(np.log(count)) if count >= 1.0 else count) * rarity[feature]
        for feature, count in counts.items()
        if feature in rarity
    }
    length = float(np.sqrt(sum(value * value for value in raw.values()))) or 1.0
    return {feature: value / length for feature, value in raw.items()}
