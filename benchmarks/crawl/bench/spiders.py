"""The spider that every system runs: titles, and all links."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.http import Response
from scrapy.linkextractors import LinkExtractor


class Walk(scrapy.Spider):
    name = "walk"
    links = LinkExtractor()

    async def start(self) -> AsyncIterator[Any]:
        for place in range(self.settings.getint("BENCH_SEEDS", 100)):
            yield scrapy.Request(f"http://h{place:04d}.example/")

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "title": response.css("title::text").get()}
        for link in self.links.extract_links(response):
            yield scrapy.Request(link.url)
