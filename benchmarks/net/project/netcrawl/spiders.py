"""The spider that every system runs: titles, and all links."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.http import Response
from scrapy.linkextractors import LinkExtractor


class Seeded(scrapy.Spider):
    """Begins at the home pages of the first hosts: NET_SEEDS of them, NET_URL with a number for each."""

    async def start(self) -> AsyncIterator[Any]:
        for number in range(self.settings.getint("NET_SEEDS")):
            yield scrapy.Request(self.settings["NET_URL"] % number)


class Walk(Seeded):
    """As one writes it for Scrapy."""

    name = "walk"
    extractor = LinkExtractor()

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "title": response.css("title::text").get()}
        for link in self.extractor.extract_links(response):
            yield scrapy.Request(link.url)
