"""Numbers written as words become digits: "eighty gigs", "sesenta mil pares", "hundert Mio.", "half a billion".

text2num reads the words of seven languages. Here is what it must not take for numbers (ZeRO, "neuf" as new), the scales
that are left as words, since "70 billion" is a size and 70000000000 is not, and halves and quarters.
"""

from __future__ import annotations

import re

from text_to_num import alpha2digit

from advisor.llm.planner import grammar
from advisor.llm.planner.page import number_word

_LANGUAGES = frozenset(("en", "fr", "es", "pt", "de", "it", "nl"))
_KEPT = "\x1e{}\x1e"  # stands for a word that is kept, so that no number is read across it


def digits(text: str, language: str) -> str:
    """``text``, lower-cased, with its number words as digits; small ones (one, two, three) stay, which are articles and
    pronouns as well. Text without such words, or in a language that is not read, comes back as it is.
    """
    text = _HALF.sub(_as_share, _HALF_MORE.sub(lambda match: f"{number_word(match[1])}.5 ", text))
    code = language if language in _LANGUAGES else "en"
    if not _worth_it(code).search(text):
        return _AND_A_HALF.sub(_and_a_half, text)
    text = _ARTICLE.sub("", _BITS.sub(" ", text))
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match[0])
        return _KEPT.format(len(kept) - 1)

    read = alpha2digit(_kept(code).sub(keep, _SCALED.sub(keep, text)), code)
    read = _VERSION.sub(r"\1.\2", read)
    return _AND_A_HALF.sub(_and_a_half, re.sub(r"\x1e(\d+)\x1e", lambda match: kept[int(match[1])], read))


_ARTICLE = re.compile(r"(?<![a-z])an? (?=hundred|thousand)")  # "a hundred" is one number, not "a" and 100
_SCALED = re.compile(r"(?<=\d)\s?(?:thousand|hundred|tausend|hundert|mille|mila|mil|duizend|honderd)(?![a-z])")
_VERSION = re.compile(r"((?<=cuda )1\d) (\d)(?![\d.])")  # "cuda eleven seven"
_BITS = re.compile(r"(?<=[a-z])-(?=bits?(?![a-z]))")  # "four-bit"
_SHARES = {"half": "0.5", "quarter": "0.25"}
_HALF = re.compile(r"(?<![\w.])(?:a )?(half|quarter)(?: of)?(?: an?)?[ -](?=million|billion|trillion)")
_HALF_MORE = re.compile(
    r"(?<![\w.])(\d{1,3}|an?|one|two|three|four|five|six|seven) and a half (?=million|billion|trillion)"
)
_AND_A_HALF = re.compile(
    r"(?<![\w.])(?:(\d{1,4})( ?[a-z]{0,8})|(?:an?|one) ([a-z]{3,8})) and a half(?! (?:million|billion|trillion))"
)


def _as_share(match: re.Match[str]) -> str:
    return _SHARES[match[1]] + " "


def _and_a_half(match: re.Match[str]) -> str:
    """What is one and a half, or some and a half, as a decimal: 2.5 days."""
    return f"1.5 {match[3]}" if match[3] else f"{match[1]}.5{match[2]}"


_PATTERNS: dict[tuple[str, str], re.Pattern[str]] = {}


def _worth_it(code: str) -> re.Pattern[str]:
    """Beginnings of number words of a language: without one there is nothing to do."""
    return _pattern("heads", code, r"(?<![a-zà-ÿ])(?:{})")


def _kept(code: str) -> re.Pattern[str]:
    """Words of a language that stay as they are."""
    return _pattern("kept", code, r"(?<![a-zà-ÿ])(?:{})(?![a-zà-ÿ])")


def _pattern(what: str, code: str, frame: str) -> re.Pattern[str]:
    if (what, code) not in _PATTERNS:
        table = grammar.data("numbers")["number_words"][what]
        words = [*table.get("all", ()), *table.get(code, ())]
        _PATTERNS[what, code] = re.compile(frame.format("|".join(sorted(words, key=len, reverse=True))))
    return _PATTERNS[what, code]
