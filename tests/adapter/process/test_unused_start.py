"""A `start_requests` that this Scrapy does not call is told at the start."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import scrapy
from scrapy.spiders import CrawlSpider, SitemapSpider

from scrapy_ubi import UbiSpider
from scrapy_ubi.adapter.process.start_remarks import spider_remarks


class Old(scrapy.Spider):
    name = "old"

    def start_requests(self) -> Iterator[Any]:
        yield scrapy.Request("http://a.example/")


class OfOld(Old):
    """Derived of it."""


class Both(Old):
    async def start(self) -> AsyncIterator[Any]:
        for request in self.start_requests():
            yield request


class Calling(Old):
    """Of a library whose `start` calls it."""

    async def start(self) -> AsyncIterator[Any]:
        for request in self.start_requests():
            yield request


class OfCalling(Calling):
    def start_requests(self) -> Iterator[Any]:
        yield scrapy.Request("http://b.example/")


@pytest.mark.skipif("start_requests" in scrapy.Spider.start.__code__.co_names, reason="this Scrapy's start() calls it")
@pytest.mark.parametrize("spider", [Old, OfOld])
def test_what_is_not_called_is_told(spider: type[scrapy.Spider]) -> None:
    (sentence,) = spider_remarks(type(spider()))
    assert sentence.startswith(f"{__name__}.{spider.__qualname__} has no start()")


@pytest.mark.parametrize("spider", [scrapy.Spider, CrawlSpider, SitemapSpider, UbiSpider, Both, Calling, OfCalling])
def test_nothing_is_told_of_others(spider: type[scrapy.Spider]) -> None:
    assert list(spider_remarks(type(spider("x")))) == []
