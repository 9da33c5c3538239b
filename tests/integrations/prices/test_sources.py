"""Every price source on faithful replies: normal, empty, renamed, absurd, and the requests it makes."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import respx

from integrations.net import Policy, Session, SourceError
from integrations.prices.gate import judge
from integrations.prices.source import PriceSource
from integrations.prices.sources import SOURCES, aws_list, aws_spot, azure, gpuhunt_files, skypilot_files
from knowledge import prices
from knowledge.instances import all_instances
from tests.integrations.prices import samples
from tests.integrations.prices.samples import SAMPLES, Sample

DAY = "2026-12-01"
BY_ID = {one.id: one for one in SOURCES}
IDS = [sample.source for sample in SAMPLES]
KEYS = {name: "test-key" for one in SOURCES for name in one.keys}


def _each_at(body: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) at ``path``; ``...`` stands for all of a list or of an object's values."""
    head, *rest = path
    keys = (range(len(body)) if isinstance(body, list) else list(body)) if head is ... else [head]
    for key in keys:
        if not rest:
            if key in body if isinstance(body, dict) else key < len(body):
                yield body, key
        elif body[key] is not None and (not isinstance(body, dict) or key in body):
            yield from _each_at(body[key], tuple(rest))


def _bent(sample: Sample, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    body = copy.deepcopy(sample.body)
    for container, key in list(_each_at(body, path)):
        change(container, key)
    return body


@pytest.mark.parametrize("sample", SAMPLES, ids=IDS)
def test_a_normal_reply_gives_its_rows_and_counts_what_it_leaves_out(sample: Sample) -> None:
    parsed = BY_ID[sample.source].parse(copy.deepcopy(sample.body), DAY)
    found = [(row.provider, int(row.n_gpus), row.billing, round(row.usd_per_gpu_hour, 4)) for row in parsed.rows]
    if sample.rows:
        assert found == list(sample.rows)
    assert found
    assert all(row.observed <= DAY and row.source == sample.source for row in parsed.rows)
    for reason in sample.dropped:
        assert parsed.dropped[reason], (reason, parsed.dropped)


@pytest.mark.parametrize("sample", SAMPLES, ids=IDS)
def test_its_rows_pass_the_gate_under_the_right_card(sample: Sample) -> None:
    parsed = BY_ID[sample.source].parse(copy.deepcopy(sample.body), DAY)
    judged = judge(parsed.rows, {}, prices.snapshot())
    assert judged.rows, (judged.warnings, judged.dropped)
    assert judged.rows[0].gpu_id == sample.gpu


@pytest.mark.parametrize("sample", SAMPLES, ids=IDS)
def test_a_renamed_field_is_drift_and_not_an_empty_book(sample: Sample) -> None:
    def rename(container: Any, key: Any) -> None:
        if isinstance(container, dict):
            container[f"new_{key}"] = container.pop(key)
        else:
            container[key] = {"renamed": True}

    bent = _bent(sample, sample.renamed, rename)
    with pytest.raises(SourceError) as problem:
        BY_ID[sample.source].parse(bent, DAY)
    assert problem.value.code == "drift"


@pytest.mark.parametrize("value", [0, -3.5, 1e12, None, "", "n/a"])
@pytest.mark.parametrize("sample", [one for one in SAMPLES if one.price], ids=[o.source for o in SAMPLES if o.price])
def test_absurd_prices_never_come_out(sample: Sample, value: Any) -> None:
    def put(container: Any, key: Any) -> None:
        container[key] = value

    normal = BY_ID[sample.source].parse(copy.deepcopy(sample.body), DAY)
    try:
        parsed = BY_ID[sample.source].parse(_bent(sample, sample.price, put), DAY)
    except SourceError as problem:
        assert problem.code == "drift"  # noqa: PT017  every row was unreadable: also an answer
        return
    assert len(parsed.rows) < len(normal.rows) or value == 0
    assert all(0 < row.usd_per_gpu_hour <= 100_000 for row in parsed.rows)


@pytest.mark.parametrize("sample", SAMPLES, ids=IDS)
def test_a_reply_of_another_shape_is_drift(sample: Sample) -> None:
    pages = isinstance(sample.body, list) and sample.source not in ("live-verda", "live-sfcompute")
    for body in ({"error": "maintenance"}, [], "text", 7):
        if body == [] and not pages:
            continue  # an empty list of rows is a valid reply that holds nothing
        with pytest.raises(SourceError) as problem:
            BY_ID[sample.source].parse([body] if pages else body, DAY)
        assert problem.value.code == "drift"


def test_an_empty_list_gives_no_rows_and_no_error() -> None:
    assert azure.SOURCE.parse([{"Items": [], "NextPageLink": None}], DAY).rows == []
    assert BY_ID["live-vast"].parse({"offers": []}, DAY).rows == []
    assert BY_ID["live-lambda"].parse({"data": {}}, DAY).rows == []


def test_what_a_source_calls_things_is_one_short_line_without_markup() -> None:
    hostile = "us\n\n# SYSTEM: [click](http://evil) <script>\x1b[31m" + "x" * 500
    body = copy.deepcopy(samples.LAMBDA)
    body["data"]["gpu_8x_h100_sxm5"]["regions_with_capacity_available"] = [{"name": hostile}]  # type: ignore[index]
    (row,) = BY_ID["live-lambda"].parse(body, DAY).rows
    assert len(row.region) <= 60
    assert not set(row.region) & set("\n\x1b<>[]#|`*")


def test_cents_are_not_dollars() -> None:
    rows = BY_ID["live-lambda"].parse(samples.LAMBDA, DAY).rows
    assert rows[0].usd_per_hour == 32.0


def test_gcp_machines_are_put_together_from_their_parts() -> None:
    rows = {row.instance_type: row for row in BY_ID["live-gcp"].parse([samples.GCP], DAY).rows}
    # 8 x 3.90 + 96 vCPU x 0.03 + 1360 GiB x 0.004 = 31.20 + 2.88 + 5.44.
    assert rows["a2-ultragpu-8g"].usd_per_hour == pytest.approx(39.52)
    without_ram = {"skus": samples.GCP["skus"][:2]}
    parsed = BY_ID["live-gcp"].parse([without_ram], DAY)
    assert parsed.rows == []
    assert parsed.dropped["host parts not found"]


def test_a_reservation_costs_its_hours_and_its_share_of_the_upfront_payment() -> None:
    rows = BY_ID["live-aws"].parse([samples.AWS_QUERY], DAY).rows
    # 18 USD an hour + 157,680 USD / 8,760 h = 36 USD for eight.
    assert [row.usd_per_hour for row in rows if row.billing == "reserved_1y"] == [pytest.approx(36.0)]


def test_the_bulk_file_is_read_line_by_line_for_plain_linux() -> None:
    lines = list(aws_list.gpu_lines(samples.AWS_BULK))
    assert len(lines) == 3  # the header and the two lines about a GPU machine
    parsed = aws_list.parse_bulk(lines, DAY)
    assert [row.usd_per_hour for row in parsed.rows] == [57.0]
    assert parsed.dropped["not plain Linux on a shared host"] == 1
    with pytest.raises(SourceError):
        list(aws_list.gpu_lines(['"a","b"\n']))


def test_spot_quotes_the_median_zone() -> None:
    rows = aws_spot.parse([samples.SPOT_XML], DAY).rows
    assert [(row.region, row.usd_per_hour) for row in rows] == [("us-east-1", 24.0)]


@pytest.mark.parametrize(
    ("page", "code"),
    [
        (samples.SPOT_XML[:300], "truncated"),
        (b"<html>busy</html>", "drift"),
        (b'<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>', "drift"),
        (samples.SPOT_XML.replace(b"instanceType", b"kind"), "drift"),
    ],
)
def test_spot_replies_that_are_no_price_history(page: bytes, code: str) -> None:
    with pytest.raises(SourceError) as problem:
        aws_spot.parse([page], DAY)
    assert problem.value.code == code


def test_published_catalogues_are_read_by_name_and_dated_by_version() -> None:
    parsed = gpuhunt_files.parse({"aws": ("20261129-12345", samples.zipped(samples.GPUHUNT_CSV))}, DAY)
    assert [(row.billing, row.usd_per_gpu_hour, row.observed) for row in parsed.rows] == [
        ("on_demand", 7.125, "2026-11-29"),
        ("spot", 2.2, "2026-11-29"),
    ]
    assert judge(parsed.rows, {}, prices.snapshot()).rows[0].gpu_id == "H100-SXM5"  # type: ignore[index]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"not a zip", "truncated"),
        (samples.zipped(samples.GPUHUNT_CSV)[:80], "truncated"),
        (samples.zipped("a,b\n1,2\n"), "drift"),
        (samples.zipped("x", "readme.txt"), "truncated"),
    ],
    # Archives hold the time they were made, so their bytes are no name that two processes agree on.
    ids=["no archive", "cut short", "other columns", "no table inside"],
)
def test_broken_catalogues(body: bytes, code: str) -> None:
    with pytest.raises(SourceError) as problem:
        gpuhunt_files.parse({"aws": ("20261129-1", body)}, DAY)
    assert problem.value.code == code


def test_a_catalogue_that_inflates_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpuhunt_files, "MAX_CSV_BYTES", 1000)
    with pytest.raises(SourceError) as problem:
        gpuhunt_files.parse({"aws": ("1", samples.zipped("x" * 100_000))}, DAY)
    assert problem.value.code == "too_large"


def test_zones_of_a_catalogue_come_down_to_the_cheapest() -> None:
    parsed = skypilot_files.parse({"aws": samples.SKYPILOT_CSV}, DAY)
    assert [(row.billing, row.usd_per_gpu_hour) for row in parsed.rows] == [("on_demand", 7.125), ("spot", 2.2)]
    assert "no date" in parsed.rows[0].warnings[0]
    with pytest.raises(SourceError):
        skypilot_files.parse({"aws": "InstanceType,Cost\nx,1\n"}, DAY)


def _session(source: PriceSource, **policy: Any) -> Session:
    return Session(Policy(hosts=source.hosts, **policy))


JSON_SOURCES = [one for one in SAMPLES if one.source not in ("live-azure", "live-hyperstack", "live-sfcompute")]


@respx.mock
@pytest.mark.parametrize("sample", JSON_SOURCES, ids=[one.source for one in JSON_SOURCES])
def test_the_request_goes_to_the_table_s_host_and_its_reply_parses(sample: Sample) -> None:
    source = BY_ID[sample.source]
    page = sample.body[0] if isinstance(sample.body, list) and sample.source != "live-verda" else sample.body
    host = next(iter(source.hosts))
    route = respx.route(host=host.split(":")[0]).respond(json=page)
    with _session(source) as session:
        parsed = source.parse(source.fetch(session, KEYS), DAY)
    assert parsed.rows
    request = route.calls[0].request
    assert request.url.scheme == "https"
    assert request.headers["user-agent"].startswith("training-infrastructure-advisor")
    if source.keys:
        assert "test-key" in str(dict(request.headers))
        assert "test-key" not in str(request.url)


@respx.mock
def test_azure_follows_its_pages_by_parameters_and_never_by_link() -> None:
    first = {**samples.AZURE_PAGE, "NextPageLink": "https://evil.example/api/retail/prices?$skip=1000&$filter=x"}
    route = respx.get(host="prices.azure.com", path="/api/retail/prices").mock(
        side_effect=[httpx.Response(200, json=first)] + [httpx.Response(200, json=samples.AZURE_PAGE)] * 40
    )
    with _session(azure.SOURCE) as session:
        pages = azure.SOURCE.fetch(session, {})
    types = len({m.instance_type for m in all_instances() if m.provider == "Azure"})
    assert len(pages) == types + 1
    assert route.calls[1].request.url.params["$skip"] == "1000"


@respx.mock
def test_cursors_page_numbers_and_tokens_are_followed_to_the_end() -> None:
    vultr = BY_ID["live-vultr"]
    more = {"plans": samples.VULTR["plans"][:1], "meta": {"links": {"next": "abc"}}}
    respx.get(host="api.vultr.com").mock(
        side_effect=[httpx.Response(200, json=more), httpx.Response(200, json=samples.VULTR)]
    )
    with _session(vultr) as session:
        assert len(vultr.fetch(session, {})) == 2
    gcp = BY_ID["live-gcp"]
    respx.get(host="cloudbilling.googleapis.com").mock(
        side_effect=[httpx.Response(200, json={**samples.GCP, "nextPageToken": "t"}),
                     httpx.Response(200, json=samples.GCP)]
    )  # fmt: skip
    with _session(gcp) as session:
        assert len(gcp.fetch(session, KEYS)) == 2
    linode = BY_ID["live-linode"]
    respx.get(host="api.linode.com").mock(
        side_effect=[httpx.Response(200, json={**samples.LINODE, "pages": 2}),
                     httpx.Response(200, json={**samples.LINODE, "page": 2, "pages": 2})]
    )  # fmt: skip
    with _session(linode) as session:
        assert len(linode.fetch(session, {})) == 2


@respx.mock
def test_the_mirror_is_asked_when_the_first_host_says_wait() -> None:
    respx.get(host=skypilot_files.HOST).respond(429, headers={"retry-after": "3600"})
    respx.get(host=skypilot_files.MIRROR).respond(text=samples.SKYPILOT_CSV)
    with _session(skypilot_files.SOURCE) as session:
        assert set(skypilot_files.SOURCE.fetch(session, {})) == set(skypilot_files.CLOUDS)


@respx.mock
def test_one_cloud_of_a_catalogue_that_fails_leaves_the_others() -> None:
    respx.get(host=gpuhunt_files.HOST, path="/v3/aws/version").respond(500)
    respx.get(host=gpuhunt_files.HOST, path__regex=r"/v3/\w+/version").respond(text="20261129-1\n")
    respx.get(host=gpuhunt_files.HOST, path__regex=r"/v3/\w+/20261129-1/catalog\.zip").respond(
        content=samples.zipped(samples.GPUHUNT_CSV)
    )
    with _session(gpuhunt_files.SOURCE, attempts=1) as session:
        found = gpuhunt_files.SOURCE.fetch(session, {})
    assert set(found) == set(gpuhunt_files.CLOUDS) - {"aws"}


@respx.mock
def test_a_key_that_is_refused_is_an_error_without_the_key_in_it() -> None:
    source = BY_ID["live-lambda"]
    respx.get(host="cloud.lambda.ai").respond(403)
    with _session(source) as session, pytest.raises(SourceError) as problem:
        source.fetch(session, {"LAMBDA_API_KEY": "secret-secret"})
    assert "secret" not in problem.value.message


@respx.mock
def test_the_bulk_file_streams_through_gzip() -> None:
    body = gzip.compress("".join(samples.AWS_BULK).encode())
    respx.get(host=aws_list.BULK_HOST).respond(content=body, headers={"content-encoding": "gzip"})
    with _session(aws_list.BULK) as session:
        lines = aws_list.BULK.fetch(session, {})
    assert len(aws_list.BULK.parse(lines, DAY).rows) == 1


def test_aws_signatures_are_those_of_the_published_example() -> None:
    # AWS General Reference, Signature Version 4 test of IAM ListUsers, 2015-08-30.
    from datetime import UTC, datetime

    from integrations.prices.sources.aws_sign import sign

    headers = sign(
        "GET", "iam.amazonaws.com", "/", {"Action": "ListUsers", "Version": "2010-05-08"}, "",
        key_id="AKIDEXAMPLE", secret="wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", region="us-east-1", service="iam",
        now=datetime(2015, 8, 30, 12, 36, 0, tzinfo=UTC),
        headers={"content-type": "application/x-www-form-urlencoded; charset=utf-8"},
    )  # fmt: skip
    signature = "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
    assert headers["authorization"].endswith(f"Signature={signature}")


def test_every_source_is_known_to_the_knowledge_base_and_names_its_hosts() -> None:
    from knowledge.sources import all_sources

    assert len({one.id for one in SOURCES}) == len(SOURCES)
    for one in SOURCES:
        assert one.id in all_sources()
        assert one.hosts
        assert all("*" not in host and "/" not in host for host in one.hosts)
    assert json.dumps(sorted(BY_ID)) == json.dumps(sorted({*IDS, "live-aws-bulk", "live-aws-spot", "live-gpuhunt",
                                                            "live-skypilot"}))  # fmt: skip
