"""Servers that mean harm, or do not know better: Scrapy's exceptions or a response, within bounds, never a request that
hangs or a connection that is used again in doubt."""

from __future__ import annotations

import asyncio

import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import DownloadCancelledError, DownloadFailedError, DownloadTimeoutError, ResponseDataLossError

from scrapy_ubi.fast.http.connection import Connection
from scrapy_ubi.fast.http.load import Load
from scrapy_ubi.fast.http.pool import Pool
from tests.fast.http.raw import ROUTE, Answer, Server, Wire, answer, endless, fetch, handler, run, then, until_closed

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "served",
    [
        endless(OK, b"X-Padding: " + b"x" * 1000 + b"\r\n"),
        endless(b"HTTP/1.1 200 ", b"O" * 1000),
        endless(OK + b"X-Long: ", b"x" * 1000),
        endless(OK + b"no colon\r\n", b"X-Padding: x\r\n" * 100),
        endless(b"", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 100),
        endless(b"HTTP/1.1 103 Early Hints\r\nno colon\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100),
        endless(b"", b"\r\n" * 1000),
        OK + b"".join(b"X-%d: x\r\n" % number for number in range(10_001)) + b"\r\n",
    ],
    ids=["headers", "status", "header", "mended", "interim", "mended-interim", "nothing", "many"],
)
def test_a_head_without_an_end(served: Answer) -> None:
    with pytest.raises(DownloadFailedError):
        fetch([served])


@pytest.mark.parametrize(
    "served",
    [
        b"not HTTP at all\r\n\r\n",
        b"HTTP/1.1 200OK\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        OK + b"Content-Length: -1\r\n\r\nok",
        OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        OK + b"Content-Length: 2, 3\r\n\r\nok",
        OK + b"Content-Length: 2, \r\n\r\nok",
        OK + b"Content-Length: 2\rX: y\r\n\r\nok",
        OK + b"Content-Length:\r\n\r\nok",
        OK + b"Content-Length: 0x2\r\n\r\nok",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nok",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"\r\n\r\n" + answer(),
        b"HTTP/1.1 103 Early Hints\r\n\r\n\r\n" + answer(),
        OK + b"Content-Length : 2\r\n\r\nok",
        OK + b"X : spaced\r\nContent-Length: 2\r\n\r\nok",
        OK + b": nameless\r\nContent-Length: 2\r\n\r\nok",
        OK + b" continues nothing\r\nContent-Length: 2\r\n\r\nok",
        OK + b"X: " + b"x" * 16_384 + b"\r\nContent-Length: 2\r\n\r\nok",
        OK + b"Content-Type: text/html\r\n",
        b"HTT",
        b"",
    ],
)
def test_a_head_that_makes_no_sense_or_ends_too_early(served: bytes) -> None:
    with pytest.raises(DownloadFailedError):
        fetch([served])


@pytest.mark.parametrize(
    "served",
    [
        OK + b"Content-Length: 4\r\n\r\nok",
        OK + b"Content-Length: 4 \t\r\n\r\nok",
        CHUNKED + b"2\r\nok\r\n",
        CHUNKED + b"2\r\nok\r\nzz\r\nok\r\n0\r\n\r\n",
        CHUNKED + b"2\r\nok\r\n-2\r\nok\r\n0\r\n\r\n",
        CHUNKED + b"2\r\nok\r\nFFFFFFFFFFFFFFFFFFFFF\r\nok",
        CHUNKED + b"2\r\nok\r\n2\r\n",
        CHUNKED + b"2\r\nok0\r\n\r\n",
        CHUNKED + b"2\r\nok\r\n1 \r\nx\r\n0\r\n\r\n",
        CHUNKED + b"2\r\nok\r\n0;;\r\n\r\n",
        endless(CHUNKED + b"2\r\nok\r\n0\r\n", b"X-Trailer: " + b"x" * 1000 + b"\r\n"),
        endless(CHUNKED + b"2\r\nok\r\n1;", b"extension" * 1000),
    ],
    ids="short space unended letters negative overflow empty glued spaced extension trailers extensions".split(),
)
def test_a_body_that_breaks_off_is_a_loss(served: Answer) -> None:
    with pytest.raises(ResponseDataLossError):
        fetch([served])
    response = fetch([served], meta={"download_fail_on_dataloss": False})
    assert (response.body, response.flags) == (b"ok", ["dataloss"])


@pytest.mark.parametrize("start", [b"", OK, OK + b"Content-Length: 1000000\r\n\r\n", CHUNKED])
def test_a_slow_drip_ends_at_the_time_out(start: bytes) -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while True:
            writer.write(b"1\r\n1\r\n" if start == CHUNKED else b"X")
            await writer.drain()
            await asyncio.sleep(0.01)

    async def main() -> None:
        async with Server([drip]) as server, handler() as ours:
            with pytest.raises(DownloadTimeoutError):
                await ours.download_request(Request(server.url, meta={"download_timeout": 0.2}))
            await server.closed(0)

    run(main())


@pytest.mark.parametrize(
    "served",
    [
        answer() + b"garbage",
        answer() + answer(b"not asked for"),
        answer() + b"HTTP/1.1 2",
        OK + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        OK + b"no colon\r\nContent-Length: 2\r\n\r\nok",
        OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok",
        OK + b"X: a\rContent-Length: 1\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 100 Continue\r\n\r\n" + answer(),
        b"HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\n" + answer(),
        CHUNKED + b"2\r\nok\r\n0\r\nno colon\r\n\r\n",
    ],
    ids="garbage two begun two-lengths close 1.0 mended length-twice return interim-1.0 interim-close trailer".split(),
)
def test_a_connection_in_doubt_is_not_used_again(served: bytes) -> None:
    async def main() -> None:
        async with Server([then(served, until_closed)], [answer(b"second")]) as server, handler() as ours:
            assert (await ours.download_request(Request(server.url))).body == b"ok"
            assert (await ours.download_request(Request(server.url))).body == b"second"
            assert server.opened == 2

    run(main())


def test_an_answer_that_nobody_asked_for_ends_a_kept_connection() -> None:
    async def main() -> None:
        late = asyncio.Event()

        async def twice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(answer(b"first"))
            await late.wait()
            writer.write(answer(b"not asked for"))
            await until_closed(reader, writer)

        async with Server([twice], [answer(b"second")]) as server, handler() as ours:
            assert (await ours.download_request(Request(server.url))).body == b"first"
            late.set()
            await server.closed(0)
            assert (await ours.download_request(Request(server.url))).body == b"second"

    run(main())


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("status", [b"200 OK", b"204 No Content", b"304 Not Modified"])
def test_a_body_where_there_is_none_is_no_answer_to_the_next_request(method: str, status: bytes) -> None:
    async def main() -> None:
        evil = answer(answer(b"evil"), status=status)
        async with Server([then(evil, until_closed)], [answer(b"")]) as server, handler() as ours:
            first = await ours.download_request(Request(server.url, method=method))
            if method == "HEAD" or status != b"200 OK":
                assert first.body == b"" and first.status == int(status[:3])
                assert (await ours.download_request(Request(server.url))).body == b""
                assert server.opened == 2

    run(main())


@pytest.mark.parametrize(
    "served",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n" + answer(),
        b"HTTP/1.1 103 Early Hints\r\nX-Interim: 1\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + answer(),
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n" + answer(),
        b"HTTP/1.1 199 x\r\nContent-Length: 5\r\n\r\n" + answer(),
        b"HTTP/1.1 199 x\r\nContent-Length: %d\r\n\r\n" % len(answer()) + answer() + answer(),
        OK + b"".join(b"X-%d: x\r\n" % number for number in range(1500)) + b"Content-Length: 2\r\n\r\nok",
        OK.replace(b" OK", b"") + b"Content-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 2\n\nok",
        b"HTTP/1.1 200 \xfcber\r\nX: \xff\x01\r\nContent-Length: 2\r\n\r\nok",
        OK + b"<html>\r\nContent-Length: 2\r\n\r\nok",
        OK + b"Content-Length: 2\r\nX-Empty:\r\nX-Folded: a\r\n\tb\r\n\r\nok",
        OK + b"Content-Length: 2\r\ncontent-length:2 \r\n\r\nok" + OK,
        OK + b"Content-Length: 2, 2\r\n\r\nok" + OK,
        b"http/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 103 Early Hints\r\n\r\nhttp/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"http/1.1 103 Early Hints\r\nX-Interim: 1\r\n\r\nHttp/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        OK + b"X: a\rX-Interim: b\r\nY: c\r\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 O\rK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\rX-Interim: 1\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 103 Early Hints\r\nX-Interim: 1\r\n\r\n" * 2 + OK + b"no colon\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 103 Early Hints\r\nno colon\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nok",
        b"HTTP/1.0 100 Continue\r\n\r\n" + answer(),
        b"HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\n" + answer(),
        b"HTTP/1.0 103 Early Hints\r\n\r\n" + OK + b"no colon\r\nContent-Length: 2\r\n\r\nok",
        CHUNKED + b"2\r\nok\r\n0\r\nno colon\r\n\r\n",
        CHUNKED + b"2\r\nok\r\n0\r\nX-Trailer: x\r\nX y: 1\r\n\r\n",
        CHUNKED + b"1\r\no\r\n1;name=value\r\nk\r\n0\r\nX-Trailer: x\r\n\r\n",
    ],
)
def test_what_breaks_the_grammar_without_harm_is_read(served: bytes) -> None:
    response = fetch([served])
    assert response.body == b"ok" and response.status == 200
    assert b"X-Interim" not in response.headers and b"X-Trailer" not in response.headers


@pytest.mark.parametrize("coding", [b"identity", b"gzip", b"xchunked", b"chunked, gzip", b"gzip, chunked"])
def test_a_body_in_another_coding_is_refused_as_by_scrapys_handler(coding: bytes) -> None:
    served = OK + b"Transfer-Encoding: " + coding + b"\r\nContent-Length: 2\r\n\r\nok"
    with pytest.raises(DownloadFailedError, match="transfer coding"):
        fetch([served])


@pytest.mark.parametrize(
    ("served", "kept"),
    [
        (OK + b"\r\n", True),
        (OK + b"Content-Length: 5\r\n\r\n", True),
        (OK + b"Transfer-Encoding: gzip\r\n\r\n", True),
        (CHUNKED, True),
        (OK + b"Connection: x, Close\r\n\r\n", False),
        (OK + b"Proxy-Connection: close\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\n\r\n", False),
        (b"HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\n" + OK + b"\r\n", False),
        (OK + b"\r\nok", False),
        (CHUNKED + b"2a\r\n", False),
        (CHUNKED + b"2a", False),
    ],
)
def test_after_head_the_connection_is_kept_where_both_go_on_and_nothing_follows(served: bytes, kept: bool) -> None:
    async def main() -> None:
        async with Server([served, answer(b"")], [answer(b"")]) as server, handler() as ours:
            for _ in range(2):
                assert (await ours.download_request(Request(server.url, method="HEAD"))).status == 200
            assert server.opened == 2 - kept

    run(main())


@pytest.mark.parametrize("length", [b"", b"x", b"2, 3", b"2\r\nContent-Length: 3", b"9" * 30])
@pytest.mark.parametrize(("method", "status"), [("HEAD", b"200 OK"), ("GET", b"204 No Content"), ("GET", b"304")])
def test_a_length_that_is_none_does_no_harm_where_no_body_follows(method: str, status: bytes, length: bytes) -> None:
    response = fetch([b"HTTP/1.1 " + status + b"\r\nContent-Length: " + length + b"\r\nX: y\r\n\r\n"], method=method)
    assert (response.status, response.headers["X"]) == (int(status[:3]), b"y")
    said = length.split(b"\r\nContent-Length: ") if method == "HEAD" else [b"0"]  # to HEAD it tells of the page
    assert response.headers.getlist("Content-Length") == said


@pytest.mark.parametrize("limit", [1000, 0])
def test_a_length_beyond_all_measure_is_too_large_or_a_loss(limit: int) -> None:
    with pytest.raises(DownloadCancelledError if limit else ResponseDataLossError):
        fetch([OK + b"Content-Length: " + b"9" * 30 + b"\r\n\r\nok"], meta={"download_maxsize": limit})


def test_white_space_around_a_value_is_no_part_of_it() -> None:
    response = fetch([OK + b"X: \t a b \t\r\nContent-Encoding: gzip \r\nContent-Length: 2 \r\n\r\nok"])
    assert (response.headers["X"], response.headers["Content-Encoding"], response.body) == (b"a b", b"gzip", b"ok")


@pytest.mark.parametrize("status", [b"000", b"099", b"-1", b"20", b"2000"])
def test_a_status_that_is_none_is_the_spiders_as_with_scrapys_handler(status: bytes) -> None:
    response = fetch([b"HTTP/1.1 " + status + b" x\r\nContent-Length: 2\r\n\r\nok"])
    assert (response.status, response.body) == (int(status), b"ok")


@pytest.mark.parametrize(
    "before",
    [
        b"HTTP/1.1 103 Early Hints\r\nno colon\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" + OK + b"no colon\r\n",
        b"HTTP/1.0 100 Continue\r\n\r\n" + OK,
        b"HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\n" + OK,
    ],
)
def test_every_split_of_a_head_to_be_mended_is_read_alike(before: bytes) -> None:
    whole = before + b"X: y\r\nContent-Length: 2\r\n\r\nok"

    async def main() -> None:
        for place in range(1, len(whole)):
            connection = Connection(ROUTE, Pool(8, 8))
            wire = Wire(connection)
            load = Load(Request("http://h.example/"), Crawler(Spider, {}), (0, 0, True))
            connection.start(load, b"", b"", None)
            connection.data_received(whole[:place])
            assert not load.done.done(), place
            connection.data_received(whole[place:])
            await load.done
            response = load.response()
            assert wire.closed and (response.body, response.headers["X"]) == (b"ok", b"y"), place

    run(main())


def test_every_split_of_an_answer_is_read_alike() -> None:
    whole = (
        b"HTTP/1.1 100 Continue\r\n\r\n" + CHUNKED.replace(b"\r\n\r\n", b"\r\nX: y\r\n\r\n") + b"2\r\nok\r\n0\r\n\r\n"
    )

    async def main() -> None:
        for place in range(1, len(whole)):

            async def write(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, place: int = place) -> None:
                writer.write(whole[:place])
                await writer.drain()
                await asyncio.sleep(0)
                writer.write(whole[place:])

            async with Server([write, answer(b"next")]) as server, handler() as ours:
                response = await ours.download_request(Request(server.url))
                assert (response.body, response.headers.getlist("X")) == (b"ok", [b"y"]), place
                assert (await ours.download_request(Request(server.url))).body == b"next", place
                assert server.opened == 1

    run(main())


def test_lines_that_go_on_keep_their_white_space_whether_mended_or_not() -> None:
    folded = b"X-Folded: a\r\n\tb\r\n  c\r\nContent-Length: 2\r\n\r\nok"
    for served in (OK + folded, OK + b"no colon\r\n" + folded):
        assert fetch([served]).headers["X-Folded"] == b"a\tb  c"


def test_a_head_full_of_returns_is_mended_in_no_time() -> None:
    padding = b"no colon\r\nX-Padding: " + b"\r" * 16_000 + b"x\r\n"
    response = fetch([OK + padding + b"X: y\r\nContent-Length: 2\r\n\r\nok"])
    assert (response.body, response.headers["X"]) == (b"ok", b"y")
