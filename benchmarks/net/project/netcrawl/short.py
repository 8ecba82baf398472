"""The same spider by the short path: all links of a page as one object. Plain Scrapy's processes do not import this."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scrapy.http import HtmlResponse

from netcrawl.spiders import Seeded
from scrapy_ubi import UbiSpider


class Short(Seeded, UbiSpider):
    """Fields by lexbor, which has parsed the page for its links."""

    name = "short"

    def parse(self, response: HtmlResponse) -> Iterator[Any]:
        title = self.lexbor(response).css_first("title")
        yield {"url": response.url, "title": title.text() if title else None}
        yield self.links(response)


class Selecting(Seeded, UbiSpider):
    """Fields as Scrapy's users write them, by lxml."""

    name = "selecting"

    def parse(self, response: HtmlResponse) -> Iterator[Any]:
        yield {"url": response.url, "title": response.css("title::text").get()}
        yield self.links(response)
