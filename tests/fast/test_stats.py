"""The lean stats collector of UBI_LEAN: Scrapy's numbers, by Scrapy's methods."""

from __future__ import annotations

import warnings
from types import MethodType
from typing import Any

import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.settings import Settings
from scrapy.statscollectors import DummyStatsCollector, MemoryStatsCollector, StatsCollector

from scrapy_ubi import Addon
from scrapy_ubi.fast.stats import LeanStats

CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("set_value", ("a", 1)),
    ("inc_value", ("a",)),
    ("inc_value", ("b", 2, 5)),
    ("max_value", ("a", 7)),
    ("min_value", ("b", 1)),
    ("get_value", ("none", 3)),
    ("open_spider", ()),
    ("close_spider", ()),
]


def made_by(collector: StatsCollector, **more: Any) -> list[Any]:
    """What the calls return, and the numbers after each."""
    return [(getattr(collector, name)(*args, **more), dict(collector.get_stats())) for name, args in CALLS]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("more", [{}, {"spider": Spider("walk")}], ids=["usual", "as in old code"])
def test_its_numbers_are_those_of_scrapys(more: dict[str, Any]) -> None:
    crawler = Crawler(Spider)
    crawler.spider = Spider("walk")
    lean, scrapys = LeanStats(crawler), MemoryStatsCollector(crawler)
    assert made_by(lean, **more) == made_by(scrapys, **more)
    assert lean.spider_stats == scrapys.spider_stats


def test_nothing_is_looked_at_before_a_method() -> None:
    lean = LeanStats(Crawler(Spider))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lean.inc_value("a", spider=Spider("walk"))
    assert lean.inc_value == MethodType(StatsCollector.inc_value, lean), "no wrapper around it"


@pytest.mark.parametrize("default", [None, MemoryStatsCollector, "scrapy.statscollectors.MemoryStatsCollector"])
def test_it_takes_the_place_of_the_default_one_only(default: object) -> None:
    chosen = {} if default is None else {"STATS_CLASS": default}
    for users, expected in ((chosen, LeanStats), ({"STATS_CLASS": DummyStatsCollector}, DummyStatsCollector)):
        settings = Settings(users)
        Addon().update_settings(settings)
        assert settings["STATS_CLASS"] is expected


def test_without_ubi_lean_scrapys_stays() -> None:
    settings = Settings({"UBI_LEAN": False})
    Addon().update_settings(settings)
    assert settings["STATS_CLASS"] == Settings()["STATS_CLASS"]
