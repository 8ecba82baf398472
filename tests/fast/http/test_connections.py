"""Connections of the handler: which are kept, tried again, and closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import (
    DownloadFailedError,
)

from scrapy_ubi.adapter.scrapy_private import socket_gate
from scrapy_ubi.fast.http import pool
from scrapy_ubi.fast.http.handler import UbiDownloadHandler
from tests.fast.http.raw import (
    ALWAYS,
    Server,
    answer,
    handler,
    kept,
    name_server,
    run,
    tls,
    until_closed,
)


async def drop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """An answer: none, the connection ends."""
    writer.close()


@pytest.mark.parametrize(
    ("request_", "tried"),
    [
        (lambda url: Request(url), True),
        (lambda url: Request(url, method="HEAD"), True),
        (lambda url: Request(url, method="POST"), False),
        (lambda url: Request(url, body=b"x"), False),
    ],
)
def test_a_kept_connection_that_turns_out_dead(request_: Callable[[str], Request], tried: bool) -> None:
    async def main() -> None:
        async with Server([answer(), drop], [answer(b"")]) as server, handler() as ours:
            await ours.download_request(Request(server.url))
            if tried:
                assert (await ours.download_request(request_(server.url))).status == 200
            else:
                with pytest.raises(DownloadFailedError):
                    await ours.download_request(request_(server.url))
            assert server.opened == 1 + tried

    run(main())


def test_under_the_right_to_one_transfer_it_is_not_tried_again_but_told() -> None:
    async def main() -> None:
        async with Server([answer(), drop], [answer()]) as server, handler() as ours:
            right = socket_gate.OneTransfer(lambda host: True, "h.example")
            socket_gate.may_write.set(right)
            await ours.download_request(Request(server.url))
            assert not right.broken
            with pytest.raises(DownloadFailedError):
                await ours.download_request(Request(server.url))
            assert right.broken and server.opened == 1

    run(main())


def test_it_is_tried_again_once_and_only_before_an_answer() -> None:
    async def main() -> None:
        async with Server([answer(), drop], [drop]) as server, handler() as ours:
            await ours.download_request(Request(server.url))
            with pytest.raises(DownloadFailedError):
                await ours.download_request(Request(server.url))
            assert server.opened == 2
        async with Server([answer(), b"HTTP/1.1 2"], [answer()]) as server, handler() as ours:
            await ours.download_request(Request(server.url))
            with pytest.raises(DownloadFailedError):
                await ours.download_request(Request(server.url))
            assert server.opened == 1

    run(main())


def test_a_request_that_is_cancelled_closes_its_connection() -> None:
    async def main() -> None:
        started = asyncio.Event()

        async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            started.set()
            await until_closed(reader, writer)

        async with Server([wait]) as server, handler() as ours:
            task = asyncio.create_task(ours.download_request(Request(server.url)))
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.closed(0)

    run(main())


def test_the_end_of_the_handler_is_that_of_its_connections() -> None:
    async def main() -> None:
        async with Server([answer(), until_closed]) as server:
            async with handler() as ours:
                await ours.download_request(Request(server.url))
            await server.closed(0)

    run(main())


def test_requests_under_way_end_with_the_handler() -> None:
    async def main() -> None:
        started = asyncio.Event()

        async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            started.set()
            await until_closed(reader, writer)

        async with Server([wait]) as server, handler() as ours:
            task = asyncio.create_task(ours.download_request(Request(server.url)))
            await started.wait()
            await ours.close()
            with pytest.raises(DownloadFailedError):
                await task
            await server.closed(0)

    run(main())


def test_a_connection_that_is_there_after_the_end_of_the_handler_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        asked, known = asyncio.Event(), asyncio.Event()

        async def addresses(host: str) -> list[str]:
            asked.set()
            await known.wait()
            return [host]

        async with Server(ALWAYS) as server, handler() as ours:
            name_server(monkeypatch, ours, addresses)
            task = asyncio.create_task(ours.download_request(Request(server.url)))
            await asked.wait()
            await ours.close()
            known.set()
            with pytest.raises(DownloadFailedError):
                await task
            await server.closed(0)
            assert not server.requests and kept(ours) == 0

    run(main())


def test_no_more_than_so_many_connections_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "most_idle", lambda asks: 8)

    async def many(ours: Any, url: str, number: int, **meta: Any) -> None:
        requests = [ours.download_request(Request(url, meta=dict(meta))) for _ in range(number)]
        assert {response.status for response in await asyncio.gather(*requests)} == {200}

    async def main() -> None:
        async with Server(ALWAYS) as server, handler(CONCURRENT_REQUESTS_PER_DOMAIN=3, CONCURRENT_REQUESTS=5) as ours:
            await many(ours, server.url, 6)
            assert kept(ours) == 3
            await many(ours, "http://h.example/", 6, proxy=server.url)
            assert kept(ours) == 3 + 5
            await many(ours, server.url.replace("127.0.0.1", "127.0.0.2"), 1, proxy=server.url.replace("http", "HTTP"))
            assert kept(ours) == 8
            monkeypatch.setattr(pool, "IDLE_SECONDS", 0.0)
            ours.pool._tick()
            assert kept(ours) == 0

    run(main())


def test_the_handlers_of_both_schemes_keep_no_more_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "most_idle", lambda asks: 5)

    async def main() -> None:
        crawler = Crawler(Spider, {"TWISTED_REACTOR_ENABLED": False})
        crawler.spider = Spider("both")
        async with Server(ALWAYS) as plain, Server(ALWAYS, tls=tls()) as secure:
            ours = UbiDownloadHandler(crawler), UbiDownloadHandler(crawler)
            for number in range(1, 5):
                for each, server in zip(ours, (plain, secure), strict=True):
                    meta = {"bindaddress": f"127.0.0.{number}"}  # a route of its own
                    await each.download_request(Request(server.url, meta=meta))
            both = [kept(each) for each in ours]
            assert sum(both) == 5 and max(both) == 3, "the youngest"
            await ours[0].close()
            assert [kept(each) for each in ours] == [0, both[1]], "each closes its own"
            await ours[1].close()
            assert kept(ours[1]) == 0

    run(main())
