"""Errors of spiders, pipelines and handlers in whole crawls: the crawl goes on, and each is in the error log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_ubi.adapter.components import ending
from tests.support.crawls import Outcome, crawl
from tests.support.site import Page, Site, links

HOST = "http://h.example"


class Pipeline:
    def process_item(self, item: Any) -> Any:
        if "bad" in item["url"]:
            raise LookupError("bad item")
        return item


class Middleware:
    def process_response(self, request: Request, response: Response) -> Response:
        if "breaks" in response.url:
            raise TypeError("a mistake in a middleware")
        return response


class Breaks(Spider):
    """Goes wrong in every place."""

    name = "breaks"
    start_urls = (f"{HOST}/",)
    custom_settings: ClassVar[dict[str, Any]] = {
        "ITEM_PIPELINES": {Pipeline: 1},
        "DOWNLOADER_MIDDLEWARES": {Middleware: 1},
        "RETRY_ENABLED": False,
    }

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Breaks:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.received, signals.response_received)
        return spider

    def received(self, response: Response) -> None:
        if "handler" in response.url:
            raise ZeroDivisionError

    def parse(self, response: Response) -> Iterator[Any]:
        for path in ("bad", "callback", "handler", "breaks", "fine"):
            yield Request(f"{HOST}/{path}", self.parse_page)
        yield Request(f"{HOST}/missing", errback=self.failed)
        yield Request(f"{HOST}/absent")
        yield Request("http://nowhere.example/")

    def parse_page(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        if "callback" in response.url:
            raise KeyError("price")

    def failed(self, failure: Any) -> None:
        raise AttributeError("in an errback")


def test_every_unanticipated_error_is_in_the_log_and_the_crawl_goes_on(site: Site, tmp_path: Path) -> None:
    site.page(f"{HOST}/", links())
    for path in ("bad", "callback", "handler", "breaks", "fine"):
        site.page(f"{HOST}/{path}", "page")
    log = tmp_path / "agent" / "errors.log"
    (outcome,) = crawl(Breaks, site.proxy, settings={"UBI_DIR": str(tmp_path / "agent")})
    assert outcome.reason == "finished"
    assert sorted(item["url"] for item in outcome.items) == [
        f"{HOST}/{path}" for path in ("callback", "fine", "handler")
    ]
    stats = {name: value for name, value in outcome.stats.items() if name.startswith("ubi/errors/")}
    assert stats == {f"ubi/errors/{where}": 1 for where in ("callback", "download", "elsewhere", "errback", "pipeline")}
    entries = log.read_text()
    for said in (
        f" callback: parse_page of <GET {HOST}/callback>",
        f" errback: failed of <GET {HOST}/missing>",
        f" pipeline: an item (dict) of <GET {HOST}/bad>",
        f" download: <GET {HOST}/breaks> for parse_page",
        " elsewhere: scrapy.utils.signal: Error caught on signal handler",
    ):
        assert entries.count(said) == 1, entries
    assert entries.count("Traceback") >= 5
    assert "in parse_page" in entries and "in process_item" in entries
    assert outcome.stats["ubi/failed/exception/TypeError"] == 1


def broken(site: Site, **settings: Any) -> Outcome:
    """A crawl of 60 pages; the callback raises at each but the first."""

    class Broken(Spider):
        name = "broken"
        start_urls = (f"{HOST}/",)

        def parse(self, response: Response) -> Iterator[Any]:
            if response.url != f"{HOST}/":
                raise KeyError("every time")
            for number in range(60):
                yield Request(f"{HOST}/{number}")

    site.page(f"{HOST}/", "seed")
    for number in range(60):
        site.page(f"{HOST}/{number}", Page("page"))
    (outcome,) = crawl(Broken, site.proxy, settings=settings)
    return outcome


def test_a_burst_of_errors_stops_the_agent_cleanly_and_the_process_ends_with_a_failure(
    site: Site, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended_badly: list[object] = []
    with monkeypatch.context() as patched:
        patched.setattr(ending, "end_badly", ended_badly.append)
        outcome = broken(site, UBI_ERROR_BURST=10)
    assert outcome.reason == "error_burst"
    assert len(ended_badly) == 1, "the exit status says so"
    assert outcome.stats["ubi/done"] < 40
    assert 10 <= outcome.stats["ubi/errors/callback"] < 30
    said = [record.getMessage() for record in caplog.records if "UBI_ERROR_BURST" in record.getMessage()]
    assert len(said) == 1 and "KeyError in a callback: the agent stops" in said[0]


def test_errors_stop_nothing_by_default(site: Site) -> None:
    """As with plain Scrapy: the pages that give items may come after those that fail."""
    outcome = broken(site)
    assert outcome.reason == "finished"
    assert outcome.stats["ubi/errors/callback"] == 60


def test_the_log_is_in_the_agents_directory(site: Site, tmp_path: Path) -> None:
    outcome = broken(site, UBI_DIR=str(tmp_path / "agent"))
    assert outcome.reason == "finished"
    assert (tmp_path / "agent" / "errors.log").read_text().count("KeyError: 'every time'") >= 50
