"""Seeded faults: each takes one defence away, and the tests it names must then fail.

``python -m tests.adversary.mutations [NAME...]`` proves it, one pytest run a fault; ``test_mutations.py`` does the same
among the slow tests. A run with a fault is an ordinary one with ADVERSARY_FAULT set to its name (see ``conftest.py``).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evals.mutations import Mutation

ROOT = Path(__file__).parents[2]
HERE = "tests/adversary"


def _instead(value: Any) -> Callable[[Any], Any]:
    """Whatever it was, now this."""
    return lambda sound: value


def _no_depth(read: Any) -> Any:
    return lambda value, depth=32: None


def _unbounded_yaml(read: Any) -> Any:
    import yaml

    return lambda text, depth=32: list(yaml.safe_load_all(text))


FAULTS: tuple[Mutation, ...] = (
    Mutation("an unbounded pattern", "labels of a host without a limit", ("advisor.number_check:_LINKS",),
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
