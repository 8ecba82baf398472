"""Idle connections of Scrapy's own handler: so many of all hosts, and nothing of hosts that have none any more."""

from __future__ import annotations

import resource
from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.task import Clock
from twisted.web.client import HTTPConnectionPool

from scrapy_ubi.adapter.scrapy_private import kept_connections
from scrapy_ubi.adapter.scrapy_private.kept_connections import MOST, SHARE, SPARE, bound, most_kept


class Connection:
    state = "QUIESCENT"

    def __init__(self) -> None:
        self.closed = False
        self.transport = SimpleNamespace(loseConnection=self._close)

    def _close(self) -> None:
        self.closed = True


def key(number: int) -> Any:
    return b"http", b"h%d.example" % number, 80


def kept(pool: HTTPConnectionPool) -> list[Any]:
    return [key for key, connections in pool._connections.items() if connections]


def test_of_all_hosts_so_many_are_kept_and_the_longest_idle_goes() -> None:
    clock = Clock()
    pool = HTTPConnectionPool(clock)
    bound(pool, 3)
    bound(pool, 3)  # does nothing
    connections = [Connection() for _ in range(6)]
    for number, connection in enumerate(connections[:3]):
        pool._putConnection(key(number), connection)
    pool.getConnection(key(0), None)
    pool._putConnection(key(0), connections[0])  # it was used: now it is the youngest
    pool._putConnection(key(3), connections[3])
    pool._putConnection(key(4), connections[4])
    assert [connection.closed for connection in connections[:5]] == [False, True, True, False, False]
    assert kept(pool) == [key(0), key(3), key(4)]
    assert len(pool._timeouts) == 3 and len(clock.getDelayedCalls()) == 3
    clock.advance(pool.cachedConnectionTimeout)
    assert not kept(pool) and not pool._timeouts, "Twisted's own time still counts"
    pool._putConnection(key(5), connections[5])
    assert kept(pool) == [key(5)] and not connections[5].closed


def test_hosts_without_a_connection_are_forgotten() -> None:
    pool = HTTPConnectionPool(Clock())
    bound(pool, 2)
    for number in range(3 * SPARE):
        pool._putConnection(key(number), Connection())
    assert len(pool._connections) <= SPARE + 2 * 3


def test_the_files_that_may_be_open_count(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {1024: 1024 // SHARE, 1 << 20: MOST, resource.RLIM_INFINITY: MOST}
    for files, most in limits.items():
        monkeypatch.setattr(kept_connections.resource, "getrlimit", lambda which, files=files: (files, files))
        assert most_kept() == most
