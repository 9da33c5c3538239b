"""The answer's words from tool results: verdict, bill, next knob, what comes next. Numbers are fact references only.

The loop adds assumptions, warnings and sources below; a result's own sentences are taken over as they are. Sentences
of our own come from ``words.yaml`` in the asker's language, English where that has none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from advisor.llm.planner.phrases import Outcome, has, say
from advisor.llm.planner.plan import Plan
from advisor.llm.planner.slots import Slots
from advisor.llm.planner.word_figures import figure_of
from advisor.llm.planner.word_leads import Lead, lead_of
from advisor.llm.planner.word_lines import first_lines
from advisor.llm.planner.word_rows import chosen_rung, ladder_words, size_lines, spans_words
from advisor.llm.protocol import Status
from advisor.number_check import Evidence, check
from advisor.render import file_blocks

MAX_KNOBS = 3
_BOLD = 400  # characters; a longer verdict is a paragraph, and a bold paragraph reads badly
_LONG = ("diagnose_oom", "plan_checkpoints", "compare_ownership", "launch_plan")  # their second table belongs to it
# Spelled as the catalogue does, so that the number check knows their digits as parts of names.
EXAMPLES = ("what GPU for Llama-3.1-70B QLoRA?", "can I full fine-tune Llama-3.1-8B on one H100?")


@dataclass(slots=True)
class Reply:
    """Markdown with references, the turn's status and what may be asked next."""

    text: str
    status: Status = "answered"
    suggestions: tuple[str, ...] = ()
    parts: list[str] = field(default_factory=list)


def spoken(plan: Plan, turn: Slots, context: bool) -> Reply:
    """The reply of a plan without calls: a question, a greeting, a polite no."""
    language = turn.language
    lines = _openers(turn)
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
    lines += _unknown(plan, turn)
    alone = not context and not plan.unknown_models and plan.goal != "wish"
    if turn.cues & {"same_again", "follow_up", "change_only"} and alone:
        lines.append(say("no_context", language))
    if plan.calls:
        return Reply(say("no_tools", language), "needs_input", EXAMPLES)
    if not (plan.unknown_models or plan.unknown_gpus) or plan.reply not in ("ask_what", "ask_model"):
        lines.append(say(plan.reply, language, example=_example(turn)))
    elif plan.unknown_models and all(m.kind == "closed" for m in plan.unknown_models):
        return Reply("\n\n".join(lines), "declined", EXAMPLES)
    elif plan.unknown_models:
        lines.append(say("offer_params"))
    return Reply("\n\n".join(line for line in lines if line), plan.status, EXAMPLES)


def compose(plan: Plan, outcomes: list[Outcome], state: Slots, turn: Slots) -> Reply:
    """The answer from the results of a plan: what was wrong or unknown, the verdict with its bill, knobs, the rest."""
    language = turn.language
    good = [o for o in outcomes if not o.error and o.call.part != "premise"]
    failed = [o for o in outcomes if o.error]
    found = [o for o in good if o.call.name == "search_knowledge"]
    parts_of = {part: [o for o in good if o.call.part == part and o not in found] for part in _PARTS}
    main, side, rungs = parts_of["main"], parts_of["side"], parts_of["ladder"]
    passage_first = not main and not rungs and any(o.call.part == "main" and o.verdict for o in found)
    if not main and not rungs and not passage_first:
        side += parts_of.pop("line")
        parts_of["line"] = []
        main, side = side[:1], side[1:]
    parts = [*_openers(turn), *_premises(plan, outcomes, turn), *_unknown(plan, turn)]
    card = state.gpu.argument if state.gpu else next((o.call.arguments.get("gpu") for o in main), "")
    lead = figure_of(plan.goal, main, state, turn) or lead_of(plan.goal, main, state, turn) or Lead([], [])
    notes = [say(note, language, gpu=card) for note in plan.notes]
    first = lead.parts[:1] if not any(note.startswith("premise") for note in plan.notes) else []
    parts += [*first, *notes, *(part for part in lead.parts if part not in first)]  # the figure, then what was taken
    told, main = main, [o for o in main if o not in lead.spent and not (found and _undecided(o))]
    if rungs:
        parts = [part for part in parts if part not in notes]
        parts += [*ladder_words(rungs, language, plan.limit), *notes]
    sized = [o for o in (*main, *side) if o.call.about.startswith("size=")]
    main, side = ([o for o in group if o not in sized] for group in (main, side))
    if sized:
        parts += _sized(sized, language)
    parts += first_lines(main, turn)
    parts += _main(main, state, language)
    parts += _quoted(main, turn)
    if main and parts_of["span"]:
        parts += spans_words(parts_of["span"], language)
    wrong = _errors(failed if not good else [o for o in failed if o.call.part in ("main", "ladder")])
    parts += wrong if not good else wrong[:1]
    if not main and not lead.spent and not rungs:
        parts += _passages(found, 1 if wrong else 2)
        found = []
    knobs = _knobs(main or chosen_rung(rungs, plan.limit), language)
    parts += _knob_lines(lead.knobs, language) if lead.parts else knobs
    parts += [f"{say(o.call.about, language)} {beside(o.verdict)}".lstrip() for o in parts_of["line"]]
    parts += _sides(side)
    parts += _passages(found, 1, say("knowledge", language))
    parts += _remarks(plan, state, turn, outcomes)
    if plan.question:
        parts.append(say(plan.question, language, example=_example(turn)))
    text = "\n\n".join(part for part in dict.fromkeys(parts) if part)
    return Reply(
        text or say("nothing_found", scope=say("scope", language)),
        plan.status if good else "needs_input",
        _suggestions(told or side or rungs),
    )


def _undecided(outcome: Outcome) -> bool:
    """Whether versions were checked and nothing that is held decides; an article then says more."""
    return outcome.call.name == "check_compatibility" and outcome.verdict.startswith("No fact that I hold")


_NO_POOL = ("change", "check_scaling", "check_speed", "power", "spot_or_not", "compare")  # "double" pools nothing here
_FAR_BELOW = 0.6  # of the low end: below it no choice of defaults explains the difference
_PARTS = ("main", "side", "line", "ladder", "span")


def _openers(turn: Slots) -> list[str]:
    return [say("secret")] if turn.secrets else []


def _premises(plan: Plan, outcomes: list[Outcome], turn: Slots) -> list[str]:
    lines = []
    names = {
        "memory": ("memory",),
        "bandwidth": ("memory_bandwidth",),
        "tflops": ("bf16_flops",),
        "sparse": ("bf16_flops",),
    }
    for premise in plan.premises:
        as_said = not check(premise.claimed, Evidence([turn.text])).findings
        claimed = premise.claimed if as_said else say("as_named")  # "22g" is no figure that may be said again
        if premise.attribute in names:
            ref = _fact_about(outcomes, premise.gpu, names[premise.attribute])
            if ref:
                lines.append(say(f"premise_{premise.attribute}", "en", gpu=premise.gpu, ref=ref, claimed=claimed))
        elif premise.attribute in ("nvlink", "bits"):
            lines.append(say(f"premise_{premise.attribute}", "en", gpu=premise.gpu, claimed=claimed))
        else:
            lines.append(say("premise_rate", "en", gpu=premise.gpu, claimed=claimed))
    return lines


def _fact_about(outcomes: list[Outcome], gpu: str, names: tuple[str, ...]) -> str | None:
    for outcome in outcomes:
        if outcome.call.name != "compare_gpus" or outcome.error:
            continue
        for fact in outcome.facts():
            if fact.get("name") in names and gpu in fact.get("about", [gpu]):
                return str(fact["id"])
    return None


def _quoted(outcomes: list[Outcome], turn: Slots) -> list[str]:
    """A figure that the asker quotes from somewhere, where it is far below the whole range."""
    if "question_of_truth" not in turn.cues:
        return []
    for outcome in outcomes:
        for name, said, scale in (("run_hours", turn.get("hours"), 1.0), ("peak_per_gpu", turn.get("quoted_gb"), 1e9)):
            fact = outcome.fact(name)
            alone = sum(other.ref(name) is not None for other in outcomes) == 1  # of several runs, which is quoted?
            if fact and said and alone and said * scale < _FAR_BELOW * float(fact.get("low") or fact["value"]):
                return [say("quoted_low")]
    return []


def _unknown(plan: Plan, turn: Slots) -> list[str]:
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
            lines.append(_named("unknown_model", model.text, near, turn))
            lines.append(say("offer_params"))
    for gpu in plan.unknown_gpus:
        near = say("nearest", "en", names=", ".join(gpu.nearest)) if gpu.nearest else ""
        lines.append(_named("unknown_gpu", gpu.text, near, turn))
    return lines


def _named(key: str, name: str, near: str, turn: Slots) -> str:
    """The sentence with the name; without it where its digits read as another number there ("h300 per hour")."""
    line = say(key, "en", name=name, nearest=near)
    stands = not check(line, Evidence([turn.text])).findings
    return line if stands else say(f"{key}_unnamed", "en", nearest=near)


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
        for number, outcome in enumerate(group):
            lead = _lead(outcome, language) or (
                _speed(outcome) if "throughput" in cues and not state.get("mfu") else ""
            )
            if lead:
                parts.append(lead)
            if outcome.verdict:
                parts.append(outcome.verdict if parts or len(outcome.verdict) > _BOLD else f"**{outcome.verdict}**")
            if name != "check_interconnect" or number == 0:  # the same ladder of links stands in each
                parts += outcome.tables[: 2 if name in _LONG and len(group) == 1 else 1]
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
        said = outcome.verdict.partition(":")[0]
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


def _sized(outcomes: list[Outcome], language: str) -> list[str]:
    """What a card holds, a line a method."""
    gpu = str(outcomes[0].call.arguments.get("gpu", ""))
    count = outcomes[0].call.arguments.get("n_gpus", 1)
    lines = size_lines(outcomes, language)
    return [say("card_holds", language, gpu=f"{count} × {gpu}" if count > 1 else gpu), *lines] if lines else []


def _several(name: str, group: list[Outcome], state: Slots, language: str) -> list[str]:
    """One line a case: its verdict, then the first case's bill."""
    parts = []
    methods = {o.call.arguments.get("method") for o in group}
    if len(methods) > 1 and not state.methods and len(set(methods)) > 1:
        parts.append(say("vague_method", language))
    elif name == "estimate_run" and not state.gpus and not state.get("gpu_memory_gb"):
        parts.append(say("vague_gpu", language))
    lines = []
    for outcome in group:
        lead = _lead(outcome, language)
        about = f"{outcome.call.about}: " if lead and outcome.call.about else ""
        verdict = lead or outcome.verdict
        if verdict:
            lines.append(f"- {about}{verdict}")
    parts.append("\n".join(lines))
    return [*parts, *group[0].tables[:1]]


def _knobs(outcomes: list[Outcome], language: str) -> list[str]:
    """The next knobs of the first result that has some; which one, where there are several."""
    for outcome in outcomes:
        lines = list(dict.fromkeys(outcome.lines("next_steps")))[:MAX_KNOBS]
        if lines:
            about = f" ({outcome.call.about})" if len(outcomes) > 1 and outcome.call.about else ""
            return [f"**{say('next', language)}{about}**\n\n" + "\n".join(f"- {line}" for line in lines)]
    return []


def _knob_lines(lines: list[str], language: str) -> list[str]:
    return [f"**{say('next', language)}**\n\n" + "\n".join(f"- {line}" for line in lines)] if lines else []


def _sides(outcomes: list[Outcome]) -> list[str]:
    parts: list[str] = []
    seen: set[str] = set()
    for outcome in outcomes[:4]:
        if outcome.verdict:
            parts.append(beside(outcome.verdict))
        if (
            outcome.call.name not in seen and outcome.call.name != "estimate_vram"
        ):  # its verdict says it: no second bill
            parts += outcome.tables[:1]
        seen.add(outcome.call.name)
    return parts


_ANSWERS = {"Yes: ": "It fits: ", "No: ": "It does not fit: "}


def beside(verdict: str) -> str:
    """A verdict that stands beside another answer: a bare "yes" there would answer the wrong question."""
    return next((words + verdict[len(said) :] for said, words in _ANSWERS.items() if verdict.startswith(said)), verdict)


def _passages(outcomes: list[Outcome], count: int, heading: str = "") -> list[str]:
    """What the knowledge base says; a search result's verdict is its best passage."""
    lines: list[str] = []
    for outcome in outcomes:
        if outcome.verdict:
            lines.append(outcome.verdict)
        lines += [f"- {step}" for step in outcome.lines("next_steps") if count > 1 or not step.startswith("See also")][
            :count
        ]
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


def _sound(note: str, turn: Slots) -> str:
    """How a name was read; without the name where its digits read as a figure ("'a100 80g' read as ...")."""
    stands = not check(note, Evidence([turn.text])).findings
    return note if stands or " read as " not in note else f"Taken to be {note.partition(' read as ')[2]}"


def _remarks(plan: Plan, state: Slots, turn: Slots, outcomes: list[Outcome]) -> list[str]:
    """How names and figures were read, and what the figures leave out."""
    notes = [mention.note for mention in turn.models] + [mention.note for mention in turn.gpus]
    lines = [_sound(note, turn) for note in dict.fromkeys(notes) if note][:2]
    if plan.stand_in:
        lines.append(say("stand_in", turn.language, gpu=plan.stand_in))
    due = turn.get("due")
    if due and due.hour is None and any("deadline" in o.call.arguments for o in outcomes):
        lines.append(say("due_before" if due.before else "due_by", turn.language))
    if turn.get("gigabit"):
        lines.append(say("gigabit", turn.language))
    if turn.links:
        lines.append(say("no_link", turn.language))
    own_currency = any(o.call.arguments.get("currency") not in (None, "USD") for o in outcomes)
    if own_currency or "other_currency" in plan.notes:
        pass  # in the currency of the power price, or said above
    elif turn.get("budget_currency") not in (None, "USD") or "eur" in turn.lower or "€" in turn.lower:
        lines.append(say("euro", turn.language))
    if turn.get("tax") is not None:
        lines.append(say("tax", turn.language))
    if "pool" in turn.cues and plan.goal not in _NO_POOL and state.gpus and (state.get("n_gpus") or 0) != 1:
        lines.append(say("per_card", turn.language))
    return lines


def _suggestions(outcomes: list[Outcome]) -> tuple[str, ...]:
    found = [text for outcome in outcomes for text in outcome.lines("suggestions")]
    return tuple(dict.fromkeys(found))[:4]
