"""The home tab and the memory calculator. Pure."""

from __future__ import annotations

from typing import Any

from advisor.render import Sources, compose, render
from advisor.render import plain as as_plain
from integrations.slack.blocks import section
from integrations.slack.escape import cut, mrkdwn, plain
from tools.errors import InputProblem
from tools.result import ToolResult

STARTERS = (
    "what GPU for 70B QLoRA?",
    "can I full fine-tune Llama 3.1 8B on one H100?",
    "how long and how much to train a 1B model on 20B tokens on 8xA100?",
    "do I need InfiniBand for 2 nodes of 8xH100 training a 7B?",
    "cheapest H100 per hour right now?",
)
METHODS = ("full", "lora", "qlora", "pretrain", "dpo", "grpo")
CALCULATOR = "memory_calculator"
Block = dict[str, Any]


def home_view() -> dict[str, Any]:
    """The home tab's view: what the bot is for, questions to click, and the calculator's button."""
    blocks: list[Block] = [
        {"type": "header", "text": _text("Training advisor")},
        section("Ask me about machines for training: what fits, which GPU, how long, what it costs, whether the "
                "network suffices. Mention me in a channel, or write to me here. Every number is computed or dated."),
    ]  # fmt: skip
    blocks += [
        {
            "type": "section",
            "text": {"type": "mrkdwn", "text": mrkdwn(text)},
            "accessory": {"type": "button", "action_id": "ask_starter", "text": _text("Ask"), "value": text},
        }
        for text in STARTERS
    ]
    button = {"type": "button", "action_id": "open_calculator", "text": _text("Memory calculator"), "style": "primary"}
    blocks.append({"type": "actions", "elements": [button]})
    return {"type": "home", "blocks": blocks}


def calculator_view() -> dict[str, Any]:
    """The modal form of ``estimate_vram``'s main arguments; its block ids are the argument names."""
    return {
        "type": "modal",
        "callback_id": CALCULATOR,
        "title": _text("Memory calculator"),
        "submit": _text("Compute"),
        "close": _text("Close"),
        "blocks": [
            _field("model", "Model or size", "llama-3.1-8b, or 70B"),
            {
                "type": "input",
                "block_id": "method",
                "label": _text("Method"),
                "element": {
                    "type": "static_select",
                    "action_id": "value",
                    "options": [_option(name) for name in METHODS],
                    "initial_option": _option("qlora"),
                },
            },
            _field("seq_len", "Sequence length", "2048", optional=True),
            _field("micro_batch", "Micro-batch", "1", optional=True),
            _field("n_gpus", "GPUs", "1", optional=True),
            _field("gpu", "On this GPU", "H100", optional=True),
        ],
    }


def calculator_arguments(state: dict[str, Any]) -> dict[str, Any]:
    """What was filled in, as texts by argument of ``estimate_vram``, which reads them; fields left empty are not among
    them.
    """
    values = {}
    for block, inputs in state["values"].items():
        given = inputs["value"]
        text = (given.get("selected_option") or {}).get("value") or given.get("value")
        if text and str(text).strip():
            values[block] = str(text).strip()
    return values


def calculator_errors(problem: InputProblem) -> dict[str, str]:
    """{block id: words} as Slack's "errors" response wants it: the problem with its hint and nearest values, at the
    model's field where it belongs to none of the form.
    """
    field = (
        problem.field if problem.field in {"model", "method", "seq_len", "micro_batch", "n_gpus", "gpu"} else "model"
    )
    words = [problem.message, problem.hint or ""]
    if problem.candidates:
        words.append("Nearest: " + ", ".join(problem.candidates) + ".")
    return {field: cut(" ".join(words).strip(), 1900)}


def result_view(result: ToolResult) -> dict[str, Any]:
    """The calculator's answer as a modal: verdict, memory table and next steps as text, at most 40 blocks."""
    sources = Sources()
    sources.add("r", result)
    payload = {
        "verdict": result.verdict,
        "tables": [{"id": f"table:{table.id}"} for table in result.tables[:1]],
        "next_steps": result.next_steps,
    }
    text = as_plain(render(compose([payload]), sources).text)
    return {
        "type": "modal",
        "title": _text("Memory calculator"),
        "close": _text("Close"),
        "blocks": [section(f"```{mrkdwn(cut(part, 2000))}```") for part in text.split("\n\n") if part.strip()][:40],
    }


def reason_view(turn_id: str, principal: str) -> dict[str, Any]:
    """The modal that asks what was wrong; the turn's id and its owner travel in ``private_metadata``."""
    return {
        "type": "modal",
        "callback_id": "reason",
        "private_metadata": f"{turn_id} {principal}",
        "title": _text("What was wrong?"),
        "submit": _text("Send"),
        "close": _text("Not now"),
        "blocks": [_field("reason", "What should it have said?", "The memory is too low for …", long=True)],
    }


def _field(block: str, label: str, example: str, optional: bool = False, long: bool = False) -> Block:
    element: Block = {
        "type": "plain_text_input",
        "action_id": "value",
        "placeholder": _text(example),
        "max_length": 900,
    }
    if long:
        element["multiline"] = True
    return {"type": "input", "block_id": block, "label": _text(label), "optional": optional, "element": element}


def _option(name: str) -> Block:
    return {"text": _text(name), "value": name}


def _text(text: str) -> Block:
    return {"type": "plain_text", "text": plain(text, 150)}
