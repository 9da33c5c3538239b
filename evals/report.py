"""Reports of a run: ``results.json``, ``junit.xml`` and one HTML file with every miss, trace and plot in it."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from evals.plots import accuracy_plots
from evals.run import CaseResult, RunReport, summary
from knowledge.store import kb_version

SCHEMA_VERSION = 1
MAX_TRACE = 6000


def write_reports(report: RunReport, out: Path) -> None:
    """Write results.json, junit.xml and report.html into ``out``, which is made; older ones are written over."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(json.dumps(as_json(report), indent=1, ensure_ascii=False), encoding="utf-8")
    ElementTree.indent(tree := junit(report))
    tree.write(out / "junit.xml", encoding="utf-8", xml_declaration=True)
    (out / "report.html").write_text(as_html(report), encoding="utf-8")


def as_json(report: RunReport) -> dict[str, Any]:
    """The whole run as JSON data: counts, then each case with its misses and turns; times in seconds of wall time."""
    return {
        "schema_version": SCHEMA_VERSION,
        "model": report.model,
        "kb_version": kb_version(),
        "seconds": round(report.seconds, 3),
        **summary(report),
        "cases": [
            {
                "id": result.case.id,
                "suite": result.suite,
                "passed": result.passed,
                "crashed": result.crashed,
                "attempts": result.attempts,
                "passes": result.passes,
                "seconds": round(result.seconds, 4),
                "misses": [
                    {"grader": miss.grader, "message": miss.message, "wanted": miss.wanted, "got": miss.got}
                    for miss in result.misses
                ],
                "turns": [
                    {
                        "question": turn.question,
                        "status": turn.status,
                        "text": turn.text,
                        "calls": [
                            {"name": call["name"], "arguments": call["arguments"], "error": call.get("error")}
                            for call in turn.calls
                        ],
                    }
                    for turn in result.turns
                ],
            }
            for result in report.results
        ],
    }


def junit(report: RunReport) -> ElementTree.ElementTree[ElementTree.Element]:
    """One test case a case, the grader as the failure's type, a crash as an error."""
    root = ElementTree.Element("testsuites", name="evals", time=f"{report.seconds:.3f}")
    for suite in report.suites:
        rows = [result for result in report.results if result.suite == suite.suite]
        node = ElementTree.SubElement(
            root, "testsuite", name=suite.suite, tests=str(len(rows)),
            failures=str(sum(not row.passed and not row.crashed for row in rows)),
            errors=str(sum(row.crashed for row in rows)), time=f"{sum(row.seconds for row in rows):.3f}",
        )  # fmt: skip
        for row in rows:
            case = ElementTree.SubElement(
                node, "testcase", classname=suite.suite, name=row.case.id, time=f"{row.seconds:.3f}"
            )
            for miss in row.misses:
                kind = "error" if miss.grader == "crash" else "failure"
                entry = ElementTree.SubElement(case, kind, type=miss.grader, message=_plain(str(miss))[:400])
                entry.text = _plain(str(miss))
    return ElementTree.ElementTree(root)


def as_html(report: RunReport) -> str:
    """One file, no links out: the score table, the plots, failures first, then every case with its trace."""
    counts = summary(report)
    rows = sorted(report.results, key=lambda row: row.passed)
    tags = "".join(
        f"<tr><td>{html.escape(tag)}</td><td>{row['passed']}</td><td>{row['cases']}</td></tr>"
        for tag, row in counts["by_tag"].items()
    )
    return f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Evals</title><style>{_STYLE}</style>
<h1>Evals: {counts["passed"]} passed, {counts["failed"]} failed</h1>
<p>Model {html.escape(report.model)}, knowledge {kb_version()}, {report.seconds:.1f} s, {counts["crashed"]} crashed.</p>
<h2>By topic</h2><table><tr><th>tag</th><th>passed</th><th>cases</th></tr>{tags}</table>
<h2>Accuracy</h2>{accuracy_plots()}
<h2>Cases</h2>{"".join(_case(row) for row in rows)}</html>"""


def _case(row: CaseResult) -> str:
    misses = "".join(
        f"<tr><td>{html.escape(miss.grader)}</td><td>{html.escape(miss.message)}</td>"
        f"<td class=w>{html.escape(miss.wanted)}</td><td class=g>{html.escape(miss.got)}</td></tr>"
        for miss in row.misses
    )
    table = f"<table><tr><th>grader</th><th>what</th><th>wanted</th><th>got</th></tr>{misses}</table>" if misses else ""
    turns = "".join(
        f"<p><b>{html.escape(turn.question or turn.calls[0]['name'] if turn.calls or turn.question else '')}</b></p>"
        f"<pre>{html.escape(json.dumps([[c['name'], c['arguments']] for c in turn.calls], ensure_ascii=False))}</pre>"
        f"<pre>{html.escape(turn.text[:MAX_TRACE])}</pre>"
        for turn in row.turns
    )
    mark = "passed" if row.passed else "failed"
    return (
        f"<details class={mark}{'' if row.passed else ' open'}><summary>{mark} {html.escape(row.case.id)} "
        f"<i>{html.escape(row.case.why)}</i></summary>{table}{turns}</details>"
    )


def _plain(text: str) -> str:
    """Without the control characters that XML forbids."""
    return "".join(char for char in text if char in "\t\n" or (char >= " " and not "\ud800" <= char <= "\udfff"))


_STYLE = """body{font:15px/1.5 system-ui;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#222}
table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.2rem .5rem;text-align:left;vertical-align:top}
pre{white-space:pre-wrap;background:#f6f6f6;padding:.5rem}
details{margin:.3rem 0;border-left:4px solid #3a3;padding:0 .6rem}
details.failed{border-color:#c33}.w{background:#efe}.g{background:#fee}svg{max-width:100%}"""
