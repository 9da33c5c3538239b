"""Clean the price observations: ``python -m knowledge.clean_prices`` rewrites ``prices.csv`` and the rejects.

Reads ``prices_observed.csv`` (one observation a row, in the words of its source), names each GPU, applies the rules
of ``price_rules`` and writes what may be quoted, with class and warnings, and what was kept out, with the reason.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from knowledge.errors import InputProblem
from knowledge.gpus import all_gpus, find_gpu
from knowledge.instances import all_instances
from knowledge.price_rules import FIRST_HAND, Observation, Rejected, clean
from knowledge.providers import all_providers
from knowledge.types import Billing

DATA = Path(__file__).parent / "data"
FIELDS = ("provider", "provider_class", "instance_type", "gpu_id", "n_gpus", "region", "billing", "usd_per_hour",
          "usd_per_gpu_hour", "observed", "source", "locator", "vcpus", "ram_gb", "warnings")  # fmt: skip
# One silicon in several editions of one price class; the plain name stands for the workstation card.
EDITIONS = {"RTX-PRO-6000-Blackwell": "edition (workstation or server) not stated", "MI250X": None}
SERVER_WORDS = ("-se-", " se", "server", "-se")


def observations(path: Path = DATA / "prices_observed.csv") -> list[Observation]:
    """Every row of the observations file, in file order. Raises ValueError for a cell that should be a number and is
    not.
    """
    with path.open(encoding="utf-8", newline="") as file:
        return [observation(row) for row in csv.DictReader(file)]


def observation(row: dict[str, str]) -> Observation:
    """A typed observation from one row of text, prices in USD; an empty count or price becomes 0 for the rules to
    refuse, another empty number None, an empty region "global". Raises ValueError for what should be a number.
    """

    def number(name: str) -> float | None:
        return float(row[name]) if row.get(name) else None

    return Observation(
        provider=row["provider"],
        instance_type=row["instance_type"],
        gpu=row["gpu"],
        n_gpus=number("n_gpus") or 0.0,
        gpu_memory_gb=number("gpu_memory_gb"),
        region=row["region"] or "global",
        billing=cast(Billing, row["billing"]),
        usd_per_hour=number("usd_per_hour") or 0.0,
        usd_per_gpu_hour=number("usd_per_gpu_hour") or 0.0,
        observed=row["observed"],
        source=row["source"],
        locator=row["locator"],
        vcpus=number("vcpus"),
        ram_gb=number("ram_gb"),
    )


def cleaned(rows: Iterable[Observation]) -> tuple[list[Observation], list[Rejected]]:
    """The rules of ``price_rules`` with the knowledge base's GPUs, machine types and providers."""
    memory = {gpu.id: gpu.marketed_memory_gb for gpu in all_gpus()}
    classes = {provider.id: provider.provider_class for provider in all_providers()}
    kept, out = clean(rows, name_gpu, memory, classes)
    return [_as_sold(_with_machine_gpu(row)) for row in kept], out


def name_gpu(name: str) -> tuple[str, str | None] | None:
    """The GPU's id, and a doubt that keeps the row out: the form factor decides the price and was not stated. (id,
    None) without a doubt; None for a name that is no GPU's.
    """
    try:
        match = find_gpu(name)
    except InputProblem:
        return None
    forms = {gpu_id for gpu_id in (match.value.id, *match.alternatives) if gpu_id not in EDITIONS}
    if match.note and match.value.id not in EDITIONS and len(forms) > 1:
        return match.value.id, "form factor (SXM, PCIe or NVL) not stated, and it decides the price"
    return match.value.id, None


def _with_machine_gpu(row: Observation) -> Observation:
    """The machine type's own GPU where it is known, and a warning where the edition is not."""
    machine_gpu = _machines().get((row.provider, row.instance_type.casefold()))
    if row.gpu_id not in EDITIONS or EDITIONS[row.gpu_id] is None:
        return row
    if machine_gpu:
        return replace(row, gpu_id=machine_gpu)
    if any(word in row.instance_type.casefold() for word in SERVER_WORDS):
        return replace(row, gpu_id="RTX-PRO-6000-Blackwell-Server")
    return replace(row, warnings=(*row.warnings, str(EDITIONS[row.gpu_id])))


def _as_sold(row: Observation) -> Observation:
    """A page's price of one GPU as the smallest machine that the provider sells with that card ("8 x A100 or none")."""
    least = _smallest().get((row.provider, row.gpu_id), 1)
    if row.n_gpus > 1 or row.n_gpus >= least or row.source in FIRST_HAND or "classic" in row.instance_type:
        return row
    note = f"priced by the GPU, sold as a machine of {least}"
    usd = round(row.usd_per_gpu_hour * least, 4)
    return replace(row, n_gpus=float(least), usd_per_hour=usd, warnings=(*row.warnings, note))


@lru_cache(maxsize=1)
def _smallest() -> dict[tuple[str, str], int]:
    """The fewest GPUs of each card in a machine of the large clouds, whose lists we hold whole."""
    out: dict[tuple[str, str], int] = {}
    for machine in all_instances():
        key = (machine.provider.casefold(), machine.gpu_id)
        if key[0] in ("aws", "azure", "gcp", "oci", "coreweave"):
            out[key] = min(machine.n_gpus, out.get(key, machine.n_gpus))
    return out


@lru_cache(maxsize=1)
def _machines() -> dict[tuple[str, str], str]:
    return {(m.provider.casefold(), m.instance_type.casefold()): m.gpu_id for m in all_instances()}


def write(kept: list[Observation], out: list[Rejected], folder: Path = DATA) -> None:
    """Rewrite ``prices.csv`` and ``prices_rejected.csv`` in ``folder``, in the order of the observations: what may be
    quoted, and what was kept out with its reason.
    """
    with (folder / "prices.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FIELDS)
        writer.writerows([_text(getattr(row, name)) for name in FIELDS] for row in kept)
    with (folder / "prices_rejected.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        names = ("provider", "instance_type", "gpu", "n_gpus", "region", "billing", "usd_per_gpu_hour", "observed")
        writer.writerow([*names, "reason"])
        writer.writerows([*[_text(getattr(item.row, name)) for name in names], item.reason] for item in out)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple):
        return "; ".join(value)
    return f"{value:g}" if isinstance(value, float) and value == round(value) else str(value)


if __name__ == "__main__":
    good, bad = cleaned(observations())
    write(good, bad)
    sys.stdout.write(f"{len(good)} offers, {len(bad)} kept out\n")
    for reason, count in Counter(item.reason.partition(" times the median")[0][-40:] for item in bad).most_common(12):
        sys.stdout.write(f"  {count:4d}  {reason}\n")
