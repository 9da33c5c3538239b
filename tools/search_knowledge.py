"""``search_knowledge``: what the curated articles and the checked claims say, with sources and dates."""

from __future__ import annotations

import json
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from knowledge.search import SURE, claim_proof, search, telling_sentence
from knowledge.sources import source
from knowledge.types import Passage
from tools.errors import MissingValue
from tools.registry import tool
from tools.result import Column, Fact, SourceRef, Step, Table, ToolResult, Warn
from tools.units import Unit

# A claim's unit as the closed list of facts has it, with the factor to base units.
_UNITS: dict[str, tuple[Unit, float]] = {
    "GB": ("B", 1e9), "TB": ("B", 1e12), "GB/s": ("B/s", 1e9), "TB/s": ("B/s", 1e12), "TFLOPS": ("FLOP/s", 1e12),
    "kW": ("W", 1e3), "min": ("s", 60.0),
}  # fmt: skip
_VERDICTS = {
    "right": "is right", "wrong": "is wrong", "misleading": "is misleading", "depends": "depends on what it leaves out",
}  # fmt: skip

_LOOSE = Warn(code="loosely_related", text="The passages are the nearest, but may not be what was asked.")


class SearchKnowledgeInput(BaseModel):
    """Any words: a question, a term, or a claim to check."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(
        description="A question, a term or a claim in plain words, e.g. 'do I need InfiniBand'.", max_length=32_000
    )
    limit: int = Field(default=3, ge=1, le=10, description="How many passages at most.")


class FoundPassage(BaseModel):
    """One passage of an article, or one checked claim (``verdict``: right, wrong, misleading, depends)."""

    id: str
    title: str
    text: str
    kind: Literal["article", "claim"]
    verdict: str | None = None
    sources: list[str]
    as_of: str


class SearchKnowledgeResult(ToolResult):
    """The passages, best first; checked claims that the query restates come before articles."""

    passages: list[FoundPassage] = Field(default_factory=list)


@tool(
    "search_knowledge",
    examples=[{"query": "do I need InfiniBand for two nodes"}, {"query": "QLoRA needs 0.5 GB per billion parameters"}],
)
def search_knowledge(given: SearchKnowledgeInput) -> SearchKnowledgeResult:
    """Explain a concept, or check a claim that somebody read: passages with citations, verdicts with their sums.

    Search over curated, dated articles, by a model of how people ask for them, and over claims whose arithmetic was
    redone. It explains; it does not estimate: for memory, hours, prices or links of a given job call the other tools.
    Where nothing fits it says so; warning ``loosely_related`` marks passages that are only the nearest. Raises
    MissingValue for an empty query.
    """
    if not given.query.strip():
        raise MissingValue("missing_argument", "'query' is empty.", field="query", hint="Ask in a few words.")
    passages = search(given.query, given.limit)
    if not passages:
        return SearchKnowledgeResult(
            verdict="The knowledge base holds nothing on that; it covers machines for training models.",
            warnings=[Warn(code="nothing_found", text="No article or checked claim is close to these words.")],
            suggestions=["What fills GPU memory in training?", "Do I need InfiniBand for two nodes?"],
        )
    best = passages[0]
    sure = best.kind == "claim" or best.score >= SURE
    detail = _detail(given.query, best) if sure else []
    result = SearchKnowledgeResult(
        verdict=_verdict(best, sure) + (" [[detail]]" if detail else ""),
        warnings=[] if sure else [_LOOSE],
        facts=[fact for number, passage in enumerate(passages, 1) for fact in _facts(number, passage)] + detail,
        steps=[step for passage in passages if (step := _step(passage))],
        sources=_sources(passages),
        tables=[_table(passages)],
        next_steps=[_more(passage) for passage in passages[1:3]],
        suggestions=[f"Explain: {passage.title}" for passage in passages[1:3] if passage.kind == "article"],
        passages=[
            FoundPassage(id=p.id, title=p.title, text=p.text, kind=p.kind, verdict=p.verdict, sources=list(p.sources),
                         as_of=p.as_of)
            for p in passages
        ],
    )  # fmt: skip
    return result


def _verdict(best: Passage, sure: bool) -> str:
    """The direct answer: a claim's verdict and sum, or the summary of the article, as references to quoted facts."""
    if not sure:
        return f"No article answers just that; the nearest is “{best.title}”: [[passage_1]]"
    if best.kind == "claim" and best.verdict:
        # The claim itself is repeated: a bare "right" would answer the opposite where a question turned it round.
        return f"“[[claim_1]]” {_VERDICTS[best.verdict]}. [[passage_1]]"
    return "[[passage_1]]"


def _detail(query: str, best: Passage) -> list[Fact]:
    """The sentence of the best article that speaks of what its summary leaves out, as a quoted fact."""
    sentence = telling_sentence(query, best)
    if sentence is None:
        return []
    return [
        Fact(id="detail", name="detail", value=sentence, kind="quoted", label=best.title,
             basis=f"article {best.id}: {', '.join(best.sources)}", as_of=best.as_of)
    ]  # fmt: skip


def _more(passage: Passage) -> str:
    if passage.kind == "claim":
        return f"A checked claim near this: {passage.title} – {passage.verdict}."
    return f"See also: {passage.title}."


def _facts(number: int, passage: Passage) -> list[Fact]:
    basis = f"{passage.kind} {passage.id}: {', '.join(passage.sources)}"
    facts = [
        Fact(id=f"passage_{number}", name="passage", value=_answer(passage), kind="quoted", label=passage.title,
             basis=basis, as_of=passage.as_of),
    ]  # fmt: skip
    if passage.kind == "claim":
        facts.append(
            Fact(id=f"claim_{number}", name="claim", value=passage.title, kind="quoted", label="the claim", basis=basis,
                 as_of=passage.as_of)
        )  # fmt: skip
        facts.append(
            Fact(id=f"claim_verdict_{number}", name="claim_verdict", value=passage.verdict or "", kind="quoted",
                 label=passage.title, basis=basis, as_of=passage.as_of)
        )  # fmt: skip
        proof = claim_proof(passage.id)
        if proof:
            unit, scale = _fact_unit(proof["unit"])
            inputs = ", ".join(f"{name} = {value}" for name, value in (proof.get("inputs") or {}).items())
            facts.append(
                Fact(id=f"claim_result_{number}", name="claim_result", value=float(proof["result"]) * scale, unit=unit,
                     kind="exact", label="recomputed", basis=f"{proof['expr']}{'; ' if inputs else ''}{inputs}",
                     as_of=passage.as_of)
            )  # fmt: skip
    return facts


def _answer(passage: Passage) -> str:
    """The sum of a claim, the summary of an article."""
    return passage.text.split("\n\n", 1)[0]


def _fact_unit(unit: str) -> tuple[Unit, float]:
    if unit in _UNITS:
        return _UNITS[unit]
    for known in get_args(Unit):
        if known == unit:
            return known, 1.0
    return "", 1.0


def _step(passage: Passage) -> Step | None:
    proof = claim_proof(passage.id) if passage.kind == "claim" else None
    if not proof:
        return None
    unit, scale = _fact_unit(proof["unit"])
    inputs = json.dumps(proof.get("inputs") or {})
    return Step(
        symbol=passage.id, expression=f"{proof['expr']} with {inputs}", value=proof["result"] * scale, unit=unit
    )


def _sources(passages: list[Passage]) -> list[SourceRef]:
    """The passages themselves, then what they cite, each once."""
    own = [
        SourceRef(id=f"kb:{p.id}", title=p.title if p.kind == "article" else f"Checked claim {p.id}", as_of=p.as_of)
        for p in passages
    ]
    cited = [source(name) for name in dict.fromkeys(name for p in passages for name in p.sources)]
    return own + [SourceRef(id=s.id, title=f"{s.title}, {s.locator}", as_of=s.as_of) for s in cited]


def _table(passages: list[Passage]) -> Table:
    columns = [
        Column(key="title", label="what"), Column(key="text", label="says"), Column(key="verdict", label="verdict"),
        Column(key="as_of", label="as of"),
    ]  # fmt: skip
    rows: list[list[float | int | str | bool | None]] = [[p.title, p.text, p.verdict, p.as_of] for p in passages]
    return Table(id="passages", title="What the knowledge base says", columns=columns, rows=rows)
