"""Pages that say `nofollow`, `noindex`, `noarchive`: whole crawls, with stores and without."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_ubi.policy.politeness.page_robots import PAGE_ROBOTS
from scrapy_ubi.spiders import UbiSpider
from tests.support.crawls import agent_of, crawl, items_of, total
from tests.support.site import Page, Site

HOST = "http://h0.example"
AGENT = {"USER_AGENT": "mybot/1.0 (+http://h0.example/bot)"}
SAYS = {
    "header": Page("<a href=/header-link>", headers={"X-Robots-Tag": "mybot: nofollow"}),
    "meta": Page("<head><META NAME='Robots' CONTENT='noindex, NoFollow'></head><a href=/meta-link>"),
    "own": Page("<head><meta name=mybot content=none></head><a href=/own-link>"),
    "other": Page("<head><meta name=googlebot content=none></head><a href=/other-link>"),
    "comment": Page("<head><!-- <meta name=robots content=none> --></head><a href=/comment-link>"),
    "late": Page("<head></head><p>robots: <a href=/late-link>nofollow</a>"),
    "archive": Page("<a href=/archive-link>", headers={"X-Robots-Tag": "noarchive"}),
}
LEFT_OUT = {"header", "meta", "own"}


class Ordinary(Spider):
    name = "pages"
    start_urls = tuple(f"{HOST}/{name}" for name in SAYS)

    def parse(self, response: Response) -> Iterator[Any]:
        yield f"{response.url} {PAGE_ROBOTS in response.meta}"
        for link in response.css("a::attr(href)").getall():
            yield Request(response.urljoin(link), meta=dict(response.meta))


class Plain(UbiSpider):
    name = "pages"
    start_urls = Ordinary.start_urls

    def parse(self, response: Response) -> Iterator[Any]:
        yield response.url
        yield self.links(response)


def build(site: Site) -> None:
    for name, page in SAYS.items():
        headers = {"Content-Type": "text/html", **page.headers}
        site.page(f"{HOST}/{name}", Page(f"<title>{name}</title>{page.body!s}", headers=headers))
        site.page(f"{HOST}/{name}-link", Page("<p>linked", headers={"Content-Type": "text/html"}))


@pytest.mark.parametrize("spider", [Ordinary, Plain])
def test_links_of_pages_that_say_nofollow_are_left_out_where_that_is_asked_for(
    site: Site, spider: type[Spider]
) -> None:
    build(site)
    tallies = []

    def listen(crawlers: list[Crawler]) -> None:
        for crawler in crawlers:
            crawler.signals.connect(
                lambda spider: tallies.append(agent_of(spider).node.crawl.tally), signals.spider_opened, weak=False
            )

    outcomes = crawl(spider, site.proxy, 2, {**AGENT, "UBI_NOFOLLOW": True}, listen)
    followed = {url.removeprefix(f"{HOST}/").removesuffix("-link") for url in site.urls() if url.endswith("-link")}
    assert followed == set(SAYS) - LEFT_OUT
    assert total(outcomes, "ubi/page_robots/links_left_out") == total(outcomes, "ubi/page_robots/nofollow") == 3
    assert total(outcomes, "ubi/page_robots/noindex") == 2 and total(outcomes, "ubi/page_robots/noarchive") == 1
    assert len(items_of(outcomes)) == 2 * len(SAYS) - 3, "items are taken"
    noted: Counter[str] = sum((tally.noted for tally in tallies), Counter())
    assert noted == {"page_robots/nofollow": 3, "page_robots/noindex": 2, "page_robots/noarchive": 1}


def test_without_it_and_without_a_store_nothing_is_looked_at(site: Site) -> None:
    build(site)
    outcome = crawl(Ordinary, site.proxy, settings=AGENT)[0]
    assert len(outcome.items) == 2 * len(SAYS) and not any("True" in item for item in outcome.items)
    assert not any("page_robots" in stat for stat in outcome.stats)


@pytest.mark.parametrize("keep", [False, True])
def test_stores_leave_out_what_pages_do_not_want_kept(site: Site, tmp_path: Path, keep: bool) -> None:
    build(site)
    stores = ["warc(noarchive=keep)", "index(noindex=keep)"] if keep else ["warc", "index"]
    outcomes = crawl(Ordinary, site.proxy, settings={**AGENT, "UBI_STORES": stores, "UBI_DIR": str(tmp_path)})
    texts = "".join(path.read_text() for path in tmp_path.rglob("*.ndjson"))
    warc = b"".join(gzip.decompress(path.read_bytes()) for path in tmp_path.rglob("*.warc.gz")).decode()
    pages = warc.split("WARC/1.1\r\n")
    kept = {name for name in SAYS if any(f"WARC-Target-URI: {HOST}/{name}\r\n" in page for page in pages)}
    assert kept == set(SAYS) - (set() if keep else {"archive"})
    assert {name for name in SAYS if f'"{HOST}/{name}"' in texts} == set(SAYS) - (set() if keep else {"meta", "own"})
    assert "ubi-page-robots: noindex, nofollow\r\n" in warc and ("ubi-page-robots: noarchive\r\n" in warc) == keep
    assert len(site.urls()) == 2 * len(SAYS) + (f"{HOST}/robots.txt" in site.urls()), "links are followed"
    assert total(outcomes, "ubi/page_robots/noindex") == 2
