"""The planner as a model behind the door: messages in, tool calls or text out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from advisor.llm.planner import act_asked, act_figures, act_machines, act_memory, act_owning, act_runs, grammar  # noqa: F401  importing registers the actions
from advisor.llm.planner.decide import ACTIONS, Decider
from advisor.llm.planner.follow_up import read_follow_up
from advisor.llm.planner.goals import goals_of
from advisor.llm.planner.mentions import ModelMention
from advisor.llm.planner.parse import parse
from advisor.llm.planner.phrases import Outcome
from advisor.llm.planner.plan import Call, Plan
from advisor.llm.planner.read_dates import hours_left
from advisor.llm.planner.slots import Slots, merge
from advisor.llm.planner.word import compose, spoken
from advisor.llm.protocol import Finish, Message, ModelEvent, ModelRequest, TextDelta, ToolCall
from knowledge.search import SURE, closeness, search

MAX_TURNS = 24  # earlier user turns that are read again; beyond these a conversation has moved on


class Planner:
    """Deterministic, keyless, offline."""

    name = "planner"

    def reply(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """The next step of the conversation: its tool calls, or once their results are there the answer."""
        said, results = _split(request.messages)
        state, turn, goals, context = _read(tuple(said[-MAX_TURNS:]), request.now)
        plan = decide(state, turn, goals, context, tuple(tool.name for tool in request.tools))
        if plan.calls and not results and request.allow_tools:
            for index, call in enumerate(plan.calls, 1):
                yield ToolCall(f"p{index}", call.name, dict(call.arguments))
            yield Finish(reason="tool_calls")
            return
        if plan.calls and results and _unread(results[: len(plan.calls)]):
            # The hub could not be read: the size in the name stands in, which the answer says.
            state, turn = (replace(slots, models=tuple(map(_unknown, slots.models))) for slots in (state, turn))
            first = len(plan.calls)
            plan = decide(state, turn, goals, context, tuple(tool.name for tool in request.tools))
            results = results[first:]
            if plan.calls and not results and request.allow_tools:
                for index, call in enumerate(plan.calls, first + 1):
                    yield ToolCall(f"p{index}", call.name, dict(call.arguments))
                yield Finish(reason="tool_calls")
                return
        if plan.calls and results:
            outcomes = [Outcome(call, data) for call, data in zip(plan.calls, results, strict=False)]
            reply = compose(plan, outcomes, state, turn)
        else:
            reply = spoken(plan, turn, context)
        yield TextDelta(_in_gib(reply.text) if grammar.named("in_gib", "follow_up").search(turn.lower) else reply.text)
        yield Finish(status=reply.status, suggestions=reply.suggestions)


def _unread(results: list[dict[str, Any]]) -> bool:
    """Whether a model's configuration could not be read from the hub."""
    errors = [data["error"] for data in results if isinstance(data.get("error"), dict)]
    return any(str(error.get("code", "")).startswith("hub_") for error in errors)


def _unknown(mention: ModelMention) -> ModelMention:
    """A model of the hub as one that is not known, sized by its name where that states a size."""
    return replace(mention, kind="unknown", argument=mention.size) if mention.kind == "hub" else mention


def _sized(mention: ModelMention) -> ModelMention:
    """What is computed for a name that is not known but states a size; the answer says that it stands in."""
    return replace(mention, kind="size") if mention.kind == "unknown" and mention.argument else mention


def _in_gib(text: str) -> str:
    """The same facts printed in GiB; ranges, which cannot be, are left out rather than shown in another unit."""
    return re.sub(r"\[\[([^\[\]|:]+)\]\]", r"[[\1|GiB]]", re.sub(r" \(\[\[[^\[\]]+\|range\]\]\)", "", text))


# What people ask of anything: without a word of our field these are not for us.
_ANYONES = frozenset(("concept", "compare", "fit", "cost", "price", "time", "gpu_select"))


# From this share of a question's words in one article (``closeness``), the article answers what nothing else took up.
_CLOSE = 0.765
_CLOSE_WITHOUT_MODEL = 0.95  # where asking for the model would be the other answer
_SURE_WITHOUT_MODEL = 0.95  # likewise, of the score that an article has
_SUMS = (("cost",), ("time",), ("gpu_select",), ("price",))  # a sum is asked for; an article is no answer to it
_TELLING_WORDS = 7  # from this many a message says what it is about
_FIGURES = frozenset(("tflops", "bandwidth_ask"))  # asked of a card alone, its data sheet answers


def decide(state: Slots, turn: Slots, goals: tuple[str, ...], context: bool, tools: tuple[str, ...]) -> Plan:
    """The plan for a turn: what its words ask for, else the article that speaks of them."""
    plan = _decided(state, turn, goals, context, tools)
    if plan.calls or plan.unknown_models or plan.unknown_gpus or plan.reply not in ("", "ask_what", "ask_model"):
        return plan
    if plan.reply == "ask_model" and turn.gpus and turn.cues & _FIGURES and "compare_gpus" in tools:
        cards = [mention.argument for mention in turn.gpus if mention.argument]
        return Plan(calls=(Call("compare_gpus", {"gpus": cards[:5]}),), goal="compare")
    if "search_knowledge" in tools and _explained(turn, lacks_model=plan.reply == "ask_model" or goals[:1] in _SUMS):
        return Plan(calls=(Call("search_knowledge", {"query": turn.text[:500]}),), goal="concept")
    return plan


def _explained(turn: Slots, *, lacks_model: bool) -> bool:
    """Whether an article answers the message well enough not to ask for a slot, or to decline, instead.

    A short question that lacks a model ("will it fit?") resembles articles as well, but wants its model named.
    """
    if _vague(turn.lower) or grammar.matcher("scope", "wishes").fullmatch(turn.lower.strip(" .!?")):
        return False
    words = len(turn.text.split())
    best = search(turn.text[:500], 1)
    likely = best[0].score if best and best[0].kind == "article" else 0.0
    if lacks_model:
        sure = likely >= _SURE_WITHOUT_MODEL and words >= _TELLING_WORDS
        return sure or ("?" in turn.text and closeness(turn.text) >= _CLOSE_WITHOUT_MODEL)
    return closeness(turn.text) >= _CLOSE or (likely >= SURE and words >= _TELLING_WORDS)


def _decided(state: Slots, turn: Slots, goals: tuple[str, ...], context: bool, tools: tuple[str, ...]) -> Plan:
    if turn.cues & {"greeting", "about_me"} and not turn.models and not context:
        return Plan(reply="greeting")
    if "thanks" in turn.cues and not turn.models:
        return Plan(reply="thanks")
    kind = _out_of_scope(turn)
    always = grammar.data("scope")["always"]
    ours = bool(
        turn.models or turn.gpus or turn.methods or turn.log or grammar.matcher("scope", "ours").search(turn.lower)
    )
    if kind and (kind in always or not (turn.models or turn.methods or turn.values.get("tokens")) or kind == "gaming"):
        return Plan(reply=kind, status="declined", goal="out_of_scope")
    if not context and grammar.matcher("scope", "wishes").fullmatch(turn.lower.strip(" .!?")):
        return Plan(reply="ask_what", status="needs_input", goal="wish")
    if not context and not (turn.models or turn.gpus or turn.methods or turn.log) and _vague(turn.lower):
        sized = turn.get("gpu_memory_gb") and "fit" in goals  # "24 GB enough?": what such a card holds narrows it down
        if not sized:
            return Plan(reply="ask_what", status="needs_input")
    if not ours and not context and set(goals) <= _ANYONES:
        if turn.cues & {"follow_up", "same_again", "change_only"} or _vague(turn.lower):
            return Plan(reply="ask_what", status="needs_input")
        if any(letter.isalpha() for letter in turn.text) and len(turn.text.split()) > 2:
            return Plan(reply="", status="declined", goal="out_of_scope")
        return Plan(reply="ask_what", status="needs_input")
    state = replace(state, models=tuple(map(_sized, state.models)))
    return Decider(state, turn, tuple(goal for goal in goals if goal in ACTIONS), tools).plan()


def _vague(lower: str) -> bool:
    """Whether a message has no word that names a subject: "is it enough?"."""
    return _small_words().fullmatch(lower.strip()) is not None


@lru_cache(maxsize=1)
def _small_words() -> re.Pattern[str]:
    return re.compile(grammar.data("scope")["vague"])


def _out_of_scope(turn: Slots) -> str | None:
    """The kind of thing asked for that is none of ours, or None."""
    mild = ("gaming", "food", "finance", "general", "repair")
    kinds = (kind for kind, _match in grammar.found("scope", "kinds", turn.lower))
    return next((kind for kind in kinds if not (kind in mild and turn.models)), None)


@lru_cache(maxsize=64)
def _parsed(text: str) -> Slots:
    return parse(_corrected(text))


_OWN_WORDS = 4  # from which what follows a correction is a question of its own


def _corrected(text: str) -> str:
    """What stands after the asker took the words before it back: "or rent? no wait, forget that. just tell me ..."."""
    if len(text) > _LONGEST_CORRECTED:
        return text
    ends = [match.end() for match in grammar.named("corrected", "asked").finditer(text.lower())]
    tail = text[ends[-1] :] if ends and len(text.lower()) == len(text) else ""
    return tail if len(tail.split()) >= _OWN_WORDS else text


_LONGEST_CORRECTED = 2_000  # characters; a longer message holds a log or a page


def _read(said: tuple[str, ...], now: datetime | None = None) -> tuple[Slots, Slots, tuple[str, ...], bool]:
    """The conversation's slots, the last message's own, what it is after, and whether anything came before."""
    state, context = Slots(), False
    goals: tuple[str, ...] = ()
    turn, counts = Slots(), False
    for index, text in enumerate(said):
        before = goals
        turn = read_follow_up(_timed(_parsed(text), now), state, goals)
        if turn.model and turn.gpus and turn.intents and "follow_up" not in turn.cues:
            state = Slots()  # a whole question of its own: what was said before is not meant
        merged = merge(state, turn)
        goals = goals_of(turn, merged, goals)
        still = goals == before and not turn.intents  # "how many GPUs?", then "H100s": how many of them
        counts = "how_many" in turn.cues or (counts and still)
        if index < len(said) - 1:
            context = context or bool(merged.models or merged.gpus or merged.methods or merged.values)
        state = merged
    if counts:
        turn = replace(turn, cues=turn.cues | {"how_many"})
    return state, turn, goals, context


def _timed(turn: Slots, now: datetime | None) -> Slots:
    """``turn`` with the hours that are left until the day it gives."""
    due = turn.get("due")
    hours = hours_left(due, now) if due and now else None
    return turn if hours is None else replace(turn, values={**turn.values, "deadline_hours": round(hours, 1)})


def _split(messages: tuple[Message, ...]) -> tuple[list[str], list[dict[str, Any]]]:
    """What the user said, in order, and the results of this turn's calls."""
    said = [message.content for message in messages if message.role == "user"]
    last = max((index for index, message in enumerate(messages) if message.role == "user"), default=-1)
    results = []
    for message in messages[last + 1 :]:
        if message.role == "tool":
            try:
                data = json.loads(message.content)
            except ValueError:
                data = {}
            results.append(data if isinstance(data, dict) else {})
    return said, results
