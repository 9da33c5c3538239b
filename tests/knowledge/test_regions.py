"""Regions as people ask for them."""

from __future__ import annotations

import numpy as np
import pytest

from knowledge.regions import is_anywhere, lies_in, mask


@pytest.mark.parametrize(
    ("asked", "inside", "outside"),
    [
        ("us", ["us-east-1", "eastus", "westus2", "us-central1", "California, US", "EU / US", "desmoines-usa-1"],
         ["australiaeast", "eu-north1", "Australia, AU", "belarus"]),
        ("Europe", ["europe-west4", "westeurope", "eu-north-1", "Norway, NO", "paris-france-1", "NYC / TOR / AMS"],
         ["us-east-1", "koreasouth", "Vietnam, VN"]),
        ("us east", ["us-east-1", "eastus2", "Virginia, US", "newyork-usa-1"], ["us-west-2", "southeastasia"]),
        ("india", ["ap-south-1", "India (Delhi/Mumbai)", "bangalore-india-1"], ["ap-southeast-3", "us"]),
        ("us-east-1", ["us-east-1"], ["us-east-2", "eastus"]),
        ("west4", [], ["europe-west2"]),
        ("frankfurt", ["eu-central-1", "Frankfurt"], ["eu-west-1"]),
    ],
)  # fmt: skip
def test_an_area_holds_its_regions_and_no_others(asked: str, inside: list[str], outside: list[str]) -> None:
    assert [name for name in inside if not lies_in(name, asked)] == []
    assert [name for name in outside if lies_in(name, asked)] == []


def test_a_column_is_masked_like_its_entries() -> None:
    column = np.array(["us-east-1", "eu-north1", "global", "us-east-1"])
    assert mask(column, "us").tolist() == [True, False, False, True]
    assert is_anywhere("Global (lowest)")
    assert not is_anywhere("us")
