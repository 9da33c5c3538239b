"""The command line: ask, chat, the tools, the evals and the surfaces. Heavy imports stay inside the commands.

Exit codes: 0 done, 1 the question failed or a check did not pass, 2 the input was wrong (with one error, in the one
shape under ``--json``), 130 interrupted.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import click

# Looking for pydantic plugins means reading the metadata of every installed package; none is wanted here.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

from tools.errors import BadValue, InputProblem

# Commands that other rooms define: the module that holds a click command of that name (or ``command``), and its help.
_ELSEWHERE = {
    "eval": ("evals.cli", "Run the eval suites, question files and accuracy files."),
    "prices": ("integrations.prices.cli", "Refresh and show the price book."),
    "serve": ("integrations.http.cli", "Serve HTTP: the API, the OpenAI wire format, MCP and the web page."),
    "slack": ("integrations.slack.cli", "Answer in Slack."),
    "keys": ("integrations.http.keys_cli", "Make, list and revoke the API keys of the server."),
    "feedback": ("integrations.http.keys_cli", "Print what users thought of answers, as eval cases."),
    "mcp": ("integrations.mcp.cli", "Serve the tools over MCP on standard input and output."),
}


class _Commands(click.Group):
    """Our own commands plus those of other rooms that are installed; these are imported only when run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        own = super().list_commands(ctx)
        return [*own, *(name for name, (module, _help) in _ELSEWHERE.items() if _exists(module))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        module, words = _ELSEWHERE[cmd_name]
        if not _exists(module):
            return None
        if ctx.invoked_subcommand != cmd_name and not _is_running(cmd_name):
            return click.Command(cmd_name, help=words)  # for the list of commands
        found = import_module(module)
        for name in ("command", cmd_name, f"{cmd_name}_command", "cli", "main"):
            command = getattr(found, name, None)
            if isinstance(command, click.Command):
                return command
        raise click.ClickException(f"{module} holds no command.")


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="training-infrastructure-advisor", message="%(version)s")
def cli() -> None:
    """Ask in plain words about the machines for training models; get computed, sourced, dated numbers."""


@cli.command()
@click.argument("question", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the whole answer as one JSON object.")
@click.option("--model", metavar="M", help="planner (default), or any litellm name such as anthropic/claude-sonnet-4.")
@click.option("--conversation", metavar="ID", help="Go on with this conversation.")
def ask(question: tuple[str, ...], as_json: bool, model: str | None, conversation: str | None) -> None:
    """Answer one QUESTION (- reads it from standard input)."""
    from advisor.turn import answer

    text = " ".join(question)
    if text == "-":
        text = sys.stdin.buffer.read(4_000_000).decode("utf-8", "surrogateescape")
    _look_outside()
    done = answer(text, conversation, model)
    if as_json:
        _print_json(done.as_json())
    else:
        from advisor.terminal import print_answer

        print_answer(done)
    sys.exit(1 if done.status == "failed" else 0)


@cli.command()
@click.option("--model", metavar="M", help="planner (default), or any litellm name.")
@click.option("--conversation", metavar="ID", help="Go on with this conversation.")
def chat(model: str | None, conversation: str | None) -> None:
    """Ask in a conversation; an empty line or /quit ends it, /new starts afresh."""
    from advisor.terminal import chat_loop

    _look_outside()
    chat_loop(model, conversation)


@cli.command("tools")
@click.option("--json", "as_json", is_flag=True, help="Names, descriptions and schemas as JSON.")
def list_tools(as_json: bool) -> None:
    """List the tools that answers are computed with."""
    from tools.registry import all_tools

    specs = all_tools().values()
    if as_json:
        _print_json(
            [
                {
                    "name": spec.name,
                    "summary": spec.summary,
                    "description": spec.description,
                    "input_schema": spec.input_schema(),
                    "examples": list(spec.examples),
                }
                for spec in specs
            ]
        )
    else:
        from advisor.terminal import print_tools

        print_tools(specs)


@cli.command("tool")
@click.argument("name")
@click.argument("arguments", required=False, metavar="[JSON]")
@click.option("--batch", type=click.Path(), metavar="FILE.jsonl", help="One JSON object a line in, one result a line.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON.")
def call_tool(name: str, arguments: str | None, batch: str | None, as_json: bool) -> None:
    """Call tool NAME with its arguments as one JSON object (- reads it from standard input)."""
    from advisor.tool_batch import parse_arguments, run_batch, run_tool
    from tools.registry import get_tool

    spec = get_tool(name)
    _look_outside()
    if batch is not None:
        if arguments is not None:
            raise BadValue("two_inputs", "Give either JSON or --batch, not both.", field="arguments")
        for line in run_batch(spec, _lines(batch)):
            click.echo(line)
        return
    if arguments is None:
        raise BadValue(
            "missing_argument",
            "There are no arguments.",
            field="arguments",
            hint="Give them as one JSON object"
            + (f", e.g. '{_compact(spec.examples[0])}'." if spec.examples else ', e.g. \'{"model": "7B"}\'.'),
        )
    text = sys.stdin.read() if arguments == "-" else arguments
    result = run_tool(spec, parse_arguments(text))
    if as_json:
        _print_json(result.model_dump(mode="json"))
    else:
        from advisor.terminal import print_result

        print_result(spec.name, result)


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
def doctor(as_json: bool) -> None:
    """Check configuration, data and model."""
    from advisor.doctor import checks

    found = checks()
    if as_json:
        _print_json([{"check": item.name, "ok": item.ok, "detail": item.detail} for item in found])
    else:
        for item in found:
            click.echo(f"{'ok ' if item.ok else 'BAD'}  {item.name}: {item.detail}")
    sys.exit(0 if all(item.ok for item in found) else 1)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; every failure is one message, never a traceback."""
    given = sys.argv[1:] if arguments is None else arguments
    # Faults are told to the user in our words; ADVISOR_DEBUG=1 shows the log with them.
    if os.environ.get("ADVISOR_DEBUG"):
        from advisor.redaction import log_plainly

        log_plainly(logging.WARNING)
    else:
        logging.basicConfig(level=logging.CRITICAL + 1)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        code = cli.main(args=given, prog_name="advisor", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except InputProblem as problem:
        _fail(problem.as_dict(), given)
    except click.UsageError as error:
        hint = f"`{error.ctx.command_path} --help` shows what it takes." if error.ctx else "See `advisor --help`."
        _fail(BadValue("bad_usage", error.format_message(), hint=hint).as_dict(), given)
    except click.ClickException as error:
        _fail(BadValue("bad_usage", error.format_message()).as_dict(), given)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader left; nothing more to say
        sys.exit(0)
    except Exception as error:
        from advisor.database import StoreUnavailable  # not worth importing before something has gone wrong

        logging.getLogger("advisor").exception("command failed")
        if isinstance(error, StoreUnavailable):
            away = BadValue("store_unavailable", f"The database {error}.", hint="Try again in a moment.")
            _fail(away.as_dict(), given, code=1)
        words = "Something went wrong on our side; ADVISOR_DEBUG=1 shows the details."
        _fail(BadValue("internal", words).as_dict(), given, code=1)


def _fail(error: dict[str, Any], given: list[str], code: int = 2) -> None:
    if "--json" in given or "--batch" in given:
        _print_json({"error": error})
    else:
        from advisor.render import error_words

        click.echo(f"Error: {error_words(error)}", err=True)
    sys.exit(code)


def _print_json(value: Any) -> None:
    import json

    from advisor.answer import finite

    click.echo(json.dumps(finite(value), ensure_ascii=False, indent=2))


def _compact(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


def _lines(path: str) -> Iterable[str]:
    if path == "-":
        return sys.stdin
    try:
        return open(path, encoding="utf-8", errors="replace")
    except OSError as error:
        raise BadValue("no_such_file", f"{path} cannot be read: {error.strerror}.", field="batch") from None


def _look_outside() -> None:
    """Prices fetched earlier lie over the snapshot, the book is told the day, and unknown hub ids can be read."""
    from integrations import hub, prices

    prices.attach()
    hub.attach()


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _is_running(name: str) -> bool:
    return name in sys.argv[1:2]
