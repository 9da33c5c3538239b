"""``docs/settings.md``, written from the settings' own declarations: ``python -m integrations.settings_page``.

A test holds the file to what this writes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from advisor.settings import Settings
from integrations.http.settings import ServiceSettings
from integrations.slack.settings import SlackSettings

PAGE = Path(__file__).parent.parent / "docs" / "settings.md"
_GROUPS: tuple[tuple[str, str, type[BaseModel]], ...] = (
    ("Answers", "Read by every command.", Settings),
    (
        "Server",
        "Read by `advisor serve`; `--host`, `--port` and `--workers` go before their variables.",
        ServiceSettings,
    ),
    ("Slack", "Read where `SLACK_BOT_TOKEN` is set; the tokens are named as Slack names them.", SlackSettings),
)
_HEAD = """\
# Settings

All are environment variables. A value that cannot be is refused at the start, with the variable's name. Lists are
comma-separated. Keys of language models are named as litellm names them (`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, …).

Written by `python -m integrations.settings_page`; do not edit by hand.
"""


def render() -> str:
    """The page as Markdown, one table a group of settings, ending in a newline."""
    parts = [_HEAD]
    for title, about, kind in _GROUPS:
        rows = [
            f"| {_variable(name)} | {_kind(info)} | {_default(info)} | {info.description} |"
            for name, info in kind.model_fields.items()
        ]
        parts.append(
            "\n".join(
                [f"## {title}\n\n{about}\n", "| variable | value | default | meaning |", "|---|---|---|---|", *rows]
            )
        )
    return "\n\n".join(part.strip() for part in parts) + "\n"


def main() -> None:
    """Write ``docs/settings.md`` over what is there."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(render(), encoding="utf-8")


def _variable(name: str) -> str:
    return f"`ADVISOR_{name.upper()}`"


def _kind(info: FieldInfo) -> str:
    """What may be written, e.g. ``whole number from 1 to 64``."""
    kinds = [part for part in _parts(info.annotation) if part is not type(None)]
    words = " or ".join(dict.fromkeys(_word(part) for part in kinds))
    bounds = {name: getattr(item, name) for item in info.metadata for name in ("ge", "gt", "le") if hasattr(item, name)}
    low, high = bounds.get("ge", bounds.get("gt")), bounds.get("le")
    if low is not None and high is not None:
        return f"{words} from {low:,} to {high:,}"
    return f"{words}, at least {low:,}" if low is not None else words


def _parts(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) in (None, Literal, tuple):
        return (annotation,)
    return get_args(annotation)


def _word(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(annotation))
    if get_origin(annotation) is tuple:
        return "list"
    return {int: "whole number", float: "number", bool: "true or false", str: "text", SecretStr: "secret"}[annotation]


def _default(info: FieldInfo) -> str:
    value = info.default
    if value is None or value == () or value == "":
        return ""
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


if __name__ == "__main__":
    main()
