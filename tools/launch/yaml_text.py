"""Plain YAML and JSON text of nested settings, in the order given, as people write it."""

from __future__ import annotations

import json
from typing import Any

import yaml


class _Dumper(yaml.SafeDumper):
    """Block style with literal blocks for scripts."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def to_yaml(settings: dict[str, Any]) -> str:
    """Settings as YAML, in the order given and lines of up to 100 characters. Raises yaml's RepresenterError for what
    is no plain value.
    """
    return yaml.dump(settings, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=100)


def to_json(settings: dict[str, Any]) -> str:
    """Settings as JSON, indented by 2, with a newline at the end. Raises TypeError for what is no plain value."""
    return json.dumps(settings, indent=2) + "\n"
