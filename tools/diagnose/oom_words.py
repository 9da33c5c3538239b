"""The answer of ``diagnose_oom`` in facts, tables and sentences."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from knowledge.types import Gpu
from tools.diagnose.causes import Cause, ref
from tools.diagnose.identify import Match
from tools.diagnose.patterns import Report
from tools.memory import MemoryBill, estimate
from tools.result import Column, Fact, SourceRef, Step, Table, ToolResult, Warn
from tools.workload import Job

if TYPE_CHECKING:
    from tools.diagnose.diagnose_oom import DiagnoseOomResult

SOURCES = (
    SourceRef(id="pytorch-memory", title="PyTorch CUDA memory management", as_of="2026-11-30",
              url="https://pytorch.org/docs/stable/notes/cuda.html#memory-management"),
)  # fmt: skip
GIB = 2.0**30
SMALL = 250_000_000  # elements; a gigabyte takes a second on a slow link
EVAL_BATCH = 8  # per device, the default of Transformers' Trainer
UNEXPLAINED = 1.35  # held over modelled: beyond this the run is not the one described


def write(
    result: DiagnoseOomResult,
    report: Report,
    cause: Cause,
    job: Job | None,
    bill: MemoryBill | None,
    gpu: Gpu | None,
    match: Match | None,
    host_ram_gb: float | None,
) -> None:
    """Fill the result, in place, with facts, tables and sentences. ``job`` and ``bill`` are None without a model,
    ``match`` where no tensor has the size asked for; ``host_ram_gb`` is the machine's memory in GB of 1e9 bytes, None
    if not told.
    """
    result.sources += SOURCES
    result.facts += _figures(report)
    if bill is not None:
        result.facts += _modelled(bill, cause)
        result.tables.append(_bill(bill, report))
    said = _said(report)
    if said is not None:
        result.tables.insert(0, said)
    if match is not None:
        result.facts.append(_fact("tensor_bytes", match.nbytes, f"{match.what}: {match.formula}", kind="exact"))
        result.steps.append(
            Step(symbol="asked for", expression=f"{match.what} = {match.formula}", value=match.nbytes, unit="B")
        )
    result.verdict = _verdict(report, cause, match)
    result.next_steps.append(cause.first)
    start = 0 if cause.name in ("fragmentation", "other_process") else 1
    for place, knob in enumerate(cause.knobs[start:], start + 1):
        result.next_steps.append(
            f"Then {knob.said} ({knob.argument}={knob.value}): [[knob_{place}]] per GPU, [[knob_{place}_saving]] less."
        )
    result.next_steps += _extra(report, cause, job, bill, match)
    if report.kind == "gpu" and job is None and cause.name in ("shortage", "fragmentation"):
        result.next_steps += _USUAL
    if host_ram_gb is not None and bill is not None and bill.host_ram_bytes:
        result.facts.append(_fact("host_ram_given", host_ram_gb * 1e9, "host memory of the machine", kind="exact"))
        result.facts.append(_fact("host_ram_needed", bill.host_ram_bytes, "host memory that offloading needs"))
        result.next_steps.append(
            "Offloading needs [[host_ram_needed]] of host memory; the machine has [[host_ram_given]]."
        )
    if report.kind == "host" and job is not None:
        _host(result, job, report.place)
    if report.kind == "described" and job is not None:
        _moment(result, job, report.place)
    result.warnings += _warnings(report, bill)

    if job is None and report.kind == "gpu":
        result.suggestions.append("It was llama-3.1-8b QLoRA at 4096 tokens, batch 2")
    result.suggestions += ["What fits on this card?", "Would two of these cards help?"]


def _fact(name: str, value: float, label: str, **more: Any) -> Fact:
    more.setdefault("kind", "quoted")
    return Fact(id=name, name=name, value=value, unit=more.pop("unit", "B"), label=label, **more)


def _figures(report: Report) -> list[Fact]:
    named = (
        ("tried", report.tried, "asked for"), ("capacity", report.capacity, "the card's capacity"),
        ("free", report.free, "free then"), ("process", report.process, "held by this process"),
        ("others", report.others, "held by other processes"), ("allocated", report.allocated, "live tensors"),
        ("reserved_unallocated", report.reserved_unallocated, "reserved by PyTorch but unused"),
        ("private_pools", report.private_pools, "in CUDA-graph pools"),
        ("cache_needed", report.cache_needed, "key-value cache needed"),
        ("cache_available", report.cache_available, "key-value cache available"),
        ("host_resident", report.host_resident, "host memory of the killed process"),
    )  # fmt: skip
    facts = [_fact(name, value, label, basis="the message") for name, value, label in named if value is not None]
    if report.tried is not None and report.free is not None:
        short = report.tried - report.free
        if short > 0:
            facts.append(_fact("short_by", short, "short by", kind="exact", basis="asked for - free"))
    for name, count, label in (
        ("tokens_stored", report.tokens_stored, "tokens that the cache holds"),
        ("tokens_wanted", report.tokens_wanted, "tokens of a full-length request"),
    ):
        if count is not None:
            facts.append(_fact(name, count, label, unit="tokens", basis="the message"))
    if report.stalled_seconds:
        facts.append(_fact("stalled", report.stalled_seconds, "waited", unit="s", basis="the message"))
    if report.stalled_elements:
        facts.append(_fact("stalled_bytes", 4.0 * report.stalled_elements, "of the collective, at most",
                           basis="elements x 4 B"))  # fmt: skip
    if report.cache_needed and report.cache_available and report.tokens_wanted:
        fits = int(report.tokens_wanted * report.cache_available / report.cache_needed)
        facts.append(_fact("tokens_stored", fits, "tokens that the cache holds", unit="tokens", kind="modelled",
                           basis="full length x available / needed"))  # fmt: skip
    return facts


def _modelled(bill: MemoryBill, cause: Cause) -> list[Fact]:
    facts = [
        _fact("modelled_peak", bill.peak_bytes, "modelled need per GPU", kind="modelled", low=bill.low_bytes,
              high=bill.high_bytes, basis="memory model"),
        _fact("modelled_live", bill.live_bytes, "modelled live tensors at the peak", kind="modelled",
              low=bill.live_low, high=bill.live_high, basis="memory model"),
    ]  # fmt: skip
    for place, knob in enumerate(cause.knobs, 1):
        facts += [
            _fact(f"knob_{place}", knob.bill.peak_bytes, f"after: {knob.said}", kind="modelled",
                  low=knob.bill.low_bytes, high=knob.bill.high_bytes, basis=f"{knob.argument}={knob.value}"),
            _fact(f"knob_{place}_saving", bill.peak_bytes - knob.bill.peak_bytes, f"saved: {knob.said}",
                  kind="modelled", basis="modelled_peak before and after"),
        ]  # fmt: skip
    return facts


# Without a workload nothing can be computed; what each knob takes off, largest first, with the exact setting.
_USUAL = (
    "Largest first, where they apply: QLoRA (load_in_4bit) holds the base in a quarter of 16 bits and no optimizer "
    "states; LoRA leaves 2 of 16 bytes a weight.",
    "Full training: optim=adamw_8bit takes 6 of 16 bytes a weight off; FSDP or ZeRO-3 divides all 16 by the GPUs.",
    "per_device_train_batch_size=1 with accumulation, gradient_checkpointing=True: activations to a fraction.",
    "Vocabularies above 100,000: a fused loss (use_liger_kernel=True) keeps logits from being whole. Then shorten.",
    "Name model, method, length and batch, and each is computed.",
)
_MEANING = (
    ("tried", "asked for", "one piece, now"),
    ("free", "free on the card", "held by nobody"),
    ("allocated", "allocated by PyTorch", "live tensors: weights, gradients, states, activations"),
    ("reserved_unallocated", "reserved, unused", "kept in pieces by the allocator; expandable segments join them"),
    ("others", "other processes", "not this job: see nvidia-smi"),
    ("capacity", "the card", "as CUDA sees it"),
)  # fmt: skip
_ENOUGH_FIGURES = 3


def _said(report: Report) -> Table | None:
    """The message's own figures with what each means, in its own unit."""
    if report.kind != "gpu":
        return None
    rows: list[list[float | int | str | bool | None]] = []
    for name, words, meaning in _MEANING:
        value = getattr(report, name)
        if value is not None and (name != "others" or value > 0.5 * GIB):
            rows.append([words, f"{value / GIB:.2f} GiB", meaning])
    if report.process and report.allocated is not None:
        rest = report.process - report.allocated - (report.reserved_unallocated or 0.0)
        if rest > 0.05 * GIB:
            rows.insert(
                -1, ["CUDA context and libraries", f"{rest / GIB:.2f} GiB", "not PyTorch's: kernels, NCCL, cuBLAS"]
            )
    if len(rows) < _ENOUGH_FIGURES:
        return None
    columns = [Column(key="what", label="the message"), Column(key="bytes", label="bytes"),
               Column(key="meaning", label="what it is")]  # fmt: skip
    return Table(id="message", title="What the message says", columns=columns, rows=rows)


def _bill(bill: MemoryBill, report: Report) -> Table:
    rows: list[list[float | int | str | bool | None]] = [
        [name.replace("_", " "), value] for name, value in bill.components.items() if value
    ]
    rows.append(["modelled need", bill.peak_bytes])
    if report.capacity is not None:
        rows.append(["the card's capacity", report.capacity])
    return Table(
        id="filled",
        title="What fills the card, as modelled",
        columns=[Column(key="part", label="part"), Column(key="bytes", label="per GPU", unit="B")],
        rows=rows,
    )


def _verdict(report: Report, cause: Cause, match: Match | None) -> str:
    text = cause.words[0].upper() + cause.words[1:]
    if report.kind == "gpu" and cause.name == "shortage":
        asked = f"It asked for {ref('tried', report.tried)}" if report.tried is not None else "It asked for more"
        if match is not None:
            asked += f", exactly {match.what} ({match.formula})"
        if report.free is not None:
            asked += f", with {ref('free', report.free)} free"
        return f"GPU memory ended: {cause.words}. {asked}."
    if match is not None:
        text += f"; the piece was {match.what} ({match.formula})"
    return f"{text}."


def _extra(report: Report, cause: Cause, job: Job | None, bill: MemoryBill | None, match: Match | None) -> list[str]:
    extra = []
    if report.stalled_elements and report.stalled_elements < SMALL and report.stalled_seconds:
        extra.append(
            "It waited [[stalled]] for [[stalled_bytes]], which any link moves in under a second: a stall, not a slow "
            "network; a longer timeout helps only where one rank saves or evaluates that long."
        )
    if report.cache_flushes:
        extra.append("The allocator was flushing its cache before: a second sign of memory in pieces.")
    if report.kind == "kv_cache" and (report.tokens_stored or report.cache_needed):
        extra.append("Set max_model_len to [[tokens_stored]] or below.")
    if report.place == "eval" and cause.name == "shortage":
        extra.append("It fell in evaluation: logits of the eval batch are kept whole; per_device_eval_batch_size=1 and "
                     "prediction_loss_only=True.")  # fmt: skip
    if match is not None and match.family == "loss":
        extra.append("The weights are not the problem: the logits of one micro-batch are.")
    if bill is not None and report.allocated is not None and report.allocated > UNEXPLAINED * bill.live_bytes:
        extra.append(
            "The process held [[allocated|GiB]] live where this workload should hold [[modelled_live|GiB]]: check that "
            "weights load in the precision named, that checkpointing is really on, and the true longest batch."
        )
    if job is not None and report.ranks > 1:
        extra.append("Several ranks fell at once: the layout is short everywhere, not on one card.")
    return extra


def _host(result: ToolResult, job: Job, moment: str | None) -> None:
    """What host memory this job can take: weights loaded by every rank, offloaded states, a gathered model."""
    ranks = min(job.n_gpus, 8)
    weights = 4.0 * job.arch.total_params
    if moment != "save":
        result.facts.append(
            _fact("host_ram_loading", weights * ranks, "host memory when every rank of a machine loads fp32 weights",
                  kind="modelled", basis=f"{ranks} ranks x 4 B a weight")
        )  # fmt: skip
        result.next_steps.append(
            "Loading fp32 weights on every rank takes [[host_ram_loading]]: load bf16, on one rank."
        )
    offloaded = estimate(job if job.offload != "none" else replace(job, offload="optimizer"))
    if offloaded.host_ram_bytes and moment != "load":
        result.facts.append(
            _fact("host_ram_offload", offloaded.host_ram_bytes, "host memory that offloaded optimizer states need",
                  kind="modelled", basis="memory model")
        )  # fmt: skip
        result.next_steps.append("Offloaded optimizer states need [[host_ram_offload]] of host memory.")
    if moment == "save":
        result.facts.append(
            _fact("host_ram_saving", weights, "fp32 weights gathered on one rank", kind="exact", basis="4 B a weight")
        )
        words = "Gathered on one rank, fp32 weights take [[host_ram_saving]] beside that"
        if job.method in ("full", "pretrain"):
            result.facts.append(
                _fact("host_ram_saving_states", 3 * weights, "weights and AdamW's moments gathered on one rank",
                      kind="exact", basis="12 B a weight")
            )  # fmt: skip
            words += ", with AdamW's moments [[host_ram_saving_states]]"
        result.next_steps.append(f"{words}; a sharded checkpoint gathers nothing.")


def _moment(result: ToolResult, job: Job, moment: str | None) -> None:
    """The bytes behind the moment that the words name."""
    params = job.arch.total_params
    if moment == "save":
        result.facts.append(
            _fact("gathered_model", 2.0 * params, "the whole model in 16 bits, gathered in one place", kind="exact",
                  basis="2 B a weight")
        )  # fmt: skip
        result.next_steps.append("Gathered in 16 bits this model is [[gathered_model]], whatever each card holds.")
    elif moment == "load":
        result.facts.append(
            _fact("loaded_model", 4.0 * params, "weights in fp32 while loading", kind="exact", basis="4 B a weight")
        )
        result.next_steps.append("In fp32 the weights are [[loaded_model]] for each process that loads them.")
    elif moment == "eval":
        logits = 4.0 * EVAL_BATCH * job.seq_len * job.arch.vocab_size
        result.facts.append(
            _fact("eval_logits", logits, f"fp32 logits of an evaluation batch of {EVAL_BATCH}", kind="exact",
                  basis=f"{EVAL_BATCH} x {job.seq_len} tokens x {job.arch.vocab_size} x 4 B")
        )  # fmt: skip
        result.next_steps.append(
            f"The fp32 logits of one evaluation batch of {EVAL_BATCH} sequences this long take [[eval_logits]]."
        )


def _warnings(report: Report, bill: MemoryBill | None) -> list[Warn]:
    warnings = []
    if bill is not None and report.allocated is not None and report.allocated < 0.6 * bill.live_bytes:
        warnings.append(
            Warn(code="not_at_the_peak",
                 text="The message shows less live memory than the step's modelled peak: it fell before the peak, so "
                 "more will be needed.")
        )  # fmt: skip
    return warnings
