"""What a TLS connection costs a crawler: a new one, one with a session resumed, and one that is kept.

    python benchmarks/net/handshakes.py [--connections 200] [--rounds 3]

CPU of the client alone, for a connection with one request and a small answer: by asyncio's own TLS, which is Python's
`ssl`, by that of UBI_FAST, and by that with a session of before; and the memory that a connection takes while it is
kept (of the first round: later ones use again what others have freed). The ways take turns; the server is the
testbed's (web_server.py), in a process of its own, without latency.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import os
import signal
import ssl
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import certificates
import web_server
from counters import Counters
from page_links import PageLinks
from population import ZONE, Population, address_of
from scrapy import Spider
from scrapy.crawler import Crawler

from scrapy_ubi.fast.http.scrapys import TlsMaker
from scrapy_ubi.fast.http.tls import TlsClient

AT_ONCE = 10
REQUEST = b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n"


class Client(asyncio.Protocol):
    """Asks once, and is kept until it is closed."""

    def __init__(self) -> None:
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.write(REQUEST)

    def data_received(self, data: bytes) -> None:
        if not self.answered.done():
            self.answered.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.answered.done():
            self.answered.set_exception(exc or ConnectionResetError("closed"))


async def by_asyncio(context: ssl.SSLContext, number: int, port: int, _: TlsClient) -> Client:
    loop = asyncio.get_running_loop()
    name = f"h{number:05d}.{ZONE.decode()}"
    _, client = await loop.create_connection(Client, address_of(number), port, ssl=context, server_hostname=name)
    await client.answered
    return client


async def by_ours(_: ssl.SSLContext, number: int, port: int, tls: TlsClient) -> Client:
    loop = asyncio.get_running_loop()
    name, client = f"h{number:05d}.{ZONE.decode()}", Client()
    transport = tls.transport(name, port, client)
    await loop.create_connection(lambda: transport, address_of(number), port)
    await transport.ready
    await client.answered
    return client


async def measure(way: str, context: ssl.SSLContext, count: int, port: int) -> tuple[float, float]:
    """ms of CPU a connection, and kB of memory that each takes while it is kept."""
    handshakes: Counter[str] = Counter()
    tls = TlsClient(TlsMaker(Crawler(Spider)), handshakes)
    tls.transport("first", port, Client())  # the context is made
    connect = by_asyncio if way == "asyncio" else by_ours
    if way == "resumed":
        for client in await several(by_ours, context, count, port, tls):
            client.transport.abort()
        handshakes.clear()
    before, began = resident_kb(), time.process_time()
    clients = await several(connect, context, count, port, tls)
    spent, grown = time.process_time() - began, resident_kb() - before
    assert handshakes["handshakes_resumed"] == (count if way == "resumed" else 0)
    for client in clients:
        client.transport.abort()
    await asyncio.sleep(0.1)
    return 1000 * spent / count, grown / count


async def several(connect: Any, context: ssl.SSLContext, count: int, port: int, tls: TlsClient) -> list[Client]:
    found = []
    for first in range(0, count, AT_ONCE):
        numbers = range(first, min(count, first + AT_ONCE))
        found += await asyncio.gather(*(connect(context, number, port, tls) for number in numbers))
    return found


def resident_kb() -> float:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=200, help="(%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    args = parser.parse_args()
    population = Population(1, args.connections, args.connections, healthy=True)
    population.hosts = [dataclasses.replace(host, latency=0.0) for host in population.hosts]
    with tempfile.TemporaryDirectory() as directory:
        certificates.write(Path(directory), ZONE.decode())
        tls = certificates.server_context(Path(directory))
    web = web_server.Web(population, PageLinks(1, population, {}, "https", None), tls, Counters(1, 1), 0)
    sock = web_server.listener(0)
    port = sock.getsockname()[1]
    if not (pid := os.fork()):
        asyncio.run(web_server.serve(web, sock))
    try:
        sock.close()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # as Scrapy has it by default
        found: dict[str, list[tuple[float, float]]] = {"asyncio": [], "ours": [], "resumed": []}
        for _ in range(args.rounds):
            for way, rows in found.items():
                rows.append(asyncio.run(measure(way, context, args.connections, port)))
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    for way, rows in found.items():
        costs = [cost for cost, _ in rows]
        ratio = statistics.median(cost / base[0] for cost, base in zip(costs, found["asyncio"], strict=True))
        print(
            f"{way}: {statistics.median(costs):.2f} ms ({min(costs):.2f} to {max(costs):.2f}), ratio {ratio:.2f}, "
            f"{statistics.median(kept for _, kept in rows):.0f} kB kept (first round {rows[0][1]:.0f})"
        )


if __name__ == "__main__":
    main()
