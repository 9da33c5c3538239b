"""``advisor prices``: refresh the cached prices, show them, list the sources."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

import click

from integrations.prices import attach
from integrations.prices.cache import Cache, Fetch, cache_path
from integrations.prices.refresh import Outcome, Report, choose
from integrations.prices.refresh import refresh as refresh_now
from integrations.prices.source import PriceSource
from integrations.prices.sources import SOURCES
from knowledge.errors import InputProblem

_WORDS = {"ok": "read", "unchanged": "unchanged", "kept_old": "kept old rows", "failed": "failed", "no_key": "no key"}


@click.group("prices")
def command() -> None:
    """Refresh and show the price book."""


@command.command("refresh")
@click.option("--source", "-s", "names", multiple=True, metavar="S", help="Only this source; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as one JSON object.")
def refresh(names: tuple[str, ...], as_json: bool) -> None:
    """Ask the live price sources; exit 1 only when every source that could be asked failed."""
    try:
        chosen = choose(names)
        report = _with_progress(chosen, quiet=as_json)
    except InputProblem as problem:
        _fail(problem, as_json)
    if as_json:
        click.echo(json.dumps(_report_json(report), ensure_ascii=False))
    elif report.already_running:
        click.echo("A refresh is already running.")
    else:
        _print_report(report)
    sys.exit(1 if report.tried and not report.good and not report.already_running else 0)


@command.command("show")
@click.argument("gpu", required=False)
@click.option("--provider", help="Only this provider.")
@click.option("--region", help="Part of a region's name.")
@click.option("--billing", help="on_demand, spot, reserved_1y or reserved_3y.")
@click.option("--live", is_flag=True, help="Only offers fetched within a day.")
@click.option("--max-age", metavar="AGE", help="Only offers at most this old, e.g. '7 days'.")
@click.option("--since", metavar="DATE", help="Also how the price moved since then, e.g. 2026-05.")
@click.option("--json", "as_json", is_flag=True, help="Print the tool's result as JSON.")
def show(gpu: str | None, as_json: bool, **filters: Any) -> None:
    """Show dated offers of GPU (all cards without one), the cached live ones over the snapshot."""
    from advisor.terminal import print_result
    from tools.registry import get_tool

    attach()
    arguments = {name: value for name, value in {"gpu": gpu, **filters}.items() if value not in (None, False)}
    try:
        result = get_tool("lookup_prices").call(arguments)
    except InputProblem as problem:
        _fail(problem, as_json)
    if as_json:
        click.echo(result.model_dump_json())
    else:
        print_result("lookup_prices", result)


@command.command("sources")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def sources(as_json: bool) -> None:
    """List the sources, the keys they take and how their last fetch went."""
    last = Cache(cache_path()).last_fetches()
    if as_json:
        click.echo(json.dumps([_source_json(one, last.get(one.id)) for one in SOURCES], ensure_ascii=False))
        return
    for one in SOURCES:
        fetch = last.get(one.id)
        about = f"needs {', '.join(one.keys)}" if one.keys else "no key"
        about += "" if one.by_default else ", asked by name only"
        went = (
            f"{_WORDS.get(fetch.status, fetch.status)}, {fetch.rows} rows on {fetch.at[:16]}"
            if fetch
            else "never asked"
        )
        click.echo(f"{one.id.removeprefix('live-'):<16} {one.title} ({about}): {went}")


def _source_json(source: PriceSource, fetch: Fetch | None) -> dict[str, Any]:
    return {
        "source": source.id.removeprefix("live-"),
        "title": source.title,
        "keys": list(source.keys),
        "by_default": source.by_default,
        "last": fetch.at if fetch else None,
        "status": fetch.status if fetch else None,
        "rows": fetch.rows if fetch else 0,
    }


def _with_progress(chosen: list[Any], quiet: bool) -> Report:
    if quiet or not sys.stderr.isatty():
        return refresh_now(chosen)
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("asking price sources", total=len(chosen))

        def step(outcome: Outcome) -> None:
            bar.update(task, advance=1, description=f"{outcome.source.removeprefix('live-')}: {_WORDS[outcome.status]}")

        return refresh_now(chosen, progress=step)


def _print_report(report: Report) -> None:
    for one in report.outcomes:
        detail = f"{one.rows} rows" if one.rows else one.message
        left = sum(one.dropped.values())
        tail = f"; {left} left out" if left else ""
        click.echo(f"{one.source.removeprefix('live-'):<16} {_WORDS[one.status]}: {detail}{tail}")
        for warning in one.warnings[:5]:
            click.echo(f"{'':<16} {warning}")
    click.echo(f"{report.good} of {report.tried} sources read.")


def _report_json(report: Report) -> dict[str, Any]:
    return {"already_running": report.already_running, "good": report.good, "tried": report.tried,
            "sources": [{**asdict(one), "dropped": dict(one.dropped)} for one in report.outcomes]}  # fmt: skip


def _fail(problem: InputProblem, as_json: bool) -> Any:
    if as_json:
        click.echo(json.dumps({"error": problem.as_dict()}, ensure_ascii=False))
    else:
        near = f" Nearest: {', '.join(problem.candidates)}." if problem.candidates else ""
        click.echo(f"{problem.message} {problem.hint or ''}{near}".strip(), err=True)
    sys.exit(2)
