"""A little web of eight hosts, and the spider that walks it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import Response, TextResponse
from scrapy.linkextractors import LinkExtractor

from tests.support.site import Site, links

HOSTS = [f"http://h{number}.example" for number in range(8)]


AGENTS = pytest.mark.parametrize("agents", [1, 3])


class Walk(Spider):
    """Follows every link, yields an item a page."""

    name = "walk"
    start_urls = (f"{HOSTS[0]}/",)

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response, TextResponse)
        yield {"url": response.url, "depth": response.meta.get("depth", 0)}
        for link in LinkExtractor().extract_links(response):
            yield Request(link.url)


def ring(site: Site) -> set[str]:
    """Eight hosts of three pages, each linking to its own pages and to the next host."""
    urls = set()
    for number, host in enumerate(HOSTS):
        following = HOSTS[(number + 1) % len(HOSTS)]
        pages = [f"{host}/", f"{host}/a", f"{host}/b"]
        for page in pages:
            site.page(page, links(*pages, f"{following}/"))
        urls.update(pages)
    return urls


PLAIN = {"ADDONS": {}}
