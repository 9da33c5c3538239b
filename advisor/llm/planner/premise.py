"""Wrong premises about cards: a memory size, rate or link that the question takes for granted and the tables deny."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from advisor.llm.planner import grammar
from advisor.llm.planner.mentions import GpuMention
from advisor.llm.planner.slots import Slots
from knowledge.gpus import load_gpu
from knowledge.types import Gpu


@dataclass(frozen=True, slots=True)
class Premise:
    """What was taken for granted of a card (or, ``bits``, of a network), and which attribute says otherwise."""

    gpu: str
    attribute: Literal["memory", "fp8", "bf16", "fp4", "nvlink", "bandwidth", "tflops", "sparse", "bits"]
    claimed: str


def _named(name: str) -> re.Pattern[str]:
    return grammar.named(name, "premises")


def premises(turn: Slots) -> list[Premise]:
    """The premises of one message that the tables contradict: memory, bandwidth, rates and links of cards."""
    found: list[Premise] = []
    told = grammar.seen("tflops_each", turn.lower)  # a speed that was measured, not the card's peak
    for mention in turn.gpus:
        if mention.kind != "known" or not mention.argument:
            continue
        gpu = load_gpu(mention.argument)
        tail = turn.lower[mention.end : mention.end + 48]
        found += [
            p
            for p in (
                _memory(gpu, tail, mention),
                _rate(gpu, tail),
                None if told else _tflops(gpu, turn.lower[mention.start : mention.end + 60]),
                _link(gpu, turn.lower[max(0, mention.start - 40) : mention.start], tail),
                _bandwidth(gpu, turn.lower, tail),
            )
            if p
        ]
    if bits := _bits(turn):
        found.insert(0, bits)
    unique: dict[tuple[str, str], Premise] = {(p.gpu, p.attribute): p for p in found}
    return list(unique.values())[:2]


def _bits(turn: Slots) -> Premise | None:
    """A network port's gigabits taken for gigabytes: "InfiniBand 400 = 400 GB/s"; a node of eight ports has as many."""
    match = _named("port_in_bytes").search(turn.text)
    if not match or not _named("a_network").search(turn.lower) or _named("of_a_node").search(turn.lower):
        return None
    return Premise("", "bits", f"{match[1]} GB/s")


def _memory(gpu: Gpu, tail: str, mention: GpuMention) -> Premise | None:
    match = _named("has_memory").match(tail)
    claimed = float(match[1]) if match else mention.memory_gb
    if claimed is None or (match and re.match(r"\s?(?:\)|of (?:weights|states)|free|used|left)", tail[match.end() :])):
        return None
    if mention.count and abs(claimed - mention.count * gpu.marketed_memory_gb) <= 0.06 * claimed:
        return None  # the sum of several cards ("4x 24 GB = 96 GB")
    sizes = {gpu.marketed_memory_gb, gpu.memory_bytes / 2**30, gpu.memory_bytes / 1e9}
    if any(abs(claimed - size) <= 0.06 * size for size in sizes):
        return None
    return Premise(gpu.id, "memory", f"{claimed:g} GB")


def _rate(gpu: Gpu, tail: str) -> Premise | None:
    match = _named("runs").match(tail)
    if not match:
        return None
    name = match[1]
    if gpu.dense_flops.get(name):
        return None
    return Premise(gpu.id, name, name.upper())  # type: ignore[arg-type]


def _link(gpu: Gpu, before: str, tail: str) -> Premise | None:
    if gpu.nvlink_bytes_per_s:
        return None
    if _named("nvlink_of").search(before) or _named("has_nvlink").match(tail):
        return Premise(gpu.id, "nvlink", "NVLink")
    return None


def _bandwidth(gpu: Gpu, lower: str, tail: str) -> Premise | None:
    match = _named("has_bandwidth").match(tail)
    if not match or not gpu.bandwidth_bytes_per_s or re.search(r"link|pcie|infiniband|net", lower):
        return None
    claimed = float(match[1]) * (1e12 if match[2] == "t" else 1e9)
    links = [value for value in (gpu.nvlink_bytes_per_s, gpu.pcie_bytes_per_s) if value]
    allowed = [gpu.bandwidth_bytes_per_s, *links, *(2 * value for value in links)]
    if any(abs(claimed - value) <= 0.1 * value for value in allowed):
        return None
    return Premise(gpu.id, "bandwidth", f"{match[1]} {match[2].upper()}B/s")


def _tflops(gpu: Gpu, text: str) -> Premise | None:
    """A peak rate that no dense rate of the card is; twice the dense one is the figure with sparsity."""
    match = _named("tflops").search(text)
    if not match:
        return None
    claimed = float(match[1]) * 1e12
    dense = [rate for rate in gpu.dense_flops.values() if rate]
    if any(abs(claimed - rate) <= 0.06 * rate for rate in dense):
        # FP8 and INT8 peaks are twice bf16's: the same figure said of bf16 is the one with sparsity.
        bf16 = gpu.dense_flops.get("bf16")
        doubled = bf16 and abs(claimed - 2 * bf16) <= 0.06 * bf16 and re.search(r"bf16|fp16", text)
        return Premise(gpu.id, "sparse", f"{match[1]} TFLOPS") if doubled else None
    sparse = any(abs(claimed - 2 * rate) <= 0.06 * rate for rate in dense)
    return Premise(gpu.id, "sparse" if sparse else "tflops", f"{match[1]} TFLOPS")
