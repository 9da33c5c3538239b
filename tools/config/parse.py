"""From a pasted training configuration to workload arguments, with what was read, ignored and not understood."""

from __future__ import annotations

from typing import Any

from tools.config.flatten import Setting, settings_of
from tools.config.handlers import Handlers, ParsedConfig


def parse_training_config(given: str | dict[str, Any]) -> ParsedConfig:
    """Read a configuration. Raises BadValue if nothing in it is a setting."""
    found = settings_of(given)
    state = _State(ParsedConfig(dialect=_dialect(found, given)))
    for setting in found:
        try:
            state.take(setting)
        except (TypeError, ValueError, AttributeError):
            state.parsed.not_understood.append(setting.name)
    return state.finish()


_DIALECTS: tuple[tuple[str, frozenset[str]], ...] = (
    ("megatron", frozenset({"tensor_model_parallel_size", "use_distributed_optimizer", "num_query_groups"})),
    ("torchtune", frozenset({"_component_"})),
    ("llama-factory", frozenset({"finetuning_type", "cutoff_len", "stage"})),
    ("axolotl", frozenset({"base_model", "sequence_len", "sample_packing", "lora_target_linear"})),
    ("deepspeed", frozenset({"zero_optimization", "train_micro_batch_size_per_gpu", "zero_stage"})),
    ("trl", frozenset({"model_name_or_path", "per_device_train_batch_size", "use_peft", "max_seq_length"})),
    ("accelerate", frozenset({"distributed_type", "mixed_precision", "num_processes"})),
)
_FRAMEWORK = {
    "megatron": "megatron", "torchtune": "torchtune", "llama-factory": "llama-factory", "axolotl": "axolotl",
    "trl": "hf", "accelerate": "hf", "deepspeed": "deepspeed",
}  # fmt: skip


def _dialect(found: list[Setting], given: str | dict[str, Any]) -> str:
    keys = {part for setting in found for part in setting.path}
    text = given.lower() if isinstance(given, str) else ""
    if "sfttrainer" in text or "sftconfig" in text or "dpoconfig" in text or "grpoconfig" in text:
        return "trl"
    scores = [(len(keys & marks), name) for name, marks in _DIALECTS]
    best = max(scores, key=lambda pair: pair[0])
    return best[1] if best[0] else "settings"


class _State(Handlers):
    """Joins settings that depend on each other once all are read."""

    def finish(self) -> ParsedConfig:
        """Join settings that only mean something together."""
        arguments, seen = self.parsed.arguments, self.seen
        adapter = seen.get("adapter")
        quantised = seen.get("4bit")
        if adapter or (quantised and "lora_rank" in arguments):
            base = "qlora" if quantised or adapter == "qlora" else "dora" if seen.get("dora") else "lora"
            if arguments.get("method") in (None, "full", "lora"):
                arguments["method"] = base
        elif "lora_rank" in arguments and arguments.get("method") in (None, "full") and seen.get("full") is None:
            arguments["method"] = "lora"
        if quantised and "precision" not in arguments:
            arguments["precision"] = quantised
        self._precision(arguments, seen)
        self._gpus(arguments, seen)
        if "sharding" not in arguments and seen.get("zero_stage") is not None:
            arguments["sharding"] = {0: "ddp", 1: "zero1", 2: "zero2", 3: "zero3"}.get(int(seen["zero_stage"]), "zero3")
        if seen.get("global_batch") and arguments.get("n_gpus") and arguments.get("micro_batch"):
            split = arguments.get("tp", 1) * arguments.get("pp", 1) * arguments.get("cp", 1)
            passes = seen["global_batch"] * split // (arguments["n_gpus"] * arguments["micro_batch"])
            arguments.setdefault("grad_accum", max(1, passes))
        framework = _FRAMEWORK.get(self.parsed.dialect)
        if seen.get("unsloth"):
            framework = "unsloth"
        if framework and "framework" not in arguments:
            arguments["framework"] = framework
        if self.shape and "model" not in arguments:
            self._custom_model(arguments)
        return self.parsed

    def _precision(self, arguments: dict[str, Any], seen: dict[str, Any]) -> None:
        if "precision" in arguments:
            return
        half = "bf16" if seen.get("bf16") else "fp16" if seen.get("fp16") else None
        loaded = seen.get("loaded")
        adapter = arguments.get("method") in ("lora", "qlora", "dora") or "lora_rank" in arguments
        if seen.get("fp8"):
            arguments["precision"] = "fp8"
        elif self.parsed.dialect == "torchtune" and loaded:
            arguments["precision"] = loaded
        elif loaded in ("bf16", "fp16"):
            arguments["precision"] = loaded  # weights loaded in 16 bits stay so under the Trainer's bf16 flag
        elif half:
            arguments["precision"] = half if adapter else f"{half}_mixed"
        elif loaded == "fp32":
            arguments["precision"] = "fp32"

    def _gpus(self, arguments: dict[str, Any], seen: dict[str, Any]) -> None:
        per_node, nodes = seen.get("per_node"), seen.get("nodes", 1)
        if "n_gpus" not in arguments and per_node:
            arguments["n_gpus"] = int(per_node) * int(nodes)

    def _custom_model(self, arguments: dict[str, Any]) -> None:
        shape = self.shape
        layers, hidden = shape.get("n_layers"), shape.get("hidden_size")
        if not layers or not hidden:
            return
        heads = shape.get("n_heads", max(1, hidden // 128))
        kv = shape.get("n_kv_heads", heads)
        gated = bool(shape.pop("swiglu", False))
        ffn = shape.get("ffn_size", 4 * hidden)
        vocab = shape.get("vocab_size", 128256)
        per_block = 2 * hidden * hidden * (1 + kv / heads) + (3 if gated else 2) * hidden * ffn * max(
            1, shape.get("n_experts", 1)
        )
        tied = shape.setdefault("tied", True)
        params = layers * per_block + vocab * hidden * (1 if tied else 2)
        arguments["model"] = {"params_b": params / 1e9, **shape}
