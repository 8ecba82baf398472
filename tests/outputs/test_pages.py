"""Outputs of whole crawls: what is collected are the items that pipelines have passed, each page's once."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import DropItem
from scrapy.http import Response

from scrapy_ubi import item_id
from scrapy_ubi.outputs.writer import Writer
from tests.docs.test_blocks import names_in
from tests.outputs.kept import collected
from tests.support.crawls import Outcome, crawl
from tests.support.site import Page, Site, links

HOME = "http://a.example/"


class Walk(Spider):
    """Everything that gives items."""

    name = "walk"
    asked = 0

    async def start(self) -> Any:
        yield {"start": 1}
        yield {"start": 1}
        yield {"start": 2}
        yield Request(HOME, errback=self.failed)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "key": response.meta["ubi_key"]}
        yield {"of": response.url, "drop": True}
        yield {"of": response.url, "second": True}
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href, errback=self.failed, meta=dict(response.meta))
        if response.url == HOME:
            yield Request("data:,hello", self.local)
            for number in range(2):
                yield Request("http://b.example/form", self.form, method="POST", body=f"{number}")
                yield Request("http://b.example/again", self.form, dont_filter=True, priority=number)
            yield Request("http://b.example/ask", self.asks)

    def local(self, response: Response) -> Iterator[Any]:
        yield {"local": response.url}

    def form(self, response: Response) -> Iterator[Any]:
        yield {"form": response.url}

    def asks(self, response: Response) -> Iterator[Any]:
        self.asked += 1
        yield {"asked": self.asked}
        if self.asked < 3:
            yield get_retry_request(response.request, spider=self, reason="once more", max_retry_times=5)

    def failed(self, failure: Any) -> Iterator[Any]:
        yield {"failed": failure.request.url}


class Pipeline:
    """Drops some items, makes other objects of some, and asks for their names."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        crawler.names = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Pipeline:
        return cls(crawler)

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        self.crawler.names[json.dumps(item)] = item_id(self.crawler, item)
        if item.get("drop"):
            raise DropItem("not wanted")
        return {**item, "passed": True} if "second" in item else item


def crawled(site: Site, place: Path, agents: int = 1, **settings: Any) -> tuple[list[Outcome], list[Path]]:
    paths = [place / f"a{number}" for number in range(agents)]
    usual = {"UBI_STORES": ["items"], "ITEM_PIPELINES": {Pipeline: 1}, "RETRY_TIMES": 1}
    return crawl(Walk, site.proxy, agents, {**usual, **settings}, place=place), paths


def web(site: Site) -> None:
    urls = [f"http://h{number % 4}.example/{number}" for number in range(12)]
    site.page(HOME, links(*urls, "http://h0.example/missing", "http://h1.example/down", "http://h2.example/moved"))
    for url in urls:
        site.page(url, links(HOME, *urls))
    site.page("http://h1.example/down", Page("", 503))
    site.redirect("http://h2.example/moved", urls[0])
    for path in ("form", "again", "ask"):
        site.page(f"http://b.example/{path}", "ok")


def as_counter(lines: list[str]) -> Counter[str]:
    return Counter(json.dumps(json.loads(line), sort_keys=True) for line in lines)


@pytest.mark.parametrize("lean", [True, False])
@pytest.mark.parametrize("agents", [1, 3])
def test_what_is_collected_are_the_items_that_were_scraped(site: Site, tmp_path: Path, agents: int, lean: bool) -> None:
    web(site)
    outcomes, paths = crawled(site, tmp_path, agents, UBI_LEAN=lean)
    found = as_counter(collected(*paths))
    scraped = Counter(json.dumps(item, sort_keys=True) for one in outcomes for item in one.items)
    assert found == scraped
    assert found['{"start": 1}'] == 2 and found['{"form": "http://b.example/form"}'] == 2
    assert found['{"form": "http://b.example/again"}'] == 2 and found['{"local": "data:,hello"}'] == 1
    assert sum("asked" in text for text in found) == 3
    assert not any("drop" in text for text in found) and sum("passed" in text for text in found) == 13
    assert found['{"failed": "http://h1.example/down"}'] == 1 == found['{"failed": "http://h0.example/missing"}']
    keys = {json.loads(text)["url"]: json.loads(text)["key"] for text in found if "key" in text}
    assert len(set(keys.values())) == len(keys) == 13
    names = {name: json.loads(text) for one in outcomes for text, name in one.crawler.names.items() if name}
    assert {name for name, item in names.items() if "second" in item} == {f"{key}-2" for key in keys.values()}


def test_names_are_the_same_at_every_agent(site: Site, tmp_path: Path) -> None:
    web(site)
    _, one = crawled(site, tmp_path / "one", 1)
    _, three = crawled(site, tmp_path / "three", 3)
    assert collected(*one) == collected(*three)


def test_without_stores_nothing_is_written_and_meta_is_as_it_was(site: Site, tmp_path: Path) -> None:
    site.page(HOME, "x")

    class Plain(Spider):
        name = "plain"
        start_urls = (HOME,)

        def parse(self, response: Response) -> Iterator[Any]:
            yield {"meta": sorted(response.meta)}

    (outcome,) = crawl(Plain, site.proxy, settings={"UBI_DIR": str(tmp_path)}, with_crawlers=lambda _: None)
    assert not any("ubi_key" in item["meta"] for item in outcome.items)
    assert not (tmp_path / "out").exists()


def test_with_too_much_waiting_no_request_is_taken(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    web(site)
    plain = Writer.__init__

    def little(self: Writer, *arguments: Any) -> None:
        plain(self, *arguments)
        self.most = 100  # bytes

    monkeypatch.setattr(Writer, "__init__", little)
    (outcome,), paths = crawled(site, tmp_path)
    assert outcome.reason == "finished" and outcome.stats["ubi/store/waited"] > 0
    assert len(collected(*paths)) == len(outcome.items)


def test_a_setting_that_does_not_hold_stops_the_start(site: Site, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"UBI_STORES has 'itmes', which names the store 'itmes': the stores are"):
        crawled(site, tmp_path, UBI_STORES="itmes")


def test_a_pipeline_with_upserts_is_as_the_page_says(site: Site, tmp_path: Path) -> None:
    """The crawl is made twice: the second one, as after a crash, changes nothing."""
    web(site)
    pipeline = names_in("docs/how-to/items-into-a-database.md", "class SqlitePipeline")["SqlitePipeline"]
    database = tmp_path / "items.sqlite"
    rows = []
    for number in range(2):
        crawled(site, tmp_path / f"{number}", ITEM_PIPELINES={pipeline: 1}, ITEMS_DATABASE=str(database))
        with closing(sqlite3.connect(database)) as there:
            rows.append(there.execute("SELECT id, item FROM items ORDER BY id").fetchall())
    assert rows[0] == rows[1] and len(rows[0]) > 40
