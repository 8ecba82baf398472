"""A crawl with the store `index`, in this process: what is found, and what is left out and counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse, Response

from tests.outputs.index.test_search import command
from tests.support.crawls import crawl
from tests.support.site import Page, Site, links

HOME = "http://a.example/"


class Walk(Spider):
    """Every link."""

    name = "walk"
    start_urls = (HOME,)  # type: ignore[assignment]

    def parse(self, response: Response) -> Iterator[Any]:
        if isinstance(response, HtmlResponse):
            for href in response.css("a::attr(href)").getall():
                yield response.follow(href)


def test_a_crawl_is_searched(site: Site, tmp_path: Path) -> None:
    site.page(HOME, "<title>Home</title>" + links("http://b.example/one", "http://b.example/bytes"))
    site.page("http://b.example/one", "<p>a word that is rare</p>" + links(HOME))
    site.page("http://b.example/bytes", Page(bytes(range(256)), headers={"Content-Type": "image/png"}))

    def prepare(crawlers: list[Crawler]) -> None:
        crawlers[0].settings.set("UBI_DIR", str(tmp_path / "a"), "cmdline")

    (outcome,) = crawl(Walk, site.proxy, settings={"UBI_STORES": "index"}, with_crawlers=prepare)
    stats = outcome.crawler.stats
    assert stats is not None
    assert stats.get_value("ubi/store/index/pages") == 2 and stats.get_value("ubi/store/index/left_out") == 1
    (found,) = command("search", "rare", "--dir", str(tmp_path / "a")).document["results"]
    assert (found["url"], found["status"], len(found["digest"])) == ("http://b.example/one", 200, 40)
    (home,) = command("search", "home", "--dir", str(tmp_path / "a")).document["results"]
    assert home["title"] == "Home"
