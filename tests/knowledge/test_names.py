"""Names as people write them: the right thing, a guess that is said, or an error with the nearest names."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.errors import BadValue, InputProblem, UnknownName
from knowledge.gpus import all_gpus, find_gpu
from knowledge.instances import all_instances, all_links, find_instance, find_link
from knowledge.models import all_models, find_model
from knowledge.names import lookup


@pytest.mark.parametrize(
    ("asked", "model_id"),
    [
        ("llama 3 70b", "meta-llama/Meta-Llama-3-70B"),
        ("llama3-70b", "meta-llama/Meta-Llama-3-70B"),
        ("Llama-3.1-70B-Instruct", "meta-llama/Llama-3.1-70B"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B"),
        ("llama3.1:8b", "meta-llama/Llama-3.1-8B"),
        ("LLAMA3_8B", "meta-llama/Meta-Llama-3-8B"),
        ("LLAMA3.1_405B", "meta-llama/Llama-3.1-405B"),
        ("qwen2.5 32b", "Qwen/Qwen2.5-32B"),
        ("Qwen3-30B-A3B-Instruct-2507", "Qwen/Qwen3-30B-A3B"),
        ("Qwen3_235B_a22b", "Qwen/Qwen3-235B-A22B"),
        ("qwen-1_8b-chat", "Qwen/Qwen-1_8B"),
        ("gpt oss 120b", "openai/gpt-oss-120b"),
        ("gemma-2-9b-it", "google/gemma-2-9b"),
        ("mixtral 8x7", "mistralai/Mixtral-8x7B-v0.1"),
        ("Mistral-7B-v0.2", "mistralai/Mistral-7B-Instruct-v0.2"),
        ("code llama 34b", "codellama/CodeLlama-34b-hf"),
        ("llama-3 70 billion", "meta-llama/Meta-Llama-3-70B"),
        ("GPT-2 XL 1.5B", "openai-community/gpt2-xl"),
        ("chatglm3-6b-32k", "THUDM/chatglm3-6b"),
        ("baichuan2-13b-chat", "baichuan-inc/Baichuan2-13B-Base"),
        ("gpt_bigcode-santacoder", "bigcode/gpt_bigcode-santacoder"),
        ("tiny-llama", "TinyLlama/TinyLlama-1.1B-Chat-v1.0"),
        ("huggyllama/llama-7b", "huggyllama/llama-7b"),
        ("01-ai/Yi-34B-Chat", "01-ai/Yi-34B"),
        ("llama 3.2 vision 11b", "meta-llama/Llama-3.2-11B-Vision"),
        ("llama-3-8b-Instruct-262k", "meta-llama/Meta-Llama-3-8B"),
    ],
)
def test_usual_spellings_of_models_resolve_without_remark(asked: str, model_id: str) -> None:
    match = find_model(asked)
    assert (match.value.id, match.note) == (model_id, None)


@pytest.mark.parametrize(
    ("asked", "model_id", "alternative"),
    [
        ("llama 70b", "meta-llama/Llama-3.1-70B", "meta-llama/Llama-2-70b-hf"),
        ("mistral", "mistralai/Mistral-7B-v0.3", "mistralai/Mistral-7B-v0.1"),
        ("qwen2.5", "Qwen/Qwen2.5-7B", "Qwen/Qwen2.5-32B"),
        ("llama 3.2", "meta-llama/Llama-3.2-3B", "meta-llama/Llama-3.2-1B"),
        ("gemma 27b", "google/gemma-3-27b-pt", "google/gemma-2-27b"),
        ("qwen-7b-chat", "Qwen/Qwen-7B", "Qwen/Qwen2.5-7B"),
    ],
)
def test_ambiguous_models_take_a_default_and_say_so(asked: str, model_id: str, alternative: str) -> None:
    match = find_model(asked)
    assert match.value.id == model_id
    assert alternative in match.alternatives
    assert match.note is not None
    assert asked in match.note
    assert "could also mean" in match.note


@pytest.mark.parametrize(
    ("asked", "model_id"),
    [
        ("lama 3 8b", "meta-llama/Meta-Llama-3-8B"),
        ("mistrall 7b", "mistralai/Mistral-7B-v0.3"),
        ("falcon 180", "tiiuae/falcon-180B"),
        ("70b llama 2", "meta-llama/Llama-2-70b-hf"),
        ("vicuna 7b", "meta-llama/Llama-2-7b-hf"),
        ("unsloth/llama-3-8b-bnb-4bit", "meta-llama/Meta-Llama-3-8B"),
        ("TheBloke/Mistral-7B-v0.1-GPTQ", "mistralai/Mistral-7B-v0.1"),
        ("Qwen2.5-7B-Instruct-AWQ", "Qwen/Qwen2.5-7B"),
        ("llama3.1:8b-instruct-q4_K_M", "meta-llama/Llama-3.1-8B"),
        ("Llama-3.1-8B-Instruct-FP8", "meta-llama/Llama-3.1-8B"),
        ("deepseek-r1:70b", "deepseek-ai/DeepSeek-R1-Distill-Llama-70B"),
        ("Yi-1.5-9B-Chat", "01-ai/Yi-9B"),
    ],
)
def test_a_guess_is_never_silent(asked: str, model_id: str) -> None:
    match = find_model(asked)
    assert match.value.id == model_id
    assert match.note


@pytest.mark.parametrize(
    "asked",
    [
        "llama 4 70b",
        "llama-3.1-9b",
        "llama 3.1 13b",
        "gpt-5",
        "gpt 4",
        "gpt-4o",
        "claude",
        "gemini 2.5",
        "qwen 9.9",
        "grok 2",
        "mistral 8b v0.1",
        "gpt2 xl 3b",
        "",
        "  ",
        "x" * 100_000,
        "\x00\xff\x01",
        "'; drop table models; --",
    ],
)
def test_an_unknown_model_is_an_error_and_not_its_neighbour(asked: str) -> None:
    with pytest.raises(UnknownName) as problem:
        find_model(asked)
    assert problem.value.field == "model"


def test_the_error_names_the_nearest_models() -> None:
    with pytest.raises(UnknownName) as problem:
        find_model("llama-3.1-9b")
    assert problem.value.candidates[0] == "meta-llama/Llama-3.1-8B"


@pytest.mark.parametrize(
    ("asked", "gpu_id"),
    [
        ("4090", "RTX-4090"),
        ("rtx4090", "RTX-4090"),
        ("NVIDIA GeForce RTX 4090 24GB", "RTX-4090"),
        ("3090 ti", "RTX-3090-Ti"),
        ("h100 sxm", "H100-SXM5"),
        ("H100 SXM5 80GB", "H100-SXM5"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM5"),
        ("H100 PCIe", "H100-PCIe"),
        ("H100 NVL", "H100-NVL"),
        ("H100 94GB", "H100-NVL"),
        ("H100-95.04GiB", "H100-SXM5-96GB"),
        ("A100-SXM4-40GB", "A100-SXM4-40GB"),
        ("NVIDIA A100 80GB PCIe", "A100-PCIe-80GB"),
        ("L40", "L40"),
        ("L40S", "L40S"),
        ("L4", "L4"),
        ("A10", "A10"),
        ("A10G", "A10G"),
        ("a6000", "RTX-A6000"),
        ("RTX 6000 Ada", "RTX-6000-Ada"),
        ("B200 192GB", "B200-SXM"),
        ("gb200 nvl72", "GB200"),
        ("MI 300X", "MI300X"),
        ("V100-PCIE-16GB", "V100-PCIe-16GB"),
        ("dgx spark", "GB10"),
        ("TPU v7x (Ironwood)", "TPU-v7x"),
    ],
)
def test_usual_spellings_of_gpus_resolve_without_remark(asked: str, gpu_id: str) -> None:
    match = find_gpu(asked)
    assert (match.value.id, match.note) == (gpu_id, None)


@pytest.mark.parametrize(
    ("asked", "gpu_id", "alternative"),
    [
        ("A100", "A100-SXM4-80GB", "A100-PCIe-40GB"),
        ("A100 80", "A100-SXM4-80GB", "A100-PCIe-80GB"),
        ("A100-80G", "A100-SXM4-80GB", "A100-PCIe-80GB"),
        ("A100 40GB", "A100-SXM4-40GB", "A100-PCIe-40GB"),
        ("a100 pcie", "A100-PCIe-80GB", "A100-PCIe-40GB"),
        ("h100", "H100-SXM5", "H100-NVL"),
        ("v100", "V100-SXM2-16GB", "V100-SXM2-32GB"),
        ("rtx 6000", "RTX-6000-Ada", "RTX-A6000"),
        ("4060 ti", "RTX-4060-Ti-16GB", "RTX-4060-Ti-8GB"),
        ("3060", "RTX-3060-12GB", "RTX-3060-8GB"),
        ("A100 SXM4", "A100-SXM4-80GB", "A100-SXM4-40GB"),
    ],
)
def test_ambiguous_gpus_take_a_default_and_say_so(asked: str, gpu_id: str, alternative: str) -> None:
    match = find_gpu(asked)
    assert match.value.id == gpu_id
    assert alternative in match.alternatives
    assert match.note is not None
    assert "could also mean" in match.note


@pytest.mark.parametrize(
    "asked", ["RTX 6090", "H300", "H100S", "A100X", "L400", "4090 laptop", "4090 sxm", "B400", "gpu", "80GB", "", "?"]
)
def test_an_unknown_gpu_is_an_error_and_not_its_neighbour(asked: str) -> None:
    with pytest.raises(UnknownName):
        find_gpu(asked)


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [("H100 141GB", "H200-SXM"), ("A100 60GB", "A100-SXM4-80GB"), ("4090 48GB", "RTX-4090"), ("L4 48GB", "L4")],
)
def test_memory_that_contradicts_the_card_is_said(asked: str, nearest: str) -> None:
    with pytest.raises(BadValue) as problem:
        find_gpu(asked)
    assert problem.value.code == "memory_contradicts_gpu"
    assert nearest in problem.value.candidates


@pytest.mark.parametrize(
    ("asked", "card", "count"), [("2x3090", "3090", 2), ("8xH100", "H100", 8), ("4 x a100", "a100", 4)]
)
def test_a_count_is_not_part_of_a_name(asked: str, card: str, count: int) -> None:
    with pytest.raises(UnknownName) as problem:
        find_gpu(asked)
    assert problem.value.hint is not None
    assert repr(card) in problem.value.hint
    assert f"n_gpus={count}" in problem.value.hint


def test_a_wrong_socket_is_said() -> None:
    match = find_gpu("H100 SXM4")
    assert match.value.id == "H100-SXM5"
    assert match.note == "'H100 SXM4' read as H100-SXM5, whose socket is SXM5."


def test_a_system_on_chip_takes_the_stated_memory() -> None:
    assert find_gpu("M4 Max 64GB").value.memory_bytes == 64 * 2**30
    with pytest.raises(BadValue):
        find_gpu("M4 Max 512GB")


@pytest.mark.parametrize(
    ("asked", "instance_type"),
    [
        ("p5.48xlarge", "p5.48xlarge"),
        ("P5.48XLARGE", "p5.48xlarge"),
        ("ND H100 v5", "Standard_ND96isr_H100_v5"),
        ("nd96isr h100 v5", "Standard_ND96isr_H100_v5"),
        ("a3-highgpu-8g", "a3-highgpu-8g"),
        ("a3 mega", "a3-megagpu-8g"),
        ("gpu_8x_h100_sxm5", "gpu_8x_h100_sxm5"),
        ("BM.GPU.H100.8", "BM.GPU.H100.8"),
    ],
)
def test_machine_types_resolve(asked: str, instance_type: str) -> None:
    match = find_instance(asked)
    assert (match.value.instance_type, match.note) == (instance_type, None)


def test_a_family_of_machines_takes_the_largest_and_says_so() -> None:
    match = find_instance("aws p5")
    assert match.value.instance_type == "p5.48xlarge"
    assert match.note is not None


@pytest.mark.parametrize("asked", ["p5.47xlarge", "h100", "p6", ""])
def test_an_unknown_machine_type_is_an_error(asked: str) -> None:
    with pytest.raises(UnknownName):
        find_instance(asked)


@pytest.mark.parametrize(
    ("asked", "link_id"),
    [
        ("NDR", "InfiniBand-NDR"),
        ("IB NDR", "InfiniBand-NDR"),
        ("hdr200", "InfiniBand-HDR"),
        ("200g infiniband", "InfiniBand-HDR"),
        ("100 gbe", "RoCE-100GbE"),
        ("25gbe", "Ethernet-25GbE"),
        ("10 GbE", "Ethernet-10GbE"),
        ("NVLink4", "NVLink-4"),
        ("nvlink 5.0", "NVLink-5"),
        ("PCIe 4.0", "PCIe-4-x16"),
        ("pcie gen5 x16", "PCIe-5-x16"),
    ],
)
def test_links_resolve(asked: str, link_id: str) -> None:
    match = find_link(asked)
    assert (match.value.id, match.note) == (link_id, None)


def test_a_bare_kind_of_link_takes_a_default_and_says_so() -> None:
    match = find_link("infiniband")
    assert match.value.id == "InfiniBand-NDR"
    assert "InfiniBand-HDR" in match.alternatives


@pytest.mark.parametrize("asked", ["2.5GbE", "nvlink 7", "token ring"])
def test_an_unknown_link_is_an_error(asked: str) -> None:
    with pytest.raises(UnknownName):
        find_link(asked)


def test_every_id_finds_itself_without_remark() -> None:
    for model in all_models():
        assert (find_model(model.id).value.id, find_model(model.id).note) == (model.id, None)
    for gpu in all_gpus():
        assert find_gpu(gpu.id).value.id == gpu.id
    for machine in all_instances():
        assert find_instance(f"{machine.provider} {machine.instance_type}").value == machine
    for link in all_links():
        assert find_link(link.id).value.id == link.id


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60))
def test_any_text_gives_a_match_or_one_problem(text: str) -> None:
    for find in (find_model, find_gpu, find_instance, find_link):
        with contextlib.suppress(InputProblem):  # anything else would be a crash
            find(text)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([m.id.rsplit("/", 1)[-1] for m in all_models()]), st.sampled_from([" ", "-", "_"]), st.booleans()
)
def test_separators_and_case_do_not_change_what_is_found(name: str, separator: str, upper: bool) -> None:
    again = name.replace("-", separator)
    again = again.upper() if upper else again
    assert find_model(again).value.id == find_model(name).value.id


def test_a_size_of_nothing_names_no_model() -> None:
    assert lookup("models", "gpt-2 xl 0b") is None
