"""Answers with bytes changed, cut and torn apart at random: every load ends, with a response or Scrapy's exceptions."""

from __future__ import annotations

import asyncio
import os
import random

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import DownloadFailedError, ResponseDataLossError
from scrapy.http import Response

from scrapy_ubi.fast.http.connection import Connection, Unanswered
from scrapy_ubi.fast.http.load import Load
from scrapy_ubi.fast.http.pool import Pool
from tests.fast.http.raw import ROUTE, Wire

SEED = int(os.environ.get("HTTP_SEED") or random.randrange(10**9))
CASES = 3000
OK = b"HTTP/1.1 200 OK\r\n"
ANSWERS = [
    OK + b"Content-Type: text/html\r\nContent-Length: 12\r\n\r\n<p>hello</p>",
    OK + b"Transfer-Encoding: chunked\r\n\r\n5;x=y\r\n<p>he\r\n7\r\nllo</p>\r\n0\r\nX-Trailer: x\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Set-Cookie: a=b\r\nContent-Length: 0\r\n\r\n",
    OK + b"Content-Encoding: gzip\r\nConnection: close\r\n\r\nto the end of the connection",
    b"HTTP/1.0 404 Not Found\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nno colon\r\n\r\n" + OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok",
    OK + b"a line without colon\r\nX: folded\r\n value\r\nContent-Length: 2\r\n\r\nok" + OK,
]
PIECES = [
    b"\r\n",
    b"\n",
    b"\r\n\r\n",
    b"\0",
    b"\xff",
    b" ",
    b":",
    b"0",
    b"-1",
    b"Content-Length: 3\r\n",
    b"chunked",
    OK,
]


def mangled(draw: random.Random) -> list[bytes]:
    """An answer, changed, in pieces."""
    data = bytearray(draw.choice(ANSWERS))
    for _ in range(draw.randrange(4)):
        at = draw.randrange(len(data) + 1)
        change = draw.randrange(4)
        if change == 0:
            data[at:at] = draw.choice(PIECES)
        elif change == 1:
            del data[at : at + draw.randrange(8)]
        elif change == 2:
            data[at : at + 1] = bytes([draw.randrange(256)])
        else:
            del data[draw.randrange(len(data) + 1) :]
    places = sorted(draw.randrange(len(data) + 1) for _ in range(draw.randrange(4)))
    return [
        bytes(data[start:end]) for start, end in zip([0, *places], [*places, len(data)], strict=True) if end > start
    ]


async def outcome(crawler: Crawler, draw: random.Random) -> tuple[str, list[bytes]]:
    pieces = mangled(draw)
    pool = Pool(8, 8)
    connection = Connection(ROUTE, pool)
    wire = Wire(connection)
    request = Request("http://h.example/", method=draw.choice(["GET", "GET", "HEAD"]))
    load = Load(request, crawler, (1000, 500, draw.random() < 0.5))
    connection.start(load, b"", b"", None)
    for piece in pieces:
        if not wire.closed:
            connection.data_received(piece)
    assert len(pool) == (not wire.closed and load.done.done()), pieces
    connection.connection_lost(None)
    assert load.done.done(), pieces
    try:
        await load.done
    except (DownloadFailedError, ResponseDataLossError) as error:
        return type(error).__name__, pieces
    assert isinstance(load.response(), Response), pieces
    assert request.method != "HEAD" or not load.response().body, pieces
    return "response", pieces


def test_every_load_ends() -> None:
    print(f"HTTP_SEED={SEED} repeats this")
    draw = random.Random(SEED)
    crawler = Crawler(Spider, {})
    crawler.spider = Spider("fuzz")

    async def main() -> set[str]:
        return {(await outcome(crawler, draw))[0] for _ in range(CASES)}

    assert asyncio.run(main()) == {"response", "DownloadFailedError", "ResponseDataLossError", Unanswered.__name__}
