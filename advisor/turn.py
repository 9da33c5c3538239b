"""One turn: a question in, tool calls and checked text as events, an ``Answer`` at the end, whatever fails.

There is one loop for every model. A model that fails is followed by the next of the ladder, last the built-in
planner; if even that fails, the answer is what the tools gave, or a plain apology with the turn's id.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

from advisor.answer import Answer, AnswerAssumption, Grounding, finite
from advisor.attempt import MAX_CHARTS, Attempt
from advisor.events import Chart, Done, Event, Facts, Started, Text, ToolFinished, ToolStarted
from advisor.history import trimmed
from advisor.kept_results import KeptResults
from advisor.links import unlinked
from advisor.llm.door import PLANNER, ladder, open_model
from advisor.llm.protocol import Finish, Message, Model, ModelFailed, ModelRequest, Status, TextDelta, ToolCall
from advisor.number_check import Evidence, Report, check
from advisor.prompt import repair_prompt, schema_of, system_prompt
from advisor.question import clean, read_question
from advisor.render import compose, render
from advisor.settings import Settings, database_place, get_settings
from advisor.store import LOCAL, Conversations, Opened, open_store
from advisor.stream_blocks import complete_blocks
from advisor.tool_payload import dumps, prefix_references
from advisor.tool_runner import Outcome, run_calls
from tools.registry import tool_names
from tools.result import Warn

log = logging.getLogger("advisor")
MAX_SUGGESTIONS = 4
LAST_SECONDS = 10.0  # what the last model of the ladder is given even when the turn's time is used up


@dataclass(frozen=True)
class Desk:
    """What turns need: settings, where conversations are kept, how a model is opened by its name."""

    settings: Settings
    store: Conversations
    open_model: Callable[[str], Model]
    kept: KeptResults | None = None  # results of tool calls that come again, where a process answers many people
    now: Callable[[], datetime] = lambda: datetime.now(UTC)  # for what is said of days: "by Friday"


@lru_cache(maxsize=1)
def default_desk() -> Desk:
    """The desk that the environment describes; ``default_desk.cache_clear()`` makes it be read again."""
    settings = get_settings()
    return Desk(settings, open_store(database_place(settings)), lambda name: open_model(name, settings))


def run(
    question: str,
    conversation_id: str | None = None,
    model: str | None = None,
    *,
    principal: str = LOCAL,
    desk: Desk | None = None,
) -> Iterator[Event]:
    """The events of a turn; the last is Done. Raises InputProblem when the question cannot be taken up at all.

    Closing the iterator early (the reader went away) ends the turn and keeps what was found so far.
    """
    desk = desk or default_desk()
    asked = read_question(question, desk.settings.max_question_chars)
    opened = desk.store.begin(principal, conversation_id, asked)
    return _Turn(desk, opened, asked, model, principal).events()


def answer(
    question: str,
    conversation_id: str | None = None,
    model: str | None = None,
    *,
    principal: str = LOCAL,
    desk: Desk | None = None,
) -> Answer:
    """The whole answer at once. Raises InputProblem when the question cannot be taken up at all."""
    events = list(run(question, conversation_id, model, principal=principal, desk=desk))
    last = events[-1]
    assert isinstance(last, Done)
    return last.answer


@dataclass(frozen=True)
class _Final:
    """A finished text: ``body`` as the model wrote it, ``shown`` as printed and checked."""

    body: str
    shown: str
    report: Report
    status: Status
    suggestions: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()


@dataclass
class _Step:
    text: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    finish: Finish = field(default_factory=Finish)


class _Turn:
    def __init__(self, desk: Desk, opened: Opened, question: str, model: str | None, principal: str) -> None:
        self._desk, self._opened, self._question, self._principal = desk, opened, question, principal
        self._settings = desk.settings
        self._ladder = ladder(model, desk.settings)
        self._asked = desk.now()
        self._end = self._until = time.monotonic() + desk.settings.turn_seconds
        self._tools = tuple(schema_of(name) for name in tool_names())
        history = trimmed(opened.history, desk.settings.max_history_chars)
        self._said = [message.content for message in opened.history if message.role == "user"] + [question]
        self._base = (*history, Message("user", question))
        self._calls = opened.tool_calls_before
        self._shown = ""  # the text that the surface holds now
        self._failures: list[tuple[str, str]] = []
        self._model = self._ladder[0]
        self._attempts: list[Attempt] = []
        self._attempt = self._new_attempt()

    def events(self) -> Iterator[Event]:
        finished = False
        try:
            yield Started(
                conversation_id=self._opened.conversation_id, turn_id=self._opened.turn_id, model=self._ladder[0]
            )
            final: _Final | None = None
            for number, name in enumerate(self._ladder):
                self._model = name
                self._until = self._share(number)
                if self._refused() and name != PLANNER:
                    continue  # another provider is no way round a refusal; the planner computes what is asked
                try:
                    final = yield from self._answer_with(self._desk.open_model(name))
                    break
                except ModelFailed as failure:
                    self._failures.append((name, failure.code))
                    log.warning("turn %s: %s failed: %s", self._opened.turn_id, name, failure.code)
                except Exception:
                    self._failures.append((name, "bug"))
                    log.exception("turn %s: %s broke", self._opened.turn_id, name)
            answer = self._wrap_up(final or self._last_rung())
            yield from self._show(answer.answer)
            self._save(answer)
            finished = True
            yield Done(answer=answer)
        finally:
            if not finished:
                self._save(self._wrap_up(self._stopped()))

    def _refused(self) -> bool:
        return any(code == "refused" for _name, code in self._failures)

    def _share(self, number: int) -> float:
        """When the ladder's model of this number must be done: the time left is shared, the last one always has some.

        A provider that stalls must not leave the fallbacks without time, nor the user without an answer.
        """
        now = time.monotonic()
        before_last = len(self._ladder) - 1 - number
        return now + max(0.0, self._end - now) / before_last if before_last else max(self._end, now + LAST_SECONDS)

    # One model's attempt ------------------------------------------------------------------------------------------

    def _answer_with(self, model: Model) -> Generator[Event, None, _Final]:
        """Steps until the model answers in words."""
        attempt = self._attempt = self._new_attempt()
        for number in range(self._settings.max_steps):
            may_call = (
                number < self._settings.max_steps - 1
                and len(attempt.outcomes) < self._settings.max_tool_calls
                and attempt.repeats < 2
                and attempt.tokens < self._settings.max_turn_tokens
                and not attempt.repaired
            )
            step = yield from self._step(model, may_call)
            if step.calls:
                if not may_call:
                    break
                yield from self._run_tools(step.calls)
                if attempt.faults > 1:
                    raise ModelFailed("bad_reply", "The model kept calling tools that cannot be run.")
                continue
            text = step.text
            if step.finish.reason == "length":
                text = text.rpartition("\n\n")[0]  # what was cut in the middle is left out
            if not text.strip():
                raise ModelFailed("bad_reply", "The model said nothing.")
            final = self._finished(text, step.finish)
            if not final.report.findings:
                return final
            if attempt.repaired:
                break
            attempt.repaired = True
            attempt.messages += [
                Message("assistant", text),
                Message("system", repair_prompt(str(finding) for finding in final.report.findings)),
            ]
        if not attempt.outcomes:
            raise ModelFailed("bad_reply", "The model's answer did not hold and no tool was called.")
        return self._from_tools()

    def _step(self, model: Model, may_call: bool) -> Generator[Event, None, _Step]:
        """One step of the model; text is shown paragraph by paragraph once its numbers hold."""
        step, pending, holds = _Step(), "", True
        if self._shown:
            self._shown = ""
            yield Text(text="", replace=True)
        request = ModelRequest(
            tuple(self._attempt.messages),
            self._tools,
            self._until,
            may_call,
            self._settings.max_output_tokens,
            lambda: system_prompt(self._tools, self._asked),
            self._asked,
        )
        for event in model.reply(request):
            if time.monotonic() > self._until:
                raise ModelFailed("timeout", "The turn's time is over.")
            if isinstance(event, TextDelta):
                piece = clean(event.text)  # no escape, control or hidden character of a model is anybody's to see
                step.text += piece
                pending += piece
                blocks, pending = complete_blocks(pending)
                for block in blocks if holds else ():
                    rendered = render(block, self._attempt.sources)
                    holds = not rendered.unknown and not check(rendered.text, self._attempt.evidence).findings
                    if holds and rendered.text:
                        piece = ("\n\n" if self._shown else "") + rendered.text
                        self._shown += piece
                        yield Text(text=piece)
            elif isinstance(event, ToolCall):
                step.calls.append(event)
            else:
                step.finish = event
        usage = step.finish.usage
        self._attempt.tokens += usage.input_tokens + usage.output_tokens
        return step

    def _run_tools(self, calls: Sequence[ToolCall]) -> Iterator[Event]:
        attempt = self._attempt
        calls = calls[: max(1, self._settings.max_tool_calls - len(attempt.outcomes))]
        attempt.messages.append(Message("assistant", tool_calls=tuple(calls)))
        fresh: list[tuple[str, ToolCall]] = []
        answers: list[str] = []  # the short id that answers each call
        for call in calls:
            key = f"{call.name} {call.unreadable or dumps(call.arguments)}"
            if key in attempt.seen:
                attempt.repeats += 1
            else:
                self._calls += 1
                attempt.seen[key] = f"t{self._calls}"
                fresh.append((attempt.seen[key], call))
                yield ToolStarted(id=attempt.seen[key], name=call.name, arguments=finite(call.arguments))
            answers.append(attempt.seen[key])
        seconds = max(0.1, min(self._settings.tool_seconds, self._until - time.monotonic()))
        outcomes = run_calls([call for _short, call in fresh], seconds, self._desk.kept)
        for (short, _call), outcome in zip(fresh, outcomes, strict=True):
            yield from self._take_in(short, outcome)
        attempt.faults += any(outcome.protocol_fault for outcome in outcomes)
        contents = {str(data["tool_call"]): dumps(data) for data in attempt.payloads}
        for call, short in zip(calls, answers, strict=True):
            attempt.messages.append(Message("tool", contents[short], tool_call_id=call.id, name=call.name))

    def _take_in(self, short: str, outcome: Outcome) -> Iterator[Event]:
        attempt, name, milliseconds = self._attempt, outcome.call.name, outcome.milliseconds
        attempt.take_in(short, outcome)
        result = outcome.result
        if result is None:
            yield ToolFinished(id=short, name=name, error=outcome.error, milliseconds=milliseconds)
            return
        verdict = self._tame(render(prefix_references(short, result.verdict), attempt.sources).text)
        yield ToolFinished(id=short, name=name, verdict=verdict, milliseconds=milliseconds)
        yield Facts(tool_call=short, facts=attempt.answer_facts[short])
        for chart in result.charts[:MAX_CHARTS]:
            yield Chart(tool_call=short, spec=finite(chart))

    # Ends ---------------------------------------------------------------------------------------------------------

    def _finished(self, body: str, finish: Finish, ours: bool = False) -> _Final:
        attempt = self._attempt
        rendered = render(body, attempt.sources)
        # A model's words are judged as they are; those of tools, which may quote strangers, are shown without links.
        text = self._tame(rendered.text) if ours else rendered.text
        shown = "\n\n".join([text, *map(self._tame, attempt.footer())])
        report = check(shown, attempt.evidence)
        for name in rendered.unknown:
            report.missing_reference(name)
        return _Final(body, shown, report, finish.status, finish.suggestions, tuple(rendered.tables))

    def _from_tools(self) -> _Final:
        """The deterministic answer from the results at hand."""
        self._attempt.repaired = True
        status: Status = "answered" if self._attempt.results else "needs_input"
        final = self._finished(compose(self._attempt.payloads), Finish(status), ours=True)
        for finding in final.report.findings:  # a tool's own words: a fault of the tool or of the check, worth a look
            log.warning("turn %s: tool text does not pass the check: %s", self._opened.turn_id, finding)
        return final

    def _tame(self, text: str) -> str:
        return unlinked(clean(text), self._attempt.evidence.cited)

    def _last_rung(self) -> _Final:
        """No model gave an answer: what the tools gave to any of them, or a plain apology."""
        for attempt in reversed(self._attempts):
            if attempt.results:
                self._attempt = attempt
                return self._from_tools()
        text = (
            "Something went wrong on our side and no answer could be made; your question is kept "
            f"(turn `{self._opened.turn_id}`). Please ask again, or call a tool directly with `advisor tool`."
        )
        return _Final(text, text, Report(), "failed")

    def _stopped(self) -> _Final:
        text = "The turn was stopped before it was answered."
        return _Final(text, text, Report(), "failed")

    def _wrap_up(self, final: _Final) -> Answer:
        attempt = self._attempt
        suggestions = [*final.suggestions, *(text for _short, result in attempt.results for text in result.suggestions)]
        report = final.report
        return Answer(
            conversation_id=self._opened.conversation_id,
            turn_id=self._opened.turn_id,
            status=final.status,
            answer=final.shown,
            model=self._model,
            degraded=bool(self._failures),
            tool_calls=attempt.records(),
            facts=attempt.facts(final.tables),
            assumptions=[
                AnswerAssumption(name=item.name, value=item.value, unit=item.unit, why=item.why)
                for item in attempt.assumptions()
            ],
            citations=attempt.citations(),
            warnings=attempt.warnings(),
            charts=[chart for _short, result in attempt.results for chart in result.charts[:MAX_CHARTS]],
            suggestions=list(dict.fromkeys(suggestions))[:MAX_SUGGESTIONS],
            grounding=Grounding(numbers=report.numbers, grounded=report.grounded, repaired=attempt.repaired),
        )

    def _show(self, text: str) -> Iterator[Event]:
        """Bring the surface from what it holds to the final text."""
        if text.startswith(self._shown):
            rest = text[len(self._shown) :]
            if rest:
                yield Text(text=rest)
        else:
            yield Text(text=text, replace=True)
        self._shown = text

    def _save(self, answer: Answer) -> None:
        turn_messages = [
            message for message in self._attempt.messages[len(self._base) :] if message.role in ("assistant", "tool")
        ]
        kept = [message for message in turn_messages if message.tool_calls or message.role == "tool"]
        kept.append(Message("assistant", answer.answer))
        try:
            self._desk.store.finish(self._principal, self._opened, answer, kept)
        except Exception:  # the answer is worth more than its record
            log.exception("turn %s could not be saved", self._opened.turn_id)
            answer.warn("not_saved", "This turn could not be saved to the conversation.")

    def _new_attempt(self) -> Attempt:
        self._attempts.append(Attempt(list(self._base), Evidence(self._said), self._failure_warnings()))
        return self._attempts[-1]

    def _failure_warnings(self) -> list[Warn]:
        """Which model could not answer, when another one does; once, however many failed."""
        if not self._failures or self._model == self._failures[-1][0]:
            return []
        name, code = self._failures[0]
        by = "the built-in planner, without a language model" if self._model == PLANNER else self._model
        return [Warn(code="degraded", text=f"{name} could not answer ({_WHY.get(code, code)}); this is by {by}.")]


_WHY = {
    "over_budget": "the day's budget is spent", "price_unknown": "its price is not known",
    "timeout": "no reply in time", "rate_limited": "rate limited", "bad_reply": "no usable reply",
    "misconfigured": "its name or key is not accepted", "missing": "litellm is not installed", "bug": "it broke",
    "refused": "it was not allowed to",
}  # fmt: skip
