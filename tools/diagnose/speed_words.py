"""Facts, tables and sentences of ``check_speed``: seen against expected, where time goes, what to do."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tools.memory import estimate, verdict
from tools.network.inputs import Cluster
from tools.result import Column, Fact, SourceRef, Table, ToolResult
from tools.throughput import SoftwareClass, Throughput, estimate_throughput
from tools.units import Unit
from tools.workload import Job

GAIN = 1.05  # knobs below a twentieth are not worth a line
MAX_KNOBS = 3
LARGEST_BATCH = 32
_SOURCES = {
    "palm": SourceRef(id="palm-2022", title="PaLM, appendix B: model FLOPs utilisation", as_of="2022-10-05",
                      url="https://arxiv.org/abs/2204.02311"),
    "amdahl": SourceRef(id="amdahl-1967", title="Amdahl, Validity of the single processor approach", as_of="1967-04-18",
                        url="https://doi.org/10.1145/1465482.1465560"),
}  # fmt: skip
_PARTS = (
    ("matmul", "matrix products"), ("attention", "attention"), ("memory", "norms, optimizer and other memory traffic"),
    ("bubble", "pipeline idle"), ("communication", "waiting for communication"), ("offload", "host link"),
)  # fmt: skip
_LOOK = (
    "What the model cannot see: a data loader that does not keep up (time a step on random tensors), short or padded "
    "sequences counted as tokens, saving, logging or evaluation in the timed steps, throttling (nvidia-smi -q -d "
    "PERFORMANCE)."
)


_GAPS = (
    "Time a step on random tensors: if it gets faster, the data loader is the cause (more workers, pre-tokenised or "
    "packed data, pinned memory).",
    "Raise the micro-batch until memory is nearly full; small kernels leave gaps between them.",
    "Take .item(), printing and saving out of the step; torch.profiler shows the gaps.",
)


@dataclass(frozen=True, slots=True)
class Findings:
    """What is expected of a job on its cluster; ``before`` is the speed on fewer GPUs."""

    cluster: Cluster
    speed: Throughput
    software: SoftwareClass
    before: Throughput | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What was seen, of one GPU; ``told_mfu`` where the MFU itself was told and the rate follows from it."""

    mfu: float | None
    tokens_per_second: float | None
    told_mfu: bool
    utilisation: float | None


def say_speed(result: ToolResult, found: Findings, seen: Measured) -> str:
    """Write everything about a measured speed; returns below, within, above, or "" where nothing was measured."""
    job, speed = found.cluster.job, found.speed
    about = [job.arch.id, found.cluster.gpu.id]
    low, high = speed.mfu * speed.low_factor, min(1.0, speed.mfu * speed.high_factor)
    result.sources.append(_SOURCES["palm"])
    _add(result, "expected_mfu", speed.mfu * 100, "%", low=low * 100, high=high * 100, about=about,
         label="MFU expected", basis=f"of {speed.peak_flops / 1e12:.4g} TFLOP/s dense")  # fmt: skip
    rate = speed.tokens_per_second_per_gpu
    _add(result, "expected_tokens_per_second_per_gpu", rate, "tokens/s", low=rate * speed.low_factor,
         high=rate * speed.high_factor, about=about, label="speed expected of a GPU")  # fmt: skip
    _add(result, "mfu", speed.mfu, "", low=low, high=high, about=about, label="model FLOPs utilisation, expected")
    judgement = ""
    if seen.mfu is not None and seen.tokens_per_second is not None:
        judgement = "below" if seen.mfu < low else "above" if seen.mfu > high else "within"
        _add(result, "measured_mfu", seen.mfu * 100, "%", kind="quoted" if seen.told_mfu else "exact", about=about,
             label="MFU measured", basis="tokens/s x model FLOPs a token / dense peak")  # fmt: skip
        _add(result, "measured_tokens_per_second_per_gpu", seen.tokens_per_second, "tokens/s", about=about,
             kind="exact" if seen.told_mfu else "quoted", label="speed measured of a GPU")  # fmt: skip
        _add(result, "of_expected", seen.mfu / speed.mfu * 100, "%", label="of what is expected")
    result.tables = [_parts_table(speed)]
    result.verdict = _speed_verdict(found, seen, judgement)
    result.next_steps = [*_small_batch(result, found, judgement), *_knobs(result, found)]
    if seen.utilisation is not None:
        result.verdict = f"{_utilisation_words(result, seen.utilisation)} {result.verdict}"
        result.next_steps = [*_GAPS, *result.next_steps]
    elif judgement == "below":
        result.next_steps.append(_LOOK)
    result.suggestions = ["What would a larger micro-batch give?", "Is the network the bottleneck?", "What is MFU?"]
    return judgement


def _speed_verdict(found: Findings, seen: Measured, judgement: str) -> str:
    job = found.cluster.job
    where = f"{job.n_gpus}× {found.cluster.gpu.id}"
    expected = (
        f"about [[expected_mfu]] ([[expected_mfu|range]]), [[expected_tokens_per_second_per_gpu]] a GPU "
        f"([[expected_tokens_per_second_per_gpu|range]]), for this job on {where}"
    )
    if not judgement:
        return f"I expect an MFU of {expected}."
    told = (
        "[[measured_mfu]] MFU"
        if seen.told_mfu
        else "[[measured_tokens_per_second_per_gpu]] a GPU ([[measured_mfu]] MFU)"
    )
    opening = {
        "within": f"Yes, {told} is normal here: I expect",
        "below": f"No, {told} is low here, [[of_expected]] of what to expect:",
        "above": f"{told[0].upper()}{told[1:]} is better than I expect here, which is",
    }[judgement]
    closing = "" if judgement != "above" else (
        ". Check that it counts the dense peak (not the one with sparsity), no recomputation (that is HFU), no padding"
    )  # fmt: skip
    return f"{opening} {expected}{closing}."


def _parts_table(speed: Throughput) -> Table:
    total = speed.parts.total
    rows: list[list[float | int | str | bool | None]] = [
        [words, getattr(speed.parts, name) / total * 100]
        for name, words in _PARTS
        if getattr(speed.parts, name) >= 0.005 * total
    ]
    columns = [Column(key="part", label="part"), Column(key="share", label="of a step", unit="%")]
    return Table(id="step", title="Where a step's time should go", columns=columns, rows=rows)


def _knobs(result: ToolResult, found: Findings) -> list[str]:
    """What would raise the modelled speed and still fits, largest first."""
    job, gpu, fabric = found.cluster.job, found.cluster.gpu, found.cluster.fabric
    gains = []
    for words, changed in _changes(job):
        if verdict(estimate(changed), gpu) != "fits":
            continue
        gain = (
            estimate_throughput(changed, gpu, fabric, found.software).tokens_per_second_per_gpu
            / found.speed.tokens_per_second_per_gpu
        )
        if gain >= GAIN:
            gains.append((gain, words))
    steps = []
    for index, (gain, words) in enumerate(sorted(gains, reverse=True)[:MAX_KNOBS], 1):
        _add(result, f"gain_{index}", gain, "x", label=words)
        steps.append(f"{words}: [[gain_{index}]] the speed, and it fits.")
    return steps


def _small_batch(result: ToolResult, found: Findings, judgement: str) -> list[str]:
    """What one sample a pass would give, where the batch is our assumption and more than was seen."""
    job = found.cluster.job
    assumed = any(item.name == "micro_batch" for item in found.cluster.assumptions)
    if judgement != "below" or not assumed or job.micro_batch == 1:
        return []
    small = estimate_throughput(
        replace(job, micro_batch=1), found.cluster.gpu, found.cluster.fabric, found.software
    ).tokens_per_second_per_gpu
    _add(result, "small_batch_rate", small, "tokens/s", label="speed expected of a GPU at micro-batch 1")
    return [f"That is at micro-batch {job.micro_batch}; at micro-batch 1 I expect [[small_batch_rate]] a GPU."]


def _changes(job: Job) -> list[tuple[str, Job]]:
    changes = []
    if job.micro_batch * 2 <= LARGEST_BATCH:
        changes.append((f"Micro-batch {job.micro_batch * 2} (micro_batch={job.micro_batch * 2})",
                        replace(job, micro_batch=job.micro_batch * 2)))  # fmt: skip
    if job.checkpointing == "full":
        changes.append(
            ("No activation checkpointing (activation_checkpointing=none)", replace(job, checkpointing="none"))
        )
    if job.attention == "eager":
        changes.append(("Flash attention (attention=flash)", replace(job, attention="flash")))
    if job.grad_accum == 1 and job.n_gpus > 1:
        changes.append(("Accumulate gradients over 4 passes (grad_accum=4)", replace(job, grad_accum=4)))
    if job.sharding == "fsdp" and job.n_gpus > 8:
        changes.append(("Shard inside a machine only (sharding=hsdp)", replace(job, sharding="hsdp")))
    return changes


def say_utilisation(result: ToolResult, share: float) -> None:
    """Sentences, in place, on a GPU utilisation told alone; ``share`` is 0 to 1, nvidia-smi's percentage over 100,
    which says that kernels ran and not how fast.
    """
    words = _utilisation_words(result, share)
    result.verdict = words if share < 0.8 else f"Utilisation is not speed. {words}"
    result.next_steps = [
        *_GAPS,
        "With the model, the card and tokens/s I can say what speed to expect.",
    ]
    result.suggestions = ["2,300 tokens/s a GPU on Llama-3.1-8B with 8 H100, is that good?"]


def _utilisation_words(result: ToolResult, share: float) -> str:
    _add(result, "gpu_utilisation", share * 100, "%", kind="quoted", label="GPU utilisation shown")
    _add(result, "idle", (1 - share) * 100, "%", kind="exact", label="of the time without any kernel")
    if share >= 0.8 or share == 0:
        return (
            "A GPU utilisation of [[gpu_utilisation]] only says how often any kernel ran, not how well it used the "
            "card: tokens/s or MFU decide."
        )
    _add(result, "filled_gain", 1 / share, "x", kind="exact", label="speed if the gaps were filled")
    return (
        "At [[gpu_utilisation]] utilisation no kernel runs for [[idle]] of the time: the cards wait for data, for the "
        "host or for each other, and filling the gaps would give up to [[filled_gain]] the speed."
    )


def say_scaling(result: ToolResult, speedup: float, fewer: int, more: int, expected: Findings | None) -> str:
    """Write everything about a measured speed-up; returns below, within, above, or "" where nothing is expected."""
    ratio = more / fewer
    efficiency = speedup / ratio
    fixed = max(0.0, (1 / speedup - 1 / ratio) / (1 - 1 / ratio))
    result.sources.append(_SOURCES["amdahl"])
    _add(result, "measured_scaling_efficiency", efficiency * 100, "%", kind="exact", label="efficiency measured",
         basis=f"{speedup:g} / ({more} / {fewer})")  # fmt: skip
    _add(result, "speedup", speedup, "x", kind="quoted", label="speed-up measured")
    _add(result, "worth", fewer * speedup, "", kind="exact", label="GPUs' worth of speed",
         basis=f"{fewer} x {speedup:g}")  # fmt: skip
    _add(result, "fixed_part", fixed * 100, "%", kind="exact", label=f"of the step on {fewer} GPUs that stays",
         basis="Amdahl: (1/speed-up - 1/ratio) / (1 - 1/ratio)")  # fmt: skip
    said = (
        f"{more} GPUs at [[speedup]] the speed of {fewer} is a scaling efficiency of "
        "[[measured_scaling_efficiency]]: they do the work of [[worth]] GPUs"
    )
    judgement = ""
    if expected is not None and expected.before is not None:
        job = expected.cluster.job
        model = expected.speed.tokens_per_second / expected.before.tokens_per_second / ratio
        spread = expected.speed.high_factor**0.5
        low, high = model / spread, min(1.0, model * spread)
        _add(result, "expected_scaling_efficiency", model * 100, "%", low=low * 100, high=high * 100,
             label="scaling efficiency expected", about=[job.arch.id, expected.cluster.gpu.id])  # fmt: skip
        judgement = "below" if efficiency < low else "above" if efficiency > high else "within"
        words = {"below": "less than", "within": "about what", "above": "more than"}[judgement]
        said += (
            f", {words} I expect here ([[expected_scaling_efficiency]], [[expected_scaling_efficiency|range]], over "
            f"{expected.cluster.fabric.inter_name or expected.cluster.fabric.intra_name})"
        )
        result.tables = [_parts_table(expected.speed)]
    result.verdict = f"{said}. [[fixed_part]] of the step on {fewer} GPUs does not get shorter."
    result.next_steps = _scaling_causes(fewer, more)
    result.suggestions = ["Is 100GbE enough for 2 nodes of 8 H100 training 8B?", "Which layout is fastest on 16 H100?"]
    return judgement


def _scaling_causes(fewer: int, more: int) -> list[str]:
    """Likely causes in the order in which to look."""
    crosses = fewer <= 8 < more
    network = (
        f"From {fewer} to {more} GPUs the traffic leaves the machine: run nccl-tests (all_reduce_perf -b 8M -e 1G) "
        "over both; a bus bandwidth far below the port's rate is a wrong interface, no RDMA, or a link too slow."
        if crosses
        else "Communication: run nccl-tests (all_reduce_perf -b 8M -e 1G) on both counts and compare bus bandwidths; "
        "on cards without NVLink bytes cross PCIe or host memory."
    )
    return [
        network,
        "The same global batch on more GPUs leaves each one less to do: keep the batch of each GPU, or compare "
        "tokens/s instead of seconds a step.",
        "What does not split: data loading from one disk, tokenising, logging, evaluation and saving on rank 0. Time a "
        "step on random tensors without them.",
        "One slow GPU or machine paces all: compare step times by rank, clocks and temperatures (nvidia-smi -q).",
        "Sharding over all GPUs (FSDP, ZeRO-3) sends weights over the slow link each pass: shard inside a machine "
        "(hsdp) or accumulate gradients. With model, cards and network, check_interconnect says what to expect.",
    ]


def _add(result: ToolResult, name: str, value: float, unit: Unit, **more: object) -> None:
    result.facts.append(Fact(id=name, name=name, value=value, unit=unit, **more))  # type: ignore[arg-type]
