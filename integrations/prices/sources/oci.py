"""Oracle's price list: keyless, one list, per GPU-hour, the same in every region.

The parts are named by card ("Compute - GPU - H100"), without the form; Oracle's machines decide that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from integrations.net import Session
from integrations.prices.source import Keys, Left, Parsed, PriceSource, each, listed, price, row
from knowledge.instances import all_instances
from knowledge.price_rules import Observation

HOST, PATH = "apexapps.oracle.com", "/pls/apex/cetools/api/v1/products/"
PREFIX = "Compute - GPU - "
# What Oracle calls a part -> the machine types that it is billed for (OCI compute shapes).
MACHINES = {
    "H100": "BM.GPU.H100.8", "H200": "BM.GPU.H200.8", "A100": "BM.GPU4.8", "A100 - v2": "BM.GPU.A100-v2.8",
    "B200": "BM.GPU.B200.8", "B300": "BM.GPU.B300.8", "GB200": "BM.GPU.GB200.4", "GB300": "BM.GPU.GB300.4",
    "L40S": "BM.GPU.L40S.4", "A10": "BM.GPU.A10.4", "MI300X": "BM.GPU.MI300X.8", "MI355X": "BM.GPU.MI355X.8",
    "RTX PRO 6000": "BM.GPU.RTXPRO.8",
}  # fmt: skip


def fetch(session: Session, keys: Keys) -> Any:
    """The whole list in USD; no key is needed. Raises NotModified where nothing changed, else SourceError as
    ``Session`` does.
    """
    return session.json(HOST, PATH, params={"currencyCode": "USD"}, etag=True)


def parse(body: Any, day: str) -> Parsed:
    """Pay-as-you-go USD of GPU parts, as whole machines that we hold, the same in every region. Raises
    SourceError("drift") for another shape.
    """
    machines = {m.instance_type: m for m in all_instances() if m.provider == "OCI"}

    def read(item: dict[str, Any]) -> Iterator[Observation]:
        name = item["displayName"]
        if not name.startswith(PREFIX) or "hour" not in item["metricName"].casefold():
            raise Left("not a GPU-hour")
        held = machines.get(MACHINES.get(name.removeprefix(PREFIX).strip(), ""))
        if held is None:
            raise Left("not a card that we hold")
        for currency in item["currencyCodeLocalizations"]:
            if currency["currencyCode"] == "USD":
                values = [one["value"] for one in currency["prices"] if one["model"] == "PAY_AS_YOU_GO"]
                if not values:
                    raise Left("no pay-as-you-go price")
                yield row(
                    "live-oci", "oci", held.gpu_id, held.n_gpus, day, instance_type=held.instance_type,
                    usd_per_gpu_hour=price(values[0]), locator=f"part {item['partNumber']}",
                )  # fmt: skip

    return each(listed(body, "items"), read, "OCI")


SOURCE = PriceSource(
    id="live-oci",
    title="Oracle Cloud price list",
    hosts={HOST: (r"/pls/apex/cetools/api/v1/products/",)},
    fetch=fetch,
    parse=parse,
)
