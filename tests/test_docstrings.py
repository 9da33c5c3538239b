"""Docstrings of the two lowest rooms: every public function has one, which says so where it refuses input."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from knowledge.errors import InputProblem

ROOT = Path(__file__).parent.parent
FILES = [file for room in ("knowledge", "tools") for file in sorted((ROOT / room).rglob("*.py"))]
TREES = {file.relative_to(ROOT).as_posix(): ast.parse(file.read_text(encoding="utf-8")) for file in FILES}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def _public(body: list[ast.stmt], inside: str = "") -> Iterator[tuple[str, Function]]:
    """Functions, methods and properties whose name and whose class's name begin without an underscore."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            if isinstance(node, ast.ClassDef):
                yield from _public(node.body, f"{inside}{node.name}.")
            else:
                yield f"{inside}{node.name}", node


def _raised(function: Function) -> Iterator[ast.expr]:
    """What the function's own body raises; functions and classes inside it answer for themselves."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Raise) and node.exc is not None:
            yield node.exc
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))


def _problems(kind: type[InputProblem] = InputProblem) -> set[str]:
    return {kind.__name__}.union(*(_problems(below) for below in kind.__subclasses__()))


def _makers(trees: list[ast.Module]) -> set[str]:
    """Names that make such an error when they are called: its classes, and functions annotated to return one."""
    names = _problems()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.returns is not None and ast.unparse(node.returns) in names:
                names = names | {node.name}
    return names


def _refuses(function: Function, makers: set[str]) -> bool:
    called = (exc.func if isinstance(exc, ast.Call) else exc for exc in _raised(function))
    return any(ast.unparse(name).rpartition(".")[2] in makers for name in called)


def _silent(trees: dict[str, ast.Module]) -> tuple[list[str], list[str]]:
    """(functions without docstring, functions that raise an InputProblem and do not say so)."""
    makers = _makers(list(trees.values()))
    bare, unsaid = [], []
    for name, tree in trees.items():
        for function, node in _public(tree.body):
            said = ast.get_docstring(node) or ""
            if not said.strip():
                bare.append(f"{name}: {function}")
            elif _refuses(node, makers) and "Raises" not in said:
                unsaid.append(f"{name}: {function}")
    return bare, unsaid


def test_every_public_function_says_what_it_does() -> None:
    assert _silent(TREES)[0] == []


def test_every_public_function_that_refuses_input_says_so() -> None:
    assert _silent(TREES)[1] == []


@pytest.mark.parametrize(
    ("source", "bare", "unsaid"),
    [
        ("def f():\n    pass", ["m: f"], []),
        ("class A:\n    @property\n    def f(self):\n        return 1", ["m: A.f"], []),
        ("class _A:\n    def f(self):\n        pass\ndef _g():\n    pass", [], []),
        ("def f():\n    'Bytes.'\n    raise BadValue('x', 'y')", [], ["m: f"]),
        ("def f():\n    'Bytes. Raises BadValue.'\n    raise BadValue('x', 'y')", [], []),
        ("def f():\n    'Bytes.'\n    raise errors.UnknownName", [], ["m: f"]),
        ("def f():\n    'Bytes.'\n    if 1:\n        raise g()\ndef _x():\n    pass\ndef g() -> BadValue:\n    'It.'",
         [], ["m: f"]),
        ("def f():\n    'Bytes.'\n    def inner():\n        raise BadValue('x', 'y')", [], []),
        ("def f():\n    'Bytes.'\n    raise TypeError('x')", [], []),
    ],
)  # fmt: skip
def test_what_counts_as_silent(source: str, bare: list[str], unsaid: list[str]) -> None:
    assert _silent({"m": ast.parse(source)}) == (bare, unsaid)
