"""The traps in price data, each as a row that falls into it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from knowledge.clean_prices import DATA, cleaned, observations, write
from knowledge.price_rules import Observation, clean, superseded
from knowledge.types import ProviderClass

CLASSES: dict[str, ProviderClass] = {"azure": "hyperscaler", "gcp": "hyperscaler", "lambda": "specialist",
                                     "vastai": "marketplace", "runpod": "specialist"}  # fmt: skip
MEMORY = {"H100-SXM5": 80.0, "A100-PCIe-80GB": 80.0, "L40S": 48.0}
ROW = Observation(
    provider="lambda",
    instance_type="gpu_8x_h100",
    gpu="H100-SXM5",
    n_gpus=8,
    gpu_memory_gb=80,
    region="us",
    billing="on_demand",
    usd_per_hour=24.0,
    usd_per_gpu_hour=3.0,
    observed="2026-08-01",
    source="gpu-pricing",
    locator="page",
)


def _clean(*rows: Observation) -> tuple[list[Observation], list[str]]:
    kept, out = clean(rows, lambda name: (name, None) if name in MEMORY else None, MEMORY, CLASSES)
    return kept, [item.reason for item in out]


def _priced(usd: float, **changes: object) -> Observation:
    n = float(changes.get("n_gpus", ROW.n_gpus))  # type: ignore[arg-type]
    return replace(ROW, usd_per_gpu_hour=usd, usd_per_hour=usd * n, **changes)  # type: ignore[arg-type]


def test_a_plain_row_becomes_an_offer_with_its_class() -> None:
    kept, out = _clean(ROW)
    assert out == []
    assert (kept[0].gpu_id, kept[0].provider_class) == ("H100-SXM5", "specialist")


@pytest.mark.parametrize("usd", [0.0, -1.0, float("nan"), float("inf")])
def test_no_price_zero_and_below_are_dropped(usd: float) -> None:
    kept, out = _clean(replace(ROW, usd_per_gpu_hour=usd, usd_per_hour=usd * 8))
    assert kept == []
    assert "no price" in out[0]


def test_a_node_price_in_the_gpu_field_is_dropped() -> None:
    kept, out = _clean(replace(ROW, usd_per_gpu_hour=24.0, usd_per_hour=24.0))
    assert kept == []
    assert "not the price of the machine" in out[0]


def test_the_memory_of_all_gpus_together_is_put_right_with_a_warning() -> None:
    kept, out = _clean(replace(ROW, gpu_memory_gb=640))
    assert out == []
    assert "all GPUs together" in kept[0].warnings[0]


def test_a_memory_that_is_not_the_cards_is_dropped() -> None:
    kept, out = _clean(replace(ROW, gpu_memory_gb=40))
    assert kept == []
    assert "not that of the card" in out[0]


def test_a_windows_row_of_a_linux_size_is_dropped() -> None:
    # 7.346 for Linux; the retail list adds 48 vCPU x 0.046 = 2.208 for Windows.
    linux = replace(ROW, provider="azure", instance_type="Standard_NC48ads_A100_v4", gpu="A100-PCIe-80GB", n_gpus=2,
                    usd_per_hour=7.346, usd_per_gpu_hour=3.673, vcpus=48, source="karpenter-azure")  # fmt: skip
    windows = replace(linux, usd_per_hour=9.554, usd_per_gpu_hour=4.777, source="gpu-pricing")
    kept, out = _clean(linux, windows)
    assert kept == [replace(linux, gpu_id="A100-PCIe-80GB", provider_class="hyperscaler")]
    assert out == ["Windows licence included"]


def test_a_reservation_priced_by_its_term_is_dropped() -> None:
    term = _priced(39_500.0, billing="reserved_1y")
    kept, out = _clean(ROW, term)
    assert len(kept) == 1
    assert "total of a reservation" in out[0]


def test_an_honest_reservation_stays() -> None:
    kept, out = _clean(ROW, _priced(2.0, billing="reserved_1y"))
    assert (len(kept), out) == (2, [])


def test_slices_of_a_gpu_are_no_price_of_one() -> None:
    kept, out = _clean(_priced(4.4, n_gpus=0.125))
    assert kept == []
    assert "slice" in out[0]


def test_part_of_an_a3_machine_cannot_be_bought_on_demand() -> None:
    part = _priced(11.0, provider="gcp", instance_type="a3-highgpu-1g", n_gpus=1)
    kept, out = _clean(part, replace(part, billing="spot"))
    assert [row.billing for row in kept] == ["spot"]
    assert "cannot be bought" in out[0]


def test_the_gpu_alone_without_its_host_is_no_price_of_a_machine() -> None:
    alone = _priced(
        0.35, provider="gcp", n_gpus=1, locator="data (live; https://cloud.google.com/compute/gpus-pricing)"
    )
    assert _clean(alone) == ([], ["the GPU alone: Google bills the host's vCPUs and memory apart"])


def test_a_page_s_price_of_one_gpu_becomes_the_machine_that_is_sold() -> None:
    # AWS sells A100 40 GB as p4d.24xlarge only: eight or none.
    one = _priced(3.2931, provider="aws", gpu="a100-sxm-40gb", n_gpus=1, gpu_memory_gb=40, instance_type="A100 40GB")
    (row,) = cleaned([one])[0]
    assert (row.n_gpus, row.usd_per_hour) == (8, pytest.approx(8 * 3.2931))
    assert "sold as a machine of 8" in row.warnings[-1]


def test_the_same_row_seen_twice_counts_once_and_first_hand_wins() -> None:
    first_hand = replace(ROW, source="skypilot-catalog")
    kept, out = _clean(ROW, first_hand)
    assert [row.source for row in kept] == ["skypilot-catalog"]
    assert out == ["seen twice"]


def test_cents_taken_for_dollars_are_an_error() -> None:
    rows = [_priced(2.5 + n / 10, instance_type=str(n)) for n in range(5)]
    kept, out = _clean(*rows, _priced(249.0, instance_type="cents"))
    assert len(kept) == 5
    assert "taken for an error" in out[0]


def test_a_lone_low_ask_of_a_market_is_not_dependable() -> None:
    asks = [_priced(2.0 + n / 10, provider="vastai", billing="community", instance_type=str(n)) for n in range(4)]
    kept, out = _clean(*asks, _priced(0.4, provider="vastai", billing="community", instance_type="low"))
    assert len(kept) == 4
    assert "not dependable" in out[0]


def test_community_hosts_of_a_specialist_are_a_marketplace() -> None:
    kept, _ = _clean(_priced(2.0, provider="runpod", billing="community"))
    assert kept[0].provider_class == "marketplace"


def test_rupees_converted_by_the_source_are_said() -> None:
    kept, _ = _clean(replace(ROW, locator="data (list; currency INR)"))
    assert "converted from INR" in kept[0].warnings[0]


def test_an_older_row_is_history_once_a_newer_one_exists() -> None:
    older = replace(ROW, gpu_id="H100-SXM5", observed="2026-03-01", region="global")
    newer = replace(older, observed="2026-08-01", region="us", instance_type="other name of it")
    elsewhere = replace(older, observed="2026-03-01", region="eu")
    assert superseded([older, newer, elsewhere]) == [True, False, False]


def test_the_files_are_what_the_rules_make_of_the_observations(tmp_path) -> None:  # type: ignore[no-untyped-def]
    kept, out = cleaned(observations())
    write(kept, out, tmp_path)
    for name in ("prices.csv", "prices_rejected.csv"):
        assert (tmp_path / name).read_text() == (DATA / name).read_text(), (
            f"run python -m knowledge.clean_prices: {name}"
        )


def test_nothing_vanishes() -> None:
    rows = observations()
    kept, out = cleaned(rows)
    assert len(kept) + len(out) == len(rows)
    assert all(item.reason for item in out)
