"""The words of ``estimate_vram``: verdict, knobs, the nearest setting that fits, the convention, what to ask next."""

from __future__ import annotations

from pydantic import Field

from knowledge.gpus import load_gpu
from knowledge.types import Gpu
from tools.memory import MemoryBill, verdict
from tools.memory.knobs import Knob, fewest_gpus_that_fit, nearest_that_fits
from tools.result import Fact, ToolResult, Warn
from tools.workload import Job

# The cards that an answer lists, from small to large; any other is judged when it is asked for.
LISTED_GPUS: tuple[str, ...] = (
    "RTX-3060-12GB", "T4", "RTX-4060-Ti-16GB", "RTX-3090", "RTX-4090", "L4", "A10G", "RTX-5090", "A100-SXM4-40GB",
    "RTX-A6000", "L40S", "A100-SXM4-80GB", "H100-SXM5", "RTX-PRO-6000-Blackwell", "H200-SXM", "B200-SXM", "MI300X",
    "B300-SXM",
)  # fmt: skip

CONVENTIONS = {
    "pure": "pure bf16: weights 2 + gradients 2 + moments 4",
    "mixed": "fp32 weights, bf16 compute: weights 4 + gradients 4 + moments 8",
    "master": "ZeRO: bf16 weights 2 + gradients 2 + fp32 master 4 + moments 8",
    "megatron": "Megatron: bf16 weights 2 + fp32 gradients 4 + master 4 + moments 8",
}


class EstimateVramResult(ToolResult):
    """Memory per GPU: expected, low and high, by component."""

    peak_per_gpu_bytes: float = Field(json_schema_extra={"unit": "B"})
    low_bytes: float = Field(json_schema_extra={"unit": "B"})
    high_bytes: float = Field(json_schema_extra={"unit": "B"})
    components: dict[str, float] = Field(json_schema_extra={"unit": "B"})
    fits: list[str] = Field(default_factory=list, description="Listed cards that it fits, smallest first.")
    gpu: str | None = None
    gpu_verdict: str | None = Field(default=None, description="fits, borderline or does_not_fit on the given GPU.")


def say(
    result: EstimateVramResult, job: Job, bill: MemoryBill, gpu: Gpu | None, fits: list[str], savings: list[Knob]
) -> None:
    """Write the verdict, the next steps and what usually comes next into the result."""
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
    if job.task == "train" and not job.is_adapter:
        _add_convention(result, bill)
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
        many = "sequence" if job.micro_batch == 1 else "sequences"
        return f"Serving {name} in {job.precision} for [[micro_batch]] {many} of [[seq_len]]"
    words = {"full": "full fine-tuning", "pretrain": "pretraining", "continued_pretrain": "continued pretraining",
             "lora": "LoRA", "qlora": "QLoRA", "dora": "DoRA", "dpo": "DPO", "orpo": "ORPO", "kto": "KTO",
             "grpo": "GRPO", "ppo": "PPO", "reward": "reward-model training"}  # fmt: skip
    where = f" on [[n_gpus]] ({job.sharding})" if job.n_gpus > 1 else ""
    method = words[job.method] + (" on adapters" if job.adapter and job.method in _PREFERENCE else "")
    return f"{name} {method} at [[seq_len]] x [[micro_batch]]{where}"


# Weights + gradients + AdamW states a parameter, by recipe in use (tools/memory/recipe.py derives them).
_RECIPES = {
    "pure": (8, "pure bf16"),
    "mixed": (16, "fp32 weights with bf16 compute"),
    "master": (16, "ZeRO's fp32 master"),
    "megatron": (18, "Megatron's fp32 gradients"),
}


def _add_convention(result: EstimateVramResult, bill: MemoryBill) -> None:
    """The bytes-per-parameter convention taken, and the others in one line."""
    others = []
    for name, (value, words) in _RECIPES.items():
        if name != bill.convention:
            result.facts.append(
                Fact(id=f"recipe_{name}", name="recipe", value=value, unit="B/param", kind="exact", label=words,
                     basis=CONVENTIONS[name])
            )  # fmt: skip
            others.append(f"[[recipe_{name}]] ({words})")
    text = (
        f"Counted at [[bytes_per_param]] of weights, gradients and optimizer states before sharding "
        f"({_RECIPES[bill.convention][1]}); other recipes take {', '.join(others[:-1])} or {others[-1]}."
    )
    result.warnings.insert(0, Warn(code="convention", text=text))


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
