"""The DNS of the testbed: UDP, one address for each host that lives, after the latency of its name.

Names of hosts that are dead are answered with NXDOMAIN or SERVFAIL, or not at all. An AAAA query of a host that lives
has an empty answer. Names of no host of this testbed are refused, and counted: no crawler should ask for one.
"""

from __future__ import annotations

import asyncio
import errno
import struct
import time
from collections.abc import Callable
from ipaddress import ip_address
from typing import cast

from counters import NAMES
from population import Population, address_of, number_of_name

A, TTL = 1, 300
NOERROR, SERVFAIL, NXDOMAIN, REFUSED = 0, 2, 3, 5
PATIENCE = 10.0  # s for a socket that is still bound
_RESPONSE = 0x8180  # a response; recursion was desired, and is available
_QUERIES, _UNKNOWN = NAMES.index("queries"), NAMES.index("unknown_names")


class DnsServer(asyncio.DatagramProtocol):
    """Answers for the hosts of a population."""

    def __init__(self, population: Population, counts: memoryview) -> None:
        self._population, self._counts = population, counts

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)
        self._loop = asyncio.get_running_loop()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._counts[_QUERIES] += 1
        if (question := _question(data)) is None:
            return
        name, kind, end = question
        number = number_of_name(name)
        if not 0 <= number < len(self._population.hosts):
            self._counts[_UNKNOWN] += 1
            self._transport.sendto(_answer(data, end, REFUSED), addr)
            return
        host = self._population.hosts[number]
        if host.fate == "silent":
            return
        code = {"nxdomain": NXDOMAIN, "servfail": SERVFAIL}.get(host.fate, NOERROR)
        address = ip_address(address_of(number)).packed if code == NOERROR and kind == A else b""
        self._loop.call_later(host.dns_latency, self._transport.sendto, _answer(data, end, code, address), addr)


def _question(data: bytes) -> tuple[bytes, int, int] | None:
    """Name in small letters, type, and end of the question; None for what is no query with one question."""
    if len(data) < 17 or data[2] & 0x80 or data[4:6] != b"\0\1":
        return None
    labels, at = [], 12
    while at < len(data) and (length := data[at]):
        if length > 63:
            return None
        labels.append(data[at + 1 : at + 1 + length])
        at += 1 + length
    if at + 5 > len(data):
        return None
    return b".".join(labels).lower(), struct.unpack_from(">H", data, at + 1)[0], at + 5


def _answer(query: bytes, end: int, code: int, address: bytes = b"") -> bytes:
    head = query[:2] + struct.pack(">HHHHH", _RESPONSE | code, 1, 1 if address else 0, 0, 0)
    record = b"\xc0\x0c" + struct.pack(">HHIH", A, 1, TTL, len(address)) + address if address else b""
    return head + query[12:end] + record


async def _bound(server: Callable[[], DnsServer], host: str, port: int) -> asyncio.BaseTransport:
    """The server's socket. The one of the round before may not be closed yet."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return (await asyncio.get_running_loop().create_datagram_endpoint(server, local_addr=(host, port)))[0]
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > end:
                raise
            await asyncio.sleep(0.1)


async def serve(population: Population, counts: memoryview, host: str, port: int) -> None:
    """Serve until cancelled."""
    transport = await _bound(lambda: DnsServer(population, counts), host, port)
    try:
        await asyncio.Event().wait()
    finally:
        transport.close()
