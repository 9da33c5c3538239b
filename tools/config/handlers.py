"""What a single setting of a training configuration means: one method a key that is not a plain name or number."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from tools.config.flatten import Setting
from tools.config.keys import COUNTS, IGNORED, IGNORED_PREFIXES, OPTIMIZERS, SIMPLE
from tools.memory.shapes import TARGET_NAMES


@dataclass(slots=True)
class ParsedConfig:
    """Arguments of ``WorkloadInput``, and every setting's fate."""

    dialect: str = "settings"
    arguments: dict[str, Any] = field(default_factory=dict)
    read: list[tuple[str, str, str]] = field(default_factory=list)  # setting, value, argument
    ignored: list[str] = field(default_factory=list)
    not_understood: list[str] = field(default_factory=list)


class Handlers:
    """What has been understood so far; settings that only mean something together wait in ``seen`` and ``shape``."""

    def __init__(self, parsed: ParsedConfig) -> None:
        self.parsed = parsed
        self.seen: dict[str, Any] = {}
        self.shape: dict[str, Any] = {}

    def take(self, setting: Setting) -> None:
        """Read one setting into ``parsed.arguments`` or a waiting place, else file it as ignored or not understood.
        None and "auto" are the framework's own choice, so they are ignored.
        """
        key, value = setting.key, setting.value
        if value is None or (isinstance(value, str) and value.lower() == "auto"):
            self.parsed.ignored.append(f"{setting.name} (left to the framework)")
            return
        handler = getattr(self, f"_on_{key}", None)
        if key == "_component_":
            self._component(setting)
        elif handler is not None:
            handler(setting)
        elif key in COUNTS:
            self._count(setting, COUNTS[key])
        elif key in SIMPLE:
            self._set(setting, SIMPLE[key], value)
        elif key in IGNORED or key.startswith(IGNORED_PREFIXES) or any(part in IGNORED for part in setting.path):
            self.parsed.ignored.append(setting.name)
        else:
            self.parsed.not_understood.append(setting.name)

    # ---- handlers of single keys ------------------------------------------------------------------------------------

    def _on_adapter(self, setting: Setting) -> None:
        self._note(setting, "adapter", str(setting.value).lower(), "method")

    def _on_finetuning_type(self, setting: Setting) -> None:
        kind = str(setting.value).lower()
        if kind == "full":
            self._set(setting, "method", self.parsed.arguments.get("method", "full"))
            self.seen["full"] = True
        else:
            self._note(setting, "adapter", kind, "method")

    def _on_use_peft(self, setting: Setting) -> None:
        if setting.value:
            self._note(setting, "adapter", "lora", "method")

    def _on_stage(self, setting: Setting) -> None:
        if setting.path[:-1] and "zero" in setting.path[-2]:
            self._note(setting, "zero_stage", int(setting.value), "sharding")
            return
        names = {"sft": None, "pt": "pretrain", "rm": "reward", "ppo": "ppo", "dpo": "dpo", "kto": "kto"}
        method = names.get(str(setting.value).lower())
        if method:
            self._set(setting, "method", method)
        else:
            self.parsed.read.append((setting.name, str(setting.value), "method"))

    def _on_rl(self, setting: Setting) -> None:
        method = str(setting.value).lower()
        self._set(setting, "method", {"simpo": "orpo", "ipo": "dpo"}.get(method, method))

    def _on_zero_stage(self, setting: Setting) -> None:
        self._note(setting, "zero_stage", int(setting.value), "sharding")

    def _on_deepspeed(self, setting: Setting) -> None:
        match = re.search(r"(?:zero|z|stage)[_-]?([0-3])", str(setting.value).lower())
        if match:
            self._note(setting, "zero_stage", int(match[1]), "sharding")
            if "offload" in str(setting.value).lower():
                self.parsed.arguments.setdefault("cpu_offload", "optimizer")
        else:
            self.parsed.not_understood.append(setting.name)

    def _on_fsdp(self, setting: Setting) -> None:
        text = " ".join(setting.value) if isinstance(setting.value, list) else str(setting.value)
        if text.lower() in ("false", ""):
            return
        self._strategy(setting, text)

    def _on_fsdp_sharding_strategy(self, setting: Setting) -> None:
        self._strategy(setting, str(setting.value))

    def _on_fsdp_version(self, setting: Setting) -> None:
        self._set(setting, "sharding", self.parsed.arguments.get("sharding", "fsdp"))

    def _on_distributed_type(self, setting: Setting) -> None:
        kind = str(setting.value).upper()
        if kind in ("FSDP", "MULTI_GPU"):
            self._set(setting, "sharding", "fsdp" if kind == "FSDP" else "ddp")
        else:
            self.parsed.read.append((setting.name, kind, "sharding"))

    def _on_device(self, setting: Setting) -> None:
        parent = setting.path[-2] if len(setting.path) > 1 else ""
        if parent in ("offload_optimizer", "offload_param"):
            self._offload(setting, "optimizer" if parent == "offload_optimizer" else "all", str(setting.value))
        else:
            self.parsed.ignored.append(setting.name)

    def _on_offload_optimizer_device(self, setting: Setting) -> None:
        self._offload(setting, "optimizer", str(setting.value))

    def _on_offload_param_device(self, setting: Setting) -> None:
        self._offload(setting, "all", str(setting.value))

    def _on_fsdp_offload_params(self, setting: Setting) -> None:
        self._offload(setting, "all", "cpu" if setting.value else "none")

    _on_fsdp_cpu_offload = _on_fsdp_offload_params

    def _on_enabled(self, setting: Setting) -> None:
        parent = setting.path[-2] if len(setting.path) > 1 else ""
        if parent in ("bf16", "fp16", "fp8") and setting.value:
            self._note(setting, parent, True, "precision")
        else:
            self.parsed.ignored.append(setting.name)

    def _on_bf16(self, setting: Setting) -> None:
        if setting.value:
            self._note(setting, "bf16", True, "precision")

    def _on_fp16(self, setting: Setting) -> None:
        if setting.value:
            self._note(setting, "fp16", True, "precision")

    def _on_pure_bf16(self, setting: Setting) -> None:
        if setting.value:
            self._set(setting, "precision", "bf16")

    def _on_mixed_precision(self, setting: Setting) -> None:
        kind = str(setting.value).lower()
        if kind in ("bf16", "fp16", "fp8"):
            self._note(setting, kind, True, "precision")
        elif kind == "no":
            self.parsed.ignored.append(setting.name)

    def _on_dtype(self, setting: Setting) -> None:
        kind = str(setting.value).lower().removeprefix("torch.")
        names = {"bf16": "bf16", "bfloat16": "bf16", "fp16": "fp16", "float16": "fp16", "fp32": "fp32",
                 "float32": "fp32"}  # fmt: skip
        if kind in names:
            self._note(setting, "loaded", names[kind], "precision")
        else:
            self.parsed.not_understood.append(setting.name)

    _on_torch_dtype = _on_dtype

    def _on_load_in_4bit(self, setting: Setting) -> None:
        if setting.value:
            self._note(setting, "4bit", "nf4", "precision")

    def _on_load_in_8bit(self, setting: Setting) -> None:
        if setting.value:
            self._note(setting, "4bit", "int8", "precision")

    def _on_quantization_bit(self, setting: Setting) -> None:
        self._note(setting, "4bit", {4: "nf4", 8: "int8"}.get(setting.value, "nf4"), "precision")

    def _on_use_dora(self, setting: Setting) -> None:
        self.seen["dora"] = bool(setting.value)

    _on_peft_use_dora = _on_use_dora

    def _on_gradient_checkpointing(self, setting: Setting) -> None:
        value = "full" if setting.value and setting.value != "false" else "none"
        self._set(setting, "activation_checkpointing", value)

    _on_enable_activation_checkpointing = _on_gradient_checkpointing
    _on_fsdp_activation_checkpointing = _on_gradient_checkpointing
    _on_activation_checkpointing = _on_gradient_checkpointing

    def _on_disable_gradient_checkpointing(self, setting: Setting) -> None:
        self._set(setting, "activation_checkpointing", "none" if setting.value else "full")

    def _on_recompute_granularity(self, setting: Setting) -> None:
        self._set(setting, "activation_checkpointing", str(setting.value).lower())

    def _on_attn_implementation(self, setting: Setting) -> None:
        text = str(setting.value).lower()
        kind = "eager" if "eager" in text else "sdpa" if "sdpa" in text else "flash"
        self._set(setting, "attention", kind)

    _on_flash_attn = _on_attn_implementation

    def _on_flash_attention(self, setting: Setting) -> None:
        if setting.value:
            self._set(setting, "attention", "flash")

    _on_use_flash_attn = _on_flash_attention

    def _on_sdp_attention(self, setting: Setting) -> None:
        if setting.value:
            self._set(setting, "attention", "sdpa")

    def _on_use_liger_kernel(self, setting: Setting) -> None:
        if setting.value:
            self._set(setting, "fused_loss", True)

    _on_enable_liger_kernel = _on_use_liger_kernel
    _on_use_liger = _on_use_liger_kernel
    _on_liger_fused_linear_cross_entropy = _on_use_liger_kernel
    _on_cut_cross_entropy = _on_use_liger_kernel

    def _on_use_unsloth(self, setting: Setting) -> None:
        if setting.value:
            self._note(setting, "unsloth", True, "framework")

    def _on_optim(self, setting: Setting) -> None:
        text = str(setting.value).lower()
        for pattern, name in OPTIMIZERS:
            if pattern in text:
                self._set(setting, "optimizer", name)
                return
        self.parsed.not_understood.append(setting.name)

    _on_optimizer = _on_optim

    def _on_lora_target_linear(self, setting: Setting) -> None:
        if setting.value:
            self._set(setting, "lora_targets", ["all-linear"])

    def _on_lora_target_modules(self, setting: Setting) -> None:
        names = setting.value if isinstance(setting.value, list) else re.split(r"[,\s]+", str(setting.value))
        known = [str(name) for name in names if str(name).lower() in TARGET_NAMES]
        unknown = [str(name) for name in names if str(name).lower() not in TARGET_NAMES]
        if known:
            self._set(setting, "lora_targets", known)
        if unknown:
            self.parsed.not_understood.append(f"{setting.name}: {', '.join(unknown[:5])}")

    _on_target_modules = _on_lora_target_modules
    _on_lora_target = _on_lora_target_modules

    def _on_lora_attn_modules(self, setting: Setting) -> None:
        names = [str(name) for name in setting.value] if isinstance(setting.value, list) else []
        targets = [name if name != "output_proj" else "o_proj" for name in names]
        self.seen["adapter"] = self.seen.get("adapter") or "lora"
        self._set(setting, "lora_targets", [*targets, *self.parsed.arguments.get("lora_targets", [])])

    def _on_apply_lora_to_mlp(self, setting: Setting) -> None:
        if setting.value:
            mlp = ["gate_proj", "up_proj", "down_proj"]
            self._set(setting, "lora_targets", [*self.parsed.arguments.get("lora_targets", []), *mlp])

    def _on_use_distributed_optimizer(self, setting: Setting) -> None:
        if setting.value:
            self._set(setting, "sharding", "zero1")

    def _on_global_batch_size(self, setting: Setting) -> None:
        self.seen["global_batch"] = int(setting.value)
        self.parsed.read.append((setting.name, str(setting.value), "grad_accum"))

    _on_train_batch_size = _on_global_batch_size

    def _on_num_layers(self, setting: Setting) -> None:
        self._shape(setting, "n_layers")

    def _on_hidden_size(self, setting: Setting) -> None:
        self._shape(setting, "hidden_size")

    def _on_ffn_hidden_size(self, setting: Setting) -> None:
        self._shape(setting, "ffn_size")

    def _on_num_attention_heads(self, setting: Setting) -> None:
        self._shape(setting, "n_heads")

    def _on_num_query_groups(self, setting: Setting) -> None:
        self._shape(setting, "n_kv_heads")

    def _on_vocab_size(self, setting: Setting) -> None:
        self._shape(setting, "vocab_size")

    def _on_num_experts(self, setting: Setting) -> None:
        self._shape(setting, "n_experts")

    def _on_moe_router_topk(self, setting: Setting) -> None:
        self._shape(setting, "experts_per_token")

    def _on_swiglu(self, setting: Setting) -> None:
        self.shape["swiglu"] = True
        self.parsed.read.append((setting.name, "true", "model"))

    def _on_untie_embeddings_and_output_weights(self, setting: Setting) -> None:
        self.shape["tied"] = False
        self.parsed.read.append((setting.name, "true", "model"))

    # ---- helpers ----------------------------------------------------------------------------------------------------

    def _component(self, setting: Setting) -> None:
        parent, text = setting.path[-2] if len(setting.path) > 1 else "", str(setting.value).lower()
        if parent == "model":
            name = text.rpartition(".")[2]
            if name.startswith(("lora_", "qlora_", "dora_")):
                self.seen["adapter"] = "qlora" if name.startswith("qlora") else "lora"
                if name.startswith("qlora"):
                    self.seen["4bit"] = "nf4"
                name = name.partition("_")[2]
            model = re.sub(r"(\d)_(\d)", r"\1.\2", name).replace("_", "-")
            self._set(setting, "model", re.sub(r"^(llama|qwen)(\d)", r"\1-\2", model))
        elif parent == "optimizer":
            self._on_optim(setting)
        elif parent == "loss" and ("linear" in text or "chunked" in text):
            self._set(setting, "fused_loss", "linear" in text)
        else:
            self.parsed.ignored.append(setting.name)

    def _strategy(self, setting: Setting, text: str) -> None:
        low = text.lower()
        sharding = "fsdp"
        if "shard_grad_op" in low or low == "2":
            sharding = "zero2"
        elif "no_shard" in low or low in ("3", "ddp"):
            sharding = "ddp"
        elif "hybrid" in low:
            sharding = "hsdp"
        self._set(setting, "sharding", sharding)
        if "offload" in low:
            self.parsed.arguments["cpu_offload"] = "all"

    def _offload(self, setting: Setting, what: str, device: str) -> None:
        if device.lower() in ("none", "false"):
            self.parsed.ignored.append(setting.name)
            return
        current = self.parsed.arguments.get("cpu_offload")
        value = "nvme" if device.lower() == "nvme" else "all" if "all" in (what, current) else "optimizer"
        self._set(setting, "cpu_offload", value)

    def _on_nproc_per_node(self, setting: Setting) -> None:
        self._note(setting, "per_node", int(setting.value), "n_gpus")

    _on_num_gpus = _on_nproc_per_node

    def _on_nnodes(self, setting: Setting) -> None:
        self._note(setting, "nodes", int(setting.value), "n_gpus")

    _on_num_nodes = _on_nnodes

    def _shape(self, setting: Setting, name: str) -> None:
        self.shape[name] = int(setting.value)
        self.parsed.read.append((setting.name, str(setting.value), "model"))

    def _count(self, setting: Setting, argument: str) -> None:
        try:
            value = int(float(str(setting.value).replace(",", "").replace("_", "")))
        except ValueError:
            self.parsed.not_understood.append(setting.name)
            return
        self._set(setting, argument, value)

    def _note(self, setting: Setting, name: str, value: Any, argument: str) -> None:
        self.seen[name] = value
        self.parsed.read.append((setting.name, str(setting.value), argument))

    def _set(self, setting: Setting, argument: str, value: Any) -> None:
        self.parsed.arguments[argument] = value
        self.parsed.read.append((setting.name, str(setting.value)[:80], argument))
