"""Compressed pages are unpacked in one step where that gives the same, and by Scrapy where it does not."""

from __future__ import annotations

import gzip
import zlib

import brotli
import pytest
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.utils.test import get_crawler

from scrapy_ubi.fast.unpacking import FastUnpacking
from scrapy_ubi.requests import decompress
from scrapy_ubi.requests.decompress import at_once

PAGE = b"<html>" + b"words and more words " * 5000
WHOLE = [("gzip", gzip.compress(PAGE)), ("br", brotli.compress(PAGE))]


@pytest.mark.parametrize(("encoding", "body"), WHOLE, ids=["gzip", "br"])
@pytest.mark.parametrize("inflate", [decompress._inflate, zlib], ids=["installed", "zlib"])
def test_a_sound_stream_in_one_step_and_no_more_than_is_wanted(
    encoding: str, body: bytes, inflate: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decompress, "_inflate", inflate)
    assert at_once(encoding, body, 1 << 20) == PAGE
    assert at_once(encoding, body, 1000) == PAGE[:1000]


@pytest.mark.parametrize("inflate", [decompress._inflate, zlib], ids=["installed", "zlib"])
def test_what_is_odd_is_left_to_others(inflate: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompress, "_inflate", inflate)
    body = gzip.compress(PAGE)
    broken = body[:-8] + b"\0\0\0\0" + body[-4:]
    for odd in (b"", b"no gzip", body[:-20], body + gzip.compress(b"second member"), broken):
        assert at_once("gzip", odd, 1 << 20) is None
    assert at_once("br", brotli.compress(PAGE)[:-5], 1 << 20) is None
    assert at_once("unknown", body, 1 << 20) is None


def test_scrapys_middleware_of_a_crawl_asks_for_it() -> None:
    crawler = get_crawler()
    middleware = HttpCompressionMiddleware.from_crawler(crawler)
    crawler.get_downloader_middleware = lambda cls: middleware  # type: ignore[method-assign]
    FastUnpacking.from_crawler(crawler)._opened()
    body = gzip.compress(PAGE)
    assert middleware._decode(body, b"gzip", 0) == PAGE
    assert middleware._decode(body + gzip.compress(b"more"), b"gzip", 0) == PAGE + b"more"
    with pytest.raises(ValueError, match="exceeded"):
        middleware._decode(body, b"gzip", 1000)
    assert HttpCompressionMiddleware._decode is not middleware._decode
