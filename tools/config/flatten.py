"""Pasted text to one flat list of settings: YAML and JSON documents, command lines, Python keyword arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from knowledge.foreign import Refused, read_json, read_yaml
from tools.errors import BadValue

MAX_CHARS = 64_000
MAX_SETTINGS = 2_000
_KEYWORD = re.compile(
    r"(?<!\w)([A-Za-z_]\w{0,80})\s{0,8}=\s{0,8}(\[[^\]]{0,2000}\]|\"[^\"]{0,1000}\"|'[^']{0,1000}'|[^,\s()]+)"
)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its path of keys, lower-case with underscores, and its value."""

    path: tuple[str, ...]
    value: Any

    @property
    def key(self) -> str:
        """The last key."""
        return self.path[-1]

    @property
    def name(self) -> str:
        """The path as written in a message."""
        return ".".join(self.path)


def settings_of(given: str | dict[str, Any]) -> list[Setting]:
    """Every setting of a pasted configuration. Raises BadValue when there is none to read."""
    if isinstance(given, dict):
        found = list(_walk(given, ()))
    else:
        if len(given) > MAX_CHARS:
            raise BadValue(
                "config_too_long",
                f"The configuration has {len(given)} characters; at most {MAX_CHARS} are read.",
                field="training_config",
                hint="Paste the training settings only.",
            )
        found = _from_text(given)
    if not found:
        raise BadValue(
            "config_not_read",
            "No settings were found in the training configuration.",
            field="training_config",
            hint="Paste YAML, JSON, a command line with --options, or Python keyword arguments.",
        )
    return found[:MAX_SETTINGS]


def _from_text(text: str) -> list[Setting]:
    found: list[Setting] = []
    rest = text
    for block in _json_blocks(text):
        try:
            data = read_json(block)
        except Refused as refused:
            raise _refused(refused) from None
        except ValueError:
            continue
        if isinstance(data, dict):
            found += _walk(data, ())
            rest = rest.replace(block, "\n")
    if re.search(r"(^|\s)--[a-zA-Z]", rest):
        return found + _command_line(rest)
    document = _yaml(rest)
    if document is not None:
        return found + list(_walk(document, ()))
    return found + _keywords(rest)


def _json_blocks(text: str) -> Iterator[str]:
    """Top-level {...} blocks, by counting braces."""
    depth, start = 0, 0
    for index, char in enumerate(text):
        if char == "{":
            start = index if depth == 0 else start
            depth += 1
        elif char == "}" and depth:
            depth -= 1
            if depth == 0:
                yield text[start : index + 1]


def _yaml(text: str) -> dict[str, Any] | None:
    merged: dict[str, Any] = {}
    try:
        for document in read_yaml(text):
            if isinstance(document, dict):
                merged |= document
    except Refused as refused:
        raise _refused(refused) from None
    except (yaml.YAMLError, ValueError):
        return None
    return merged or None


def _refused(refused: Refused) -> BadValue:
    return BadValue(
        "config_not_read",
        f"The training configuration is not read: {refused.message}",
        field="training_config",
        hint="Paste the training settings only.",
    )


def _command_line(text: str) -> list[Setting]:
    text = re.sub(r"\\\s*\n", " ", text)
    tokens = re.findall(r"\"[^\"]*\"|'[^']*'|\S+", text)
    found, index = [], 0
    while index < len(tokens):
        token = tokens[index]
        if token.startswith("-") and re.match(r"^--?[a-zA-Z]", token):
            key, equals, value = token.lstrip("-").partition("=")
            values: list[str] = [value.strip("\"'")] if equals else []
            while not equals and index + 1 < len(tokens) and not re.match(r"^--?[a-zA-Z]", tokens[index + 1]):
                if tokens[index + 1].endswith(".py"):
                    break
                index += 1
                values.append(tokens[index].strip("\"'"))
            whole: Any = True if not values else _scalar(values[0]) if len(values) == 1 else values
            found.append(Setting((_norm(key),), whole))
        elif re.match(r"^[A-Za-z_][\w.]*=", token):
            key, _equals, value = token.partition("=")
            found.append(Setting(tuple(_norm(part) for part in key.split(".")), _scalar(value.strip("\"'"))))
        index += 1
    return found


def _keywords(text: str) -> list[Setting]:
    found = [
        Setting(("model_name_or_path",), match[1])
        for match in re.finditer(r"Model\w{0,60}\.from_pretrained\(\s{0,200}[\"']([^\"']{1,300})", text)
    ]
    for match in _KEYWORD.finditer(text):
        value = match[2]
        if text[match.end() : match.end() + 1] == "(":  # a call, not a value
            continue
        if value.startswith("["):
            found.append(Setting((_norm(match[1]),), re.findall(r"[\"']([^\"']+)[\"']", value)))
        else:
            found.append(Setting((_norm(match[1]),), _scalar(value.strip("\"'"))))
    return found


def _walk(node: Any, path: tuple[str, ...]) -> Iterator[Setting]:
    if isinstance(node, dict) and len(path) < 12:
        for key, value in node.items():
            yield from _walk(value, (*path, _norm(str(key))))
    elif path:
        yield Setting(path, node)


def _norm(key: str) -> str:
    return key.strip().lower().replace("-", "_")


def _scalar(text: str) -> Any:
    low = text.lower()
    if low in ("true", "yes"):
        return True
    if low in ("false", "no"):
        return False
    if low in ("none", "null", ""):
        return None
    for kind in (int, float):
        try:
            return kind(text.replace("_", ""))
        except ValueError:
            continue
    return text
