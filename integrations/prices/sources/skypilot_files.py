"""SkyPilot's hosted catalogues: keyless CSV files, one a cloud, read by column name; no date inside.

Asked by name only: several of the files are refreshed by hand and may be months old. Prices are per machine and zone.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from integrations.net import Session, SourceError
from integrations.prices.source import Keys, Left, Parsed, PriceSource, each, machine, price, row
from knowledge.price_rules import Observation
from knowledge.types import Billing

HOST, MIRROR = "raw.githubusercontent.com", "skypilot-catalog.s3.us-east-1.amazonaws.com"
VERSION = "v9"
CLOUDS = {"aws": "aws", "nebius": "nebius", "lambda": "lambda", "oci": "oci"}
FIELDS = {"InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "SpotPrice", "Region"}
NOTE = "the source file carries no date: the price may be older"


def fetch(session: Session, keys: Keys) -> dict[str, str]:
    """Each cloud's file; the mirror where the first host asks to wait."""
    found: dict[str, str] = {}
    for cloud in CLOUDS:
        try:
            found[cloud] = session.text(
                HOST, f"/skypilot-org/skypilot-catalog/master/catalogs/{VERSION}/{cloud}/vms.csv"
            )
        except SourceError as err:
            if err.code not in ("bad_status", "unreachable"):
                raise
            found[cloud] = session.text(MIRROR, f"/catalogs/{VERSION}/{cloud}/vms.csv")
    return found


def parse(found: dict[str, str], day: str) -> Parsed:
    """On-demand and spot USD per machine-hour by region, the cheapest zone of each. Raises SourceError("drift") where
    columns are missing.
    """
    out = Parsed()
    for cloud, text in found.items():
        reader = csv.DictReader(io.StringIO(text))
        if not set(reader.fieldnames or ()) >= FIELDS:
            raise SourceError("drift", f"SkyPilot {cloud}: columns are missing")
        one = each(reader, lambda line, cloud=cloud: _read(line, CLOUDS[cloud], day), f"SkyPilot {cloud}")  # type: ignore[misc]
        cheapest: dict[tuple[str, str, str], Observation] = {}
        for offer in one.rows:
            key = (offer.instance_type, offer.region, offer.billing)
            if key not in cheapest or offer.usd_per_hour < cheapest[key].usd_per_hour:
                cheapest[key] = offer
        out.rows += cheapest.values()
        out.dropped.update(one.dropped)
    return out


def _read(line: dict[str, str], provider: str, day: str) -> Iterator[Observation]:
    n = float(line["AcceleratorCount"] or 0)
    if n < 1:
        raise Left("no GPU")
    held = machine(provider, line["InstanceType"])
    kinds: tuple[tuple[str, Billing], ...] = (("Price", "on_demand"), ("SpotPrice", "spot"))
    if not line["Price"] and not line["SpotPrice"]:
        raise Left("no price")
    for column, billing in kinds:
        if line[column]:
            yield row(
                "live-skypilot", provider, held.gpu_id, n, day, instance_type=held.instance_type,
                usd_per_hour=price(line[column]), region=line["Region"], billing=billing, warnings=(NOTE,),
            )  # fmt: skip


SOURCE = PriceSource(
    id="live-skypilot",
    title="SkyPilot catalogues",
    hosts={
        HOST: (r"/skypilot-org/skypilot-catalog/master/catalogs/v\d+/[a-z]+/vms\.csv",),
        MIRROR: (r"/catalogs/v\d+/[a-z]+/vms\.csv",),
    },
    fetch=fetch,
    parse=parse,
    by_default=False,
    deadline_seconds=45.0,
)
