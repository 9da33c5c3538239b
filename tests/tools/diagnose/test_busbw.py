"""A measured bus bandwidth judged: sound sweeps as published are within the range, reported problems below it."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from evals import calibrate_network
from tools.diagnose.check_speed import CheckSpeedResult
from tools.errors import InputProblem
from tools.registry import get_tool

SWEEPS = Path(calibrate_network.__file__).parent / "data" / "network_collectives.csv"
LARGE = 2**30


def _check(**arguments: Any) -> CheckSpeedResult:
    found = get_tool("check_speed").call(arguments)
    assert isinstance(found, CheckSpeedResult)
    return found


def _published(use: str) -> list[dict[str, str]]:
    with SWEEPS.open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["use"] == use]


def _judged(row: dict[str, str]) -> str:
    per_node = int(row["n_gpus"]) // int(row["n_nodes"])
    links = {"inter_link": f"{row['inter_gb_s_per_gpu']} GB/s per GPU"} if row["n_nodes"] != "1" else {}
    name = row["gpu"].split(" (")[0].replace("H100 PCIe", "H100-PCIe")
    if row["intra_kind"] == "nvlink-bridge":
        links["intra_link"] = "NVLink bridge"
    return _check(
        busbw_gb_per_s=float(row["busbw_gb_s"]), gpu=name, n_gpus=int(row["n_gpus"]), gpus_per_node=per_node,
        collective=row["op"], message_bytes=float(row["message_bytes"]), **links,
    ).judgement  # fmt: skip


def test_published_sweeps_of_large_messages_are_found_sound() -> None:
    rows = [row for row in _published("fit") if row["intra_kind"] in ("nvswitch", "xgmi", "nvlink-bridge")]
    judged = [(row["id"], _judged(row)) for row in rows if float(row["message_bytes"]) >= LARGE]
    assert len(judged) >= 20
    assert [name for name, judgement in judged if judgement == "below"] == []  # no false alarm
    assert sum(judgement == "within" for _name, judgement in judged) >= 0.9 * len(judged)


def test_a_reported_problem_between_machines_is_found() -> None:
    rows = [row for row in _published("problem report") if row["op"] != "all_reduce"]
    assert rows
    assert {_judged(row) for row in rows} == {"below"}


def test_half_of_what_a_tree_reaches_over_two_machines_is_said() -> None:
    # NVIDIA/nccl#2409: 231 GB/s over two machines of eight H100 whose links should give about 470.
    found = _check(busbw_gb_per_s=231, gpu="H100", n_gpus=16, inter_link="RoCE 400", message_bytes=8 * 2**30)
    assert found.judgement == "within"
    assert "half its rate" in found.next_steps[0]
    assert 1.8 * 231e9 < float(found.fact("expected_busbw").value) < 2.2 * 231e9


def test_a_fallback_to_sockets_is_named_by_the_ports_it_is_worth() -> None:
    found = _check(busbw_gb_per_s=9.84, gpu="A100-SXM4-80GB", n_gpus=16, inter_link="RoCE 200", nics_per_node=4)
    assert found.judgement == "below"
    expected = float(found.fact("expected_busbw").value)
    assert found.fact("ports_worth").value == pytest.approx(4 * 9.84e9 / expected)
    assert "single port" in found.next_steps[0]


def test_one_card_has_nobody_to_exchange_with() -> None:
    with pytest.raises(InputProblem, match="nobody"):
        _check(busbw_gb_per_s=5, gpu="H100", n_gpus=1)
