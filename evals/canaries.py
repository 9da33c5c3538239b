"""Canaries: answers known to be bad, each of which a certain grader must catch, run before every suite.

A gate that has not been seen to block proves nothing. Each canary is a transcript with one fault that graders
elsewhere have let through (a suffix taken for the number, a crash counted as a pass, GiB for GB ...); if our graders
let one through, the run fails with ``canary.<name>``. The healthy transcript must pass, or graders cry wolf.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from evals import graders
from evals.casefile import Expect
from evals.graders import Miss
from evals.transcript import Happened

_SOURCE = "made up for this canary"
QUESTION = "Does a 8B LoRA fit one H100, how long for 100 steps, and at what price?"


def healthy() -> Happened:
    """A made-up turn in which everything holds: facts, text, source and date agree, so every grader must
    let it pass.
    """
    facts = [
        _fact("peak_per_gpu", 49.0e9, "B", low=44.1e9, high=56.0e9, about=["meta-llama/Llama-3.1-8B"]),
        _fact("inter_rate", 50e9, "B/s", kind="quoted", about=["H100-SXM5"]),
        _fact("run_hours", 149.0, "h"),
        _fact("share", 60.0, "%"),
        _fact("usd_per_gpu_hour", 2.5, "USD/GPU-h", kind="price", as_of="2026-08-26", about=["H100-SXM5"]),
        _fact("headroom", -7.25e9, "B"),
    ]
    text = (
        "Yes: it needs 49 GB (44.1–56 GB) and moves 50 GB/s. It takes 149 h, of which 60 % is compute, "
        "at $2.50/GPU-h (seen 2026-08-26). Without offload it would lack 7.25 GB."
    )
    sources = [{"id": "paper-lora", "title": "LoRA", "as_of": "2021-10-16", "url": None}]
    result: dict[str, Any] = {
        "facts": facts, "assumptions": [], "steps": [], "sources": sources, "warnings": [], "tables": [],
        "charts": [], "verdict": "[[peak_per_gpu]]", "next_steps": [], "suggestions": [],
    }  # fmt: skip
    arguments = {"model": "llama-3.1-8b", "method": "lora", "gpu": "H100-SXM5", "n_gpus": 1}
    call = {"id": "t1", "name": "estimate_vram", "arguments": arguments, "result": result}
    return Happened(question=QUESTION, text=text, calls=[call], facts=facts, cited=["paper-lora", "LoRA"], seconds=0.02)


EXPECT = Expect.model_validate(
    {
        "tools": [
            {"name": "estimate_vram", "args": {"model": ["llama-3.1-8b"], "gpu": ["H100 SXM"], "n_gpus": [1, None]}},
        ],
        "must_not_call": ["lookup_prices"],
        "numbers": [
            {"fact": "peak_per_gpu", "value": 49, "unit": "GB", "source": _SOURCE, "in_text": True},
            {"fact": "peak_per_gpu", "covers": 52, "unit": "GB", "source": _SOURCE},
            {"fact": "inter_rate", "value": 400, "unit": "Gb/s", "source": _SOURCE, "in_text": True},
            {"fact": "run_hours", "value": 149, "unit": "h", "source": _SOURCE, "in_text": True},
            {"fact": "share", "value": 60, "unit": "%", "source": _SOURCE, "in_text": True},
            {"fact": "usd_per_gpu_hour", "value": 2.5, "unit": "USD/GPU-h", "source": _SOURCE, "in_text": True},
            {"fact": "headroom", "value": -7.25, "unit": "GB", "source": _SOURCE},
        ],
        "cite": ["paper-lora"],
        "say": [r"\byes\b"],
        "not_say": [r"guarantee"],
        "seconds": 1.0,
    }
)  # fmt: skip


def run_canaries() -> list[Miss]:
    """What is wrong with the graders; empty when every canary is caught and the healthy turn passes."""
    wrong = [Miss("canary", f"the healthy turn fails: {miss}") for miss in _grade(healthy())]
    for name, (grader, spoil) in CANARIES.items():
        bad = healthy()
        spoil(bad)
        caught = {miss.grader for miss in _grade(bad)}
        if grader not in caught:
            wrong.append(Miss("canary", f"{name} was not caught by {grader}", wanted=grader, got=str(sorted(caught))))
    return wrong


def _grade(happened: Happened) -> list[Miss]:
    # The schema grader wants every typed field of the real tool; it has a canary of its own below.
    return [
        miss
        for miss in graders.grade(EXPECT, happened, [])
        if not (miss.grader == "schema" and "left out" in miss.message)
    ]


def _fact(name: str, value: float, unit: str, **more: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "id": name, "name": name, "value": value, "unit": unit, "low": None, "high": None, "kind": "modelled",
        "label": "", "basis": "", "as_of": None, "about": [],
    }  # fmt: skip
    return {**plain, **more}


def _say(old: str, new: str) -> Callable[[Happened], None]:
    """Another text for the same facts."""

    def spoil(happened: Happened) -> None:
        assert old in happened.text
        happened.text = happened.text.replace(old, new)

    return spoil


def _invent(words: str) -> Callable[[Happened], None]:
    def spoil(happened: Happened) -> None:
        happened.text += words

    return spoil


def _set(which: str, /, **change: Any) -> Callable[[Happened], None]:
    def spoil(happened: Happened) -> None:
        next(fact for fact in happened.facts if fact["name"] == which).update(change)

    return spoil


def _argument(**change: Any) -> Callable[[Happened], None]:
    def spoil(happened: Happened) -> None:
        happened.calls[0]["arguments"].update(change)

    return spoil


def _attribute(**change: Any) -> Callable[[Happened], None]:
    def spoil(happened: Happened) -> None:
        for name, value in change.items():
            setattr(happened, name, value)

    return spoil


def _add_call(name: str) -> Callable[[Happened], None]:
    def spoil(happened: Happened) -> None:
        happened.calls.append({**copy.deepcopy(happened.calls[0]), "id": "t2", "name": name})

    return spoil


def _two_facts_one_id(happened: Happened) -> None:
    happened.calls[0]["result"]["facts"] = [*happened.facts, happened.facts[0]]


CANARIES: dict[str, tuple[str, Callable[[Happened], None]]] = {
    "suffix taken for the number (149 for 49)": ("text_value", _say("needs 49 GB", "needs 149 GB")),
    "prefix taken for the number (490 for 49)": ("text_value", _say("needs 49 GB", "needs 490 GB")),
    "substring (1490 h for 149 h)": ("text_value", _say("149 h", "1,490 h")),
    "GiB for GB": ("text_value", _say("needs 49 GB", "needs 49 GiB")),
    "bits for bytes": ("text_value", _say("50 GB/s", "50 Gb/s")),
    "unit stripped": ("text_value", _say("needs 49 GB", "needs 49")),
    "per cent as a bare number": ("text_value", _say("60 %", "60")),
    "node price for GPU price": ("text_value", _say("$2.50/GPU-h", "$2.50 per year")),
    "a number nobody computed": ("grounding", _invent(" It can reach 873 GB in bad cases.")),
    "a computed number moved to another card": ("grounding", _invent(" A B200 moves 50 GB/s.")),
    "an invented price": ("grounding", _invent(" Elsewhere it is $1.17/GPU-h.")),
    "value off by a thousand": ("fact_value", _set("usd_per_gpu_hour", value=2500.0)),
    "value off by 7.4 % (GiB as GB)": ("fact_value", _set("peak_per_gpu", value=49.0 * 2**30)),
    "value in another unit": ("fact_value", _set("run_hours", unit="USD")),
    "sign lost": ("fact_value", _set("headroom", value=7.25e9)),
    "a measurement outside the range": ("fact_value", _set("peak_per_gpu", high=50e9)),
    "range dropped": ("fact_value", _set("peak_per_gpu", low=None, high=None)),
    "fact renamed": ("fact_value", _set("run_hours", name="hours", id="hours")),
    "price without a date": ("citation", _set("usd_per_gpu_hour", as_of=None)),
    "source dropped": ("citation", _attribute(cited=[])),
    "another source whose id ends alike": ("citation", _attribute(cited=["no-paper-lora", "paper-lora-2"])),
    "look-alike card (PCIe for SXM)": ("arguments", _argument(gpu="H100 PCIe")),
    "look-alike model": ("arguments", _argument(model="llama-3.2-1b")),
    "another count": ("arguments", _argument(n_gpus=11)),
    "tool skipped": ("tools", _attribute(calls=[])),
    "forbidden tool called": ("tools", _add_call("lookup_prices")),
    "refused a good question": ("refusal", _attribute(status="declined")),
    "error for a good question": (
        "refusal",
        _attribute(error={"code": "x", "message": "no", "field": None, "hint": None, "candidates": []}),
    ),
    "a crash": ("crash", _attribute(crash="ZeroDivisionError: division by zero")),
    "two facts of one id": ("schema", _two_facts_one_id),
    "a tool that does not exist": ("schema", _add_call("guess_everything")),
    "the opposite verdict": ("words", _say("Yes:", "No:")),
    "a promise": ("words", _say("Yes:", "Yes, we guarantee it:")),
    "too slow": ("budget", _attribute(seconds=30.0)),
}
