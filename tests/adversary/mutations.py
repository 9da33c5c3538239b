"""Seeded faults: each takes one defence away, and the tests it names must then fail.

``python -m tests.adversary.mutations [NAME...]`` proves it, one pytest run a fault; ``test_mutations.py`` does the same
among the slow tests. A run with a fault is an ordinary one with ADVERSARY_FAULT set to its name (see ``conftest.py``).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from advisor.number_check import Finding, Report
from evals.mutations import Mutation
from integrations.http.problems import ServiceProblem
from integrations.net import SourceError
from tools.registry import tool_names
from tools.result import ToolResult

ROOT = Path(__file__).parents[2]
HERE = "tests/adversary"
INJECTION = "test_injection.py::test_a_model_that_obeys_can_do_no_harm"


def _instead(value: Any) -> Callable[[Any], Any]:
    """Whatever it was, now this."""
    return lambda sound: value


def _no_depth(read: Any) -> Any:
    return lambda value, depth=32: None


def _unbounded_yaml(read: Any) -> Any:
    import yaml

    return lambda text, depth=32: list(yaml.safe_load_all(text))


def _by_name(connect: Any) -> Any:
    def connected(self: Any, host: str, port: int, *more: Any, **named: Any) -> Any:
        self._resolve(host, port)
        return self._inner.connect_tcp(host, port, *more, **named)

    return connected


def _of_anybody(turns: Any) -> Any:
    async def found(here: Any, owner: str, conversation_id: str) -> Any:
        rows = here.desk.store.database.read("select principal from conversations where id = ?", (conversation_id,))
        return await turns(here, rows[0][0] if rows else owner, conversation_id)

    return found


def _told_apart(turns: Any) -> Any:
    async def found(here: Any, owner: str, conversation_id: str) -> Any:
        if here.desk.store.database.read("select 1 from conversations where id = ?", (conversation_id,)):
            raise ServiceProblem(403, "forbidden", "This conversation is not yours.")
        return await turns(here, owner, conversation_id)

    return found


def _any_scope(admit: Any) -> Any:
    async def admitted(self: Any, scope: Any, needed: str) -> Any:
        caller = await self._identify(scope)
        return await admit(self, scope, next(iter(caller.scopes)))

    return admitted


def _any_tool(get: Any) -> Any:
    class Done:
        def __init__(self, name: str) -> None:
            self.name = name

        def call(self, arguments: dict[str, Any]) -> ToolResult:
            return ToolResult(verdict="Done.")

    return lambda name: get(name) if name in tool_names() else Done(name)


def _look_then_pay(reserve: Any) -> Any:
    def reserved(self: Any, budgets: Any, tokens: int, usd: float) -> Any:
        for budget in budgets:
            if budget.usd is not None and self.spent(budget.subject)[1] + usd > budget.usd + 1e-6:
                return reserve(self, budgets, tokens, usd)  # which says no
        time.sleep(0.2)
        return reserve(self, [replace(budget, usd=None, tokens=None) for budget in budgets], tokens, usd)

    return reserved


def _repeating(check: Any) -> Any:
    def checked(self: Any, response: Any, host: str) -> None:
        if response.status_code != 200:
            response.read()
            raise SourceError("bad_status", response.text, response.status_code)

    return checked


FAULTS: tuple[Mutation, ...] = (
    Mutation("an unbounded pattern", "labels of a host without a limit", ("advisor.links:LINKS",),
             _instead(re.compile(r"\b(?:[a-z0-9-]+\.)+[a-z]{2,12}/", re.I)),
             ("test_redos.py::test_no_pattern_is_quadratic_in_what_the_product_reads_at_once",)),
    Mutation("names of any length", "a text argument may be a megabyte", ("tools.registry:_check_lengths",),
             _instead(lambda model, arguments: None), ("test_redos.py::test_no_tool_takes_long_over_a_text_argument",)),
    Mutation("errors repeat all that was typed", "a megabyte in, a megabyte out", ("knowledge.errors:_short",),
             _instead(lambda text: text), ("test_bombs.py::test_an_error_repeats_little_of_what_was_typed",)),
    Mutation("no ratio of inflation", "a gigabyte from a megabyte", ("integrations.net.session:MAX_RATIO",),
             _instead(10**6), ("test_bombs.py::test_a_megabyte_that_inflates_to_a_gigabyte_is_cut_off",)),
    Mutation("YAML with aliases", "read as PyYAML reads it", ("tools.config.flatten:read_yaml",), _unbounded_yaml,
             ("test_bombs.py::test_a_configuration_that_refers_to_itself_says_what_to_do",)),
    Mutation("JSON of any depth", "nothing looks how deep it is", ("knowledge.foreign:check_depth",), _no_depth,
             ("test_bombs.py::test_json_that_readers_take_differently_is_refused_everywhere",)),
    Mutation("names given twice", "the last one wins", ("knowledge.foreign:_once",), _instead(dict),
             ("test_bombs.py::test_json_that_readers_take_differently_is_refused_everywhere",)),
    Mutation("infinite numbers", "1e999 is a number", ("knowledge.foreign:_finite",), _instead(float),
             ("test_bombs.py::test_json_that_readers_take_differently_is_refused_everywhere",)),
    # Addresses
    Mutation("any address", "nothing judges where a connection goes", ("integrations.net.addresses:may_connect",),
             _instead(lambda address, private=False: True),
             ("test_ssrf.py::test_a_name_with_a_hostile_address_is_not_connected_to",)),
    Mutation("no guard on connections", "the client connects as it likes",
             ("integrations.net.session:_guarded_client",),
             lambda make: lambda policy: httpx.Client(follow_redirects=False, trust_env=False),
             ("test_ssrf.py::test_a_session_judges_addresses_by_itself",)),
    Mutation("the name is resolved again", "judged once, connected to by name",
             ("integrations.net.addresses:GuardedBackend.connect_tcp",), _by_name,
             ("test_ssrf.py::test_a_name_that_turns_to_this_machine_reaches_nobody",)),
    Mutation("hidden addresses", "IPv4 inside IPv6 is not looked at", ("integrations.net.addresses:_hidden",),
             _instead(lambda address: []), ("test_ssrf.py::test_a_name_with_a_hostile_address_is_not_connected_to",)),
    Mutation("redirects followed", "to wherever they lead", ("integrations.net.session:Session._check",),
             _instead(lambda self, response, host: None), ("test_ssrf.py::test_a_redirect_leads_nowhere_else",)),
    Mutation("any model's name", "a path is a name", ("integrations.hub.lookup:is_hub_id",),
             _instead(lambda name: True), ("test_ssrf.py::test_a_model_s_name_names_no_other_place",)),
    # Who may see what
    Mutation("conversations without an owner", "the filter is forgotten",
             ("integrations.http.routes.conversations:_turns",), _of_anybody,
             ("test_routes.py::test_what_is_anothers_is_as_if_it_were_not_there",)),
    Mutation("a foreign thing told from none", "its id is repeated", ("integrations.http.routes.conversations:_turns",),
             _told_apart,
             ("test_routes.py::test_what_is_anothers_is_as_if_it_were_not_there",)),
    Mutation("revoked keys work", "nobody looks", ("advisor.accounts:Accounts.revoke_key",),
             _instead(lambda self, key_id: True),
             ("test_routes.py::test_without_a_key_that_works_nothing_but_the_public_routes_answers",)),
    Mutation("scopes are decoration", "a key does all", ("integrations.http.auth:Authenticator.admit",), _any_scope,
             ("test_routes.py::test_a_key_does_what_its_scopes_say_and_no_more",)),
    # What arrives may be hostile
    Mutation("any address is held", "an address that a tool quoted stands",
             ("advisor.evidence:is_held", "advisor.links:is_held"), _instead(lambda address, cited=(): True),
             (f"{INJECTION}[kb.link]",)),
    Mutation("tools' words keep their links", "a passage links where it likes", ("advisor.turn:unlinked",),
             _instead(lambda text, cited=(): text), (f"{INJECTION}[kb.link]",)),
    Mutation("hidden characters pass", "a model's escapes reach the reader", ("advisor.turn:clean",),
             _instead(lambda text: text), (f"{INJECTION}[kb.ansi]",)),
    Mutation("numbers go unchecked", "what the model says is shown", ("advisor.turn:check",),
             _instead(lambda text, evidence: Report()), (f"{INJECTION}[user.price]",)),
    Mutation("everything is refused", "safe and useless", ("advisor.turn:check",),
             _instead(lambda text, evidence: Report(1, 0, [Finding("x", "x", "x")])),
             ("test_injection.py::test_a_harmless_twin_is_answered_in_full",)),
    Mutation("any name is a tool", "the registry is open", ("advisor.tool_runner:get_tool",), _any_tool,
             (f"{INJECTION}[user.other-tool]",)),
    Mutation("Slack reads mark-up", "nothing is escaped",
             ("integrations.slack.blocks:markdown", "integrations.slack.blocks:mrkdwn"), _instead(lambda text: text),
             (f"{INJECTION}[slack.mass]",)),
    Mutation("a feed's words as they come", "fields of strangers are names", ("integrations.prices.source:_words",),
             _instead(lambda text, longest: text), (f"{INJECTION}[price.long]",)),
    # What calls cost
    Mutation("look, then pay", "two steps instead of one", ("advisor.accounts:Accounts.reserve",), _look_then_pay,
             ("test_budget.py::test_of_64_at_once_exactly_five_are_paid_for",)),
    Mutation("nothing is settled", "the worst case is charged", ("advisor.accounts:Accounts.settle",),
             _instead(lambda self, reservation, tokens, usd: None),
             ("test_budget.py::test_of_64_at_once_exactly_five_are_paid_for",)),
    Mutation("no meter", "a limiter that is built and never asked", ("integrations.http.metering:Meter.before",),
             _instead(lambda self, model, request: None),
             ("test_budget.py::test_of_64_at_once_exactly_five_are_paid_for",)),
    Mutation("the turn has begun", "a refusal comes inside the stream", ("integrations.http.turns:Started",),
             _instead(type("Nothing", (), {})), ("test_budget.py::test_a_stream_is_refused_by_its_status",)),
    # Secrets
    Mutation("secrets without names", "no variable is taken for a secret", ("advisor.redaction:_NAMES",), _instead(()),
             ("test_secrets.py::test_every_secret_is_known_to_the_logs_whole_and_in_its_parts",)),
    Mutation("tracebacks as they are", "formatted after secrets were taken out",
             ("structlog.processors:format_exc_info",), _instead(lambda logger, method, event: event),
             ("test_secrets.py::test_nothing_that_is_logged_holds_a_secret",)),
    Mutation("only texts are cleaned", "a list or an object in a log line passes",
             ("advisor.redaction:Redaction.clean",),
             _instead(lambda self, value: self.text(value) if isinstance(value, str) else value),
             ("test_secrets.py::test_nothing_that_is_logged_holds_a_secret",)),
    Mutation("the password is shown", "where conversations are kept", ("advisor.doctor:without_password",),
             _instead(lambda address: address), ("test_secrets.py::test_the_self_check_shows_no_password",)),
    Mutation("a provider's words are repeated", "the error says what came",
             ("integrations.net.session:Session._check",), _repeating,
             ("test_secrets.py::test_no_price_source_lets_its_key_out",)),
)  # fmt: skip


def outcome(fault: Mutation) -> int:
    """pytest's exit code for the guards of this fault while it is in the program: 1 when one of them failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=no", "-m", ""]
    done = subprocess.run(
        [*command, *(f"{HERE}/{guard}" for guard in fault.cases)],
        cwd=ROOT,
        env={**os.environ, "ADVERSARY_FAULT": fault.name, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    if done.returncode not in (0, 1):
        print(done.stdout[-2000:], done.stderr[-2000:])
    return done.returncode


def main(names: list[str]) -> int:
    """Prove these faults, or all of them."""
    silent = 0
    for fault in FAULTS:
        if not names or fault.name in names:
            code = outcome(fault)
            silent += code != 1
            print(f"{'caught' if code == 1 else f'NOT CAUGHT ({code})'}: {fault.name} by {', '.join(fault.cases)}")
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
