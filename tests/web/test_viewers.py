"""Viewers that come, go and vanish, and peers that speak no HTTP; with real sockets."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from scrapy_ubi.agent.metrics.endpoint import Endpoint, EndpointPages
from scrapy_ubi.cli.commands.stopped_status import read_figures
from scrapy_ubi.web import live_stream, web_app
from scrapy_ubi.web.live_stream import LiveStream
from scrapy_ubi.web.reader import CrawlReader
from scrapy_ubi.web.security import Access
from scrapy_ubi.web.web_app import HALF_OPEN, WebApp, end_half_open, listening
from tests.web.served import Crawl, reader_of

LIMIT = 30.0  # s
GET = b"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
Wire = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def listening_app(crawl: Crawl) -> AsyncIterator[tuple[WebApp, int]]:
    """A server that listens, and its port."""
    reader: CrawlReader = reader_of(crawl)
    app = WebApp(reader, Access("127.0.0.1", ""))
    try:
        async with asyncio.timeout(LIMIT), listening(app, "127.0.0.1", 0) as url:
            yield app, int(url.rstrip("/").rpartition(":")[2])
    finally:
        reader.close()


async def viewer(port: int) -> tuple[int, Wire]:
    """One that asks for events: the status, and the connection."""
    wire = await asyncio.open_connection("127.0.0.1", port)
    wire[1].write(GET)
    return int((await wire[0].readline()).split()[1]), wire


async def figures(wire: Wire) -> None:
    """Wait for the first figures."""
    while not (await wire[0].readline()).startswith(b"event: crawl"):
        pass


def drop(wire: Wire) -> None:
    """End it without a word, as a process that is killed."""
    connected = wire[1].get_extra_info("socket")
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire[1].transport.abort()


def test_viewers_that_vanish_give_their_places_back_even_where_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_stream, "EVERY", 1000.0)  # nothing is written that would show who has left

    async def body() -> None:
        async with listening_app(Crawl()) as (app, port):
            for leave in (drop, lambda wire: wire[1].close()):
                wires = []
                for _ in range(live_stream.MOST_VIEWERS):
                    status, wire = await viewer(port)
                    assert status == 200
                    wires.append(wire)
                assert (await viewer(port))[0] == 503
                for wire in wires:
                    leave(wire)
                while (found := await viewer(port))[0] != 200:
                    await asyncio.sleep(0.01)
                assert app.live.viewers == 1
                drop(found[1])

    asyncio.run(body())


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="this system cannot be asked for it")
def test_one_that_is_half_open_is_ended_by_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []

    def noted(request: Any) -> None:
        end_half_open(request)
        kept.append(request.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))

    monkeypatch.setattr(web_app, "end_half_open", noted)

    async def body() -> None:
        async with listening_app(Crawl()) as (_, port):
            await figures((await viewer(port))[1])
            assert kept == [1000 * HALF_OPEN]

    asyncio.run(body())


def test_where_all_places_are_taken_for_long_the_longest_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_stream, "MOST_VIEWERS", 2)

    async def look(live: LiveStream, looked: AsyncExitStack) -> asyncio.Queue[str | None]:
        queue = await looked.enter_async_context(live.viewer())
        assert await queue.get()
        return queue

    async def body() -> None:
        async with listening_app(Crawl()) as (app, _), AsyncExitStack() as looked:
            live = app.live
            first = await look(live, looked)
            await look(live, looked)
            with pytest.raises(Exception, match="look already"):
                await look(live, looked)
            monkeypatch.setattr(live_stream, "LONGEST", 0.0)
            await look(live, looked)
            while await first.get() is not None:
                pass
            assert live.viewers == 2
            monkeypatch.undo()
            monkeypatch.setattr(live_stream, "MOST_VIEWERS", 2)
            with pytest.raises(Exception, match="look already"):
                await look(live, looked)

    asyncio.run(body())


def test_a_viewer_that_comes_while_the_crawl_is_read_gets_that_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_stream, "EVERY", 0.05)
    reads, goes_on = [0], threading.Event()
    goes_on.set()

    def held(*given: Any) -> Any:
        reads[0] += 1
        assert goes_on.wait(LIMIT)
        return read_figures(*given)

    monkeypatch.setattr(live_stream, "read_figures", held)

    async def body() -> None:
        async with listening_app(Crawl()) as (app, port):
            _, first = await viewer(port)
            await figures(first)
            goes_on.clear()
            before = reads[0]
            while reads[0] == before:  # the beat reads
                await asyncio.sleep(0.005)
            asked = [asyncio.create_task(viewer(port)) for _ in range(5)]
            leaves = asyncio.create_task(app.live.document())
            while app.live.viewers < 6:
                await asyncio.sleep(0.005)
            await asyncio.sleep(0)
            leaves.cancel()  # one that has waited leaves: the reading goes on, and no other begins beside it
            goes_on.set()
            for status, wire in await asyncio.gather(*asked):
                assert status == 200
                await figures(wire)

    asyncio.run(body())


def test_a_reading_goes_on_alone_where_who_has_begun_it_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once, most, goes_on = [0], [0], threading.Event()

    def held(*given: Any) -> Any:
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        assert goes_on.wait(LIMIT)
        at_once[0] -= 1
        return read_figures(*given)

    monkeypatch.setattr(live_stream, "read_figures", held)

    async def body() -> None:
        async with listening_app(Crawl()) as (app, _):
            first = asyncio.create_task(app.live.document())
            while not at_once[0]:
                await asyncio.sleep(0.005)
            first.cancel()
            second = asyncio.create_task(app.live.document())
            await asyncio.sleep(0.05)
            goes_on.set()
            assert '"agents_total": 2' in await second
            assert most[0] == 1

    asyncio.run(body())


MALFORMED = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(64)),  # a TLS client
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -4\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\nabcd",
    b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 9_000 + b"\r\n",
    b"GET / HTTP/1.1\r\nbad header\x00: 1\r\n\r\n",
    b"GET http://[::1/ HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST /api/pause HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nnot a chunk\r\n",
    b"SSH-2.0-OpenSSH_9.2\r\n",
    b"\n" * 10_000,
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n\x00\x01\x02\x03\r\n\r\n",
)


async def send(port: int, data: bytes) -> None:
    """Send that, and wait until the other side has answered or ended."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        writer.write_eof()
        async with asyncio.timeout(LIMIT):
            await reader.read()
    except ConnectionError:
        pass
    finally:
        writer.close()


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING or one.exc_info]


def test_what_is_no_http_is_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def body() -> None:
        async with listening_app(Crawl()) as (_, port):
            for data in MALFORMED * 3:
                await send(port, data)

    asyncio.run(body())
    said = complaints(caplog)
    assert len(said) == 1 and "is no HTTP" in said[0], said
    assert not any(one.exc_info for one in caplog.records)


def test_an_agent_that_answers_prometheus_says_it_once_as_well(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def body() -> None:
        endpoint = Endpoint("127.0.0.1:0", EndpointPages(str, str, str))
        await endpoint.listen()
        try:
            for data in MALFORMED:
                await send(int(endpoint.address.rpartition(":")[2]), data)
        finally:
            await endpoint.close()

    asyncio.run(body())
    assert len(complaints(caplog)) == 1
