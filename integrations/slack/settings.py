"""Settings of the Slack bot: ``SLACK_*`` as Slack names them, ``ADVISOR_SLACK_*`` for what is ours."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from advisor.settings import read_settings
from tools.errors import MissingValue


class SlackSettings(BaseModel):
    """What an operator may set; each field is the variable ``ADVISOR_<NAME>``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    slack_teams: tuple[str, ...] = Field(
        default=(), description="Workspaces (team ids) that are answered; empty: only the one that the bot token is of."
    )
    slack_requests_per_minute: int = Field(default=10, ge=1, description="Questions a minute for each user.")
    slack_tokens_per_day: int | None = Field(default=None, ge=1, description="Model tokens a day for each user.")
    slack_usd_per_day: float | None = Field(default=None, gt=0, description="Model spending a day for each user.")
    slack_native_streams: bool = Field(
        default=True, description="Show tool calls as task updates of a native stream; else one message, then edited."
    )
    slack_workers: int = Field(default=8, ge=1, le=64, description="Questions answered at once by a process.")
    slack_lease_seconds: float = Field(
        default=30.0, gt=0, le=600, description="After how long a job of a dead process is taken over."
    )
    slack_api_url: str = Field(default="https://slack.com/api/", description="Where Slack's Web API is.")


class Credentials(BaseModel):
    """The tokens, from the environment alone."""

    model_config = ConfigDict(frozen=True)

    bot_token: SecretStr
    app_token: SecretStr | None = None
    signing_secret: SecretStr | None = None


def slack_settings(environment: Mapping[str, str] | None = None) -> SlackSettings:
    """The settings in force. Raises BadValue naming the variable at fault."""
    return read_settings(SlackSettings, environment)


def credentials(*needed: str, environment: Mapping[str, str] | None = None) -> Credentials:
    """The tokens; ``needed`` names those that must be there. Raises MissingValue naming the variable."""
    values = os.environ if environment is None else environment
    found = {name: values.get(f"SLACK_{name.upper()}", "").strip() or None for name in Credentials.model_fields}
    for name in ("bot_token", *needed):
        if not found[name]:
            raise MissingValue(
                "missing_setting",
                f"SLACK_{name.upper()} is not set.",
                field=f"SLACK_{name.upper()}",
                hint="README, section Slack, says where an admin finds it.",
            )
    return Credentials.model_validate(found)


def configured(environment: Mapping[str, str] | None = None) -> bool:
    """Whether the events route can be served: a bot token and a signing secret are there."""
    values = os.environ if environment is None else environment
    return bool(values.get("SLACK_BOT_TOKEN") and values.get("SLACK_SIGNING_SECRET"))
