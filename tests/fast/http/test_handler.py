"""What the handler does with requests: what is written, what is received, which errors are raised."""

from __future__ import annotations

import asyncio
import logging
import tracemalloc
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    StopDownload,
    UnsupportedURLSchemeError,
)
from scrapy.http import FormRequest, Headers, HtmlResponse

from scrapy_ubi.adapter.scrapy_private import socket_gate
from scrapy_ubi.adapter.scrapy_private.socket_gate import NoRight
from scrapy_ubi.fast.http import connection
from scrapy_ubi.fast.http.connection import Connection
from scrapy_ubi.fast.http.load import Load
from scrapy_ubi.fast.http.pool import Pool
from scrapy_ubi.fast.http.request_head import Unsendable
from scrapy_ubi.fast.http.route import Router
from tests.fast.http.raw import (
    ALWAYS,
    ROUTE,
    Server,
    Wire,
    answer,
    fetch,
    handler,
    name_server,
    run,
    then,
    tls,
    until_closed,
)


def test_what_is_written() -> None:
    async def main() -> None:
        async with Server(ALWAYS) as server, handler() as ours:
            headers = {"X-Second": "2", "Accept": ["a", "b"], "Content-Length": "77", "Transfer-Encoding": "chunked"}
            await ours.download_request(Request(f"{server.url}p?q=1#f", headers=headers))
            await ours.download_request(Request(f"http://127.0.0.1:{server.port}?x", headers={"Host": "h.example"}))
            await ours.download_request(FormRequest(server.url, formdata={"a": "b"}))
            await ours.download_request(Request(server.url, method="POST"))
            host = b"Host: 127.0.0.1:%d" % server.port
            assert server.heads[0].split(b"\r\n") == [
                b"GET /p?q=1 HTTP/1.1", b"X-Second: 2", b"Accept: a", b"Accept: b", host,
            ]  # fmt: skip
            assert server.heads[1].split(b"\r\n") == [b"GET /?x HTTP/1.1", b"Host: h.example"]
            assert b"Content-Length: 3" in server.heads[2] and server.requests[2][1].endswith(b"\r\n\r\na=b")
            assert b"Content-Length: 0" in server.heads[3]
            assert server.opened == 1, "one connection for all"

    run(main())


@pytest.mark.parametrize(
    "arguments",
    [
        {"headers": {"X": "a\r\nEvil: 1"}},
        {"headers": {"X": "a\nEvil: 1"}},
        {"headers": {"X": "a\rEvil: 1"}},
        {"headers": {"X": "a\0"}},
        {"headers": {"X: y\r\nEvil": "1"}},
        {"headers": {"X y": "1"}},
        {"headers": {"": "1"}},
        {"headers": {"Host": "a\r\n\r\nGET /evil HTTP/1.1"}},
        {"method": "GET /evil HTTP/1.1\r\nX:"},
        {"method": "GET /evil"},
        {"method": ""},
        {"path": "a b"},
        {"path": "a\r\nEvil: 1"},
        {"path": "a\x7f"},
        {"path": "\u00fc"},
    ],
)
def test_what_would_break_out_of_its_line_is_refused(arguments: dict[str, Any]) -> None:
    async def main() -> None:
        async with Server(ALWAYS) as server, handler() as ours:
            url = server.url + arguments.pop("path", "")
            with pytest.raises(ValueError):
                await ours.download_request(Request(url, meta={"verbatim_url": True}, **arguments))
            assert (await ours.download_request(Request(server.url))).body == b"ok"
            assert len(server.requests) == 1

    run(main())


@pytest.mark.parametrize("hosts", [["a.example", "b.example"], ["a.example", "a.example"], None])
def test_a_request_has_one_host(hosts: list[str] | None) -> None:
    async def main() -> None:
        async with Server(ALWAYS) as server, handler() as ours:
            with pytest.raises(Unsendable, match="Host"):
                await ours.download_request(Request(server.url, headers={"Host": hosts}))
            assert not server.requests

    run(main())


def test_what_a_proxy_is_told_must_be_one_line_too() -> None:
    async def main() -> None:
        async with Server(ALWAYS) as server, handler() as ours:
            request = Request("https://h.example/", meta={"proxy": server.url}, headers={"Proxy-Authorization": "a\nb"})
            with pytest.raises(Unsendable):
                await ours.download_request(request)
            assert not server.requests

    run(main())


def test_the_end_of_the_connection_is_that_of_the_body() -> None:
    response = fetch([b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>to the end"])
    assert isinstance(response, HtmlResponse)
    assert (response.body, response.flags) == (b"<html>to the end", ["partial"])
    assert (str(response.ip_address), response.protocol) == ("127.0.0.1", "HTTP/1.1")


def test_a_body_in_many_pieces() -> None:
    chunks = b"".join(b"2\r\n%02d\r\n" % number for number in range(100))
    response = fetch([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"])
    assert response.body == b"".join(b"%02d" % number for number in range(100))


def test_headers_of_the_connection_are_not_the_spiders() -> None:
    lines = [b"Connection: keep-alive", b"Keep-Alive: timeout=5", b"set-cookie: a=1", b"Set-Cookie: b=2"]
    headers = fetch([answer(b"ok", *lines)]).headers
    assert list(headers) == [b"Content-Length", b"Content-Type", b"Set-Cookie"]
    assert headers.getlist("Set-Cookie") == [b"a=1", b"b=2"]
    head = fetch([answer(b"12345", b"X: y").partition(b"\r\n\r\n")[0] + b"\r\n\r\n"], method="HEAD").headers
    assert head["Content-Length"] == b"5"


def test_a_receiver_that_changes_its_headers_changes_no_response() -> None:
    def receiver(headers: Headers) -> None:
        headers.appendlist("X", "mine")
        del headers["Content-Type"]

    async def main() -> None:
        async with Server([answer(b"ok", b"X: theirs")]) as server, handler() as ours:
            ours.crawler.signals.connect(receiver, signals.headers_received)
            headers = (await ours.download_request(Request(server.url))).headers
            assert headers.getlist("X") == [b"theirs"] and headers["Content-Type"] == b"text/html"

    run(main())


@pytest.mark.parametrize("fail", [True, False])
@pytest.mark.parametrize("signal", [signals.headers_received, signals.bytes_received])
def test_stop_download(signal: object, fail: bool) -> None:
    def stop(**_: Any) -> None:
        raise StopDownload(fail=fail)

    async def main() -> None:
        served = then(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegin", until_closed)
        async with Server([served]) as server, handler() as ours:
            ours.crawler.signals.connect(stop, signal)
            if fail:
                with pytest.raises(StopDownload) as raised:
                    await ours.download_request(Request(server.url))
                response = raised.value.response
            else:
                response = await ours.download_request(Request(server.url))
            assert response is not None and response.flags == ["download_stopped"]
            is_begun = signal is signals.bytes_received
            assert response.body == (b"begin" if is_begun else b"")
            assert str(response.ip_address) == ("127.0.0.1" if is_begun else "None"), "as with Scrapy's handler"
            await server.closed(0)

    run(main())


def test_what_comes_after_a_stop_is_no_loss() -> None:
    def stop(**_: Any) -> None:
        raise StopDownload(fail=False)

    async def main() -> None:
        served = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nzz\r\n"
        async with Server([served]) as server, handler(DOWNLOAD_FAIL_ON_DATALOSS=False) as ours:
            ours.crawler.signals.connect(stop, signals.bytes_received)
            response = await ours.download_request(Request(server.url))
            assert (response.body, response.flags) == (b"ok", ["download_stopped"])

    run(main())


@pytest.mark.parametrize(
    ("url", "proxy", "dialed"),
    [
        ("http://h.example:0/", None, ("h.example", 0)),
        ("https://h.example:0/", None, ("h.example", 0)),
        ("http://h.example/", "http://p.example:0", ("p.example", 0)),
        ("http://h.example/", None, ("h.example", 80)),
        ("http://h.example/", "p.example", ("p.example", 80)),
    ],
)
def test_port_0_is_not_the_usual_one(url: str, proxy: str | None, dialed: tuple[str, int]) -> None:
    """It has a queue of its own: the host's pages would be fetched once more, beside its other request."""
    route, _ = Router(None).route(Request(url, meta={"proxy": proxy}))
    assert (route.host, route.port) == dialed


def test_errors_are_scrapys() -> None:
    async def main() -> None:
        async with Server(ALWAYS) as server:
            gone = server.url
        async with handler() as ours:
            with pytest.raises(DownloadConnectionRefusedError):
                await ours.download_request(Request(gone))
            with pytest.raises(CannotResolveHostError):
                await ours.download_request(Request("http://no-such-host.invalid/"))
            with pytest.raises(CannotResolveHostError):
                await ours.download_request(Request(f"http://{'x' * 70}.invalid/"))
            with pytest.raises(UnsupportedURLSchemeError):
                await ours.download_request(Request("gopher://h.example/"))
            with pytest.raises(UnsupportedURLSchemeError):
                await ours.download_request(Request("http://h.example/", meta={"proxy": "socks5://127.0.0.1:1"}))
            for url in ("http://:80/", "http://h.example:99999/"):
                with pytest.raises(ValueError):
                    await ours.download_request(Request(url))

    run(main())


def test_the_next_address_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with Server(ALWAYS) as server, handler() as ours:

            async def addresses(host: str) -> list[str]:
                return found[host]

            found = {"h.example": ["127.0.0.2", "127.0.0.1"], "gone.example": ["127.0.0.2", "127.0.0.3"]}
            name_server(monkeypatch, ours, addresses)
            response = await ours.download_request(Request(f"http://h.example:{server.port}/"))
            assert str(response.ip_address) == "127.0.0.1"
            with pytest.raises(DownloadConnectionRefusedError):
                await ours.download_request(Request(f"http://gone.example:{server.port}/"))

    run(main())


def test_a_spiders_own_limits() -> None:
    async def main() -> None:
        async with Server([answer(b"12345")] * 3) as server, handler() as ours:
            assert (await ours.download_request(Request(server.url))).body == b"12345"
            ours.crawler.spider.download_maxsize = 4  # type: ignore[union-attr]
            with pytest.raises(DownloadCancelledError):
                await ours.download_request(Request(server.url))

    run(main())


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_nothing_is_written_without_the_right(secure: bool, kept: bool) -> None:
    async def download(ours: Any, url: str, right: bool) -> Any:
        socket_gate.may_write.set(lambda: right)
        return await ours.download_request(Request(url))

    async def main() -> None:
        async with Server(ALWAYS, tls=tls() if secure else None) as server, handler() as ours:
            if kept:
                await asyncio.create_task(download(ours, server.url, True))
            with pytest.raises(NoRight):
                await asyncio.create_task(download(ours, server.url + "refused", False))
            response = await asyncio.create_task(download(ours, server.url, True))
            assert response.status == 200
            assert len(server.requests) == 1 + kept and not any(b"refused" in head for head in server.heads)

    run(main())


@pytest.mark.parametrize("secure", [False, True])
def test_a_large_request_goes_as_long_as_the_right_holds(secure: bool) -> None:
    size = 4_000_000
    asked = 0

    def right() -> bool:
        nonlocal asked
        asked += 1
        return asked < 20

    async def main() -> None:
        async with Server(ALWAYS, tls=tls() if secure else None) as server, handler() as ours:
            await ours.download_request(Request(server.url, method="POST", body=b"x" * size))
            assert len(server.requests[0][1].partition(b"\r\n\r\n")[2]) == size
            socket_gate.may_write.set(right)
            with pytest.raises(NoRight):
                await ours.download_request(Request(server.url, method="POST", body=b"x" * size))
            assert size > 20 * connection.SLICE and asked == 20

    run(main())


def test_a_large_request_takes_its_size_in_memory_once_and_nothing_when_it_is_written() -> None:
    size = 20 * connection.SLICE

    async def main() -> None:
        written = Connection(ROUTE, Pool(8, 8))
        wire = Wire(written)
        body = b"x" * size
        load = Load(Request("http://h.example/"), Crawler(Spider, {}), (0, 0, True))
        tracemalloc.start()
        try:
            written.start(load, b"head", body, None)
            kept, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert wire.written == size + 4
        assert most < 1.5 * size and kept < 0.5 * size

    run(main())


@pytest.mark.parametrize("where", [["127.0.0.3", 0], ("127.0.0.3", 0), "127.0.0.3"])
def test_a_local_address_may_be_written_as_scrapy_takes_it(where: object) -> None:
    async def main() -> None:
        async with Server(ALWAYS) as server, handler() as ours:
            response = await ours.download_request(Request(server.url, meta={"bindaddress": where}))
            assert response.status == 200

    run(main())


@pytest.mark.parametrize("where", [["127.0.0.3"], 7, ["127.0.0.3", "0"], [["127.0.0.3"], 0], {"host": "127.0.0.3"}])
def test_a_local_address_that_is_none_fails_that_request(where: object) -> None:
    async def main() -> None:
        async with Server(ALWAYS) as server, handler() as ours:
            with pytest.raises(ValueError, match="bindaddress is"):
                await ours.download_request(Request(server.url, meta={"bindaddress": where}))

    run(main())


def test_in_another_event_loop_scrapys_handler_fetches(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with handler() as ours:
            theirs = SimpleNamespace(download_request=AsyncMock(return_value="theirs"), close=AsyncMock())
            ours.scrapys = theirs  # type: ignore[assignment]
            monkeypatch.setattr(asyncio, "BaseEventLoop", int)
            with caplog.at_level(logging.INFO):
                for _ in range(2):
                    assert await ours.download_request(Request("http://127.0.0.1:1/")) == "theirs"
            assert caplog.text.count("UBI_FAST is left out") == 1

    run(main())
