"""The spider that every system runs: titles, and all links."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.http import Response
from scrapy.linkextractors import LinkExtractor


class Seeded(scrapy.Spider):
    """Begins at the home pages of the first hosts."""

    @property
    def part(self) -> tuple[int, int]:
        """Which hosts to keep to, where crawls that do not share share the web: number modulo how many."""
        number, parts = self.settings.get("BENCH_PART", "0 1").split()
        return int(number), int(parts)

    async def start(self) -> AsyncIterator[Any]:
        number, parts = self.part
        for place in range(number, self.settings.getint("BENCH_SEEDS", 100), parts):
            yield scrapy.Request(f"http://h{place:04d}.example/")


class Walk(Seeded):
    """As one writes it for Scrapy."""

    name = "walk"
    extractor = LinkExtractor()

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "title": response.css("title::text").get()}
        number, parts = self.part
        for link in self.extractor.extract_links(response):
            if parts == 1 or int(link.url[8:12]) % parts == number:
                yield scrapy.Request(link.url)
