"""Settings from the environment (``ADVISOR_*``), read when asked for, so that tests and services may change them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.errors import BadValue

APP_NAME = "training-infrastructure-advisor"


class Settings(BaseModel):
    """Everything that an operator may set; each field is the variable ``ADVISOR_<NAME>``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(default="planner", min_length=1, description="planner, or any litellm name: provider/model.")
    fallback_models: tuple[str, ...] = Field(
        default=(), description="Tried in order when the model fails; the planner is always the last."
    )
    database_url: str = Field(
        default="",
        description="A file path, sqlite:///path or postgresql://…; empty: a file in the user's data folder.",
    )
    offline: bool = Field(default=False, description="Never touch the network; questions go to the planner.")
    turn_seconds: float = Field(default=60.0, gt=0, le=3600, description="Deadline of a whole turn.")
    tool_seconds: float = Field(default=20.0, gt=0, le=3600, description="Deadline of one tool call.")
    first_token_seconds: float = Field(default=20.0, gt=0, le=3600, description="How long a model may stay silent.")
    idle_seconds: float = Field(default=15.0, gt=0, le=3600, description="Longest gap inside a model's stream.")
    retries: int = Field(default=2, ge=0, le=10, description="Retries of a model before the next one is tried.")
    max_steps: int = Field(default=8, ge=1, le=64, description="Model calls a turn.")
    max_tool_calls: int = Field(default=16, ge=1, le=256, description="Tool calls a turn.")
    max_turn_tokens: int = Field(default=120_000, ge=1000, description="Tokens in and out of a model's steps a turn.")
    max_output_tokens: int = Field(default=2000, ge=64, le=100_000, description="Output tokens a model call.")
    max_question_chars: int = Field(default=32_000, ge=100, le=1_000_000, description="Longest question taken.")
    max_history_chars: int = Field(default=60_000, ge=1000, description="Earlier conversation that a model is shown.")


def get_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings in force. Raises BadValue naming the variable at fault."""
    return read_settings(Settings, environment)


S = TypeVar("S", bound=BaseModel)


def read_settings(kind: type[S], environment: Mapping[str, str] | None = None) -> S:
    """Settings of any kind from the variables ``ADVISOR_<FIELD>``, of the process where no ``environment`` is given;
    those not set or empty keep their defaults, lists are split at commas. Raises BadValue naming the variable at fault.
    """
    values = os.environ if environment is None else environment
    given: dict[str, object] = {}
    for name, info in kind.model_fields.items():
        text = values.get(f"ADVISOR_{name.upper()}", "").strip()
        if text:
            several = get_origin(info.annotation) is tuple
            given[name] = [part.strip() for part in text.split(",") if part.strip()] if several else text
    try:
        return kind.model_validate(given)
    except ValidationError as err:
        first = err.errors(include_url=False, include_input=False)[0]
        variable = f"ADVISOR_{str(first['loc'][0]).upper()}"
        about = kind.model_fields[str(first["loc"][0])]
        raise BadValue("bad_setting", f"{variable}: {first['msg']}.", field=variable, hint=about.description) from None


def database_place(settings: Settings) -> str:
    """Where conversations are kept: a file's path, or the URL of a PostgreSQL database. Raises BadValue for a URL of
    another kind.
    """
    url = settings.database_url
    if url.startswith(("postgresql://", "postgres://")):
        return url
    if url.startswith("sqlite://"):
        return url.removeprefix("sqlite:///" if url.startswith("sqlite:///") else "sqlite://")
    if "://" in url:
        raise BadValue(
            "unsupported_database",
            f"Conversations cannot be kept in {url.partition('://')[0]}.",
            field="ADVISOR_DATABASE_URL",
            hint="Use sqlite:///path/to/file.db or postgresql://user@host/name.",
        )
    return str(Path(url).expanduser() if url else data_folder() / "advisor.db")


def program_version() -> str:
    """The installed version; a working tree that is not installed has none."""
    try:
        return version(APP_NAME)
    except PackageNotFoundError:
        return "0"


def data_folder() -> Path:
    """The user's data folder for this program, XDG_DATA_HOME or ~/.local/share; not made here."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / APP_NAME
