"""No look-up of prices or models connects to this machine, its network or a cloud's metadata, however it is named.

A canary server on loopback counts connections. Names come from a resolver of the test's own, since a hostile name is
one whose owner decides what it resolves to, each time it is asked.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpcore
import pytest

from integrations.hub.lookup import HOSTS as HUB_HOSTS
from integrations.hub.lookup import is_hub_id, lookup
from integrations.net import Policy, Session, SourceError
from integrations.net import addresses as guard
from integrations.net.addresses import GuardedBackend, may_connect
from integrations.prices.cache import Cache
from integrations.prices.refresh import refresh
from integrations.prices.sources import SOURCES
from knowledge.errors import UnknownName

HOST = "prices.example.com"
PUBLIC = ["93.184.216.34", "8.8.8.8", "1.1.1.1", "2606:2800:220:1::1", "2a00:1450:4001:81b::200e", "64:ff9b::808:808"]
HOSTILE = [
    # This machine, private networks, carrier NAT, links, tests, multicast, broadcast (RFC 6890)
    "127.0.0.1", "127.1.2.3", "0.0.0.0", "0.0.0.1", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.254",
    "192.168.0.1", "192.168.255.255", "100.64.0.1", "100.127.255.255", "169.254.0.1", "192.0.0.8", "192.0.2.1",
    "198.18.0.1", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
    # Where clouds hand out credentials
    "169.254.169.254", "169.254.170.2", "169.254.170.23", "168.63.129.16", "100.100.100.200", "192.0.0.192",
    "169.254.42.42", "fd00:ec2::254",
    # IPv6: loopback, unspecified, link, site, unique local, documentation, multicast, with a zone
    "::1", "::", "fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "fd12:3456:789a::1", "2001:db8::1", "ff02::1",
    # IPv4 inside IPv6: mapped, compatible, 6to4, NAT64 of both prefixes, Teredo (client is inverted), ISATAP
    "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1", "::7f00:1", "2002:7f00:1::",
    "2002:a9fe:a9fe::1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1", "2001:0:808:808::80ff:fffe",
    "2a00:1450:4001::5efe:7f00:1", "2a00:1450:4001::200:5efe:a00:1",
    # Not addresses at all: whatever a resolver gives back must be one
    "", "localhost", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "127.0.0.1.", "①27.0.0.1",
]  # fmt: skip
# Hosts that some parser reads as another one; none is in any table, so none is asked.
NAMES = [
    "localhost", "localhost.", "LOCALHOST", "127.0.0.1", "127.0.0.1.nip.io", "2130706433", "0x7f.1", "0177.0.0.01",
    "[::1]", "[::ffff:127.0.0.1]", "[fe80::1%25lo]", "metadata.google.internal", "instance-data", "169.254.169.254.",
    f"{HOST}.", f"{HOST}:80", f"{HOST}#@127.0.0.1", f"{HOST}@127.0.0.1", f"127.0.0.1#{HOST}", f"127.0.0.1\\@{HOST}",
    f"127.0.0.1%23.{HOST}", f"{HOST}%00.evil.com", f"user:pass@{HOST}", f"x.{HOST}", f"{HOST}/..",
    "prices。example。com",    "ⓟrices.example.com", "рrices.example.com", "xn--rices-9cd.example.com", f"{HOST}\t",
    f" {HOST}", f"{HOST}\r\nHost: x",    "", ".", "http://127.0.0.1", "//127.0.0.1", "file:///etc/passwd",
]  # fmt: skip


class Canary:
    """A server on loopback that nobody may reach; counts who did."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.connections = 0
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()


@pytest.fixture
def canary() -> Iterator[Canary]:
    made = Canary()
    yield made
    made.listener.close()


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What names resolve to: a list of addresses, or a function that is asked each time."""
    table: dict[str, Any] = {}

    def resolve(host: str, port: int) -> list[str]:
        found = table.get(host, [])
        return list(found() if callable(found) else found)

    monkeypatch.setattr(guard, "resolved", resolve)
    return table


def test_the_table_is_long_enough() -> None:
    assert len(HOSTILE) >= 40
    assert len(NAMES) >= 30


@pytest.mark.parametrize("address", HOSTILE)
def test_a_name_with_a_hostile_address_is_not_connected_to(address: str, names: dict[str, Any], canary: Canary) -> None:
    assert not may_connect(address)
    # Alone, and as the second of two: a list is as bad as its worst.
    for addresses in ([address], [PUBLIC[0], address]):
        backend = GuardedBackend(resolve=lambda host, port, found=addresses: found)  # type: ignore[misc]
        with pytest.raises(guard.Forbidden):
            backend.connect_tcp(HOST, canary.port)
    assert canary.connections == 0


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_connected_to(address: str) -> None:
    assert may_connect(address)


@pytest.mark.parametrize("host", NAMES)
def test_a_host_outside_the_table_is_not_even_resolved(host: str, names: dict[str, Any]) -> None:
    asked: list[str] = []
    names[host] = lambda: asked.append(host) or ["127.0.0.1"]
    with Session(Policy(hosts={HOST: (r"/v1/[a-z]+",)})) as session, pytest.raises(SourceError) as refused:
        session.json(host, "/v1/list")
    assert refused.value.code == "not_allowed"
    assert asked == []


def test_a_name_that_turns_to_this_machine_reaches_nobody(names: dict[str, Any], canary: Canary) -> None:
    """Public when judged, loopback when connected to (rebinding): there is only one look, and it is judged."""
    answers = iter([[PUBLIC[0]], ["127.0.0.1"], ["127.0.0.1"], ["127.0.0.1"]])
    connected: list[str] = []

    class Inner(httpcore.SyncBackend):
        def connect_tcp(self, host: str, port: int, *more: Any, **named: Any) -> httpcore.NetworkStream:
            connected.append(host)
            raise httpcore.ConnectError("nobody home")

    names[HOST] = lambda: next(answers)
    session = Session(Policy(hosts={HOST: ("/x",)}, elsewhere={HOST: f"https://{HOST}:{canary.port}"}, attempts=1))
    backend = GuardedBackend()
    backend._inner = Inner()  # type: ignore[assignment]
    session._client._transport._pool._network_backend = backend  # type: ignore[attr-defined]
    with session, pytest.raises(SourceError):
        session.json(HOST, "/x")
    assert connected == [PUBLIC[0]]  # by its address: no name is left to resolve again
    with Session(Policy(hosts={HOST: ("/x",)}, attempts=3)) as again, pytest.raises(SourceError) as refused:
        again.json(HOST, "/x")
    assert refused.value.code == "not_allowed"
    assert canary.connections == 0


def test_a_session_judges_addresses_by_itself(names: dict[str, Any], canary: Canary) -> None:
    names[HOST] = ["127.0.0.1"]
    with Session(Policy(hosts={HOST: ("/x",)})) as session, pytest.raises(SourceError) as refused:
        session.json(HOST, "/x")
    assert refused.value.code == "not_allowed"
    assert "public" in refused.value.message
    # Where an operator said that this is the host's mirror, it may be; where credentials are handed out, it may not.
    names["mirror.internal"] = ["169.254.169.254"]
    policy = Policy(hosts={HOST: ("/x",)}, elsewhere={HOST: "https://mirror.internal"})
    with Session(policy) as session, pytest.raises(SourceError) as refused:
        session.json(HOST, "/x")
    assert refused.value.code == "not_allowed"
    assert may_connect("10.1.2.3", private=True)
    assert not may_connect("::ffff:169.254.169.254", private=True)


class Redirecting:
    """A source's own server that sends its callers elsewhere."""

    def __init__(self, location: str) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.head = f"HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(self.head.encode())


@pytest.mark.parametrize("hops", [0, 2])
@pytest.mark.parametrize(
    "where", ["http://127.0.0.1:{port}/x", "//127.0.0.1:{port}/x", f"http://{HOST}@127.0.0.1:{{port}}/x",
              "http://localhost:{port}/x", "https://127.0.0.1:{port}/x", "/x?u=http://127.0.0.1:{port}",
              "gopher://127.0.0.1:{port}/x", "\\\\127.0.0.1:{port}\\x"],
)  # fmt: skip
def test_a_redirect_leads_nowhere_else(where: str, hops: int, canary: Canary) -> None:
    source = Redirecting(where.format(port=canary.port))
    policy = Policy(
        hosts={HOST: ("/x",)}, elsewhere={HOST: f"http://127.0.0.1:{source.port}"}, same_host_redirects=hops, attempts=1
    )
    with Session(policy) as session, pytest.raises(SourceError) as refused:
        session.json(HOST, "/x")
    source.listener.close()
    assert refused.value.code in ("redirected", "not_allowed")
    assert canary.connections == 0


HUB_IDS = [
    "../../etc/passwd", "a/..", "a/../b", "..%2f..%2fetc/x", "a/b/../../c", "a/b?x=1", "a/b#c", "a/b@127.0.0.1",
    "http://127.0.0.1/x", "//127.0.0.1/x", "127.0.0.1:80/x", "a\\b/c", "a/b\r\nHost: x", "a/b\x00", "a /b", "а/б",
    "ａ/ｂ", "a/" + "b" * 300, "/a/b", "a/b/", "a/.b", "-a/b", "[::1]/x", "a/%2e%2e", "a/b%00",
]  # fmt: skip


@pytest.mark.parametrize("name", HUB_IDS)
def test_a_model_s_name_names_no_other_place(name: str, names: dict[str, Any], tmp_path: Path) -> None:
    asked: list[str] = []
    names["huggingface.co"] = lambda: asked.append(name) or ["127.0.0.1"]
    assert not is_hub_id(name)
    assert lookup(name, path=tmp_path / "hub.db", environment={}) is None
    with Session(Policy(hosts=HUB_HOSTS)) as session, pytest.raises(SourceError) as refused:
        session.json("huggingface.co", f"/{name}/raw/main/config.json")
    assert refused.value.code == "not_allowed"
    assert asked == []


def test_the_hub_is_not_read_from_this_machine(names: dict[str, Any], canary: Canary, tmp_path: Path) -> None:
    names["huggingface.co"] = ["127.0.0.1"]
    with pytest.raises(UnknownName, match="could not be read"):
        lookup("some-lab/New-Model-9B", path=tmp_path / "hub.db", environment={})
    assert canary.connections == 0


def test_no_price_source_connects_to_this_machine(names: dict[str, Any], tmp_path: Path) -> None:
    """Every source, with every key set, when all names lead here: each fails by the guard and none connects."""
    opened: list[Any] = []

    def connect(self: Any, address: Any) -> None:
        opened.append(address)
        raise OSError("no")

    keys = {name: "canary-key" for source in SOURCES for name in source.keys}
    for source in SOURCES:
        for host in source.hosts:
            names[host] = ["127.0.0.1"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", connect)
        report = refresh(SOURCES, cache=Cache(tmp_path / "prices.db"), environment=keys)
    assert opened == []
    assert len(report.outcomes) == len(SOURCES)
    assert {(one.source, one.status, one.code) for one in report.outcomes} == {
        (source.id, "failed", "not_allowed") for source in SOURCES
    }


def test_every_outgoing_call_of_the_product_goes_through_the_guarded_session() -> None:
    """Clients that take an address of their own are few, and only an operator's settings name it."""
    root = Path(__file__).parents[2]
    opens = ("httpx.Client(", "httpx.get(", "httpx.post(", "urlopen(", "create_connection(", "aiohttp.ClientSession(")
    found = {
        file.relative_to(root).as_posix()
        for room in ("advisor", "integrations", "knowledge", "tools")
        for file in (root / room).rglob("*.py")
        if any(word in file.read_text(encoding="utf-8") for word in opens)
    }
    # The issuer of tokens is the operator's (ADVISOR_OIDC_ISSUER).
    assert found == {"integrations/net/session.py", "integrations/http/oidc.py"}
