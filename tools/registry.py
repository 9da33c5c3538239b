"""One declaration a tool: ``@tool`` on a function from an input model to an output model.

The LLM schema, HTTP route, MCP tool, CLI command and documentation are all derived from the ``ToolSpec`` it stores.
The function itself is returned unchanged, so tests and evals call it directly.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypeVar, get_type_hints

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from tools.catalogue import MODULES
from tools.errors import BadValue, InputProblem, MissingValue, UnknownName, nearest
from tools.result import ToolResult

MAX_NAME_CHARS = 1_000  # of a text argument whose field sets no length: names, amounts, dates
F = TypeVar("F", bound=Callable[..., ToolResult])


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as every surface sees it."""

    name: str
    fn: Callable[..., ToolResult]
    input_model: type[BaseModel]
    output_model: type[ToolResult]
    summary: str
    description: str
    examples: tuple[dict[str, Any], ...] = field(default=())

    def call(self, arguments: dict[str, Any]) -> ToolResult:
        """Validate and run. Raises InputProblem for anything that the caller can mend."""
        _check_lengths(self.input_model, arguments)
        return self.fn(parse_input(self.input_model, arguments))

    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments, with units and descriptions; a new dictionary each time."""
        return self.input_model.model_json_schema()

    def output_schema(self) -> dict[str, Any]:
        """JSON Schema of the result, with units and descriptions; a new dictionary each time."""
        return self.output_model.model_json_schema()


_REGISTRY: dict[str, ToolSpec] = {}


def tool(name: str, examples: list[dict[str, Any]] | None = None) -> Callable[[F], F]:
    """Register a tool under ``name`` and return the function unchanged; ``examples`` are arguments that every surface
    shows. Raises TypeError, at import, without one input model, a ToolResult return type and a docstring, and for a
    name taken.
    """

    def register(fn: F) -> F:
        hints = get_type_hints(fn)
        result = hints.pop("return", None)
        params = [hint for hint in hints.values() if inspect.isclass(hint) and issubclass(hint, BaseModel)]
        if len(params) != 1 or not (inspect.isclass(result) and issubclass(result, ToolResult)):
            raise TypeError(f"tool {name}: needs one pydantic input model and a ToolResult return type")
        doc = inspect.getdoc(fn)
        if not doc:
            raise TypeError(f"tool {name}: needs a docstring that names its formula")
        if name in _REGISTRY:
            raise TypeError(f"tool {name} is declared twice")
        summary, _, rest = doc.partition("\n")
        _REGISTRY[name] = ToolSpec(name, fn, params[0], result, summary.strip(), rest.strip(), tuple(examples or ()))
        return fn

    return register


def tool_names() -> tuple[str, ...]:
    """The names of every tool in the catalogue's order; imports none of them."""
    return tuple(dict.fromkeys([*MODULES, *_REGISTRY]))


def all_tools() -> dict[str, ToolSpec]:
    """Every tool by name, in the catalogue's order; imports them all."""
    return {name: get_tool(name) for name in tool_names()}


def get_tool(name: str) -> ToolSpec:
    """The tool of this name, imported if need be. Raises UnknownName with the nearest names where there is none."""
    if name not in _REGISTRY and name in MODULES:
        import_module(MODULES[name])
    if name not in _REGISTRY:
        raise UnknownName(
            "unknown_tool",
            f"There is no tool named {name!r}.",
            field="tool",
            hint="`advisor tools` lists them.",
            candidates=nearest(name, tool_names()),
        )
    return _REGISTRY[name]


def parse_input(model: type[BaseModel], arguments: dict[str, Any]) -> BaseModel:
    """Validated input. Raises InputProblem, in our own words, for the first field at fault."""
    try:
        return model.model_validate(arguments)
    except ValidationError as err:
        raise _problem(model, err) from None


def _check_lengths(model: type[BaseModel], arguments: dict[str, Any]) -> None:
    """Raises BadValue where a text is longer than its field says, or than any name is where the field is silent."""
    for name, value in arguments.items():
        info = model.model_fields.get(name)
        said = _longest(info) if info else None
        longest = max((len(text) for text in _texts(value)), default=0)
        most = said or MAX_NAME_CHARS
        if longest > most:
            raise BadValue(
                "too_long",
                f"{name[:64]!r} has {longest:,} characters; at most {most:,} are read.",
                field=name,
                hint=_about(model, name),
            )


def _longest(info: FieldInfo) -> int | None:
    """What the field says: ``max_length``, or ``maxLength`` in its schema where it takes objects too."""
    extra = info.json_schema_extra
    stated = extra.get("maxLength") if isinstance(extra, dict) else None
    return (
        stated
        if isinstance(stated, int)
        else next((item.max_length for item in info.metadata if hasattr(item, "max_length")), None)
    )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)


def _problem(model: type[BaseModel], err: ValidationError) -> InputProblem:
    first = err.errors(include_url=False)[0]
    where = str(first["loc"][0]) if first["loc"] else None
    kind, context = first["type"], first.get("ctx", {})
    cause = context.get("error")
    if isinstance(cause, InputProblem):
        return cause
    if kind == "extra_forbidden":
        return BadValue(
            "unknown_argument",
            f"There is no argument {where!r}.",
            field=where,
            hint="Leave it out or use one of the candidates.",
            candidates=nearest(where or "", model.model_fields),
        )
    if kind == "missing":
        return MissingValue("missing_argument", f"{where!r} is needed.", field=where, hint=_about(model, where))
    if kind == "literal_error":
        allowed = [part.strip(" '") for part in str(context.get("expected", "")).replace(" or ", ",").split(",")]
        allowed = [name for name in allowed if name]
        asked = _short(first["input"])
        return BadValue(
            "not_a_choice",
            f"{where!r} cannot be {asked}.",
            field=where,
            hint="One of: " + ", ".join(allowed) + ".",
            candidates=nearest(str(first["input"])[:64], allowed) or allowed[:5],
        )
    bounds = {"greater_than": "gt", "greater_than_equal": "ge", "less_than": "lt", "less_than_equal": "le"}
    if kind in bounds:
        bound = context.get(bounds[kind])
        word = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}[bounds[kind]]
        return BadValue(
            "out_of_range",
            f"{where!r} must be {word} {bound}, not {_short(first['input'])}.",
            field=where,
            hint=_about(model, where),
            candidates=[str(bound)] if bounds[kind] in ("ge", "le") else [],
        )
    message = str(first["msg"]).removeprefix("Value error, ")
    return BadValue(
        "bad_value", f"{where!r}: {message} (given {_short(first['input'])}).", field=where, hint=_about(model, where)
    )


def _about(model: type[BaseModel], where: str | None) -> str | None:
    info = model.model_fields.get(where or "")
    return info.description if info else None


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
