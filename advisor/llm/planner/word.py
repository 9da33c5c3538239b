"""The answer's words from tool results: verdict, bill, next knob, what comes next. Numbers are fact references only.

The loop adds assumptions, warnings and sources below; a result's own sentences are taken over as they are. Sentences
of our own come from ``words.yaml`` in the asker's language, English where that has none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from advisor.llm.planner import grammar
from advisor.llm.planner.decide import Call, Limit, Plan
from advisor.llm.planner.slots import Slots
from advisor.render import file_blocks

MAX_KNOBS = 3
# Spelled as the catalogue does, so that the number check knows their digits as parts of names.
EXAMPLES = ("what GPU for Llama-3.1-70B QLoRA?", "can I full fine-tune Llama-3.1-8B on one H100?")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A planned call with what came back."""

    call: Call
    data: dict[str, Any]

    @property
    def error(self) -> dict[str, Any] | None:
        """The tool's error, if it gave one."""
        error = self.data.get("error")
        return error if isinstance(error, dict) else None

    @property
    def prefix(self) -> str:
        """The id that references to this result begin with."""
        return str(self.data.get("tool_call", ""))

    def fact(self, name: str) -> dict[str, Any] | None:
        """The first fact of this name."""
        return next((fact for fact in self.data.get("facts", ()) if fact.get("name") == name), None)

    def ref(self, name: str) -> str | None:
        """The reference id of the first fact of this name."""
        fact = self.fact(name)
        return str(fact["id"]) if fact else None


@dataclass(slots=True)
class Reply:
    """Markdown with references, the turn's status and what may be asked next."""

    text: str
    status: str = "answered"
    suggestions: tuple[str, ...] = ()
    parts: list[str] = field(default_factory=list)


def say(key: str, language: str = "en", /, **values: Any) -> str:
    """A sentence of ``words.yaml``."""
    table = grammar.data("words")
    text = str(table.get(language, {}).get(key) or table["en"].get(key, ""))
    return _Blank(values).fill(text)


class _Blank(dict[str, Any]):
    def fill(self, text: str) -> str:
        return re.sub(r"(?<!\{)\{(\w+)\}", lambda match: str(self.get(match[1], "")), text)


def has(key: str, language: str) -> bool:
    """Whether a language has this sentence of its own."""
    return key in grammar.data("words").get(language, {})


def spoken(plan: Plan, turn: Slots, context: bool) -> Reply:
    """The reply of a plan without calls: a question, a greeting, a polite no."""
    language = turn.language
    lines = _openers(plan, turn)
    if plan.status == "declined":
        kind = f"declined_{plan.reply}" if plan.reply else "declined"
        if language != "en" and has("declined", language):
            lines.append(say("declined", language))
        else:
            lines.append(say(kind) or say("declined"))
        lines.append(say("scope", language))
        return Reply("\n\n".join(lines), "declined", EXAMPLES)
    if plan.reply in ("greeting", "thanks"):
        return Reply(" ".join([say(plan.reply, language), say("scope", language)]), "answered", EXAMPLES)
    lines += _unknown(plan, language)
    if turn.cues & {"same_again", "follow_up", "change_only"} and not context and not plan.unknown_models:
        lines.append(say("no_context", language))
    if not (plan.unknown_models or plan.unknown_gpus) or plan.reply not in ("ask_what", "ask_model"):
        lines.append(say(plan.reply, language, example=_example(turn)))
    elif plan.unknown_models and all(m.kind == "closed" for m in plan.unknown_models):
        return Reply("\n\n".join(lines), "declined", EXAMPLES)
    elif plan.unknown_models:
        lines.append(say("offer_params"))
    return Reply("\n\n".join(line for line in lines if line), plan.status, EXAMPLES)


def compose(plan: Plan, outcomes: list[Outcome], state: Slots, turn: Slots) -> Reply:
    """The answer from the results of a plan."""
    language = turn.language
    parts = _openers(plan, turn)
    parts += _premises(plan, outcomes)
    parts += _unknown(plan, language)
    if plan.stand_in:
        parts.append(say("stand_in", language, gpu=plan.stand_in))
    parts += [say(note, language) for note in plan.notes]
    notes = [mention.note for mention in turn.models] + [mention.note for mention in turn.gpus]
    readings = list(dict.fromkeys(note for note in notes if note))
    if turn.get("gigabit"):
        parts.append(say("gigabit", language))
    good = [o for o in outcomes if not o.error and o.call.part != "premise"]
    errors = [o for o in outcomes if o.error]
    main = [o for o in good if o.call.part == "main" and o.call.name != "search_knowledge"]
    side = [o for o in good if o.call.part == "side" and o.call.name != "search_knowledge"]
    known = [o for o in good if o.call.name == "search_knowledge"]
    rungs = [o for o in good if o.call.part == "ladder"]
    spans = [o for o in good if o.call.part == "span"]
    if rungs:
        parts += _ladder(rungs, language, plan.limit)
    parts += _main(main, state, language)
    if spans and main:
        parts += _spans(spans, language)
    if not main and not rungs and side:
        parts += _main(side[:1], state, language)
        side = side[1:]
    if not main and not rungs and known:
        parts += _passages(known, 2)
        known = []
    if not (main or rungs or side or known) and errors:
        parts += _errors(errors)
    elif errors:
        parts += _errors([o for o in errors if o.call.part in ("main", "ladder")])[:1]
    parts += _knobs(main or rungs[-1:] or side, language)
    parts += _sides(side, language)
    if known:
        parts += _passages(known, 1 if main or rungs else 2, heading=say("knowledge", language))
    parts += readings[:2]
    parts += _closers(state, turn)
    if plan.question:
        parts.append(say(plan.question, language, example=_example(turn)))
    text = "\n\n".join(part for part in dict.fromkeys(parts) if part)
    if not text:
        text = say("nothing_found", scope=say("scope", language))
    status = plan.status
    if errors and not good:
        status = "needs_input"
    return Reply(text, status, _suggestions(main or side or rungs))


def _openers(plan: Plan, turn: Slots) -> list[str]:
    lines = []
    if turn.secrets:
        lines.append(say("secret"))
    if turn.links:
        lines.append(say("no_link"))
    return lines


def _premises(plan: Plan, outcomes: list[Outcome]) -> list[str]:
    lines = []
    names = {
        "memory": ("memory",),
        "bandwidth": ("memory_bandwidth",),
        "tflops": ("bf16_flops",),
        "sparse": ("bf16_flops",),
    }
    for premise in plan.premises:
        if premise.attribute in names:
            ref = _fact_about(outcomes, premise.gpu, names[premise.attribute])
            if ref:
                lines.append(
                    say(f"premise_{premise.attribute}", "en", gpu=premise.gpu, ref=ref, claimed=premise.claimed)
                )
        elif premise.attribute == "nvlink":
            lines.append(say("premise_nvlink", "en", gpu=premise.gpu))
        else:
            lines.append(say("premise_rate", "en", gpu=premise.gpu, claimed=premise.claimed))
    return lines


def _fact_about(outcomes: list[Outcome], gpu: str, names: tuple[str, ...]) -> str | None:
    for outcome in outcomes:
        if outcome.call.name != "compare_gpus" or outcome.error:
            continue
        for fact in outcome.data.get("facts", ()):
            if fact.get("name") in names and gpu in fact.get("about", [gpu]):
                return str(fact["id"])
    return None


def _unknown(plan: Plan, language: str) -> list[str]:
    lines = []
    for model in plan.unknown_models:
        near = say("nearest", "en", names=", ".join(_short(name) for name in model.nearest)) if model.nearest else ""
        if model.kind == "closed":
            lines.append(say("closed_model", "en", name=model.text, nearest=" or ".join(model.nearest)))
        elif model.kind == "unmodelled":
            lines.append(say("declined_unmodelled", "en", name=model.text, topic=model.topic))
        elif model.size:
            lines.append(say("unknown_model_sized", "en", name=model.text, nearest=near, size=model.size))
        else:
            lines.append(say("unknown_model", "en", name=model.text, nearest=near))
            lines.append(say("offer_params"))
    for gpu in plan.unknown_gpus:
        near = say("nearest", "en", names=", ".join(gpu.nearest)) if gpu.nearest else ""
        lines.append(say("unknown_gpu", "en", name=gpu.text, nearest=near))
    return lines


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def _example(turn: Slots) -> str:
    """A whole question of the same kind, built from what was said."""
    gpu = turn.gpu.argument if turn.gpu and turn.gpu.argument else None
    if gpu:
        return f"QLoRA of Llama-3.1-8B on {gpu}"
    return EXAMPLES[0]


def _speed(outcome: Outcome) -> str:
    """Tokens per second first, where that is what was asked."""
    rate, mfu = outcome.ref("tokens_per_second"), outcome.ref("mfu")
    return say("speed", "en", rate=rate, mfu=mfu) if rate and mfu else ""


def _main(outcomes: list[Outcome], state: Slots, language: str) -> list[str]:
    """Verdicts with their bills. Several results of one tool become a comparison instead of as many bills."""
    parts: list[str] = []
    cues = state.cues
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.call.name, []).append(outcome)
    for name, group in groups.items():
        if len(group) > 1 and name in ("estimate_vram", "estimate_run"):
            parts += _several(name, group, state, language)
            continue
        for outcome in group:
            lead = _lead(outcome, language) or (_speed(outcome) if "throughput" in cues else "")
            if lead:
                parts.append(lead)
            verdict = str(outcome.data.get("verdict") or "")
            if verdict:
                parts.append(
                    verdict
                    if lead or parts
                    else f"**{verdict}**"
                    if "\n" not in verdict and len(verdict) < 400
                    else verdict
                )
            tables = outcome.data.get("tables", [])
            keep = 1 if name in ("estimate_vram", "estimate_run") or len(group) > 1 else 2
            parts += [f"[[{table['id']}]]" for table in tables[:keep]]
            parts += file_blocks(outcome.data)
    return parts


def _lead(outcome: Outcome, language: str) -> str:
    """The verdict in the asker's own language, where it is not English."""
    if language == "en":
        return ""
    name = outcome.call.name
    model = _short(str(outcome.call.arguments.get("model", "")))
    if name == "estimate_vram":
        peak, usable = outcome.ref("peak_per_gpu"), outcome.ref("usable_memory")
        said = str(outcome.data.get("verdict", "")).partition(":")[0]
        key = {"Yes": "fit_yes", "No": "fit_no", "Borderline": "fit_maybe"}.get(said)
        gpu = outcome.call.arguments.get("gpu")
        if peak and usable and key and gpu and has(key, language):
            return say(key, language, model=model, peak=peak, usable=usable, gpu=gpu)
        if peak and has("need", language):
            return say("need", language, model=model, peak=peak)
    if name == "estimate_run" and (hours := outcome.ref("run_hours")):
        cost = outcome.ref("run_cost")
        key = "run_cost" if cost else "run"
        return say(key, language, hours=hours, cost=cost) if has(key, language) else ""
    return ""


def _several(name: str, group: list[Outcome], state: Slots, language: str) -> list[str]:
    """One line a case: its verdict, then the first case's bill."""
    parts = []
    methods = {o.call.arguments.get("method") for o in group}
    if len(methods) > 1 and not state.methods:
        parts.append(say("vague_method", language))
    elif name == "estimate_run" and not state.gpus and not state.get("gpu_memory_gb"):
        parts.append(say("vague_gpu", language))
    lines = []
    for outcome in group:
        lead = _lead(outcome, language)
        about = f"{outcome.call.about}: " if lead and outcome.call.about else ""
        verdict = lead or str(outcome.data.get("verdict") or "")
        if verdict:
            lines.append(f"- {about}{verdict}")
    parts.append("\n".join(lines))
    tables = group[0].data.get("tables", [])
    if tables:
        parts.append(f"[[{tables[0]['id']}]]")
    return parts


def _spans(spans: list[Outcome], language: str) -> list[str]:
    """The figure at both ends of what was left open, where it differs."""
    name = "peak_per_gpu" if spans[0].call.name == "estimate_vram" else "run_hours"
    values = [float(fact["value"]) for o in spans if (fact := o.fact(name))]
    if len(values) < 2 or max(values) - min(values) < 0.03 * max(values):
        return []
    cases = "; ".join(
        f"{_rung(o)}{_tokens_of(o)}: [[{o.ref(name)}]] ([[{o.ref(name)}|range]])" for o in spans if o.ref(name)
    )
    return [say("span" if name == "peak_per_gpu" else "row_span", language, cases=cases)]


def _tokens_of(outcome: Outcome) -> str:
    ref = outcome.ref("tokens") if outcome.call.name == "estimate_run" else None
    return f" ([[{ref}]])" if ref else ""


def _ladder(rungs: list[Outcome], language: str, limit: Limit | None) -> list[str]:
    """Where a rising row of estimates stops, or begins, to fit."""
    name = limit.fact if limit else "peak_per_gpu"
    fits = [_fits(o, limit) for o in rungs]
    refs = [o.ref(name) or "" for o in rungs]
    rising = rungs[0].call.about.startswith("n_gpus")
    order = range(len(fits)) if rising else range(len(fits) - 1, -1, -1)
    hit = next((index for index in order if fits[index]), None)
    ending = "" if limit is None else "_limit"
    values = {"limit": limit.words if limit else ""}
    parts = []
    if hit is None:
        parts.append(say(f"none_fit{ending}", language, first=refs[0], last=refs[-1], **values))
    else:
        key = "first_fit" if rising else "last_fit"
        parts.append(say(f"{key}{ending}", language, what=_rung(rungs[hit]), ref=refs[hit], **values))
        if not rising and hit + 1 < len(rungs):
            parts.append(say(f"beyond{ending}", language, what=_rung(rungs[hit + 1]), ref=refs[hit + 1], **values))
    lines = [
        f"- {_rung(o)}: [[{ref}]] ([[{ref}|range]]), {_fit_word(o, limit, language)}"
        for o, ref in zip(rungs, refs, strict=True)
        if ref
    ]
    parts.append("\n".join(lines))
    chosen = rungs[hit if hit is not None else -1]
    parts.append(str(chosen.data.get("verdict") or ""))
    parts += [f"[[{table['id']}]]" for table in chosen.data.get("tables", [])[:1]]
    return parts


def _rung(outcome: Outcome) -> str:
    """A rung in words; its digits are those of the call's own arguments."""
    words = []
    for piece in outcome.call.about.split(";"):
        name, _, value = piece.partition("=")
        words.append(
            {
                "n_gpus": f"{value} × {outcome.call.arguments.get('gpu')}",
                "seq_len": f"sequence length {value}",
                "micro_batch": f"batch size {value}",
                "tokens": f"{value} tokens",
            }.get(name, piece)
        )
    return ", ".join(words)


def _fits(outcome: Outcome, limit: Limit | None) -> bool:
    if limit is not None:
        fact = outcome.fact(limit.fact)
        return fact is not None and float(fact["value"]) <= limit.value
    headroom = outcome.fact("headroom")
    return headroom is not None and float(headroom.get("value", -1)) > 0


def _fit_word(outcome: Outcome, limit: Limit | None, language: str) -> str:
    fact = outcome.fact(limit.fact if limit else "headroom")
    if fact is None:
        return ""
    low, high = fact.get("low"), fact.get("high")
    border = limit.value if limit else 0.0
    if low is not None and high is not None and low < border < high:
        return say("borderline", language)
    return say("fits" if _fits(outcome, limit) else "no_fit", language)


def _knobs(outcomes: list[Outcome], language: str) -> list[str]:
    """The next knobs of the first result that has some; which one, where there are several."""
    for outcome in outcomes:
        lines = list(dict.fromkeys(str(step) for step in outcome.data.get("next_steps", ())))[:MAX_KNOBS]
        if lines:
            about = f" ({outcome.call.about})" if len(outcomes) > 1 and outcome.call.about else ""
            return [f"**{say('next', language)}{about}**\n\n" + "\n".join(f"- {line}" for line in lines)]
    return []


def _sides(outcomes: list[Outcome], language: str) -> list[str]:
    parts: list[str] = []
    seen: set[str] = set()
    for outcome in outcomes[:4]:
        verdict = str(outcome.data.get("verdict") or "")
        if verdict:
            parts.append(verdict)
        if outcome.call.name in seen:
            continue
        seen.add(outcome.call.name)
        parts += [f"[[{table['id']}]]" for table in outcome.data.get("tables", [])[:1]]
    return parts


def _passages(outcomes: list[Outcome], count: int, heading: str = "") -> list[str]:
    """What the knowledge base says; a search result's verdict names its best passage."""
    lines: list[str] = []
    for outcome in outcomes:
        verdict = str(outcome.data.get("verdict") or "")
        if verdict:
            lines.append(verdict)
        more = [str(step) for step in outcome.data.get("next_steps", [])]
        lines += [f"- {step}" for step in more if count > 1 or not step.startswith("See also")][:count]
    if not lines:
        return []
    return [f"**{heading}**", *lines] if heading else lines


def _errors(outcomes: list[Outcome]) -> list[str]:
    lines = []
    for outcome in outcomes:
        error = outcome.error or {}
        text = str(error.get("message", ""))
        hint = str(error.get("hint") or "")
        near = [str(name) for name in error.get("candidates") or []][:3]
        if near and not any(name in hint for name in near):
            hint = (hint + " " if hint else "") + "Nearest: " + ", ".join(_short(name) for name in near) + "."
        lines.append(" ".join(part for part in (text, hint) if part))
    return list(dict.fromkeys(lines))


def _closers(state: Slots, turn: Slots) -> list[str]:
    lines = []
    if turn.get("budget_currency") not in (None, "USD") or "eur" in turn.lower or "€" in turn.lower:
        lines.append(say("euro", turn.language))
    if turn.get("tax") is not None:
        lines.append(say("tax", turn.language))
    if "pool" in turn.cues and (state.get("n_gpus") or 0) != 1 and state.gpus:
        lines.append(say("per_card", turn.language))
    return lines


def _suggestions(outcomes: list[Outcome]) -> tuple[str, ...]:
    found = [str(text) for outcome in outcomes for text in outcome.data.get("suggestions", ())]
    return tuple(dict.fromkeys(found))[:4]
