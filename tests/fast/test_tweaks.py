"""The small parts of UBI_LEAN: same numbers, same records."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import MethodType
from typing import Any

import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.settings import Settings
from scrapy.statscollectors import DummyStatsCollector, MemoryStatsCollector, StatsCollector
from scrapy.utils.misc import load_object

from scrapy_ubi import Addon
from scrapy_ubi.fast.tweaks import LeanStats, is_written, least_written

LOGGER = "scrapy.core.engine"

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
def test_the_numbers_are_those_of_scrapys_collector(more: dict[str, Any]) -> None:
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
        assert load_object(settings["STATS_CLASS"]) is expected


def test_without_ubi_lean_scrapys_stays() -> None:
    settings = Settings({"UBI_LEAN": False})
    Addon().update_settings(settings)
    assert settings["STATS_CLASS"] == Settings()["STATS_CLASS"]


@contextmanager
def log_of_level(level: int) -> Iterator[logging.Handler]:
    """The log of a crawl with this LOG_LEVEL, without the handlers of the test runner, which take all."""
    root = logging.getLogger()
    before = root.handlers[:]
    handler = logging.Handler(level)
    root.handlers[:] = [handler]
    try:
        yield handler
    finally:
        root.handlers[:] = before


@pytest.mark.parametrize("level", [logging.NOTSET, logging.DEBUG])
def test_a_record_is_made_where_a_handler_writes_it_from_the_moment_there_is_one(level: int) -> None:
    logger, mine = logging.getLogger(LOGGER), logging.Handler(level)
    with log_of_level(logging.INFO) as handler:
        assert not is_written(logger, logging.DEBUG) and is_written(logger, logging.INFO)
        logging.getLogger("scrapy").addHandler(mine)
        try:
            assert is_written(logger, logging.DEBUG)
        finally:
            logging.getLogger("scrapy").removeHandler(mine)
        handler.setLevel(logging.DEBUG)
        assert is_written(logger, logging.DEBUG)


def test_a_record_that_a_filter_sees_is_made() -> None:
    logger = logging.getLogger(LOGGER)
    seen = logging.Filter()
    with log_of_level(logging.INFO):
        logger.addFilter(seen)
        try:
            assert is_written(logger, logging.DEBUG)
        finally:
            logger.removeFilter(seen)


def test_the_lowest_level_of_all_handlers_on_the_way() -> None:
    logger = logging.getLogger(LOGGER)
    with log_of_level(logging.INFO) as handler:
        assert least_written(logger) == logging.INFO
        handler.setLevel(logging.ERROR)
        assert least_written(logger) == logging.ERROR
        logger.propagate = False
        try:
            assert least_written(logger) is None
        finally:
            logger.propagate = True
