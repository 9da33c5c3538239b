"""``estimate_vram``: memory per GPU of a training or inference job, with the bill, the cards it fits and the knobs."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from knowledge.gpus import find_gpu, load_gpu
from knowledge.types import Gpu
from tools.config.parse import ParsedConfig, parse_training_config
from tools.errors import BadValue, MissingValue, nearest
from tools.memory import MemoryBill, estimate, verdict
from tools.memory.knobs import Knob, fewest_gpus_that_fit, largest_savings, nearest_that_fits
from tools.memory.shapes import TARGET_NAMES
from tools.registry import parse_input, tool
from tools.result import Assumption, Column, Fact, SourceRef, Step, Table, ToolResult, Warn
from tools.units import GB
from tools.workload import Job, WorkloadInput, resolve

# The cards that an answer lists, from small to large; any other is judged when it is asked for.
LISTED_GPUS: tuple[str, ...] = (
    "RTX-3060-12GB", "T4", "RTX-4060-Ti-16GB", "RTX-3090", "RTX-4090", "L4", "A10G", "RTX-5090", "A100-SXM4-40GB",
    "RTX-A6000", "L40S", "A100-SXM4-80GB", "H100-SXM5", "RTX-PRO-6000-Blackwell", "H200-SXM", "B200-SXM", "MI300X",
    "B300-SXM",
)  # fmt: skip
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
    )


class EstimateVramResult(ToolResult):
    """Memory per GPU: expected, low and high, by component."""

    peak_per_gpu_bytes: float = Field(json_schema_extra={"unit": "B"})
    low_bytes: float = Field(json_schema_extra={"unit": "B"})
    high_bytes: float = Field(json_schema_extra={"unit": "B"})
    components: dict[str, float] = Field(json_schema_extra={"unit": "B"})
    fits: list[str] = Field(default_factory=list, description="Listed cards that it fits, smallest first.")
    gpu: str | None = None
    gpu_verdict: str | None = Field(default=None, description="fits, borderline or does_not_fit on the given GPU.")


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
        charts=[_chart(job, bill)],
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
    _say(result, job, bill, gpu, fits, savings)
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
                 about=about, basis="offloaded states of all GPUs of a node")
        )  # fmt: skip
    if job.task == "train" and not job.is_adapter:
        facts.append(
            Fact(id="bytes_per_param", name="bytes_per_param", value=bill.states_bytes_per_param, unit="B/param",
                 kind="exact", label="weights, gradients and AdamW states a parameter", about=about,
                 basis=_CONVENTIONS[bill.convention])
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


_CONVENTIONS = {
    "pure": "pure bf16: weights 2 + gradients 2 + moments 4",
    "mixed": "fp32 weights, bf16 compute: weights 4 + gradients 4 + moments 8",
    "master": "ZeRO: bf16 weights 2 + gradients 2 + fp32 master 4 + moments 8",
    "megatron": "Megatron: bf16 weights 2 + fp32 gradients 4 + master 4 + moments 8",
}


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
        basis = _CONVENTIONS[bill.convention]
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


def _say(
    result: EstimateVramResult, job: Job, bill: MemoryBill, gpu: Gpu | None, fits: list[str], savings: list[Knob]
) -> None:
    what = _describe(job)
    need = f"{what} needs [[peak_per_gpu]] per GPU ([[peak_per_gpu|range]])"
    if gpu is not None:
        _judge(result, job, bill, gpu, need)
    elif fits:
        smallest = load_gpu(fits[0])
        _add_card(result, bill, smallest)
        result.verdict = f"{need}: it fits {_an(smallest.id)} with [[headroom]] to spare{_close(bill)}."
    else:
        result.verdict = f"{need}: it fits no single card on the list."
        _add_more_gpus(result, job, load_gpu("H100-SXM5"))
    for index, knob in enumerate(savings, 1):
        saved = bill.peak_bytes - knob.bill.peak_bytes
        words, setting = _worded(result, knob, f"knob_{index}_set")
        result.facts += [
            Fact(id=f"knob_{index}", name="knob", value=knob.bill.peak_bytes, unit="B", low=knob.bill.low_bytes,
                 high=knob.bill.high_bytes, label=_plain(knob), basis=f"{knob.argument}={knob.value}"),
            Fact(id=f"knob_{index}_saving", name="saving", value=saved, unit="B", label=f"saved: {_plain(knob)}",
                 basis="peak_per_gpu now minus then"),
        ]  # fmt: skip
        result.next_steps.append(
            f"{words[0].upper()}{words[1:]}: [[knob_{index}]] per GPU, [[knob_{index}_saving]] less ({setting})."
        )
    result.suggestions = _suggestions(job, gpu)


def _judge(result: EstimateVramResult, job: Job, bill: MemoryBill, gpu: Gpu, need: str) -> None:
    outcome = verdict(bill, gpu)
    result.gpu, result.gpu_verdict = gpu.id, outcome
    _add_card(result, bill, gpu)
    if outcome == "fits":
        result.verdict = f"Yes: {need} and {_an(gpu.id)} has [[usable_memory]] usable, [[headroom]] to spare."
        return
    if outcome == "borderline":
        result.verdict = (
            f"Borderline: {need} and {_an(gpu.id)} has [[usable_memory]] usable. Within a tenth of capacity "
            "no estimate can promise either way."
        )
    else:
        result.verdict = f"No: {need}, more than the [[usable_memory]] usable on {_an(gpu.id)}."
    chain = nearest_that_fits(job, gpu.usable_bytes)
    if chain:
        _add_chain(result, chain, gpu)
    if job.task == "train":
        _add_more_gpus(result, job, gpu)
    larger = [name for name in result.fits if load_gpu(name).usable_bytes > gpu.usable_bytes]
    if larger:
        result.next_steps.append(f"Unchanged, it fits {_an(larger[0])}.")


def _add_card(result: EstimateVramResult, bill: MemoryBill, gpu: Gpu) -> None:
    result.facts += [
        Fact(id="usable_memory", name="usable_memory", value=float(gpu.usable_bytes), unit="B", kind="quoted",
             label=f"usable on {_an(gpu.id)}", basis=gpu.source, as_of=gpu.as_of, about=[gpu.id]),
        Fact(id="headroom", name="headroom", value=gpu.usable_bytes - bill.peak_bytes, unit="B",
             low=gpu.usable_bytes - bill.high_bytes, high=gpu.usable_bytes - bill.low_bytes,
             label=f"left on {_an(gpu.id)}", basis="usable_memory - peak_per_gpu", about=[gpu.id]),
    ]  # fmt: skip


def _add_chain(result: EstimateVramResult, chain: list[Knob], gpu: Gpu) -> None:
    last = chain[-1]
    said = [_worded(result, knob, f"change_{index}")[0] for index, knob in enumerate(chain, 1)]
    result.facts.append(
        Fact(id="nearest_fit", name="nearest_fit", value=last.bill.peak_bytes, unit="B", low=last.bill.low_bytes,
             high=last.bill.high_bytes, label="after: " + ", then ".join(_plain(knob) for knob in chain),
             about=[gpu.id], basis=", ".join(f"{knob.argument}={knob.value}" for knob in chain))
    )  # fmt: skip
    result.next_steps.append(
        f"What does fit {_an(gpu.id)}: {', then '.join(said)}; that needs [[nearest_fit]] per GPU."
    )


def _add_more_gpus(result: EstimateVramResult, job: Job, gpu: Gpu) -> None:
    knob = fewest_gpus_that_fit(job, gpu.usable_bytes)
    if knob is None:
        return
    words, _setting = _worded(result, knob, "gpus_needed")
    result.facts.append(
        Fact(id="sharded", name="sharded", value=knob.bill.peak_bytes, unit="B", low=knob.bill.low_bytes,
             high=knob.bill.high_bytes, label=f"per {gpu.id}: {_plain(knob)}", about=[gpu.id],
             basis=f"{knob.argument}={knob.value}, sharding={knob.job.sharding}")
    )  # fmt: skip
    result.next_steps.append(f"On {gpu.id} cards unchanged: {words}; each then holds [[sharded]].")


def _worded(result: EstimateVramResult, knob: Knob, fact_id: str) -> tuple[str, str]:
    """The knob in words and as a setting, its number a fact of the result."""
    if isinstance(knob.value, bool) or not isinstance(knob.value, int):
        return knob.words, f"{knob.argument}={knob.value}"
    result.facts.append(
        Fact(id=fact_id, name="setting", value=knob.value, kind="exact", label=knob.argument, basis="the change tried")
    )
    return knob.words.format(value=f"[[{fact_id}]]"), f"{knob.argument}=[[{fact_id}]]"


def _plain(knob: Knob) -> str:
    return knob.words.format(value=knob.value)


def _an(gpu_id: str) -> str:
    """The card's id with its article as spoken: an A100, an H100, an RTX 4090, a B200."""
    return f"{'an' if gpu_id[0] in 'AHLRM' else 'a'} {gpu_id}"


def _close(bill: MemoryBill) -> str:
    near = [name for name in LISTED_GPUS if verdict(bill, load_gpu(name)) == "borderline"]
    return f" ({' and '.join(near[:2])}: borderline)" if near else ""


def _describe(job: Job) -> str:
    name = job.arch.id.rpartition("/")[2]
    if job.task == "inference":
        return f"Serving {name} in {job.precision} for [[micro_batch]] sequences of [[seq_len]]"
    words = {"full": "full fine-tuning", "pretrain": "pretraining", "continued_pretrain": "continued pretraining",
             "lora": "LoRA", "qlora": "QLoRA", "dora": "DoRA", "dpo": "DPO", "orpo": "ORPO", "kto": "KTO",
             "grpo": "GRPO", "ppo": "PPO", "reward": "reward-model training"}  # fmt: skip
    where = f" on [[n_gpus]] ({job.sharding})" if job.n_gpus > 1 else ""
    method = words[job.method] + (" on adapters" if job.adapter and job.method in _PREFERENCE else "")
    return f"{name} {method} at [[seq_len]] x [[micro_batch]]{where}"


_PREFERENCE = frozenset({"dpo", "orpo", "kto", "grpo", "ppo", "reward"})


def _suggestions(job: Job, gpu: Gpu | None) -> list[str]:
    name = job.arch.id.rpartition("/")[2]
    asked = [f"What does it cost to train {name} with {job.method} on 100M tokens?"]
    if job.method == "full":
        asked.append(f"What GPU for {name} QLoRA?")
    asked.append(f"What fits at {job.seq_len * 2} tokens?")
    if gpu is None:
        asked.append("Does it fit an RTX 4090?")
    return asked
