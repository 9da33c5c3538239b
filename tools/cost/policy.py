"""From a run's arguments to the policy that its bill follows, with one assumption a default."""

from __future__ import annotations

from tools.cost import run
from tools.cost.inputs import RunInput
from tools.cost.run import Policy
from tools.result import Assumption
from tools.units import Unit


def choose_policy(given: RunInput, billing: str, tokens: float) -> tuple[Policy, list[Assumption]]:
    """The hidden parts as asked, else their usual values."""
    assumed: list[Assumption] = []

    def pick(argument: str, asked: float | None, default: float, unit: Unit, why: str) -> float:
        if asked is None:
            assumed.append(Assumption(name=argument, value=default, unit=unit, why=why, argument=argument))
            return default
        return asked

    pure = given.idle_share == 0  # asked for training time alone: start-up and evaluation only if given
    failures = given.failures
    asked_failures = None if failures is None or failures is True else float(failures)
    spot_share = 0.0
    if billing == "spot" and asked_failures != 0:
        spot_share = run.SPOT_MONTHLY_SHARE
        why = "chance that a spot machine is reclaimed within a month: the middle of AWS Spot Advisor's bands"
        assumed.append(Assumption(name="spot_reclaims_a_month", value=spot_share, why=why, argument="failures"))
    rate = pick(
        "checkpoint_gb_per_s",
        given.checkpoint_gb_per_s,
        run.CHECKPOINT_BYTES_PER_S / 1e9,
        "",
        "GB/s that one node writes to network storage",
    )
    data = given.dataset_gb * 1e9 if given.dataset_gb is not None else None
    policy = Policy(
        idle_share=pick(
            "idle_share", given.idle_share, run.IDLE_SHARE, "", "billed without training: debugging, loading, waiting"
        ),
        evaluation_share=pick(
            "evaluation_share",
            given.evaluation_share,
            0.0 if pure else run.EVALUATION_SHARE,
            "",
            "validation during the run",
        ),
        start_up_hours=pick(
            "start_up_hours",
            given.start_up_hours,
            0.0 if pure else run.START_UP_HOURS,
            "h",
            "boot, image, dataset copy, compilation, billed before the first step",
        ),
        failures_per_million=pick(
            "failures",
            asked_failures,
            run.FAILURES_PER_MILLION_GPU_HOURS,
            "",
            "failures a million GPU-hours; Llama 3's training saw 19.7",
        ),
        spot_monthly_share=spot_share,
        interval_hours=given.checkpoint_every_hours,
        checkpoint_bytes_per_s=rate * 1e9,
        checkpoints_kept=int(
            pick("checkpoints_kept", given.checkpoints_kept, run.CHECKPOINTS_KEPT, "", "copies stored during the run")
        ),
        storage_usd_per_gb_month=pick(
            "storage_usd_per_gb_month",
            given.storage_usd_per_gb_month,
            run.STORAGE_USD_PER_GB_MONTH,
            "USD/GB-month",
            "between object storage (0.02) and shared file systems (0.07-0.17)",
        ),
        dataset_bytes=data if data is not None else tokens / (given.epochs or 1.0) * run.DATASET_BYTES_PER_TOKEN,
        egress_usd_per_gb=given.egress_usd_per_gb or 0.0,
    )
    return policy, assumed
