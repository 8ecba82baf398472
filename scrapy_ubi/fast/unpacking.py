"""Compressed pages are unpacked in one step, by the fastest library that is installed.

Scrapy's HttpCompressionMiddleware unpacks gzip by Python's `GzipFile`, in steps of 64 KiB that are put together again.
Here what it asks for one encoding is tried in one step first (`adapter.requests.decompress.at_once`): where that gives
the whole page, within DOWNLOAD_MAXSIZE, it is taken; whatever is odd about a stream (a wrong check sum, an end that is
missing, several members, a bomb) is Scrapy's matter, as before.

| private name | used for |
| --- | --- |
| `HttpCompressionMiddleware._decode` | asked for each encoding of a body; of this crawl's middleware only |
"""

from __future__ import annotations

from typing import Any, Self

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware

from scrapy_ubi.adapter.requests.decompress import at_once
from scrapy_ubi.adapter.scrapy_private.engines import engine_of

MOST = 1 << 30  # bytes, where DOWNLOAD_MAXSIZE is 0


class FastUnpacking:
    """An extension of each crawl."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        crawler.signals.connect(self._opened, signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def _opened(self) -> None:
        if not hasattr(engine_of(self._crawler), "downloader"):  # there is none in tests of components
            return
        middleware: Any = self._crawler.get_downloader_middleware(HttpCompressionMiddleware)
        kind = type(middleware)
        if kind is not HttpCompressionMiddleware:  # also where there is none
            return
        scrapys = middleware._decode

        def decode(body: bytes, encoding: bytes, max_size: int) -> bytes:
            most = max_size or MOST
            found = at_once(encoding.decode("latin-1"), body, most)
            if found is not None and len(found) < most:
                return found
            del found  # not beside what comes out a second time
            return bytes(scrapys(body, encoding, max_size))

        middleware._decode = decode
