"""Reading every quantity out of a text: number, unit, precision as shown. The number check stands on it.

Handles thousands (comma, thin or hard space, underscore, apostrophe), decimals, exponents, powers, ranges, minus and
approximation signs, digits of other scripts, fractions, money, rates, SI and binary prefixes, and numbers in words.
A number may have several readings ("20 m" is metres to nobody here but minutes or millions): each is kept.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from advisor.unit_words import BIG, CURRENCY, DENOMINATORS, DROPPED, UNITS

NAME_MARK = "\x01"  # stands for each letter of a masked name


@dataclass(frozen=True, slots=True)
class Reading:
    """One meaning: ``value`` in the base unit of ``dimension``; ``step`` is one unit of the last digit shown."""

    value: float
    step: float
    dimension: str


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in a text with everything it may mean."""

    start: int
    end: int
    text: str
    readings: tuple[Reading, ...]
    approximate: bool = False
    in_words: bool = False
    negative: bool = field(default=False, compare=False)


_DENOMINATOR = re.compile(
    r"\s{0,3}(?:/\s?|\bper\s|\bper-|\ba\s|\ban\s|\beach\s|\bpro\s)("
    + "|".join(f"(?P<d{number}>{pattern})" for number, (pattern, _name) in enumerate(DENOMINATORS))
    + r")(?![A-Za-z])",
    re.IGNORECASE,
)
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?![\d])|\d+)"
_VERSION = r"\d+(?:[.]\d+){2,}"
_NUMBER = rf"(?:{_VERSION}|{_DIGITS}(?:[.]\d+|,\d{{1,2}}(?!\d)|,\d{{4,}}(?!\d))?|[.]\d+)"
_GROUPS = ("currency", "sign", "number", "exponent", "big", "bigtight", "unit")
_DECIMAL_COMMA = re.compile(r"\d{1,30},(?:\d{1,2}|\d{4,30})")
_VULGAR = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
_SUPER = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_UNIT_NAMES = sorted(UNITS, key=len, reverse=True)
_UNIT = "|".join(re.escape(name) for name in _UNIT_NAMES)
_BIG_WORDS = "|".join(sorted(map(re.escape, BIG), key=len, reverse=True))
_SIGNS = "|".join(sorted(map(re.escape, CURRENCY), key=len, reverse=True))
_MAIN = re.compile(
    rf"""
    (?P<currency>(?:{_SIGNS})\s?)?
    (?P<sign>(?<![\w.)])-)?
    (?P<number>\d*[{_VULGAR}]|{_NUMBER})
    (?P<exponent>[eE][+-]?\d{{1,3}}(?!\d)|\s?[x*·]\s?10\s?(?:\^|\*\*)\s?-?\d{{1,3}}|\s?[x*·]\s?10[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+
        |\s?(?:\^|\*\*)\s?-?\d{{1,3}}|[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)?
    (?:[\s-]?(?P<big>{_BIG_WORDS})(?![A-Za-z0-9µ])(?!/s)|(?P<bigtight>[kKmMbBtT])(?=-?[A-Z][a-z]|\+))?
    (?:[\s-]?(?P<unit>{_UNIT})(?![A-Za-z0-9µ]))?
    """,
    re.VERBOSE,
)
_APPROXIMATE = re.compile(
    r"(?:[~≈]|\b(?:about|around|roughly|approximately|approx\.?|some|nearly|almost|over|under|ca\.?))\s*$", re.I
)
_APPROXIMATE_ENDS = frozenset("~≈tdyxrea.TDYXREA")  # a look at one letter spares the search nearly always
_RANGE_LINK = re.compile(r"\s?(?:-|to|and|or|through|up to)\s?", re.I)

_CARDINALS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
    "twelve": 12, "fifteen": 15, "sixteen": 16, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60,
    "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100, "a hundred": 100, "one hundred": 100, "a thousand": 1000,
    "a dozen": 12, "dozen": 12,
}  # fmt: skip
_IN_WORDS = re.compile(
    r"\b(?P<word>" + "|".join(sorted(_CARDINALS, key=len, reverse=True)) + r")[\s-]"
    r"(?:(?:more|full|whole|single|extra|such)\s)?"
    r"(?P<unit>"
    + "|".join(re.escape(name) for name in _UNIT_NAMES if len(name) > 2 or name == "h")
    + r")(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_RATIO_WORDS = {
    "twice": 2.0, "double": 2.0, "doubles": 2.0, "doubled": 2.0, "doubling": 2.0, "triple": 3.0, "triples": 3.0,
    "tripled": 3.0, "quadruple": 4.0, "quadruples": 4.0, "half": 0.5, "halves": 0.5, "halve": 0.5, "halved": 0.5,
    "a third": 1 / 3, "one third": 1 / 3, "two thirds": 2 / 3, "a quarter": 0.25, "one quarter": 0.25,
    "three quarters": 0.75, "tenfold": 10.0, "twofold": 2.0, "threefold": 3.0, "fourfold": 4.0,
}  # fmt: skip
_RATIO = re.compile(
    r"\b(?P<word>" + "|".join(sorted(_RATIO_WORDS, key=len, reverse=True)) + r")\b(?![\s-](?:precision|check|buffer|"
    r"an eye|duplex|of the reason|up on))",
    re.IGNORECASE,
)
# What a number may begin with before its first digit: a currency, a blank, a sign, a point.
_LONGEST_LEAD = max(map(len, CURRENCY)) + 3
_ANY_DIGIT = re.compile(rf"[\d{_VULGAR}]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_GROUPED = re.compile(r"(?<=\d)[\u00a0\u2007\u2009\u202f_'’](?=\d{3}(?!\d))")
_BEFORE_NAME = re.compile(rf"\s?[xX*]?\s?(?:{NAME_MARK}|GPUs?\b|gpus?\b|cards?\b|nodes?\b)")
_SAME_WIDTH = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "‒": "-", "×": "x", "✕": "x", "＄": "$", "．": ".", "，": ",",
    "％": "%", "\u00a0": " ", "\u2009": " ", "\u202f": " ", "\u2007": " ", "μ": "µ", "٫": ".", "٬": ",", "⁄": "/",
    "∼": "~", "〜": "-", "～": "-", "“": '"', "”": '"',
}  # fmt: skip


def quantities(text: str, masked: list[tuple[int, int]] | None = None) -> list[Quantity]:
    """Every quantity in ``text`` outside the ``masked`` spans (names), in order."""
    plain = _mask(normalised(text), masked or [])
    found = _in_digits(plain)
    words = _in_words(plain)
    if words:
        found += words
        found.sort(key=lambda item: item.start)
    return found


def normalised(text: str) -> str:
    """``text`` of the same length with digits, signs and spaces of all scripts in their plain form."""
    if not text.isascii():
        text = _GROUPED.sub(",", text)
        text = _NOT_ASCII.sub(lambda match: _plain_letter(match[0]), text)
    return _GROUPED.sub(",", text) if "_" in text or "'" in text or not text.isascii() else text


@lru_cache(maxsize=2048)
def _plain_letter(letter: str) -> str:
    if letter in _SAME_WIDTH:
        return _SAME_WIDTH[letter]
    category = unicodedata.category(letter)
    if category == "Nd":
        return str(unicodedata.digit(letter))
    if category == "No" and "①" <= letter <= "⑨":
        return str(unicodedata.digit(letter))
    if 0xFF21 <= ord(letter) <= 0xFF5A:  # fullwidth letters
        return chr(ord(letter) - 0xFEE0)
    if 0x1D400 <= ord(letter) <= 0x1D7FF:  # mathematical letters
        wide = unicodedata.normalize("NFKC", letter)
        return wide if len(wide) == 1 else letter
    return letter


def _mask(text: str, spans: list[tuple[int, int]]) -> str:
    if not spans:
        return text
    letters = list(text)
    for start, end in spans:
        # A letter keeps word boundaries where they were, so "8x" before a masked name still reads as a count.
        letters[start:end] = NAME_MARK * (end - start)
    return "".join(letters)


def _in_digits(text: str) -> list[Quantity]:
    found: list[Quantity] = []
    matches: list[re.Match[str]] = []
    tails: list[tuple[tuple[str, ...], int]] = []
    for match in _numbers(text):
        if tails and match.start() < tails[-1][1]:
            continue  # the "1M" of "per 1M tokens"
        matches.append(match)
        tails.append(_tail(text, match))
    for index, match in enumerate(matches):
        start, end = match.span()
        currency, sign, number, exponent, big, tight, unit = match.group(*_GROUPS)
        big = big or tight
        denominators, tail_end = tails[index]
        alone: tuple[Reading, ...] = ()
        # "41-50 GB", "$2 to 3/h", "7B or 8B": what one end leaves out it takes from the other.
        if index + 1 < len(matches) and not unit and not denominators:
            other = matches[index + 1]
            link = text[tail_end : other.start()]
            if _RANGE_LINK.fullmatch(link) or (not link and other["sign"]):
                if other["currency"] and currency:  # "$602,000-$1.2 M" is whole by itself, "$2-$3 M" is not
                    alone = _readings(number, exponent, unit, big, currency, tails[index + 1][0])
                unit, denominators = other["unit"], tails[index + 1][0]
                big = big or other["big"] or other["bigtight"]
        between = text[tails[index - 1][1] : start] if index else ""
        if index and not currency:
            before = matches[index - 1]
            if before["currency"] and (_RANGE_LINK.fullmatch(between) or (not between and sign)):
                currency = before["currency"]
        readings = alone + _readings(number, exponent, unit, big, currency, denominators)
        if (not unit or unit in ("x", "X")) and _BEFORE_NAME.match(text, end):
            first = readings[0]
            readings += (Reading(first.value, first.step, "gpus"), Reading(first.value, first.step, "count"))
        found.append(
            Quantity(
                start + (1 if sign and index and not between.strip() else 0),
                max(end, tail_end),
                text[start : max(end, tail_end)].strip(),
                readings,
                approximate=_approximate(text[max(0, start - 16) : start]),
                negative=bool(sign),
            )
        )
    return found


def _approximate(before: str) -> bool:
    """Whether the words before a number say that it is about so much."""
    before = before.rstrip()
    return before[-1:] in _APPROXIMATE_ENDS and bool(before) and bool(_APPROXIMATE.search(before))


def _numbers(text: str) -> Iterator[re.Match[str]]:
    """The matches of the whole pattern, which is tried only where a digit is near."""
    position = 0
    while digit := _ANY_DIGIT.search(text, position):
        match = _MAIN.search(text, max(position, digit.start() - _LONGEST_LEAD))
        if match is None:
            return
        yield match
        position = match.end()


def _tail(text: str, match: re.Match[str]) -> tuple[tuple[str, ...], int]:
    """The denominators after a number ("/GPU-h", "per GPU per hour") and where they end."""
    names: list[str] = []
    end = match.end()
    while len(names) < 3:
        found = _DENOMINATOR.match(text, end)
        if not found:
            break
        groups = found.groupdict()
        index = next(int(key[1:]) for key, value in groups.items() if value is not None)
        name = DENOMINATORS[index][1]
        if name == "token":
            lead = found[1].lower().lstrip("1 ")
            name = "Mtoken" if lead[0] == "m" else "ktoken" if lead[0] == "k" or lead.startswith("tho") else "token"
            if lead.startswith("bil") or lead[0] == "b":
                name = "Btoken"
        names += name.split("/")
        end = found.end()
    return tuple(names), end


@lru_cache(maxsize=8192)  # tables and sums repeat their numbers
def _readings(
    number: str,
    exponent: str | None,
    unit: str | None,
    big: str | None,
    currency: str | None,
    denominators: tuple[str, ...],
) -> tuple[Reading, ...]:
    if number.count(".") > 1:
        return (Reading(0.0, 0.0, "version"),)
    value, step = _value(number, exponent)
    if value is None:
        return (Reading(0.0, 0.0, "unreadable"),)
    if currency:
        scale = BIG.get(big, 1.0) if big else 1.0
        meanings: list[tuple[float, str]] = [(scale, CURRENCY[currency.strip()])]
    elif unit:
        scale = BIG.get(big, 1.0) if big else 1.0
        meanings = [(scale * factor, dimension) for factor, dimension in UNITS[unit]]
        if unit == "B":  # 7 B is seven billion as often as seven bytes
            meanings += [(scale * 1e9, "count"), (scale * 1e9, "params"), (scale * 1e9, "tokens")]
    elif big:
        scale = BIG[big]
        meanings = [(scale, "count")]
        if big == "m":
            meanings.append((60.0, "time"))
        if big in ("B", "b"):
            meanings.append((1.0, "bytes"))
    else:
        meanings = [(1.0, "count")]
    if "Mtoken" in denominators:  # "$0.13 a million tokens" is also a sum of money, the price of that many
        plain = tuple(name for name in denominators if name != "Mtoken")
        rated = [(factor, *_rated(base, names)) for factor, base in meanings for names in (denominators, plain)]
    else:
        rated = [(factor, *_rated(base, denominators)) for factor, base in meanings]
    return tuple(Reading(value * factor * rate, step * factor * rate, dimension) for factor, rate, dimension in rated)


_PER = {"s": (1.0, "s"), "min": (1 / 60.0, "s"), "day": (1 / 86400.0, "s")}


def _rated(base: str, denominators: tuple[str, ...]) -> tuple[float, str]:
    """The scale and the dimension of ``base`` over its denominators."""
    if not denominators:
        return 1.0, base
    scale, names = 1.0, []
    for name in denominators:
        if base == "money" or base.startswith("money:"):
            if name in ("Mtoken", "ktoken", "Btoken"):
                scale /= {"M": 1e6, "k": 1e3, "B": 1e9}[name[0]]
                name = "token"
            names.append(name)
        elif name in DROPPED:
            continue
        elif name in _PER:
            if base in ("flop", "flop/s", "bytes", "tokens", "samples", "steps", "count"):
                scale *= _PER[name][0]
                names.append("s")
            else:
                names.append(name)
        else:
            names.append(name)
    if base == "flop/s" and names == ["s"]:
        names = []
    order = {"gpu": 0, "gb": 0, "tflop": 0}
    names.sort(key=lambda name: order.get(name, 1))
    return scale, "/".join([base, *names])


def _value(number: str, exponent: str | None) -> tuple[float | None, float]:
    if number[-1] in _VULGAR:
        whole = float(number[:-1] or 0)
        return whole + unicodedata.numeric(number[-1]), 0.02
    text = number
    if "," in text:
        text = text.replace(",", "." if _DECIMAL_COMMA.fullmatch(text) else "")
    decimals = len(text.partition(".")[2])
    try:
        value = float(text)
    except ValueError:
        return None, 0.0
    step = 10.0**-decimals
    if exponent:
        plain = exponent.translate(_SUPER).replace(" ", "")
        try:
            if plain[0] in "eE":
                factor = 10.0 ** int(plain[1:])
            elif plain[0] in "x*·" and not plain.startswith("**"):
                power = re.sub(r"^[x*·]10(?:\^|\*\*)?", "", plain)
                factor = 10.0 ** int(power)
            else:
                power = plain.lstrip("^*")
                value, step, factor = value ** int(power), 0.5, 1.0
        except (OverflowError, ValueError, ZeroDivisionError):
            return None, 0.0
        value, step = value * factor, step * factor
    return value, step


def _in_words(text: str) -> list[Quantity]:
    found = []
    for match in _IN_WORDS.finditer(text):
        unit = match["unit"] if match["unit"] in UNITS else match["unit"].lower()
        if unit not in UNITS:
            continue
        value = float(_CARDINALS[match["word"].lower()])
        readings = tuple(Reading(value * factor, 0.0, dimension) for factor, dimension in UNITS[unit])
        found.append(Quantity(match.start(), match.end(), match[0], readings, in_words=True))
    for match in _RATIO.finditer(text):
        value = _RATIO_WORDS[match["word"].lower()]
        readings = (Reading(value, 0.02 * value, "ratio"), Reading(100 * value, 2 * value, "percent"))
        found.append(Quantity(match.start(), match.end(), match[0], readings, approximate=True, in_words=True))
    return found
