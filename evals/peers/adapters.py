# mypy: ignore-errors
"""Run inside the peers' environment: one JSON job a line in, one line of predictions out. Imports nothing of ours.

A prediction is bytes per GPU, or null with the reason. Where a row counted live tensors only (``live``), the overhead
that a peer itself lists apart (context, fragmentation, margin) is taken off its total. Units are each peer's own,
converted here: GiB where its source divides by 1024**3, GB where by 1e9.
"""

import contextlib
import io
import json
import sys
import time

GIB = 2.0**30
MIB = 2.0**20


class Cannot(Exception):
    """The peer has no way to express this job."""


def ftuneai(job):
    """Bytes per GPU; all methods and sharding on dense models. Raises Cannot for tensor, pipeline and context
    parallelism.
    """
    from ftuneai.core.memory import MemoryEstimator
    from ftuneai.core.models import FineTuneMethod as Method
    from ftuneai.core.models import LoRATarget, ModelSpec, OptimizerType, Quantization, ShardingStrategy, TrainingConfig

    one_of(job, methods=("full", "lora", "qlora"))
    if job["tp"] * job["pp"] * job["cp"] > 1:
        raise Cannot("tensor, pipeline and context parallelism")
    sharding = {"none": "none", "ddp": "none", "zero1": "zero_1", "zero2": "zero_2", "zero3": "zero_3", "fsdp": "fsdp"}
    optimizer = {"adamw": "adamw", "adamw_8bit": "adam_8bit", "paged_adamw_8bit": "adam_8bit", "sgd": "sgd",
                 "adafactor": "adafactor"}  # fmt: skip
    if job["sharding"] not in sharding or job["optimizer"] not in optimizer:
        raise Cannot("this sharding or optimizer")
    spec = ModelSpec(
        name="m", parameters=job["params"], hidden_size=job["hidden"], num_layers=job["layers"],
        num_attention_heads=job["heads"], num_kv_heads=job["kv_heads"], intermediate_size=job["ffn"],
        vocab_size=job["vocab"], max_seq_length=max(job["seq_len"], 4096),
    )  # fmt: skip
    config = TrainingConfig(
        model="m", method=Method(job["method"]), quantization=Quantization("4bit" if job["method"] == "qlora" else "none"),
        batch_size=job["micro_batch"], seq_length=job["seq_len"], gradient_checkpointing=job["checkpointing"] != "none",
        optimizer=OptimizerType(optimizer[job["optimizer"]]), lora_rank=job["lora_rank"] or 16, lora_alpha=32,
        lora_target=LoRATarget("all_linear" if job["all_linear"] else "attention"),
        flash_attention=job["attention"] != "eager", sharding=ShardingStrategy(sharding[job["sharding"]]),
        num_gpus=job["n_gpus"],
    )  # fmt: skip
    done = MemoryEstimator(spec, config).estimate()
    return (done.total_gb - (done.overhead_gb if job["live"] else 0)) * GIB


def canifinetune(job):
    """Bytes on one GPU; full, LoRA and QLoRA. Raises Cannot for other methods, optimizers and several GPUs."""
    from canifinetune.estimator.memory import EstimateRequest, estimate
    from canifinetune.estimator.model_metadata import register_known_model

    one_of(job, methods=("full", "lora", "qlora"))
    one_gpu(job)
    optimizer = {
        "adamw": "adamw_torch",
        "adamw_8bit": "adamw_8bit",
        "paged_adamw_8bit": "paged_adamw_8bit",
        "sgd": "sgd",
    }
    if job["optimizer"] not in optimizer:
        raise Cannot("this optimizer")
    register_known_model(
        "peer/m",
        {"family": "llama", "hidden_size": job["hidden"], "num_hidden_layers": job["layers"],
         "num_attention_heads": job["heads"], "num_key_value_heads": job["kv_heads"], "intermediate_size": job["ffn"],
         "vocab_size": job["vocab"], "tie_word_embeddings": job["tied"], "num_local_experts": max(1, job["experts"]),
         "num_experts_per_tok": max(1, job["top_k"]), "total_params": job["params"]},
    )  # fmt: skip
    request = EstimateRequest(
        model_id="peer/m", method=job["method"], seq_len=job["seq_len"], micro_batch_size=job["micro_batch"],
        base_dtype="fp32" if job["fp32_weights"] else "bf16", lora_rank=job["lora_rank"] or 16,
        lora_target_scope="all_linear" if job["all_linear"] else "attention",
        optimizer=optimizer[job["optimizer"]], gradient_checkpointing=job["checkpointing"] != "none",
        attention_implementation="eager" if job["attention"] == "eager" else "sdpa",
        loss_backend="liger" if job["fused_loss"] else "stock", use_liger_kernel=bool(job["fused_loss"]),
        gpu_vram_gb=job["gpu_gib"], use_network=False,
    )  # fmt: skip
    memory = estimate(request).memory
    beside = memory.safety_margin_gb + (memory.cuda_overhead_gb if job["live"] else 0)
    return (memory.total_estimated_gb - beside) * GIB


def llmcalculator(job):
    """Bytes on one GPU; full, LoRA and QLoRA, whose rank it does not ask. Raises Cannot for others and for several
    GPUs.
    """
    from llmcalculator import workloads
    from llmcalculator.estimate import estimate
    from llmcalculator.hardware.base import CPU, Accelerator, HardwareProfile
    from llmcalculator.models.spec import ModelSpec

    one_of(job, methods=("full", "lora", "qlora"))
    one_gpu(job)
    spec = ModelSpec(
        name="m", params=job["params"], n_layers=job["layers"], hidden_size=job["hidden"], n_heads=job["heads"],
        n_kv_heads=job["kv_heads"], max_context=1 << 20, vocab_size=job["vocab"], head_dim=job["head_dim"],
        active_params=job["active_params"],
    )  # fmt: skip
    hardware = HardwareProfile(
        cpu=CPU("c", 8, 16), ram_bytes=1 << 39, accelerators=[Accelerator("g", "nvidia", int(job["gpu_gib"] * GIB))]
    )
    by_method = {"full": "full", "lora": "lora", "qlora": "qlora"}
    key = by_method[job["method"]]
    workload = next(w for w in vars(workloads).values() if getattr(w, "key", "").startswith(key))
    done = estimate(spec, hardware, workload, context=job["seq_len"], batch=job["micro_batch"],
                             gradient_checkpointing=job["checkpointing"] != "none")  # fmt: skip
    return float(done.breakdown.total - (done.breakdown.overhead if job["live"] else 0))


def ml_memguard(job):
    """Bytes on one GPU; full, LoRA and QLoRA, always with AdamW. Raises Cannot for others and for several GPUs."""
    from memory_guard.estimator import FinetuneMethod, ModelArch, ModelSpec, TrainSpec, estimate_training_memory

    one_of(job, methods=("full", "lora", "qlora"))
    one_gpu(job)
    spec = ModelSpec(
        params=job["params"], hidden_dim=job["hidden"], num_heads=job["heads"], num_kv_heads=job["kv_heads"],
        num_layers=job["layers"], intermediate_dim=job["ffn"], bits=4 if job["method"] == "qlora" else 16,
        arch=ModelArch.MOE if job["experts"] else ModelArch.DENSE, num_experts=max(1, job["experts"]),
        num_active_experts=max(1, job["top_k"]),
    )  # fmt: skip
    train = TrainSpec(
        method=FinetuneMethod(job["method"]), batch_size=job["micro_batch"], seq_length=job["seq_len"],
        lora_rank=job["lora_rank"] or 16, lora_layers=job["layers"], lora_targets=7 if job["all_linear"] else 2,
        optimizer="adamw", grad_checkpoint=job["checkpointing"] != "none", mixed_precision=True,
        flash_attention=job["attention"] != "eager",
    )  # fmt: skip
    done = estimate_training_memory(model=spec, train=train)
    return (done.total_mb - (done.overhead_mb if job["live"] else 0)) * MIB


def vram_check(job):
    """Bytes of full training on one GPU, from the parameter count alone. Raises Cannot for anything else."""
    from vram_check.estimator import estimate

    one_of(job, methods=("full",))
    one_gpu(job)
    done = estimate(job["params"], job["micro_batch"], "fp32" if job["fp32_weights"] else "bf16", "adamw", True,
                    job["seq_len"])  # fmt: skip
    return float(done.total_bytes)


def llm_analysis(job):
    """Bytes per GPU of full training with ZeRO, tensor and pipeline parallelism. Raises Cannot for adapters, context
    parallelism and hybrid sharding.
    """
    from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis
    from llm_analysis.config import ModelConfig, ParallelismConfig, get_dtype_config_by_name, get_gpu_config_by_name

    one_of(job, methods=("full",))
    zero = {"none": DSZeRO.NONE, "ddp": DSZeRO.NONE, "zero1": DSZeRO.STAGE_1, "zero2": DSZeRO.STAGE_2,
            "zero3": DSZeRO.STAGE_3, "fsdp": DSZeRO.STAGE_3}  # fmt: skip
    if job["sharding"] not in zero or job["cp"] > 1:
        raise Cannot("this sharding or context parallelism")
    levels = {"none": ActivationRecomputation.NONE, "selective": ActivationRecomputation.SELECTIVE,
              "full": ActivationRecomputation.FULL}  # fmt: skip
    model = ModelConfig(
        name="m", num_layers=job["layers"], n_head=job["heads"], hidden_dim=job["hidden"], vocab_size=job["vocab"],
        max_seq_len=max(job["seq_len"], 4096), num_key_value_heads=job["kv_heads"], ffn_embed_dim=job["ffn"],
        expansion_ratio=job["ffn"] / job["hidden"], moe_num_experts=max(1, job["experts"]), moe_top_k=max(1, job["top_k"]),
    )  # fmt: skip
    data = max(1, job["n_gpus"] // (job["tp"] * job["pp"]))
    analysis = LLMAnalysis(
        model, get_gpu_config_by_name("h100-sxm-80gb"), get_dtype_config_by_name("w16a16e16"),
        ParallelismConfig(tp_size=job["tp"], pp_size=job["pp"], dp_size=data),
    )  # fmt: skip
    done = analysis.training(
        batch_size_per_gpu=job["micro_batch"], gradient_accumulation_steps=1, seq_len=job["seq_len"],
        activation_recomputation=levels[job["checkpointing"]], ds_zero=zero[job["sharding"]],
        flash_attn=job["attention"] != "eager", mlp_gated_linear_units=job["gated"],
    )  # fmt: skip
    states = done["weight_memory_per_gpu"] + done["optimizer_state_memory_per_gpu"] + done["gradient_memory_per_gpu"]
    return float(states + done["activation_memory_per_gpu"])


def train_in_silence(job):
    """Bytes on one GPU, by its multipliers for each method. Raises Cannot for other methods and several GPUs."""
    from tis.planner.estimator import ResourceEstimator
    from tis.planner.models import ModelSpec, TrainingSpec, Workload

    one_of(job, methods=("full", "lora", "qlora"))
    one_gpu(job)
    model = ModelSpec(name="m", params=job["params"], num_layers=job["layers"], num_heads=job["heads"],
                      num_kv_heads=job["kv_heads"], hidden_dim=job["hidden"], vocab_size=job["vocab"])  # fmt: skip
    training = TrainingSpec(method=job["method"], batch_size=job["micro_batch"], seq_len=job["seq_len"],
                            precision="fp32" if job["fp32_weights"] else "bf16")  # fmt: skip
    return ResourceEstimator().estimate(Workload(model=model, training=training)).required_vram_gb * GIB


def deepspeed(job):
    """Bytes per GPU of the model states of ZeRO 2 and 3 only, as its estimators say of themselves. Raises Cannot for
    other layouts and methods.
    """
    one_of(job, methods=("full",))
    if job["tp"] * job["pp"] * job["cp"] > 1 or job["sharding"] not in ("zero2", "zero3", "none", "fsdp"):
        raise Cannot("this layout")
    gpus = 8 if job["n_gpus"] % 8 == 0 else job["n_gpus"]
    nodes = max(1, job["n_gpus"] // gpus)
    if job["sharding"] == "zero2" or job["n_gpus"] == 1:
        from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs as needs

        return float(needs(job["params"], gpus, nodes, cpu_offload=False)[1])
    from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs as needs3

    largest = job["hidden"] * job["vocab"]
    return float(
        needs3(job["params"], largest, gpus, nodes, cpu_offload=False, cpu_offload_params=False, zero_init=True)[1]
    )


def accelerate(job):
    """Bytes of full training with Adam at batch size 1 on one GPU, from the model's total size. Raises Cannot for
    anything else.
    """
    from accelerate.commands.estimate import estimate_training_usage

    one_of(job, methods=("full",))
    one_gpu(job)
    # Its function multiplies the bytes of a model on the meta device, per phase, for a mixed-precision mode.
    size = job["params"] * 4
    usage = estimate_training_usage(size, "float32" if job["fp32_weights"] else "bfloat16")
    return float(max(usage.values()))


def sixteen_bytes(job):
    """The rule of thumb: 16 bytes a trained parameter, cut by the sharding; 2 a frozen one, half in 4 bits."""
    shards = job["n_gpus"] if job["sharding"] in ("zero3", "fsdp") else 1
    if job["method"] == "full":
        return job["params"] * 16.0 / shards / (job["tp"] * job["pp"])
    return job["params"] * (0.5 if job["method"] == "qlora" else 2.0) / shards


def one_of(job, methods):
    """Let the job's method pass if it is one of these. Raises Cannot for any other."""
    if job["method"] not in methods:
        raise Cannot(f"method {job['method']}")


def one_gpu(job):
    """Let a job of one GPU pass; raises Cannot for several, since the peer has no way to say so."""
    if job["n_gpus"] > 1:
        raise Cannot("several GPUs")


PEERS = {
    "ftuneai": ftuneai, "canifinetune": canifinetune, "llmcalculator": llmcalculator, "ml-memguard": ml_memguard,
    "vram-check": vram_check, "llm-analysis": llm_analysis, "train-in-silence": train_in_silence,
    "deepspeed": deepspeed, "accelerate": accelerate, "rule of thumb": sixteen_bytes,
}  # fmt: skip


def ask(peer, jobs):
    """The predictions of one peer, with the seconds of the first and the mean of the later calls."""
    answers, times = [], []
    for job in jobs:
        started = time.perf_counter()
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                value, why = PEERS[peer](job), None
        except Cannot as error:
            value, why = None, str(error)
        except ImportError as error:
            return {"peer": peer, "missing": str(error)}
        except Exception as error:  # a peer's own failure on a row is part of its record
            value, why = None, f"{type(error).__name__}: {str(error)[:120]}"
        else:
            times.append(time.perf_counter() - started)
        answers.append({"id": job["id"], "bytes": value, "why": why})
    later = times[1:]
    return {
        "peer": peer, "answers": answers, "first_seconds": times[0] if times else None,
        "mean_seconds": sum(later) / len(later) if later else None,
    }  # fmt: skip


if __name__ == "__main__":
    jobs = [json.loads(line) for line in sys.stdin]
    out = sys.stdout
    for name in PEERS:
        out.write(json.dumps(ask(name, jobs)) + "\n")
        out.flush()
