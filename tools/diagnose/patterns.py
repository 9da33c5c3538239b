"""Reading memory errors as stacks print them: PyTorch 1.x to 2.14 on CUDA and HIP, MPS, XLA, CUDA itself,
bitsandbytes, vLLM, and what the operating system says when host memory ends.

Only figures and places are taken from a pasted text; none of it is repeated to the reader.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "gpu",
    "host",
    "shared_memory",
    "kv_cache",
    "loading",
    "paged_optimizer",
    "library_handle",
    "not_memory",
    "described",
    "unknown",
]
MAX_TEXT = 200_000
_SIZE = r"([\d.,]+)\s*(bytes?|[KMGT]i?B)"
_UNITS = {
    "b": 1.0, "byte": 1.0, "bytes": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 2.0**10, "mib": 2.0**20,
    "gib": 2.0**30, "tib": 2.0**40,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of one message, in bytes; None where it does not say."""

    kind: Kind
    style: str
    tried: float | None = None
    capacity: float | None = None
    free: float | None = None
    process: float | None = None
    others: float | None = None  # held by other processes, as the message or the sum says
    allocated: float | None = None
    reserved_unallocated: float | None = None
    private_pools: float | None = None
    gpu_index: int | None = None
    ranks: int = 1
    place: str | None = None
    cache_flushes: int | None = None
    tokens_stored: int | None = None  # vLLM: what the cache holds
    tokens_wanted: int | None = None
    cache_needed: float | None = None
    cache_available: float | None = None
    host_resident: float | None = None
    exit_code: str | None = None
    stalled_seconds: float | None = None  # NCCL watchdog: how long the collective waited, and its elements
    stalled_elements: int | None = None


def parse(text: str) -> Report:
    """The first memory message in the first 200,000 characters, whatever printed it, figures in bytes. Kind "unknown"
    where none is recognised, "not_memory" for an error of another kind; nothing is raised.
    """
    text = text[:MAX_TEXT]
    for read in (_torch, _mps, _vllm, _xla, _shared_memory, _host, _library, _not_memory):
        found = read(text)
        if found is not None:
            return found
    return Report("unknown", "no memory message recognised", place=_place(text))


def size(number: str, unit: str) -> float:
    """Bytes of a printed number and unit; GB is 1e9 and GiB 2**30 (PyTorch prints the latter). Raises ValueError or
    KeyError for what the patterns of this module would not have matched.
    """
    return float(number.replace(",", "").rstrip(".") or 0) * _UNITS[unit.lower()]


def _find(pattern: str, text: str) -> float | None:
    found = re.search(pattern, text, re.IGNORECASE | re.DOTALL)
    return size(found[1], found[2]) if found else None


def _torch(text: str) -> Report | None:
    start = re.search(r"(CUDA|HIP|XPU) out of memory\.?\s*Tried to allocate", text)
    if not start:
        return None
    message = text[start.start() : start.start() + 1600]
    old = re.search(rf"\(GPU\s+(\d+);\s*{_SIZE} total capacity", message)
    if old:
        figures = _old(message)
        index: int | None = int(old[1])
        style = "PyTorch up to 2.0"
    else:
        figures = _new(message)
        named = re.search(r"GPU\s+(\d+)\s+has a total capac", message)
        index = int(named[1]) if named else None
        style = "PyTorch 2.1 and later"
    ranks = set(re.findall(r"\[?rank\s*(\d+)\]?[^\n]{0,200}?out of memory", text, re.IGNORECASE))
    ranks |= set(re.findall(r"GPU\s+(\d+)[; ].{0,3}(?:has a total|[\d.]+ [GM]iB total)", text))
    flushes = re.search(r"(\d{1,9}) pytorch allocator cache flushes", text)
    return Report(
        kind="gpu",
        style=f"{style}, {start[1]}",
        tried=_find(rf"Tried to allocate {_SIZE}", message),
        gpu_index=index,
        ranks=max(1, len(ranks)),
        place=_place(text),
        cache_flushes=int(flushes[1]) if flushes else None,
        capacity=figures["capacity"],
        free=figures["free"],
        process=figures["process"],
        others=figures["others"],
        allocated=figures["allocated"],
        reserved_unallocated=figures["reserved_unallocated"],
        private_pools=figures.get("private_pools"),
    )


def _old(message: str) -> dict[str, float | None]:
    allocated = _find(rf"{_SIZE} already allocated", message)
    reserved = _find(rf"{_SIZE} (?:reserved in total|cached)", message)
    capacity, free = _find(rf"{_SIZE} total capacity", message), _find(rf"{_SIZE} free", message)
    others = None
    if capacity is not None and free is not None and reserved is not None:
        others = max(0.0, capacity - free - reserved)
    return {
        "capacity": capacity, "free": free, "allocated": allocated, "process": reserved, "others": others,
        "reserved_unallocated": reserved - allocated if reserved is not None and allocated is not None else None,
    }  # fmt: skip


def _new(message: str) -> dict[str, float | None]:
    capacity = _find(rf"total capac(?:i)?ty of {_SIZE}", message)
    free = _find(rf"of which {_SIZE} is free", message)
    this = _find(rf"this process has {_SIZE} memory in use", message)
    listed = [size(n, u) for n, u in re.findall(rf"Process \d+ has {_SIZE} memory in use", message)]
    allocated = _find(rf"allocated memory {_SIZE} is allocated by PyTorch", message)
    unallocated = _find(rf"{_SIZE} is reserved by PyTorch but unallocated", message)
    own = this if this is not None else (max(listed) if listed else None)
    others = sum(listed) - (0.0 if this is not None else (own or 0.0)) if listed else None
    if others is None and None not in (capacity, free, own):
        others = max(0.0, (capacity or 0.0) - (free or 0.0) - (own or 0.0))
    return {
        "capacity": capacity, "free": free, "process": own, "others": others, "allocated": allocated,
        "reserved_unallocated": unallocated,
        "private_pools": _find(rf"with {_SIZE} allocated in private pools", message),
    }  # fmt: skip


def _mps(text: str) -> Report | None:
    if "MPS backend out of memory" not in text:
        return None
    allocated = _find(rf"MPS allocated: {_SIZE}", text)
    other, most = _find(rf"other allocations: {_SIZE}", text), _find(rf"max allowed: {_SIZE}", text)
    free = max(0.0, most - (allocated or 0.0) - (other or 0.0)) if most is not None else None
    return Report("gpu", "PyTorch on Apple silicon (MPS)", tried=_find(rf"Tried to allocate {_SIZE}", text),
                  capacity=most, free=free, allocated=allocated, others=other, place=_place(text))  # fmt: skip


_VLLM_START = (
    r"Free memory on device[^(]{0,40}\(([\d.]+)/([\d.]+) GiB\)"
    r".{0,80}?\(([\d.]+), ([\d.]+) GiB\)"
)


def _vllm(text: str) -> Report | None:
    stored = re.search(
        r"max seq len \((\d+)\) is larger than the maximum number of tokens that can be stored in KV cache \((\d+)\)",
        text,
    )
    if stored:
        return Report("kv_cache", "vLLM", tokens_wanted=int(stored[1]), tokens_stored=int(stored[2]))
    needed = re.search(
        rf"max seq len \((\d+)\),? \({_SIZE} KV cache is needed.{{0,60}}available KV cache memory \({_SIZE}\)",
        text,
        re.DOTALL,
    )
    if needed:
        return Report("kv_cache", "vLLM", tokens_wanted=int(needed[1]), cache_needed=size(needed[2], needed[3]),
                      cache_available=size(needed[4], needed[5]))  # fmt: skip
    if "No available memory for the cache blocks" in text:
        return Report("kv_cache", "vLLM", cache_available=0.0)
    loose = re.search(_VLLM_START, text, re.DOTALL)
    if loose:
        free, capacity = float(loose[1]) * 2**30, float(loose[2]) * 2**30
        return Report("gpu", "vLLM at start", tried=float(loose[4]) * 2**30, capacity=capacity, free=free,
                      others=capacity - free, place="start")  # fmt: skip
    return None


def _xla(text: str) -> Report | None:
    found = re.search(r"RESOURCE_EXHAUSTED:.{0,200}?(?:allocate|allocating)\s+(\d+)\s*bytes", text, re.DOTALL)
    if not found:
        return None
    return Report("gpu", "JAX or TensorFlow (XLA)", tried=float(found[1]), place=_place(text))


def _shared_memory(text: str) -> Report | None:
    if re.search(
        r"Bus error.{0,200}shared memory|/dev/shm.{0,80}No space|No space left.{0,80}/dev/shm", text, re.DOTALL
    ):
        return Report("shared_memory", "data loader")
    return None


def _host(text: str) -> Report | None:
    killed = re.search(
        r"exit(?:s|ed)?\s{0,3}(?:with)?\s{0,3}(?:return)?\s{0,3}code\s{0,3}[:=]?\s{0,3}(-9|137)\b|exitcode\s{0,3}:?\s{0,3}(-9|137)\b"
        r"|(OOMKilled)|(SIGKILL)"
        r"|(oom-kill|Out of memory: Killed process)|^[ \t]{0,40}(Killed)[ \t\r]{0,40}$|(signal 9)",
        text, re.MULTILINE | re.IGNORECASE,
    )  # fmt: skip
    cpu = re.search(r"DefaultCPUAllocator:.{0,60}tried to allocate (\d+) bytes", text, re.DOTALL)
    plain = re.search(r"std::bad_alloc|Cannot allocate memory|MemoryError\b|paging file is too small", text)
    if not (killed or cpu or plain):
        return None
    resident = re.search(r"anon-rss:\s*(\d+)\s*kB", text)
    code = next((group for group in killed.groups() if group), None) if killed else None
    return Report(
        "host",
        "the operating system" if killed else "the process",
        tried=float(cpu[1]) if cpu else None,
        host_resident=float(resident[1]) * 1024 if resident else None,
        exit_code=code,
        place=_place(text),
    )


def _library(text: str) -> Report | None:
    if re.search(r"Error out of memory at line \d+ in file", text):
        return Report("paged_optimizer", "bitsandbytes", place=_place(text))
    if "Some modules are dispatched on the CPU or the disk" in text:
        return Report("loading", "bitsandbytes through Transformers", place="load")
    if re.search(r"CU(?:BLAS|DNN)_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED)|cublasCreate", text):
        return Report("library_handle", "cuBLAS or cuDNN", place=_place(text))
    if re.search(r"CUDA(?: runtime)? error[:( ].{0,12}out of memory|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|"
                 r"NCCL.{0,80}out of memory|hipErrorOutOfMemory|HIP_ERROR_OutOfMemory", text, re.DOTALL):  # fmt: skip
        return Report("gpu", "CUDA or HIP itself, outside PyTorch's allocator", place=_place(text))
    return None


def _not_memory(text: str) -> Report | None:
    if re.search(r"collective operation timeout|Watchdog caught|ncclRemoteError|NCCL timeout", text):
        waited = re.search(r"ran for (\d+) milliseconds|Timeout\(ms\)=(\d+)", text)
        elements = re.search(r"NumelIn=(\d+)", text)
        return Report(
            "not_memory", "NCCL watchdog",
            stalled_seconds=int(waited[1] or waited[2]) / 1e3 if waited else None,
            stalled_elements=int(elements[1]) if elements else None,
        )  # fmt: skip
    if re.search(r"no kernel image is available|device-side assert|illegal memory access", text):
        return Report("not_memory", "a CUDA error that is not about the amount of memory")
    return None


# Where in the step: the last frames decide, so patterns are tried in this order on the whole text.
_PLACES = (
    ("loss", r"cross_entropy|nll_loss|log_softmax|lm_head|logits\.float\(\)|logits = logits|fused_linear"),
    ("optimizer", r"optimizer\.step|adamw?\.py|_multi_tensor_adam|exp_avg|init_group|initialize_optimizer_states"),
    ("eval", r"evaluation_loop|prediction_step|evaluate\("),
    ("save", r"save_checkpoint|save_pretrained|_save\(|get_state_dict|consolidate|save_model"),
    ("load", r"from_pretrained|load_state_dict|load_checkpoint|set_module_tensor|dispatch_model|\.to\(device"),
    ("gather", r"_unshard|all_gather_into|_all_gather|partition_parameters|_prefetch|fetch_sub_module|partition_grads"),
    ("generate", r"generate\(|past_key_value|kv_cache|DynamicCache"),
    ("attention", r"scaled_dot_product|softmax|attn_weights|eager_attention|flash_attn|self_attn"),
    ("backward", r"\.backward\(|autograd|run_backward|checkpoint\.py"),
    ("mlp", r"down_proj|up_proj|gate_proj|\bmlp\b|act_fn"),
)  # fmt: skip


def _place(text: str) -> str | None:
    for name, pattern in _PLACES:
        if re.search(pattern, text):
            return name
    return None
