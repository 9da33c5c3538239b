"""What happened when a case ran: per turn the answer object (or the tool's result), in one shape for all graders."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from advisor.number_check import Evidence
from advisor.render import Sources, compose, render
from advisor.tool_payload import payload
from tools.errors import InputProblem
from tools.registry import get_tool


@dataclass(slots=True)
class Happened:
    """One turn or call. ``crash`` holds the exception's type and words when anything but a user's error was raised."""

    question: str
    text: str = ""
    status: str = "answered"
    calls: list[dict[str, Any]] = field(default_factory=list)  # id, name, arguments, result or error
    facts: list[dict[str, Any]] = field(default_factory=list)
    cited: list[str] = field(default_factory=list)  # ids and titles
    warnings: list[str] = field(default_factory=list)  # codes
    error: dict[str, Any] | None = None  # the call itself, or taking up the question, failed
    answer: dict[str, Any] | None = None  # the whole ask --json object
    model: str = ""
    degraded: bool = False
    seconds: float = 0.0
    crash: str | None = None

    def evidence(self, said: list[str]) -> Evidence:
        """What the numbers of the text may rest on: ``said`` by the user, the results and errors of the calls, and
        warnings.
        """
        evidence = Evidence(said)
        for call in self.calls:
            if call.get("result") is not None:
                evidence.add_json(call["arguments"], call["result"])
            else:
                evidence.add_error(call.get("error") or {})
        for warn in (self.answer or {}).get("warnings", []):
            evidence.add_text(warn["text"])
        if self.answer:
            evidence.add_text(self.answer["turn_id"])
        return evidence


def of_call(tool: str, arguments: dict[str, Any]) -> Happened:
    """A direct tool call, its text worded by the product's own renderer from the result alone."""
    happened = Happened(question="")
    try:
        result = get_tool(tool).call(arguments)
    except InputProblem as problem:
        error = problem.as_dict()
        happened.error, happened.text, happened.status = error, problem.message, "failed"
        happened.calls = [{"id": "t1", "name": tool, "arguments": arguments, "error": error}]
        return happened
    data = result.model_dump(mode="json")
    sources = Sources()
    sources.add("t1", result)
    happened.text = render(compose([payload("t1", tool, result)]), sources).text
    happened.calls = [{"id": "t1", "name": tool, "arguments": arguments, "result": data}]
    happened.facts = data["facts"]
    happened.cited = [word for source in data["sources"] for word in (source["id"], source["title"])]
    happened.warnings = [warn["code"] for warn in data["warnings"]]
    return happened


def of_answer(question: str, answer: dict[str, Any]) -> Happened:
    """A turn of the advisor, from its ``ask --json`` object; its seconds are left at their default. KeyError for
    another shape.
    """
    results = [call["result"] for call in answer["tool_calls"] if call.get("result") is not None]
    return Happened(
        question=question,
        text=answer["answer"],
        status=answer["status"],
        calls=answer["tool_calls"],
        facts=[fact for result in results for fact in result["facts"]],
        cited=[word for item in answer["citations"] for word in (item["id"], item["title"], item["source"])],
        warnings=[warn["code"] for warn in answer["warnings"]],
        answer=answer,
        model=answer["model"],
        degraded=answer["degraded"],
    )
