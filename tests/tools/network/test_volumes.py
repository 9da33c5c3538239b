"""Bytes a step by hand: ring volumes of data parallelism, ZeRO, LoRA, tensor, context, pipeline and expert parallel."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.network.collectives import bus_bandwidth, collective_seconds, wire_bytes
from tools.network.fabric import Fabric
from tools.network.volumes import adapter_params, traffic
from tools.workload import Job, WorkloadInput, resolve

H100 = Fabric(8, "nvswitch", 450e9, "infiniband", 50e9)
A100_EFA = Fabric(8, "nvswitch", 300e9, "efa", 6.25e9)
B200_EFA = Fabric(8, "nvswitch", 900e9, "efa", 50e9)


def job(model: str = "llama-2-7b", **given: Any) -> Job:
    given.setdefault("method", "full")
    given.setdefault("precision", "bf16" if given["method"] != "qlora" else "nf4")
    return resolve(WorkloadInput(model=model, **given))


def sent(work: Job, axis: str = "data", **options: Any) -> float:
    """Bytes a GPU sends a step, inside and between nodes together."""
    return sum(sum(item.wire()) for item in traffic(work, H100, **options) if item.axis == axis)


def test_ddp_sends_twice_its_gradients_less_one_share() -> None:
    work = job(n_gpus=8, sharding="ddp")
    assert sent(work) == pytest.approx(2 * 7 / 8 * work.arch.total_params * 2)


def test_accumulation_defers_ddp_but_not_zero3() -> None:
    once, four = job(n_gpus=8, sharding="ddp"), job(n_gpus=8, sharding="ddp", grad_accum=4)
    assert sent(four) == pytest.approx(sent(once))
    once, four = job(n_gpus=8, sharding="zero3"), job(n_gpus=8, sharding="zero3", grad_accum=4)
    assert sent(four) == pytest.approx(4 * sent(once))


def test_zero1_moves_what_ddp_moves_and_zero3_half_as_much_again() -> None:
    ddp = sent(job(n_gpus=8, sharding="ddp"))
    assert sent(job(n_gpus=8, sharding="zero1")) == pytest.approx(ddp)
    assert sent(job(n_gpus=8, sharding="zero3")) == pytest.approx(1.5 * ddp)


def test_lora_sends_adapters_only() -> None:
    work = job(method="lora", n_gpus=8, sharding="ddp", lora_rank=16, lora_targets="qv")
    # Llama-2-7B: 32 layers, q and v of 4096 x 4096, rank 16: 32 * 2 * 16 * 8192 weights
    assert adapter_params(work) == 32 * 2 * 16 * 8192
    assert sent(work) == pytest.approx(2 * 7 / 8 * 32 * 2 * 16 * 8192 * 2)


def test_a_sharded_frozen_base_is_gathered_twice_and_never_reduced() -> None:
    work = job(method="lora", n_gpus=8, sharding="zero3", lora_rank=16, lora_targets="qv")
    adapters = 7 / 8 * adapter_params(work) * 2
    assert sent(work) == pytest.approx(2 * 7 / 8 * work.arch.total_params * 2 + adapters)


def test_a_qlora_base_travels_in_four_bits() -> None:
    lora = sent(job(method="lora", n_gpus=8, sharding="zero3"))
    qlora = sent(job(method="qlora", n_gpus=8, sharding="zero3"))
    assert 0.25 < qlora / lora < 0.28


@pytest.mark.parametrize(("checkpointing", "reduces"), [("none", 4), ("full", 6)])
def test_tensor_parallel_reduces_hidden_states_four_times_a_layer_six_with_recompute(
    checkpointing: str, reduces: int
) -> None:
    work = job(n_gpus=8, tp=8, seq_len=2048, activation_checkpointing=checkpointing)
    by_hand = reduces * 32 * 2 * 7 / 8 * 2048 * 4096 * 2
    assert sent(work, "tensor", sequence_parallel=False) == pytest.approx(by_hand)
    assert sent(work, "tensor", sequence_parallel=True) == pytest.approx(by_hand)


def test_ring_context_parallel_passes_every_other_ranks_keys_and_values() -> None:
    work = job("llama-3.1-8b", n_gpus=8, cp=8, seq_len=8192, activation_checkpointing="none")
    block = 1024 * 2 * 8 * 128 * 2  # tokens of a rank x (keys and values) x kv heads x head size x bf16
    assert sent(work, "context") == pytest.approx(32 * 7 * block * (1 + 2))


def test_ulysses_exchanges_queries_keys_values_and_output() -> None:
    work = job("llama-3.1-8b", n_gpus=8, cp=8, seq_len=8192, activation_checkpointing="none")
    rows = 1024 * 2 * (2 * 32 + 2 * 8) * 128
    assert sent(work, "context", cp_kind="all_to_all") == pytest.approx(32 * 2 * rows * 7 / 8)


def test_pipelines_send_one_hidden_state_each_way_a_micro_batch() -> None:
    work = job(n_gpus=16, pp=2, grad_accum=4, seq_len=2048)
    assert sent(work, "pipeline") == pytest.approx(2 * 4 * 2048 * 4096 * 2)


def test_experts_exchange_routed_tokens_twice_each_way() -> None:
    work = job("mixtral-8x7b", n_gpus=8, ep=8, seq_len=2048, activation_checkpointing="none")
    assert sent(work, "expert") == pytest.approx(4 * 32 * 2048 * 2 * 4096 * 2 * 7 / 8)


def test_compression_and_local_steps_thin_the_gradients_only() -> None:
    work = job(n_gpus=8, sharding="ddp", precision="bf16_mixed")
    assert sent(work, compression="bf16") == pytest.approx(sent(work) / 2)
    assert sent(work, compression="diloco") == pytest.approx(sent(work) / 500)


def test_hybrid_sharding_keeps_gathers_inside_the_node() -> None:
    full = traffic(job(n_gpus=64, sharding="fsdp"), H100)
    hybrid = traffic(job(n_gpus=64, sharding="hsdp"), H100)
    outside = [sum(item.wire()[1] for item in items) for items in (full, hybrid)]
    params = job().arch.total_params * 2
    assert outside[0] == pytest.approx(3 * 63 / 64 * params / 8)
    assert outside[1] == pytest.approx(2 * 7 / 8 * params / 8)


def test_two_nodes_send_each_byte_once_a_direction() -> None:
    assert wire_bytes("all_reduce", 16.0, 16, 8) == (pytest.approx(30.0), 2.0)
    assert wire_bytes("all_reduce", 32.0, 32, 8)[1] == pytest.approx(2 * 31 / 32 * 32 / 8)


@pytest.mark.parametrize(
    ("fabric", "members", "mebibytes", "measured"),
    [  # nccl-tests and all_reduce_bench figures, GB/s bus bandwidth, within a third
        (H100, 8, 4096, 480),  # NVIDIA/nccl-tests#212
        (Fabric(8, "nvswitch", 300e9, "none", 1.0), 8, 4096, 232.5),  # NVIDIA/nccl#1048
        (Fabric(8, "nvswitch", 450e9, "efa", 50e9), 16, 1024, 437),  # aws-samples, p5
        (A100_EFA, 16, 1024, 76.8),  # aws-samples, p4de
        (B200_EFA, 32, 16384, 382),  # ml-engineering, four p6-b200
        (B200_EFA, 32, 16, 64.4),
        (Fabric(2, "nvlink-bridge", 300e9, "none", 1.0), 2, 1024, 115),  # NVIDIA/nccl#1161
    ],
)
def test_bus_bandwidth_is_near_what_was_measured(
    fabric: Fabric, members: int, mebibytes: float, measured: float
) -> None:
    found = bus_bandwidth("all_reduce", mebibytes * 2**20, members, min(members, 8), fabric) / 1e9
    assert measured / 1.34 < found < measured * 1.34


@given(
    payload=st.floats(1e3, 1e11),
    members=st.sampled_from([2, 8, 16, 64, 1024]),
    op=st.sampled_from(["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"]),
)
def test_more_bytes_never_travel_faster_and_faster_links_never_slower(payload: float, members: int, op: Any) -> None:
    near = min(members, 8)
    base = collective_seconds(op, payload, members, near, H100)
    assert collective_seconds(op, payload * 1.5, members, near, H100) > base
    wide = Fabric(8, "nvswitch", 450e9, "infiniband", 100e9)
    assert collective_seconds(op, payload, members, near, wide) <= base
