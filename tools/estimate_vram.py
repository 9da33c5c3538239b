"""``estimate_vram``: memory per GPU of a training or inference job, with the bill, the cards it fits and the knobs."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from knowledge.gpus import find_gpu, load_gpu
from tools.config.flatten import MAX_CHARS
from tools.config.handlers import ParsedConfig
from tools.config.parse import parse_training_config
from tools.errors import BadValue, MissingValue, nearest
from tools.memory import MemoryBill, estimate, verdict
from tools.memory.knobs import largest_savings
from tools.memory.shapes import TARGET_NAMES
from tools.memory.states import GPUS_PER_NODE
from tools.registry import parse_input, tool
from tools.result import Assumption, Column, Fact, SourceRef, Step, Table, Warn
from tools.units import GB
from tools.vram_words import CONVENTIONS, LISTED_GPUS, EstimateVramResult, say
from tools.workload import Job, WorkloadInput, resolve

_LABELS = {
    "weights": "weights", "adapters": "adapters", "reference_model": "reference and other frozen models",
    "gradients": "gradients", "optimizer_states": "optimizer states", "activations": "activations",
    "logits": "logits and loss", "kv_cache": "key-value cache", "gather_buffers": "gathered weights and buckets",
    "weight_casts": "bf16 copies of weights (autocast)", "optimizer_temporary": "optimizer's temporary",
    "overhead": "CUDA context, allocator reserve", "dequantised": "dequantised block",
}  # fmt: skip
_PHASES = {
    "forward": "at the end of the forward pass", "loss": "in the loss", "backward": "at the start of backward",
    "backward end": "at the end of backward", "step": "at the optimizer step", "decode": "while decoding",
    "generation": "while generating", "load": "while loading",
}  # fmt: skip
# DeepSpeed's own estimators of host memory multiply the states by this for buffers (additional_buffer_factor, 1.5).
HOST_BUFFERS = 1.5
LOADED_BYTES = 4.0  # a weight as read before it is split, fp32 where no dtype is named
_SOURCES = (
    SourceRef(id="zero", title="ZeRO: memory of mixed-precision training and its partitioning (Rajbhandari et al.)",
              as_of="2020-05-13", url="https://arxiv.org/abs/1910.02054"),
    SourceRef(id="activation-recomputation", title="Reducing activation recomputation in large transformer models",
              as_of="2022-05-10", url="https://arxiv.org/abs/2205.05198"),
    SourceRef(id="qlora", title="QLoRA: 4-bit NormalFloat and double quantisation (Dettmers et al.)",
              as_of="2023-05-23", url="https://arxiv.org/abs/2305.14314"),
)  # fmt: skip


class EstimateVramInput(WorkloadInput):
    """A workload, optionally a GPU to judge it on, or a pasted training configuration instead."""

    model: str | dict[str, Any] | None = Field(  # type: ignore[assignment]
        default=None,
        description='Known name or hub id (llama-3.1-8b), a bare size (70B), or parameters: {"params_b": 7, ...}.',
    )
    gpu: str | None = Field(default=None, description="Judge the fit on this card, e.g. 'H100' or 'RTX 4090'.")
    training_config: str | dict[str, Any] | None = Field(
        default=None,
        description="A pasted axolotl, LLaMA-Factory, torchtune, TRL/HF, accelerate, DeepSpeed or Megatron config.",
        json_schema_extra={"maxLength": MAX_CHARS},
    )


@tool(
    "estimate_vram",
    examples=[
        {"model": "llama-3.3-70b", "method": "qlora", "seq_len": 2048},
        {"model": "llama-3.1-8b", "method": "full", "n_gpus": 8, "sharding": "fsdp", "gpu": "H100"},
    ],
)
def estimate_vram(given: EstimateVramInput) -> EstimateVramResult:
    """Memory per GPU of a training or inference job: expected, low, high, the bill, and which cards it fits.

    The peak is the largest phase of a step (forward end, loss, backward, optimizer step), each the sum of weights,
    gradients, optimizer states, kept activations, logits and gathered or dequantised blocks in the dtypes of the
    framework's recipe, plus allocator reserve and CUDA context. Not modelled: leaks, and what else runs on the card.
    """
    parsed = parse_training_config(given.training_config) if given.training_config is not None else None
    job = _job(given, parsed)
    bill = estimate(job)
    gpu_match = find_gpu(given.gpu) if given.gpu else None
    gpu = gpu_match.value if gpu_match else None
    fits = [name for name in LISTED_GPUS if verdict(bill, load_gpu(name)) == "fits"]
    savings = largest_savings(job, bill)
    about = [job.arch.id]
    facts = _facts(job, bill, about)
    result = EstimateVramResult(
        facts=facts,
        assumptions=list(job.assumptions),
        steps=_steps(job, bill),
        sources=list(_SOURCES),
        warnings=_warnings(job, bill),
        tables=[_bill_table(bill), _gpu_table(bill)],
        charts=[_chart(job, bill), _cards_chart(job, bill)],
        peak_per_gpu_bytes=bill.peak_bytes,
        low_bytes=bill.low_bytes,
        high_bytes=bill.high_bytes,
        components=bill.components,
        fits=fits,
    )
    if parsed is not None:
        _add_config(result, parsed)
    if gpu_match and gpu_match.note and gpu:
        result.assumptions.append(Assumption(name="gpu", value=gpu.id, why=gpu_match.note, argument="gpu"))
    say(result, job, bill, gpu, fits, savings)
    return result


def _job(given: EstimateVramInput, parsed: ParsedConfig | None) -> Job:
    fields = given.model_dump(exclude_unset=True, exclude_none=True, exclude={"gpu", "training_config"})
    fields = (parsed.arguments if parsed else {}) | fields  # what is asked beside the configuration wins
    if "model" not in fields:
        raise MissingValue(
            "missing_argument",
            "The configuration names no model." if parsed else "'model' is needed.",
            field="model",
            hint="A name, a size such as 7B, or params_b.",
        )
    parsed_input = parse_input(WorkloadInput, fields)
    assert isinstance(parsed_input, WorkloadInput)
    _check_targets(parsed_input)
    return resolve(parsed_input)


def _check_targets(given: WorkloadInput) -> None:
    asked = given.lora_targets
    names = asked.replace(",", " ").split() if isinstance(asked, str) else asked or []
    for name in names:
        if name.strip().lower() not in TARGET_NAMES:
            raise BadValue(
                "unknown_target",
                f"{name[:40]!r} is not a linear layer that LoRA can adapt here.",
                field="lora_targets",
                hint="E.g. all-linear, attention, or q_proj v_proj.",
                candidates=nearest(name[:40].lower(), TARGET_NAMES) or ["all-linear", "attention"],
            )


def _add_config(result: EstimateVramResult, parsed: ParsedConfig) -> None:
    """What became of each setting: read, ignored, not understood."""
    rows: list[list[float | int | str | bool | None]] = [
        [setting, value, argument] for setting, value, argument in parsed.read
    ]
    result.tables.append(
        Table(
            id="config",
            title=f"Read from the configuration ({parsed.dialect})",
            columns=[
                Column(key="setting", label="setting"),
                Column(key="value", label="value"),
                Column(key="argument", label="taken as"),
            ],
            rows=rows,
        )
    )
    if parsed.not_understood:
        names = ", ".join(parsed.not_understood[:12])
        result.warnings.append(Warn(code="config_not_understood", text=f"Settings not understood: {names}."))
    if parsed.ignored:
        names = ", ".join(parsed.ignored[:12]) + (" and others" if len(parsed.ignored) > 12 else "")
        result.warnings.append(Warn(code="config_ignored", text=f"Settings without bearing on memory: {names}."))


def _facts(job: Job, bill: MemoryBill, about: list[str]) -> list[Fact]:
    peak = Fact(
        id="peak_per_gpu", name="peak_per_gpu", value=bill.peak_bytes, unit="B", low=bill.low_bytes,
        high=bill.high_bytes, label="memory needed per GPU", about=about,
        basis="largest phase of the step + allocator reserve + CUDA context",
    )  # fmt: skip
    facts = [
        peak,
        Fact(id="seq_len", name="seq_len", value=job.seq_len, unit="tokens", kind="exact", label="sequence length"),
        Fact(id="micro_batch", name="micro_batch", value=job.micro_batch, kind="exact", label="micro-batch per GPU"),
        Fact(id="n_gpus", name="n_gpus", value=job.n_gpus, unit="GPUs", kind="exact", label="GPUs"),
    ]
    for name, value in bill.components.items():
        facts.append(
            Fact(id=name, name=name, value=value, unit="B", label=_LABELS.get(name, name), about=about,
                 basis=f"part of peak_per_gpu, {_PHASES[bill.phase]}")
        )  # fmt: skip
    if bill.phase in ("step", "backward", "backward end"):
        facts += _earlier(bill, about)
    facts.append(
        Fact(id="live", name="live", value=bill.live_bytes, unit="B", low=bill.live_low, high=bill.live_high,
             label="live tensors (torch max_memory_allocated)", about=about,
             basis=f"largest phase: {_PHASES[bill.phase]}")
    )  # fmt: skip
    if job.n_gpus > 1:
        facts.append(
            Fact(id="total_all_gpus", name="total_all_gpus", value=bill.peak_bytes * job.n_gpus, unit="B",
                 label="all GPUs together", about=about, basis=f"{job.n_gpus} x peak_per_gpu")
        )  # fmt: skip
    if bill.host_ram_bytes:
        facts.append(
            Fact(id="host_ram", name="host_ram", value=bill.host_ram_bytes, unit="B", label="host memory needed",
                 low=bill.host_ram_bytes, high=bill.host_ram_bytes * HOST_BUFFERS, about=about,
                 basis="offloaded states of all GPUs of a node; above that pinned buffers and loading, up to half more")
        )  # fmt: skip
        ranks = min(job.n_gpus, GPUS_PER_NODE)
        if ranks > 1:
            loading = LOADED_BYTES * job.arch.total_params * ranks
            facts.append(
                Fact(id="host_ram_loading", name="host_ram_loading", value=loading, unit="B", about=about,
                     label="host memory while every process of a machine reads whole fp32 weights",
                     low=loading, high=loading * HOST_BUFFERS, basis=f"{ranks} processes x 4 B a weight; buffers above "
                     "that, up to half more (DeepSpeed's estimator); none on the meta device or under zero.Init")
            )  # fmt: skip
    if job.task == "train" and not job.is_adapter:
        facts.append(
            Fact(id="bytes_per_param", name="bytes_per_param", value=bill.states_bytes_per_param, unit="B/param",
                 kind="exact", label="weights, gradients and optimizer states a parameter", about=about,
                 basis=CONVENTIONS[bill.convention])
        )  # fmt: skip
    return facts


def _earlier(bill: MemoryBill, about: list[str]) -> list[Fact]:
    """Activations and loss at their own height, where the peak falls into another phase and does not hold them."""
    found = []
    for name, value in bill.heights.items():
        if value > bill.components.get(name, 0.0):
            found.append(
                Fact(id=f"{name}_height", name=f"{name}_height", value=value, unit="B", about=about,
                     label=f"{_LABELS[name]} at their height, earlier in the step", basis="gone when the peak comes")
            )  # fmt: skip
    return found


def _steps(job: Job, bill: MemoryBill) -> list[Step]:
    steps = [
        Step(symbol=f"live bytes, {_PHASES[name]}", expression="sum of the tensors alive then", value=value, unit="B")
        for name, value in bill.phases.items()
    ]
    steps.append(
        Step(symbol="peak_per_gpu", expression="largest of these + allocator reserve + CUDA context",
             value=bill.peak_bytes, unit="B")
    )  # fmt: skip
    if job.task == "train" and not job.is_adapter:
        basis = CONVENTIONS[bill.convention] + ("" if job.optimizer == "adamw" else f" (AdamW; here {job.optimizer})")
        steps.append(
            Step(symbol="bytes per parameter",
                 expression=f"{basis}. Other recipes: pure bf16 8 (+2 at the step), fp32 weights with bf16 compute "
                 "16 (+4), ZeRO 16 cut by stage, Megatron 6 + 12/DP",
                 value=bill.states_bytes_per_param, unit="B/param")
        )  # fmt: skip
    return steps


def _warnings(job: Job, bill: MemoryBill) -> list[Warn]:
    found = [Warn(code="note", text=note) for note in bill.notes]
    if not job.arch.shape_known:
        found.append(
            Warn(code="shape_unknown",
                 text=f"The layer shapes of {job.arch.id} are not published: activations are a rough figure.")
        )  # fmt: skip
    return found


def _bill_table(bill: MemoryBill) -> Table:
    rows: list[list[float | int | str | bool | None]] = [
        [_LABELS.get(name, name), value] for name, value in bill.components.items() if value
    ]
    rows.append(["total", bill.peak_bytes])
    return Table(
        id="bill",
        title=f"Memory per GPU {_PHASES[bill.phase]}",
        columns=[Column(key="part", label="part"), Column(key="bytes", label="per GPU", unit="B")],
        rows=rows,
    )


def _gpu_table(bill: MemoryBill) -> Table:
    rows: list[list[float | int | str | bool | None]] = []
    for name in LISTED_GPUS:
        gpu = load_gpu(name)
        rows.append([gpu.id, gpu.usable_bytes, gpu.usable_bytes - bill.peak_bytes, _WORDS[verdict(bill, gpu)]])
    return Table(
        id="gpus",
        title="On one card each",
        columns=[
            Column(key="gpu", label="GPU"),
            Column(key="usable", label="usable", unit="B"),
            Column(key="headroom", label="headroom", unit="B"),
            Column(key="verdict", label="verdict"),
        ],
        rows=rows,
    )


_WORDS = {"fits": "fits", "borderline": "borderline", "does_not_fit": "does not fit"}


def _chart(job: Job, bill: MemoryBill) -> dict[str, Any]:
    values = [
        {"part": _LABELS.get(name, name), "GB": round(value / GB, 3)}
        for name, value in bill.components.items()
        if value
    ]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": f"Memory per GPU: {job.arch.id}, {job.method if job.task == 'train' else 'inference'}",
        "data": {"values": values},
        "mark": "bar",
        "encoding": {
            "y": {"field": "part", "type": "nominal", "sort": None, "title": None},
            "x": {"field": "GB", "type": "quantitative", "title": "GB per GPU"},
            "tooltip": [{"field": "part"}, {"field": "GB"}],
        },
    }


def _cards_chart(job: Job, bill: MemoryBill) -> dict[str, Any]:
    """The bill stacked beside each card's usable memory, for the cards nearest to it."""
    cards = sorted((load_gpu(name) for name in LISTED_GPUS), key=lambda card: card.usable_bytes)
    above = sum(card.usable_bytes < bill.peak_bytes for card in cards)
    near = cards[max(0, above - 4) : above + 4]
    parts = [(_LABELS.get(name, name), round(value / GB, 3)) for name, value in bill.components.items() if value]
    stacked = [
        {"card": card.id, "part": part, "GB": gb, "order": number, "usable": round(card.usable_bytes / GB, 1)}
        for card in near
        for number, (part, gb) in enumerate(parts)
    ]
    y = {"field": "card", "type": "nominal", "sort": None, "title": None}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": f"Against usable memory (line): {job.arch.id}",
        "data": {"values": stacked},
        "layer": [
            {
                "mark": "bar",
                "encoding": {
                    "y": y,
                    "x": {"field": "GB", "type": "quantitative", "title": "GB per GPU", "stack": "zero"},
                    "color": {"field": "part", "type": "nominal", "title": None, "sort": None},
                    "order": {"field": "order"},
                    "tooltip": [{"field": "part"}, {"field": "GB"}],
                },
            },
            {
                "mark": {"type": "tick", "thickness": 3, "size": 20, "color": "#c2417c"},
                "encoding": {
                    "y": y,
                    "x": {"field": "usable", "type": "quantitative", "aggregate": "max"},
                    "tooltip": [{"field": "card"}, {"field": "usable", "aggregate": "max", "title": "usable GB"}],
                },
            },
        ],
    }
