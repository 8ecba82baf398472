"""Compressed pages are unpacked in one step where that gives the same, and by Scrapy where it does not."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import brotli
import pytest
from scrapy import Request, signals
from scrapy.downloadermiddlewares import httpcompression
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from scrapy_ubi.adapter.requests import decompress
from scrapy_ubi.adapter.requests.decompress import at_once, zstd
from scrapy_ubi.fast.unpacking import FastUnpacking

Unpack = Callable[..., bytes]

PAGE = b"<html>" + b"words and more words " * 5000
WHOLE = [("gzip", gzip.compress(PAGE)), ("br", brotli.compress(PAGE))]


@pytest.mark.parametrize(("encoding", "body"), WHOLE, ids=["gzip", "br"])
@pytest.mark.parametrize("inflate", [decompress.inflate, zlib], ids=["installed", "zlib"])
def test_a_sound_stream_in_one_step_and_no_more_than_is_wanted(
    encoding: str, body: bytes, inflate: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decompress, "inflate", inflate)
    assert at_once(encoding, body, 1 << 20) == PAGE
    assert at_once(encoding, body, 1000) == PAGE[:1000]


@pytest.mark.parametrize("inflate", [decompress.inflate, zlib], ids=["installed", "zlib"])
def test_what_is_odd_is_left_to_others(inflate: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompress, "inflate", inflate)
    body = gzip.compress(PAGE)
    broken = body[:-8] + b"\0\0\0\0" + body[-4:]
    for odd in (b"", b"no gzip", body[:-20], body + gzip.compress(b"second member"), broken):
        assert at_once("gzip", odd, 1 << 20) is None
    assert at_once("br", brotli.compress(PAGE)[:-5], 1 << 20) is None
    assert at_once("unknown", body, 1 << 20) is None


def unpacked(middleware: HttpCompressionMiddleware, body: bytes, encoding: str, most: int = 0) -> bytes:
    """What a middleware makes of a body, as a spider sees it."""
    request = Request("http://a.example/", meta={"download_maxsize": most})
    response = Response(request.url, headers={"Content-Encoding": encoding}, body=body)
    found = middleware.process_response(request, response)
    assert isinstance(found, Response)
    return found.body


@pytest.fixture
def unpack() -> Unpack:
    """By the middleware of a crawl with the extension."""
    crawler = get_crawler()
    middleware = HttpCompressionMiddleware.from_crawler(crawler)
    crawler.engine = SimpleNamespace(downloader=None)  # type: ignore[assignment]
    crawler.get_downloader_middleware = lambda cls: middleware  # type: ignore[method-assign]
    extension = FastUnpacking.from_crawler(crawler)
    crawler.signals.send_catch_log(signals.spider_opened, spider=None)
    assert extension is not None  # signals hold no receiver
    return partial(unpacked, middleware)


def test_scrapys_middleware_of_a_crawl_asks_for_it(unpack: Unpack, monkeypatch: pytest.MonkeyPatch) -> None:
    body = gzip.compress(PAGE)
    assert unpack(body + gzip.compress(b"more"), "gzip") == PAGE + b"more", "by Scrapy"
    assert unpack(gzip.compress(body), "gzip, gzip") == PAGE
    assert unpack(body, "gzip", len(PAGE)) == PAGE
    with pytest.raises(IgnoreRequest, match="exceeded DOWNLOAD_MAXSIZE"):
        unpack(body, "gzip", len(PAGE) - 1)
    monkeypatch.setattr(httpcompression, "gunzip", None)  # others' crawls are as they were
    assert unpack(body, "gzip") == PAGE
    with pytest.raises(TypeError):
        unpack(body[:-20], "gzip")


@pytest.mark.parametrize("inflate", [decompress.inflate, zlib], ids=["installed", "zlib"])
def test_whatever_comes_is_unpacked_as_by_scrapy(
    inflate: object, unpack: Unpack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decompress, "inflate", inflate)
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    scrapys = partial(unpacked, HttpCompressionMiddleware.from_crawler(get_crawler()))
    compress: dict[str, Callable[[bytes], bytes]] = {
        "gzip": gzip.compress,
        "br": brotli.compress,
        "zstd": zstd.compress,
    }
    for _ in range(300):
        encoding = draw.choice(sorted(compress))
        page = draw.randbytes(draw.choice([0, 1, 300])) * draw.choice([1, 300])
        body = spoiled(draw, compress[encoding](page))
        assert result(unpack, body, encoding) == result(scrapys, body, encoding), (encoding, body)


def result(unpack: Unpack, body: bytes, encoding: str) -> object:
    try:
        return unpack(body, encoding)
    except Exception as error:  # noqa: BLE001 - the same one, whichever
        return type(error), str(error)


def spoiled(draw: random.Random, body: bytes) -> bytes:
    """A compressed body, whole or in one of the ways in which bodies are broken."""
    at = draw.randrange(len(body))
    kinds = (body, body[:at], body + draw.randbytes(9), body + body, body + bytes(20))
    flipped = body[:at] + bytes([body[at] ^ 1 << draw.randrange(8)]) + body[at + 1 :]
    return draw.choice([*kinds, flipped])
