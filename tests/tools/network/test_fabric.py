"""Links by name and rate, against datasheets and port arithmetic."""

import pytest

from knowledge.gpus import find_gpu
from tools.errors import InputProblem
from tools.network import Fabric, fabric_for


def fabric(gpu: str, n_gpus: int, **given: object) -> Fabric:
    return fabric_for(find_gpu(gpu).value, n_gpus, **given)[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["NDR", "NDR400", "ndr 400", "400 Gb/s", "50 GB/s", "InfiniBand", "8x400G", "RoCE 400"]
)
def test_ndr400_is_fifty_gigabytes_a_direction_under_every_name(name: str) -> None:
    assert fabric("H100 SXM", 16, inter_link=name).inter_bytes_per_s == 50e9


def test_one_hundred_gigabit_ethernet_is_12_5_gigabytes_a_port_shared_by_the_node() -> None:
    assert fabric("H100 SXM", 16, inter_link="100GbE").inter_bytes_per_s * 8 == 12.5e9
    assert fabric("H100 SXM", 16, inter_link="100GbE per GPU").inter_bytes_per_s == 12.5e9
    assert fabric("H100 SXM", 16, inter_link="25GbE").inter_bytes_per_s * 8 == 3.125e9


def test_a_sum_for_the_node_is_told_from_a_port() -> None:
    assert fabric("H100 SXM", 16, inter_link="3200 Gb/s").inter_bytes_per_s == 50e9
    assert fabric("H100 SXM", 16, inter_link="3.2 Tb/s per node").inter_bytes_per_s == 50e9


@pytest.mark.parametrize(
    ("gpu", "one_direction"),
    [("V100 SXM2 32GB", 150e9), ("A100 80GB SXM", 300e9), ("H100 SXM", 450e9), ("H800", 200e9), ("B200", 900e9)],
)
def test_nvlink_is_half_of_the_marketing_sum(gpu: str, one_direction: float) -> None:
    assert fabric(gpu, 8).intra_bytes_per_s == one_direction


def test_nvlink_generations_are_not_mixed_up() -> None:
    with pytest.raises(InputProblem) as problem:
        fabric("H100 SXM", 8, intra_link="NVLink 5")
    assert problem.value.candidates == ["NVLink-4"]
    with pytest.raises(InputProblem):
        fabric("RTX 4090", 2, intra_link="NVLink")


def test_pcie_is_counted_one_way_and_runs_at_the_cards_own_generation() -> None:
    assert fabric("L40S", 8).intra_bytes_per_s == pytest.approx(31.5e9, rel=0.01)
    assert fabric("H100 PCIe", 8).intra_bytes_per_s == pytest.approx(63e9, rel=0.01)
    assert fabric("L40S", 8, intra_link="PCIe 5.0").intra_bytes_per_s == pytest.approx(31.5e9, rel=0.01)
    assert fabric("L40S", 8, intra_link="PCIe 4.0 x8").intra_bytes_per_s == pytest.approx(15.75e9, rel=0.01)


def test_two_3090s_with_and_without_a_bridge() -> None:
    bare, bridged = fabric("3090", 2), fabric("3090", 2, intra_link="NVLink bridge")
    assert (bare.intra_kind, bridged.intra_kind) == ("pcie-host", "nvlink-bridge")
    assert bridged.intra_bytes_per_s == 56.25e9
    four, assumed = fabric_for(find_gpu("3090").value, 4, intra_link="NVLink bridge")
    assert four.intra_kind == "pcie-host"
    assert "joins 2 cards" in assumed[-1].why


@pytest.mark.parametrize(
    ("instance", "gpu", "kind", "per_gpu"),
    [
        ("p5.48xlarge", "H100 SXM", "efa", 50e9),
        ("p4d.24xlarge", "A100 40GB SXM", "efa", 6.25e9),
        ("a3-highgpu-8g", "H100 SXM", "gcp-tcp", 12.5e9),
        ("ND H100 v5", "H100 SXM", "infiniband", 50e9),
    ],
)
def test_instance_names_resolve_to_their_links(instance: str, gpu: str, kind: str, per_gpu: float) -> None:
    found = fabric(gpu, 16, instance=instance)
    assert (found.gpus_per_node, found.inter_kind, found.inter_bytes_per_s) == (8, kind, per_gpu)


def test_a_rack_of_72_is_one_nvlink_domain() -> None:
    rack = fabric("GB200", 144)
    assert (rack.gpus_per_node, rack.intra_kind, rack.nodes(144)) == (72, "nvlink-rack", 2)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"inter_link": "0 GB/s"}, "inter_link"),
        ({"inter_link": "0GbE"}, "inter_link"),
        ({"intra_link": "0 GB/s"}, "intra_link"),
        ({"inter_link": "carrier pigeon"}, "inter_link"),
        ({"instance": "p5.49xlarge"}, "instance"),
        ({"instance": "p4d.24xlarge"}, "instance"),
        ({"gpus_per_node": 6}, "n_gpus"),
    ],
)
def test_what_cannot_be_is_refused_by_field(given: dict[str, object], field: str) -> None:
    with pytest.raises(InputProblem) as problem:
        fabric("H100 SXM", 16, **given)
    assert problem.value.field == field
    assert problem.value.candidates


def test_every_default_is_written_down() -> None:
    names = {each.name for each in fabric_for(find_gpu("H100 SXM").value, 16)[1]}
    assert names == {"gpus_per_node", "intra_link", "inter_link"}
