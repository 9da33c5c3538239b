"""AWS spot prices: with a key, one XML reply a region, a price per availability zone.

Zones differ threefold and more, so the median zone is quoted. A price at the on-demand rate means no spare capacity.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from statistics import median
from xml.etree import ElementTree

from integrations.net import Session, SourceError
from integrations.prices.source import Keys, Left, Parsed, PriceSource, each, key_of, machine, price, row
from integrations.prices.sources.aws_sign import sign
from knowledge.instances import all_instances
from knowledge.price_rules import Observation

REGIONS = ("us-east-1", "us-east-2", "us-west-2", "eu-west-1")


def fetch(session: Session, keys: Keys) -> list[bytes]:
    """One XML reply a region: the current price of each of our machine types in each zone. Raises SourceError: "no_key"
    without a key, else as ``Session`` does.
    """
    key_id, secret = key_of(keys, "AWS_ACCESS_KEY_ID"), key_of(keys, "AWS_SECRET_ACCESS_KEY")
    names = sorted({m.instance_type for m in all_instances() if m.provider == "AWS"})
    pages = []
    for region in REGIONS:
        now = datetime.now(UTC)
        query = {"Action": "DescribeSpotPriceHistory", "Version": "2016-11-15", "MaxResults": "1000",
                 "ProductDescription.1": "Linux/UNIX", "StartTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
                 **{f"InstanceType.{n}": name for n, name in enumerate(names, 1)}}  # fmt: skip
        host = f"ec2.{region}.amazonaws.com"
        headers = sign("GET", host, "/", query, "", key_id=key_id, secret=secret, region=region, service="ec2", now=now)
        pages.append(session.content(host, "/", params=dict(sorted(query.items())), headers=headers))
    return pages


def parse(pages: list[bytes], day: str) -> Parsed:
    """The median zone's USD per machine-hour of each machine type and region that we hold, with the number of zones as
    a warning. Raises SourceError("drift") for replies of another shape.
    """
    zones: dict[tuple[str, str], list[float]] = defaultdict(list)
    out = Parsed()
    for page in pages:
        for kind, region, usd in _zones(page, out):
            zones[(kind, region)].append(usd)

    def read(item: tuple[tuple[str, str], list[float]]) -> Iterator[Observation]:
        (kind, region), found = item
        held = machine("aws", kind)
        note = () if len(found) == 1 else (f"median of {len(found)} zones",)
        yield row(
            "live-aws-spot", "aws", held.gpu_id, held.n_gpus, day, instance_type=held.instance_type,
            usd_per_hour=median(found), region=region, billing="spot", vcpus=held.vcpus, warnings=note,
        )  # fmt: skip

    done = each(list(zones.items()), read, "AWS spot")
    done.dropped.update(out.dropped)
    return done


def _zones(page: bytes, out: Parsed) -> Iterator[tuple[str, str, float]]:
    if b"\x00" in page or b"<!DOCTYPE" in page or b"<!ENTITY" in page:  # UTF-16 would hide the words
        raise SourceError("drift", "AWS spot: XML with its own entities is not read")
    try:
        root = ElementTree.fromstring(page)
    except ElementTree.ParseError as err:
        raise SourceError("truncated", f"AWS spot: not whole XML ({err})") from None
    plain = root.tag.rpartition("}")[2]
    if plain != "DescribeSpotPriceHistoryResponse":
        raise SourceError("drift", f"AWS spot: {plain} instead of a price history")
    space = root.tag[: -len(plain)]
    for item in root.iter(f"{space}item"):
        kind, zone, usd = (
            item.findtext(f"{space}{name}") for name in ("instanceType", "availabilityZone", "spotPrice")
        )
        if not kind or not zone:
            raise SourceError("drift", "AWS spot: an item without type or zone")
        try:
            yield kind, zone.rstrip("abcdefghij"), price(usd)
        except (Left, ValueError) as left:
            out.dropped[str(left)] += 1


SOURCE = PriceSource(
    id="live-aws-spot",
    title="AWS spot price history",
    hosts={f"ec2.{region}.amazonaws.com": (r"/",) for region in REGIONS},
    fetch=fetch,
    parse=parse,
    keys=("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
)
