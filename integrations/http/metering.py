"""Between a turn and its model: the call is paid for before it is made, and left when nobody waits any more."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from advisor.accounts import Accounts, Budget, OverBudget, Reservation
from advisor.llm.door import PLANNER
from advisor.llm.protocol import Finish, Message, Model, ModelEvent, ModelFailed, ModelRequest, Usage
from advisor.tool_payload import dumps
from integrations.http.metrics import Metrics
from integrations.http.problems import ServiceProblem
from integrations.http.tracing import TurnTrace, note_usage

log = logging.getLogger("advisor.http")
# Text has three to four characters a token; taking two reserves too much rather than too little.
CHARS_PER_TOKEN = 2
Price = tuple[float, float]  # USD per input and per output token


class Meter:
    """Pays for the model calls of one turn out of its caller's budgets and the one of all together.

    A turn whose budget is spent is not refused: the loop goes on to the planner, which costs nothing, and says so.
    With ``refuse`` it is, as long as no call of it was paid for: a turn that has begun to cost is answered with what
    its tools gave.
    """

    def __init__(
        self,
        accounts: Accounts,
        budgets: Sequence[Budget],
        price_of: Callable[[str], Price | None],
        metrics: Metrics,
        refuse: bool = False,
    ) -> None:
        self._accounts, self._budgets, self._price_of, self._metrics = accounts, budgets, price_of, metrics
        self._reserved: Reservation | None = None
        self.refuse = refuse
        self.refusal: ServiceProblem | None = None  # why the turn is not answered
        self._paid = False

    def before(self, model: str, request: ModelRequest) -> None:
        """Reserve the most that the call can cost. Raises ModelFailed when that is more than is left."""
        price = self._price_of(model)
        if price is None:
            if any(budget.usd is not None for budget in self._budgets):
                raise ModelFailed("price_unknown", f"The price of {model} is not known, so no budget can hold it.")
            price = (0.0, 0.0)
        taken, given = _input_tokens(request), request.max_output_tokens
        try:
            cost = taken * price[0] + given * price[1]
            self._reserved = self._accounts.reserve(self._budgets, taken + given, cost)
            self._paid = True
        except OverBudget as over:
            if self.refuse and not self._paid:
                words = "The day's budget for language models is spent."
                hint = "Ask the model `planner`, which costs nothing, or come back tomorrow (UTC)."
                self.refusal = ServiceProblem(429, "over_budget", words, hint=hint, retry_after=over.seconds)
            self._metrics.refusals.labels("over_budget").inc()
            raise ModelFailed("over_budget", "The day's budget for language models is spent.") from None

    def after(self, model: str, usage: Usage | None, free: bool = False) -> None:
        """Settle what it did cost; a call that ended without saying costs the whole reservation, unless it was free."""
        reserved, self._reserved = self._reserved, None
        usage = Usage() if free else usage
        if usage is not None and min(usage.input_tokens, usage.output_tokens) < 0:
            usage = None  # no provider pays us
        if reserved is None or usage is None or not (free or usage.input_tokens + usage.output_tokens):
            return
        self._metrics.tokens.labels(model, "input").inc(usage.input_tokens)
        self._metrics.tokens.labels(model, "output").inc(usage.output_tokens)
        price = self._price_of(model) or (0.0, 0.0)
        cost = usage.input_tokens * price[0] + usage.output_tokens * price[1]
        try:
            self._accounts.settle(reserved, usage.input_tokens + usage.output_tokens, cost)
        except Exception:  # the reservation stays, so the budget errs on the safe side
            log.exception("a model call could not be settled")


class Watched:
    """A model that learns when nobody waits any more, and whose calls are paid for. The planner costs nothing."""

    def __init__(self, model: Model, stop: threading.Event, meter: Meter | None, traced: TurnTrace) -> None:
        self.name = model.name
        self._model, self._stop, self._meter, self._traced = model, stop, meter, traced

    def reply(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """The model's step as it streams, reserved for before the first event and settled after the last. Raises
        ModelFailed("stopped") when nobody waits, and ModelFailed for a budget that does not hold the call.
        """
        if self._stop.is_set():
            raise ModelFailed("stopped", "Nobody waits for the answer any more.")
        request = replace(request, stopped=self._stop.is_set)
        if self.name == PLANNER or self._meter is None:
            yield from self._model.reply(request)
            return
        self._meter.before(self.name, request)
        usage: Usage | None = None
        free = False
        try:
            with self._traced.model_call(self.name) as span:
                for event in self._model.reply(request):
                    if isinstance(event, Finish):
                        usage = event.usage
                        note_usage(span, usage)
                    yield event
        except ModelFailed as failure:
            free = failure.free
            raise
        finally:
            self._meter.after(self.name, usage, free)


def _input_tokens(request: ModelRequest) -> int:
    """No fewer tokens than the provider will count."""
    chars = sum(map(_chars, request.messages))
    chars += sum(len(tool.name) + len(tool.description) + len(dumps(tool.parameters)) for tool in request.tools)
    return chars // CHARS_PER_TOKEN + 1


def _chars(message: Message) -> int:
    return len(message.content) + sum(len(call.name) + len(dumps(call.arguments)) for call in message.tool_calls)
