"""A second implementation, on paper's terms, that derives expected values for suites: ``python -m evals.oracle``.

It shares nothing with the product: shapes are the models' published configurations, rates are dense data-sheet figures,
and every formula is the plain one that the case prints as its source. It writes ``evals/cases/derived_*.yaml``; a test
asserts that the committed files are what it writes.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CASES = Path(__file__).parent / "cases"


@dataclass(frozen=True, slots=True)
class Model:
    """A published decoder configuration."""

    name: str
    vocab: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    ffn: int
    tied: bool = False
    qkv_bias: bool = False

    @property
    def embeddings(self) -> int:
        """Entries of embedding and output head, vocabulary x hidden: once where they are tied, else twice."""
        return self.vocab * self.hidden * (1 if self.tied else 2)

    @property
    def linear(self) -> int:
        """Entries of the linear layers in the blocks, which 4-bit loaders quantise."""
        attention = 2 * self.hidden * self.heads * self.head + 2 * self.hidden * self.kv_heads * self.head
        return self.layers * (attention + 3 * self.hidden * self.ffn)

    @property
    def params(self) -> int:
        """All parameters: linear layers, two norms a layer and a last one, biases, embeddings."""
        bias = self.layers * (self.heads + 2 * self.kv_heads) * self.head if self.qkv_bias else 0
        return self.linear + (2 * self.layers + 1) * self.hidden + bias + self.embeddings

    def adapter(self, rank: int) -> int:
        """LoRA entries on all linear layers: rank × (in + out) each (Hu et al. 2021, arXiv:2106.09685)."""
        q, kv = self.heads * self.head, self.kv_heads * self.head
        sides = (self.hidden + q) + 2 * (self.hidden + kv) + (q + self.hidden) + 3 * (self.hidden + self.ffn)
        return rank * self.layers * sides

    @property
    def cache_per_token(self) -> int:
        """Bytes of keys and values of one token in 16 bits: 2 x layers x kv heads x head size x 2."""
        return 2 * self.layers * self.kv_heads * self.head * 2


MODELS = {
    model.name: model
    for model in (
        Model("llama-3.1-8b", 128256, 4096, 32, 32, 8, 128, 14336),
        Model("llama-3.1-70b", 128256, 8192, 80, 64, 8, 128, 28672),
        Model("llama-3.1-405b", 128256, 16384, 126, 128, 8, 128, 53248),
        Model("llama-3.2-1b", 128256, 2048, 16, 32, 8, 64, 8192, tied=True),
        Model("llama-3.2-3b", 128256, 3072, 28, 24, 8, 128, 8192, tied=True),
        Model("llama-2-7b", 32000, 4096, 32, 32, 32, 128, 11008),
        Model("llama-2-13b", 32000, 5120, 40, 40, 40, 128, 13824),
        Model("mistral-7b", 32000, 4096, 32, 32, 8, 128, 14336),
        Model("qwen2.5-0.5b", 151936, 896, 24, 14, 2, 64, 4864, tied=True, qkv_bias=True),
        Model("qwen2.5-7b", 152064, 3584, 28, 28, 4, 128, 18944, qkv_bias=True),
        Model("qwen2.5-14b", 152064, 5120, 48, 40, 8, 128, 13824, qkv_bias=True),
        Model("qwen2.5-32b", 152064, 5120, 64, 40, 8, 128, 27648, qkv_bias=True),
    )
}
# Published parameter counts, in billions, that the sums above must meet (model cards).
PUBLISHED = {
    "llama-3.1-8b": 8.03, "llama-3.1-70b": 70.55, "llama-3.1-405b": 405.85, "llama-3.2-1b": 1.236, "llama-3.2-3b": 3.213,
    "llama-2-7b": 6.738, "llama-2-13b": 13.016, "mistral-7b": 7.242, "qwen2.5-0.5b": 0.494, "qwen2.5-7b": 7.616,
    "qwen2.5-14b": 14.77, "qwen2.5-32b": 32.76,
}  # fmt: skip
# Dense data-sheet rates with 32-bit accumulation, TFLOPS; bf16, or fp16 where the card has no bf16.
TFLOPS = {
    "A100 80GB SXM": 312, "H100 SXM": 989, "H100 PCIe": 756, "H200": 989, "B200": 2250, "L40S": 362, "RTX 4090": 165.2,
    "RTX 3090": 71, "RTX 5090": 209.5, "MI300X": 1307, "A10": 125, "RTX A6000": 154.8, "L4": 121,
}  # fmt: skip
BANDWIDTH_GB_S = {
    "A100 80GB SXM": 2039, "A100 40GB SXM": 1555, "H100 SXM": 3350, "H100 PCIe": 2000, "H200": 4800, "L40S": 864,
    "RTX 4090": 1008, "RTX 3090": 936, "RTX 5090": 1792, "MI300X": 5300, "A10": 600, "L4": 300, "RTX A6000": 768,
}  # fmt: skip
WATTS = {"A100 80GB SXM": 400, "H100 SXM": 700, "H200": 700, "B200": 1000, "L40S": 350, "RTX 4090": 450, "L4": 72}
NVLINK_GB_S = {"A100 80GB SXM": 300, "H100 SXM": 450, "H200": 450, "B200": 900}  # one way, half of the headline
PURE = {"idle_share": 0, "failures": False, "evaluation_share": 0, "start_up_hours": 0}


def memory_cases() -> list[dict[str, Any]]:
    """States, adapters, quantised weights, caches, sharding and clear-cut fits."""
    cases = []
    for name in ("qwen2.5-0.5b", "llama-3.2-1b", "llama-3.2-3b", "llama-2-7b", "mistral-7b", "qwen2.5-7b",
                 "llama-2-13b", "qwen2.5-14b", "qwen2.5-32b"):  # fmt: skip
        n = MODELS[name].params
        cases.append(
            _call(f"memory.pure.{name}", "pure bf16 AdamW: 2 + 2 + 4 bytes a parameter", ["memory", "full"],
                  "estimate_vram", {"model": name, "method": "full", "precision": "bf16", "sharding": "none", "seq_len": 256},
                  [_value("weights", n * 2 / 1e9, "GB", f"{n:,} × 2 bytes"),
                   _value("gradients", n * 2 / 1e9, "GB", f"{n:,} × 2 bytes"),
                   _value("optimizer_states", n * 4 / 1e9, "GB", f"{n:,} × 2 moments × 2 bytes")])
        )  # fmt: skip
    for name in ("llama-3.2-1b", "llama-3.2-3b", "llama-2-7b", "qwen2.5-32b", "llama-3.1-405b"):
        n = MODELS[name].params
        cases.append(
            _call(f"memory.mixed.{name}", "mixed precision keeps two fp32 moments", ["memory", "full"],
                  "estimate_vram", {"model": name, "method": "full", "precision": "bf16_mixed", "sharding": "none"},
                  [_value("optimizer_states", n * 8 / 1e9, "GB", f"{n:,} × 2 moments × 4 bytes"),
                   _between("peak_per_gpu", n * 16 / 1e9, n * 30 / 1e9 + 30, "GB",
                            f"at least the states, {n:,} × 16 bytes; at most those plus a temporary, a tenth and 30 GB")])
        )  # fmt: skip
    for name, rank in (("llama-3.2-3b", 8), ("llama-3.1-8b", 32), ("llama-2-7b", 64), ("qwen2.5-7b", 16),
                       ("mistral-7b", 16), ("llama-2-13b", 128)):  # fmt: skip
        model = MODELS[name]
        entries = model.adapter(rank)
        cases.append(
            _call(f"memory.lora.{name}.r{rank}", "an adapter is rank × (in + out) a matrix", ["memory", "lora"],
                  "estimate_vram",
                  {"model": name, "method": "lora", "precision": "bf16", "lora_rank": rank, "lora_targets": "all-linear"},
                  [_between("adapters", entries * 2 / 1e6, entries * 4.02 / 1e6, "MB",
                            f"{entries:,} entries of rank {rank} on all linear layers, 2 or 4 bytes each"),
                   _value("weights", model.params * 2 / 1e9, "GB", f"frozen base {model.params:,} × 2 bytes")])
        )  # fmt: skip
    for name in ("llama-2-7b", "llama-2-13b", "mistral-7b", "qwen2.5-32b", "llama-3.1-405b"):
        model = MODELS[name]
        rest = model.params - model.linear
        low, high = model.linear * 4.127 / 8 + rest * 2, model.linear * 4.5 / 8 + rest * 4
        cases.append(
            _call(f"memory.qlora.{name}", "4-bit weights plus what stays wide", ["memory", "qlora"], "estimate_vram",
                  {"model": name, "method": "qlora"},
                  [_between("weights", low / 1e9 * 0.999, high / 1e9 * 1.001, "GB",
                            f"{model.linear:,} × 4.127 to 4.5 bits / 8 + {rest:,} others × 2 to 4 bytes")])
        )  # fmt: skip
    for name in ("llama-3.1-8b", "llama-3.1-405b", "qwen2.5-14b", "llama-2-13b"):
        n = MODELS[name].params
        cases.append(
            _call(f"memory.serve.{name}", "16-bit weights to serve", ["memory", "inference"], "estimate_vram",
                  {"model": name, "task": "inference", "precision": "bf16"},
                  [_value("weights", n * 2 / 1e9, "GB", f"{n:,} × 2 bytes")])
        )  # fmt: skip
    for name, length, batch in (("llama-3.1-8b", 4096, 16), ("llama-3.1-70b", 8192, 1), ("llama-2-7b", 4096, 8),
                                ("qwen2.5-7b", 16384, 2), ("llama-2-13b", 2048, 4)):  # fmt: skip
        model = MODELS[name]
        size = model.cache_per_token * length * batch
        cases.append(
            _call(f"memory.cache.{name}.{length}x{batch}", "key-value cache: only the kv heads count",
                  ["memory", "inference"], "estimate_vram",
                  {"model": name, "task": "inference", "precision": "bf16", "seq_len": length, "micro_batch": batch},
                  [_value("kv_cache", size / 1e9, "GB",
                          f"2 × {model.layers} × {model.kv_heads} × {model.head} × 2 bytes × {length:,} × {batch}")])
        )  # fmt: skip
    for name, gpus in (("llama-3.1-8b", 8), ("llama-3.1-70b", 16), ("llama-2-13b", 4), ("qwen2.5-32b", 32)):
        n = MODELS[name].params
        cases.append(
            _call(f"memory.fsdp.{name}.{gpus}", "full sharding divides the moments by the GPUs", ["memory", "sharding"],
                  "estimate_vram",
                  {"model": name, "method": "full", "precision": "bf16_mixed", "sharding": "fsdp", "n_gpus": gpus},
                  [_value("optimizer_states", n * 8 / gpus / 1e9, "GB", f"{n:,} × 8 bytes / {gpus} GPUs", rel=0.01)])
        )  # fmt: skip
    for gpus in (2, 8):
        n = MODELS["llama-3.2-3b"].params
        cases.append(
            _call(f"memory.ddp.llama-3.2-3b.{gpus}", "data parallelism copies everything", ["memory", "sharding"],
                  "estimate_vram",
                  {"model": "llama-3.2-3b", "method": "full", "precision": "bf16_mixed", "sharding": "ddp", "n_gpus": gpus},
                  [_value("optimizer_states", n * 8 / 1e9, "GB", f"{n:,} × 8 bytes on each of {gpus} GPUs")])
        )  # fmt: skip
    fits = (
        ("llama-3.2-1b", {"method": "full", "precision": "bf16_mixed"}, "H100 SXM", "fits", "19.8 GB of states against 85"),
        ("llama-3.2-3b", {"method": "full", "precision": "bf16_mixed"}, "RTX 4090", "does_not_fit", "51 GB of states against 25"),
        ("qwen2.5-0.5b", {"method": "full", "precision": "bf16_mixed"}, "RTX 3090", "fits", "7.9 GB of states against 25"),
        ("llama-3.1-70b", {"method": "qlora"}, "RTX 4090", "does_not_fit", "39.5 GB of weights against 25"),
        ("llama-2-13b", {"method": "qlora", "seq_len": 1024}, "RTX 3090", "fits", "7.2 GB of weights against 25"),
        ("llama-3.1-405b", {"method": "qlora"}, "H100 SXM", "does_not_fit", "217 GB of weights against 85"),
        ("llama-3.1-70b", {"method": "lora", "precision": "bf16"}, "H100 SXM", "does_not_fit", "141 GB of weights against 85"),
        ("llama-3.1-8b", {"method": "lora", "precision": "bf16", "seq_len": 1024}, "A100 80GB SXM", "fits", "16 GB of weights against 85"),
        ("llama-3.1-8b", {"method": "full", "precision": "bf16_mixed"}, "RTX 5090", "does_not_fit", "128 GB of states against 34"),
        ("qwen2.5-32b", {"method": "lora", "precision": "bf16"}, "RTX A6000", "does_not_fit", "65.5 GB of weights against 51"),
    )  # fmt: skip
    for name, how, gpu, verdict, why in fits:
        method = str(how["method"])
        case = _call(f"memory.verdict.{name}.{method}.{_slug(gpu)}", f"a clear-cut fit: {why}", ["memory", "fit"],
                     "estimate_vram", {"model": name, **how, "gpu": gpu, "sharding": "none"}, [])  # fmt: skip
        case["expect"] = {"values": {"gpu_verdict": [verdict]}}
        cases.append(case)
    return cases


def run_cases() -> list[dict[str, Any]]:
    """Cases of hours, GPU-hours, tokens/s and USD at a given utilisation: 6·N·D over GPUs x peak x MFU."""
    cases = []
    jobs = (
        (1e9, 20e9, "A100 80GB SXM", 8, 0.45), (3e9, 100e9, "H100 SXM", 16, 0.4), (7e9, 2e12, "H100 SXM", 256, 0.42),
        (13e9, 300e9, "A100 80GB SXM", 64, 0.5), (70e9, 1e12, "H100 SXM", 512, 0.38), (7e9, 1e9, "H100 PCIe", 4, 0.35),
        (1.5e9, 5e9, "RTX 4090", 2, 0.3), (0.5e9, 2e9, "RTX 3090", 1, 0.35), (8e9, 500e9, "B200", 64, 0.35),
        (2e9, 10e9, "L40S", 8, 0.3), (8e9, 50e9, "H200", 8, 0.4), (7e9, 20e9, "MI300X", 8, 0.35),
        (1e9, 3e9, "A10", 4, 0.3), (3e9, 8e9, "RTX A6000", 4, 0.35), (2e9, 4e9, "RTX 5090", 2, 0.4),
    )  # fmt: skip
    for params, tokens, gpu, count, mfu in jobs:
        seconds = 6 * params * tokens / (count * TFLOPS[gpu] * 1e12 * mfu)
        source = f"6 × {params:.3g} × {tokens:.3g} / ({count} × {TFLOPS[gpu]}e12 × {mfu}) = {seconds:.5g} s"
        arguments = {"model": f"{params / 1e9:g}B", "method": "full", "gpu": gpu, "n_gpus": count, "tokens": tokens,
                     "mfu": mfu, "price": 2.0, "seq_len": 2048, **PURE}  # fmt: skip
        cases.append(
            _call(f"time.{params / 1e9:g}b.{tokens / 1e9:g}b.{count}x{_slug(gpu)}".replace(".0", ""),
                  "the plain formula at a stated utilisation", ["time", "cost"], "estimate_run", arguments,
                  [_value("run_hours", seconds / 3600, "h", source, rel=0.01),
                   _value("gpu_hours", seconds / 3600 * count, "h", f"{source}, × {count} GPUs", rel=0.01),
                   _value("tokens_per_second", tokens / seconds, "tokens/s", f"{tokens:.3g} tokens / {seconds:.5g} s", rel=0.01),
                   _value("compute_cost", seconds / 3600 * count * 2.0, "USD", f"GPU-hours × 2.00 USD; {source}", rel=0.01)])
        )  # fmt: skip
    return cases


def network_cases() -> list[dict[str, Any]]:
    """Link rates in bytes and one direction, and the bytes of a step."""
    cases = []
    for gpu, rate in NVLINK_GB_S.items():
        cases.append(
            _call(f"network.nvlink.{_slug(gpu)}", "NVLink one way, half of the headline", ["network", "units"],
                  "check_interconnect", {"model": "7B", "method": "lora", "gpu": gpu, "n_gpus": 8, "gpus_per_node": 8},
                  [_value("intra_rate", rate, "GB/s", f"headline {2 * rate} GB/s counts both directions; / 2")])
        )  # fmt: skip
    links = (("NDR", 400, 1), ("HDR", 200, 1), ("200Gb/s", 200, 1), ("100Gb/s", 100, 1), ("50 GB/s", 400, 1),
             ("25 Gbit/s", 25, 1))  # fmt: skip
    for link, gbit, _ in links:
        cases.append(
            _call(f"network.port.{_slug(link)}", "a port's bits are an eighth in bytes", ["network", "units"],
                  "check_interconnect",
                  {"model": "7B", "method": "full", "gpu": "H100 SXM", "n_gpus": 16, "gpus_per_node": 8,
                   "inter_link": f"{link} per GPU"},
                  [_value("inter_rate", gbit / 8, "GB/s", f"{gbit} Gb/s / 8, one port a GPU")])
        )  # fmt: skip
    for link, gbit in (("10GbE", 10), ("25GbE", 25), ("100GbE", 100)):
        cases.append(
            _call(f"network.shared.{_slug(link)}", "one port a node is shared by its GPUs", ["network", "units"],
                  "check_interconnect",
                  {"model": "7B", "method": "full", "gpu": "H100 SXM", "n_gpus": 16, "gpus_per_node": 8,
                   "inter_link": link, "nics_per_node": 1},
                  [_value("inter_rate", gbit / 8 / 8, "GB/s", f"{gbit} Gb/s / 8 bits / 8 GPUs")])
        )  # fmt: skip
    for params, nodes in ((1e9, 2), (7e9, 4), (13e9, 2), (7e9, 8)):
        share = params * 2 / 8 * 2
        low, high = share * (nodes - 1) / nodes, share * (8 * nodes - 1) / (8 * nodes)
        cases.append(
            _call(f"network.bytes.{params / 1e9:g}b.{nodes}nodes", "reduced inside the node first", ["network"],
                  "check_interconnect",
                  {"model": f"{params / 1e9:g}B", "method": "full", "precision": "bf16", "sharding": "ddp",
                   "gpu": "H100 SXM", "n_gpus": 8 * nodes, "gpus_per_node": 8, "inter_link": "NDR"},
                  [_between("inter_bytes", low * 0.99 / 1e9, high * 1.01 / 1e9, "GB",
                            f"{params:.2g} × 2 bytes / 8 GPUs × 2 (n - 1)/n, n between {nodes} nodes (tree of nodes) and "
                            f"{8 * nodes} GPUs (one ring)")])
        )  # fmt: skip
    return cases


def card_cases() -> list[dict[str, Any]]:
    """Cases of data-sheet figures, dense TFLOP/s and one-way bandwidth, by card, and of their ratios."""
    cases = []
    for gpu in TFLOPS:
        numbers = [_value("bf16_flops", TFLOPS[gpu], "TFLOPS", f"data sheet, dense, 32-bit accumulation: {TFLOPS[gpu]} TFLOPS",
                          rel=0.01)]  # fmt: skip
        if gpu in BANDWIDTH_GB_S:
            numbers.append(_value("memory_bandwidth", BANDWIDTH_GB_S[gpu], "GB/s", f"data sheet: {BANDWIDTH_GB_S[gpu]} GB/s",
                                  rel=0.025))  # fmt: skip
        if gpu in WATTS:
            numbers.append(_value("tdp", WATTS[gpu], "W", f"data sheet: {WATTS[gpu]} W board power"))
        cases.append(
            _call(f"cards.{_slug(gpu)}", "dense rates as the sheets give them, never sparse", ["cards"], "compare_gpus",
                  {"gpus": [gpu]}, numbers)
        )  # fmt: skip
    for one, other in (("H100 SXM", "A100 80GB SXM"), ("RTX 4090", "RTX 3090"), ("H200", "H100 SXM")):
        cases.append(
            _call(f"cards.ratio.{_slug(one)}.{_slug(other)}", "a ratio of dense rates and of bandwidths", ["cards"],
                  "compare_gpus", {"gpus": [one, other]},
                  [_value("bf16_ratio", TFLOPS[one] / TFLOPS[other], "x", f"data sheets: {TFLOPS[one]} / {TFLOPS[other]}", rel=0.01),
                   _value("bandwidth_ratio", BANDWIDTH_GB_S[one] / BANDWIDTH_GB_S[other], "x",
                          f"data sheets: {BANDWIDTH_GB_S[one]} / {BANDWIDTH_GB_S[other]}", rel=0.01)])
        )  # fmt: skip
    return cases


SUITES = {
    "derived_memory": ("Bytes by component, from published shapes.", memory_cases),
    "derived_run": ("Hours, speed and cost at a stated utilisation.", run_cases),
    "derived_network": ("Link rates and bytes of a step.", network_cases),
    "derived_cards": ("Data-sheet figures of cards.", card_cases),
}


def suite_text(name: str) -> str:
    """The YAML of one derived suite, as the committed file must read. Raises KeyError for a name that is none."""
    about, make = SUITES[name]
    data = {
        "suite": name,
        "about": f"{about} Written by evals/oracle.py, which holds the derivations.",
        "cases": make(),
    }
    return "# Written by `python -m evals.oracle`; do not edit.\n" + yaml.safe_dump(
        data, sort_keys=False, allow_unicode=True, width=118
    )


def _call(
    case_id: str, why: str, tags: list[str], tool: str, arguments: dict[str, Any], numbers: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "id": case_id, "why": why, "tags": tags, "call": {"tool": tool, "arguments": arguments},
        "expect": {"numbers": numbers},
    }  # fmt: skip


def _value(fact: str, value: float, unit: str, source: str, rel: float = 0.005) -> dict[str, Any]:
    return {"fact": fact, "value": float(f"{value:.6g}"), "unit": unit, "rel": rel, "source": source}


def _between(fact: str, low: float, high: float, unit: str, source: str) -> dict[str, Any]:
    return {"fact": fact, "between": [float(f"{low:.5g}"), float(f"{high:.5g}")], "unit": unit, "source": source}


def _slug(name: str) -> str:
    return name.lower().replace("/s", "s").replace(" ", "-").replace("/", "")


if __name__ == "__main__":
    for suite in SUITES:
        (CASES / f"{suite}.yaml").write_text(suite_text(suite), encoding="utf-8")
    sys.stdout.write(f"{len(SUITES)} suites, {sum(len(make()) for _, make in SUITES.values())} cases\n")
