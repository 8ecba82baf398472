"""TLS with a real server: certificates that hold, and a sentence for each way in which one does not."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from pathlib import Path

import pytest

from scrapy_ubi.transport import TransportDown
from scrapy_ubi.transport.address import address
from scrapy_ubi.transport.beat_connection import RedisLink
from scrapy_ubi.transport.clients import client_of
from scrapy_ubi.transport.redis import RedisTransport
from scrapy_ubi.transport.redis_keys import RedisKeys
from scrapy_ubi.transport.round_trips import RedisCommand, RoundTrips
from tests.support.certificates import Authority, TlsServer, TlsSide
from tests.support.redis_groups import Cluster, Watched
from tests.support.server import binary
from tests.transport.test_faults import LINE, refusal


@pytest.fixture(autouse=True)
def _needs_tls() -> None:
    if binary("redis") is None:
        message = "redis-server is not installed, and no other here speaks TLS (apt-get install redis-server)"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)


def opened(url: str) -> None:
    async def run() -> None:
        transport = RedisTransport(url, "bot:spider", "a", timeout=5.0)
        await transport.open()
        await transport.close()

    asyncio.run(run())
    link = RedisLink(address(url), RedisKeys("bot:spider"), "a", 5.0, 1000, Counter())
    link.write(LINE)
    link.close()
    with client_of(address(url), 5.0) as client:
        assert client.ping()


def refused(url: str, passing: bool | None = False) -> str:
    """What is said at the start; the beating thread says the same. `passing` None: it may depend on what came first."""
    said = refusal(url, passing=passing)
    link = RedisLink(address(url), RedisKeys("bot:spider"), "a", 5.0, 1000, Counter())
    with pytest.raises(TransportDown) as error:
        link.write(LINE)
    link.close()
    assert passing in (True, None) or str(error.value)[:80] == said[:80]
    return said


def test_what_is_wrong_with_a_certificate_is_said(tmp_path: Path) -> None:
    ours = Authority(tmp_path)
    with TlsServer(ours) as server:
        opened(f"{server.url}&ssl_min_version=TLSv1.3")
        other = Authority(tmp_path, "other")
        unknown = refused(f"rediss://localhost:{server.port}/0?ssl_ca_certs={other.file}")
        assert "of an authority that this machine does not know" in unknown and "ssl_ca_certs=" in unknown
        host = refused(server.url.replace("localhost", "127.0.0.1"))
        assert "is for another host" in host
        opened(f"{server.url.replace('localhost', '127.0.0.1')}&ssl_check_hostname=false")
    with TlsServer(ours, days=(-3, -1)) as server:
        assert "has expired" in refused(server.url)


def test_a_certificate_of_the_client(tmp_path: Path) -> None:
    ours = Authority(tmp_path)
    with TlsServer(ours, clients=True) as server:
        said = refused(server.url, passing=None)  # a reset, or the alert that was sent before it
        assert "client certificate" in said and "name one with ssl_certfile and ssl_keyfile" in said
        opened(f"{server.url}&ssl_certfile={server.own}&ssl_keyfile={server.own}")


@pytest.mark.parametrize("way", ["call", "attempt"])
def test_files_of_certificates_that_were_renewed_are_read_again(tmp_path: Path, way: str) -> None:
    """A connection of redis-py keeps what it has read of them, as long as it is in its pool."""
    ours, other = Authority(tmp_path), Authority(tmp_path, "other")
    named = tmp_path / "named.pem"
    named.write_bytes(ours.file.read_bytes())

    async def run() -> None:
        at = address(f"rediss://localhost:{server.port}/0?ssl_ca_certs={named}")
        trips = RoundTrips(at, "test", 5.0, Counter(), fixed=True)
        ask = getattr(trips, way)
        assert await ask([RedisCommand(("PING",))]) == [b"PONG"]
        server.stop()
        server.options = [*server.options, *TlsSide(other).options]
        server.start()
        with pytest.raises(TransportDown):
            await ask([RedisCommand(("PING",))])
        named.write_bytes(other.file.read_bytes())
        with contextlib.suppress(TransportDown):  # a connection that had read the old one
            await ask([RedisCommand(("PING",))])
        assert await ask([RedisCommand(("PING",))]) == [b"PONG"]
        await trips.close()

    with TlsServer(ours) as server:
        asyncio.run(run())


def test_a_cluster_whose_servers_are_known_by_name(tmp_path: Path) -> None:
    ours = Authority(tmp_path)
    # redis-py takes the first servers of that name by their address; those that a cluster tells by their name.
    cluster = Cluster("redis", masters=3, replicas=0, tls=TlsSide(ours, address="127.0.0.1"))
    try:
        cluster.start()
        at = ",".join(f"localhost:{node.port}" for node in cluster.nodes)
        opened(f"rediss+cluster://{at}?ssl_ca_certs={ours.file}")
        other = Authority(tmp_path, "other")
        assert "of an authority that this machine does not know" in refused(
            f"rediss+cluster://{at}?ssl_ca_certs={other.file}"
        )
    finally:
        cluster.stop()


def test_sentinels_and_servers_known_by_address(tmp_path: Path) -> None:
    ours = Authority(tmp_path)
    watched = Watched("redis", tls=TlsSide(ours, address="127.0.0.1"))
    try:
        watched.start()
        opened(watched.url.replace("redis+", "rediss+") + f"?ssl_ca_certs={ours.file}")
    finally:
        watched.stop()
