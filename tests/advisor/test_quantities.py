from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.quantities import _MAIN, _numbers, normalised, quantities

G, T, K = 1e9, 1e12, 1e3
H = 3600.0

# What is written, and each number's value in base units with its dimension (any of its readings).
WRITTEN: list[tuple[str, list[tuple[float, str]]]] = [
    ("45.3 GB", [(45.3 * G, "bytes")]),
    ("45.3GB", [(45.3 * G, "bytes")]),
    ("42.2 GiB", [(42.2 * 2**30, "bytes")]),
    ("8 Gb", [(1 * G, "bytes")]),
    ("400 Gb/s", [(50 * G, "bytes/s")]),
    ("400 Gbit/s", [(50 * G, "bytes/s")]),
    ("25 Gbps", [(3.125 * G, "bytes/s")]),
    ("100GbE", [(12.5 * G, "bytes/s")]),
    ("3.35 TB/s", [(3.35 * T, "bytes/s")]),
    ("900 GB per second", [(900 * G, "bytes/s")]),
    ("1,120 GB", [(1120 * G, "bytes")]),
    ("1 120 GB".replace(" ", "\u202f", 1), [(1120 * G, "bytes")]),
    ("1\u00a0120 GB", [(1120 * G, "bytes")]),
    ("1_000_000 tokens", [(1e6, "tokens")]),
    ("1'234 h", [(1234 * H, "time")]),
    ("1,5 GB", [(1.5 * G, "bytes")]),
    ("41.2–49.8 GB", [(41.2 * G, "bytes"), (49.8 * G, "bytes")]),
    ("41 to 50 GB", [(41 * G, "bytes"), (50 * G, "bytes")]),
    ("between 41 and 50 GB", [(41 * G, "bytes"), (50 * G, "bytes")]),
    ("800 MB-1.2 GB", [(0.8 * G, "bytes"), (1.2 * G, "bytes")]),
    ("$2.40/h", [(2.4, "money/h")]),
    ("$2.40 an hour", [(2.4, "money/h")]),
    ("$2.40/GPU-h", [(2.4, "money/gpu/h")]),
    ("$2.40 per GPU-hour", [(2.4, "money/gpu/h")]),
    ("$2.40 per GPU per hour", [(2.4, "money/gpu/h")]),
    ("2.40 USD/GPU/h", [(2.4, "money/gpu/h")]),
    ("USD 2.40 per card and hour", [(2.4, "money/gpu")]),
    ("$2–3/h", [(2.0, "money/h"), (3.0, "money/h")]),
    ("$1.234 M", [(1.234e6, "money")]),
    ("$3k", [(3000, "money")]),
    ("$700 a month", [(700, "money/month")]),
    ("$0.05/GB-month", [(0.05, "money/gb/month")]),
    ("$0.60 per 1M tokens", [(0.6e-6, "money/token")]),
    ("€12", [(12, "money:EUR")]),
    ("60 %", [(60, "percent")]),
    ("60%", [(60, "percent")]),
    ("60 percent", [(60, "percent")]),
    ("40–60%", [(40, "percent"), (60, "percent")]),
    ("60", [(60, "count")]),
    ("2.5x", [(2.5, "ratio")]),
    ("3-fold", [(3, "ratio")]),
    ("8 GPUs", [(8, "gpus")]),
    ("two nodes", [(2, "nodes")]),
    ("a dozen cards", [(12, "gpus")]),
    ("twice as much", [(2, "ratio")]),
    ("half the memory", [(0.5, "ratio")]),
    ("20B tokens", [(20e9, "tokens")]),
    ("20 billion tokens", [(20e9, "tokens")]),
    ("1.5T tokens", [(1.5e12, "tokens")]),
    ("7B", [(7e9, "count")]),
    ("4k context", [(4000, "count")]),
    ("12,500 tokens/s", [(12500, "tokens/s")]),
    ("12,500 tokens/s per GPU", [(12500, "tokens/s")]),
    ("36 h", [(36 * H, "time")]),
    ("36-hour", [(36 * H, "time")]),
    ("36 小时", [(36 * H, "time")]),
    ("36 Stunden", [(36 * H, "time")]),
    ("45,3 Go", [(45.3 * G, "bytes")]),
    ("1.5 days", [(36 * H, "time")]),
    ("90 min", [(1.5 * H, "time")]),
    ("53 ms", [(0.053, "time")]),
    ("512 GPU-hours", [(512 * H, "gpu-time")]),
    ("989 TFLOPS", [(989 * T, "flop/s")]),
    ("989 TFLOP/s", [(989 * T, "flop/s")]),
    ("6.3e21 FLOPs", [(6.3e21, "flop")]),
    ("1.2×10⁹", [(1.2e9, "count")]),
    ("1.2 x 10^9 params", [(1.2e9, "params")]),
    ("2**30 bytes", [(2.0**30, "bytes")]),
    ("10^12", [(1e12, "count")]),
    ("16 bytes per parameter", [(16, "bytes/param")]),
    ("700 W", [(700, "watts")]),
    ("0.7 kW", [(700, "watts")]),
    ("５６ GB", [(56 * G, "bytes")]),
    ("٥٦ GB", [(56 * G, "bytes")]),
    ("५६ GB", [(56 * G, "bytes")]),
    ("𝟝𝟞 GB", [(56 * G, "bytes")]),
    ("2½ h", [(2.5 * H, "time")]),
    ("45万 tokens", [(450_000, "tokens")]),
    ("-5 %", [(5, "percent")]),
    ("−5 %", [(5, "percent")]),
    ("approx45GB", [(45 * G, "bytes")]),
    ("(45.3 GB)", [(45.3 * G, "bytes")]),
    ("**45.3 GB**", [(45.3 * G, "bytes")]),
    ("half-precision weights", []),
    ("no number here", []),
]


@pytest.mark.parametrize(("text", "expected"), WRITTEN, ids=lambda value: str(value)[:24])
def test_numbers_are_read_as_people_mean_them(text: str, expected: list[tuple[float, str]]) -> None:
    found = quantities(text)
    assert len(found) == len(expected), found
    for quantity, (value, dimension) in zip(found, expected, strict=True):
        values = {reading.dimension: reading.value for reading in quantity.readings}
        assert values.get(dimension) == pytest.approx(value), quantity


def test_a_version_is_one_thing_and_no_value() -> None:
    assert [item.readings[0].dimension for item in quantities("CUDA 12.4.1")] == ["version"]


@given(
    st.floats(0.001, 999_999, allow_nan=False),
    st.sampled_from(["{:.0f}", "{:.1f}", "{:.2f}", "{:,.1f}", "{:.3e}"]),
    st.sampled_from([("GB", 1e9, "bytes"), ("GiB", 2.0**30, "bytes"), ("h", 3600.0, "time"), ("%", 1.0, "percent"),
                     ("TB/s", 1e12, "bytes/s"), ("tokens/s", 1.0, "tokens/s"), ("GPUs", 1.0, "gpus")]),
    st.sampled_from(["", " ", "\u00a0", "\u202f"]),
    st.sampled_from(["It is {}.", "({})", "**{}**", "| a | {} |", "about {}, or so", "\u201c{}\u201d", "x={}", "~{}!"]),
)  # fmt: skip
@settings(max_examples=600, deadline=None)
def test_every_way_of_printing_a_number_is_read_back(
    value: float, form: str, unit: tuple[str, float, str], space: str, around: str
) -> None:
    name, scale, dimension = unit
    shown = form.format(value)
    found = quantities(around.format(shown + space + name))
    expected = float(shown.replace(",", "")) * scale
    assert any(
        reading.dimension == dimension and reading.value == pytest.approx(expected)
        for item in found
        for reading in item.readings
    ), found


@given(st.text(max_size=300))
@settings(max_examples=400, deadline=None)
def test_any_text_is_read_without_fault_and_spans_lie_inside(text: str) -> None:
    assert len(normalised(text)) == len(text)
    for item in quantities(text):
        assert 0 <= item.start < item.end <= len(text)
        assert item.readings


@given(st.text(alphabet="0123456789.,eE+-x^*/ $%GBkMTh_–½²⁹", max_size=60))
@settings(max_examples=400, deadline=None)
def test_no_digit_is_ever_overlooked(text: str) -> None:
    covered: set[int] = set()
    for item in quantities(text):
        covered |= set(range(item.start, item.end))
    assert all(index in covered for index, letter in enumerate(text) if letter.isascii() and letter.isdigit())


@pytest.mark.parametrize(
    "hostile",
    ["1" * 50_000, "1," * 25_000, "$" * 50_000, "1 " * 25_000, "1-" * 25_000, "a per " * 8_000, "1e" * 25_000,
     "10^" * 16_000, " " * 50_000, "1/h" * 16_000, "½" * 50_000, "x" * 50_000],
)  # fmt: skip
def test_hostile_texts_are_read_in_time(hostile: str) -> None:
    begun = time.process_time()
    quantities(hostile)
    assert time.process_time() - begun < 2.0


def test_masked_names_are_not_read_but_their_count_is() -> None:
    text = "8x H100 and 2 A100"
    spans = [(3, 7), (14, 18)]
    counts = [{reading.dimension: reading.value for reading in item.readings} for item in quantities(text, spans)]
    assert [found["gpus"] for found in counts] == [8.0, 2.0]


def test_shuffled_answers_keep_their_numbers() -> None:
    parts = [text for text, expected in WRITTEN if len(expected) == 1 and "CUDA" not in text]
    picker = random.Random(7)
    for _round in range(200):
        chosen = picker.sample(parts, 6)
        found = quantities("; then ".join(chosen) + ".")
        assert len(found) == 6, (chosen, [item.text for item in found])


@given(st.text(alphabet="0123456789.,eE+-x^*/ $€US%GBkMTh_½²~", max_size=60))
@settings(max_examples=400, deadline=None)
def test_looking_only_near_digits_finds_what_looking_everywhere_finds(text: str) -> None:
    assert [match.span() for match in _numbers(text)] == [match.span() for match in _MAIN.finditer(text)]
