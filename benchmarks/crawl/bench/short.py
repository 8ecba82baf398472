"""The same spider by the short path: all links of a page as one object. Plain Scrapy's processes do not import this."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scrapy.http import HtmlResponse, Response

from bench.spiders import Seeded
from scrapy_ubi import UbiSpider


class Short(Seeded, UbiSpider):
    name = "short"

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "title": response.css("title::text").get()}
        yield self.links(response)


class Lexbor(Seeded, UbiSpider):
    """The same with its fields by lexbor as well: a page is parsed once, and never by lxml."""

    name = "lexbor"

    def parse(self, response: Response) -> Iterator[Any]:
        if isinstance(response, HtmlResponse):
            title = self.lexbor(response).css_first("title")
            yield {"url": response.url, "title": title and title.text()}
        yield self.links(response)
