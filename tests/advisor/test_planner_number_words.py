"""Numbers written as words: read as digits in seven languages, and words that only look like numbers left alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.llm.planner.number_words import digits
from advisor.llm.planner.parse import parse


@pytest.mark.parametrize(
    ("said", "language", "read"),
    [
        ("an eighty gig card", "en", "an 80 gig card"),
        ("seventy billion parameters", "en", "70 billion parameters"),
        ("a hundred million tokens", "en", "100 million tokens"),
        ("a quarter of a billion tokens", "en", "0.25 billion tokens"),
        ("half a million rows", "en", "0.5 million rows"),
        ("all seventy-two", "en", "all 72"),
        ("four-bit", "en", "4 bit"),
        ("50 thousand samples, twenty thousand more", "en", "50 thousand samples, 20000 more"),
        ("cuda eleven seven", "en", "cuda 11.7"),
        ("inside of a day and a half", "en", "inside of 1.5 day"),
        ("five and a half days", "en", "5.5 days"),
        ("llama three point one", "en", "llama 3.1"),
        ("hundert mio. tokens auf acht karten", "de", "100 mio. tokens auf 8 karten"),
        ("sesenta mil pares", "es", "60000 pares"),
        ("mil millones de tokens en ocho gpu", "es", "mil millones de tokens en 8 gpu"),
        ("des séquences de mille tokens sur trente-deux cartes", "fr", "des séquences de 1000 tokens sur 32 cartes"),
    ],
)
def test_words_become_digits_and_scales_stay(said: str, language: str, read: str) -> None:
    assert digits(said, language) == read


@pytest.mark.parametrize(
    ("said", "language"),
    [
        ("zero two offload", "en"),
        ("tokens per second", "en"),
        ("one of them is ten-fold slower", "en"),
        ("so often", "en"),
        ("forward and backward", "en"),
        ("un serveur neuf", "fr"),
        ("8 张 4090", "zh"),
    ],
)
def test_what_only_looks_like_a_number_stays(said: str, language: str) -> None:
    assert digits(said, language) == said


@settings(deadline=None)
@given(st.text(max_size=200), st.sampled_from(("en", "de", "fr", "es", "pt", "it", "nl", "ja", "")))
def test_any_text_passes(text: str, language: str) -> None:
    assert isinstance(digits(text.lower(), language), str)


@settings(deadline=None)  # the first reading compiles the grammar
@given(st.integers(4, 999))
def test_sizes_in_words_are_read_as_in_digits(size: int) -> None:
    words = _words(size)
    assert parse(f"how much memory for a {words} billion parameter model?").models[0].size == f"{size}B"


def _words(number: int) -> str:
    """English, as people write it: "four hundred and five"."""
    small = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    small += " seventeen eighteen nineteen"
    tens = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
    if number < 20:
        return small.split()[number]
    if number < 100:
        ten, one = divmod(number, 10)
        return tens[ten - 2] + (f"-{small.split()[one]}" if one else "")
    hundreds, rest = divmod(number, 100)
    return f"{small.split()[hundreds]} hundred" + (f" and {_words(rest)}" if rest else "")


@pytest.mark.parametrize(
    ("said", "slot", "value"),
    [
        ("8b model / half a billion tokens / lora / one H100", "tokens", 0.5e9),
        ("three epochs over 50 thousand samples of a 7B lora", "samples", 50_000),
        ("lora 7b on sixty thousand rows", "samples", 60_000),
    ],
)
def test_amounts_in_words_reach_their_slot(said: str, slot: str, value: float) -> None:
    assert parse(said).get(slot) == value
