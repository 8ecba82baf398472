"""The small parts of UBI_LEAN: same numbers, same records, and what belongs to the process is changed back."""

from __future__ import annotations

import gc
import logging
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import MethodType
from typing import Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares import httpproxy
from scrapy.settings import Settings
from scrapy.statscollectors import DummyStatsCollector, MemoryStatsCollector, StatsCollector

from scrapy_ubi import Addon
from scrapy_ubi.fast import tweaks
from scrapy_ubi.fast.tweaks import (
    LOGGERS,
    THRESHOLD,
    FewerCollections,
    LeanStats,
    NoProxyOnce,
    UnwrittenRecords,
    least_written,
)
from tests.fast.crawlers import crawler_with, send

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


@pytest.fixture(autouse=True)
def scrapys_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tweaks, "is_scrapys_process", lambda: True)


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
        assert settings["STATS_CLASS"] is expected


def test_without_ubi_lean_scrapys_stays() -> None:
    settings = Settings({"UBI_LEAN": False})
    Addon().update_settings(settings)
    assert settings["STATS_CLASS"] == Settings()["STATS_CLASS"]


@pytest.fixture
def collector() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.enable()
    gc.set_threshold(*before)


def test_the_first_crawl_changes_the_threshold_the_last_changes_it_back(collector: None) -> None:
    one, other = crawler_with(FewerCollections), crawler_with(FewerCollections)
    send(one, signals.spider_opened)
    assert gc.get_threshold() == (THRESHOLD, 10, 10)
    send(other, signals.spider_opened)
    send(one, signals.spider_closed)
    assert gc.get_threshold() == (THRESHOLD, 10, 10)
    send(other, signals.spider_closed)
    assert gc.get_threshold() == (700, 10, 10)
    send(other, signals.spider_closed)
    send(one, signals.spider_opened)
    assert gc.get_threshold()[0] == THRESHOLD
    send(one, signals.spider_closed)
    assert gc.get_threshold() == (700, 10, 10)


def test_in_a_program_that_embeds_crawls_nothing_is_changed(monkeypatch: pytest.MonkeyPatch, collector: None) -> None:
    monkeypatch.setattr(tweaks, "is_scrapys_process", lambda: False)
    before = gc.get_threshold(), httpproxy.proxy_bypass, levels()
    crawlers = [crawler_with(each) for each in (FewerCollections, NoProxyOnce, UnwrittenRecords)]
    for signal in (signals.spider_opened, signals.spider_closed):
        for crawler in crawlers:
            send(crawler, signal)
        assert (gc.get_threshold(), httpproxy.proxy_bypass, levels()) == before


@pytest.mark.parametrize("threshold", [0, THRESHOLD, 100_000])
def test_a_threshold_that_was_chosen_stays(collector: None, threshold: int) -> None:
    gc.set_threshold(threshold)
    one = crawler_with(FewerCollections)
    send(one, signals.spider_opened)
    assert gc.get_threshold()[0] == threshold
    send(one, signals.spider_closed)
    assert gc.get_threshold()[0] == threshold


def test_a_collector_that_is_off_stays_off(collector: None) -> None:
    gc.disable()
    one = crawler_with(FewerCollections)
    send(one, signals.spider_opened)
    assert not gc.isenabled() and gc.get_threshold()[0] == 700
    send(one, signals.spider_closed)
    assert not gc.isenabled()


def test_what_others_have_frozen_stays_frozen(collector: None) -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        one = crawler_with(FewerCollections)
        send(one, signals.spider_opened)
        send(one, signals.spider_closed)
        assert gc.get_freeze_count() == frozen
    finally:
        gc.unfreeze()


def test_a_crawl_that_never_opened_changes_nothing(collector: None) -> None:
    one = crawler_with(FewerCollections)
    send(one, signals.spider_closed)
    assert gc.get_threshold()[0] == 700


ORIGINAL = httpproxy.proxy_bypass


def proxy_of(middleware: httpproxy.HttpProxyMiddleware, url: str) -> object:
    request = Request(url)
    middleware.process_request(request)
    return request.meta.get("proxy")


def test_no_proxy_is_asked_once_and_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    asked: list[str] = []

    def ask(host: str) -> object:
        asked.append(host)
        return ORIGINAL(host)

    monkeypatch.setattr(httpproxy, "proxy_bypass", ask)
    middleware, one, other = httpproxy.HttpProxyMiddleware(), crawler_with(NoProxyOnce), crawler_with(NoProxyOnce)
    send(one, signals.spider_opened)
    send(other, signals.spider_opened)
    for _ in range(2):
        assert proxy_of(middleware, "http://inside.example/") is None
        assert proxy_of(middleware, "http://sub.inside.example/") is None
        assert proxy_of(middleware, "http://outside.example/") == "http://proxy.example:3128"
    assert len(asked) == 3
    send(one, signals.spider_closed)
    proxy_of(middleware, "http://outside.example/")
    assert len(asked) == 3
    send(other, signals.spider_closed)
    send(other, signals.spider_closed)
    assert httpproxy.proxy_bypass is ask


@pytest.mark.parametrize("excepted", ["", "*", "inside.example, .Other.example,third.example:8080"])
def test_the_environment_is_read_once_and_says_the_same(monkeypatch: pytest.MonkeyPatch, excepted: str) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", excepted)
    middleware, crawler = httpproxy.HttpProxyMiddleware(), crawler_with(NoProxyOnce)
    hosts = ["inside.example", "a.inside.example", "Other.example", "third.example", "outside.example", "insideexample"]
    usual = [proxy_of(middleware, f"http://{host}/") for host in hosts]
    assert len({*usual}) == (1 if excepted in ("", "*") else 2)
    send(crawler, signals.spider_opened)
    monkeypatch.setattr(urllib.request, "getproxies_environment", lambda: pytest.fail("the environment is read again"))
    assert [proxy_of(middleware, f"http://{host}/") for host in hosts] == usual
    send(crawler, signals.spider_closed)


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


def levels() -> list[int]:
    return [logging.getLogger(name).level for name in LOGGERS]


def test_the_first_crawl_changes_the_levels_the_last_changes_them_back() -> None:
    one, other = crawler_with(UnwrittenRecords), crawler_with(UnwrittenRecords)
    with log_of_level(logging.INFO):
        send(one, signals.spider_opened)
        assert levels() == [logging.INFO] * 2
        send(other, signals.spider_opened)
        send(one, signals.spider_closed)
        assert levels() == [logging.INFO] * 2
        send(other, signals.spider_closed)
        send(other, signals.spider_closed)
    assert levels() == [logging.NOTSET] * 2


@pytest.mark.parametrize("level", [logging.NOTSET, logging.DEBUG])
def test_records_that_a_handler_writes_are_made(level: int) -> None:
    mine = logging.Handler(level)
    one = crawler_with(UnwrittenRecords)
    logging.getLogger("scrapy").addHandler(mine)
    try:
        with log_of_level(logging.INFO):
            send(one, signals.spider_opened)
        assert levels() == [logging.NOTSET] * 2
    finally:
        logging.getLogger("scrapy").removeHandler(mine)
        send(one, signals.spider_closed)


def test_a_crawl_that_logs_them_logs_them() -> None:
    one = crawler_with(UnwrittenRecords)
    with log_of_level(logging.DEBUG):
        send(one, signals.spider_opened)
        assert levels() == [logging.NOTSET] * 2
        send(one, signals.spider_closed)


def test_a_level_that_was_given_stays() -> None:
    logger, one = logging.getLogger(LOGGERS[0]), crawler_with(UnwrittenRecords)
    logger.setLevel(logging.WARNING)
    try:
        with log_of_level(logging.INFO):
            send(one, signals.spider_opened)
        assert levels() == [logging.WARNING, logging.INFO]
        send(one, signals.spider_closed)
        assert levels() == [logging.WARNING, logging.NOTSET]
    finally:
        logger.setLevel(logging.NOTSET)


def test_the_lowest_level_of_all_handlers_on_the_way() -> None:
    logger = logging.getLogger(LOGGERS[0])
    with log_of_level(logging.INFO) as handler:
        assert least_written(logger) == logging.INFO
        handler.setLevel(logging.ERROR)
        assert least_written(logger) == logging.ERROR
        logger.propagate = False
        try:
            assert least_written(logger) is None
        finally:
            logger.propagate = True
