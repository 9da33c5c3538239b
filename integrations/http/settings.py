"""Settings of the server (``ADVISOR_*``); those of the advisor itself are in ``advisor/settings.py``."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class ServiceSettings(BaseModel):
    """Everything that an operator of `advisor serve` may set; each field is the variable ``ADVISOR_<NAME>``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = Field(default="127.0.0.1", min_length=1, description="Address to listen on.")
    port: int = Field(default=8080, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    workers: int = Field(default=1, ge=1, le=64, description="Server processes.")
    auth: Literal["auto", "required", "open"] = Field(
        default="auto",
        description="Who may call: auto lets callers on this machine in without a key until keys or OIDC are set up, "
        "and nobody else; required asks everyone for a key; open asks nobody.",
    )
    api_keys: SecretStr | None = Field(
        default=None,
        description="Keys that callers may hold, comma-separated, each KEY or OWNER:KEY, at least 16 characters. "
        "Keys with limits, which can be revoked, are made by `advisor keys create`.",
    )
    allowed_hosts: tuple[str, ...] = Field(
        default=(),
        description="Host names that requests may be addressed to; empty: any, but only loopback names without keys.",
    )
    oidc_issuer: str = Field(default="", description="Issuer of bearer tokens that are taken beside API keys.")
    oidc_audience: str = Field(default="", description="Audience that such a token must name.")
    oidc_jwks_url: str = Field(
        default="", description="Where the issuer's signing keys are; empty: as its discovery document says."
    )
    oidc_owner_claim: str = Field(default="sub", min_length=1, description="Claim that names the conversations' owner.")
    requests_per_minute: int | None = Field(
        default=None, ge=1, description="Requests a minute for each caller whose key does not say otherwise."
    )
    tokens_per_day: int | None = Field(
        default=None, ge=1, description="Model tokens a day for each caller whose key does not say otherwise."
    )
    usd_per_day: float | None = Field(
        default=None, gt=0, description="Model spending a day for each caller whose key does not say otherwise."
    )
    total_usd_per_day: float | None = Field(
        default=None, gt=0, description="Model spending a day of all callers together."
    )
    over_budget: Literal["planner", "refuse"] = Field(
        default="planner",
        description="What a question gets once its day's budget is spent: the built-in planner's answer, which costs "
        "nothing, or 429 with the time until the next day.",
    )
    usd_per_million_input_tokens: float | None = Field(
        default=None, ge=0, description="Price of a model whose price is not known; without it a USD budget refuses it."
    )
    usd_per_million_output_tokens: float | None = Field(default=None, ge=0, description="The same for output.")
    turns: int = Field(default=32, ge=1, le=1024, description="Questions worked on at once by a process.")
    waiting_turns: int = Field(default=64, ge=0, le=10_000, description="Questions that may wait; more get 503.")
    turns_per_caller: int = Field(default=16, ge=1, le=1024, description="Questions of one caller at once; more: 429.")
    body_bytes: int = Field(default=1_048_576, ge=1024, description="Largest request body.")
    batch_items: int = Field(default=1000, ge=1, le=100_000, description="Largest batch of tool calls in one request.")
    drain_seconds: float = Field(
        default=10.0, ge=0, le=600, description="How long running answers may go on once the server is told to stop."
    )
    ping_seconds: float = Field(default=15.0, gt=0, le=600, description="How often a silent stream says that it lives.")
    reader_seconds: float = Field(
        default=30.0, gt=0, le=3600, description="How long the reader of a stream may take nothing of it."
    )
    metrics_token: SecretStr | None = Field(default=None, description="Bearer token that /metrics asks for, if set.")
    log_format: Literal["auto", "console", "json"] = Field(
        default="auto", description="Log lines for people or as JSON; auto: console on a terminal."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="Least level logged.")
    otel: bool = Field(
        default=False,
        description="Send traces by OpenTelemetry (extra `otel`); the OTEL_* variables say where.",
    )

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can reach the server: its address is a loopback one."""
        return self.host in LOOPBACK
