"""From the figures of a message to a cause and the first knob, least intrusive first."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from knowledge.types import Gpu
from tools.diagnose.identify import Match
from tools.diagnose.patterns import Report
from tools.memory import MemoryBill, estimate
from tools.memory.knobs import Knob, largest_savings, nearest_that_fits
from tools.workload import Job

UNUSED_SHARE = 0.03  # of the card: less is the allocator's usual rounding
OTHER_PROCESS = 1.5 * 2.0**30  # more than contexts and displays take: someone else's tensors
ALLOCATOR_KNOB = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"


@dataclass(frozen=True, slots=True)
class Cause:
    """What went wrong and what to do first; ``knobs`` are the memory model's, each with its bill."""

    name: str
    knob: str | None
    words: str
    first: str
    knobs: tuple[Knob, ...] = field(default=())


def ref(name: str, value: float | None) -> str:
    """A reference in the unit that the message itself used: GiB, or MiB for small pieces."""
    return f"[[{name}|{'GiB' if (value or 0.0) >= 2**30 / 10 else 'MiB'}]]"


def judge(report: Report, job: Job | None, bill: MemoryBill | None, gpu: Gpu | None, match: Match | None) -> Cause:
    """The cause that the figures speak for, with the first thing to do. In this order: what the message says outright,
    fragmentation, another process, else a shortage, whose knobs are modelled only where ``job`` and ``bill`` are known.
    A message that says nothing is judged by the bill. None: not told.
    """
    adapter = job is not None and job.method not in ("full", "pretrain")
    if report.kind == "unknown" or (report.place == "second" and adapter):
        modelled = _by_model(report, job, bill, gpu)
        if modelled is not None:
            return modelled
    simple = _simple(report)
    if simple is not None:
        return simple
    unused = ref("reserved_unallocated", report.reserved_unallocated)
    if report.kind == "gpu" and _fragmented(report, bill):
        return Cause(
            "fragmentation", ALLOCATOR_KNOB,
            f"the card had the bytes, but in pieces: PyTorch holds {unused} reserved and unused, and "
            f"{ref('tried', report.tried)} in one piece was asked for",
            f"Set {_allocator(report)} before the process starts: freed pieces join again, up to {unused}.",
            _knobs(report, job, bill, gpu, match),
        )  # fmt: skip
    if report.kind == "gpu" and (report.others or 0.0) > OTHER_PROCESS:
        return Cause(
            "other_process", "CUDA_VISIBLE_DEVICES",
            f"other processes hold {ref('others', report.others)} of this card",
            "Stop them (nvidia-smi lists their pids; a crashed run often leaves one) or choose another card.",
            _knobs(report, job, bill, gpu, match),
        )  # fmt: skip
    knobs = _knobs(report, job, bill, gpu, match)
    if knobs:
        first = knobs[0]
        return Cause(
            "shortage", f"{first.argument}={first.value}", "the job needs more than the card has", _knob_words(first),
            knobs,
        )  # fmt: skip
    return Cause("shortage", _generic(report)[0], "the job needs more than the card has", _generic(report)[1])


def _by_model(report: Report, job: Job | None, bill: MemoryBill | None, gpu: Gpu | None) -> Cause | None:
    """Without a message or a moment: whether the job as described fits the card at all."""
    if bill is None or gpu is None:
        return None
    if bill.peak_bytes > gpu.usable_bytes:
        knobs = _knobs(report, job, bill, gpu, None)
        return Cause(
            "shortage", f"{knobs[0].argument}={knobs[0].value}" if knobs else None,
            "the job as described needs [[modelled_peak]] per GPU, more than the card has",
            _knob_words(knobs[0]) if knobs else _generic(report)[1], knobs,
        )  # fmt: skip
    return Cause(
        "fits_as_modelled", None,
        "the job as described should fit, at [[modelled_peak]] per GPU: something in the run differs",
        "Look for weights loaded in fp32, attention that stores its scores, recomputation that is off, a longer batch "
        "than named, or another process on the card; the line that says 'out of memory' would tell which.",
    )  # fmt: skip


def _knob_words(first: Knob) -> str:
    return (
        f"{first.said[0].upper()}{first.said[1:]} ({first.argument}={first.value}): [[knob_1]] per GPU "
        "instead of [[modelled_peak]], [[knob_1_saving]] less."
    )


def _fragmented(report: Report, bill: MemoryBill | None) -> bool:
    """Enough unused bytes to matter for a piece they could hold, in a job that the model does not rule out."""
    if bill is not None and report.capacity and bill.low_bytes > report.capacity:
        return False
    return (
        report.tried is not None
        and report.reserved_unallocated is not None
        and report.reserved_unallocated >= report.tried
        and report.reserved_unallocated > UNUSED_SHARE * (report.capacity or report.reserved_unallocated)
    )


def _allocator(report: Report) -> str:
    return ALLOCATOR_KNOB.replace("CUDA", "HIP") if "HIP" in report.style else ALLOCATOR_KNOB


def _simple(report: Report) -> Cause | None:
    """Causes that the kind of message alone decides."""
    if report.kind == "host":
        code = f" (exit code {report.exit_code})" if report.exit_code in ("-9", "137") else ""
        moment = {"save": " while saving", "load": " while loading"}.get(report.place or "", "")
        confirm = 'Confirm with dmesg ("Out of memory: Killed process"); then '
        if moment:
            _words, knob, first = _MOMENTS[report.place or ""]
            first = first[0].lower() + first[1:]
        else:
            knob = "cpu_offload=none"
            first = ("give the job more host memory or move less of it there: offload off, fewer loader workers, "
                     "weights loaded once (low_cpu_mem_usage, sharded loading).")  # fmt: skip
        return Cause(
            "host_memory", knob,
            f"host memory ended{moment}, not the card's{code}: the kernel kills the process, the GPU says nothing",
            confirm + first,
        )  # fmt: skip
    if report.kind == "shared_memory":
        return Cause(
            "shared_memory", "--shm-size",
            "the container's shared memory (/dev/shm) is full; the card is not involved",
            "Start the container with --ipc=host or a larger --shm-size, mount a Memory emptyDir on Kubernetes, or "
            "lower num_workers.",
        )  # fmt: skip
    if report.kind == "kv_cache":
        return Cause(
            "kv_cache", "max_model_len",
            "the weights load, but what is left does not hold the keys and values of one full-length request",
            "Lower max_model_len to what the cache holds, raise gpu_memory_utilization, or quantise weights or cache.",
        )  # fmt: skip
    if report.kind == "loading":
        return Cause(
            "loading", "device_map",
            "the quantised weights do not fit beside what the card already holds while loading",
            "Free the card, or load with device_map={\"\": local rank}; a base too large for one needs FSDP-QLoRA.",
        )  # fmt: skip
    if report.kind == "paged_optimizer":
        return Cause(
            "paged_optimizer", "optimizer=adamw_8bit",
            "bitsandbytes found no memory for its (paged) states: host memory or pinned memory ended, often under WSL",
            "Use the 8-bit optimizer without paging, or raise the host's (or WSL's) memory limit.",
        )  # fmt: skip
    if report.kind == "library_handle":
        return Cause(
            "library_handle", None,
            "cuBLAS or cuDNN found no room for its workspace: the card is full, though PyTorch did not say so",
            "Treat it as a full card: free a few hundred MB (smaller micro-batch), or check for wrong indices first.",
        )  # fmt: skip
    if report.kind == "not_memory" and report.style == "NCCL watchdog":
        return Cause(
            "stalled_rank", None,
            "this is not a memory error: one rank never came to a collective that the others waited for",
            "Find the rank that is missing (the one without this message): a slow or dead data loader, a rank killed "
            "for host memory, evaluation or saving on one rank, ranks that disagree on the number of steps, a "
            "flapping link. TORCH_NCCL_TRACE_BUFFER_SIZE=2000 with TORCH_NCCL_DUMP_ON_TIMEOUT=1 names the call.",
        )  # fmt: skip
    if report.kind == "not_memory":
        return Cause(
            "not_memory", None, "this CUDA error is not about the amount of memory",
            "Run once with CUDA_LAUNCH_BLOCKING=1: the trace then names the kernel. Wrong indices (token ids beyond "
            "the vocabulary, labels) and builds for another architecture are the usual causes.",
        )  # fmt: skip
    if report.kind == "described":
        return _described(report.place or "")
    if report.kind == "unknown":
        return Cause(
            "unknown", None, "no memory message that I know is in this text",
            "Paste the line that says 'out of memory', or the last lines of dmesg when the process just vanished.",
        )  # fmt: skip
    return None


def _described(moment: str) -> Cause:
    """Causes by the moment that words name."""
    words, knob, first = _MOMENTS[moment]
    return Cause(moment, knob, words, first)


# What ends memory at this moment, the setting, what to do.
_MOMENTS = {
    "save": (
        "saving gathers what training keeps sharded: the whole model meets on one card, or in one host", "sharded save",
        "Save sharded (distributed checkpoint, SHARDED_STATE_DICT; ZeRO-3: stage3_gather_16bit_weights_on_model_save "
        "false) and merge afterwards; a full state dict needs offload_to_cpu and rank0_only. Adapters: save only them.",
    ),
    "kept": (
        "what is logged is probably kept: a loss or logits held without .detach() keeps the step's whole graph",
        ".item()",
        "Log loss.item() and detached, reduced values, never logits; then compare torch.cuda.memory_allocated() "
        "between steps: it should return to one figure.",
    ),
    "eval": (
        "evaluation holds more than training: its batch is set apart (8 a device in Transformers), its logits are "
        "turned to fp32 and kept for every batch", "per_device_eval_batch_size=1",
        "Set per_device_eval_batch_size=1, prediction_loss_only=True (or preprocess_logits_for_metrics to an argmax) "
        "and eval_accumulation_steps=1.",
    ),
    "varying": (
        "the longest batch so far sets the peak: with lengths that vary the figure climbs each time that a longer one "
        "comes, and the pieces that PyTorch kept for shorter ones no longer fit", "group_by_length or packing",
        "Try the longest batch first, cap or pack lengths so that every step has the same number of tokens, and set "
        f"{ALLOCATOR_KNOB}.",
    ),
    "climbs": (
        "memory that climbs over steps is kept by something: tensors held between steps, or ever longer batches",
        "memory_allocated()",
        "Print torch.cuda.memory_allocated() and memory_reserved() every 50 steps: where allocated climbs, tensors are "
        "kept (detach, .item()); where only reserved does, lengths vary (pack or cap them, expandable segments).",
    ),
    "load": (
        "loading takes more than running: full weights in fp32, on every rank, beside their copies",
        "low_cpu_mem_usage=true",
        "Load in bf16 or 4 bits with low_cpu_mem_usage (FSDP: on rank 0 only, sync_module_states), then shard.",
    ),
    "second": (
        "optimizer states are made at the first optimizer step: the forward and backward pass before it fit, the "
        "moments beside them do not", "optimizer=adamw_8bit",
        "Use 8-bit AdamW, shard optimizer states (ZeRO-1 or higher), or train adapters.",
    ),
}  # fmt: skip


def _knobs(
    report: Report, job: Job | None, bill: MemoryBill | None, gpu: Gpu | None, match: Match | None
) -> tuple[Knob, ...]:
    """The knob that shrinks the very tensor, where one is named; then the nearest that fits; then the largest."""
    if job is None or bill is None:
        return ()
    usable = (report.capacity or (gpu.usable_bytes if gpu else 0.0)) - (report.others or 0.0)
    options = largest_savings(job, bill, count=6)
    family = match.family if match else {"loss": "loss", "attention": "attention"}.get(report.place or "")
    ordered = [knob for knob in options if knob.family == family]
    if match and match.family == "loss" and not ordered and not job.fused_loss:
        changed = replace(job, fused_loss=True)
        words = "use a fused (Liger) cross-entropy"
        ordered.append(Knob("loss", words, "fused_loss", True, changed, estimate(changed)))
    chain = nearest_that_fits(job, usable) if usable > 0 else []
    ordered += [knob for knob in chain[:1] if knob.family not in {each.family for each in ordered}]
    ordered += [knob for knob in options if knob.family not in {each.family for each in ordered}]
    return tuple(ordered[:3])


def _generic(report: Report) -> tuple[str, str]:
    """Without a workload: what the place in the step suggests."""
    by_place = {
        "loss": ("fused_loss=true", "Use a fused or chunked cross-entropy (Liger): logits and their copies are then "
                 "never whole."),
        "attention": ("attention=flash", "Use flash attention or SDPA: scores are then never stored."),
        "optimizer": ("optimizer=adamw_8bit", "Use 8-bit AdamW: it fell at the first optimizer step, when moments "
                      "are made."),
        "eval": ("per_device_eval_batch_size=1", "Evaluate with batch 1 and prediction_loss_only=True: it fell in "
                 "evaluation, not in training."),
        "save": ("save strategy", "Save sharded: gathering the whole model on one rank needs its full size there."),
        "load": ("precision=bf16", "Load in bf16 or 4 bits: it fell while loading weights."),
        "gather": ("activation_checkpointing=full", "Turn on full activation checkpointing, then cut the micro-batch."),
        "generate": ("micro_batch", "Generate with a smaller batch: the key-value cache grows with batch and length."),
    }  # fmt: skip
    default = (
        "micro_batch",
        "Halve the micro-batch and double accumulation, then turn on full activation checkpointing. Name the model, "
        "method, sequence length and batch for a computed answer.",
    )
    return by_place.get(report.place or "", default)
