"""Which addresses a look-up may connect to: those of the public Internet, checked when the connection is made.

A name is resolved once, every address that it has is judged, and the connection goes to one of those judged, so that a
name which answers differently the second time leads nowhere else. A host that an operator set up (a mirror, a test
server) may be private; the addresses where clouds hand out credentials are nobody's mirror.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Collection, Iterable
from typing import Any

import httpcore

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], list[str]]

# Instance metadata and credentials: AWS with ECS and EKS, GCP, Azure, Alibaba, Oracle, Scaleway, by their documents.
_METADATA = frozenset(
    map(
        ipaddress.ip_address,
        (
            "169.254.169.254", "169.254.170.2", "169.254.170.23", "168.63.129.16", "100.100.100.200", "192.0.0.192",
            "169.254.42.42", "fd00:ec2::254", "fd00:ec2::23",
        ),
    )
)  # fmt: skip
_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))  # RFC 6052, RFC 8215
_NOT_PUBLIC = (ipaddress.ip_network("192.0.0.0/24"), ipaddress.ip_network("fec0::/10"))  # beside what Python says
_TEREDO = ipaddress.ip_network("2001::/32")
_SIX_TO_FOUR = ipaddress.ip_network("2002::/16")
_COMPATIBLE = ipaddress.ip_network("::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)  # RFC 5214, the upper half of the interface identifier


class Forbidden(httpcore.ConnectError):
    """The name leads to an address that is not to be connected to."""


def may_connect(address: str, private: bool = False) -> bool:
    """Whether this IP address may be connected to; ``private`` where an operator named the host.

    An IPv4 address inside an IPv6 one (mapped, compatible, 6to4, Teredo, NAT64, ISATAP) is judged as well.
    """
    try:
        outer = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return all(one not in _METADATA and (private or _is_public(one)) for one in (outer, *_hidden(outer)))


class GuardedBackend(httpcore.NetworkBackend):
    """Opens connections for httpcore: resolve, judge all addresses, connect to the first of them."""

    def __init__(self, private_hosts: Collection[str] = (), resolve: Resolve | None = None) -> None:
        self._private = frozenset(private_hosts)
        self._resolve = resolve or (lambda host, port: resolved(host, port))
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """See ``httpcore.NetworkBackend``. Raises Forbidden before a packet is sent."""
        addresses = self._resolve(host, port)
        private = host in self._private
        if not addresses or not all(may_connect(address, private) for address in addresses):
            raise Forbidden(f"{host} is at an address that is not of the public Internet")
        for number, address in enumerate(addresses):
            try:
                return self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except httpcore.ConnectError:
                if number == len(addresses) - 1:
                    raise
        raise AssertionError("unreachable")

    def sleep(self, seconds: float) -> None:
        """Block for ``seconds`` between retries of a connection; see ``httpcore.NetworkBackend``."""
        self._inner.sleep(seconds)


def resolved(host: str, port: int) -> list[str]:
    """The host's addresses, each once. Raises httpcore.ConnectError where it has none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpcore.ConnectError(f"{host} has no address ({type(error).__name__})") from None
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _is_public(address: Address) -> bool:
    if address in _NAT64[0]:
        return True  # as public as the address that it carries
    special = address.is_multicast or address.is_reserved or any(address in net for net in _NOT_PUBLIC)
    return address.is_global and not special


def _hidden(address: Address) -> list[Address]:
    """The IPv4 addresses that an IPv6 one carries."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found: list[Address] = []
    low = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.ipv4_mapped is not None:
        found.append(address.ipv4_mapped)
    if address in _SIX_TO_FOUR:
        found.append(ipaddress.IPv4Address(int(address) >> 80 & 0xFFFFFFFF))
    if address in _TEREDO:
        found += [ipaddress.IPv4Address(int(address) >> 64 & 0xFFFFFFFF), ipaddress.IPv4Address(int(low) ^ 0xFFFFFFFF)]
    if any(address in net for net in _NAT64) or (int(address) >> 32 & 0xFFFFFFFF) in _ISATAP:
        found.append(low)
    if address in _COMPATIBLE:
        found.append(low)
    return found
