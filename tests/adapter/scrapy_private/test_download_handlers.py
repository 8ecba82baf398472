"""Idle connections of Scrapy's own handler: so many of all hosts, and nothing of hosts that have none any more."""

from __future__ import annotations

import asyncio
import inspect
import resource
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from scrapy import Request
from scrapy.exceptions import DownloadFailedError
from scrapy.http import Response
from twisted.internet.task import Clock
from twisted.web.client import HTTPConnectionPool

from scrapy_ubi.adapter.scrapy_private import download_handlers, socket_gate
from scrapy_ubi.adapter.scrapy_private.download_handlers import MOST, SHARE, SPARE, bound, most_kept
from tests.support.versions import since


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
        monkeypatch.setattr(resource, "getrlimit", lambda which, files=files: (files, files))
        assert most_kept() == most


@since(2, 19)
def test_aiohttp_and_scrapy_have_these_names() -> None:
    from scrapy.core.downloader.handlers._aiohttp import AiohttpDownloadHandler

    source = inspect.getsource(aiohttp.ClientSession)
    assert "self._retry_connection and method in IDEMPOTENT_METHODS" in source
    assert "except (ClientOSError, ServerDisconnectedError):" in source
    source = inspect.getsource(AiohttpDownloadHandler)
    assert "self._session: aiohttp.ClientSession" in source
    assert "raise DownloadFailedError(str(e)) from e" in source
    assert frozenset(aiohttp.client.IDEMPOTENT_METHODS) == download_handlers.REPEATABLE


def test_a_session_is_told_once() -> None:
    async def main() -> None:
        async with aiohttp.ClientSession() as session:
            handler = SimpleNamespace(_session=session)
            assert download_handlers.sends_again(handler)
            download_handlers.send_once(handler)
            assert not download_handlers.sends_again(handler) and session._retry_connection is False

    asyncio.run(main())
    assert not download_handlers.sends_again(object()) and not download_handlers.sends_again(None)


def test_the_right_of_the_transfer_learns_of_it() -> None:
    async def download(request: Request) -> Response:
        cause = OSError("of the user's disk") if "disk" in request.url else aiohttp.ServerDisconnectedError()
        raise DownloadFailedError("lost") from cause

    async def broken(request: Request, repeats: int = 0) -> bool:
        right = socket_gate.OneTransfer(lambda host: True, "h.example", repeats)
        socket_gate.may_write.set(right)
        try:
            await download_handlers.telling(download)(request)
        except DownloadFailedError:
            return right.broken
        raise AssertionError("it raises")

    url = "http://h.example/"
    assert asyncio.run(broken(Request(url)))
    assert not asyncio.run(broken(Request(url), repeats=1)), "once, as aiohttp has it"
    assert not asyncio.run(broken(Request(url, method="POST")))
    assert not asyncio.run(broken(Request(url + "disk")))
