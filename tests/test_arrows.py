"""Imports point one way: knowledge <- tools <- advisor <- integrations; heavy packages stay behind their doors."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tools.catalogue import MODULES

ROOT = Path(__file__).parent.parent
MAY_IMPORT = {
    "knowledge": {"knowledge"},
    "tools": {"tools", "knowledge"},
    "advisor": {"advisor", "tools", "knowledge"},
    "integrations": {"integrations", "advisor", "tools", "knowledge"},
    "evals": {"evals", "advisor", "tools", "knowledge"},
}
# The command line starts surfaces and refreshes prices, so it alone may reach outwards, inside a command's function.
INNER_IMPORTS_ALLOWED = {("advisor/cli.py", "integrations"), ("advisor/cli.py", "evals")}
ROOMS = set(MAY_IMPORT)


def _imports(file: Path) -> list[tuple[str, bool]]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    top = set(map(id, tree.body))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, id(node) in top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.append((node.module, id(node) in top))
    return found


def test_rooms_import_only_what_lies_below_them() -> None:
    wrong = []
    for room, allowed in MAY_IMPORT.items():
        for file in sorted((ROOT / room).rglob("*.py")):
            name = file.relative_to(ROOT).as_posix()
            for module, at_top in _imports(file):
                head = module.split(".")[0]
                if head in ROOMS - allowed and (at_top or not _inner_allowed(name, head)):
                    wrong.append(f"{name} imports {module}")
    assert not wrong


def _inner_allowed(name: str, head: str) -> bool:
    return any(name.startswith(prefix) and head == room for prefix, room in INNER_IMPORTS_ALLOWED)


def test_litellm_is_imported_only_inside_functions_of_the_model_door() -> None:
    wrong = []
    for room in ROOMS:
        for file in (ROOT / room).rglob("*.py"):
            name = file.relative_to(ROOT).as_posix()
            for module, at_top in _imports(file):
                if module.split(".")[0] == "litellm" and (at_top or not name.startswith("advisor/llm/")):
                    wrong.append(f"{name} imports litellm")
    assert not wrong


@pytest.mark.parametrize("module", [*MODULES.values(), "knowledge.store", "advisor.cli", "advisor.turn"])
def test_importing_stays_light(module: str) -> None:
    heavy = {"litellm", "fastapi", "slack_bolt", "mcp", "scipy", "pandas", "openai"}
    code = f"import {module}, sys; print(sorted(set(m.split('.')[0] for m in sys.modules) & {heavy!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


def test_the_rooms_are_ours_and_not_a_namesake() -> None:
    import evals
    import tools

    assert Path(tools.__file__).is_relative_to(ROOT)
    assert Path(evals.__file__).is_relative_to(ROOT)
