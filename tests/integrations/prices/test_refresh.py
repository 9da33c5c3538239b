"""Refreshing: the gate, the cache and its history, single flight, partial success, and the command itself."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import respx
from click.testing import CliRunner, Result

from integrations.net import NotModified, SourceError
from integrations.prices import attach
from integrations.prices.cache import Cache, key
from integrations.prices.cli import command
from integrations.prices.gate import judge
from integrations.prices.refresh import Report, choose, refresh
from integrations.prices.source import Parsed, PriceSource, row
from integrations.prices.sources import SOURCES
from knowledge import prices
from knowledge.errors import BadValue, UnknownName
from knowledge.price_rules import Observation
from tests.integrations.prices import samples
from tools.registry import get_tool

NOW = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _bare_book() -> Iterator[None]:
    yield
    prices.set_overlay()


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "prices.db")


def _row(usd: float, name: str = "gpu_8x", day: str = "2026-12-01") -> Observation:
    return row("live-lambda", "lambda", "H100 SXM 80GB", 8, day, instance_type=name, usd_per_gpu_hour=usd, region="us")


def _source(found: Any, name: str = "live-lambda", keys: tuple[str, ...] = ()) -> PriceSource:
    def fetch(session: object, given: object) -> Any:
        if isinstance(found, Exception):
            raise found
        return found

    return PriceSource(
        name, name, {}, fetch, lambda pages, day: Parsed([replace(r, observed=day) for r in pages]), keys
    )


def _run(cache: Cache, *sources: PriceSource, now: datetime = NOW, **environment: str) -> dict[str, Any]:
    report = refresh(list(sources), cache=cache, environment=environment, now=lambda: now)
    return {one.source: one for one in report.outcomes}


def test_rows_are_put_in_force_and_seen_by_the_price_book(cache: Cache) -> None:
    outcome = _run(cache, _source([_row(2.9)]))["live-lambda"]
    assert (outcome.status, outcome.rows) == ("ok", 1)
    attach(cache.path, now=lambda: NOW)
    result = get_tool("lookup_prices").call({"gpu": "H100 SXM", "provider": "lambda", "live": True})
    assert result.fact("usd_per_gpu_hour").value == 2.9
    assert result.fact("usd_per_gpu_hour").as_of == "2026-12-01"
    assert "live on 2026-12-01" in result.verdict


def test_one_failing_source_never_loses_the_others(cache: Cache) -> None:
    broken = _source(SourceError("timeout", "no answer"), "live-azure")
    buggy = _source(ValueError("a fault of ours"), "live-oci")
    locked = _source([], "live-gcp", keys=("GCP_BILLING_API_KEY",))
    found = _run(cache, broken, _source([_row(2.9)]), buggy, locked)
    assert {name: one.status for name, one in found.items()} == {
        "live-azure": "failed", "live-lambda": "ok", "live-oci": "failed", "live-gcp": "no_key",
    }  # fmt: skip
    assert "GCP_BILLING_API_KEY" in found["live-gcp"].message
    assert len(cache.current()) == 1
    assert cache.last_fetches()["live-azure"].code == "timeout"


def test_old_rows_stay_when_a_source_fails_later(cache: Cache) -> None:
    _run(cache, _source([_row(2.9)]))
    _run(cache, _source(SourceError("drift", "renamed")), now=NOW + timedelta(days=2))
    assert [one.usd_per_gpu_hour for one in cache.current().values()] == [2.9]


@pytest.mark.parametrize(("count", "status"), [(10, "ok"), (8, "ok"), (7, "kept_old"), (0, "kept_old")])
def test_more_than_a_fifth_of_the_rows_gone_keeps_the_old_ones(cache: Cache, count: int, status: str) -> None:
    _run(cache, _source([_row(2.5 + n / 10, f"m{n}") for n in range(10)]))
    outcome = _run(cache, _source([_row(2.5 + n / 10, f"m{n}") for n in range(count)]))["live-lambda"]
    assert outcome.status == status
    assert len(cache.current()) == (count if status == "ok" else 10)


def test_one_price_that_jumps_threefold_stays_at_its_old_value(cache: Cache) -> None:
    old = [_row(2.0, f"m{n}") for n in range(10)]
    _run(cache, _source(old))
    outcome = _run(cache, _source([_row(6.5, "m0"), *old[1:]]))["live-lambda"]
    assert outcome.status == "ok"
    assert "changed more than threefold" in outcome.warnings[0]
    assert {one.usd_per_gpu_hour for one in cache.current().values()} == {2.0}


def test_many_prices_that_jump_are_a_change_of_unit(cache: Cache) -> None:
    _run(cache, _source([_row(1.6, f"m{n}") for n in range(10)]))
    outcome = _run(cache, _source([_row(5.0, f"m{n}") for n in range(10)]))["live-lambda"]
    assert outcome.status == "kept_old"
    assert {one.usd_per_gpu_hour for one in cache.current().values()} == {1.6}


@pytest.mark.parametrize(
    "usd", [299.0, 24.0, 0.03]
)  # cents for dollars, the node for one of eight, a slip the other way
def test_prices_far_from_every_known_one_are_dropped_at_the_first_fetch(usd: float) -> None:
    judged = judge([_row(usd, "odd"), _row(2.9, "fine")], {}, prices.snapshot())
    assert [one.instance_type for one in judged.rows or ()] == ["fine"]
    assert judged.dropped["far from every known price of the card"] == 1


def test_history_is_kept_so_that_a_change_can_be_told(cache: Cache) -> None:
    for month, usd in ((5, 3.0), (8, 2.7), (12, 2.4)):
        _run(cache, _source([_row(usd)]), now=datetime(2026, month, 2, tzinfo=UTC))
    attach(cache.path, now=lambda: NOW)
    seen = [one for one in prices.offers("H100-SXM5", history=True) if one.live]
    assert [(one.observed, one.usd_per_gpu_hour) for one in seen] == [
        ("2026-05-02", 3.0), ("2026-08-02", 2.7), ("2026-12-02", 2.4),
    ]  # fmt: skip
    assert [one.usd_per_gpu_hour for one in prices.offers("H100-SXM5", "lambda") if one.live] == [2.4]
    result = get_tool("lookup_prices").call({"gpu": "H100 SXM", "since": "2026-05"})
    assert result.fact("price_change").unit == "%"
    assert "over time" in result.charts[1]["title"]


def test_an_unchanged_source_is_seen_again_today(cache: Cache) -> None:
    _run(cache, _source([_row(2.9)]))
    later = NOW + timedelta(days=3)
    assert _run(cache, _source(NotModified()), now=later)["live-lambda"].status == "unchanged"
    assert [one.observed for one in cache.current().values()] == ["2026-12-04"]


def test_only_one_refresh_runs_at_a_time(cache: Cache) -> None:
    inside, go = threading.Event(), threading.Event()

    def slow(session: object, keys: object) -> list[Observation]:
        inside.set()
        assert go.wait(5)
        return [_row(2.9)]

    source = PriceSource("live-lambda", "slow", {}, slow, lambda pages, day: Parsed(pages))
    first = threading.Thread(target=lambda: _run(cache, source))
    first.start()
    assert inside.wait(5)
    assert refresh([source], cache=cache, environment={}, now=lambda: NOW).already_running
    go.set()
    first.join()
    assert len(cache.current()) == 1


def test_another_process_that_holds_the_lease_is_left_alone_until_it_expires(cache: Cache) -> None:
    with cache.lease("refresh", NOW, 600) as mine:
        assert mine
        assert refresh([], cache=cache, environment={}, now=lambda: NOW).already_running
        assert not refresh([], cache=cache, environment={}, now=lambda: NOW + timedelta(hours=1)).already_running


def test_a_stale_cache_is_served_at_once_and_refreshed_behind(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def behind(**given: Any) -> Report:
        asked.append("refresh")
        return Report(())

    monkeypatch.setattr("integrations.prices.refresh.refresh", behind)
    late = NOW + timedelta(hours=30)
    assert attach(cache.path, now=lambda: NOW, background=True) is None  # never asked for: nothing is fetched
    _run(cache, _source([_row(2.9)]))
    assert attach(cache.path, now=lambda: NOW + timedelta(hours=3), background=True) is None
    thread = attach(cache.path, now=lambda: late, background=True)
    assert [one.usd_per_gpu_hour for one in prices.offers("H100-SXM5", "lambda") if one.live] == [2.9]
    assert thread is not None
    thread.join(5)
    assert asked == ["refresh"]
    monkeypatch.setenv("ADVISOR_OFFLINE", "1")
    assert attach(cache.path, now=lambda: late, background=True) is None


def test_offline_refuses_to_refresh(cache: Cache) -> None:
    with pytest.raises(BadValue) as problem:
        refresh([], cache=cache, environment={"ADVISOR_OFFLINE": "1"})
    assert problem.value.field == "ADVISOR_OFFLINE"
    assert not cache.exists()


def test_sources_are_chosen_by_their_short_names() -> None:
    assert [one.id for one in choose(["azure", "live-oci"])] == ["live-azure", "live-oci"]
    assert all(one.by_default for one in choose([]))
    with pytest.raises(UnknownName):
        choose(["azur"])


@respx.mock
def test_with_every_socket_shut_a_refresh_fails_source_by_source_and_the_snapshot_still_answers(cache: Cache) -> None:
    respx.route().mock(side_effect=OSError("sockets are shut"))
    report = refresh(
        [one for one in SOURCES if one.id in ("live-oci", "live-verda")], cache=cache, environment={}, now=lambda: NOW
    )
    assert [one.status for one in report.outcomes] == ["failed", "failed"]
    attach(cache.path, now=lambda: NOW)
    assert get_tool("lookup_prices").call({"gpu": "H100"}).fact("usd_per_gpu_hour").value > 0


def test_keys_of_offers_do_not_depend_on_price_or_day() -> None:
    assert key(_row(1.0, day="2026-01-01")) == key(_row(9.0))


class _Stub(BaseHTTPRequestHandler):
    """Three sources on loopback: two answer, one is broken."""

    def do_GET(self) -> None:
        if self.path.startswith("/pls/apex"):
            self._send(200, samples.OCI)
        elif self.path.startswith("/v1/instance-types"):
            self._send(200, samples.VERDA)
        else:
            self._send(404, {"error": "not here"})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self._send(500, {"error": "down"})

    def _send(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def stub() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Stub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def _advisor(arguments: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, **environment: str) -> Result:
    for name, value in {"ADVISOR_PRICE_CACHE": str(folder / "prices.db"), **environment}.items():
        monkeypatch.setenv(name, value)
    return CliRunner().invoke(command, arguments)


def test_the_command_refreshes_three_sources_with_one_failing(
    stub: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = dict.fromkeys(("apexapps.oracle.com", "api.verda.com", "api.runpod.io"), stub)
    settings = {"ADVISOR_PRICE_HOSTS": json.dumps(hosts)}
    asked = ["refresh", "-s", "oci", "-s", "verda", "-s", "runpod"]
    done = _advisor([*asked, "--json"], tmp_path, monkeypatch, **settings)
    assert done.exit_code == 0, done.output
    report = json.loads(done.output)
    assert {one["source"]: one["status"] for one in report["sources"]} == {
        "live-oci": "ok", "live-verda": "ok", "live-runpod": "failed",
    }  # fmt: skip
    shown = _advisor(["show", "H100 SXM", "--provider", "verda", "--live", "--json"], tmp_path, monkeypatch)
    assert json.loads(shown.output)["offers"][0]["usd_per_gpu_hour"] == 3.0
    words = _advisor(asked, tmp_path, monkeypatch, **settings)
    assert "2 of 3 sources read." in words.output
    assert "failed: api.runpod.io answered 500" in words.output
    listing = _advisor(["sources"], tmp_path, monkeypatch)
    assert "Oracle Cloud price list" in listing.output


def test_the_command_exits_1_when_nothing_could_be_read_and_2_on_bad_input(
    stub: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = json.dumps({"api.runpod.io": stub})
    assert _advisor(["refresh", "-s", "runpod"], tmp_path, monkeypatch, ADVISOR_PRICE_HOSTS=hosts).exit_code == 1
    unknown = _advisor(["refresh", "-s", "nobody", "--json"], tmp_path, monkeypatch)
    assert unknown.exit_code == 2
    assert json.loads(unknown.output)["error"]["field"] == "source"
    assert _advisor(["refresh"], tmp_path, monkeypatch, ADVISOR_OFFLINE="1").exit_code == 2
    monkeypatch.delenv("ADVISOR_OFFLINE")
    assert _advisor(["show", "H300"], tmp_path, monkeypatch).exit_code == 2
