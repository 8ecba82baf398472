"""Scrapy's handler on aiohttp sends a request once: the names that this needs are there."""

from __future__ import annotations

import asyncio
import inspect
from types import SimpleNamespace

import aiohttp
from scrapy import Request
from scrapy.exceptions import DownloadFailedError
from scrapy.http import Response

from scrapy_ubi.adapter.scrapy_private import aiohttp_handler, socket_gate
from tests.support.versions import since


@since(2, 19)
def test_aiohttp_and_scrapy_have_these_names() -> None:
    from scrapy.core.downloader.handlers._aiohttp import AiohttpDownloadHandler

    source = inspect.getsource(aiohttp.ClientSession)
    assert "self._retry_connection and method in IDEMPOTENT_METHODS" in source
    assert "except (ClientOSError, ServerDisconnectedError):" in source
    source = inspect.getsource(AiohttpDownloadHandler)
    assert "self._session: aiohttp.ClientSession" in source
    assert "raise DownloadFailedError(str(e)) from e" in source
    assert frozenset(aiohttp.client.IDEMPOTENT_METHODS) == aiohttp_handler.REPEATABLE


def test_a_session_is_told_once() -> None:
    async def main() -> None:
        async with aiohttp.ClientSession() as session:
            handler = SimpleNamespace(_session=session)
            assert aiohttp_handler.sends_again(handler)
            aiohttp_handler.send_once(handler)
            assert not aiohttp_handler.sends_again(handler) and session._retry_connection is False

    asyncio.run(main())
    assert not aiohttp_handler.sends_again(object()) and not aiohttp_handler.sends_again(None)


def test_the_right_of_the_transfer_learns_of_it() -> None:
    async def download(request: Request) -> Response:
        cause = OSError("of the user's disk") if "disk" in request.url else aiohttp.ServerDisconnectedError()
        raise DownloadFailedError("lost") from cause

    async def broken(request: Request, repeats: int = 0) -> bool:
        right = socket_gate.OneTransfer(lambda host: True, "h.example", repeats)
        socket_gate.may_write.set(right)
        try:
            await aiohttp_handler.telling(download)(request)
        except DownloadFailedError:
            return right.broken
        raise AssertionError("it raises")

    url = "http://h.example/"
    assert asyncio.run(broken(Request(url)))
    assert not asyncio.run(broken(Request(url), repeats=1)), "once, as aiohttp has it"
    assert not asyncio.run(broken(Request(url, method="POST")))
    assert not asyncio.run(broken(Request(url + "disk")))
