"""A text that forgets what was read, and the numbers in it."""

from __future__ import annotations

import re
from collections.abc import Callable

from advisor.llm.planner import grammar

READ = "\x1f"  # stands where something was read, so that nothing is read twice and borders stay


class Page:
    """The lower-cased message while it is read."""

    def __init__(self, text: str) -> None:
        self.text = text

    def blank(self, start: int, end: int) -> None:
        """Forget the characters from ``start`` to ``end``; positions of the rest stay as they are."""
        self.text = self.text[:start] + READ * (end - start) + self.text[end:]

    def has(self, name: str) -> re.Match[str] | None:
        """The first match of a named pattern, left to be read again; None for none."""
        return grammar.named(name).search(self.text)

    def take(self, name: str, section: str = "patterns", index: int = 0) -> re.Match[str] | None:
        """The first match of a named pattern, forgotten so that nothing reads it twice; None for none."""
        match = grammar.named(name, section, index).search(self.text)
        if match:
            self.blank(*match.span())
        return match

    def all(self, name: str) -> list[re.Match[str]]:
        """Every match of a named pattern in reading order, left to be read again."""
        return list(grammar.named(name).finditer(self.text))


def plain_numbers(text: str) -> str:
    """Thousands and decimals of other conventions: "1 000 000", "1.000.000" and "1,5" become what Python reads."""
    text = re.sub(r"(?<![\d.,])(\d{1,3})(?:[\u00a0\u202f'](\d{3}))+(?!\d)", lambda m: re.sub(r"\D", "", m[0]), text)
    text = re.sub(r"(?<![\d.,])\d{1,3}(?:\.\d{3}){2,}(?![\d.,])", lambda m: m[0].replace(".", ""), text)
    # "100.000 Beispiele" are many, "1.300 millones" are thirteen hundred
    counted = (
        r"(?=\s(?:beispiel|zeilen|exempl|lignes|ejemplo|filas|sample|rows?\b|million(?:en|s de)|millones|milh|milioni))"
    )
    text = re.sub(r"(?<![\d.,])([1-9]\d{0,2})\.(\d{3})" + counted, r"\1\2", text)
    text = re.sub(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?!\d)", lambda m: m[0].replace(",", ""), text)
    text = re.sub(r"(?<![a-z])(cuda|nvcc) (1[0-3]) (\d)(?![\d.x])", r"\1 \2.\3", text)  # "cuda eleven seven"
    rows = r"(?=\s(?:exempl|ejempl|beispiel|lignes|zeilen|filas|rows|samples|examples|pairs|paires|pares))"
    text = re.sub(r"(?<!\d )(?<![\d.,])([1-9]\d{0,2}) (\d{3})" + rows, r"\1\2", text)
    unit = r"(?=\s?(?:[bmkt]\b|gb|go|mrd|mio|milliard|million|billion|bilh|milh|h\b|€|eur|usd|\$|%))"
    return re.sub(r"(?<![\d.,a-z_])(\d+),(\d{1,2})" + unit, r"\1.\2", text)


def counted_thousands(text: str, language: str = "en") -> str:
    """Thousands as a word behind digits: "50 mil ejemplos", "100 tausend Zeilen", "8 mil", "1.5 thousand", "2천"."""
    text = _CJK_THOUSANDS.sub(r"\g<1>000", _THOUSANDS.sub(r"\g<1>000 ", text))
    found = _THOUSAND_OR_MIL if language in ("es", "pt") else _THOUSAND  # elsewhere "mil" is short for a million
    return found.sub(lambda match: f"{float(match[1].replace(',', '.')) * 1000:.0f}", text)


def spoken_shares(text: str) -> str:
    """Shares and small prices in words as signs: "60 percent", "half the time", "五成", "69 cents/hr", "two bucks"."""
    for pattern, sign_for in _SPOKEN:
        text = pattern.sub(sign_for, text)
    return text


_KOREAN = {"한": "1", "다섯": "5", "여섯": "6", "여덟": "8"}
_TENTHS = "一二三四五六七八九"
_PARTS = {
    "half": 50,
    "a third": 33,
    "a 3rd": 33,
    "two thirds": 67,
    "two 3rds": 67,
    "a quarter": 25,
    "three quarters": 75,
}
_BEFORE_HOUR = r"(?=\s?(?:/|per|an?|pro|each)\s?(?:gpu[\s\-/]?|card[\s\-/]?)?h(?:r|our|$|\W))"


def _tenths(match: re.Match[str]) -> str:
    return f"{_TENTHS.index(match[1]) + 1}{5 if match[2] else 0}%"


def _hundred_millions(match: re.Match[str]) -> str:
    return f"{ {'十': 10, '百': 100, '千': 1000}[match[1]] }亿"


def _and_cents(match: re.Match[str]) -> str:
    return f"${number_word(match[1])}.{match[2]}"


def _cents(match: re.Match[str]) -> str:
    return f"{'€' if match[2] == 'ct' else '$'}{float(match[1]) / 100:g}"


_SPOKEN: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (
        re.compile(
            r"(?<=\d) ?(?:per ?cent|pct|prozent|pour ?(?:cent|100)|por ?(?:cient?o|100)|percento|procent)(?![a-z])"
        ),
        "%",
    ),
    (re.compile(r"(?<=\d) ?(?:パーセント|퍼센트|프로(?= ))"), "%"),
    (re.compile(rf"([{_TENTHS}])成(半)?(?![本功为都员了])"), _tenths),
    (re.compile(rf"百分之([{_TENTHS}])十()"), _tenths),
    (re.compile(r"百分之(\d{1,3})"), r"\1%"),
    (
        re.compile(r"(?<![\d一二三四五六七八九十几数])([十百千])亿(?=级|规模|的?参数|的?模型|token|词)"),
        _hundred_millions,
    ),
    (
        re.compile(rf"(?<![a-z])({'|'.join(_PARTS)}) (?:of )?the (?=time|day|week|month|year)"),
        lambda match: f"{_PARTS[match[1]]}% of the ",
    ),
    (re.compile(rf"(?<![\w.$€£])(\d{{1,3}}(?:\.\d)?) ?(cents?|¢|ct|c){_BEFORE_HOUR}"), _cents),
    (
        re.compile(rf"(?<![\w.])(\d{{1,2}}|an?|one|two|three|four|five) (?:bucks?|dollars?) (\d\d){_BEFORE_HOUR}"),
        _and_cents,
    ),
    (re.compile(r"(?<=小时)(\d{1,4}(?:\.\d)?)块"), r"\1元"),
    (re.compile(r"(?<![a-z])half a day(?![a-z])"), "12 hours"),
    (re.compile(r"(?<![a-z])half an hour(?![a-z])"), "30 minutes"),
    (re.compile(r"이틀"), "2일"),
    (re.compile(r"(?<![가-힣])(한|다섯|여섯|여덟) ?(?=[장대개])"), lambda match: _KOREAN[match[1]]),
    (re.compile(r"(?<=\d) ?(?:기가(?:바이트)?|ギガ(?:バイト)?)"), "gb"),
    (re.compile(r"(?<=\d) ?(?:元|块) ?(?:一|每|/) ?(?:度电?|千瓦时)"), "元/kwh"),
    (re.compile(r"(?<=[元\d]) ?[/每一] ?(?:张卡|卡|张|gpu) ?[/每·]? ?(?:小时|时)"), "/小时"),
    (re.compile(r"(?<!\d )(?<![a-zà-ÿ])mil millones"), "1 mil millones"),
    (
        re.compile(
            r"(?<![a-z])(one|two|three|four|five|six|seven|eight|nine|ten|a) (?=bucks?(?![a-z])|dollars?(?![a-z])|quid)"
        ),
        lambda match: f"{number_word(match[1])} ",
    ),
]
_OF_THOUSANDS = r"(?<![\w.,$€])(\d{{1,4}}(?:[.,]\d)?)[ \-](?:{})(?![a-zà-ÿ]|s? (?:mill|milh|bilh))"
_THOUSAND = re.compile(_OF_THOUSANDS.format("thousand|tausend|mille|mila"))
_THOUSAND_OR_MIL = re.compile(_OF_THOUSANDS.format("mil|thousand"))
_CJK_THOUSANDS = re.compile(r"(?<![\d.])([1-9]\d{0,2}) ?(?:천|千)(?![만万億亿억萬])")

_THOUSANDS = re.compile(
    r"(?<![\d.,])([1-9]\d{0,3})\s(?:mil|mille|mila|tausend)\s"
    r"(?=ejempl|filas|muestras|exempl|linhas|lignes|beispiel|zeilen|esempi|righe|diálog|pares|paires|tokens)"
)
_LARGEST = 1e18  # no count of a question is larger; the tools refuse it, and no sum of it overflows


def number(text: str) -> float:
    """A float from digits, separators and an exponent; "1e94090" is a very large one."""
    return min(float(text.replace(",", "").replace("_", "")), _LARGEST)


def scaled(digits: str, suffix: str | None) -> float:
    """A count from digits and a scale: 20B, 41k, 1.5 trillion, 200亿. An unknown scale counts as one."""
    scale = grammar.data("numbers")["scales"].get((suffix or "").strip().rstrip("."), 1.0)
    return number(digits) * float(scale)


def number_word(text: str) -> int | None:
    """A whole number of at least 1 from digits or a number word of the grammar; None for anything else."""
    if text.isdecimal():
        return int(text[:9])
    table = grammar.data("numbers")
    value = table["words"].get(text, table["cjk"].get(text))
    return int(value) if value and value >= 1 else None


def length(digits: str, suffix: str | None) -> int:
    """Sequence lengths count in 1024s where people mean a power of two: 8k is 8192, 120k is 120000."""
    value = number(digits)
    if (suffix or "").strip() == "k":
        whole = int(value)
        return int(value * (1024 if value == whole and whole & (whole - 1) == 0 else 1000))
    return int(min(scaled(digits, suffix), _LARGEST))


def sign(match: re.Match[str], group: int) -> int:
    """-1 where a minus stands before the number and is no dash: "len -100"."""
    before = match.string[max(0, match.start(group) - 2) : match.start(group)]
    return -1 if before.endswith("-") and (len(before) < 2 or before[0] in " =:") else 1
