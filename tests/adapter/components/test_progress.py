"""The line on a crawl each ten seconds, and when Scrapy's own stands in its place."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.extensions.logstats import LogStats
from scrapy.settings import BaseSettings
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import load_object

from scrapy_ubi.adapter.components import progress
from scrapy_ubi.adapter.components.progress import WIDTH, Progress, progress_line, short
from tests.support.builders import applied
from tests.support.crawls import crawl
from tests.support.site import Site, links

PATH = "scrapy.extensions.logstats.LogStats"


class Own(LogStats):
    """A user's own."""


def extensions(settings: BaseSettings) -> list[Any]:
    return list(map(load_object, build_component_list(settings.get_component_priority_dict_with_base("EXTENSIONS"))))


def test_it_stands_in_place_of_scrapys() -> None:
    found = extensions(applied())
    assert Progress in found
    assert LogStats not in found


def test_with_the_addon_off_scrapys_is_there() -> None:
    found = extensions(applied(UBI_ENABLED=False))
    assert LogStats in found
    assert Progress not in found


@pytest.mark.parametrize("name", [PATH, LogStats])
def test_who_wants_none_has_none(name: object) -> None:
    found = extensions(applied(EXTENSIONS={name: None}))
    assert Progress not in found
    assert LogStats not in found


@pytest.mark.parametrize("name", [PATH, LogStats])
def test_who_has_moved_scrapys_has_it_once(name: object) -> None:
    found = extensions(applied(EXTENSIONS={name: 700}))
    assert Progress in found
    assert LogStats not in found


def test_a_users_own_stays() -> None:
    found = extensions(applied(EXTENSIONS={PATH: None, Own: 0}))
    assert Own in found
    assert Progress not in found


def crawler_with(**settings: Any) -> Crawler:
    crawler = Crawler(Spider, applied(**settings))
    crawler.stats = MemoryStatsCollector(crawler)
    return crawler


@pytest.mark.parametrize(("settings", "every"), [({}, 10.0), ({"LOGSTATS_INTERVAL": 30.0}, 30.0)])
def test_how_often(settings: dict[str, Any], every: float) -> None:
    assert Progress.from_crawler(crawler_with(**settings)).interval == every


def test_an_interval_of_0_is_never() -> None:
    with pytest.raises(NotConfigured):
        Progress.from_crawler(crawler_with(LOGSTATS_INTERVAL=0))


def test_the_line_has_what_fits() -> None:
    parts = ["1,234,567 pages (1234.5/s)", "99,999,999 wait", "999,999 failed", "99.9 M items", "999,999 hosts"]
    line = progress_line("paused", parts)
    assert line == "paused: 1,234,567 pages (1234.5/s), 99,999,999 wait, 999,999 failed"
    assert len(line) <= WIDTH
    assert progress_line("", parts[:2]) == "1,234,567 pages (1234.5/s), 99,999,999 wait"
    assert [short(number) for number in (0, 12_345, 1_234_567, 9_876_543_210)] == ["0", "12,345", "1.2 M", "9.9 G"]


class Walk(Spider):
    """Goes on from the second page when it has been told of once more."""

    name = "walk"
    start_urls = ("http://a.example/",)

    def parse(self, response: Any) -> Any:
        yield {"url": response.url}
        yield from response.follow_all(css="a")


def test_a_crawl_says_how_it_goes_on_and_what_it_has_come_to(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.05)
    with Site() as site, caplog.at_level(logging.INFO):
        site.page("http://a.example/", links("http://a.example/1", "http://a.example/gone"))
        site.page("http://a.example/1", "one")
        (outcome,) = crawl(Walk, site.proxy, settings={"UBI_HOST_DELAY": 0.2, "LOG_LEVEL": "INFO"})
    assert outcome.stats["item_scraped_count"] == 2
    assert "responses_per_minute" in outcome.stats  # Scrapy's, as ever
    said = [record.getMessage() for record in caplog.records if record.name == "scrapy_ubi"]
    lines = [text for text in said if "/s)" in text]
    assert lines
    assert all(len(line) <= WIDTH for line in lines)
    assert not [record for record in caplog.records if "pages/min" in record.getMessage()]
    last = said[-4:]
    assert " is finished: 3 pages in " in last[0]
    assert last[1].startswith("Failed: 1 URL: 1 http/404")
    assert "  http/404 mostly at a.example" in said
    assert said[-1].startswith("More: scrapy ubi report --html report.html --crawl ")
