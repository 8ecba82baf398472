"""Crawls whose pages are visited again when a sitemap says that they have changed (UBI_RECRAWL = "sitemap")."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from scrapy import Spider
from scrapy.http import Response

from tests.support.crawls import Outcome, crawl
from tests.support.site import Page, Site

HOST = "http://a.example"
PAGES = ("one", "two", "three")


class Walk(Spider):
    """Only asks for the home page: the others are in the sitemap."""

    name = "walk"
    start_urls = (f"{HOST}/",)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "visit": response.meta["ubi_visit"]}


def crawled(site: Site, when: float, settings: dict[str, Any]) -> Outcome:
    """A site whose pages change all the time, and whose sitemap says so, or always the same time (`when`)."""
    site.page(f"{HOST}/robots.txt", f"Sitemap: {HOST}/sitemap.xml")
    site.page(f"{HOST}/", lambda visit: Page(f"home {time.time()}"))

    def sitemap(visit: Any) -> Page:
        changed = datetime.fromtimestamp(when or time.time(), UTC).isoformat()
        rows = "".join(f"<url><loc>{HOST}/{page}</loc><lastmod>{changed}</lastmod></url>" for page in PAGES)
        ns = "http://www.sitemaps.org/schemas/sitemap/0.9"
        return Page(f'<urlset xmlns="{ns}">{rows}<!-- {time.time()} --></urlset>', headers={"Content-Type": "text/xml"})

    site.page(f"{HOST}/sitemap.xml", sitemap)
    for page in PAGES:
        site.page(f"{HOST}/{page}", lambda visit: Page(f"page {time.time()}"))
    (outcome,) = crawl(
        Walk, site.proxy, 1,
        {
            "ROBOTSTXT_OBEY": True, "UBI_SITEMAPS": 100, "USER_AGENT": "walk", **settings,
        },
    )  # fmt: skip
    assert outcome.reason == "finished"
    return outcome


def test_a_believed_sitemap_brings_visits_before_their_time(site: Site) -> None:
    outcome = crawled(site, 0.0, {"UBI_RECRAWL": "sitemap(2s, 1s, 15s, rounds=6)"})
    assert outcome.stats["ubi/recrawl/announced"] >= 1
    assert {item["url"] for item in outcome.items} == {f"{HOST}/", *(f"{HOST}/{page}" for page in PAGES)}
    assert max(item["visit"] for item in outcome.items) >= 5


def test_one_that_says_nothing_of_changes_brings_none(site: Site) -> None:
    outcome = crawled(site, 1e9, {"UBI_RECRAWL": "sitemap(2s, 1s, 15s, rounds=3)"})
    assert "ubi/recrawl/announced" not in outcome.stats
    assert all(count == 4 for url, count in site.urls().items() if "robots" not in url)
