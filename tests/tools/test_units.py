"""Reading and printing quantities."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.errors import BadValue
from tools.units import format_range, format_value, parse_bytes, parse_count, parse_rate, parse_seconds, significant


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("80GB", 80e9),
        ("80 GiB", 80 * 2**30),
        ("16gb", 16e9),
        ("512 MiB", 512 * 2**20),
        ("8 Gb", 1e9),
        ("1,024 kB", 1.024e6),
        (1e9, 1e9),
        ("2 TB", 2e12),
    ],
)
def test_memory_is_read_with_gb_and_gib_apart(text: str | float, expected: float) -> None:
    assert parse_bytes(text) == expected


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [
        ("400Gb/s", 50e9),  # NDR InfiniBand: 400 gigabits are 50 gigabytes a second
        ("400 Gbit/s", 50e9),
        ("25 Gbps", 3.125e9),
        ("100GbE", 12.5e9),
        ("50 GB/s", 50e9),
        ("3.35 TB/s", 3.35e12),
    ],
)
def test_link_rates_tell_bits_from_bytes(text: str, bytes_per_s: float) -> None:
    assert parse_rate(text) == bytes_per_s


@pytest.mark.parametrize(
    ("text", "expected"),
    [("70B", 70e9), ("20 billion tokens", 20e9), ("1.5T", 1.5e12), ("300M", 3e8), ("2e10", 2e10), ("100 bn", 1e11)],
)
def test_counts_are_read_as_people_write_them(text: str, expected: float) -> None:
    assert parse_count(text) == expected


@pytest.mark.parametrize(("text", "expected"), [("2h", 7200), ("90 min", 5400), ("3 days", 259200), ("1 week", 604800)])
def test_times_are_read_in_seconds(text: str, expected: float) -> None:
    assert parse_seconds(text) == expected


@pytest.mark.parametrize("text", ["", "GB", "12 parsecs", "1e400 GB", "nan"])
def test_what_is_no_amount_of_memory_is_refused_with_the_field(text: str) -> None:
    with pytest.raises(BadValue) as caught:
        parse_bytes(text, "memory")
    assert caught.value.field == "memory"


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (45.3e9, "B", "45.3 GB"),
        (1.12e12, "B", "1,120 GB"),
        (3686.0, "h", "3,686 h"),
        (0.4, "h", "24 min"),
        (989e12, "FLOP/s", "989 TFLOP/s"),
        (1e11, "tokens", "100 B tokens"),
        (2.4, "USD/GPU-h", "$2.40/GPU-h"),
        (12345.6, "USD", "$12,346"),
        (40.0, "%", "40 %"),
        (8, "GPUs", "8 GPUs"),
        (True, "", "yes"),
        (None, "B", "–"),
    ],
)
def test_values_are_printed_with_their_unit(value: float | None, unit: str, shown: str) -> None:
    assert format_value(value, unit) == shown


def test_a_unit_can_be_asked_for() -> None:
    assert format_value(80 * 2**30, "B", "GiB") == "80 GiB"
    assert format_value(50e9, "B/s", "Gb/s") == "400 Gb/s"


def test_a_range_says_its_unit_once() -> None:
    assert format_range(41.2e9, 49.8e9, "B") == "41.2–49.8 GB"
    assert format_range(38, 44, "%") == "38–44 %"
    assert format_range(5, 5, "h") == "5 h"


@given(st.floats(min_value=1e-5, max_value=1e14))
def test_three_significant_digits_are_within_half_a_percent(value: float) -> None:
    assert float(significant(value).replace(",", "")) == pytest.approx(value, rel=5.01e-3)


@given(st.floats(min_value=1e6, max_value=1e15))
def test_printing_and_reading_memory_agree(value: float) -> None:
    assert parse_bytes(format_value(value, "B").replace(" ", "")) == pytest.approx(value, rel=5.01e-3)
