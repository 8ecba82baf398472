"""Scrapy's settings that are passed over are named at the start; those that have their effect are not."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.settings import Settings

from scrapy_ubi.adapter.process.start_remarks import CLOSING, QUEUES, REDIS_ADDRESS, REDIS_SCHEDULER, settings_remarks
from scrapy_ubi.settings import UbiSettings
from tests.support.crawls import crawl, items_of
from tests.support.site import Page, Site, links
from tests.support.versions import since

HOST = "http://h.example"
PLAIN: dict[str, Any] = {"ADDONS": {}}
NO_FILTER = {"DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter"}


def said(settings: Settings) -> list[str]:
    """The settings that are named, by the first word of each sentence."""
    return [
        sentence.split()[0].rstrip(",:") for sentence in settings_remarks(settings, UbiSettings.from_scrapy(settings))
    ]


@pytest.mark.parametrize("name", ["DUPEFILTER_CLASS", "SCHEDULER_DEBUG", *QUEUES])
@pytest.mark.parametrize("priority", ["addon", "project", "spider"])
def test_what_is_not_used_is_said_whoever_has_set_it(name: str, priority: str) -> None:
    settings = Settings()
    assert said(settings) == []
    settings.set(name, True if name == "SCHEDULER_DEBUG" else "own.Class", priority)
    assert said(settings) == [name]


def test_a_former_name_is_said_with_what_to_write() -> None:
    settings = Settings({"UBI_HOST_MAX_PAGES": 5})
    (sentence,) = settings_remarks(settings, UbiSettings.from_scrapy(settings))
    assert sentence.startswith("UBI_HOST_MAX_PAGES is the former name of")
    assert "UBI_HOST_LIMITS = 'pages=...'" in sentence


def test_all_queues_of_scrapy_are_among_them() -> None:
    assert {name for name in Settings() if name.startswith("SCHEDULER_") and name.endswith("_QUEUE")} == set(QUEUES)


@pytest.mark.parametrize(
    "settings",
    [
        NO_FILTER,
        {"SCHEDULER_DEBUG": False},
        {"DEPTH_PRIORITY": 1},
        {"REQUEST_FINGERPRINTER_CLASS": "own.Class"},
        {"UBI_NORMALISE": "larm"},
    ],
    ids=str,
)
def test_what_has_its_effect_is_not_named(settings: dict[str, Any]) -> None:
    assert said(Settings(settings)) == []


def test_a_fingerprinter_passes_the_normal_form_over() -> None:
    assert said(Settings({"REQUEST_FINGERPRINTER_CLASS": "own.Class", "UBI_NORMALISE": "larm"})) == ["UBI_NORMALISE"]


GROUP = {"UBI_REDIS_URL": "redis://h.example:6379/0"}


@pytest.mark.parametrize("name", CLOSING)
def test_what_closes_one_agent_of_a_group_is_said(name: str) -> None:
    (sentence,) = settings_remarks(Settings({name: 5, **GROUP}), UbiSettings.from_scrapy(Settings(GROUP)))
    assert sentence.startswith(f"{name} is set") and "this agent only" in sentence
    assert (CLOSING[name] or "UBI_CRAWL_LIMITS ends") in sentence
    assert said(Settings({name: 5})) == [], "a crawl of one agent is closed by it, as in plain Scrapy"
    assert said(Settings({name: 0, **GROUP})) == []


def test_that_a_limit_of_depth_depends_on_the_order_of_hosts_is_said_to_a_group() -> None:
    (sentence,) = settings_remarks(Settings({"DEPTH_LIMIT": 3, **GROUP}), UbiSettings.from_scrapy(Settings(GROUP)))
    assert sentence.startswith("DEPTH_LIMIT is set") and "beyond the limit" in sentence
    ours = Settings({"UBI_CRAWL_LIMITS": "depth=3", **GROUP})
    (sentence,) = settings_remarks(ours, UbiSettings.from_scrapy(ours))
    assert sentence.startswith("The limit 'depth' of UBI_CRAWL_LIMITS is set")
    assert said(Settings({"DEPTH_LIMIT": 3})) == said(Settings({"DEPTH_LIMIT": 0, **GROUP})) == []


def test_all_settings_that_close_a_spider_are_among_them() -> None:
    assert {name for name in Settings() if name.startswith("CLOSESPIDER_")} == set(CLOSING)


def test_a_closed_agent_of_a_group_has_said_so(site: Site, caplog: pytest.LogCaptureFixture, redis_url: str) -> None:
    site.host("h.example", lambda visit: Page(""))
    crawl(Tree, site.proxy, settings={"UBI_REDIS_URL": redis_url, "CLOSESPIDER_ITEMCOUNT": 1000})
    assert caplog.text.count("CLOSESPIDER_ITEMCOUNT is set: it counts what this agent does") == 1


@pytest.mark.parametrize("name", REDIS_SCHEDULER)
def test_what_is_left_of_the_scheduler_of_scrapy_redis_is_said(name: str) -> None:
    assert said(Settings({name: False, **GROUP})) == [name]


def test_what_is_left_of_scrapy_redis_is_one_sentence() -> None:
    left = {"SCHEDULER_PERSIST": True, "SCHEDULER_QUEUE_KEY": "%(spider)s:requests"}
    (sentence,) = settings_remarks(Settings(left), UbiSettings.from_scrapy(Settings()))
    assert sentence.startswith("SCHEDULER_PERSIST, SCHEDULER_QUEUE_KEY: set for the scheduler of scrapy-redis")


@pytest.mark.parametrize("name", REDIS_ADDRESS)
def test_the_redis_of_scrapy_redis_makes_no_group(name: str) -> None:
    alone = Settings({name: "h.example"})
    (sentence,) = settings_remarks(alone, UbiSettings.from_scrapy(alone))
    assert sentence.startswith(f"{name} is set") and "Set UBI_REDIS_URL" in sentence
    assert said(Settings({name: "h.example", **GROUP})) == []
    assert said(Settings({name: "h.example", "REDIS_URL": "redis://h.example"})) == ["REDIS_URL"]


class Tree(Spider):
    """A tree of pages on one host: each links to two below it."""

    name = "tree"
    start_urls = (f"{HOST}/0",)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        if len(response.url) < len(f"{HOST}/0000"):
            yield from (Request(response.url + branch) for branch in "12")


def test_each_is_said_once_and_the_crawl_runs(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.host("h.example", lambda visit: Page(""))
    caplog.set_level(logging.WARNING)
    queues = {"SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue", "SCHEDULER_DEBUG": True}
    (outcome,) = crawl(Tree, site.proxy, settings={**queues, "LOG_LEVEL": "WARNING"})
    assert len(outcome.items) == 15
    for name in queues:
        assert caplog.text.count(f"{name} is set, but not used") == 1


DEEP_FIRST = pytest.param(-1, True, marks=since(2, 18))  # the links of a page come too late before


@pytest.mark.parametrize(("priority", "deep_first"), [(1, False), (0, False), DEEP_FIRST])
def test_depth_priority_orders_a_hosts_pages(site: Site, priority: int, deep_first: bool) -> None:
    site.host("h.example", lambda visit: Page(""))
    crawl(Tree, site.proxy, settings={"DEPTH_PRIORITY": priority})
    depths = [len(visit.url) for visit in site.visits]
    assert len(depths) == 15
    assert (depths == sorted(depths)) != deep_first


class Doubles(Spider):
    """Asks for a page several times, and for a redirect to it."""

    name = "doubles"
    start_urls = (f"{HOST}/",)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        if response.url == f"{HOST}/":
            yield from (Request(f"{HOST}/{path}") for path in ("a", "a", "b", "moved", "moved"))


@pytest.mark.parametrize("agents", [1, 3])
def test_the_dupe_filter_that_filters_nothing_does_as_in_plain_scrapy(site: Site, agents: int) -> None:
    for path in ("", "a", "b"):
        site.page(f"{HOST}/{path}", links())
    site.redirect(f"{HOST}/moved", f"{HOST}/b")
    plain = items_of(crawl(Doubles, site.proxy, settings={**PLAIN, **NO_FILTER}))
    assert [item["url"] for item in plain] == [f"{HOST}/", *[f"{HOST}/a"] * 2, *[f"{HOST}/b"] * 3]
    assert items_of(crawl(Doubles, site.proxy, agents, settings=NO_FILTER)) == plain


class Twice(Spider):
    name = "twice"
    start_urls = (f"{HOST}/", f"{HOST}/")

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}


def test_a_seed_that_start_yields_twice_is_fetched_once_and_said(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.page(f"{HOST}/")
    (outcome,) = crawl(Twice, site.proxy)
    assert len(outcome.items) == 1
    (record,) = [record for record in caplog.records if "start() yields" in record.getMessage()]
    assert record.levelno == logging.WARNING and "from a callback" in record.getMessage()
