"""What must hold for any job: more GPUs, smaller batches, checkpointing and adapters never ask for more."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tools.memory import estimate
from tools.workload import Job, WorkloadInput, resolve

MODELS = ("llama-3.1-8b", "qwen2.5-0.5b", "mixtral-8x7b", "gemma-2-9b", "gpt2", "phi-2", "deepseek-v3")
BASE = {name: resolve(WorkloadInput(model=name, seq_len=1024)) for name in MODELS}


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    method = draw(st.sampled_from(["full", "lora", "qlora", "dpo"]))
    precision = {"full": draw(st.sampled_from(["bf16", "bf16_mixed"])), "qlora": "nf4"}.get(method, "bf16")
    return replace(
        BASE[draw(st.sampled_from(MODELS))],
        method=method,
        precision=precision,
        seq_len=draw(st.integers(1, 64)) * 128,
        micro_batch=draw(st.integers(1, 16)),
        lora_rank=draw(st.integers(1, 256)),
        checkpointing=draw(st.sampled_from(["none", "selective", "full"])),
        attention=draw(st.sampled_from(["flash", "eager"])),
        framework=draw(st.sampled_from(["hf", "trl", "torchtitan", "litgpt", "megatron", "unsloth", "torchtune"])),
    )


@given(jobs(), st.sampled_from(["fsdp", "zero3", "zero2", "zero1"]), st.integers(1, 6))
@settings(max_examples=150, deadline=None)
def test_more_gpus_never_raise_memory_per_gpu_under_sharding(job: Job, sharding: str, power: int) -> None:
    fewer = replace(job, sharding=sharding, n_gpus=2**power)
    more = replace(fewer, n_gpus=2 ** (power + 1))
    assert estimate(more).peak_bytes <= estimate(fewer).peak_bytes * (1 + 1e-9)


@given(jobs(), st.sampled_from(["seq_len", "micro_batch", "lora_rank"]))
@settings(max_examples=150, deadline=None)
def test_memory_grows_with_batch_length_and_rank(job: Job, field: str) -> None:
    larger = replace(job, **{field: 2 * getattr(job, field)})
    assert estimate(larger).peak_bytes >= estimate(job).peak_bytes * (1 - 1e-9)


@given(jobs())
@settings(max_examples=150, deadline=None)
def test_checkpointing_never_raises_memory(job: Job) -> None:
    full, selective, none = (
        estimate(replace(job, checkpointing=kind)).peak_bytes for kind in ("full", "selective", "none")
    )
    assert full <= selective * (1 + 1e-9)
    assert selective <= none * (1 + 1e-9)


@given(jobs())
@settings(max_examples=150, deadline=None)
def test_qlora_is_below_lora_is_below_full_in_states(job: Job) -> None:
    """Of weights, gradients and states always; of the whole peak only where nothing is upcast (see the notes)."""

    def states(method: str, precision: str) -> float:
        bill = estimate(replace(job, method=method, precision=precision, lora_rank=16, attention="flash"))
        return sum(bill.components.get(name, 0.0) for name in ("weights", "adapters", "optimizer_states"))

    if job.framework in ("trl", "litgpt"):  # both keep embeddings in fp32 or untie them beside the 4-bit base
        return
    assert states("qlora", "nf4") <= states("lora", "bf16") * (1 + 1e-9)
    assert states("lora", "bf16") <= states("full", "bf16") * (1 + 1e-9)


@given(jobs())
@settings(max_examples=100, deadline=None)
def test_the_range_holds_the_expectation_and_the_parts_sum_to_it(job: Job) -> None:
    bill = estimate(job)
    assert 0 < bill.low_bytes <= bill.peak_bytes <= bill.high_bytes
    assert abs(sum(bill.components.values()) / bill.peak_bytes - 1) < 1e-9
    assert all(value >= 0 for value in bill.components.values())
    assert bill.peak_bytes >= bill.reserved_bytes >= bill.live_bytes
