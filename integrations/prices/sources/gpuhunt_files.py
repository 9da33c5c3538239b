"""The catalogues that dstack's gpuhunt publishes: keyless zips, one a cloud; the cheapest keyless way to AWS and GCP.

Whole-machine prices. The card's name has no form factor, so the machine type decides; AWS spot is the cheapest zone.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any

from integrations.net import Session, SourceError
from integrations.prices.source import Keys, Left, Parsed, PriceSource, each, machine, price, row
from knowledge.price_rules import Observation

HOST = "dstack-gpu-pricing.s3.eu-west-1.amazonaws.com"
CLOUDS = {"aws": "aws", "gcp": "gcp", "lambdalabs": "lambda", "nebius": "nebius", "oci": "oci"}
MAX_CSV_BYTES = 64_000_000
FIELDS = {"instance_name", "location", "price", "gpu_count", "gpu_name", "gpu_memory", "spot"}


def fetch(session: Session, keys: Keys) -> dict[str, tuple[str, bytes]]:
    """Version and zip of each cloud; a cloud that fails leaves the others. Raises the first SourceError
    where all fail.
    """
    found: dict[str, tuple[str, bytes]] = {}
    failed: list[SourceError] = []
    for cloud in CLOUDS:
        try:
            version = session.text(HOST, f"/v3/{cloud}/version").strip()
            if not re.fullmatch(r"\w[\w.-]{0,39}", version) or ".." in version:
                raise SourceError("drift", "a version that is no version")
            found[cloud] = (version, session.content(HOST, f"/v3/{cloud}/{version}/catalog.zip"))
        except SourceError as err:
            failed.append(err)
    if not found and failed:
        raise failed[0]
    return found


def parse(found: dict[str, tuple[str, bytes]], day: str) -> Parsed:
    """USD per machine-hour of every cloud, dated by the version of its file, never later than ``day``. Raises
    SourceError("drift") for a zip without the expected table.
    """
    out = Parsed()
    for cloud, (version, body) in found.items():
        stamp = re.match(r"(\d{4})(\d{2})(\d{2})", version)
        seen = min(day, "-".join(stamp.groups())) if stamp else day
        one = each(_lines(body), lambda line, cloud=cloud, seen=seen: _read(line, cloud, seen), f"gpuhunt {cloud}")  # type: ignore[misc]
        out.rows += one.rows
        out.dropped.update(one.dropped)
    return out


def _lines(body: bytes) -> list[dict[str, str]]:
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            entry = next(info for info in archive.infolist() if info.filename.endswith(".csv"))
            if entry.file_size > MAX_CSV_BYTES:
                raise SourceError("too_large", "the catalogue inflates beyond every reason")
            with archive.open(entry) as file:
                text = file.read(MAX_CSV_BYTES + 1).decode("utf-8", "replace")
    except (zipfile.BadZipFile, StopIteration, EOFError) as err:
        raise SourceError("truncated", f"the catalogue is not a whole zip ({type(err).__name__})") from None
    reader = csv.DictReader(io.StringIO(text))
    if not set(reader.fieldnames or ()) >= FIELDS:
        raise SourceError("drift", f"the catalogue lacks {', '.join(sorted(FIELDS - set(reader.fieldnames or ())))}")
    return list(reader)


def _read(line: dict[str, Any], cloud: str, day: str) -> Iterator[Observation]:
    n = float(line["gpu_count"] or 0)
    if n < 1:
        raise Left("no GPU")
    provider, name = CLOUDS[cloud], str(line["instance_name"])
    try:
        gpu = machine(provider, name).gpu_id
    except Left:
        form = re.search(r"sxm|pcie|nvl", name, re.IGNORECASE)
        gpu = f"{line['gpu_name']} {form[0] if form else ''} {float(line['gpu_memory']):g}GB"
    yield row(
        "live-gpuhunt", provider, gpu, n, day, instance_type=name, usd_per_hour=price(line["price"]),
        region=line["location"], billing="spot" if line["spot"] == "True" else "on_demand",
        gpu_memory_gb=float(line["gpu_memory"]), vcpus=float(line["cpu"]), ram_gb=float(line["memory"]),
    )  # fmt: skip


SOURCE = PriceSource(
    id="live-gpuhunt",
    title="gpuhunt catalogues",
    hosts={HOST: (r"/v3/[a-z]+/version", r"/v3/[a-z]+/\w[\w.-]*/catalog\.zip")},
    fetch=fetch,
    parse=parse,
    deadline_seconds=45.0,
)
