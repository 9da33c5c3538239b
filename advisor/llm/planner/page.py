"""A text that forgets what was read, and the numbers in it."""

from __future__ import annotations

import re

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
    counted = r"(?=\s(?:beispiel|zeilen|exempl|lignes|ejemplo|filas|sample|rows?\b))"  # "100.000 Beispiele" are many
    text = re.sub(r"(?<![\d.,])([1-9]\d{0,2})\.(\d{3})" + counted, r"\1\2", text)
    text = re.sub(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?!\d)", lambda m: m[0].replace(",", ""), text)
    unit = r"(?=\s?(?:[bmkt]\b|gb|go|mrd|milliard|h\b|€|eur|usd|\$|%))"
    return re.sub(r"(?<![\d.,a-z_])(\d+),(\d{1,2})" + unit, r"\1.\2", text)


def counted_thousands(text: str) -> str:
    """Thousands as a word behind digits and before what is counted: "50 mil ejemplos", "100 tausend Zeilen"."""
    return _THOUSANDS.sub(r"\g<1>000 ", text)


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
