"""Traces by OpenTelemetry: a request, the turn in it, its tools and model calls, by the GenAI conventions' names.

Without the SDK (extra ``otel``) and ADVISOR_OTEL the spans record nothing. What users write is in no span.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from advisor.answer import Answer
from advisor.events import Event
from advisor.llm.protocol import Usage
from advisor.settings import program_version
from tools.errors import BadValue

NAME = "advisor"


def set_up() -> None:
    """Send spans where the OTEL_* variables say (OTLP over HTTP). Raises BadValue when the extra is missing."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError:
        raise BadValue(
            "missing_extra",
            "ADVISOR_OTEL is set, but OpenTelemetry's SDK is not installed.",
            field="ADVISOR_OTEL",
            hint="pip install 'training-infrastructure-advisor[otel]'",
        ) from None
    described = Resource.create({"service.name": NAME, "service.version": program_version()})
    provider = TracerProvider(resource=described)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)


def tracer() -> trace.Tracer:
    """Where spans are made; without ``set_up`` they record nothing and cost next to nothing."""
    return trace.get_tracer(NAME)


@contextmanager
def request_span(method: str, headers: Mapping[str, str]) -> Iterator[Span]:
    """The span of a request, child of the caller's where it sends one."""
    from opentelemetry.propagate import extract

    with tracer().start_as_current_span(
        method, context=extract(headers), kind=SpanKind.SERVER, attributes={"http.request.method": method}
    ) as span:
        yield span


def end_request(span: Span, method: str, route: str, status: int) -> None:
    """Name the span by its route, which is known only now, and mark it failed from status 500 up. Does not end it."""
    span.update_name(f"{method} {route}")
    span.set_attributes({"http.route": route, "http.response.status_code": status})
    if status >= 500:
        span.set_status(Status(StatusCode.ERROR))


class TurnTrace:
    """The span of a turn and those of its tools; made beside the event loop, ended in the turn's thread."""

    def __init__(self, surface: str, model: str) -> None:
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": NAME,
            "gen_ai.request.model": model,
            "advisor.surface": surface,
        }
        self._span = tracer().start_span(f"invoke_agent {NAME}", attributes=attributes)
        self._context = trace.set_span_in_context(self._span)
        self._tools: dict[str, Span] = {}

    def see(self, event: Event) -> None:
        """Follow an event of the turn: a tool's start opens a span, its end closes it, the last event notes the
        outcome. Other events change nothing.
        """
        if event.type == "tool_started":
            attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": event.name}
            self._tools[event.id] = tracer().start_span(
                f"execute_tool {event.name}", self._context, attributes=attributes
            )
        elif event.type == "tool_finished" and event.id in self._tools:
            span = self._tools.pop(event.id)
            if event.error:
                span.set_attribute("error.type", str(event.error.get("code")))
            span.end()
        elif event.type == "done":
            self._span.set_attributes(_outcome(event.answer))

    @contextmanager
    def model_call(self, model: str) -> Iterator[Span]:
        """The span of one call of a provider's model, open while the block runs; what the block raises marks it and
        goes on.
        """
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}
        span = tracer().start_span(f"chat {model}", self._context, kind=SpanKind.CLIENT, attributes=attributes)
        try:
            yield span
        except BaseException as error:
            span.set_attribute("error.type", getattr(error, "code", type(error).__name__))
            raise
        finally:
            span.end()

    def end(self) -> None:
        """The turn is over, whatever came of it: close its span and those of tools that never finished."""
        for span in self._tools.values():
            span.end()
        self._span.end()


def note_usage(span: Span, usage: Usage | None) -> None:
    """Set the input and output tokens of a model call on its span; nothing where the provider told none (None)."""
    if usage is not None:
        span.set_attribute("gen_ai.usage.input_tokens", usage.input_tokens)
        span.set_attribute("gen_ai.usage.output_tokens", usage.output_tokens)


def _outcome(answer: Answer) -> dict[str, Any]:
    return {
        "gen_ai.response.model": answer.model,
        "gen_ai.conversation.id": answer.conversation_id,
        "advisor.turn.id": answer.turn_id,
        "advisor.status": answer.status,
        "advisor.degraded": answer.degraded,
    }
