"""Grade a run of the question file: tools, stated slots, measured outcomes, unknown names, crashes.

    python -m evals.question_grades ROWS.jsonl [--file QUESTIONS.jsonl] [--half 0|1] [--show]

Which tools are right for an intent, what a measured outcome is compared with, and which slots of the file the
question's words do not hold, stand in ``evals/data/question_keys.yaml``; lines with ``accept`` and ``unknown`` say so
themselves. A slot counts as read when a tool call carries it; where no called tool takes such an argument it is left
out.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from knowledge.errors import InputProblem
from knowledge.gpus import find_gpu, load_gpu
from knowledge.models import find_model
from tools.frameworks import counted_as
from tools.registry import all_tools

DATA = Path(__file__).parent / "data"
_GPU_NAMES = {
    "rtx3060-12gb": "RTX-3060-12GB", "rtx6000ada": "RTX-6000-Ada", "a6000": "RTX-A6000", "m3-max-128gb": "Apple-M3-Max",
    "h20-96gb": "H20", "a800-80gb": "A800-SXM4-80GB", "gh200": "GH200-96GB", "dgx-spark": "GB10", "rtx3080": "RTX-3080",
    "2080ti-22gb": "RTX-2080-Ti",
}  # fmt: skip


# How people name a precision -> the argument's values that carry it.
_PRECISIONS = {
    "mixed": ("bf16", "fp16"), "16": ("bf16", "fp16"), "16bit": ("bf16", "fp16"), "awq": ("int4",), "gptq": ("int4",),
    "q4": ("int4",), "4bit": ("int4", "nf4"), "8bit": ("int8",), "q8": ("int8",),
}  # fmt: skip


@dataclass(slots=True)
class Grade:
    """One question's marks; None where a mark does not apply."""

    id: str
    intent: str
    tools_right: bool | None = None
    tools: list[str] = field(default_factory=list)
    slots: dict[str, bool] = field(default_factory=dict)
    outcome: bool | None = None
    unknown_ok: bool | None = None
    crashed: bool = False


def grade(question: dict[str, Any], results: list[dict[str, Any]], keys: dict[str, Any]) -> Grade:
    """The marks of one question from its ``ask --json`` objects, one a turn; ``keys`` as in ``question_keys.yaml``. A
    mark that does not apply is None.
    """
    mark = Grade(question["id"], question["intent"])
    mark.crashed = not results or any(result["status"] == "failed" for result in results)
    calls = [call for result in results for call in result["tool_calls"]]
    mark.tools = list(dict.fromkeys(call["name"] for call in calls))
    mark.tools_right = _tools_right(question, results, mark.tools, keys)
    for name, stated in question["slots"].items():
        if name in keys["unstated"].get(question["id"], ()):
            continue
        read = _slot_read(name, stated, calls, question, results)
        if read is not None:
            mark.slots[name] = read
    expected = keys["outcomes"].get(question["id"])
    if expected:
        mark.outcome = _outcome(expected, results)
    if question.get("unknown") or question["id"] in keys["unknown"]:
        mark.unknown_ok = not any(_computed(call) for call in calls) or _says_unknown(results)
    return mark


def _tools_right(
    question: dict[str, Any], results: list[dict[str, Any]], tools: list[str], keys: dict[str, Any]
) -> bool:
    own = question.get("accept") or keys["questions"].get(question["id"])
    accepted = own or keys["intents"][question["intent"]]
    statuses = {result["status"] for result in results}
    for alternative in accepted:
        if alternative == "declined":
            if "declined" in statuses and not tools:
                return True
        elif alternative == "needs_input":
            if "needs_input" in statuses:
                return True
        elif set(alternative.split("+")) <= set(tools):
            return True
    return False


_ARGUMENTS = {
    "model": ("model",), "params": ("model",), "method": ("method", "optimizer"), "gpu": ("gpu", "gpus"),
    "gpu_vram": ("gpu",), "n_gpus": ("n_gpus", "from_gpus"),
    "seq_len": ("seq_len",), "batch": ("micro_batch",), "lora_rank": ("lora_rank",),
    "tokens": ("tokens",), "samples": ("samples",), "epochs": ("epochs",), "precision": ("precision",),
    "budget": ("budget",), "deadline": ("deadline",), "provider": ("provider", "providers"),
    "framework": ("framework", "launcher"), "parallelism": ("sharding", "tp", "pp", "cp", "ep"),
    "cuda": ("cuda",), "driver": ("driver",),
    "utilisation": ("utilisation",), "task": ("task",),
    "price": ("price", "cloud_price", "max_usd_per_gpu_hour", "max_usd_per_hour"),
}  # fmt: skip


def _slot_read(
    name: str, stated: Any, calls: list[dict[str, Any]], question: dict[str, Any], results: list[dict[str, Any]]
) -> bool | None:
    """Whether a call carries the slot; None where none of the called tools takes such an argument.

    A card that the tables do not hold is no argument of any tool: it is read where the answer names it. A memory beside
    a card that is not sold with it is a claim about the card, not a slot.
    """
    arguments = _ARGUMENTS.get(name)
    if not arguments:
        return None
    specs = all_tools()
    takers = [call for call in calls if any(name in specs[call["name"]].input_model.model_fields for name in arguments)]
    if not takers:
        return None
    values = [call["arguments"].get(argument) for call in takers for argument in arguments]
    flat = [item for value in values if value is not None for item in (value if isinstance(value, list) else [value])]
    wanted = [part for part in str(stated).replace("->", "|").split("|") if part not in ("", "max")]
    if name in ("method",) and question["slots"].get("task"):
        return None
    if name == "price" and re.search(r"cny|rmb|eur|gbp|jpy|inr|[€£¥元円]", str(stated).lower()):
        return None  # every tool takes dollars, and no rate of exchange is a fact here
    if name == "parallelism":
        return _parallelism_read(wanted, takers)
    cards = str(question["slots"].get("gpu", "")).split("|")
    if name == "gpu_vram" and not all(_sold_with(card, wanted) for card in cards):
        return None
    said = " ".join(_plain(result["answer"]) for result in results)
    return all(
        any(_same(name, part, item) for item in flat) or (name == "gpu" and not _held(part) and _named(part, said))
        for part in wanted
    )


def _parallelism_read(wanted: list[str], takers: list[dict[str, Any]]) -> bool | None:
    """Whether calls carry a layout: "tp8 pp2" in the arguments tp and pp, "fsdp" and "zero3" in sharding. Words without
    a degree ("pp") and stacks ("deepspeed") are no argument's value; None where nothing else is stated.
    """
    marks: list[bool] = []
    for part in wanted:
        for word in part.replace("-offload", "").split():
            degree = re.fullmatch(r"(tp|pp|cp|ep)[-=]?(\d+)", word)
            arguments = [call["arguments"] for call in takers]
            if degree:
                marks.append(any(given.get(degree[1]) == int(degree[2]) for given in arguments))
            elif re.match(r"zero\d|fsdp|hsdp|ddp", word):
                given_words = [str(given["sharding"]) for given in arguments if given.get("sharding")]
                marks.append(any(given in word or word.startswith(given) for given in given_words))
    return all(marks) if marks else None


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", text.lower())


def _named(card: str, said: str) -> bool:
    """Whether an answer names a card, by its whole name or by the part with its number ("ascend-910b")."""
    parts = [card, *(part for part in card.split("-") if re.search(r"\d{2}", part) and not _held(part))]
    return any(_plain(part) in said for part in parts if not part.endswith("gb"))


def _held(card: str) -> bool:
    """Whether the tables hold a card of this name."""
    try:
        return find_gpu(_GPU_NAMES.get(card, card)).value is not None
    except InputProblem:
        return False


def _sold_with(card: str, sizes: list[str]) -> bool:
    """Whether a card is sold with one of these sizes of memory; true where no card is named."""
    if not card:
        return True
    for size in sizes:
        gigabytes = float(re.sub(r"[^\d.]", "", size) or 0)
        for name in (card, f"{card} {gigabytes:g}GB"):
            try:
                found = find_gpu(_GPU_NAMES.get(name, name)).value.marketed_memory_gb
            except InputProblem:
                continue
            if abs(found - gigabytes) <= 0.1 * gigabytes:
                return True
    return False


def _same(name: str, stated: str, given: Any) -> bool:
    if name in ("model", "params"):
        return _same_model(stated, given)
    if name == "gpu":
        return _same_gpu(stated, str(given))
    if name == "gpu_vram":
        number = float(
            "".join(char for char in stated.lower().replace("gib", "").replace("gb", "") if char in "0123456789.")
        )
        return abs(load_gpu(str(given)).marketed_memory_gb - number) <= 0.1 * number
    if name == "method":
        if stated == "sft":  # no adapter is named: every weight is tuned
            return str(given) == "full"
        if stated == "pretrain" and given == "continued_pretrain":
            return True
        return str(given) in stated or (stated == "lora-8bit" and given == "lora") or stated in ("all", str(given))
    if name == "deadline":
        if not stated[:-1].replace(".", "").isdigit():
            return True  # a day by the calendar, whose hours are those of the moment it is asked
        hours = {"h": 1.0, "d": 24.0, "w": 168.0}.get(stated[-1], 1.0)
        return abs(float(str(given).rstrip("h") or 0) - float(stated[:-1]) * hours) <= 0.03 * float(stated[:-1]) * hours
    if name == "price" and (low_high := re.fullmatch(r"\D*([\d.]+)-([\d.]+)\D*", stated)):
        return float(low_high[1]) <= float(given) <= float(low_high[2])
    if name == "framework" and str(given) == counted_as(stated):
        return True
    if name in ("framework", "provider"):
        return _plain(str(given)) in _plain(stated) or _plain(stated) in _plain(str(given))
    if name == "precision" and str(given) in _PRECISIONS.get(re.sub(r"[\s\-]", "", stated.lower()), ()):
        return True
    if name in ("precision", "task", "cuda", "driver"):
        return str(given).replace("-", "") in stated.replace("-", "") or stated in str(given)
    try:
        left, right = _amount(stated), float(given)
    except (TypeError, ValueError):
        return str(given).lower() == stated.lower()
    return abs(left - right) <= 0.03 * abs(left)


def _amount(text: str) -> float:
    text = re.sub(r"(?:/|per).*", "", text.strip().lower()).strip(" $~").replace(",", "")
    if text.endswith("%"):
        return float(text[:-1]) / 100
    scale = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}.get(text[-1:], 1.0)
    return float(text.rstrip("kmbt")) * scale


def _same_model(stated: str, given: Any) -> bool:
    text = stated.lower().lstrip("-")
    if str(given).lower() == text or str(given).lower().split("/")[-1].startswith(f"{text}-"):
        return True  # one version of what was named without its own
    if not _known_model(text) and (size := re.search(r"(?<![\d.])(\d+(?:\.\d+)?[bm])$", text)):
        text = size[1]  # of a model that the tables do not hold, a call can carry the size alone
    try:
        billions = _amount(text) / 1e9 if text[-1] in "mbt" and text[0].isdigit() else None
    except ValueError:
        billions = None
    try:
        total = find_model(str(given)).value.total_params / 1e9
    except InputProblem:
        try:
            total = _amount(str(given)) / 1e9
        except ValueError:
            return False
    if billions is not None:
        return abs(total - billions) <= 0.25 * billions
    try:
        meant = find_model(stated).value
        if str(given)[-1:] in "BM" and str(given)[:1].isdigit():
            return abs(meant.total_params / 1e9 - total) <= 0.25 * total
        return meant.id == find_model(str(given)).value.id
    except InputProblem:
        return False


def _known_model(name: str) -> bool:
    try:
        return find_model(name).value is not None
    except InputProblem:
        return False


def _same_gpu(stated: str, given: str) -> bool:
    try:
        left = find_gpu(_GPU_NAMES.get(stated, stated)).value
        right = find_gpu(given).value
    except InputProblem:
        return False
    return left.id == right.id or (left.id.split("-")[0] == right.id.split("-")[0] == stated.split("-")[0].upper())


def _outcome(expected: dict[str, Any], results: list[dict[str, Any]]) -> bool:
    """Whether a measured figure lies in the union of the ranges of its fact, over all calls of the question."""
    facts = [fact for result in results for fact in result["facts"] if fact["name"] == expected["fact"]]
    lows = [fact["low"] if fact["low"] is not None else fact["value"] for fact in facts]
    highs = [fact["high"] if fact["high"] is not None else fact["value"] for fact in facts]
    if not facts:
        return False
    return any(min(lows) <= value <= max(highs) for value in expected["measured"])


def _computed(call: dict[str, Any]) -> bool:
    return call["name"] in ("estimate_vram", "estimate_run", "select_gpu", "plan_parallelism") and "result" in call


def _says_unknown(results: list[dict[str, Any]]) -> bool:
    text = " ".join(result["answer"].lower() for result in results)
    return any(
        words in text
        for words in ("do not know", "do not have", "not published", "no memory or speed model", "not in my tables")
    )


def summary(grades: Iterable[Grade]) -> dict[str, Any]:
    """Shares over all questions that each mark applies to, and the ids of those that crashed."""
    marks = list(grades)
    tools = [mark for mark in marks if mark.tools_right is not None]
    slots = [(mark.id, name, read) for mark in marks for name, read in mark.slots.items()]
    outcomes = [mark for mark in marks if mark.outcome is not None]
    unknown = [mark for mark in marks if mark.unknown_ok is not None]
    return {
        "questions": len(marks),
        "tools_right": _share(sum(bool(mark.tools_right) for mark in tools), len(tools)),
        "slots_read": _share(sum(read for _id, _name, read in slots), len(slots)),
        "outcomes_in_range": _share(sum(bool(mark.outcome) for mark in outcomes), len(outcomes)),
        "unknowns_not_answered": _share(sum(bool(mark.unknown_ok) for mark in unknown), len(unknown)),
        "crashed": [mark.id for mark in marks if mark.crashed],
    }


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole} ({100 * part / whole:.1f} %)" if whole else "0/0"


def main(arguments: list[str] | None = None) -> int:
    """Print the summary, and with --show what is wrong; returns 0 whatever the marks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows")
    parser.add_argument("--file", default=str(DATA / "questions.jsonl"))
    parser.add_argument("--half", type=int, choices=(0, 1))
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args(arguments)
    keys = yaml.safe_load((DATA / "question_keys.yaml").read_text(encoding="utf-8"))
    questions = [json.loads(line) for line in Path(given.file).read_text(encoding="utf-8").splitlines() if line.strip()]
    rows = {
        row["id"]: row["results"] for row in map(json.loads, Path(given.rows).read_text(encoding="utf-8").splitlines())
    }
    half = [q for index, q in enumerate(questions) if given.half is None or index % 2 == given.half]
    grades = [grade(question, rows.get(question["id"], []), keys) for question in half]
    out = sys.stdout
    if given.show:
        texts = {question["id"]: question for question in half}
        for mark in grades:
            wrong = [name for name, read in mark.slots.items() if not read]
            if mark.tools_right is False or wrong or mark.outcome is False or mark.unknown_ok is False or mark.crashed:
                question = texts[mark.id]
                said = question.get("turns") or question["text"]
                out.write(f"{mark.id} [{mark.intent}] tools {mark.tools_right} {mark.tools} slots {wrong} ")
                out.write(
                    f"outcome {mark.outcome} unknown {mark.unknown_ok}\n   {str(said)[:260]!r} {question['slots']}\n"
                )
    out.write(json.dumps(summary(grades), indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
