"""Prometheus figures. Labels come from closed sets only: route, method, status, surface, model, tool, outcome."""

from __future__ import annotations

import os
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess

from advisor.answer import Answer

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Metrics:
    """The figures of one server process; several processes share a folder (PROMETHEUS_MULTIPROC_DIR)."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        made: dict[str, Any] = {"namespace": "advisor", "registry": self.registry}
        self.requests = Counter("http_requests", "HTTP requests.", ["route", "method", "status"], **made)
        self.request_seconds = Histogram("http_request_seconds", "Time to answer.", ["route"], buckets=SECONDS, **made)
        self.turns = Counter("turns", "Questions answered.", ["surface", "model", "status", "degraded"], **made)
        self.turn_seconds = Histogram("turn_seconds", "Time of a turn.", ["model"], buckets=SECONDS, **made)
        self.turns_running = Gauge("turns_running", "Turns in work or waiting.", multiprocess_mode="livesum", **made)
        self.tool_calls = Counter("tool_calls", "Tool calls.", ["tool", "surface", "outcome"], **made)
        self.tool_seconds = Histogram("tool_seconds", "Time of a tool call.", ["tool"], buckets=SECONDS, **made)
        self.tokens = Counter("model_tokens", "Tokens of language models.", ["model", "direction"], **made)
        self.refusals = Counter("refusals", "Requests refused by a limit.", ["code"], **made)

    def turn(self, surface: str, answer: Answer, seconds: float) -> None:
        """Count a finished turn of ``seconds``, and each of its tool calls; tool names that a model made up are left
        out.
        """
        self.turns.labels(surface, answer.model, answer.status, str(answer.degraded).lower()).inc()
        self.turn_seconds.labels(answer.model).observe(seconds)
        for call in answer.tool_calls:
            outcome = "error" if call.error else "ok"
            if call.error and call.error.get("code") == "unknown_tool":
                continue  # a name that a model made up must not become a label
            self.tool(call.name, surface, outcome, call.milliseconds / 1e3)

    def tool(self, name: str, surface: str, outcome: str, seconds: float) -> None:
        """Count a tool call of ``seconds``; ``outcome`` is "ok" or "error", ``name`` must be one of the registry's."""
        self.tool_calls.labels(name, surface, outcome).inc()
        self.tool_seconds.labels(name).observe(seconds)

    def exposition(self) -> bytes:
        """The figures in Prometheus' text format; of all processes together where PROMETHEUS_MULTIPROC_DIR is set."""
        if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
            shared = CollectorRegistry()
            multiprocess.MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
            return generate_latest(shared)
        return generate_latest(self.registry)
