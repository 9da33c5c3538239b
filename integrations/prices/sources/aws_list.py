"""AWS's price list: with a key through the query API (small), or keyless as one large CSV a region (asked by name).

A reservation has an hourly part and a one-off part; its hour costs both. Only plain Linux on shared hosts counts;
rows at zero are unused reservations and capacity blocks.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from integrations.net import Session, SourceError
from integrations.prices.source import Keys, Left, Parsed, PriceSource, each, key_of, listed, machine, price, row
from integrations.prices.sources.aws_sign import sign
from knowledge.price_rules import Observation
from knowledge.types import Billing

QUERY_HOST, BULK_HOST = "api.pricing.us-east-1.amazonaws.com", "pricing.us-east-1.amazonaws.com"
REGIONS = ("us-east-1", "us-east-2", "us-west-2", "eu-west-1", "eu-central-1", "ap-northeast-1")
MAX_PAGES = 30
TERM: dict[str, tuple[Billing, float]] = {"1yr": ("reserved_1y", 8760.0), "3yr": ("reserved_3y", 26280.0)}
# Column of the CSV -> what a row must say to be a plain Linux machine on a shared host.
PLAIN = {"Operating System": ("Linux",), "Tenancy": ("Shared",), "CapacityStatus": ("Used",),
         "Pre Installed S/W": ("", "NA"), "Currency": ("USD",)}  # fmt: skip


def fetch_query(session: Session, keys: Keys) -> list[Any]:
    """Every page of GPU instances in the regions above, signed with the account's key. Raises SourceError: "no_key"
    without one, else as ``Session`` does.
    """
    key_id, secret = key_of(keys, "AWS_ACCESS_KEY_ID"), key_of(keys, "AWS_SECRET_ACCESS_KEY")
    pages: list[Any] = []
    for region in REGIONS:
        token: str | None = ""
        while token is not None and len(pages) < MAX_PAGES:
            wanted = {"regionCode": region, "instanceFamily": "GPU instance", "operatingSystem": "Linux",
                      "tenancy": "Shared", "capacitystatus": "Used", "preInstalledSw": "NA"}  # fmt: skip
            filters = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in wanted.items()]
            body = json.dumps({"ServiceCode": "AmazonEC2", "FormatVersion": "aws_v1", "Filters": filters,
                               "MaxResults": 100, **({"NextToken": token} if token else {})})  # fmt: skip
            headers = sign(
                "POST", QUERY_HOST, "/", {}, body, key_id=key_id, secret=secret, region="us-east-1",
                service="pricing", now=datetime.now(UTC),
                headers={"content-type": "application/x-amz-json-1.1",
                         "x-amz-target": "AWSPriceListService.GetProducts"},
            )  # fmt: skip
            page = session.json(QUERY_HOST, "/", method="POST", content=body, headers=headers)
            pages.append(page)
            token = page.get("NextToken") or None if isinstance(page, dict) else None
    return pages


def parse_query(pages: list[Any], day: str) -> Parsed:
    """On-demand and reserved USD per machine-hour, the one-off part of a reservation spread over its hours; each list
    element is JSON inside JSON. Raises SourceError("drift") for another shape.
    """
    texts = [text for page in pages for text in listed(page, "PriceList")]
    return each(texts, lambda text: _product(json.loads(text), day), "AWS")


def _product(item: dict[str, Any], day: str) -> Iterator[Observation]:
    about = item["product"]["attributes"]
    held = machine("aws", about["instanceType"])

    def offer(usd: float, billing: Billing) -> Observation:
        return row("live-aws", "aws", held.gpu_id, held.n_gpus, day, instance_type=held.instance_type,
                   usd_per_hour=usd, region=about["regionCode"], billing=billing, vcpus=held.vcpus)  # fmt: skip

    terms = item["terms"]
    if about["operatingSystem"] != "Linux" or "OnDemand" not in terms:
        raise Left("not plain Linux on demand")
    hourly = [part["pricePerUnit"]["USD"] for term in terms["OnDemand"].values() for part in _parts(term, "Hrs")]
    if not hourly or float(hourly[0]) == 0:
        raise Left("price zero: an unused reservation or a capacity block")
    yield offer(price(hourly[0]), "on_demand")
    best: dict[Billing, float] = {}
    for term in terms.get("Reserved", {}).values():
        words = term["termAttributes"]
        if words["LeaseContractLength"] in TERM and words["OfferingClass"] == "standard":
            billing, hours = TERM[words["LeaseContractLength"]]
            usd = sum(float(part["pricePerUnit"]["USD"]) for part in _parts(term, "Hrs"))
            usd += sum(float(part["pricePerUnit"]["USD"]) for part in _parts(term, "Quantity")) / hours
            if usd > 0:
                best[billing] = min(usd, best.get(billing, usd))
    for billing, usd in best.items():
        yield offer(price(usd), billing)


def _parts(term: dict[str, Any], unit: str) -> list[dict[str, Any]]:
    return [part for part in term["priceDimensions"].values() if part["unit"] == unit]


def fetch_bulk(session: Session, keys: Keys) -> list[str]:
    """The lines about GPU machines of one region's file, some 300 MB inflated; the other hundred thousand are passed
    over as they arrive. Raises SourceError: "drift" without a header row, else as ``Session`` does.
    """
    path = f"/offers/v1.0/aws/AmazonEC2/current/{REGIONS[0]}/index.csv"
    return list(gpu_lines(session.lines(BULK_HOST, path)))


def gpu_lines(lines: Iterable[str]) -> Iterator[str]:
    """The header row and the lines that name one of our machine types, lazily. Raises SourceError("drift") without a
    header.
    """
    families = ('"p3', '"p4', '"p5', '"p6', '"g4', '"g5', '"g6', '"g7', '"trn')
    header = False
    for line in lines:
        if not header and line.startswith('"SKU"'):
            header = True
            yield line
        elif header and any(family in line for family in families):
            yield line
    if not header:
        raise SourceError("drift", "AWS: the file has no header row")


def parse_bulk(lines: list[str], day: str) -> Parsed:
    """On-demand USD per machine-hour of plain Linux machines that we hold, from the CSV's header and lines. Raises
    SourceError("drift") when no line can be read.
    """
    return each(csv.DictReader(lines), lambda line: _line(line, day), "AWS")


def _line(line: dict[str, str], day: str) -> Iterator[Observation]:
    if line["TermType"] != "OnDemand" or line["Unit"] != "Hrs":
        raise Left("not on demand by the hour")
    if (
        any(line[name] not in allowed for name, allowed in PLAIN.items())
        or line.get("MarketOption", "OnDemand") != "OnDemand"
    ):
        raise Left("not plain Linux on a shared host")
    held = machine("aws", line["Instance Type"])
    yield row("live-aws", "aws", held.gpu_id, held.n_gpus, day, instance_type=held.instance_type,
              usd_per_hour=price(line["PricePerUnit"]), region=line["Region Code"], vcpus=held.vcpus)  # fmt: skip


SOURCE = PriceSource(
    id="live-aws",
    title="AWS price list",
    hosts={QUERY_HOST: (r"/",)},
    fetch=fetch_query,
    parse=parse_query,
    keys=("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    deadline_seconds=45.0,
)
BULK = PriceSource(
    id="live-aws-bulk",
    title="AWS price list, whole file of one region",
    hosts={BULK_HOST: (r"/offers/v1\.0/aws/AmazonEC2/current/[a-z0-9-]+/index\.csv",)},
    fetch=fetch_bulk,
    parse=parse_bulk,
    by_default=False,  # some 300 MB inflated; `--source live-aws-bulk` asks for it
    deadline_seconds=300.0,
    max_body_bytes=200_000_000,
    max_inflated_bytes=2_000_000_000,
)
