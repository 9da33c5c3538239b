"""What a price source is: one request function, one pure parser, and the words they share."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from advisor.links import REMOVED, unlinked
from integrations.net import Session, SourceError
from knowledge.instances import all_instances
from knowledge.price_rules import Observation
from knowledge.types import Billing, Instance

R = TypeVar("R")
Keys = Mapping[str, str]


@dataclass(slots=True)
class Parsed:
    """Rows as the source states them, and what was left out, by reason."""

    rows: list[Observation] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class PriceSource:
    """One source: how to ask, how to read the reply, which keys it needs, and how long its prices keep."""

    id: str
    title: str
    hosts: Mapping[str, tuple[str, ...]]
    fetch: Callable[[Session, Keys], Any]
    parse: Callable[[Any, str], Parsed]  # (pages, today) -> rows; pure
    keys: tuple[str, ...] = ()  # environment variables
    by_default: bool = True  # asked by a plain refresh
    deadline_seconds: float = 20.0
    max_body_bytes: int = 32_000_000
    max_inflated_bytes: int = 128_000_000


class Left(Exception):
    """A row that is left out on purpose, with the reason."""


def each(rows: Iterable[R], read: Callable[[R], Iterable[Observation]], what: str) -> Parsed:
    """Read every row; count those left out by reason, the malformed among them. Raises SourceError("drift") when a row
    was malformed and none could be read.
    """
    out = Parsed()
    broken: Exception | None = None
    seen = malformed = 0
    for row in rows:
        seen += 1
        try:
            out.rows.extend(read(row))
        except Left as left:
            out.dropped[str(left)] += 1
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as err:
            broken = err
            malformed += 1
            out.dropped["malformed"] += 1
    if broken is not None and malformed == seen - (sum(out.dropped.values()) - malformed) and not out.rows:
        raise SourceError("drift", f"{what}: no row has the expected fields ({type(broken).__name__}: {broken})")
    return out


def listed(body: Any, *path: str) -> list[Any]:
    """The list at ``path`` of a JSON body, the body itself without one. Raises SourceError("drift") when it is not
    there.
    """
    found = body
    for name in path:
        if not isinstance(found, Mapping) or name not in found:
            raise SourceError("drift", f"the reply has no {'.'.join(path)}")
        found = found[name]
    if not isinstance(found, list):
        raise SourceError("drift", f"{'.'.join(path) or 'the reply'} is not a list")
    return found


def price(value: Any) -> float:
    """A price in USD above zero, from a number or text. Raises Left for none, zero, below, NaN, infinite or above
    100,000, ValueError for other text.
    """
    if value is None or value == "":
        raise Left("no price")
    number = float(value)
    if not math.isfinite(number) or number <= 0:
        raise Left("price zero, below or not a number")
    if number > 100_000:
        raise Left("absurd price")
    return number


def row(
    source: str,
    provider: str,
    gpu: str,
    n_gpus: float,
    day: str,
    *,
    instance_type: str,
    usd_per_hour: float | None = None,
    usd_per_gpu_hour: float | None = None,
    region: str | None = None,
    billing: Billing = "on_demand",
    gpu_memory_gb: float | None = None,
    vcpus: float | None = None,
    ram_gb: float | None = None,
    locator: str = "",
    warnings: tuple[str, ...] = (),
) -> Observation:
    """One observation from a price per machine or per GPU (USD an hour; the machine's wins), seen on the ISO day
    ``day``; texts are cut and stripped of markup. Raises Left without a GPU or a price.
    """
    if n_gpus <= 0:
        raise Left("no GPU")
    if usd_per_hour is None:
        if usd_per_gpu_hour is None:
            raise Left("no price")
        usd_per_hour = usd_per_gpu_hour * n_gpus
    return Observation(
        provider=provider,
        instance_type=_words(instance_type, 80),
        gpu=_words(gpu, 80),
        n_gpus=float(n_gpus),
        gpu_memory_gb=gpu_memory_gb,
        region=_words(region or "global", 60),
        billing=billing,
        usd_per_hour=round(usd_per_hour, 6),
        usd_per_gpu_hour=round(usd_per_hour / n_gpus, 6),
        observed=day,
        source=source,
        locator=_words(locator, 120),
        vcpus=vcpus,
        ram_gb=ram_gb,
        warnings=warnings,
    )


def _words(text: str, longest: int) -> str:
    """What a source calls a thing, as one short line without markup: it will stand in answers and in prompts."""
    plain = unlinked(text[: 4 * longest]).replace(REMOVED, " ").replace("//", " ")
    return " ".join(re.sub(r"[^\w .,:;()/+&@'-]", " ", plain).split())[:longest]


def machine(provider: str, instance_type: str) -> Instance:
    """The machine type of this provider as the knowledge base holds it. Raises Left when it is not one of ours."""
    found = _machines().get((provider, _plain(instance_type)))
    if found is None:
        raise Left("not a GPU machine that we hold")
    return found


@lru_cache(maxsize=1)
def _machines() -> dict[tuple[str, str], Instance]:
    return {(m.provider.casefold().replace(".", ""), _plain(m.instance_type)): m for m in all_instances()}


def _plain(name: str) -> str:
    return re.sub(r"^standard_", "", name.strip().casefold())


def key_of(keys: Keys, name: str) -> str:
    """The key of this environment variable, blanks off. Raises SourceError("no_key") where it is unset or empty."""
    value = keys.get(name, "").strip()
    if not value:
        raise SourceError("no_key", f"set {name} to ask this source")
    return value
