"""Checked claims are found however they are put, and one that is right never vouches for another card or amount."""

import re
from pathlib import Path

import pytest
import yaml

import evals
from knowledge.amounts import amounts, contradicts
from knowledge.article_tables import read_yaml
from knowledge.search import search

RESTATED = yaml.safe_load((Path(evals.__file__).parent / "data" / "restated_claims.yaml").read_text(encoding="utf-8"))
CLAIMS = {claim["id"]: claim for claim in read_yaml("claims")}
RIGHT = [ask for id_, asks in RESTATED.items() if CLAIMS[id_]["verdict"] == "right" for ask in asks]
_AMOUNT = re.compile(
    r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?=\s*(?:%|percent|GB|TB|gb|kW|W\b|TFLOPS|x\b|times|bytes|B/|min|K\b|USD|Gb))"
)
_CARDS = ("H100", "A100", "H200", "B200", "L40S", "MI300X", "A10", "V100")


def claims_found(ask):
    return [passage for passage in search(ask, 6) if passage.kind == "claim"]


def called_right(asks):
    """Those for which the first claim found is one that is right."""
    return [(ask, found[0].title) for ask in asks if (found := claims_found(ask)) and found[0].verdict == "right"]


def test_every_claim_is_restated_three_times():
    assert set(RESTATED) == set(CLAIMS)
    assert all(len(set(asks)) == 3 for asks in RESTATED.values())


def test_a_claim_in_other_words_is_the_first_found():
    asked = [(id_, ask) for id_, asks in RESTATED.items() for ask in asks]
    missed = [(id_, ask) for id_, ask in asked if [p.id for p in claims_found(ask)][:1] != [id_]]
    assert len(missed) <= 0.03 * len(asked), missed


def test_another_amount_is_not_called_right():
    changed = []
    for ask in RIGHT:
        for match in _AMOUNT.finditer(ask):
            value = float(match[0].replace(",", ""))
            changed += [f"{ask[: match.start()]}{value * factor:g}{ask[match.end() :]}" for factor in (2, 10, 0.5)]
        changed += [ask.replace(*swap) for swap in (("Gb/s", "GB/s"), ("GB/s", "Gb/s")) if swap[0] in ask]
    assert len(changed) >= 250
    assert called_right(changed) == []


def test_another_card_is_not_called_right():
    changed = []
    for ask in RIGHT:
        named = [card for card in _CARDS if re.search(rf"\b{card}\b", ask, re.IGNORECASE)]
        others = [card for card in _CARDS if card not in named]
        changed += [re.sub(rf"\b{card}\b", other, ask, flags=re.IGNORECASE) for card in named for other in others]
    assert len(changed) >= 200
    assert called_right(changed) == []


@pytest.mark.parametrize(
    "ask",
    ["InfiniBand 400 = 400 GB/s", "infiniband 400 is 400 GB/s, right?", "400GbE is 400 gigabytes per second",
     "an H100 has 80 GB at 4.8 TB/s", "nvlink 5 is 900 GB/s", "H100 SXM draws 350 W"],
)  # fmt: skip
def test_known_mix_ups_are_not_called_right(ask):
    assert called_right([ask]) == []


def test_bits_for_bytes_is_called_wrong_with_its_sum():
    found = claims_found("InfiniBand 400 = 400 GB/s")[0]
    assert (found.id, found.verdict) == ("M-01", "wrong")
    assert "50 GB/s" in found.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("600 to 900 GB/s", {(600, "gb/s"), (900, "gb/s")}),
        ("600, 900 and 1,800 GB/s", {(600, "gb/s"), (900, "gb/s"), (1800, "gb/s")}),
        ("3.35 TB/s", {(3350, "gb/s")}),
        ("NDR at 400 Gb/s", {(400, "gbit/s")}),
        ("100GbE", {(100, "gbe")}),
        ("an H100 with FP8", set()),
        ("8xH100", {(8, "")}),
        ("$50K-$500K", {(50_000, ""), (500_000, "")}),
        ("10 kW", {(10_000, "w")}),
        ("two minutes", {(2, "min")}),
        ("60-85%", {(60, "%"), (85, "%")}),
    ],
)
def test_amounts_are_read_with_their_unit(text, expected):
    assert amounts(text) == expected


def test_an_amount_in_another_unit_contradicts():
    stated = frozenset(amounts("InfiniBand at 400 Gb/s"))
    assert not contradicts(amounts("400 Gb/s"), stated)
    assert not contradicts(amounts("400"), stated)
    assert contradicts(amounts("400 GB/s"), stated)
    assert contradicts(amounts("200 Gb/s"), stated)
