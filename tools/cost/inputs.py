"""Arguments that the tools about time and money share, beside the workload."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from tools.errors import BadValue
from tools.throughput import SoftwareClass
from tools.units import parse_count
from tools.workload import WorkloadInput

BillingChoice = Literal["on_demand", "spot", "community", "secure", "reserved_1y", "reserved_3y"]
_LEAST_PERCENT = 5  # an MFU above 1 from here on is meant in percent; below, no run is that slow


class RunInput(WorkloadInput):
    """A workload, how much it trains on, and what the hidden parts of its bill are."""

    tokens: float | str | None = Field(
        default=None,
        description="Training tokens: 20B, 1.5T, 3e9. Default 20 a parameter (pretrain), else 10 million.",
        json_schema_extra={"unit": "tokens"},
    )
    samples: float | str | None = Field(default=None, description="Dataset size instead of tokens.")
    tokens_per_sample: float | None = Field(default=None, gt=0, description="Default: the sequence length.")
    epochs: float | None = Field(default=None, description="Passes over the tokens or samples; default 1.")
    software: SoftwareClass | None = Field(
        default=None,
        description="Whose stack: tuned (vendor recipe), benchmark (framework's published set-up), user (default).",
    )
    idle_share: float | None = Field(
        default=None,
        ge=0,
        lt=1,
        description="Billed without training; default 0.1; 0 also drops start-up, evaluation.",
    )
    evaluation_share: float | None = Field(
        default=None, ge=0, lt=1, description="Share of billed time spent on evaluation; default 0.02."
    )
    start_up_hours: float | None = Field(
        default=None, ge=0, le=1000, description="Billed before the first step; default 0.25."
    )
    failures: bool | float | None = Field(
        default=None,
        description="false or 0: none; a number: per million GPU-hours (default 20, Llama 3's); spot adds its own.",
    )
    checkpoint_every_hours: float | None = Field(default=None, gt=0, description="Default: Young/Daly's best interval.")
    checkpoint_gb_per_s: float | None = Field(
        default=None, gt=0, description="Write rate of one node, GB/s; default 2.", json_schema_extra={"unit": "GB/s"}
    )
    checkpoints_kept: int | None = Field(default=None, ge=0, description="Copies stored; default 3, 0 for none.")
    storage_usd_per_gb_month: float | None = Field(default=None, ge=0, description="Default 0.05.")
    dataset_gb: float | None = Field(default=None, ge=0, description="Stored data; default 2 bytes a token.")
    egress_usd_per_gb: float | None = Field(default=None, ge=0, description="To take the result home; by provider.")

    @field_validator("tokens", "samples", mode="after")
    @classmethod
    def _count(cls, value: float | str | None, info: object) -> float | str | None:
        if isinstance(value, str):
            return parse_count(value, getattr(info, "field_name", "tokens"))
        return value

    @field_validator("idle_share", "evaluation_share", mode="before")
    @classmethod
    def _share(cls, value: object) -> object:
        if isinstance(value, str) and value.strip().endswith("%"):
            return float(value.strip().rstrip("%")) / 100.0
        return value

    @field_validator("mfu", mode="before", check_fields=False)
    @classmethod
    def _mfu(cls, value: object) -> object:
        if isinstance(value, str) and value.strip().endswith("%"):
            return float(value.strip().rstrip("%")) / 100.0
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 1:
            as_percent = f"{float(value) / 100:g}" if _LEAST_PERCENT <= value <= 100 else "0.4"
            raise BadValue(
                "out_of_range",
                f"An MFU of {value:g} is above 1: no chip multiplies faster than its peak.",
                field="mfu",
                hint="MFU is a fraction: 0.4 for 40 %.",
                candidates=[as_percent],
            )
        return value
