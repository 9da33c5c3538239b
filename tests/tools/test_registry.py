"""One declaration a tool, and errors in one shape."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import BaseModel, ConfigDict, Field

from tools.catalogue import MODULES
from tools.errors import BadValue, InputProblem, MissingValue, UnknownName
from tools.registry import all_tools, get_tool, parse_input, tool
from tools.result import ToolResult
from tools.workload import WorkloadInput


class _Input(BaseModel):
    model_config = ConfigDict(extra="forbid")
    size: float = Field(gt=0, description="Size in bytes.")


def test_a_tool_without_a_docstring_is_refused_at_import() -> None:
    def nameless(given: _Input) -> ToolResult:
        return ToolResult()

    with pytest.raises(TypeError, match="docstring"):
        tool("nameless")(nameless)


def test_a_tool_that_does_not_return_a_result_is_refused_at_import() -> None:
    def wrong(given: _Input) -> int:
        """Return something else."""
        return 1

    with pytest.raises(TypeError, match="ToolResult"):
        tool("wrong")(wrong)  # type: ignore[type-var]


def test_every_tool_has_a_schema_with_descriptions() -> None:
    for spec in all_tools().values():
        schema = spec.input_schema()
        assert schema["type"] == "object"
        assert spec.summary
        for name, about in schema.get("properties", {}).items():
            assert about.get("description") or about.get("default") is not None, f"{spec.name}.{name}"


def test_every_module_of_the_catalogue_declares_its_tool() -> None:
    assert set(all_tools()) >= set(MODULES)
    for name, module in MODULES.items():
        assert get_tool(name).fn.__module__ == module


def test_asking_for_one_tool_imports_no_other() -> None:
    code = (
        "import sys; from tools.registry import get_tool, tool_names; names = tool_names(); get_tool(names[0]);"
        "from tools.catalogue import MODULES; print([n for n in names[1:] if MODULES[n] in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_tool_names_the_nearest_one() -> None:
    with pytest.raises(UnknownName) as caught:
        get_tool("estimate_vrma")
    assert caught.value.code == "unknown_tool"


@pytest.mark.parametrize(
    ("arguments", "kind", "code", "field"),
    [
        ({}, MissingValue, "missing_argument", "size"),
        ({"size": 0}, BadValue, "out_of_range", "size"),
        ({"size": "lots"}, BadValue, "bad_value", "size"),
        ({"size": 1, "sise": 2}, BadValue, "unknown_argument", "sise"),
    ],
)
def test_bad_arguments_become_one_named_error(
    arguments: dict[str, object], kind: type[InputProblem], code: str, field: str
) -> None:
    with pytest.raises(kind) as caught:
        parse_input(_Input, arguments)
    assert (caught.value.code, caught.value.field) == (code, field)
    assert "pydantic" not in caught.value.message


def test_a_wrong_choice_is_answered_with_the_nearest_ones() -> None:
    with pytest.raises(BadValue) as caught:
        parse_input(WorkloadInput, {"model": "7B", "optimizer": "adamw8bit"})
    assert caught.value.field == "optimizer"
    assert "adamw_8bit" in caught.value.candidates
