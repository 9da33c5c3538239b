"""Messages as stacks printed them, read and judged; figures by hand."""

import re
from typing import Any

import pytest

from tools.diagnose.diagnose_oom import DiagnoseOomResult
from tools.diagnose.patterns import parse
from tools.errors import InputProblem
from tools.registry import get_tool

GIB = 2.0**30
OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 23.69 GiB total capacity; 20.40 GiB already "
    "allocated; 1.10 GiB free; 22.10 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try"
)
V21 = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.51 GiB. GPU 3 has a total capacty of 79.15 "
    "GiB of which 1.87 GiB is free. Including non-PyTorch memory, this process has 77.26 GiB memory in use. Of the "
    "allocated memory 71.04 GiB is allocated by PyTorch, and 4.93 GiB is reserved by PyTorch but unallocated."
)
V25 = (
    "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.02 GiB. GPU 2 has a total capacity of "
    "79.10 GiB of which 611.19 MiB is free. Process 88121 has 78.49 GiB memory in use. Of the allocated memory 76.80 "
    "GiB is allocated by PyTorch, with 1.20 GiB allocated in private pools (e.g., CUDA Graphs), and 112.00 MiB is "
    "reserved by PyTorch but unallocated."
)
HIP = (
    "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 432.00 MiB. GPU 0 has a total capacity of 15.92 GiB "
    "of which 0.12 GiB is free. Of the allocated memory 15.08 GiB is allocated by PyTorch, and 321.96 MiB is reserved "
    "by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_HIP_ALLOC_CONF"
)
LOGITS = (
    'File ".../torch/nn/functional.py", line 3104, in cross_entropy\ntorch.OutOfMemoryError: CUDA out of memory. Tried '
    "to allocate 7.83 GiB. GPU 0 has a total capacity of 23.52 GiB of which 5.02 GiB is free."
)


def ask(traceback: str, **given: Any) -> DiagnoseOomResult:
    result = get_tool("diagnose_oom").call({"traceback": traceback, **given})
    assert isinstance(result, DiagnoseOomResult)
    return result


def test_the_format_up_to_2_0_is_read() -> None:
    report = parse(OLD)
    assert (report.gpu_index, report.tried, report.capacity) == (1, 2.0 * GIB, 23.69 * GIB)
    assert report.reserved_unallocated == pytest.approx(1.7 * GIB)
    assert report.others == pytest.approx((23.69 - 1.10 - 22.10) * GIB)


def test_the_format_of_2_1_with_its_spelling_is_read() -> None:
    report = parse(V21)
    assert (report.gpu_index, report.tried, report.free) == (3, 2.51 * GIB, 1.87 * GIB)
    assert (report.process, report.allocated) == (77.26 * GIB, 71.04 * GIB)
    assert report.others == pytest.approx(0.02 * GIB, abs=0.01 * GIB)


def test_the_format_of_2_5_with_processes_and_graph_pools_is_read() -> None:
    report = parse(V25)
    assert report.free == pytest.approx(611.19 * 2**20)
    assert (report.process, report.private_pools) == (78.49 * GIB, 1.20 * GIB)


def test_hip_is_read_as_cuda_is_and_names_its_own_variable() -> None:
    assert parse(HIP).tried == 432.0 * 2**20
    text = HIP.replace("321.96 MiB", "2.00 GiB")
    assert any("PYTORCH_HIP_ALLOC_CONF" in step for step in ask(text).next_steps)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (V21, "fragmentation"),  # 4.93 GiB unused against 2.51 GiB asked for
        (V25, "shortage"),
        (OLD, "shortage"),
        (LOGITS, "shortage"),
        ("exits with return code = -9", "host_memory"),
        ("worker failed with exit code 137 (OOMKilled)", "host_memory"),
        ("kernel: Out of memory: Killed process 1234 (python) total-vm:9kB, anon-rss:65536kB", "host_memory"),
        ("RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 4096 bytes", "host_memory"),
        ("DataLoader worker (pid 4471) is killed by signal: Bus error. out of shared memory.", "shared_memory"),
        ("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=18422, OpType=ALLREDUCE", "stalled_rank"),
        ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "not_memory"),
        ("Error out of memory at line 380 in file /x/csrc/pythonInterface.c", "paged_optimizer"),
        ("Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM", "loading"),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)", "library_handle"),
        ("RuntimeError: CUDA error: out of memory", "shortage"),
        ("No available memory for the cache blocks. Try increasing `gpu_memory_utilization`", "kv_cache"),
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12884901888 bytes.", "shortage"),
        ("it just stopped", "unknown"),
    ],
)
def test_causes_are_told_apart(text: str, cause: str) -> None:
    assert ask(text).cause == cause


def test_another_process_on_the_card_is_named() -> None:
    text = (
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.00 GiB is "
        "free. Process 11 has 40.00 GiB memory in use. Including non-PyTorch memory, this process has 38.00 GiB memory "
        "in use. Of the allocated memory 37.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but"
    )
    result = ask(text)
    assert result.cause == "other_process"
    assert result.fact("others").value == 40.0 * GIB


def test_logits_are_recognised_by_their_size_and_the_fused_loss_comes_first() -> None:
    result = ask(LOGITS, model="llama-3-8b", method="qlora", seq_len=8192, micro_batch=2)
    assert pytest.approx(7.83, abs=0.005) == 2 * 8192 * 128256 * 4 / GIB
    assert result.tensor == "logits in fp32"
    assert result.knob == "fused_loss=True"
    saved = result.fact("knob_1_saving").value
    assert float(saved) > 2 * 8192 * 128256 * 4
    assert any("weights are not the problem" in step for step in result.next_steps)


def test_a_job_that_cannot_fit_is_a_shortage_even_with_unused_pieces() -> None:
    text = OLD.replace("2.00 GiB (GPU", "20.00 MiB (GPU")
    result = ask(text, model="llama-2-7b", method="full")
    assert result.cause == "shortage"
    assert result.knob
    assert "=" in result.knob


def test_the_cache_of_vllm_names_the_length_that_fits() -> None:
    text = (
        "The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache "
        "(35968). Try increasing `gpu_memory_utilization`"
    )
    assert ask(text).fact("tokens_stored").value == 35968
    text = (
        "To serve at least one request with the model's max seq len (100000), (4.26 GiB KV cache is needed, which is "
        "larger than the available KV cache memory (2.13 GiB)."
    )
    assert ask(text).fact("tokens_stored").value == 50000


def test_vllm_at_start_names_who_holds_the_card() -> None:
    text = (
        "ValueError: Free memory on device (3.30/23.64 GiB) on startup is less than desired GPU memory utilization "
        "(0.9, 21.28 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
    )
    assert ask(text).cause == "other_process"


def test_a_pasted_secret_is_not_repeated() -> None:
    secret = "hf_" + "a" * 34
    result = ask(f"export HF_TOKEN={secret}\n{V21}")
    assert secret not in result.model_dump_json()


@pytest.mark.parametrize("text", [OLD, V21, V25, HIP, LOGITS, "Killed", "exits with return code = -9", "nothing"])
@pytest.mark.parametrize("workload", [{}, {"model": "llama-3.1-8b", "method": "lora", "seq_len": 4096}])
def test_every_reference_in_a_sentence_is_a_fact(text: str, workload: dict[str, Any]) -> None:
    result = ask(text, **workload)
    ids = [fact.id for fact in result.facts]
    assert len(ids) == len(set(ids))
    for sentence in [result.verdict, *result.next_steps]:
        assert set(re.findall(r"\[\[([^\]|]+)", sentence)) <= set(ids)


def test_a_long_paste_is_read_in_time_and_an_empty_one_refused() -> None:
    assert ask("x" * 150_000 + V21).cause == "fragmentation"
    with pytest.raises(InputProblem):
        ask("  ")


@pytest.mark.parametrize(
    ("words", "cause", "knob"),
    [
        ("var len data, no packing: starts with 41 GB, slowly climbs, oom at step 1300", "varying", "packing"),
        ("oom at step 2 after we added METRICS logging. memory leak?", "kept", "item"),
        ("was fine for 200 steps, OOMd exactly when eval started", "eval", "eval_batch_size=1"),
        ("save_pretrained OOMs on gpu", "save", "sharded"),
        ("trains ok, killed on save", "host_memory", "sharded"),
        ("eats 2tb of ram while loading on an 8 gpu node", "host_memory", "low_cpu_mem_usage"),
        ("memory grows every epoch until it ooms", "climbs", "memory_allocated"),
    ],
)
def test_without_a_message_the_moment_in_the_words_decides(words: str, cause: str, knob: str) -> None:
    result = ask(words)
    assert result.cause == cause
    assert knob in (result.knob or "")


def test_a_model_that_is_gathered_or_loaded_whole_is_counted_in_bytes() -> None:
    saved = ask("killed on save", model="llama-2-70b", method="full", n_gpus=8, sharding="fsdp")
    assert saved.fact("host_ram_saving").value == pytest.approx(4 * 68.98e9, rel=0.001)
    assert saved.fact("host_ram_saving_states").value == pytest.approx(12 * 68.98e9, rel=0.001)
    loaded = ask("eats all the ram while loading", model="llama-2-70b", method="full", n_gpus=8, sharding="fsdp")
    assert loaded.fact("host_ram_loading").value == pytest.approx(8 * 4 * 68.98e9, rel=0.001)
    evaluated = ask("OOM when eval starts", model="llama-2-7b", method="lora", seq_len=2048)
    assert evaluated.fact("eval_logits").value == 8 * 2048 * 32000 * 4


def test_without_a_moment_the_memory_model_says_whether_it_should_fit() -> None:
    short = ask("instant OOM, expected?", model="llama-2-7b", method="full", gpu="A100 80GB")
    assert short.cause == "shortage"
    assert short.knob
    fits = ask("it ooms", model="llama-2-7b", method="qlora", gpu="A100 80GB")
    assert fits.cause == "fits_as_modelled"
    adapters = ask("OOM after step 1", model="mixtral-8x7b", method="qlora", gpu="A100 80GB")
    assert adapters.cause == "fits_as_modelled"  # adapters' moments are too small to be the reason
    assert ask("OOM after step 1", model="llama-3-8b", method="full", gpu="H200").cause == "second"


def test_a_stalled_collective_is_told_from_a_slow_link() -> None:
    result = ask(
        "[rank5]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=18422, OpType=ALLREDUCE, "
        "NumelIn=1048576, Timeout(ms)=1800000) ran for 1800081 milliseconds before timing out."
    )
    assert result.cause == "stalled_rank"
    assert result.fact("stalled").value == pytest.approx(1800, rel=1e-3)
    assert result.fact("stalled_bytes").value == 4 * 1048576
    assert any("not a slow network" in step for step in result.next_steps)
