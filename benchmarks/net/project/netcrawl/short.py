"""The same spider by the short path: all links of a page as one object. Plain Scrapy's processes do not import this."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scrapy.http import Response

from netcrawl.spiders import Seeded
from scrapy_ubi import UbiSpider


class Short(Seeded, UbiSpider):
    name = "short"

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "title": response.css("title::text").get()}
        yield self.links(response)
