"""Amounts in a sentence: values with their unit, in one scale a kind, so that two statements can be compared.

``amounts("600 to 900 GB/s")`` is {(600, "gb/s"), (900, "gb/s")}; terabytes count as gigabytes, thousands and millions
are multiplied out, and Gb/s (bits) is another unit than GB/s (bytes).
"""

from __future__ import annotations

import re

from knowledge.words import MAX_QUERY_CHARS

Amount = tuple[float, str]  # value, unit ("" where none was said)
_UNITS: dict[str, tuple[str, float]] = {
    "tb/s": ("gb/s", 1e3), "tb": ("gb", 1e3), "kw": ("w", 1e3), "k": ("", 1e3), "million": ("", 1e6), "m": ("", 1e6),
    "bn": ("b", 1.0), "billion": ("b", 1.0), "times": ("x", 1.0), "×": ("x", 1.0), "hours": ("h", 1.0),
    "hour": ("h", 1.0), "percent": ("%", 1.0), "per cent": ("%", 1.0), "minutes": ("min", 1.0), "minute": ("min", 1.0),
    "teraflops": ("tflops", 1.0), "watts": ("w", 1.0), "watt": ("w", 1.0), "bytes": ("byte", 1.0), "gib": ("gb", 1.0),
    "gigs": ("gb", 1.0), "tbit/s": ("gbit/s", 1e3), "cents": ("cent", 1.0),
}  # fmt: skip
# Bits: "Gb/s" as written, before case is folded; "400GbE" names a port by its bits.
_BITS = re.compile(r"(?<=\d)\s*(?:Gb/s|[Gg]bps|[Gg]bit/s|[Gg]bits?\b|[Gg]igabits?(?: per second)?)")
_PORT = re.compile(r"(?<=\d)\s*(?:gbe|g ethernet)\b", re.IGNORECASE)
_TERABITS = re.compile(r"(?<=\d)\s*Tb/s")
_BYTES = re.compile(r"(?<=\d)\s*[Gg]igabytes?(?: per second| a second|/s)")
_SPELT = {
    "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "ten": "10",
}  # fmt: skip
_VALUE = r"\d+(?:,\d{3})+(?:\.\d+)?|\d*\.?\d+"
_NUMBER = re.compile(
    rf"(?<![\w.,])(?P<low>{_VALUE})(?P<scale>k\b)?(?:\s*(?:[-–~]|to)\s*\$?(?P<high>{_VALUE}))?\+?\s*"
    r"(?P<unit>%|per ?cent|x\b|×|times|gbe|gbit/s|tbit/s|tb/s|gb/s|gib|gb|gigs|tb|kw|watts?|w\b|tflops|teraflops|"
    r"hours?|h\b|minutes?|min|bytes?|cents?|b\b|bn|billion|k\b|million|m\b)?"
)


_LISTED = re.compile(r"\s{0,4}(?:,|/|,?\s{0,4}\b(?:and|or|against|vs)\b)\s{0,4}")


def amounts(text: str) -> set[Amount]:
    """The amounts of a text; numbers inside names (H100, FP8) do not count."""
    line = _PORT.sub(" gbe", _BYTES.sub(" gb/s", text[:MAX_QUERY_CHARS]))
    line = _TERABITS.sub(" tbit/s", _BITS.sub(" gbit/s", line)).casefold()
    line = re.sub(r"\b(?:one|two|three|four|five|six|seven|eight|ten)\b", lambda word: _SPELT[word[0]], line)
    # "8xH100" is a count of cards, not a factor; "100% of", "2x" stay.
    line = re.sub(r"(?<=\d)\s?[x×@]\s?(?=[a-z]*\d)", " ", line)
    found: set[Amount] = set()
    next_unit, next_start = "", -1
    for match in reversed(list(_NUMBER.finditer(line))):
        unit, factor = _UNITS.get(match["unit"] or "", (match["unit"] or "", 1.0))
        if not match["unit"] and next_unit and _LISTED.fullmatch(line[match.end() : next_start]):
            unit = next_unit  # "600, 900 and 1,800 GB/s"
        next_unit, next_start = unit, match.start()
        for value in (match["low"], match["high"]):
            if value:
                thousand = 1e3 if match["scale"] and value == match["low"] and factor == 1.0 else 1.0
                found.add((float(value.replace(",", "")) * factor * thousand, unit))
    return found


def contradicts(asked: set[Amount], stated: frozenset[Amount]) -> bool:
    """Whether a statement has an amount that the other does not: with its unit where one was said, else its value."""
    values = {value for value, _unit in stated}
    return any(
        not any(_same(value, other) for other in values)
        if unit == ""
        else not any(_same(value, other) and unit == theirs for other, theirs in stated)
        for value, unit in asked
    )


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= 0.02 * abs(other)
