"""Spans: a request holds its turn, the turn its tools and model calls; nothing that users write is in one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry import trace

from advisor.llm.protocol import Finish, Usage
from integrations.http import tracing
from tests.advisor.conftest import Scripted, calls, says
from tests.faults.conftest import settles
from tests.integrations.http.conftest import Serve
from tools.errors import BadValue


class Recorded(trace.NonRecordingSpan):
    """A span that keeps what it is told."""

    def __init__(self, name: str, parent: Any, attributes: dict[str, Any] | None) -> None:
        super().__init__(trace.INVALID_SPAN_CONTEXT)
        self.name, self.parent, self.attributes, self.ended = name, parent, dict(attributes or {}), False

    def update_name(self, name: str) -> None:
        self.name = name

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value

    def set_attributes(self, attributes: Any) -> None:
        self.attributes.update(attributes)

    def end(self, end_time: int | None = None) -> None:
        self.ended = True


class Recorder:
    """A tracer that keeps its spans."""

    def __init__(self) -> None:
        self.spans: list[Recorded] = []

    def start_span(self, name: str, context: Any = None, attributes: Any = None, **_: Any) -> Recorded:
        self.spans.append(Recorded(name, trace.get_current_span(context), attributes))
        return self.spans[-1]

    @contextmanager
    def start_as_current_span(self, name: str, **more: Any) -> Iterator[Recorded]:
        span = self.start_span(name, **more)
        with trace.use_span(span):
            yield span
        span.end()


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    found = Recorder()
    monkeypatch.setattr(tracing, "tracer", lambda: found)
    return found


def test_a_request_is_traced_down_to_its_tools_and_model_calls(serve: Serve, recorder: Recorder) -> None:
    model = Scripted(
        calls(("toy_memory", {"model": "secret-model"}), ("toy_price", {"gpu": "boom"})),
        says("It needs [[t1.peak_per_gpu]].", finish=Finish(usage=Usage(10, 5))),
        name="prov/one",
    )
    live = serve(model)
    live.client.post("/v1/ask", json={"question": "what does secret-model need?"})
    by_name = {span.name: span for span in recorder.spans}
    request, turn = by_name["POST /v1/ask"], by_name["invoke_agent advisor"]
    assert turn.parent is request
    for name in ("execute_tool toy_memory", "execute_tool toy_price", "chat prov/one"):
        assert by_name[name].parent is turn
    assert by_name["execute_tool toy_price"].attributes["error.type"] == "tool_failed"
    assert by_name["chat prov/one"].attributes["gen_ai.usage.output_tokens"] == 5
    assert turn.attributes["advisor.status"] == "answered"
    assert request.attributes["http.response.status_code"] == 200
    assert settles(lambda: all(span.ended for span in recorder.spans))  # the request's ends after its last byte
    assert "secret-model" not in str([(span.name, span.attributes) for span in recorder.spans])


def test_a_missing_sdk_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(BadValue, match="SDK"):
        tracing.set_up()
