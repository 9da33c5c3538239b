"""From a run's arguments to the policy that its bill follows, with one assumption a default."""

from __future__ import annotations

from knowledge.providers import Figure, Provider
from tools.cost import run
from tools.cost.inputs import RunInput
from tools.cost.run import Policy
from tools.result import Assumption
from tools.units import Unit


def choose_policy(
    given: RunInput, billing: str, tokens: float, provider: Provider | None = None
) -> tuple[Policy, list[Assumption]]:
    """The hidden parts as asked, else the provider's own storage and egress prices, else usual values."""
    assumed: list[Assumption] = []

    def pick(
        argument: str, asked: float | None, default: float, unit: Unit, why: str, scale: float = 1.0, name: str = ""
    ) -> float:
        if asked is None:
            assumed.append(
                Assumption(name=name or argument, value=default * scale, unit=unit, why=why, argument=argument)
            )
            return default
        return asked

    pure = given.idle_share == 0  # asked for training time alone: start-up and evaluation only if given
    failures = given.failures
    asked_failures = None if failures is None or failures is True else float(failures)
    spot_share = 0.0
    if billing == "spot" and asked_failures != 0:
        spot_share = run.SPOT_MONTHLY_SHARE
        why = "chance that a spot machine is reclaimed within a month: the middle of AWS Spot Advisor's bands"
        assumed.append(Assumption(name="spot_reclaims_a_month", value=spot_share * 100, unit="%", why=why))
    failure_rate = run.FAILURES_PER_MILLION_GPU_HOURS if asked_failures is None else asked_failures
    if asked_failures is None:
        told = f"{failure_rate:g} per million GPU-hours"
        assumed.append(Assumption(name="failures", value=told, why="Llama 3's training saw 19.7", argument="failures"))
    rate = None if given.checkpoint_gb_per_s is None else given.checkpoint_gb_per_s * 1e9
    storage, storage_why = run.STORAGE_USD_PER_GB_MONTH, "between object storage and shared file systems"
    if provider is not None and provider.storage is not None:
        storage, storage_why = provider.storage.value, _dated(provider, provider.storage)
    egress = given.egress_usd_per_gb
    if egress is None and provider is not None and provider.egress is not None:
        egress = pick(
            "egress_usd_per_gb", None, provider.egress.value, "USD", _dated(provider, provider.egress)
        )  # fmt: skip
    data = given.dataset_gb * 1e9 if given.dataset_gb is not None else tokens / (given.epochs or 1.0)
    policy = Policy(
        idle_share=pick(
            "idle_share", given.idle_share, run.IDLE_SHARE, "%", "billed without training: debugging, loading, waiting",
            100.0,
        ),
        evaluation_share=pick(
            "evaluation_share", given.evaluation_share, 0.0 if pure else run.EVALUATION_SHARE, "%",
            "validation during the run", 100.0,
        ),
        start_up_hours=pick(
            "start_up_hours", given.start_up_hours, 0.0 if pure else run.START_UP_HOURS, "h",
            "boot, image, dataset copy, compilation, billed before the first step", 1.0, "start_up",
        ),
        failures_per_million=failure_rate,
        spot_monthly_share=spot_share,
        interval_hours=given.checkpoint_every_hours,
        checkpoint_bytes_per_s=pick(
            "checkpoint_gb_per_s", rate, run.CHECKPOINT_BYTES_PER_S, "B/s", "what one node writes to network storage",
            1.0, "checkpoint_write_rate",
        ),
        checkpoints_kept=int(
            pick("checkpoints_kept", given.checkpoints_kept, run.CHECKPOINTS_KEPT, "", "copies stored during the run")
        ),
        storage_usd_per_gb_month=pick(
            "storage_usd_per_gb_month", given.storage_usd_per_gb_month, storage, "USD/GB-month", storage_why, 1.0,
            "storage_price",
        ),
        dataset_bytes=data if given.dataset_gb is not None else data * run.DATASET_BYTES_PER_TOKEN,
        egress_usd_per_gb=egress or 0.0,
    )  # fmt: skip
    return policy, assumed


def _dated(provider: Provider, figure: Figure) -> str:
    note = f"; {figure.note}" if figure.note else ""
    return f"{provider.title}, {figure.as_of}, {figure.source}{note}"
