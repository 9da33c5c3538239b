"""Words for several estimates in a row: the ends of what was left open, and where a ladder stops to fit."""

from __future__ import annotations

from advisor.llm.planner.phrases import Outcome, say
from advisor.llm.planner.plan import Limit


def spans_words(spans: list[Outcome], language: str) -> list[str]:
    """The figure at both ends of what was left open, where it differs."""
    name = "peak_per_gpu" if spans[0].call.name == "estimate_vram" else "run_hours"
    values = [float(fact["value"]) for o in spans if (fact := o.fact(name))]
    if len(values) < 2 or max(values) - min(values) < 0.03 * max(values):
        return []
    at = "at " if name == "peak_per_gpu" and language == "en" else ""
    cases = "; ".join(
        f"{at}{_rung(o)}{_tokens_of(o)} [[{o.ref(name)}]] ([[{o.ref(name)}|range]])" for o in spans if o.ref(name)
    )
    return [say("span" if name == "peak_per_gpu" else "row_span", language, cases=cases)]


def _tokens_of(outcome: Outcome) -> str:
    ref = outcome.ref("tokens") if outcome.call.name == "estimate_run" else None
    return f" ([[{ref}]])" if ref else ""


def ladder_words(rungs: list[Outcome], language: str, limit: Limit | None) -> list[str]:
    """Where a rising row of estimates stops, or begins, to fit, a line a rung; by the card's memory without a limit."""
    name = limit.fact if limit else "peak_per_gpu"
    rungs = [o for o in rungs if o.ref(name)]
    if not rungs:
        return []
    refs = [o.ref(name) or "" for o in rungs]
    rising = _rising(rungs)
    hit = _hit(rungs, limit)
    ending = "" if limit is None else "_limit"
    values = {"limit": limit.words if limit else ""}
    parts = []
    border = hit is not None and _on_border(rungs[hit], limit)
    if hit is None:
        parts.append(say(f"none_fit{ending}", language, first=refs[0], last=refs[-1], **values))
    else:
        key = "first_fit" if rising else "last_fit"
        if border:  # say so in the verdict, not only in the row
            values["border"] = say("just", language)
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
    parts.append(chosen.verdict)
    parts += chosen.tables[:1]
    return parts


def chosen_rung(rungs: list[Outcome], limit: Limit | None) -> list[Outcome]:
    """The rung that the answer is about: the one where it stops, or begins, to fit; [] where there are none."""
    hit = _hit(rungs, limit)
    return [rungs[hit if hit is not None else -1 if _rising(rungs) else 0]] if rungs else []


def _rising(rungs: list[Outcome]) -> bool:
    """Whether more of it fits better: more GPUs do, longer samples do not."""
    return bool(rungs) and rungs[0].call.about.startswith("n_gpus")


def _hit(rungs: list[Outcome], limit: Limit | None) -> int | None:
    fits = [_fits(o, limit) for o in rungs]
    order = range(len(fits)) if _rising(rungs) else range(len(fits) - 1, -1, -1)
    return next((index for index in order if fits[index]), None)


def size_lines(outcomes: list[Outcome], language: str) -> list[str]:
    """For each method, the largest size that fits a card and the next that does not."""
    by_method: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.ref("peak_per_gpu"):
            by_method.setdefault(str(outcome.call.arguments.get("method", "")), []).append(outcome)
    lines = []
    for method, rungs in by_method.items():
        hit = _hit(rungs, None)
        fitting = rungs[hit] if hit is not None else None
        above = rungs[hit + 1] if hit is not None and hit + 1 < len(rungs) else None if fitting else rungs[0]
        said = [say(f"size_{key}", language, what=_rung(rung), ref=rung.ref("peak_per_gpu"))
                for key, rung in (("fits", fitting), ("above", above)) if rung]  # fmt: skip
        lines.append(f"- {say(f'method_{method}', language) or method}: {'; '.join(said)}.")
    return ["\n".join(lines)] if lines else []


def _rung(outcome: Outcome) -> str:
    """A rung in words; its digits are those of the call's own arguments."""
    words = []
    for piece in outcome.call.about.split(";"):
        name, _, value = piece.partition("=")
        if name == "machines":
            each = f"{outcome.call.arguments.get('n_gpus')} × {outcome.call.arguments.get('gpu')}"
            words.append(f"{each}, one machine" if value == "1" else each)
            continue
        words.append(
            {
                "n_gpus": f"{value} × {outcome.call.arguments.get('gpu')}",
                "seq_len": f"{value} tokens",
                "micro_batch": f"batch size {value}",
                "users": f"{value} at once",
                "tokens": f"{value} tokens",
                "size": value,
                "lora_rank": f"rank {value}",
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
    if outcome.fact(limit.fact if limit else "headroom") is None:
        return ""
    if _on_border(outcome, limit):
        return say("borderline", language)
    if limit is not None:
        return say("in_limit" if _fits(outcome, limit) else "over_limit", language)
    return say("fits" if _fits(outcome, limit) else "no_fit", language)


def _on_border(outcome: Outcome, limit: Limit | None) -> bool:
    """Whether the range of the figure holds the bound."""
    fact = outcome.fact(limit.fact if limit else "headroom") or {}
    low, high = fact.get("low"), fact.get("high")
    border = limit.value if limit else 0.0
    return low is not None and high is not None and low < border < high
